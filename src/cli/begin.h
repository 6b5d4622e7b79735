/* Begins the report of a run. */
#pragma once

#include "cli/plans.h"
#include "cli/session.h"
#include "report/store/code_read.h"

typedef struct kprof_report_target {
    const char *path;
    kprof_create_mode mode;
    const char *default_set; /* of a line that asks for nothing; NULL: none */
    const char *seed;        /* to begin again: the file in the session directory that has the plans */
} kprof_report_target;

/* Create a report with line, sets and plans of a run, and no values. Errors as of kprof_report_create. */
kprof_status kprof_report_begin_run(const kprof_options *options, const kprof_plans *plans,
                                    const kprof_report_target *to, kprof_report **out) KPROF_MUST_CHECK;
/* Create a report of a run that was begun before, by its session directory. */
kprof_status kprof_report_begin_again(const kprof_options *options, const kprof_session *session,
                                      const kprof_report_target *to, kprof_report **out) KPROF_MUST_CHECK;
/* The place of the code of a run's kernels, and how to read it. */
kprof_code_options kprof_code_options_of(const kprof_options *options, const kprof_session *session);
