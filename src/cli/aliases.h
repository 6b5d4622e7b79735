/* Aliases in conditions on what reports have. */
#pragma once

#include "cli/options.h"
#include "report/model/change.h"

/* Conditions, and the reports that they are about. */
typedef struct kprof_condition_use {
    const char *option;          /* "--fail-on" */
    kprof_condition *conditions; /* [condition_count] */
    size_t condition_count;
    kprof_report *const *reports; /* [report_count], open */
    size_t report_count;
} kprof_condition_use;

/* Put in place of each alias the metric that stands for it in all of the reports. UNKNOWN_NAME where none does, and for
 * what is nearly an alias and no metric of a report. A kprof without set files knows no aliases. */
kprof_status kprof_conditions_translate(const kprof_options *options, const kprof_condition_use *use) KPROF_MUST_CHECK;
/* The same for the conditions of --filter and the one report that is printed. */
kprof_status kprof_filters_translate(const kprof_options *options, kprof_report *report) KPROF_MUST_CHECK;
