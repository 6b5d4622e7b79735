/* How a launch is measured, by what its kernel does and who else reaches its memory. */
#include "inject/batch.h"
#include "inject/contexts.h"
#include "inject/decision.h"
#include "inject/engine.h"
#include "inject/kernels.h"
#include "inject/recording.h"
#include "test.h"

#include <string.h>

struct kprof_operation {
    bool sees_host;
};

/* The facts of the launch, and of the process. */
static struct {
    const char *side_effect, *devices, *managed_obstacle;
    unsigned sharing;
    bool uncopyable, no_function, sees_host, reaches_pageable, without_proof, is_graph, awaits, other_contexts,
        only_prints, sees_output, runs_elsewhere, records;
    const char *host_obstacle;
    uint64_t graph_node;
} seen;

static kprof_kernel kernel;

/* In place of the engine's and of CUPTI's. */
static const char *target_side_effect(const kprof_call *call)
{
    return seen.side_effect;
}

static bool target_only_prints(const kprof_call *call)
{
    return seen.only_prints;
}

static bool output_watch(void)
{
    return seen.sees_output;
}

static bool target_awaits(const kprof_call *call)
{
    assert_true(!seen.awaits || call->kind == KPROF_CALL_GRAPH_LAUNCH);
    return seen.awaits;
}

static bool target_runs_elsewhere(const kprof_call *call)
{
    return seen.runs_elsewhere;
}

static void *target_function(const kprof_call *call)
{
    return seen.no_function ? NULL : &kernel;
}

static unsigned target_sharing(void)
{
    return seen.sharing;
}

static bool target_reaches_pageable(void)
{
    return seen.reaches_pageable;
}

static const char *target_managed_obstacle(void)
{
    return seen.managed_obstacle;
}

static const char *target_host_obstacle(void)
{
    return seen.host_obstacle;
}

bool kprof_recording_is_beside(void)
{
    return seen.records;
}

bool kprof_contexts_has_others(const void *context)
{
    return seen.other_contexts;
}

static bool operation_sees_host(const kprof_operation *operation)
{
    return operation->sees_host;
}

static const char *writers_devices(void)
{
    return seen.devices;
}

static const kprof_device_ops device_ops = {.target_side_effect = target_side_effect,
                                            .target_only_prints = target_only_prints,
                                            .output_watch = output_watch,
                                            .target_awaits = target_awaits,
                                            .target_runs_elsewhere = target_runs_elsewhere,
                                            .target_function = target_function,
                                            .target_sharing = target_sharing,
                                            .target_reaches_pageable = target_reaches_pageable,
                                            .target_managed_obstacle = target_managed_obstacle,
                                            .target_host_obstacle = target_host_obstacle,
                                            .operation_sees_host = operation_sees_host,
                                            .writers_devices = writers_devices};

static int forget_all(void **state)
{
    memset(&seen, 0, sizeof seen);
    memset(&kernel, 0, sizeof kernel);
    seen.host_obstacle = "the application has threads (test)";
    kprof_engine.process.config.replay_choice = KPROF_REPLAY_WHERE_PROVED;
    kprof_engine.process.config.census = false;
    return 0;
}

/* Valid until the next call. */
static kprof_batch_launch describe(uint32_t passes, bool chosen)
{
    static kprof_call call;
    static kprof_chip_metrics metrics;
    static char *counters[] = {"sectors of the host"};
    call = (kprof_call){.kind = seen.is_graph ? KPROF_CALL_GRAPH_LAUNCH : KPROF_CALL_LAUNCH};
    metrics = (kprof_chip_metrics){.pass_count = passes};
    kprof_batch_launch launch = {.call = &call, .kernel = &kernel, .metrics = &metrics, .chosen = chosen};
    launch.record.graph_node = seen.graph_node;
    if (!seen.without_proof)
        metrics.proof = (kprof_strlist){counters, 1, 1};
    return launch;
}

static kprof_decision choose_for(uint32_t passes, bool chosen)
{
    kprof_operation operation = {.sees_host = seen.sees_host};
    kprof_batch_launch launch = describe(passes, chosen);
    return kprof_decision_make(&launch, seen.uncopyable ? NULL : &operation);
}

static void assert_decided(kprof_decision chosen, kprof_decision_kind kind, const char *why)
{
    assert_int_equal(chosen.kind, kind);
    if (!*why)
        assert_string_equal(chosen.why, "");
    else if (!strstr(chosen.why, why))
        fail_msg("the reason is \"%s\", not \"%s\"", chosen.why, why);
}

static void assert_chosen(uint32_t passes, kprof_decision_kind kind, const char *why)
{
    assert_decided(choose_for(passes, true), kind, why);
}

/* A launch that may wait for somebody is watched until two have ended, and one that another stream may help until one
 * has. */
static void assert_watched(uint32_t watches, uint32_t passes, kprof_decision_kind kind, const char *why)
{
    for (uint32_t ends = 0; ends < watches; ends++) {
        atomic_store(&kernel.watched_ends, ends);
        assert_chosen(passes, KPROF_WATCHED, "only watched");
    }
    atomic_store(&kernel.watched_ends, watches);
    assert_chosen(passes, kind, why);
    atomic_store(&kernel.watched_ends, 0);
}

static void assert_unchosen(kprof_decision_kind kind, const char *why)
{
    assert_decided(choose_for(2, false), kind, why);
}

TEST(test_memory_of_the_device)
{
    assert_false(kprof_decision_needs_proof());
    assert_chosen(1, KPROF_LIVE, "");
    assert_chosen(2, KPROF_REPLAYED, "");
    assert_unchosen(KPROF_REPLAYED, "");
}

/* A chip without the proof's counters can be told nothing by them, and needs them for host memory only. */
TEST(test_no_proof)
{
    seen.without_proof = true;
    assert_chosen(2, KPROF_REPLAYED, "");
    seen.sharing = KPROF_SHARES_WITH_HOST;
    assert_watched(2, 2, KPROF_MULTIPLEXED, "the chip cannot tell which launches reach host memory");
    assert_unchosen(KPROF_REFUSED, "the chip cannot tell which launches reach host memory");
}

/* The GPU reaches all memory of the process, with no call that tells. */
TEST(test_pageable_memory)
{
    seen.sees_host = true;
    assert_chosen(2, KPROF_REPLAYED, ""); /* whatever it is, the GPU does not reach it */
    seen.reaches_pageable = true;
    assert_true(kprof_decision_needs_proof());
    atomic_store(&kernel.proved, true); /* of other launches */
    assert_watched(2, 2, KPROF_MULTIPLEXED, "the kernel takes memory of the host, which no replay may change");
    assert_watched(2, 1, KPROF_LIVE, "the kernel takes memory of the host");
    seen.sees_host = false;
    assert_chosen(1, KPROF_REPLAYED, "");
    assert_chosen(2, KPROF_REPLAYED, "");
}

TEST(test_launches_that_cannot_be_repeated)
{
    seen.side_effect = "it prints (test)";
    assert_chosen(1, KPROF_LIVE, "");
    assert_watched(1, 2, KPROF_MULTIPLEXED, "the kernel cannot be replayed: it prints (test)");
    assert_unchosen(KPROF_REFUSED, "it prints (test)");
    seen.side_effect = NULL;
    seen.uncopyable = true;
    assert_watched(1, 2, KPROF_MULTIPLEXED, "the launch cannot be repeated through the driver");
    seen.uncopyable = false;
    seen.no_function = true;
    assert_watched(1, 2, KPROF_MULTIPLEXED, "the launch cannot be repeated through the driver");
}

/* Its values would be those of a context in which nothing ran. */
TEST(test_launches_in_another_context)
{
    static const char why[] = "in a stream of another context";
    seen.runs_elsewhere = seen.uncopyable = true;
    assert_chosen(1, KPROF_REFUSED, why);
    assert_chosen(2, KPROF_REFUSED, why);
    kprof_engine.process.config.replay_choice = KPROF_MULTIPLEX_ALL;
    assert_chosen(2, KPROF_REFUSED, why);
}

/* Replays of a kernel that prints are unheard, where the driver's output is seen and nobody else prints. */
TEST(test_launches_that_print)
{
    seen.side_effect = "it prints (test)";
    seen.only_prints = seen.sees_output = true;
    assert_chosen(1, KPROF_LIVE, "");
    assert_chosen(2, KPROF_REPLAYED, "");
    assert_int_equal(choose_for(2, true).needs, KPROF_DROPS_OUTPUT);
    assert_unchosen(KPROF_REFUSED, "it prints (test)");
    seen.other_contexts = true;
    assert_chosen(2, KPROF_WATCHED, "a kernel's first launch is only watched");
    seen.other_contexts = false;
    seen.graph_node = 5; /* it runs among others */
    assert_watched(1, 2, KPROF_MULTIPLEXED, "the kernel cannot be replayed: it prints (test)");
    seen.graph_node = 0;
    atomic_store(&kernel.prints_unseen, true);
    assert_chosen(2, KPROF_WATCHED, "a kernel's first launch is only watched");
    atomic_store(&kernel.prints_unseen, false);
    seen.sees_output = false;
    assert_chosen(2, KPROF_WATCHED, "a kernel's first launch is only watched");
    seen.sees_output = true;
    seen.only_prints = false;
    assert_chosen(2, KPROF_WATCHED, "a kernel's first launch is only watched");
}

TEST(test_graphs)
{
    seen.is_graph = true;
    assert_chosen(1, KPROF_LIVE, "");
    assert_chosen(2, KPROF_REPLAYED, "");
    assert_unchosen(KPROF_REPLAYED, "");
    seen.side_effect = "its kernel prints (test)";
    assert_watched(1, 2, KPROF_MULTIPLEXED, "the graph cannot be replayed: its kernel prints (test)");
    assert_unchosen(KPROF_REFUSED, "the graph cannot be replayed: its kernel prints (test)");
}

/* CUPTI would wait in the launch call for a function that waits for what the application does next. */
static const char *find_node_obstacle(uint32_t passes)
{
    kprof_operation operation = {.sees_host = seen.sees_host};
    kprof_batch_launch launch = describe(passes, true);
    return kprof_decision_node_obstacle(&launch, seen.uncopyable ? NULL : &operation);
}

/* They are repeated, however many passes there are. */
TEST(test_kernels_of_graphs)
{
    seen.graph_node = 1;
    for (uint32_t passes = 1; passes <= 2; passes++) {
        assert_null(find_node_obstacle(passes));
        seen.side_effect = "it prints";
        seen.only_prints = seen.sees_output = true;
        assert_string_equal(find_node_obstacle(passes), "the kernel cannot be replayed: it prints");
        seen.side_effect = NULL;
        seen.uncopyable = true;
        assert_non_null(find_node_obstacle(passes));
        seen.uncopyable = false;
    }
}

/* CUPTI did not tell the number of its node: it is among others all the same. */
TEST(test_kernel_of_a_graph_without_number)
{
    assert_null(find_node_obstacle(2));
    seen.side_effect = "it prints";
    seen.only_prints = seen.sees_output = true;
    assert_non_null(find_node_obstacle(2));
}

TEST(test_graph_that_may_wait)
{
    seen.is_graph = seen.awaits = true;
    seen.side_effect = "it calls a function of the host (test)";
    for (uint32_t passes = 1; passes <= 2; passes++) {
        atomic_store(&kernel.watched_ends, 0);
        assert_chosen(passes, KPROF_WATCHED, "a graph's first launches are only watched");
        atomic_store(&kernel.watched_ends, 2);
        assert_chosen(passes, passes == 1 ? KPROF_LIVE : KPROF_MULTIPLEXED,
                      "the graph cannot be replayed: it calls a function of the host (test)");
    }
}

/* The proof tells which launches reach it. */
TEST(test_memory_of_the_host)
{
    seen.sharing = KPROF_SHARES_WITH_HOST;
    assert_true(kprof_decision_needs_proof());
    assert_chosen(1, KPROF_REPLAYED, "");
    assert_chosen(2, KPROF_REPLAYED, "");
    assert_unchosen(KPROF_REPLAYED, "");
    seen.sees_host = true; /* which it may not use: the proof tells of a batch of its own */
    assert_int_equal(choose_for(2, true).needs, KPROF_ON_TRIAL);
    assert_unchosen(KPROF_REFUSED, "the kernel takes memory of the host, which no replay may change");
    atomic_store(&kernel.proved, true);
    assert_int_equal(choose_for(2, true).needs, 0);
    assert_chosen(2, KPROF_REPLAYED, "");
    seen.without_proof = true;
    assert_watched(2, 2, KPROF_MULTIPLEXED, "the chip cannot tell which launches reach host memory");
    seen.without_proof = false;
    seen.side_effect = "it prints (test)";
    assert_watched(2, 2, KPROF_MULTIPLEXED, "it prints (test)");
    assert_watched(2, 1, KPROF_LIVE, "it prints (test)");
}

/* Seen once, it may have been for the sake of its arguments. */
TEST(test_kernel_that_reached_host_memory)
{
    seen.sharing = KPROF_SHARES_WITH_HOST;
    atomic_store(&kernel.reaches_host, 1);
    assert_chosen(2, KPROF_REPLAYED, "");
    seen.sees_host = true;
    assert_watched(2, 2, KPROF_MULTIPLEXED, "the kernel takes memory of the host");
    assert_unchosen(KPROF_REFUSED, "the kernel takes memory of the host");
    seen.sees_host = false;
    atomic_store(&kernel.reaches_host, 2);
    assert_watched(2, 2, KPROF_MULTIPLEXED, "launches of the kernel reach memory of the host");
}

/* While no code of the application can run, memory of the host can be put back as well. */
TEST(test_memory_of_the_host_that_is_saved)
{
    seen.sharing = KPROF_SHARES_WITH_HOST;
    seen.host_obstacle = NULL;
    assert_int_equal(choose_for(2, true).needs, 0); /* nothing tells that the kernel takes some */
    seen.sees_host = true;
    assert_chosen(2, KPROF_REPLAYED, "");
    assert_int_equal(choose_for(2, true).needs, KPROF_SAVES_HOST);
    assert_unchosen(KPROF_REFUSED, "the kernel takes memory of the host");
    seen.side_effect = "it prints (test)";
    seen.only_prints = seen.sees_output = true;
    assert_int_equal(choose_for(2, true).needs, KPROF_SAVES_HOST | KPROF_DROPS_OUTPUT);
    seen.side_effect = NULL;
    seen.without_proof = true;
    assert_int_equal(choose_for(2, true).needs, KPROF_SAVES_HOST);
    seen.other_contexts = true;
    assert_watched(2, 2, KPROF_MULTIPLEXED, "the chip cannot tell which launches reach host memory");
    seen.other_contexts = false;
    atomic_store(&kernel.by_itself, 20);
    assert_watched(2, 2, KPROF_MULTIPLEXED, "the chip cannot tell which launches reach host memory");
}

TEST(test_managed_memory)
{
    seen.sharing = KPROF_MANAGED;
    assert_chosen(1, KPROF_REPLAYED, ""); /* its own run would have to be watched first */
    assert_chosen(2, KPROF_REPLAYED, "");
    seen.managed_obstacle = "other threads (test)";
    assert_watched(2, 1, KPROF_LIVE, "other threads (test)");
    assert_watched(2, 2, KPROF_MULTIPLEXED, "other threads (test)");
    assert_unchosen(KPROF_REFUSED, "other threads (test)");
    seen.managed_obstacle = NULL;
    seen.other_contexts = true; /* they are idle while a batch is open */
    assert_chosen(2, KPROF_REPLAYED, "");
    seen.sharing = 0;
    assert_chosen(2, KPROF_REPLAYED, "");
}

TEST(test_managed_memory_that_may_not_be_saved)
{
    seen.sharing = KPROF_MANAGED | KPROF_MAY_NOT_SAVE;
    assert_watched(2, 2, KPROF_MULTIPLEXED, "there is memory that a replay cannot restore");
}

TEST(test_memory_of_other_devices)
{
    seen.sharing = KPROF_SHARES_WITH_DEVICES;
    assert_chosen(1, KPROF_LIVE, "");
    assert_watched(2, 2, KPROF_MULTIPLEXED, "other GPUs or other processes reach the memory");
    seen.sharing = 0;
    seen.side_effect = "it prints (test)";
    seen.devices = "a network card may write (test)";
    assert_watched(2, 2, KPROF_MULTIPLEXED, "it prints (test)");
}

TEST(test_memory_that_may_not_be_saved)
{
    seen.sharing = KPROF_MAY_NOT_SAVE;
    assert_chosen(1, KPROF_LIVE, "");
    assert_watched(1, 2, KPROF_MULTIPLEXED, "there is memory that a replay cannot restore");
    seen.sharing = KPROF_MAY_NOT_SAVE | KPROF_SHARES_WITH_HOST;
    assert_watched(2, 2, KPROF_MULTIPLEXED, "there is memory that a replay cannot restore");
}

/* As for want of device memory. */
TEST(test_a_launch_that_turns_out_not_to_be_repeatable)
{
    kprof_chip_metrics metrics = {.pass_count = 2};
    kprof_batch_launch launch = {.kernel = &kernel, .metrics = &metrics, .chosen = true};
    atomic_store(&kernel.watched_ends, 1);
    assert_decided(kprof_decision_unrepeated(&launch, "no space (test)"), KPROF_MULTIPLEXED, "no space (test)");
    metrics.pass_count = 1;
    assert_decided(kprof_decision_unrepeated(&launch, "no space (test)"), KPROF_LIVE, "no space (test)");
    seen.sharing = KPROF_SHARES_WITH_HOST;
    assert_decided(kprof_decision_unrepeated(&launch, "no space (test)"), KPROF_WATCHED, "only watched");
}

TEST(test_replay_mode_kernel)
{
    kprof_engine.process.config.replay_choice = KPROF_REPLAY_ONLY;
    assert_chosen(2, KPROF_REPLAYED, "");
    seen.side_effect = "it prints (test)";
    assert_chosen(2, KPROF_REFUSED, "it prints (test)");
    assert_chosen(1, KPROF_LIVE, ""); /* nothing is repeated */
}

/* A pass that counts the launch's own run would keep its time, and others', out of the census. */
TEST(test_beside_a_census)
{
    seen.records = kprof_engine.process.config.census = true;
    assert_chosen(2, KPROF_REPLAYED, "");
    assert_chosen(1, KPROF_REPLAYED, "");
    seen.side_effect = "it prints (test)";
    assert_chosen(2, KPROF_REFUSED, "it prints (test)");
    assert_chosen(1, KPROF_REFUSED, "it prints (test)");
}

TEST(test_replay_mode_multiplex)
{
    kprof_engine.process.config.replay_choice = KPROF_MULTIPLEX_ALL;
    assert_watched(1, 2, KPROF_MULTIPLEXED, "");
    assert_chosen(1, KPROF_MULTIPLEXED, "");
    atomic_store(&kernel.ends_alone, true); /* it is known */
    assert_chosen(2, KPROF_MULTIPLEXED, "");
    seen.sharing = KPROF_SHARES_WITH_HOST;
    assert_watched(2, 2, KPROF_MULTIPLEXED, "");
    atomic_store(&kernel.timeouts, 1); /* one was watched in vain: it may only take long */
    assert_chosen(2, KPROF_MULTIPLEXED, "");
    atomic_store(&kernel.lost_runs, 1);
    assert_chosen(2, KPROF_MULTIPLEXED, "");
    atomic_store(&kernel.lost_runs, 2);
    assert_chosen(2, KPROF_REFUSED, "did not end by itself");
}

int main(void)
{
    kprof_engine.device = &device_ops;
    around_each(forget_all, NULL);
    return run_all_tests();
}
