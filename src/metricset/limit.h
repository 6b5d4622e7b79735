/* Keeps of what was asked for what fits into --max-passes and --budget. */
#ifndef KPROF_METRICSET_LIMIT_H
#define KPROF_METRICSET_LIMIT_H

#include "metricset/queue.h"

bool kprof_limits_are_set(const kprof_limits *limits);
/* Names that fit together, in alphabetical order, appended to `kept`; the others, in the queue's order, to `left_out`.
 * A group is kept whole if it fits beside what is kept already, else in halves, down to single names. */
kprof_status kprof_limits_apply(const kprof_limits *limits, kprof_host *host, const kprof_queue *queue,
                                kprof_strlist *kept, kprof_strlist *left_out) KPROF_MUST_CHECK;

#endif
