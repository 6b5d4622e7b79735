/* Keeps of what was asked for what fits into --max-passes and --budget. */
#ifndef KPROF_METRICSET_LIMIT_H
#define KPROF_METRICSET_LIMIT_H

#include "metricset/queue.h"

bool kprof_limits_are_set(const kprof_limits *limits);

typedef struct kprof_limited_image {
    kprof_config_image image;
    bool fits; /* it keeps the limits */
} kprof_limited_image;

/* The config image of names that is fastest for large batches if it keeps the limits, else the one of fewest passes.
 * Caller frees the image, on failure too. */
kprof_status kprof_limits_image(const kprof_limits *limits, kprof_host *host, const kprof_strlist *names,
                                kprof_limited_image *out) KPROF_MUST_CHECK;

/* What became of a queue. */
typedef struct kprof_choice_of_names {
    kprof_strlist kept;     /* names that fit together, in alphabetical order */
    kprof_strlist left_out; /* the others, in the queue's order */
} kprof_choice_of_names;

/* A group is kept whole if it fits beside what is kept already, else in halves, down to single names. Caller frees the
 * lists of *out, on failure too. */
kprof_status kprof_limits_apply(const kprof_limits *limits, kprof_host *host, const kprof_queue *queue,
                                kprof_choice_of_names *out) KPROF_MUST_CHECK;

#endif
