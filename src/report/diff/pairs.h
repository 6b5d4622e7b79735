/* Finds the launches of two reports that belong together: those of one kernel and shape. */
#pragma once

#include "report/model/model.h"

/* The reports of a comparison, as indexes: what is new is compared with the baseline. */
enum { KPROF_BASELINE, KPROF_NEW, KPROF_SIDES };

/* Launches of a report that have the kernel's full name, the device's name, grid, block, cluster and shared memory in
 * common; of all processes, in stored order. */
typedef struct kprof_launch_group {
    const kprof_model_kernel *kernel;
    const kprof_model_device *device;
    size_t device_name, demangled, function; /* numbers: equal ones stand for equal texts, in both reports */
    kprof_launch_record shape;               /* of the first launch: grid, block, cluster and dynamic shared memory */
    uint64_t launches;
    uint64_t replayed, multiplexed; /* of those: the ones with values */
    uint64_t untold;                /* launches of the kernel that ran and are in no group */
    int64_t *ids;                   /* [id_count]: the launches with values, replayed ones if there are any, else the
                                       first ones of the samples */
    size_t id_count;
    size_t partner; /* index into the pairs; SIZE_MAX: the other report has none */
    char *key;      /* for matching */
    bool is_one_of_several;
} kprof_launch_group;

/* The traits that a group of the baseline and one of the new report share. Each kind is tried for the groups that the
 * kinds before it left over, and only if each report has exactly one group of that description. */
typedef enum kprof_match {
    KPROF_MATCH_SAME,    /* all of it */
    KPROF_MATCH_DEVICE,  /* all but the device */
    KPROF_MATCH_SHARED,  /* the full name, grid, block and cluster */
    KPROF_MATCH_RENAMED, /* the function's name without template arguments and parameters, grid, block and cluster */
    KPROF_MATCH_COUNT
} kprof_match;

typedef struct kprof_launch_pair {
    kprof_launch_group *sides[KPROF_SIDES];
    kprof_match match;
} kprof_launch_pair;

typedef struct kprof_launch_pairs {
    kprof_pool *pool;                        /* that of the baseline */
    kprof_launch_group *groups[KPROF_SIDES]; /* [group_counts[side]], in order of their first launches */
    size_t group_counts[KPROF_SIDES];
    kprof_launch_pair *pairs; /* [count], in the order of the new report */
    size_t count;
} kprof_launch_pairs;

/* Group the launches that each walk's filter takes, and match the groups. Values are not read. The groups are charged
 * to `work`, and in memory of the models. */
kprof_status kprof_launch_pairs_find(const kprof_model_walk walks[KPROF_SIDES], kprof_work *work,
                                     kprof_launch_pairs *out) KPROF_MUST_CHECK;
