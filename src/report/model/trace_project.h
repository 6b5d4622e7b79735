/* NVTX ranges on the GPU: what the calls within a range asked for. */
#pragma once

#include "report/report.h"

/* Make these temporary tables, once for an open report with a trace:
 *   range_kernel: range (id of trace_range), kernel (id of trace_kernel): the kernels whose calls are in a range of
 * their thread, in each such range range_span:   range, start_ns, end_ns, ops: of each range with anything on the GPU,
 * from the first start to the last end of it, and how much there is */
kprof_status kprof_trace_project_ranges(kprof_report *report) KPROF_MUST_CHECK;
