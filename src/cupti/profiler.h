/* CUPTI's Range Profiler on one context: counters of one launch, replayed by CUPTI inside the launch call. */
#ifndef KPROF_CUPTI_PROFILER_H
#define KPROF_CUPTI_PROFILER_H

#include "core/config.h"

typedef struct kprof_profiler kprof_profiler;

/* Get a context ready; it must be current. `metrics` is borrowed while the profiler lives. The first profiler of a
 * process costs about 80 ms. NO_PERMISSION, COUNTERS_BUSY or UNSUPPORTED as CUPTI says. */
kprof_status kprof_profiler_open(void *context, const kprof_chip_metrics *metrics,
                                 kprof_profiler **out) KPROF_MUST_CHECK;
/* Arm before a launch, on the launching thread, with the context idle. */
kprof_status kprof_profiler_begin(kprof_profiler *profiler) KPROF_MUST_CHECK;
/* Disarm after it and evaluate: values is [metrics->count], NaN where CUPTI has none. */
kprof_status kprof_profiler_end(kprof_profiler *profiler, double *values) KPROF_MUST_CHECK;
/* The context is going: free what is ours without touching it. */
void kprof_profiler_close(kprof_profiler *profiler);

#endif
