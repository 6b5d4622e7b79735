/* What kprof trace --pm-sampling has sampled over the time of a program. */
#pragma once

#include "report/report.h"

/* Make the temporary tables sampled_metric and trace_sampled, once for an open report with a trace; trace_samples.c
 * tells their columns. */
kprof_status kprof_trace_find_samples(kprof_report *report) KPROF_MUST_CHECK;
/* Has the trace any samples? */
kprof_status kprof_trace_has_samples(kprof_report *report, bool *out) KPROF_MUST_CHECK;
