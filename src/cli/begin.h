/* Begins the report of a run. */
#pragma once

#include "cli/plans.h"

typedef struct kprof_report_target {
    const char *path;
    kprof_create_mode mode;
    const char *default_set; /* that the line means where it asks for nothing; NULL: none */
} kprof_report_target;

/* Create a report with the line, the sets and the plans of a run, and nothing measured yet. Errors as of
 * kprof_report_create. */
kprof_status kprof_report_begin_run(const kprof_options *options, const kprof_plans *plans,
                                    const kprof_report_target *to, kprof_report **out) KPROF_MUST_CHECK;
