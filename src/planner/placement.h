/* A schedule of our own, written down: for each pass its raw counters, and in which domain of the chip each is read. */
#ifndef KPROF_PLANNER_PLACEMENT_H
#define KPROF_PLANNER_PLACEMENT_H

#include "planner/host.h"

/* Counters of one pass, in the order in which they were added. */
typedef struct kprof_placed_counters {
    kprof_strlist names;
    uint32_t *domains; /* [names.count]; 0: NVPW chooses */
} kprof_placed_counters;

/* Append a counter to the pass that is being written down; passes are ended with kprof_placement_end_pass. */
void kprof_placement_put(kprof_strbuf *placement, const char *counter, uint32_t domain);
void kprof_placement_end_pass(kprof_strbuf *placement);

/* The counters of a pass of `image`: as they were placed, or of CUPTI's own schedule. Caller frees *out, on failure
 * too. */
kprof_status kprof_placed_counters_read(const kprof_config_image *image, size_t pass,
                                        kprof_placed_counters *out) KPROF_MUST_CHECK;
void kprof_placed_counters_free(kprof_placed_counters *counters); /* members */

#endif
