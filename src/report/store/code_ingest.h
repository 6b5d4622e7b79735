/* Stores what a process measured of the instructions of its kernels, and which cubins it has. */
#pragma once

#include "core/names.h"
#include "report/store/store.h"

/* Metrics of a record, as records of one kind have them one after another. */
typedef struct kprof_known_names {
    kprof_pool *pool; /* of these alone */
    kprof_strlist names;
    int64_t *rows; /* [names.count], in the table metric */
} kprof_known_names;

/* The parts that the profile of a kernel, device and shape has: counters, samples. */
typedef struct kprof_known_profile {
    int64_t row;   /* of code_profile */
    bool has[2];   /* a launch has given values */
    bool lacks[2]; /* its reason is that of a launch which was not to give any, and others may */
    bool fails[2]; /* its reason is that of a launch which was to give some */
} kprof_known_profile;

/* The state of a process. All 0 before its first record but the pools. */
typedef struct kprof_code_ingest {
    kprof_pool *pool, *of_launch;   /* the latter of the launch of the last record */
    struct kprof_known_code *codes; /* [code_count] */
    size_t code_count;
    kprof_names profiles;                /* indexes of known_profiles, by kernel, device and shape */
    kprof_known_profile *known_profiles; /* [profile_count] */
    size_t profile_count;
    int64_t launch;             /* row of the launch of the last record */
    size_t profile;             /* index of its profile, plus 1; 0: none yet */
    uint64_t position;          /* of that launch */
    const char *reason;         /* of that launch */
    bool told[2];               /* it has counters, and samples */
    kprof_known_names known[2]; /* of counters, and of samples */
} kprof_code_ingest;

/* The report and the process' row of a record. */
typedef struct kprof_code_place {
    kprof_report *report;
    int64_t process;
} kprof_code_place;

/* Store a record. BAD_SPOOL where it does not fit. */
kprof_status kprof_code_ingest_code(kprof_code_ingest *ingest, const kprof_code_place *place,
                                    const kprof_code_record *record) KPROF_MUST_CHECK;
kprof_status kprof_code_ingest_instructions(kprof_code_ingest *ingest, const kprof_code_place *place,
                                            const kprof_instructions_record *record) KPROF_MUST_CHECK;
