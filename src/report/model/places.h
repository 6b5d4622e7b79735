/* Finds where in the code a finding is worst: the lines with the largest shares of the metrics that its file names, and
 * for what they wait. */
#pragma once

#include "report/model/code.h"
#include "report/model/findings.h"

/* A line, or an instruction of a function whose lines are not known. */
typedef struct kprof_code_place {
    const char *name;    /* "softmax.py:41", "incr+0x50" */
    const char *path;    /* of the file; NULL: the line is not known */
    uint32_t line;       /* 0: not known */
    const char *library; /* "binary_search.inl:201", where it is in a library that the line calls; else NULL */
    const char *caller;  /* "stalls.cu:13", where the line is of a function inlined from another file; else NULL */
} kprof_code_place;

typedef struct kprof_found_place {
    kprof_code_place at;
    double share_pct;              /* of what the whole kernel has of the finding's metrics */
    kprof_code_place waits_for;    /* the instruction that gives the value which most of these samples wait for */
    bool waits;                    /* there is one */
    kprof_code_place sampled_at;   /* where the hardware counts most of its waits, behind it */
    bool is_sampled_behind;        /* there is such a place, and it is another */
    const char *space, *operation; /* of that instruction: "Global", "Load"; NULL: not known */
} kprof_found_place;

/* Reads the instructions of launches, one after another. */
typedef struct kprof_place_finder kprof_place_finder;
/* It is in memory of the model, and borrows the profiles. */
kprof_place_finder *kprof_place_finder_new(const kprof_code_profiles *profiles);
/* Findings read the values of a launch or a group with the sums over its instructions, and the counters that
 * kprof_rules_apply takes. */
typedef struct kprof_place_values {
    const double *values, *counters;
} kprof_place_values;
/* Add up the instructions of a profile, NULL where nothing of them was measured, to the values of its launch or group.
 * The result is valid until the next call. */
kprof_place_values kprof_places_values(kprof_place_finder *finder, const kprof_code_profile *profile,
                                       const double *values);
/* Give each finding that was found its places in the code of a launch; none where its instructions were not measured.
 * They are valid until the next call. */
void kprof_places_find(kprof_place_finder *finder, int64_t launch, kprof_rules *rules);
