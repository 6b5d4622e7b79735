/* --replay-mode application: the runs of the program and what each of them collects. A metric has all its counters in
 * one pass of one run, so that no value mixes runs. With --rank-passes the ranks of a job that do the same take such
 * shares. */
#pragma once

#include "metricset/metricset.h"

/* A metric that is the greatest of others, which take more than one pass. */
typedef struct kprof_throughput {
    char *name; /* owned, as the parts are */
    kprof_strlist parts;
} kprof_throughput;

/* Plans for one chip: each run of the program collects one of them. */
typedef struct kprof_shares {
    kprof_plan *plans; /* [count], owned: each of one pass, but for the last one where metrics need several */
    size_t count;
    kprof_throughput *throughputs; /* [throughput_count], owned: the runs collect their parts in their place */
    size_t throughput_count;
} kprof_shares;

/* The plan of one chip, and what made it; all is borrowed. */
typedef struct kprof_shares_wish {
    const kprof_catalog *catalog;
    kprof_host *host;
    uint32_t most;      /* runs; 0: as many as it takes */
    bool keeps_repeats; /* the plan keeps what takes repeated launches */
} kprof_shares_wish;

/* Deal what `plan` collects to runs. With too few runs the rest goes to its list of what is left out. Unless it keeps
 * that, it loses what takes repeated launches, instructions and samples over time, and a message says so. */
kprof_status kprof_shares_make(const kprof_shares_wish *wish, kprof_plan *plan, kprof_shares *out) KPROF_MUST_CHECK;
void kprof_shares_free(kprof_shares *shares); /* members */

typedef struct kprof_rank {
    unsigned number, count; /* this process is number `number`, from 0, of `count` */
} kprof_rank;

/* The rank of this process as Open MPI, MPICH, Slurm or torchrun tell it. USAGE where none does. */
kprof_status kprof_rank_find(kprof_rank *out) KPROF_MUST_CHECK;
/* Leave the plan only the metrics of this rank, and the time of a launch, scheduled anew. The sections stay. */
kprof_status kprof_rank_take(const kprof_catalog *catalog, kprof_host *host, const kprof_rank *rank,
                             kprof_plan *plan) KPROF_MUST_CHECK;
/* Exchange what two plans of one chip collect, and in which passes. Sections and names stay. */
void kprof_plan_swap(kprof_plan *plan, kprof_plan *other);
