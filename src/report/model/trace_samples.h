/* The samples of kprof trace --pm-sampling over the time of a program. */
#pragma once

#include "report/report.h"

/* Make the temporary tables sampled_metric, trace_sampled and sampled_step, once for an open report with a trace;
 * trace_samples.c tells their columns. */
void kprof_trace_find_samples(kprof_report *report);
/* The mean of samples, rows of trace_sampled, each weighted by this many ns. */
#define KPROF_MEAN_OF_SAMPLES(ns)                                                                                      \
    "round(total(value*(" ns "))/nullif(total(CASE WHEN value IS NOT NULL THEN " ns " END), 0), 3)"

/* Append ", mean AS name" for each metric, at most 20, over the rows of sampled_step of a group. */
void kprof_trace_list_samples(kprof_report *report, kprof_strbuf *out);
/* Has the trace any samples? */
bool kprof_trace_has_samples(kprof_report *report);
