/* Queues a launch before a call of CUPTI's and has it begin behind that call, at once. The call must not wait for the
 * launch: if it does, another thread lets the launch go, and launches of the context are held back no more. */
#pragma once

#include "inject/contexts.h"

#include <pthread.h>

typedef struct kprof_latched {
    kprof_profiled_context *context;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread; /* lets the launch go if nobody else does in time */
    bool is_released;
    bool was_late; /* the thread did */
} kprof_latched;

/* Hold back what the context's snapshot repeats from now on. False: it is not held, and nothing is to be released. */
bool kprof_latched_hold(kprof_latched *latched, kprof_profiled_context *context);
/* Let it begin. False: it began before. */
bool kprof_latched_release(kprof_latched *latched);
