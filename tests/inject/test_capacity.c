/* The capacity of batches, and for how many ranges measurements are made. */
#include "core/memory.h"
#include "inject/capacity.h"
#include "inject/contexts.h"
#include "inject/engine.h"
#include "test.h"

#define RESERVED 192 /* launches of 1 MiB, for which counter data is made before it is known how many there will be */

static size_t available_bytes, launch_bytes;

/* In place of the engine's, and of the machine's memory. */

size_t kprof_memory_available_bytes(const char *root)
{
    assert_string_equal(root, "");
    return available_bytes;
}

static size_t profiler_capacity(kprof_profiler *profiler, size_t bytes)
{
    return bytes < launch_bytes ? 1 : bytes / launch_bytes;
}

static const kprof_device_ops device_ops = {.profiler_capacity = profiler_capacity};

static int set_up(void **state)
{
    kprof_engine.process.config = (kprof_config){0};
    available_bytes = (size_t)64 << 30;
    launch_bytes = (size_t)1 << 20;
    return 0;
}

TEST(test_as_many_as_fit)
{
    kprof_profiled_context context = {0};
    assert_int_equal(kprof_capacity_choose(&context, false), 4 * RESERVED);
    launch_bytes = 1 << 17;
    assert_int_equal(kprof_capacity_choose(&context, false), 2048);
    assert_int_equal(kprof_capacity_choose(&context, true), 512);
}

TEST(test_reserves_more_once_full_batches_have_cost_enough)
{
    kprof_profiled_context context = {.ready_ms = 300};
    assert_int_equal(kprof_capacity_choose(&context, true), RESERVED);
    kprof_capacity_note(&context, true, 400);
    assert_int_equal(kprof_capacity_choose(&context, true), RESERVED);
    kprof_capacity_note(&context, true, 100);
    assert_int_equal(kprof_capacity_choose(&context, true), 2 * RESERVED);
    context.ready_ms = 600; /* of the larger first pass */
    kprof_capacity_note(&context, true, 800);
    assert_int_equal(kprof_capacity_choose(&context, true), 2 * RESERVED);
    kprof_capacity_note(&context, true, 200);
    assert_int_equal(kprof_capacity_choose(&context, true), 4 * RESERVED);
    kprof_capacity_note(&context, true, 10000);
    assert_int_equal(kprof_capacity_choose(&context, true), 4 * RESERVED);
}

TEST(test_a_batch_that_is_not_full_begins_anew)
{
    kprof_profiled_context context = {.ready_ms = 300};
    kprof_capacity_note(&context, true, 400);
    kprof_capacity_note(&context, false, 400);
    kprof_capacity_note(&context, true, 400);
    assert_int_equal(kprof_capacity_choose(&context, true), RESERVED);
}

/* A new measurement takes time, and so does each range that it can hold. */
TEST(test_measurements_grow)
{
    kprof_profiled_context context = {0};
    assert_int_equal(kprof_capacity_make(&context, 1, 768), RESERVED);
    assert_int_equal(kprof_capacity_make(&context, RESERVED, 768), RESERVED);
    assert_int_equal(kprof_capacity_make(&context, RESERVED + 1, 768), 2 * RESERVED);
    assert_int_equal(kprof_capacity_make(&context, 3, 768), 2 * RESERVED);
    assert_int_equal(kprof_capacity_make(&context, 2 * RESERVED + 1, 768), 768);
    assert_int_equal(kprof_capacity_make(&context, 1000, 768), 1000);
    assert_int_equal(kprof_capacity_make(&context, 2, 3), 3); /* the user asked for no more */
}

/* The user allows many launches, which need not come. */
TEST(test_measurements_where_many_may_come)
{
    kprof_profiled_context context = {0};
    kprof_engine.process.config.replay_batch = 2048;
    assert_int_equal(kprof_capacity_make(&context, 1, 2048), RESERVED);
}

/* It would be made anew after each turn. */
TEST(test_measurements_of_contexts_that_take_turns)
{
    kprof_profiled_context context = {.takes_turns = true};
    assert_int_equal(kprof_capacity_make(&context, 3, 768), 3);
    assert_int_equal(kprof_capacity_make(&context, 4, 768), 6); /* this time it kept the counters */
}

/* There will be no more launches. */
/* No other batch comes behind that of a process which ends. */
TEST(test_measurements_at_the_end)
{
    kprof_profiled_context context = {0}, other = {0};
    assert_int_equal(kprof_capacity_make(&other, 1, 768), RESERVED);
    atomic_store(&kprof_engine.process.ending, true);
    assert_int_equal(kprof_capacity_make(&context, 2, 768), 2);
    assert_int_equal(kprof_capacity_make(&context, 5, 768), 5);
    assert_int_equal(kprof_capacity_make(&other, 3, 768), RESERVED);
    assert_int_equal(kprof_capacity_make(&other, RESERVED + 1, 768), RESERVED + 1);
    atomic_store(&kprof_engine.process.ending, false);
}

TEST(test_measurements_of_few)
{
    kprof_profiled_context context = {0};
    kprof_engine.process.config.filter.launch_count = 5;
    kprof_engine.process.config.filter.filter_mode = KPROF_FILTER_PER_CONFIG; /* five of each kernel */
    assert_true(kprof_capacity_choose(&context, false) > 5);
    kprof_engine.process.config.filter.filter_mode = KPROF_FILTER_GLOBAL;
    assert_int_equal(kprof_capacity_make(&context, 1, 768), 5);
    assert_int_equal(kprof_capacity_make(&context, 8, 768), 10); /* others in between are ranges, too */
}

TEST(test_measurements_of_one)
{
    kprof_profiled_context context = {0};
    assert_int_equal(kprof_capacity_make(&context, 1, 1), 1);
}

/* The application needs what there is, however much was asked for. */
TEST(test_a_machine_with_little_memory)
{
    kprof_profiled_context context = {0};
    available_bytes = 8 * 100 * launch_bytes;
    assert_int_equal(kprof_capacity_choose(&context, false), 100);
    kprof_engine.process.config.replay_batch = 1000;
    assert_int_equal(kprof_capacity_choose(&context, false), 100);
    available_bytes = launch_bytes;
    assert_int_equal(kprof_capacity_choose(&context, false), 16);
    kprof_engine.process.config.replay_batch = 0;
    assert_int_equal(kprof_capacity_choose(&context, false), 16);
}

TEST(test_as_asked)
{
    kprof_profiled_context context = {0};
    kprof_engine.process.config.replay_batch = 3;
    assert_int_equal(kprof_capacity_choose(&context, false), 3);
    kprof_engine.process.config.replay_batch = UINT32_MAX;
    assert_true(kprof_capacity_choose(&context, false) > 1 && kprof_capacity_choose(&context, false) <= 2048);
    kprof_engine.process.config.replay_batch = 0;
    kprof_engine.process.config.filter.launch_count = 5; /* others in between do not count */
    assert_int_equal(kprof_capacity_choose(&context, false), 5);
}

TEST(test_counter_data_of_each_launch)
{
    kprof_profiled_context context = {0};
    kprof_engine.process.config.counter_data_dir = (char *)"/tmp";
    assert_int_equal(kprof_capacity_choose(&context, false), 1);
}

/* Until the batch is told of, what was measured of their instructions is in memory. */
TEST(test_instructions_of_each_launch)
{
    kprof_profiled_context context = {0};
    launch_bytes = 1 << 17;
    kprof_engine.process.config.samples = true;
    assert_int_equal(kprof_capacity_choose(&context, false), 512);
    kprof_engine.process.config.replay_batch = 3;
    assert_int_equal(kprof_capacity_choose(&context, false), 3);
}

int main(void)
{
    kprof_engine.device = &device_ops;
    around_each(set_up, NULL);
    return run_all_tests();
}
