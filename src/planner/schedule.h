/* Which pass of a config image each metric comes from. A value whose counters come from several passes joins what
 * several executions did; one from a single pass is of one execution. */
#ifndef KPROF_PLANNER_SCHEDULE_H
#define KPROF_PLANNER_SCHEDULE_H

#include "core/config.h"
#include "planner/host.h"

/* Passes in rising order, from 0. */
typedef struct kprof_pass_list {
    uint32_t *items; /* [count], owned */
    size_t count;
} kprof_pass_list;

typedef struct kprof_schedule_pass {
    uint32_t counters; /* raw counters that it holds */
    bool sm_side;      /* some of them are in the SMs */
    bool is_slow;      /* some are read where each launch takes ten times as long for it */
    bool patches_code; /* some are counted by code that is patched into the kernels */
} kprof_schedule_pass;

typedef struct kprof_schedule {
    kprof_schedule_pass *passes; /* [pass_count] */
    size_t pass_count;
    kprof_pass_list *metrics; /* [metric_count], in the order of the names; empty: no counters, as for a peak rate */
    uint32_t *last_passes;    /* [metric_count]: after it no counter comes that a value is made of, or may be */
    uint32_t *patched;        /* [metric_count]: 1: some of its counters come from code that is patched into kernels */
    size_t metric_count;
} kprof_schedule;

/* Metrics of one raw counter each that count the instructions of all SMs: in the SMs, and as their TPCs see them. */
#define KPROF_SM_INSTRUCTIONS  "sm__inst_executed_realtime.sum"
#define KPROF_TPC_INSTRUCTIONS "TPC.TriageCompute.sm__inst_executed_realtime.sum"

/* Variants of a config image. All have its passes and its counters in them; those that are proved have one more pass
 * in front. No value that the image collects depends on a counter of a witness or of the proof. */
typedef struct kprof_image_variants {
    kprof_strlist witnesses;                /* each in several passes */
    kprof_strlist proof;                    /* in the pass in front; empty: the chip has no proof */
    kprof_config_image items[KPROF_IMAGES]; /* by bits KPROF_IMAGE_; size 0: there is none */
} kprof_image_variants;

/* Make the variants of `image`, which collects `names`. Where there are no witnesses, [0] is a copy of `image` and no
 * variant is witnessed. An image without passes has no variants. The result is kept on disk. Caller frees *out. */
kprof_status kprof_host_image_variants(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                       kprof_image_variants *out) KPROF_MUST_CHECK;
void kprof_image_variants_free(kprof_image_variants *variants); /* members */

/* Read the schedule of `names` out of their config image. Costs a few milliseconds. INTERNAL when the image does not
 * have the counters of a name. Caller frees *out. */
kprof_status kprof_schedule_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                 kprof_schedule *out) KPROF_MUST_CHECK;
void kprof_schedule_free(kprof_schedule *schedule); /* members, not the struct */

#endif
