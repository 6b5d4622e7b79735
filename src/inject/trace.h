/* The light trace: activities go from CUPTI's buffers into blocks, and these to the spool as they become full. */
#pragma once

#include "core/activities.h"
#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Begin to trace this process, before the application uses CUDA. */
kprof_status kprof_trace_start(void) KPROF_MUST_CHECK;
/* The time on the clock of activities, also before any is recorded; 0: the process is not traced. */
int64_t kprof_trace_now_ns(void);
/* An NVTX range, or a mark, whose style is this one. */
#define KPROF_TRACE_MARK "Marker"
typedef struct kprof_trace_range {
    const char *name, *domain, *style; /* domain "": NVTX's own */
    int64_t start_ns, end_ns;          /* end -1: it has not ended */
    int64_t thread, end_thread;
} kprof_trace_range;
void kprof_trace_take_range(const kprof_trace_range *range);
/* The trace lacks an NVTX range. */
void kprof_trace_lose_range(void);
/* A sample of a counter, whose name is that of the metric. */
void kprof_trace_take_sample(const kprof_sample_activity *sample, const char *metric);
/* Ranges, steps or calls have changed: look whether the trace tells of what happens now; `begun` as for
 * kprof_trace_limit_follow. */
void kprof_trace_follow(int begun);
/* kprof ctl wants the trace to go on, or not. */
void kprof_trace_arm(bool armed);
/* The application calls cudaProfilerStart or cudaProfilerStop, which the trace is limited by. */
void kprof_trace_note_profiler(bool starts);
/* Write what has ended, and that this is all. */
void kprof_trace_end(void);
