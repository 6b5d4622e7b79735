/* What trying of limits shares with filling. */
#ifndef KPROF_METRICSET_LIMIT_PRIVATE_H
#define KPROF_METRICSET_LIMIT_PRIVATE_H

#include "metricset/limit.h"

/* Names that may be kept together, and their schedule. */
typedef struct candidate {
    kprof_strlist names; /* borrowed and sorted */
    kprof_config_image image;
} candidate;

typedef struct limiter {
    const kprof_limits *limits;
    kprof_host *host;
    const kprof_queue *queue;
    bool *kept;               /* [names.count of the queue] */
    kprof_config_image image; /* of what is kept, once that is settled */
    bool packs;
    size_t trials, packed_trials;
} limiter;

/* What is kept already, with names `begin` to `end` of the queue: borrowed and sorted. Caller frees the items. False
 * when out of memory. */
bool kprof_limiter_list(const limiter *l, size_t begin, size_t end, kprof_strlist *out);
size_t kprof_limiter_count(const limiter *l); /* names that are kept */
/* *out: the limits allow what was tried, with witnesses as it will have them. */
kprof_status kprof_limiter_allows(const limiter *l, const candidate *tried, bool *out) KPROF_MUST_CHECK;

/* Keep further names, and have an image of all that is kept, as far as the passes of the present image and further ones
 * that the limits allow have room. */
kprof_status kprof_limiter_fill(limiter *l) KPROF_MUST_CHECK;

#endif
