/* Keeps of what was asked for what fits into --max-passes and --budget. */
#ifndef KPROF_METRICSET_LIMIT_H
#define KPROF_METRICSET_LIMIT_H

#include "metricset/queue.h"

bool kprof_limits_are_set(const kprof_limits *limits);

/* What became of a queue. */
typedef struct kprof_choice_of_names {
    kprof_strlist kept;       /* names that fit together, in alphabetical order */
    kprof_strlist left_out;   /* the others, in the queue's order */
    kprof_config_image image; /* of what is kept, within the limits: the one that is fastest for large batches, or else
                                 the one of fewest passes, or else CUPTI's own */
} kprof_choice_of_names;

/* Names of --metrics are kept first, then each group that fits whole beside what is kept already, then halves of the
 * others, down to single names. What keeps to a budget is what is used: with witnesses. Caller frees the members of
 * *out, on failure too. */
kprof_status kprof_limits_apply(const kprof_limits *limits, kprof_host *host, const kprof_queue *queue,
                                kprof_choice_of_names *out) KPROF_MUST_CHECK;

#endif
