/* The counts and times of --census, summed up over processes and shapes. */
#pragma once

#include "report/model/model.h"

typedef enum kprof_census_parts {
    KPROF_CENSUS_OF_KERNELS, /* one total for each kernel */
    KPROF_CENSUS_OF_DEVICES, /* the same on each kind of device */
    KPROF_CENSUS_OF_SHAPES,  /* and for each grid, block and amount of dynamic shared memory */
} kprof_census_parts;

/* Launches that were counted together. Pointers are into the model. */
typedef struct kprof_census_total {
    const kprof_model_kernel *kernel;
    const kprof_model_device *device;
    const kprof_model_census *shape; /* a row that has their shape */
    uint64_t launches;
    double total_ns, shortest_ns, longest_ns;
    uint64_t measured; /* launches of theirs that have values in the report */
    const char *key;   /* what they have in common; equal totals are in its order */
} kprof_census_total;

typedef struct kprof_census {
    kprof_census_parts parts;
    kprof_census_total *items; /* [count] */
    size_t count;
    kprof_names keys;  /* -> items, until they are ranked */
    size_t kernels;    /* that have different names */
    uint64_t launches; /* of all */
    uint64_t counted;  /* that processes of the census made; more than `launches` where some were not timed */
    double total_ns;
} kprof_census;

/* Sum up; the filter of the walk takes the measured launches. An empty census where the report has none. */
kprof_status kprof_census_make(const kprof_model_walk *walk, kprof_census_parts parts,
                               kprof_census *out) KPROF_MUST_CHECK;
/* The total of launches of this kernel, device and shape (grid, block and dynamic shared memory); NULL: none. */
kprof_census_total *kprof_census_find(const kprof_census *census, const kprof_census_total *wanted);
/* Put those with most time first; kprof_census_find does not work any more. */
void kprof_census_rank(kprof_census *census);
