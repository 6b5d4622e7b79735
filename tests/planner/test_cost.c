/* The sum of the prices: what counts once, for each batch, and for each launch. */
#include "planner/planner.h"
#include "test.h"

/* All prices are of GH100, as are the measured times below, and the plans that were measured. */
static const kprof_effort default_set = {.metric_count = 110, .sm_pass_count = 8, .slow_pass_count = 8};
static const kprof_effort full_set = {
    .metric_count = 355, .sm_pass_count = 18, .other_pass_count = 1, .slow_pass_count = 18};
static const kprof_effort dram_metric = {.metric_count = 1, .other_pass_count = 1};

static void assert_near(double actual, double expected)
{
    assert_float_equal(actual, expected, expected * 1e-9);
}

static double room_s(double bytes)
{
    return bytes / 1048576 * kprof_prices.room_ms_per_mib / 1000;
}

TEST(test_effort_is_of_the_schedule)
{
    kprof_schedule_pass passes[] = {{.sm_side = true, .is_slow = true}, {.sm_side = false}, {.sm_side = true}};
    kprof_schedule schedule = {.passes = passes, .pass_count = 3, .metric_count = 6};
    kprof_effort effort = kprof_effort_of(&schedule, 4);
    assert_int_equal(effort.metric_count, 4);
    assert_int_equal(effort.sm_pass_count, 2);
    assert_int_equal(effort.slow_pass_count, 1);
    assert_int_equal(effort.other_pass_count, 1);
}

TEST(test_one_launch)
{
    kprof_workload one = {.launches = 1, .cache_control = KPROF_CACHE_FLUSH_NONE};
    kprof_cost cost = kprof_cost_of(&default_set, &one);
    assert_near(cost.launch_ms, 8 * kprof_prices.slow_pass_ms + 110 * kprof_prices.evaluation_ms);
    assert_near(cost.counter_data_bytes, 8 * KPROF_COUNTER_BYTES_PER_PASS);
    assert_near(cost.start_s, kprof_prices.start_s + room_s(cost.counter_data_bytes));
    assert_int_equal(cost.batch_count, 1);
    assert_near(cost.batch_ms, 8 * kprof_prices.sm_pass_start_ms);
    assert_near(cost.total_s, cost.start_s + (cost.launch_ms + 8 * kprof_prices.sm_pass_start_ms) / 1000);
}

/* A single pass is no replay, so that `all` flushes there as `l2` does. */
TEST(test_cache_control_costs)
{
    static const struct {
        const kprof_effort *effort;
        kprof_cache_control cache_control;
        size_t flushed, emptied; /* passes */
    } rows[] = {{&default_set, KPROF_CACHE_FLUSH_L2, 8, 0},
                {&default_set, KPROF_CACHE_FLUSH_ALL, 0, 8},
                {&dram_metric, KPROF_CACHE_FLUSH_L2, 1, 0},
                {&dram_metric, KPROF_CACHE_FLUSH_ALL, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_workload plain = {.launches = 10, .cache_control = KPROF_CACHE_FLUSH_NONE}, cold = plain;
        cold.cache_control = rows[i].cache_control;
        double added_ms =
            (double)rows[i].flushed * kprof_prices.flush_ms + (double)rows[i].emptied * kprof_prices.empty_ms;
        kprof_cost cheap = kprof_cost_of(rows[i].effort, &plain), dear = kprof_cost_of(rows[i].effort, &cold);
        assert_near(dear.launch_ms, cheap.launch_ms + added_ms);
        assert_near(dear.total_s, cheap.total_s + 10 * added_ms / 1000);
    }
}

TEST(test_passes_differ)
{
    kprof_workload one = {.launches = 1, .cache_control = KPROF_CACHE_FLUSH_NONE};
    kprof_effort both = {.metric_count = 1, .sm_pass_count = 1, .other_pass_count = 1, .slow_pass_count = 1};
    kprof_cost cheap = kprof_cost_of(&dram_metric, &one), dear = kprof_cost_of(&both, &one);
    assert_near(dear.launch_ms, cheap.launch_ms + kprof_prices.slow_pass_ms);
    assert_near(dear.total_s - dear.start_s,
                cheap.total_s - cheap.start_s + (kprof_prices.slow_pass_ms + kprof_prices.sm_pass_start_ms) / 1000);
    assert_true(cheap.launch_ms < kprof_prices.slow_pass_ms);
}

TEST(test_batches)
{
    uint64_t capacity = (uint64_t)(KPROF_BATCH_BYTES / (8 * KPROF_COUNTER_BYTES_PER_PASS));
    kprof_workload fits = {.launches = capacity}, more = {.launches = capacity + 1}, none = {0};
    kprof_workload pairs = {.launches = 1001, .batch = 2}, most = {.launches = 5000, .batch = 100000};
    assert_int_equal(kprof_cost_of(&default_set, &fits).batch_count, 1);
    assert_int_equal(kprof_cost_of(&default_set, &more).batch_count, 2);
    assert_int_equal(kprof_cost_of(&default_set, &pairs).batch_count, 501);
    assert_int_equal(kprof_cost_of(&default_set, &most).batch_count, 3);
    assert_int_equal(kprof_cost_of(&default_set, &none).batch_count, 0);
    assert_near(kprof_cost_of(&default_set, &none).total_s, kprof_prices.start_s);
}

/* However little counter data a launch has, CUPTI takes so many. */
TEST(test_batches_of_few_passes)
{
    kprof_workload fits = {.launches = KPROF_BATCH_MOST_LAUNCHES}, more = {.launches = KPROF_BATCH_MOST_LAUNCHES + 1};
    assert_int_equal(kprof_cost_of(&dram_metric, &fits).batch_count, 1);
    assert_int_equal(kprof_cost_of(&dram_metric, &more).batch_count, 2);
}

/* Room is paid for once, for the largest batch. */
TEST(test_room)
{
    kprof_workload few = {.launches = 10}, many = {.launches = 5000}, pairs = {.launches = 10, .batch = 2};
    double launch_s = room_s(KPROF_COUNTER_BYTES_PER_PASS);
    assert_near(kprof_cost_of(&dram_metric, &few).start_s, kprof_prices.start_s + 10 * launch_s);
    assert_near(kprof_cost_of(&dram_metric, &pairs).start_s, kprof_prices.start_s + 2 * launch_s);
    assert_near(kprof_cost_of(&dram_metric, &many).start_s,
                kprof_prices.start_s + (double)KPROF_BATCH_MOST_LAUNCHES * launch_s);
}

TEST(test_memory)
{
    kprof_workload pairs = {.launches = 10, .batch = 2}, one = {.launches = 1};
    double batch_s = (kprof_prices.save_ms_per_gib + 9 * kprof_prices.restore_ms_per_gib) / 1000;
    assert_near(kprof_cost_of(&default_set, &one).memory_s_per_gib, batch_s);
    assert_near(kprof_cost_of(&default_set, &pairs).memory_s_per_gib, 5 * batch_s);
    assert_true(kprof_cost_of(&dram_metric, &pairs).memory_s_per_gib == 0); /* one pass restores nothing */
}

#define GIB 1073741824.0

TEST(test_size_of_memory)
{
    kprof_workload unknown = {.launches = 10, .batch = 2}, given = unknown;
    given.allocated_bytes = UINT64_C(60) << 30;
    kprof_cost without = kprof_cost_of(&default_set, &unknown), with = kprof_cost_of(&default_set, &given);
    assert_near(with.saved_bytes_per_batch, 60 * GIB);
    assert_near(with.saved_bytes, 5 * 60 * GIB);
    assert_near(with.restored_bytes, 9 * 5 * 60 * GIB);
    assert_near(with.memory_s_per_gib, without.memory_s_per_gib);
    assert_near(with.total_s, without.total_s + 60 * without.memory_s_per_gib);
    assert_true(without.saved_bytes_per_batch == 0 && without.saved_bytes == 0 && without.restored_bytes == 0);
    kprof_cost one_pass = kprof_cost_of(&dram_metric, &given);
    assert_true(one_pass.saved_bytes_per_batch == 0 && one_pass.saved_bytes == 0 && one_pass.restored_bytes == 0);
    assert_near(one_pass.total_s, kprof_cost_of(&dram_metric, &unknown).total_s);
}

TEST(test_memory_that_does_not_fit_twice)
{
    kprof_workload given = {.launches = 10, .batch = 10, .allocated_bytes = UINT64_C(68) << 30};
    assert_true(kprof_cost_of(&default_set, &given).saved_fits);
    given.allocated_bytes = UINT64_C(69) << 30; /* of 139, two of which stay free */
    assert_false(kprof_cost_of(&default_set, &given).saved_fits);
    assert_true(kprof_cost_of(&dram_metric, &given).saved_fits); /* nothing is saved */
    given.device_bytes = UINT64_C(141) << 30;
    assert_true(kprof_cost_of(&default_set, &given).saved_fits);
}

TEST(test_counter_data_of_a_batch)
{
    double launch_bytes = 8 * KPROF_COUNTER_BYTES_PER_PASS;
    kprof_workload few = {.launches = 10}, pairs = {.launches = 10, .batch = 2}, many = {.launches = 5000};
    assert_near(kprof_cost_of(&default_set, &few).batch_counter_bytes, 10 * launch_bytes);
    assert_near(kprof_cost_of(&default_set, &pairs).batch_counter_bytes, 2 * launch_bytes);
    double fitting = (double)(KPROF_BATCH_BYTES / (8 * KPROF_COUNTER_BYTES_PER_PASS));
    assert_near(kprof_cost_of(&default_set, &many).batch_counter_bytes, fitting * launch_bytes);
}

/* The time that a launch takes more in a batch of 200, on the machine of the prices. Room for the counter data of the
 * default set was made with the launch before it, and is not in the figures. */
TEST(test_measured_launches)
{
    static const struct {
        const kprof_effort *effort;
        kprof_cache_control cache_control;
        double measured_ms;
    } rows[] = {{&default_set, KPROF_CACHE_FLUSH_NONE, 2.89}, {&full_set, KPROF_CACHE_FLUSH_NONE, 11.8},
                {&default_set, KPROF_CACHE_FLUSH_L2, 3.23},   {&full_set, KPROF_CACHE_FLUSH_L2, 14.05},
                {&default_set, KPROF_CACHE_FLUSH_ALL, 6.56},  {&full_set, KPROF_CACHE_FLUSH_ALL, 22.1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_workload workload = {.launches = 200, .cache_control = rows[i].cache_control};
        kprof_cost cost = kprof_cost_of(rows[i].effort, &workload);
        double makes_room_s = rows[i].effort == &full_set ? cost.start_s - kprof_prices.start_s : 0;
        assert_float_equal(cost.launch_ms + (cost.batch_ms + makes_room_s * 1000) / 200, rows[i].measured_ms,
                           0.22 * rows[i].measured_ms);
    }
}

/* Whole processes less the plain ones, on the machine of the prices. The benchmark reads 64 MiB after its first launch,
 * which ends a batch. */
TEST(test_measured_processes)
{
    static const struct {
        const kprof_effort *effort;
        uint64_t launches, batch;
        double measured_s;
    } processes[] = {{&dram_metric, 1001, 1000, 0.90}, {&full_set, 1, 0, 1.02}};
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++) {
        kprof_workload workload = {.launches = processes[i].launches, .batch = (uint32_t)processes[i].batch};
        double measured_s = processes[i].measured_s;
        assert_float_equal(kprof_cost_of(processes[i].effort, &workload).total_s, measured_s, 0.2 * measured_s);
    }
}

/* Repeating a launch for its instructions costs that, and saving memory for it; samples cost a batch something, too. */
TEST(test_instructions)
{
    const kprof_effort effort = {.metric_count = 1, .other_pass_count = 1};
    kprof_workload workload = {.launches = 100, .allocated_bytes = UINT64_C(1) << 30};
    const kprof_cost plain = kprof_cost_of(&effort, &workload);
    workload.counts_instructions = true;
    const kprof_cost counted = kprof_cost_of(&effort, &workload);
    workload.samples = true;
    const kprof_cost sampled = kprof_cost_of(&effort, &workload);
    assert_near(counted.launch_ms, plain.launch_ms + kprof_prices.instruction_ms);
    assert_near(counted.batch_ms, plain.batch_ms);
    assert_near(sampled.launch_ms, counted.launch_ms + kprof_prices.sample_ms);
    assert_near(sampled.batch_ms, plain.batch_ms + kprof_prices.sample_start_ms);
    assert_near(plain.restored_bytes, 0);
    assert_near(counted.restored_bytes, 3 * 0x1p30);
    assert_near(sampled.restored_bytes, 4 * 0x1p30);
    const kprof_effort nothing = {0};
    workload.allocated_bytes = 0;
    assert_int_equal(kprof_cost_of(&nothing, &workload).batch_count, 1);
}

TEST(test_extremes)
{
    kprof_workload endless = {.launches = UINT64_MAX, .batch = 1}, unbounded = {.launches = UINT64_MAX};
    kprof_effort nothing = {0}, huge = {.metric_count = 5000, .sm_pass_count = 100000};
    assert_true(kprof_cost_of(&huge, &endless).total_s > 1e18);
    assert_true(kprof_cost_of(&huge, &unbounded).total_s > 1e18);
    endless.allocated_bytes = UINT64_MAX;
    assert_true(kprof_cost_of(&huge, &endless).saved_bytes > 1e38);
    assert_near(kprof_cost_of(&nothing, &endless).total_s, kprof_prices.start_s);
    assert_int_equal(kprof_cost_of(&nothing, &endless).batch_count, 0);
}
