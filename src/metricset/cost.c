/* The prices, and the sum that they make. */
#include "metricset/cost.h"

/* docs/benchmarks.md and docs/internals.md ("What things cost") tell how each was measured. */
const kprof_price_list kprof_prices = {
    .measured_on = "NVIDIA H200",
    .source = "docs/benchmarks.md",
    .start_s = 0.5,
    .sm_pass_ms = 1.3,
    .other_pass_ms = 0.15,
    .evaluation_ms = 0.005,
    .pass_start_ms = 10,
    .counter_bytes_per_pass = 95e3,
    .batch_bytes = 256 << 20,
    .save_ms_per_gib = 0.55,
    .restore_ms_per_gib = 0.5,
    .host_save_s = 21,
    .host_save_gb = 100,
};

kprof_effort kprof_effort_of(const kprof_schedule *schedule, size_t metric_count)
{
    kprof_effort effort = {.metric_count = metric_count};
    for (size_t i = 0; i < schedule->pass_count; i++) {
        if (schedule->passes[i].sm_side)
            effort.sm_pass_count++;
        else
            effort.other_pass_count++;
    }
    return effort;
}

static uint64_t launches_of_batch(const kprof_workload *workload, double counter_data_bytes)
{
    double by_memory = counter_data_bytes > 0 ? kprof_prices.batch_bytes / counter_data_bytes : 1;
    uint64_t launches = by_memory > 1 ? (uint64_t)by_memory : 1;
    return workload->batch && workload->batch < launches ? workload->batch : launches;
}

kprof_cost kprof_cost_of(const kprof_effort *effort, const kprof_workload *workload)
{
    size_t passes = effort->sm_pass_count + effort->other_pass_count;
    kprof_cost cost = {.start_s = kprof_prices.start_s};
    cost.launch_ms = (double)effort->sm_pass_count * kprof_prices.sm_pass_ms +
                     (double)effort->other_pass_count * kprof_prices.other_pass_ms +
                     (double)effort->metric_count * kprof_prices.evaluation_ms;
    cost.counter_data_bytes = (double)passes * kprof_prices.counter_bytes_per_pass;
    uint64_t per_batch = launches_of_batch(workload, cost.counter_data_bytes);
    cost.batch_count = workload->launches / per_batch + (workload->launches % per_batch > 0);
    double batches_ms = (double)cost.batch_count * (double)passes * kprof_prices.pass_start_ms;
    cost.total_s = cost.start_s + ((double)workload->launches * cost.launch_ms + batches_ms) / 1000;
    return cost;
}
