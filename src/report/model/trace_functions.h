/* Functions for SQL that SQLite lacks. */
#pragma once

#include "report/report.h"

/* Add kprof_median(x) and kprof_deviation(x), the standard deviation of a sample, of the rows of a group that have a
 * number; both keep eight bytes for each; and kprof_quote(text), a pattern of that text alone. */
kprof_status kprof_trace_add_functions(kprof_report *report) KPROF_MUST_CHECK;
