/* Temporary tables that several tables of a trace are made of. */
#pragma once

#include "report/report.h"

/* Make a temporary table, and what goes with it, in a report that is open for reading alone, unless it has that. */
typedef kprof_status kprof_trace_maker(kprof_report *report);
kprof_status kprof_trace_make_once(kprof_report *report, const char *table, kprof_trace_maker *make) KPROF_MUST_CHECK;
/* Make first_call(process_id, correlation, start_ns, end_ns, thread, name_id), once for an open report with a trace: of
 * calls with one number the first. */
kprof_status kprof_trace_find_calls(kprof_report *report) KPROF_MUST_CHECK;
/* Likewise trace_shape: of each name, grid, block and dynamic shared memory of kernels the launches (c), their time (t)
 * and its median. */
kprof_status kprof_trace_find_shapes(kprof_report *report) KPROF_MUST_CHECK;
