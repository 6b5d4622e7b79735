/* All parts of the injection library read this: the device that they call, the configuration, and how long they may
 * wait. Any other state belongs to one part, and stands in its file; docs/internals.md has the list. */
#ifndef KPROF_INJECT_ENGINE_H
#define KPROF_INJECT_ENGINE_H

#include "core/config.h"
#include "core/filter.h"
#include "cupti/device_ops.h"
#include "spool/spool.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* While no work on the GPU ends, all waits of one call together may take this long. The rest of the tenth of a second
 * is for what kprof does besides. */
#define KPROF_HOLD_NS INT64_C(80000000)
/* The first wait for a kernel: XLA begins to measure with a delay kernel, which gives up after 0.1 s. */
#define KPROF_PATIENCE_NS INT64_C(20000000)

/* Only process.c, life.c and engine.c change it, but for `armed` and the four counters. */
typedef struct kprof_process {
    kprof_config config;
    kprof_filter *filter;
    kprof_spool_writer *spool;
    atomic_bool armed;     /* false: nothing is measured any more */
    atomic_bool waits;     /* not armed, and kprof ctl may arm it */
    atomic_bool is_arming; /* it is about to: CUPTI reports all calls */
    _Atomic uint64_t launches, matched, profiled;
    _Atomic uint64_t handled;   /* of those that matched: they are in a batch, or reported */
    pid_t pid;                  /* of the process that has started, where it is armed */
    atomic_bool started;        /* kprof_life_begin has been called */
    atomic_bool ending;         /* its exit handler has been called */
    void (*exit_handler)(void); /* see kprof_process_outlive_libraries */
    atomic_uint exit_handlers;  /* registered after the first */
    _Atomic int64_t looked_ns;  /* when kprof_process_check_owner last looked */
    char session_dir[PATH_MAX];
} kprof_process;

/* KPROF_HOLD_NS and KPROF_PATIENCE_NS; tests change them. */
typedef struct kprof_wait_limits {
    _Atomic int64_t hold_ns, patience_ns;
    atomic_bool unmarked; /* the newest launch has no mark */
} kprof_wait_limits;

typedef void kprof_thread_hook(void);

struct kprof_engine {
    const kprof_device_ops *device;             /* set before anything else is called */
    _Atomic(kprof_thread_hook *) thread_begins; /* see kprof_threads_mark_own; NULL: nothing is called */
    kprof_process process;
    kprof_wait_limits waits;
};

/* The one of the process. */
extern struct kprof_engine kprof_engine;

/* Read the configuration and make the filter, once: NVTX may be there before CUDA is. Returns the same each time.
 * Nothing is read where kprof did not start the process. */
kprof_status kprof_engine_prepare(void) KPROF_MUST_CHECK;

/* Are launches measured, and repeated? */
static inline bool kprof_repeats_launches(void)
{
    const uint32_t choice = kprof_engine.process.config.replay_choice;
    return choice != KPROF_MULTIPLEX_ALL && !kprof_replay_is_of_ranges((int)choice);
}

/* Is the process traced, and no launch measured? */
static inline bool kprof_trace_is_alone(void)
{
    return kprof_engine.process.config.only_records && kprof_engine.process.config.traces;
}

/* Is anything measured of instructions? */
static inline bool kprof_measures_instructions(void)
{
    return kprof_engine.process.config.instruction_metrics.count > 0 || kprof_engine.process.config.samples;
}

/* Is anything sampled over time, on any chip? */
static inline bool kprof_measures_timelines(void)
{
    const kprof_config *config = &kprof_engine.process.config;
    size_t count = 0;
    for (size_t i = 0; i < config->chip_count; i++)
        count += config->chips[i].timeline_count;
    return count > 0;
}

#endif
