/* How a chosen launch is measured: the passes that its metrics need, each with memory as it was before the launch. */
#ifndef KPROF_INJECT_REPLAY_H
#define KPROF_INJECT_REPLAY_H

#include "core/config.h"
#include "cupti/target.h"

/* A launch being measured. `record` is complete but for what measuring adds: values, mode, passes, reason. */
typedef struct kprof_replay_launch {
    const kprof_call *call;
    const kprof_chip_metrics *metrics;
    bool flush_caches;                   /* before each pass */
    void (*pass_started)(uint32_t pass); /* told of each pass, from 1 */
    kprof_launch_record record;          /* reason: "" or a text that lives until the next launch of this thread */
} kprof_replay_launch;

/* Before the driver call runs, on the application's thread, alone in the driver. Not OK: the launch runs unmeasured,
 * and _leave is not called. */
kprof_status kprof_replay_enter(kprof_replay_launch *launch) KPROF_MUST_CHECK;
/* After it: fills values (valid until the context's next launch), mode, passes and reason. Whatever the status, memory
 * is then as one execution of the kernel leaves it. */
kprof_status kprof_replay_leave(kprof_replay_launch *launch) KPROF_MUST_CHECK;
/* CUPTI replays this thread's launch by itself and began another pass. */
void kprof_replay_pass_started(kprof_replay_launch *launch);
void kprof_replay_context_ending(void *context);

#endif
