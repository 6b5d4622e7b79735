/* The capacity of batches: more once full batches have cost more than that will, less after small ones, and what
 * was asked for. */
#include "core/memory.h"
#include "inject/capacity.h"
#include "inject/engine.h"
#include "inject/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LAUNCH_BYTES ((size_t)1 << 20)
#define FIRST        192 /* launches of that size in the first batch */

static size_t available_bytes;

/* In place of the engine's, and of the machine's memory. */

size_t kprof_memory_available_bytes(void)
{
    return available_bytes;
}

static size_t profiler_capacity(kprof_profiler *profiler, size_t bytes)
{
    (void)profiler;
    return bytes < LAUNCH_BYTES ? 1 : bytes / LAUNCH_BYTES;
}

static const kprof_device_ops device_ops = {.profiler_capacity = profiler_capacity};

static int set_up(void **state)
{
    (void)state;
    kprof_engine.process.config = (kprof_config){0};
    available_bytes = (size_t)64 << 30;
    return 0;
}

static void test_grows_once_full_batches_have_cost_enough(void **state)
{
    (void)state;
    kprof_profiled_context context = {.ready_ms = 300};
    assert_int_equal(kprof_capacity_choose(&context), FIRST);
    kprof_capacity_note(&context, FIRST, FIRST, 400);
    assert_int_equal(kprof_capacity_choose(&context), FIRST);
    kprof_capacity_note(&context, FIRST, FIRST, 100);
    assert_int_equal(kprof_capacity_choose(&context), 2 * FIRST);
    context.ready_ms = 600; /* of the larger first pass */
    kprof_capacity_note(&context, 2 * FIRST, 2 * FIRST, 800);
    assert_int_equal(kprof_capacity_choose(&context), 2 * FIRST);
    kprof_capacity_note(&context, 2 * FIRST, 2 * FIRST, 200);
    assert_int_equal(kprof_capacity_choose(&context), 4 * FIRST);
    kprof_capacity_note(&context, 4 * FIRST, 4 * FIRST, 10000);
    assert_int_equal(kprof_capacity_choose(&context), 4 * FIRST);
}

static void test_a_batch_that_is_not_full_begins_anew(void **state)
{
    (void)state;
    kprof_profiled_context context = {.ready_ms = 300};
    assert_int_equal(kprof_capacity_choose(&context), FIRST);
    kprof_capacity_note(&context, FIRST, FIRST, 400);
    kprof_capacity_note(&context, FIRST - 1, FIRST, 400);
    kprof_capacity_note(&context, FIRST, FIRST, 400);
    assert_int_equal(kprof_capacity_choose(&context), FIRST);
}

static void test_small_after_small_ones(void **state)
{
    (void)state;
    kprof_profiled_context context = {.ready_ms = 300};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kprof_capacity_choose(&context), FIRST);
        kprof_capacity_note(&context, 2, FIRST, 500);
    }
    assert_int_equal(kprof_capacity_choose(&context), 16);
    kprof_capacity_note(&context, 16, 16, 50);
    assert_int_equal(kprof_capacity_choose(&context), FIRST);
}

static size_t capacity_after_three_of(size_t count)
{
    kprof_profiled_context context = {.ready_ms = 300};
    for (int i = 0; i < 3; i++)
        kprof_capacity_note(&context, count, FIRST, 50);
    return kprof_capacity_choose(&context);
}

static void test_what_is_small(void **state)
{
    (void)state;
    assert_int_equal(capacity_after_three_of(FIRST / 8 + 1), FIRST);
    assert_int_equal(capacity_after_three_of(FIRST / 8), 16);
}

/* The application needs what there is, however much was asked for. */
static void test_a_machine_with_little_memory(void **state)
{
    (void)state;
    kprof_profiled_context context = {.ready_ms = 300};
    available_bytes = 8 * 100 * LAUNCH_BYTES;
    assert_int_equal(kprof_capacity_choose(&context), 100);
    kprof_engine.process.config.replay_batch = 1000;
    assert_int_equal(kprof_capacity_choose(&context), 100);
    available_bytes = LAUNCH_BYTES;
    assert_int_equal(kprof_capacity_choose(&context), 16);
    kprof_engine.process.config.replay_batch = 0;
    assert_int_equal(kprof_capacity_choose(&context), 16);
}

static void test_as_asked(void **state)
{
    (void)state;
    kprof_profiled_context context = {.ready_ms = 300};
    kprof_engine.process.config.replay_batch = 3;
    assert_int_equal(kprof_capacity_choose(&context), 3);
    kprof_engine.process.config.replay_batch = UINT32_MAX;
    assert_true(kprof_capacity_choose(&context) > 1 && kprof_capacity_choose(&context) <= 2048);
    kprof_engine.process.config.replay_batch = 0;
    kprof_engine.process.config.filter.launch_count = 5; /* others in between do not count */
    assert_int_equal(kprof_capacity_choose(&context), 5);
}

static void test_counter_data_of_each_launch(void **state)
{
    (void)state;
    kprof_profiled_context context = {.ready_ms = 300};
    kprof_engine.process.config.counter_data_dir = (char *)"/tmp";
    assert_int_equal(kprof_capacity_choose(&context), 1);
}

int main(void)
{
    kprof_engine.device = &device_ops;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_grows_once_full_batches_have_cost_enough, set_up),
        cmocka_unit_test_setup(test_a_batch_that_is_not_full_begins_anew, set_up),
        cmocka_unit_test_setup(test_small_after_small_ones, set_up),
        cmocka_unit_test_setup(test_what_is_small, set_up),
        cmocka_unit_test_setup(test_a_machine_with_little_memory, set_up),
        cmocka_unit_test_setup(test_as_asked, set_up),
        cmocka_unit_test_setup(test_counter_data_of_each_launch, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
