/* Decides by what the process shares, what the kernel does, and what earlier launches of it have shown. */
#include "inject/decision.h"

#include "inject/contexts.h"
#include "inject/engine.h"
#include "inject/recording.h"

#include <stdio.h>

/* After this many launches of a kernel reached host memory, assume that all of them do. */
#define ENOUGH_REACHES 2

/* After this many watched launches that ended by themselves, assume that the kernel always does. */
#define ENOUGH_ENDS 2

/* Other work came so often before launches of a kernel had ended that kprof does not measure its own runs any more. */
#define ENOUGH_LOST_RUNS 2

/* This many launches of a kernel may have batches of their own, which take half a second each with the default set;
 * kprof multiplexes later ones. */
#define MOST_BY_ITSELF 20

#define ANY_MANAGED (KPROF_MANAGED | KPROF_MANAGED_STAYS)

bool kprof_decision_needs_proof(void)
{
    return (kprof_engine.device->target_sharing() & KPROF_SHARES_WITH_HOST) ||
           kprof_engine.device->target_reaches_pageable();
}

bool kprof_decision_proves(const kprof_chip_metrics *metrics)
{
    const bool repeats_ranges = kprof_engine.process.config.replay_choice == KPROF_RANGES;
    return metrics->proof.count > 0 && (repeats_ranges || kprof_repeats_launches()) && kprof_decision_needs_proof();
}

const char *kprof_decision_host_obstacle(const void *context)
{
    if (kprof_contexts_has_others(context))
        return "there is memory of the host in reach of more than one context";
    return kprof_engine.device->target_host_obstacle();
}

static const char *why_not_saved(void)
{
    unsigned sharing = kprof_engine.device->target_sharing();
    const char *why = sharing & KPROF_MANAGED ? kprof_engine.device->target_managed_obstacle() : NULL;
    if (why)
        return why;
    if (sharing & KPROF_SHARES_WITH_DEVICES)
        return "other GPUs or other processes reach the memory that a replay restores";
    if (sharing & KPROF_MAY_NOT_SAVE)
        return "there is memory that a replay cannot restore: surfaces, sparse or deferred arrays, memory of graphs or "
               "green contexts";
    return NULL;
}

/* Return why the launch may reach host memory; NULL if nothing speaks against a replay. A kernel that reached host
 * memory once may do so with some arguments only. If the kernel is not proved yet, or the GPU reaches all of the
 * process' memory, only the arguments tell. */
static const char *why_reaches_host(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    unsigned reaches = atomic_load(&launch->kernel->reaches_host);
    bool suspicious =
        reaches > 0 || !atomic_load(&launch->kernel->proved) || kprof_engine.device->target_reaches_pageable();
    if (reaches >= ENOUGH_REACHES)
        return "launches of the kernel reach memory of the host, which no replay may change";
    return suspicious && kprof_engine.device->operation_sees_host(operation)
               ? "the kernel takes memory of the host, which no replay may change"
               : NULL;
}

bool kprof_decision_is_suspicious(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    return atomic_load(&launch->kernel->reaches_host) > 0 || kprof_engine.device->operation_sees_host(operation);
}

bool kprof_decision_is_proved(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    return atomic_load(&launch->kernel->proved) && !kprof_decision_is_suspicious(launch, operation);
}

/* A kernel of a graph runs among others. */
static bool may_be_by_itself(const kprof_batch_launch *launch)
{
    return launch->chosen && !launch->repeats && launch->record.graph_node == 0 &&
           !atomic_load(&launch->kernel->ends_late) && !atomic_load(&launch->kernel->takes_long) &&
           atomic_load(&launch->kernel->by_itself) < MOST_BY_ITSELF;
}

/* Can kprof hide what replays print? It drops all output meanwhile, so no other context may print. */
static bool can_drop_output(const kprof_batch_launch *launch)
{
    return may_be_by_itself(launch) && !atomic_load(&launch->kernel->prints_unseen) &&
           kprof_engine.device->target_only_prints(launch->call) && !kprof_contexts_has_others(launch->call->context) &&
           kprof_engine.device->output_watch();
}

/* Return why a launch must not run more often than in the application; NULL if it may, and then `*needs` is set. */
static const char *why_not_repeated(const kprof_batch_launch *launch, const kprof_operation *operation, unsigned *needs)
{
    static __thread char text[320];
    const char *why = kprof_engine.device->target_side_effect(launch->call);
    *needs = why && can_drop_output(launch) ? KPROF_DROPS_OUTPUT : 0;
    if (why && !*needs) {
        bool is_graph = launch->call->kind == KPROF_CALL_GRAPH_LAUNCH;
        snprintf(text, sizeof text, "the %s cannot be replayed: %s", is_graph ? "graph" : "kernel", why);
        return text;
    }
    if (atomic_load(&launch->kernel->ends_late) && !atomic_load(&launch->kernel->ends_alone))
        return KPROF_MAY_WAIT;
    if (atomic_load(&launch->kernel->takes_long) && (kprof_engine.device->target_sharing() & ANY_MANAGED))
        return "launches of the kernel take longer than a call is held, and the host may use managed memory meanwhile";
    if (!operation || !kprof_engine.device->target_function(launch->call))
        return "the launch cannot be repeated through the driver";
    why = why_not_saved();
    if (why || !kprof_decision_needs_proof())
        return why;
    why = launch->metrics && launch->metrics->proof.count == 0 ? "the chip cannot tell which launches reach host memory"
                                                               : why_reaches_host(launch, operation);
    if (!why || !may_be_by_itself(launch))
        return why;
    const bool is_known = atomic_load(&launch->kernel->proved) || atomic_load(&launch->kernel->reaches_host) > 0;
    if (!kprof_decision_host_obstacle(launch->call->context)) {
        *needs |= KPROF_SAVES_HOST;
        return NULL;
    }
    if (!is_known && *needs == 0 &&
        launch->metrics->proof.count > 0) { /* many kernels take an address that they hardly ever use */
        *needs |= KPROF_ON_TRIAL;
        return NULL;
    }
    atomic_fetch_add(&launch->kernel->by_itself, 1); /* looking for the obstacle takes time, too */
    return why;
}

bool kprof_decision_wants_managed_to_stay(const kprof_batch_launch *launch, const kprof_decision *decision)
{
    const kprof_kernel *kernel = launch->kernel;
    const bool is_long = kernel && atomic_load(&kernel->timeouts) > 0;
    const bool may = kernel && !atomic_load(&kernel->takes_long) && (is_long || decision->kind != KPROF_REPLAYED) &&
                     launch->metrics && launch->metrics->proof.count > 0 && kprof_repeats_launches() &&
                     (kprof_engine.device->target_sharing() & KPROF_MANAGED);
    return may && kprof_engine.device->managed_may_stay() &&
           (is_long || kprof_engine.device->target_managed_obstacle());
}

const char *kprof_decision_node_obstacle(const kprof_batch_launch *node, const kprof_operation *operation)
{
    unsigned needs;
    const char *why = why_not_repeated(node, operation, &needs);
    if (why || !needs) /* needs: CUPTI gave its node no number */
        return why;
    return "it prints or reaches memory of the host, and cannot be repeated apart from the graph's others";
}

bool kprof_decision_may_wait_for_host(const kprof_batch_launch *launch)
{
    return kprof_engine.device->target_awaits(launch->call) ||
           (kprof_engine.device->target_sharing() & (KPROF_SHARES_WITH_HOST | KPROF_MANAGED)) ||
           kprof_engine.device->target_reaches_pageable();
}

bool kprof_decision_has_other_writers(void)
{
    return (kprof_engine.device->target_sharing() & KPROF_SHARES_WITH_DEVICES) ||
           kprof_engine.device->writers_devices();
}

bool kprof_decision_may_wait(const kprof_batch_launch *launch)
{
    return kprof_decision_may_wait_for_host(launch) || kprof_decision_has_other_writers();
}

bool kprof_decision_may_be_helped(void)
{
    const unsigned waits = KPROF_SHARES_WITH_HOST | KPROF_MANAGED | KPROF_WAITS_FOR_HOST;
    return (kprof_engine.device->target_sharing() & waits) || kprof_engine.device->target_reaches_pageable() ||
           kprof_decision_has_other_writers();
}

/* How many launches must kprof have seen end by themselves? A kernel may also wait for one in another stream. */
static uint32_t enough_ends(const kprof_batch_launch *launch, kprof_decision_kind kind)
{
    if (kprof_decision_may_wait(launch))
        return ENOUGH_ENDS;
    bool known = kind == KPROF_LIVE || launch->metrics->pass_count == 1 || atomic_load(&launch->kernel->ends_alone);
    return known ? 0 : 1;
}

static kprof_decision decide(kprof_decision_kind kind, const char *why)
{
    return (kprof_decision){.kind = kind, .why = why};
}

/* CUPTI waits at the end of a range for a kernel that it counts in the SMs. If that kernel waits for what the
 * application does next, neither would ever go on. So kprof must have seen the kernel end by itself. If it has waited
 * for that without success, it leaves the range open as the launch returns. The range has its values if nothing else
 * comes before the launch has ended: it may only take long. */
static kprof_decision measure_own_run(const kprof_batch_launch *launch, kprof_decision_kind kind, const char *why)
{
    if (atomic_load(&launch->kernel->timeouts) > 0)
        return atomic_load(&launch->kernel->lost_runs) < ENOUGH_LOST_RUNS ? decide(kind, why)
                                                                          : decide(KPROF_REFUSED, KPROF_MAY_WAIT);
    if (atomic_load(&launch->kernel->watched_ends) >= enough_ends(launch, kind))
        return decide(kind, why);
    if (kprof_engine.device->target_awaits(launch->call))
        return decide(KPROF_WATCHED, "a graph's first launches are only watched where it may wait for functions of the "
                                     "host, for events, or for what is not known; its next ones are measured");
    if (kprof_decision_may_wait(launch))
        return decide(KPROF_WATCHED, "a kernel's first launches are only watched where it may wait for memory that the "
                                     "host or another device writes; its next ones are measured");
    return decide(KPROF_WATCHED, "a kernel's first launch is only watched, whether it ends by itself; its next ones "
                                 "are measured");
}

kprof_decision kprof_decision_unrepeated(const kprof_batch_launch *launch, const char *why)
{
    if (kprof_engine.process.config.census) /* its pass would keep other launches out of the census */
        return decide(KPROF_REFUSED, why);
    const bool multiplexes = kprof_engine.process.config.replay_choice != KPROF_REPLAY_ONLY;
    if (launch->metrics->pass_count == 1 && !(multiplexes && kprof_measures_instructions()))
        return measure_own_run(launch, KPROF_LIVE, why);
    if (!multiplexes)
        return decide(KPROF_REFUSED, why);
    return measure_own_run(launch, KPROF_MULTIPLEXED, why);
}

bool kprof_decision_is_live(const kprof_batch_launch *launch)
{
    return launch->chosen && launch->metrics && launch->metrics->pass_count == 1 &&
           !kprof_recording_is_beside() && /* no kernel may be recorded in a pass that counts */
           launch->metrics->timeline_count == 0 && !kprof_measures_instructions() && kprof_repeats_launches() &&
           !atomic_load(&launch->kernel->ends_late) && !kprof_decision_may_wait_for_host(launch) &&
           !kprof_engine.device->target_runs_elsewhere(launch->call);
}

bool kprof_decision_may_follow(const kprof_batch_launch *launch, const kprof_decision *decision)
{
    bool is_repeated = decision->kind == KPROF_REPLAYED && decision->needs == 0;
    return !is_repeated && kprof_repeats_launches() && !kprof_engine.device->target_runs_elsewhere(launch->call) &&
           !why_not_saved() && !(kprof_engine.device->target_sharing() & ANY_MANAGED) &&
           (!kprof_decision_needs_proof() || launch->metrics->proof.count > 0);
}

kprof_decision kprof_decision_make(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    uint32_t passes = launch->metrics ? launch->metrics->pass_count : 0;
    /* what was copied is of the current context */
    if (launch->chosen && passes > 0 && !operation && kprof_engine.device->target_runs_elsewhere(launch->call))
        return decide(KPROF_REFUSED, "it runs in a stream of another context than the one that is current");
    if (launch->chosen && passes > 0 && kprof_engine.process.config.replay_choice == KPROF_MULTIPLEX_ALL)
        return measure_own_run(launch, KPROF_MULTIPLEXED, "");
    if (kprof_decision_is_live(launch))
        return decide(KPROF_LIVE, "");
    unsigned needs;
    const char *obstacle = why_not_repeated(launch, operation, &needs);
    if (!obstacle)
        return (kprof_decision){.kind = KPROF_REPLAYED, .why = "", .needs = needs};
    return launch->chosen && !launch->repeats ? kprof_decision_unrepeated(launch, obstacle)
                                              : decide(KPROF_REFUSED, obstacle);
}
