/* What measuring costs, before anything is started: a model of measured prices. */
#ifndef KPROF_PLANNER_COST_H
#define KPROF_PLANNER_COST_H

#include "planner/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prices of one machine. They are measured, so they are right there and a guide elsewhere. */
typedef struct kprof_price_list {
    const char *measured_on, *source;
    double start_s;                /* a process, before its first launch is measured */
    double room_ms_per_mib;        /* counter data that batches get room for */
    double slow_pass_ms;           /* a launch, for each pass that makes launches slow */
    double other_pass_ms;          /* a launch, for any other pass */
    double slow_pass_flush_ms;     /* flushing caches before a launch, in a pass that makes launches slow */
    double other_pass_flush_ms;    /* and in any other pass */
    double evaluation_ms;          /* a launch, for each metric */
    double sm_pass_start_ms;       /* starting and stopping a pass of one batch, with counters of the SMs */
    double other_pass_start_ms;    /* and any other pass */
    double counter_bytes_per_pass; /* counter data of one launch */
    double batch_bytes;            /* counter data that a batch has room for */
    uint64_t batch_launches;       /* launches, likewise */
    double save_ms_per_gib;        /* memory, once for each batch: its start, and what the own run changed */
    double restore_ms_per_gib;     /* before each pass, and after the last one */
    double device_bytes;           /* memory of the GPU */
} kprof_price_list;

extern const kprof_price_list kprof_prices;

/* What is collected with each launch. */
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

/* Over what it is collected. */
typedef struct kprof_workload {
    uint64_t launches;
    uint32_t batch;           /* launches that are repeated together at most; 0: as many as there is room for */
    bool flush;               /* caches, before each launch in each pass */
    uint64_t allocated_bytes; /* device memory of the application; 0: not known */
    uint64_t device_bytes;    /* memory of the GPU; 0: not known, that of the GPU whose prices these are */
} kprof_workload;

typedef struct kprof_cost {
    double room_bytes;          /* of counter data that room is made for, once for each size of the room */
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

#endif
