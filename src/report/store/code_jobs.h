/* Reads the cubins of a run, several at once, and hands them out in their order. */
#pragma once

#include "code/code.h"

/* A cubin, and what was read of it. */
typedef struct kprof_code_job {
    const char *file;     /* borrowed: its name in the folder */
    kprof_strlist wanted; /* functions; none: it is not read */
    kprof_code code;
    char *bytes; /* [size]; NULL: not kept, or not whole */
    size_t size; /* as the process told, until it is read */
    enum { KPROF_JOB_WAITS, KPROF_JOB_RUNS, KPROF_JOB_DONE } state;
    size_t held_bytes; /* of memory, roughly, once it is done */
} kprof_code_job;

typedef struct kprof_code_jobs_input {
    kprof_code_job *jobs; /* [count], with files, functions and sizes; the array is the caller's */
    size_t count;
    int folder;             /* that has the files */
    const char *nvdisasm;   /* NULL: the one that is found */
    size_t most_kept_bytes; /* keep the bytes of a cubin that has no more than these */
} kprof_code_jobs_input;

/* Sums over all cubins: more than the time that went by, as several are read at once. */
typedef struct kprof_code_jobs_times {
    size_t readers;
    double read_ms, disassemble_ms;
} kprof_code_jobs_times;

typedef struct kprof_code_jobs kprof_code_jobs;

/* Begin to read, with as many threads as there are processors and memory for. */
kprof_code_jobs *kprof_code_jobs_begin(const kprof_code_jobs_input *input);
/* Wait until a job is done. The caller's own thread does one that nobody has begun. */
kprof_code_job *kprof_code_jobs_take(kprof_code_jobs *jobs, size_t number);
/* Free what was read, and let others be read in its place. */
void kprof_code_jobs_drop(kprof_code_jobs *jobs, kprof_code_job *job);
/* Begin no more, wait for those that run, and drop all. */
kprof_code_jobs_times kprof_code_jobs_end(kprof_code_jobs *jobs);
