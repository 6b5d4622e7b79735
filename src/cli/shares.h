/* --replay-mode application: the runs of the program and what each of them collects. A metric has all its counters in
 * one pass of one run, so that no value mixes runs. Ranks of --rank-passes take such shares, too. */
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
