/* The one engine of the process. It is a file of its own because tests of single parts link it with just their part. */
#include "inject/engine.h"

struct kprof_engine kprof_engine = {.waits = {.hold_ns = KPROF_HOLD_NS, .patience_ns = KPROF_PATIENCE_NS}};
