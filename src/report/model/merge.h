/* Puts several reports into one: those of the ranks, processes or machines of a job. */
#pragma once

#include "report/model/subset.h"

typedef struct kprof_merge kprof_merge;

/* Begin to merge into a new report, which is borrowed and notes failures. */
kprof_merge *kprof_merge_new(kprof_report *into);
/* Add a finished report, or what of it `subset` takes (NULL: all). It is called `name` in the new one; NULL: it is of a
 * run that tells itself what it lacks. Its launches follow those that are there; kernels, devices and metrics that are
 * there already are shared. Work and memory do not grow with what was added before. USAGE for a report whose processes
 * are there already; BAD_REPORT for one that is not finished, or with a section that computes a value in another way
 * than one that is there. */
kprof_status kprof_merge_add(kprof_merge *merge, const char *path, const char *name,
                             const kprof_subset *subset) KPROF_MUST_CHECK;
/* Store what depends on all reports: when the first run began. If there is only one, the new one describes that run. */
kprof_status kprof_merge_finish(kprof_merge *merge) KPROF_MUST_CHECK;
void kprof_merge_free(kprof_merge *merge);

/* Join the launches of ranks that collected other passes each, where all reports that were merged are of such ranks. */
kprof_status kprof_merge_join_ranks(kprof_report *into) KPROF_MUST_CHECK;

/* A metric that is the greatest of others. */
typedef struct kprof_greatest {
    const char *chip, *name; /* borrowed, as the parts are */
    const kprof_strlist *parts;
} kprof_greatest;

/* Runs of one program, which collected other metrics each. They were added in their order. */
typedef struct kprof_runs {
    size_t count;
    kprof_run_match match;
    kprof_run_order order;
    const kprof_greatest *greatest; /* [greatest_count]: what no run has, but follows from what they have */
    size_t greatest_count;
    bool last_has_several; /* the last run has metrics of several passes */
    bool last_has_further; /* and for them launches beyond the number that each run was to measure */
    bool of_ranges;        /* launches are ranges, which get throughputs of the parts that they have */
    uint64_t left_out;     /* filled in: launches that not all runs have, of all runs */
    uint64_t taken;        /* filled in: launches that all have */
    bool are_moved;        /* filled in: of some that are left out all runs have as many */
} kprof_runs;
/* Instead of kprof_merge_finish: make one launch of those that match, with the values of all, in the processes of the
 * first run. Launches that not every run has are left out, and messages tell which. */
kprof_status kprof_merge_join_runs(kprof_report *into, kprof_runs *runs) KPROF_MUST_CHECK;
