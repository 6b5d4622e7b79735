/* The prices, and the sum that they make; and what else of a plan needs no library. */
#include "planner/planner.h"

#include "core/config.h"

#include <stdlib.h>

#define MIB_BYTES 1048576.0
#define GIB_BYTES (1024 * MIB_BYTES)

/* `source` tells how each was measured: kernels of 60 us, driver 580.159.04 with CUDA 13.0. Those of instructions and
 * timelines are of an experiment with two kernels of 25 us and five counters, not of kprof. */
const kprof_price_list kprof_prices = {
    .measured_on = "NVIDIA H200",
    .source = "docs/planning.md, \"What things cost\"",
    .start_s = 0.5,
    .room_ms_per_mib = 1.0,
    .slow_pass_ms = 0.32, /* 0.09 of it when the pass is stopped */
    .other_pass_ms = 0.09,
    .flush_ms = 0.05,
    .empty_ms = 0.4,
    .evaluation_ms = 0.0005, /* what the next pass does not hide */
    .sm_pass_start_ms = 22,  /* stopping included; it counts instructions as a witness, too */
    .other_pass_start_ms = 14,
    .instruction_ms = 5,
    .sample_ms = 2,
    .sample_start_ms = 140,
    .timeline_ms = 12,
    .timeline_start_ms = 200,
    .save_ms_per_gib = 1.3, /* reading at 4.3 TB/s, keeping at 1.95, comparing with what the own run left at 2.2 */
    .restore_ms_per_gib = 0.5,
    .device_bytes = 139 * GIB_BYTES,
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

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t kprof_launches_in(size_t counter_data_bytes, size_t pass_count)
{
    uint64_t launches = pass_count > 0 ? counter_data_bytes / (pass_count * KPROF_COUNTER_BYTES_PER_PASS) : 1;
    return launches > 1 ? launches : 1;
}

/* The price of `cache_control` for a launch in one pass. A single pass is measured in the application's own run, where
 * caches are flushed by copying. */
static double cache_control_ms(kprof_cache_control cache_control, size_t passes)
{
    if (cache_control == KPROF_CACHE_FLUSH_NONE)
        return 0;
    return cache_control == KPROF_CACHE_FLUSH_ALL && passes > 1 ? kprof_prices.empty_ms : kprof_prices.flush_ms;
}

/* As in src/cupti/snapshot.c, each batch saves all memory and restores it before each pass and at the end. If no
 * memory is uniform, the copies are as large as the memory. */
static void add_memory(const kprof_workload *workload, size_t passes, kprof_cost *cost)
{
    double batches = (double)cost->batch_count, restores = (double)passes + 1;
    cost->saved_fits = true;
    if (passes < 2)
        return;
    cost->saved_bytes_per_batch = (double)workload->allocated_bytes;
    cost->saved_bytes = batches * cost->saved_bytes_per_batch;
    cost->restored_bytes = restores * cost->saved_bytes;
    cost->memory_s_per_gib =
        batches * (kprof_prices.save_ms_per_gib + restores * kprof_prices.restore_ms_per_gib) / 1000;
    cost->saved_fits = 2 * cost->saved_bytes_per_batch <= cost->device_bytes - KPROF_DEVICE_RESERVE_BYTES;
    cost->total_s += cost->saved_bytes_per_batch / GIB_BYTES * cost->memory_s_per_gib;
}

kprof_cost kprof_cost_of(const kprof_effort *effort, const kprof_workload *workload)
{
    const kprof_price_list *prices = &kprof_prices;
    const bool counts = workload->counts_instructions, samples = workload->samples;
    const uint32_t timelines = workload->timelines;
    size_t passes = effort->sm_pass_count + effort->other_pass_count;
    kprof_cost cost = {.counter_data_bytes = (double)passes * KPROF_COUNTER_BYTES_PER_PASS};
    cost.device_bytes = workload->device_bytes ? (double)workload->device_bytes : prices->device_bytes;
    cost.batch_ms = (double)effort->sm_pass_count * prices->sm_pass_start_ms +
                    (double)effort->other_pass_count * prices->other_pass_start_ms +
                    (samples ? prices->sample_start_ms : 0) + timelines * prices->timeline_start_ms;
    if (passes > 0 || counts || samples || timelines) { /* else there are no batches */
        /* Count the counter data of the largest batch, and nothing that the engine allocates beyond it. */
        const uint64_t most = kprof_launches_in(KPROF_BATCH_BYTES, passes > 0 ? passes : 1),
                       capacity = smaller(workload->batch ? workload->batch : most, KPROF_BATCH_MOST_LAUNCHES);
        cost.batch_counter_bytes = (double)smaller(workload->launches, capacity) * cost.counter_data_bytes;
        cost.batch_count = workload->launches / capacity + (workload->launches % capacity > 0);
    }
    cost.start_s = prices->start_s + cost.batch_counter_bytes / MIB_BYTES * prices->room_ms_per_mib / 1000;
    cost.launch_ms = (double)effort->slow_pass_count * prices->slow_pass_ms +
                     (double)(passes - effort->slow_pass_count) * prices->other_pass_ms +
                     (double)passes * cache_control_ms(workload->cache_control, passes) +
                     (double)effort->metric_count * prices->evaluation_ms + (counts ? prices->instruction_ms : 0) +
                     (samples ? prices->sample_ms : 0) + timelines * prices->timeline_ms;
    double work_ms = (double)workload->launches * cost.launch_ms + (double)cost.batch_count * cost.batch_ms;
    cost.total_s = cost.start_s + work_ms / 1000;
    add_memory(workload, passes + counts + samples + timelines, &cost);
    return cost;
}

bool kprof_limits_are_set(const kprof_limits *limits)
{
    return limits->max_passes > 0 || limits->budget_s > 0;
}

void kprof_image_variants_free(kprof_image_variants *variants)
{
    KPROF_FREE_LISTS(&variants->witnesses, &variants->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        kprof_config_image_free(&variants->items[i]);
}

void kprof_schedule_free(kprof_schedule *schedule)
{
    for (size_t i = 0; schedule->metrics && i < schedule->metric_count; i++)
        free(schedule->metrics[i].items);
    KPROF_FREE(schedule->metrics, schedule->last_passes, schedule->patched, schedule->passes);
    *schedule = (kprof_schedule){0};
}

kprof_status kprof_limits_stand_ins(kprof_host *host, const char *left_out, const kprof_strlist *kept,
                                    kprof_strlist *out)
{
    kprof_metric_info info;
    KPROF_AUTO(kprof_strlist) members = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_metric_info(host, left_out, &info);
    if (status != KPROF_OK)
        return status;
    if (info.type == KPROF_METRIC_THROUGHPUT)
        status = kprof_host_breakdown(host, left_out, &members);
    for (size_t i = 0; i < members.count && status == KPROF_OK; i++)
        if (kprof_strlist_contains_sorted(kept, members.items[i]))
            kprof_strlist_add(out, members.items[i]);
    kprof_metric_info_free(&info);
    return status;
}
