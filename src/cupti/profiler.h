/* CUPTI's Range Profiler on one context: the counters of one launch, in as many passes as its config image has. Either
 * CUPTI replays the launch inside the launch call, or the caller does between start and stop of each pass. */
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
/* Begin a measurement: forgets the last one. */
kprof_status kprof_profiler_begin(kprof_profiler *profiler, kprof_profiler_replay replay) KPROF_MUST_CHECK;
/* Around the launch, on the launching thread, with the context idle: once where CUPTI replays, else once for each pass.
 * `more` tells whether passes are left. */
kprof_status kprof_profiler_start(kprof_profiler *profiler) KPROF_MUST_CHECK;
kprof_status kprof_profiler_stop(kprof_profiler *profiler, bool *more) KPROF_MUST_CHECK;
/* Evaluate what was measured: values is [metrics->count], NaN where CUPTI has none. */
kprof_status kprof_profiler_read(kprof_profiler *profiler, double *values) KPROF_MUST_CHECK;
/* The counter data image that _read evaluated: *size bytes, valid until the next _begin. */
const void *kprof_profiler_image(const kprof_profiler *profiler, size_t *size);
/* The context is going: free what is ours without touching it. */
void kprof_profiler_close(kprof_profiler *profiler);

#endif
