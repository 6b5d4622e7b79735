/* CUPTI's Range Profiler on one context: the counters of some launches, in as many passes as the config image has.
 * Either CUPTI replays one launch inside the launch call, or the caller replays all between start and stop of each
 * pass. */
#ifndef KPROF_CUPTI_PROFILER_H
#define KPROF_CUPTI_PROFILER_H

#include "core/config.h"

typedef struct kprof_profiler kprof_profiler;

typedef enum kprof_profiler_replay {
    KPROF_PROFILER_CUPTI_REPLAYS,
    KPROF_PROFILER_CALLER_REPLAYS
} kprof_profiler_replay;

/* Get a context ready; it must be current. `metrics` is borrowed while the profiler lives. The first profiler of a
 * process costs about 80 ms. NO_PERMISSION, COUNTERS_BUSY or UNSUPPORTED as CUPTI says. */
kprof_status kprof_profiler_open(void *context, const kprof_chip_metrics *metrics,
                                 kprof_profiler **out) KPROF_MUST_CHECK;
/* How many launches one measurement can have, by the memory that their counter data takes; at least 1. */
size_t kprof_profiler_capacity(kprof_profiler *profiler);
/* Begin a measurement of at most `launches` launches; 1 where CUPTI replays. Forgets the last one. */
kprof_status kprof_profiler_begin(kprof_profiler *profiler, kprof_profiler_replay replay,
                                  size_t launches) KPROF_MUST_CHECK;
/* Around the launches, with the context idle: once where CUPTI replays, else once for each pass. `more` tells whether
 * passes are left. */
kprof_status kprof_profiler_start(kprof_profiler *profiler) KPROF_MUST_CHECK;
kprof_status kprof_profiler_stop(kprof_profiler *profiler, bool *more) KPROF_MUST_CHECK;
/* Decode what was measured. NOT_COLLECTED when CUPTI did not record exactly `launches` launches. */
kprof_status kprof_profiler_decode(kprof_profiler *profiler, size_t launches) KPROF_MUST_CHECK;
/* Evaluate one of them, in launch order from 0: values is [metrics->count], NaN where CUPTI has none. */
kprof_status kprof_profiler_read(kprof_profiler *profiler, size_t launch, double *values) KPROF_MUST_CHECK;
/* The counter data image that was decoded: *size bytes, valid until the next _begin. */
const void *kprof_profiler_image(const kprof_profiler *profiler, size_t *size);
/* Give the GPU's counters to other processes; the next _begin takes them again. The context must be current. */
void kprof_profiler_release(kprof_profiler *profiler);
/* The context is going: free what is ours without touching it. */
void kprof_profiler_close(kprof_profiler *profiler);

#endif
