/* The one engine of the process. It is a file of its own because tests of single parts link it with just their part. */
#include "inject/engine.h"

struct kprof_engine kprof_engine = {
    .gate = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, .changed = PTHREAD_COND_INITIALIZER},
    .kernels = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP},
    .contexts = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP},
    .devices = {.mutex = PTHREAD_MUTEX_INITIALIZER, .generation = 1},
    .idle = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, .changed = PTHREAD_COND_INITIALIZER},
    .lock = {.place = {.fd = -1}},
    .waits = {.mutex = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER,
              .hold_ns = KPROF_HOLD_NS,
              .patience_ns = KPROF_PATIENCE_NS},
};
