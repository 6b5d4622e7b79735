/* Plans a collection on one chip: its names, passes, witnesses and costs. Needs no GPU. */
#pragma once

#include "core/config.h"
#include "host/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Passes in rising order, from 0. */
typedef struct kprof_pass_list {
    uint32_t *items; /* [count], owned */
    size_t count;
} kprof_pass_list;

typedef struct kprof_schedule_pass {
    uint32_t counters; /* raw counters that it holds */
    bool sm_side;      /* some of them are in the SMs */
    bool is_slow;      /* some are read in a domain that costs each launch 0.2 ms */
    bool patches_code; /* some are counted by code that is patched into the kernels */
} kprof_schedule_pass;

typedef struct kprof_schedule {
    kprof_schedule_pass *passes; /* [pass_count] */
    size_t pass_count;
    kprof_pass_list *metrics; /* [metric_count], in the order of the names; empty: no counters, as for a peak rate */
    uint32_t
        *last_passes;  /* [metric_count]: the last pass with a counter that the value is, or may be, computed from */
    uint32_t *patched; /* [metric_count]: 1: some of its counters come from code that is patched into kernels */
    size_t metric_count;
} kprof_schedule;

/* Metrics of one raw counter each that count the instructions of all SMs: in the SMs, and as their TPCs see them. */
#define KPROF_SM_INSTRUCTIONS  "sm__inst_executed_realtime.sum"
#define KPROF_TPC_INSTRUCTIONS "TPC.TriageCompute.sm__inst_executed_realtime.sum"

/* Variants of the config image of a plan. All but the image of the proof alone collect the same in the same passes;
 * the proved ones have one more pass in front. No value depends on a counter of a witness or of the proof. */
typedef struct kprof_image_variants {
    kprof_strlist witnesses;                /* each in several passes, or beside all cycles of a range in one */
    kprof_strlist proof;                    /* in the pass in front; empty: the chip has no proof */
    kprof_config_image items[KPROF_IMAGES]; /* by KPROF_IMAGE_; size 0: there is none, as where nothing has passes */
} kprof_image_variants;

/* Return how many passes the image of this index, KPROF_IMAGE_, has if collecting takes `pass_count`. */
size_t kprof_image_passes(size_t pass_count, unsigned index);

void kprof_image_variants_free(kprof_image_variants *variants); /* members */

void kprof_schedule_free(kprof_schedule *schedule); /* members, not the struct */

/* The cost model tells the cost of measuring before anything is started, from measured prices. */

/* Prices of one machine. They are measured, so they are right there and a guide elsewhere. */
typedef struct kprof_price_list {
    const char *measured_on, *source;
    double start_s;             /* a process, before its first launch is measured */
    double room_ms_per_mib;     /* counter data that batches get room for */
    double slow_pass_ms;        /* a launch, for each pass that makes launches slow */
    double other_pass_ms;       /* a launch, for any other pass */
    double flush_ms;            /* flushing L2 by copying, before a launch in a pass */
    double empty_ms;            /* emptying L2 and the caches of instructions instead, where a launch is replayed */
    double evaluation_ms;       /* a launch, for each metric */
    double sm_pass_start_ms;    /* starting and stopping a pass of one batch, with counters of the SMs */
    double other_pass_start_ms; /* and any other pass */
    double instruction_ms;      /* a launch, with counters of its instructions in a pass of their own */
    double sample_ms;           /* a launch, with samples of its instructions, likewise */
    double sample_start_ms;     /* starting and stopping the samples of one batch */
    double timeline_ms;         /* a launch, sampled over time in one pass */
    double timeline_start_ms;   /* and each pass, enabling and disabling such samples for a batch */
    double save_ms_per_gib;     /* memory, once for each batch: its start, and what the own run changed */
    double restore_ms_per_gib;  /* before each pass, and after the last one */
    double device_bytes;        /* memory of the GPU */
} kprof_price_list;

extern const kprof_price_list kprof_prices;

/* The amount of work that each launch costs. */
typedef struct kprof_effort {
    size_t metric_count;
    size_t sm_pass_count, other_pass_count;
    size_t slow_pass_count; /* of all passes: those that make launches slow */
} kprof_effort;

/* The passes are those of the schedule (kprof_schedule_read). The metrics are given apart, since a schedule may have
 * witnesses beside what is collected. */
kprof_effort kprof_effort_of(const kprof_schedule *schedule, size_t metric_count);

/* Launches of a process, where nothing tells how many there will be. */
#define KPROF_ASSUMED_LAUNCHES 1000

/* The launches that are measured. */
typedef struct kprof_workload {
    uint64_t launches;
    uint32_t batch; /* launches that are repeated together at most; 0: as many as there is room for */
    kprof_cache_control cache_control;
    uint64_t allocated_bytes; /* device memory of the application; 0: not known */
    uint64_t device_bytes;    /* memory of the GPU; 0: not known, that of the GPU whose prices these are */
    bool counts_instructions; /* beside the passes of the schedule a launch is repeated with counters of instructions */
    bool samples;             /* and once more with samples of them */
    uint32_t timelines;       /* how often it is repeated and sampled over time */
} kprof_workload;

typedef struct kprof_cost {
    double start_s;             /* once for each process, with room for its launches */
    double launch_ms;           /* passes and evaluation of one launch */
    double batch_ms;            /* starting and stopping the passes of one batch */
    double counter_data_bytes;  /* of one launch, about */
    uint64_t batch_count;       /* about: what the application calls ends a batch early */
    double batch_counter_bytes; /* counter data of the largest batch */
    double device_bytes;        /* memory of the GPU that this is reckoned for */
    double saved_bytes_per_batch, saved_bytes, restored_bytes; /* 0 where one pass does, or the size is not known */
    bool saved_fits;         /* on the device, beside what is allocated, whatever the memory holds */
    double total_s;          /* of all launches, with saving and restoring memory, if its size is known */
    double memory_s_per_gib; /* saving and restoring, for each GiB allocated */
} kprof_cost;

kprof_cost kprof_cost_of(const kprof_effort *effort, const kprof_workload *workload);
/* Return how many launches have this much counter data; at least one. */
uint64_t kprof_launches_in(size_t counter_data_bytes, size_t pass_count);

/* The limits on the cost of collecting. */
typedef struct kprof_limits {
    uint32_t max_passes;     /* 0: any number */
    double budget_s;         /* for one process; 0: no limit */
    kprof_workload workload; /* that the budget is for */
} kprof_limits;

bool kprof_limits_are_set(const kprof_limits *limits);

/* The request to the planner, for the chip of a host. */
typedef struct kprof_planner_wish {
    const kprof_strlist *names; /* the most useful first */
    const kprof_limits *limits; /* where they are too tight, the least useful names are left out */
} kprof_planner_wish;

/* The planner's answer. */
typedef struct kprof_planned {
    kprof_strlist collect;         /* names, in alphabetical order */
    kprof_strlist left_out;        /* the others, in the order of the wish */
    kprof_image_variants variants; /* of its image: what a run uses, with witnesses and proof */
    kprof_schedule schedule;       /* of what is collected, and then of the witnesses */
    kprof_cost cost;               /* for the workload of the limits */
} kprof_planned;

/* The one call. Where all names fit, the image is the one of fewest passes that is fastest for large batches, or else
 * any of them. Where they do not, each name is kept in its turn if there is room for its counters beside those of the
 * names before it. Caller frees *out with kprof_planned_free, on failure too. */
kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out) KPROF_MUST_CHECK;
void kprof_planned_free(kprof_planned *planned); /* members */

/* Append the names among `kept` that a throughput metric is the greatest of: where it is left out, the greatest of them
 * is a lower bound. None for other metrics. */
kprof_status kprof_limits_stand_ins(kprof_host *host, const char *left_out, const kprof_strlist *kept,
                                    kprof_strlist *out) KPROF_MUST_CHECK;
