/* How a chosen launch is measured. One strategy is one table; launch.c knows no other. */
#ifndef KPROF_INJECT_REPLAY_H
#define KPROF_INJECT_REPLAY_H

#include "core/config.h"
#include "cupti/target.h"

/* A launch on its way through a strategy. `record` is complete but for what measuring adds: values, mode, passes,
 * reason. */
typedef struct kprof_replay_launch {
    const kprof_call *call;
    const kprof_chip_metrics *metrics;
    kprof_launch_record record;
} kprof_replay_launch;

typedef struct kprof_replay_strategy {
    /* Before the driver call runs, on the application's thread, alone in the driver. Not OK: the launch runs
     * unmeasured, and leave is not called. */
    kprof_status (*enter)(kprof_replay_launch *launch);
    /* After it: fills values (owned by the strategy until its next launch on this thread), mode and passes. */
    kprof_status (*leave)(kprof_replay_launch *launch);
    void (*context_ending)(void *context);
} kprof_replay_strategy;

/* CUPTI's own kernel replay, armed around one launch. */
extern const kprof_replay_strategy kprof_kernel_replay;

#endif
