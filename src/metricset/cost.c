/* The prices, and the sum that they make. */
#include "metricset/cost.h"

#include "core/config.h"

/* docs/benchmarks.md and docs/internals.md ("What things cost") tell how each was measured: kernels of 60 us, caches
 * flushed before each, driver 580.159.04 with CUDA 13.0. With new prices goes a new number in limit.c's question. */
const kprof_price_list kprof_prices = {
    .measured_on = "NVIDIA H200",
    .source = "docs/benchmarks.md",
    .start_s = 0.65, /* 0.15 of it the profiler object */
    .room_ms = 0.8,
    .slow_pass_ms = 1.45, /* 0.05 of it when the pass is stopped */
    .other_pass_ms = 0.15,
    .evaluation_ms = 0.0005, /* what the next pass does not hide */
    .sm_pass_start_ms = 55,  /* 11 of it, on average, to count instructions as a witness */
    .other_pass_start_ms = 14,
    .counter_bytes_per_pass = KPROF_COUNTER_BYTES_PER_PASS,
    .batch_bytes = KPROF_BATCH_FIRST_BYTES,
    .batch_launches = KPROF_BATCH_FIRST_LAUNCHES,
    .save_ms_per_gib = 3,
    .restore_ms_per_gib = 0.5,
    .host_save_s = 30, /* 26 to 33 for 110 GB, of which 27 went to the device */
    .host_save_gb = 83,
};

kprof_effort kprof_effort_of(const kprof_schedule *schedule, size_t metric_count)
{
    kprof_effort effort = {.metric_count = metric_count};
    for (size_t i = 0; i < schedule->pass_count; i++) {
        if (schedule->passes[i].sm_side)
            effort.sm_pass_count++;
        else
            effort.other_pass_count++;
        effort.slow_pass_count += schedule->passes[i].is_slow;
    }
    return effort;
}

static uint64_t launches_of_batch(const kprof_workload *workload, double counter_data_bytes)
{
    if (workload->batch)
        return workload->batch < KPROF_BATCH_MOST_LAUNCHES ? workload->batch : KPROF_BATCH_MOST_LAUNCHES;
    double by_memory = counter_data_bytes > 0 ? kprof_prices.batch_bytes / counter_data_bytes : 1;
    uint64_t launches = by_memory > 1 ? (uint64_t)by_memory : 1;
    return kprof_prices.batch_launches < launches ? kprof_prices.batch_launches : launches;
}

kprof_cost kprof_cost_of(const kprof_effort *effort, const kprof_workload *workload)
{
    size_t passes = effort->sm_pass_count + effort->other_pass_count;
    kprof_cost cost = {.counter_data_bytes = (double)passes * kprof_prices.counter_bytes_per_pass};
    uint64_t per_batch = launches_of_batch(workload, cost.counter_data_bytes);
    uint64_t room = workload->launches < per_batch ? workload->launches : per_batch;
    cost.start_s = kprof_prices.start_s + (double)room * kprof_prices.room_ms / 1000;
    cost.launch_ms = (double)effort->slow_pass_count * kprof_prices.slow_pass_ms +
                     (double)(passes - effort->slow_pass_count) * kprof_prices.other_pass_ms +
                     (double)effort->metric_count * kprof_prices.evaluation_ms;
    cost.batch_count = workload->launches / per_batch + (workload->launches % per_batch > 0);
    double batch_ms = (double)effort->sm_pass_count * kprof_prices.sm_pass_start_ms +
                      (double)effort->other_pass_count * kprof_prices.other_pass_start_ms;
    double work_ms = (double)workload->launches * cost.launch_ms + (double)cost.batch_count * batch_ms;
    cost.total_s = cost.start_s + work_ms / 1000;
    return cost;
}
