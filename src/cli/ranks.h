/* --rank-passes: the ranks of a job that do the same collect other passes each. */
#pragma once

#include "metricset/metricset.h"

typedef struct kprof_rank {
    unsigned number, count; /* this process is number, from 0, of so many */
} kprof_rank;

/* The rank of this process as Open MPI, MPICH, Slurm or torchrun tell it. USAGE where none does. */
kprof_status kprof_rank_find(kprof_rank *out) KPROF_MUST_CHECK;
/* The catalog and the chip of a plan. */
typedef struct kprof_rank_source {
    const kprof_catalog *catalog;
    kprof_host *host;
} kprof_rank_source;

/* Leave the plan only the metrics of this rank, and the time of a launch, scheduled anew. The sections stay. */
kprof_status kprof_rank_take(const kprof_rank_source *from, const kprof_rank *rank, kprof_plan *plan) KPROF_MUST_CHECK;

/* Exchange what two plans of one chip collect, and in which passes. Sections and names stay. */
void kprof_plan_swap(kprof_plan *plan, kprof_plan *other);
