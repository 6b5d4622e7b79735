/* Memory that the application frees while a batch is open. Replays use it, so the driver frees it only afterwards. */
#pragma once

#include "cupti/driver.h"

#include <stdbool.h>

/* Starts as zeros. One of a context, for one thread at a time. */
typedef struct kprof_freed {
    CUdeviceptr *addresses; /* [count], owned */
    size_t count;
    size_t bytes, most_bytes; /* of all; most_bytes: 0 until known */
} kprof_freed;

/* From inside the enter hook of a cuMemFree in the context: keep the allocation that `argument` points to, and put one
 * of kprof's own there, which the driver frees instead. False, and nothing is changed, where it is no allocation of
 * this context alone, the driver does not take another argument, or the device has too little space. */
bool kprof_freed_keep(kprof_freed *freed, const void *context, CUdeviceptr *argument);
/* Free all that is kept if the context is current; else keep it. To be called while the context is idle. */
void kprof_freed_let_go(kprof_freed *freed, const void *context);
