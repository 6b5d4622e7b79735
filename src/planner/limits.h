/* Keeps of what was asked for what fits into --max-passes and --budget. */
#ifndef KPROF_PLANNER_LIMITS_H
#define KPROF_PLANNER_LIMITS_H

#include "planner/cost.h"
#include "planner/host.h"

/* What collecting may cost. */
typedef struct kprof_limits {
    uint32_t max_passes;     /* 0: any number */
    double budget_s;         /* for one process; 0: no limit */
    kprof_workload workload; /* that the budget is for */
} kprof_limits;

bool kprof_limits_are_set(const kprof_limits *limits);

/* What became of a list of names. */
typedef struct kprof_choice_of_names {
    kprof_strlist kept;       /* names that fit together, in alphabetical order */
    kprof_strlist left_out;   /* the others, in the order of the list */
    kprof_config_image image; /* of what is kept, within the limits */
} kprof_choice_of_names;

/* `names` are in order of usefulness. Where all fit, the image is the one that is fastest for large batches, or else
 * the one of fewest passes. Where they do not, each name is kept in its turn if there is room for its counters beside
 * those of the names before it. Caller frees the members of *out, on failure too. */
kprof_status kprof_limits_apply(const kprof_limits *limits, kprof_host *host, const kprof_strlist *names,
                                kprof_choice_of_names *out) KPROF_MUST_CHECK;

/* Append the names among `kept` that a throughput metric is the greatest of: where it is left out, the greatest of them
 * is a lower bound. None for other metrics. */
kprof_status kprof_limits_stand_ins(kprof_host *host, const char *left_out, const kprof_strlist *kept,
                                    kprof_strlist *out) KPROF_MUST_CHECK;

#endif
