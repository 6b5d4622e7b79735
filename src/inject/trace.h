/* The light trace: activities go from CUPTI's buffers into blocks, and these to the spool as they become full. */
#ifndef KPROF_INJECT_TRACE_H
#define KPROF_INJECT_TRACE_H

#include "core/status.h"
#include "cupti/target.h"

/* Begin to trace this process, before the application uses CUDA. */
kprof_status kprof_trace_start(void) KPROF_MUST_CHECK;
/* The hooks of a process that is traced, in which nothing is measured. */
extern const kprof_target_hooks kprof_trace_hooks;
/* Write what has ended, and that this is all. */
void kprof_trace_end(void);
/* Trace nothing in a forked child. */
void kprof_trace_forget(void);

#endif
