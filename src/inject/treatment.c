/* What is safe comes from what the process shares and from what the kernel does. */
#include "inject/treatment.h"

#include "inject/process.h"
#include "inject/writers.h"

#include <stdio.h>

/* Watched launches after which a kernel that cannot be replayed is taken for one that ends by itself. */
#define ENOUGH_ENDS 2

/* Why a launch must not run more often than the application runs it; NULL when it may. */
static const char *why_not_repeated(const kprof_call *call, const kprof_operation *operation, bool shared)
{
    static __thread char text[320];
    unsigned sharing = kprof_target_sharing();
    const char *side_effect = kprof_target_side_effect(call);
    if (side_effect) {
        snprintf(text, sizeof text, "the kernel cannot be replayed: %s", side_effect);
        return text;
    }
    if (!operation || !kprof_target_function(call))
        return "the launch cannot be repeated through the driver";
    if (sharing & KPROF_SHARES_WITH_DEVICES)
        return "other GPUs or other processes reach the memory that a replay restores";
    if (sharing & KPROF_MAY_NOT_SAVE)
        return "it is not known how to save memory of sparse or deferred arrays, and of green contexts";
    return shared ? kprof_writers_others() : NULL;
}

/* May kernels wait for what the host, another GPU or another process does after the launch? */
static bool may_wait(void)
{
    return kprof_target_sharing() & (KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES);
}

static kprof_treatment refuse_late(void)
{
    return (kprof_treatment){KPROF_REFUSED, false,
                             "an earlier launch of the kernel did not end by itself within a second, and may have "
                             "waited for the application"};
}

/* Where a kernel may wait for others and is never replayed, having ended often enough without them has to do. */
kprof_treatment kprof_treatment_unrepeated(const kprof_batch_launch *launch, const kprof_operation *operation,
                                           const char *why)
{
    if (!may_wait() && !kprof_writers_devices())
        return (kprof_treatment){KPROF_ONE_PASS, false, why};
    if (atomic_load(&launch->kernel->ends_late))
        return refuse_late();
    if ((kprof_target_sharing() & KPROF_SHARES_WITH_HOST) && (!operation || kprof_operation_sees_host(operation)))
        return (kprof_treatment){KPROF_REFUSED, false,
                                 "the kernel takes host memory, for which it may wait, and others "
                                 "reach that memory, or it cannot be replayed"};
    return (kprof_treatment){KPROF_ONE_PASS, atomic_load(&launch->kernel->watched_ends) < ENOUGH_ENDS, why};
}

/* A kernel that reads host memory may wait for what the host writes there after the launch call has returned, which it
 * never does while CUPTI waits in it for the kernel. What ended once without the host's help does so again from the
 * same memory, so that it can be replayed. */
static kprof_treatment choose_shared(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    const char *obstacle = why_not_repeated(launch->call, operation, true);
    return obstacle ? kprof_treatment_unrepeated(launch, operation, obstacle)
                    : (kprof_treatment){KPROF_ALONE, true, ""};
}

kprof_treatment kprof_treatment_choose(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    const kprof_config *config = &kprof_this_process.config;
    bool single = config->counter_data_dir || config->replay_batch == 1;
    if (may_wait() && atomic_load(&launch->kernel->ends_late))
        return refuse_late();
    if (kprof_target_sharing() & KPROF_SHARES_WITH_HOST)
        return choose_shared(launch, operation);
    if (operation && kprof_operation_sees_host(operation))
        return (kprof_treatment){KPROF_REFUSED, false,
                                 "the kernel takes pageable host memory, which no replay puts back, and for which it "
                                 "may wait"};
    if (launch->metrics->pass_count <= 1) /* nothing is repeated */
        return (kprof_treatment){single ? KPROF_ALONE : KPROF_TOGETHER, false, ""};
    const char *obstacle = why_not_repeated(launch->call, operation, false);
    if (obstacle)
        return kprof_treatment_unrepeated(launch, operation, obstacle);
    return (kprof_treatment){single ? KPROF_ALONE : KPROF_TOGETHER, false, ""};
}
