/* Plans what is sampled over the time of a kernel: CUPTI samples the counters of one pass at a time, so that a launch
 * is repeated for each. */
#pragma once

#include "host/host.h"

/* The prefix of such a name where it stands beside others, as ncu has it. */
#define KPROF_TIMELINE_PREFIX "pmsampling:"

/* One pass of samples. Its first name is KPROF_SAMPLE_ACTIVITY, as in each pass. */
typedef struct kprof_timeline_pass {
    kprof_strlist metrics;
    kprof_config_image image;
} kprof_timeline_pass;

typedef struct kprof_timeline_plan {
    kprof_timeline_pass *passes; /* [count] */
    size_t count;
    kprof_strlist left_out; /* names that the most passes have no space for */
} kprof_timeline_plan;

/* Put each name into the first pass that has space for it; kprof_host_can_sample holds for all of them. With `most` > 0
 * there are at most that many passes. The plan is freed with kprof_timeline_free, on failure too. */
kprof_status kprof_timeline_make(kprof_host *host, const kprof_strlist *names, size_t most,
                                 kprof_timeline_plan *out) KPROF_MUST_CHECK;
void kprof_timeline_free(kprof_timeline_plan *plan); /* members */
/* Return how many names the passes have, without the activity. */
size_t kprof_timeline_metric_count(const kprof_timeline_plan *plan);
