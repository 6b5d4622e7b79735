/* Launches in groups: those of one kernel on one kind of device, or of a part of these, with what their values add up
 * to. The summary, statistics and brief pages show groups. */
#pragma once

#include "report/model/code.h"
#include "report/model/robust.h"
#include "report/model/rollup.h"
#include "report/model/stacks.h"
#include "report/page/page.h"

typedef enum kprof_value_source { KPROF_SOURCE_NONE, KPROF_SOURCE_LAUNCHES, KPROF_SOURCE_SAMPLES } kprof_value_source;

/* A group has values of single launches or of samples of multiplexed launches, never both. Launches that were not
 * measured can be in either. */
typedef struct kprof_group {
    const kprof_model_kernel *kernel;
    const kprof_model_device *device;
    const kprof_model_process *process; /* of the first launch */
    kprof_launch_record shape; /* of the first launch: grid, block, cluster, dynamic shared memory, graph node */
    kprof_value_source source;
    uint64_t launches, not_measured, samples;
    bool shares_samples;        /* with launches of other groups */
    uint64_t disagreeing;       /* launches, or samples */
    uint64_t noted;             /* launches that were measured, with a note on how */
    const char *note;           /* of the first of them; NULL: there is none */
    kprof_rollup_total *totals; /* [metric_count] */
    double *durations;          /* [duration_count], in ns: of launches, or of samples */
    size_t duration_count;
    size_t configurations;          /* different grids, blocks, clusters and dynamic shared memories */
    int64_t stack;                  /* of its first launch; 0: none */
    const char *key;                /* that launches of the group share */
    size_t next;                    /* group of the same key, and another source; 0: none */
    const kprof_code_profile *code; /* what was measured of its instructions, in most launches; NULL: nothing */
} kprof_group;

typedef struct kprof_groups {
    const kprof_model *model;
    kprof_report *report;
    kprof_grouping by;
    kprof_rollup *rollup;
    kprof_group *items;
    size_t count;
    size_t duration;                     /* metric; KPROF_NAMES_NONE: the report has no times */
    kprof_names kernels, devices, uuids; /* name -> the first of that name */
    uint64_t *untold;                    /* [kernel_count], of the first of each name: see below */
    kprof_names keys;                    /* -> the first group of it */
    kprof_names configurations;          /* group and shape, of all groups */
    const kprof_code_profiles *code;
    kprof_told_stacks stacks; /* of groups of stacks alone */
} kprof_groups;

/* Group the launches that the filter and the conditions take, in the order of their first launches, in memory of the
 * model. NO_MATCH, with a message, when the conditions take none. */
kprof_status kprof_groups_collect(const kprof_page_context *context, kprof_groups *out) KPROF_MUST_CHECK;

/* Time of all launches of the group: the mean of those that were measured, times their number; NaN: not known. */
double kprof_group_time_ns(const kprof_group *group);
/* The number of launches of the kernel that are in no group: the filter did not choose them, or the kernel already had
 * all its samples. 0 for a group without samples, which counts chosen launches only. */
uint64_t kprof_group_untold(const kprof_groups *groups, const kprof_group *group);
/* Append how many launches have no counters, though their instructions may have been sampled; nothing if all have. */
void kprof_group_tell_missing(const kprof_group *group, kprof_strbuf *out);
/* Append in how many launches or samples passes disagree; nothing if they agree in all. */
void kprof_group_tell_disagreeing(const kprof_group *group, kprof_strbuf *out);
/* Append why the group's numbers are less certain, and what they leave out; nothing if there is no reason. */
void kprof_group_note(const kprof_groups *groups, const kprof_group *group, kprof_strbuf *out);
/* Append what tells the group from others of its kernel: "(65536, 1, 1)x(256, 1, 1), 0 B"; nothing for kernels. */
void kprof_group_describe(const kprof_groups *groups, const kprof_group *group, kprof_strbuf *out);
