/* The times of a program that its trace is limited to: those between cudaProfilerStart and cudaProfilerStop, with
 * --profile-from-start, steps of --schedule, NVTX ranges of --nvtx-include, and from kprof ctl start to stop. The
 * filter knows what is chosen; this file keeps when that began and ended, since records and samples come late. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Do the application's calls of cudaProfilerStart and cudaProfilerStop matter to the trace? */
bool kprof_trace_limit_needs_calls(void);
/* kprof ctl tells this, with --armed no; tell _follow then. */
void kprof_trace_limit_arm(bool armed);
/* A range of --nvtx-include has begun (1) or ended (-1), or something else that the filter knows of has changed (0).
 * Returns when a time that is left out began, if it ends now, and 0 otherwise. Times are on the clock of activities. */
int64_t kprof_trace_limit_follow(int64_t now_ns, int begun);
/* Is the trace limited to other times than this one? */
bool kprof_trace_limit_is_out(void);
/* Has the trace anything of this time, or moment? True without a limit, and where that is not known any more. */
bool kprof_trace_limit_has(int64_t start_ns, int64_t end_ns);
/* If the limit has kept all from being traced, say why. */
void kprof_trace_limit_tell(void);
/* Begin anew in a forked child, which is not traced. */
void kprof_trace_limit_forget(void);
