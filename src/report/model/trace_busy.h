/* How busy each GPU of a trace was, and the gaps between what ran. */
#pragma once

#include "report/report.h"

/* Make the temporary tables gpu_busy, gpu_idle and trace_gap of trace_work and trace_own. trace_busy.c tells their
 * columns. Memory holds what is asked for at a time, and different latencies. */
kprof_status kprof_trace_find_gaps(kprof_report *report) KPROF_MUST_CHECK;
/* Add the time of gaps of trace_gap to gpu_idle. */
kprof_status kprof_trace_explain_gaps(kprof_report *report) KPROF_MUST_CHECK;
