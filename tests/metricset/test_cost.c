/* The sum of the prices: what counts once, for each batch, and for each launch. */
#include "metricset/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Of GH100, as are the measured times below. */
static const kprof_effort default_set = {.metric_count = 89, .sm_pass_count = 9, .slow_pass_count = 7};
static const kprof_effort full_set = {
    .metric_count = 283, .sm_pass_count = 18, .other_pass_count = 1, .slow_pass_count = 18};
static const kprof_effort dram_metric = {.metric_count = 1, .other_pass_count = 1};

static void assert_near(double actual, double expected)
{
    assert_float_equal(actual, expected, expected * 1e-9);
}

static void test_effort_is_of_the_schedule(void **state)
{
    (void)state;
    kprof_schedule_pass passes[] = {{.sm_side = true, .is_slow = true}, {.sm_side = false}, {.sm_side = true}};
    kprof_schedule schedule = {.passes = passes, .pass_count = 3, .metric_count = 6};
    kprof_effort effort = kprof_effort_of(&schedule, 4);
    assert_int_equal(effort.metric_count, 4);
    assert_int_equal(effort.sm_pass_count, 2);
    assert_int_equal(effort.slow_pass_count, 1);
    assert_int_equal(effort.other_pass_count, 1);
}

static void test_one_launch(void **state)
{
    (void)state;
    kprof_workload one = {1, 0};
    kprof_cost cost = kprof_cost_of(&default_set, &one);
    assert_near(cost.start_s, kprof_prices.start_s + kprof_prices.room_ms / 1000);
    assert_near(cost.launch_ms,
                7 * kprof_prices.slow_pass_ms + 2 * kprof_prices.other_pass_ms + 89 * kprof_prices.evaluation_ms);
    assert_near(cost.counter_data_bytes, 9 * kprof_prices.counter_bytes_per_pass);
    assert_int_equal(cost.batch_count, 1);
    assert_near(cost.total_s, cost.start_s + (cost.launch_ms + 9 * kprof_prices.sm_pass_start_ms) / 1000);
}

static void test_passes_differ(void **state)
{
    (void)state;
    kprof_workload one = {1, 0};
    kprof_effort both = {.metric_count = 1, .sm_pass_count = 1, .other_pass_count = 1, .slow_pass_count = 1};
    kprof_cost cheap = kprof_cost_of(&dram_metric, &one), dear = kprof_cost_of(&both, &one);
    assert_near(dear.launch_ms, cheap.launch_ms + kprof_prices.slow_pass_ms);
    assert_near(dear.total_s, cheap.total_s + (kprof_prices.slow_pass_ms + kprof_prices.sm_pass_start_ms) / 1000);
    assert_true(cheap.launch_ms < kprof_prices.slow_pass_ms);
}

static void test_batches(void **state)
{
    (void)state;
    kprof_workload many = {1000, 0}, pairs = {1001, 2}, none = {0, 0};
    uint64_t by_memory = (uint64_t)(kprof_prices.batch_bytes / (9 * kprof_prices.counter_bytes_per_pass));
    assert_int_equal(kprof_cost_of(&default_set, &many).batch_count, (1000 + by_memory - 1) / by_memory);
    assert_int_equal(kprof_cost_of(&default_set, &pairs).batch_count, 501);
    assert_int_equal(kprof_cost_of(&default_set, &none).batch_count, 0);
    assert_near(kprof_cost_of(&default_set, &none).total_s, kprof_prices.start_s);
    assert_int_equal(kprof_cost_of(&dram_metric, &many).batch_count, 1000 / kprof_prices.batch_launches + 1);
}

/* The room is paid for where it is used, and not for the second batch. */
static void test_room(void **state)
{
    (void)state;
    kprof_workload few = {10, 0}, many = {100000, 0}, pairs = {10, 2};
    double room_s = kprof_prices.room_ms / 1000;
    assert_near(kprof_cost_of(&dram_metric, &few).start_s, kprof_prices.start_s + 10 * room_s);
    assert_near(kprof_cost_of(&dram_metric, &pairs).start_s, kprof_prices.start_s + 2 * room_s);
    assert_near(kprof_cost_of(&dram_metric, &many).start_s,
                kprof_prices.start_s + (double)kprof_prices.batch_launches * room_s);
}

/* Whole processes less the plain ones, on the machine of the prices. */
static void test_measured_processes(void **state)
{
    (void)state;
    static const struct {
        const kprof_effort *effort;
        uint64_t launches;
        double measured_s;
    } processes[] = {
        {&default_set, 201, 4.05}, {&full_set, 201, 9.86}, {&dram_metric, 1001, 1.1}, {&full_set, 1, 1.66}};
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++) {
        kprof_workload workload = {processes[i].launches, 0};
        double measured_s = processes[i].measured_s;
        assert_float_equal(kprof_cost_of(processes[i].effort, &workload).total_s, measured_s, 0.2 * measured_s);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    kprof_workload endless = {UINT64_MAX, 1};
    kprof_effort nothing = {0}, huge = {.metric_count = 5000, .sm_pass_count = 100000};
    assert_true(kprof_cost_of(&huge, &endless).total_s > 1e18);
    assert_near(kprof_cost_of(&nothing, &endless).total_s, kprof_prices.start_s + kprof_prices.room_ms / 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effort_is_of_the_schedule),
        cmocka_unit_test(test_one_launch),
        cmocka_unit_test(test_passes_differ),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_measured_processes),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
