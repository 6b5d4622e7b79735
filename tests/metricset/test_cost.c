/* The sum of the prices: what counts once, for each batch, and for each launch. */
#include "metricset/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const kprof_effort default_set = {.metric_count = 91, .sm_pass_count = 9};

static void assert_near(double actual, double expected)
{
    assert_float_equal(actual, expected, expected * 1e-9);
}

static void test_effort_is_of_the_schedule(void **state)
{
    (void)state;
    kprof_schedule_pass passes[] = {{.sm_side = true}, {.sm_side = false}, {.sm_side = true}};
    kprof_schedule schedule = {.passes = passes, .pass_count = 3, .metric_count = 6};
    kprof_effort effort = kprof_effort_of(&schedule, 4);
    assert_int_equal(effort.metric_count, 4);
    assert_int_equal(effort.sm_pass_count, 2);
    assert_int_equal(effort.other_pass_count, 1);
}

static void test_one_launch(void **state)
{
    (void)state;
    kprof_workload one = {1, 0};
    kprof_cost cost = kprof_cost_of(&default_set, &one);
    assert_near(cost.launch_ms, 9 * kprof_prices.sm_pass_ms + 91 * kprof_prices.evaluation_ms);
    assert_near(cost.counter_data_bytes, 9 * kprof_prices.counter_bytes_per_pass);
    assert_int_equal(cost.batch_count, 1);
    assert_near(cost.total_s, kprof_prices.start_s + (cost.launch_ms + 9 * kprof_prices.pass_start_ms) / 1000);
}

static void test_passes_differ(void **state)
{
    (void)state;
    kprof_workload one = {1, 0};
    kprof_effort memory = {.metric_count = 1, .other_pass_count = 1};
    kprof_effort both = {.metric_count = 1, .sm_pass_count = 1, .other_pass_count = 1};
    double cheap_ms = kprof_cost_of(&memory, &one).launch_ms;
    assert_near(kprof_cost_of(&both, &one).launch_ms, cheap_ms + kprof_prices.sm_pass_ms);
    assert_true(cheap_ms < kprof_prices.sm_pass_ms);
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
}

static void test_extremes(void **state)
{
    (void)state;
    kprof_workload endless = {UINT64_MAX, 1};
    kprof_effort nothing = {0}, huge = {.metric_count = 5000, .sm_pass_count = 100000};
    assert_true(kprof_cost_of(&huge, &endless).total_s > 1e18);
    assert_near(kprof_cost_of(&nothing, &endless).total_s, kprof_prices.start_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effort_is_of_the_schedule),
        cmocka_unit_test(test_one_launch),
        cmocka_unit_test(test_passes_differ),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
