/* The one engine of the process. */
#include "inject/engine.h"

struct kprof_engine kprof_engine;
