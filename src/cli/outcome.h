/* Tells how a profiling run ended: the exit code, and the reason when nothing was collected. */
#pragma once

#include "cli/options.h"
#include "cli/spools.h"
#include "report/report.h"

typedef struct kprof_outcome {
    int wait_status;         /* of the application, as wait(2) has it */
    kprof_status collecting; /* ingesting the spools */
    kprof_status parts;      /* reports that kprof ctl asked for, with sets of its own */
    kprof_status printing;
    kprof_status choosing; /* of kernels of a census: NO_MATCH, with a message, when there are none to measure; of
                              launches that all runs have: NOT_COLLECTED, likewise, when runs differ */
    bool is_census;        /* nothing was measured but how often and how long kernels ran */
    bool is_trace;         /* of kprof trace: launches were to be recorded, not measured */
    kprof_spools_summary spools;
    kprof_report_counts counts;
} kprof_outcome;

/* The exit code. A failure of the application goes first: its exit status, or 128 + signal; a status in kprof's own
 * range, 100 to 119, becomes 119. Else the code of kprof's own result; nothing collected is never OK. */
int kprof_outcome_exit_code(const kprof_outcome *outcome);

/* Log how the application failed, and what is missing and why: no CUDA, no match (with the kernels seen and the name
 * nearest to --kernel-name), nothing measured. */
void kprof_outcome_explain(const kprof_outcome *outcome, const kprof_options *options, kprof_report *report);
/* Print the lines with which ncu ends a run that did not go well, for scripts that look for them. */
void kprof_outcome_tell_as_ncu(const kprof_outcome *outcome, FILE *out);
/* Log that no launch of the report matched; unless numbers alone chose them, also which kernels were seen, and the name
 * nearest to --kernel-name. `name`: of the report, where there are several; NULL. */
void kprof_outcome_explain_no_match(const kprof_options *options, kprof_report *report, const char *name);
