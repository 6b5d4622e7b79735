/* All that the injection library keeps in a process. */
#ifndef KPROF_INJECT_ENGINE_H
#define KPROF_INJECT_ENGINE_H

#include "cupti/device_ops.h"

struct kprof_engine {
    const kprof_device_ops *device; /* set before anything else is called */
};

extern struct kprof_engine kprof_engine;

#endif
