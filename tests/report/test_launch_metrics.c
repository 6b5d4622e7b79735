/* Occupancy against known launches, and that every name of the launch table has a value. */

#include "fixture.h"
#include "metricset/expr.h"
#include "report/store/launch_metrics.h"
#include "test.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

typedef struct launch_setup {
    kprof_launch_record launch;
    kprof_kernel_record kernel;
    kprof_device_record device;
} launch_setup;

/* A launch on an H200 whose driver has not told the occupancy. */
static launch_setup make(uint32_t threads, uint32_t registers, uint32_t smem)
{
    launch_setup made = {.kernel = fixture_kernel(), .device = fixture_device()};
    made.launch = (kprof_launch_record){.grid = {1000, 1, 1}, .block = {threads, 1, 1}, .dynamic_smem_bytes = smem};
    made.kernel.registers_per_thread = registers;
    return made;
}

static kprof_occupancy occupancy(const launch_setup *made)
{
    return kprof_occupancy_compute(&(kprof_launch_facts){&made->launch, &made->kernel, &made->device, 0});
}

TEST(test_limited_by_warps)
{
    launch_setup made = make(256, 16, 0);
    kprof_occupancy out = occupancy(&made);
    assert_true(out.limit_warps == 8 && out.limit_blocks == 32 && out.limit_registers == 16);
    assert_true(out.limit_smem == 228); /* 233,472 / 1,024 of the system */
    assert_true(out.blocks_per_sm == 8 && out.warps_per_sm == 64 && out.warps_pct == 100);
    assert_float_equal(out.waves, 1000.0 / (132 * 8), 1e-12);
}

/* 168 registers by 32 are 5,376 a warp; 3 warps fit a quarter of the registers, 12 the SM; a block has 12 warps. As ncu
 * says of the GEMM kernels with 384 threads and 168 registers: one block. */
TEST(test_limited_by_registers)
{
    launch_setup made = make(384, 168, 0);
    kprof_occupancy out = occupancy(&made);
    assert_true(out.registers_per_thread_allocated == 168);
    assert_true(out.limit_registers == 1 && out.limit_warps == 5);
    assert_true(out.blocks_per_sm == 1 && out.warps_per_sm == 12 && out.warps_pct == 18.75);
}

TEST(test_registers_are_rounded)
{
    launch_setup made = make(128, 33, 0); /* 33 * 32 = 1,056: 5 units of 256 */
    kprof_occupancy out = occupancy(&made);
    assert_true(out.registers_per_thread_allocated == 40);
    assert_true(out.limit_registers == 12); /* floor(16,384 / 1,280) * 4 / 4 warps */
    made = make(1024, 96, 0);               /* 98,304 registers: more than a block can have */
    assert_true(occupancy(&made).limit_registers == 0);
}

TEST(test_limited_by_shared_memory)
{
    launch_setup made = make(128, 32, 49000);
    kprof_occupancy out = occupancy(&made);
    assert_true(out.smem_per_block_bytes == 50024);
    assert_true(out.smem_per_block_allocated_bytes == 50048); /* units of 128 */
    assert_true(out.limit_smem == 4 && out.blocks_per_sm == 4);
    made.launch.configured_smem_bytes = 102400;
    assert_true(occupancy(&made).limit_smem == 2);
    made.device.cc_major = 7;
    assert_true(occupancy(&made).smem_per_block_allocated_bytes == 50176); /* units of 256 */
}

TEST(test_driver_wins)
{
    launch_setup made = make(256, 16, 0);
    made.launch.max_blocks_per_sm = 6;
    kprof_occupancy out = occupancy(&made);
    assert_true(out.limit_warps == 8 && out.blocks_per_sm == 6 && out.warps_pct == 75);
}

static const kprof_what_if_step *step_of(const kprof_what_if *curve, uint32_t value)
{
    for (size_t i = 0; i < curve->step_count; i++) {
        if (value >= curve->steps[i].from && value <= curve->steps[i].to)
            return &curve->steps[i];
    }
    fail_msg("%s has no %u", curve->id, value);
    return NULL;
}

/* Each value of a curve is what a launch with that value has, and steps follow each other without a gap. */
TEST(test_what_if_agrees_with_launches)
{
    launch_setup base = make(384, 40, 20000);
    base.kernel.static_smem_bytes = 4000;
    base.launch.max_blocks_per_sm = 5; /* as it is; not if something changes */
    kprof_what_if curves[KPROF_WHAT_IFS_MAX];
    const size_t count =
        kprof_what_if_compute(&(kprof_launch_facts){&base.launch, &base.kernel, &base.device, 0}, curves);
    assert_int_equal(count, KPROF_WHAT_IFS_MAX);
    assert_true(curves[0].now == 384 && curves[1].now == 40 && curves[2].now == 24000);
    base.launch.max_blocks_per_sm = 0;
    for (uint32_t threads = 1; threads <= 1024; threads += 31) {
        launch_setup other = base;
        other.launch.block[0] = threads;
        assert_true(step_of(&curves[0], threads)->warps_pct == occupancy(&other).warps_pct);
    }
    for (uint32_t registers = 1; registers <= 255; registers++) {
        launch_setup other = base;
        other.kernel.registers_per_thread = registers;
        assert_true(step_of(&curves[1], registers)->warps_pct == occupancy(&other).warps_pct);
    }
    for (uint32_t bytes = 4000; bytes <= base.device.max_smem_per_block_optin_bytes; bytes += 99) {
        launch_setup other = base;
        other.launch.dynamic_smem_bytes = bytes - 4000;
        assert_true(step_of(&curves[2], bytes)->warps_pct == occupancy(&other).warps_pct);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 1; k < curves[i].step_count; k++)
            assert_true(curves[i].steps[k].from == curves[i].steps[k - 1].to + 1);
    }
    static const uint32_t odd[] = {0, 1, 3, 257, 4096, UINT32_MAX};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            launch_setup other = base;
            other.device.warp_size = odd[i];
            other.device.max_smem_per_block_optin_bytes = odd[k];
            other.launch.dynamic_smem_bytes = other.kernel.registers_per_thread = odd[k];
            assert_true(kprof_what_if_compute(&(kprof_launch_facts){&other.launch, &other.kernel, &other.device, 0},
                                              curves) <= KPROF_WHAT_IFS_MAX);
        }
    }
    memset(&base.device, 0, sizeof base.device);
    assert_int_equal(kprof_what_if_compute(&(kprof_launch_facts){&base.launch, &base.kernel, &base.device, 0}, curves),
                     0);
}

/* Only the driver knows of barriers: 4 blocks of two warps fit with 16 barriers each, as on GH100, where all else
 * allows
 * 32. It stays so whatever else is varied. */
TEST(test_limited_by_barriers)
{
    launch_setup base = make(64, 16, 0);
    assert_true(isnan(occupancy(&base).limit_barriers));
    base.launch.max_blocks_per_sm = 32;
    assert_true(isnan(occupancy(&base).limit_barriers));
    base.launch.max_blocks_per_sm = 4;
    kprof_occupancy out = occupancy(&base);
    assert_true(out.limit_barriers == 4 && out.blocks_per_sm == 4 && out.warps_pct == 12.5);
    kprof_what_if curves[KPROF_WHAT_IFS_MAX];
    assert_int_equal(kprof_what_if_compute(&(kprof_launch_facts){&base.launch, &base.kernel, &base.device, 0}, curves),
                     3);
    assert_true(step_of(&curves[0], 64)->warps_pct == 12.5 && step_of(&curves[0], 512)->warps_pct == 100);
    assert_true(step_of(&curves[1], 32)->warps_pct == 12.5);
    assert_true(step_of(&curves[2], 0)->warps_pct == 12.5 && step_of(&curves[2], 100000)->warps_pct == 6.25);
}

/* ncu shows 32 of kernels with one barrier or none on an H200, and 21 of one with three. */
TEST(test_limit_by_barriers_of_the_code)
{
    static const struct {
        uint32_t barriers, major, minor, driver;
        double limit; /* NaN: not known */
    } rows[] = {{0, 9, 0, 0, NAN}, {1, 9, 0, 0, 32},  {2, 9, 0, 0, 32},
                {4, 9, 0, 0, 21},  {17, 9, 0, 0, 4},  {17, 8, 0, 0, 4},
                {17, 8, 6, 0, 2},  {17, 12, 0, 0, 2}, {17, 13, 0, 0, NAN},
                {1, 13, 0, 0, 32}, {17, 9, 0, 4, 4},  {17, 9, 0, 32, NAN} /* the driver says that more fit */,
                {4, 9, 0, 3, 3} /* nothing else explains the driver's answer */};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        launch_setup made = make(64, 16, 0);
        made.kernel.barriers = rows[i].barriers;
        made.device.cc_major = rows[i].major;
        made.device.cc_minor = rows[i].minor;
        made.launch.max_blocks_per_sm = rows[i].driver;
        const double limit = occupancy(&made).limit_barriers;
        if (isnan(rows[i].limit) ? !isnan(limit) : limit != rows[i].limit)
            fail_msg("row %zu: %g", i, limit);
    }
}

TEST(test_unknown_device)
{
    launch_setup made = make(256, 16, 0);
    memset(&made.device, 0, sizeof made.device);
    kprof_occupancy out = occupancy(&made);
    assert_true(isnan(out.limit_warps) && isnan(out.limit_blocks) && isnan(out.blocks_per_sm));
    assert_true(isnan(out.warps_pct) && isnan(out.waves));
}

static double value_of(const launch_setup *made, const char *name)
{
    kprof_launch_value values[KPROF_LAUNCH_VALUE_MAX];
    size_t count = kprof_launch_values(&(kprof_launch_facts){&made->launch, &made->kernel, &made->device, 0}, values);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(values[i].name, name) == 0)
            return values[i].value;
    }
    fail_msg("%s has no value", name);
    return NAN;
}

TEST(test_every_name_has_a_value)
{
    launch_setup made = make(256, 16, 4096);
    kprof_launch_value values[KPROF_LAUNCH_VALUE_MAX];
    size_t names = 0;
    for (const kprof_launch_metric *metric = kprof_launch_metrics; metric->name; metric++, names++)
        (void)value_of(&made, metric->name);
    assert_int_equal(kprof_launch_values(&(kprof_launch_facts){&made.launch, &made.kernel, &made.device, 0}, values),
                     names);
}

TEST(test_values)
{
    launch_setup made = make(250, 16, 4096);
    made.kernel.static_smem_bytes = 100;
    assert_true(value_of(&made, "launch__grid_size") == 1000);
    assert_true(value_of(&made, "launch__thread_count") == 250000);
    assert_true(value_of(&made, "launch__warps_per_block") == 8);
    assert_true(value_of(&made, "launch__shared_mem_per_block") == 5220);
    assert_true(value_of(&made, "launch__cluster_max_active") == 0); /* no clusters */
    assert_true(isnan(value_of(&made, "launch__shared_mem_config_size")));
    made.launch.cluster[0] = made.launch.cluster[1] = made.launch.cluster[2] = 1;
    assert_true(isnan(value_of(&made, "launch__cluster_max_active"))); /* clusters, but not known */
    assert_true(value_of(&made, "device__attribute_max_warps_per_multiprocessor") == 64);
}

static double look_up(void *made, const char *name)
{
    return value_of(made, name);
}

/* An item of the shipped section that is an expression over the launch alone. */
static double item_of(launch_setup *made, const char *section, const char *name)
{
    char path[512];
    size_t size;
    const cJSON *item;
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_expr *expression = NULL;
    snprintf(path, sizeof path, "%s/sections/%s.json", KPROF_METRICSETS_DIR, section);
    KPROF_AUTO_FREE char *text = fixture_read(path, &size);
    cJSON *whole = cJSON_ParseWithLength(text, size);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(whole, "items"))
    {
        const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(item, "name"));
        if (found && strcmp(found, name) == 0)
            assert_int_equal(kprof_expr_parse(&pool, cJSON_GetObjectItem(item, "expression")->valuestring, &expression),
                             KPROF_OK);
    }
    cJSON_Delete(whole);
    assert_non_null(expression);
    return kprof_expr_evaluate(expression, look_up, made);
}

/* 2 blocks of 8 warps in each of 500 clusters take 8,000 of the 132 * 64 slots. */
TEST(test_cluster_occupancy)
{
    static const char name[] = "derived__cluster_occupancy.pct";
    launch_setup made = make(256, 16, 0);
    assert_true(isnan(item_of(&made, "Occupancy", name))); /* no clusters */
    made.launch.cluster[0] = 2;
    made.launch.cluster[1] = made.launch.cluster[2] = 1;
    assert_true(isnan(item_of(&made, "Occupancy", name))); /* not known */
    made.launch.max_active_clusters = 500;
    assert_float_equal(item_of(&made, "Occupancy", name), 100.0 * 8000 / (132 * 64), 1e-9);
}

/* The registers that the compiler counts, those that GH100 gives each thread and those that its SMs set aside are three
 * numbers with three names. */
TEST(test_registers_have_names)
{
    launch_setup made = make(128, 12, 0);
    assert_true(value_of(&made, "launch__registers_per_thread_compiled") == 12);
    assert_true(value_of(&made, "launch__registers_per_thread") == 16);
    assert_true(value_of(&made, "launch__registers_per_thread_allocated") == 16);
    made.kernel.registers_per_thread = 33;
    assert_true(value_of(&made, "launch__registers_per_thread_compiled") == 33);
    assert_true(value_of(&made, "launch__registers_per_thread") == 33);
    assert_true(value_of(&made, "launch__registers_per_thread_allocated") == 40);
    made.kernel.registers_per_thread = 0; /* the driver did not tell */
    assert_true(isnan(value_of(&made, "launch__registers_per_thread_compiled")));
    assert_true(isnan(value_of(&made, "launch__registers_per_thread")));
    assert_true(isnan(value_of(&made, "launch__registers_per_thread_allocated")));
}

/* It has no shape of its own, nor registers. */
TEST(test_graph)
{
    static const char *const told[] = {"launch__context_id", "launch__device_id", "launch__sm_count",
                                       "launch__stream_id"};
    launch_setup made = make(0, 0, 0);
    memset(made.launch.grid, 0, sizeof made.launch.grid);
    made.kernel = (kprof_kernel_record){0};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        assert_false(isnan(value_of(&made, told[i])));
    kprof_launch_value values[KPROF_LAUNCH_VALUE_MAX];
    size_t known = 0,
           count = kprof_launch_values(&(kprof_launch_facts){&made.launch, &made.kernel, &made.device, 0}, values);
    for (size_t i = 0; i < count; i++)
        known += strncmp(values[i].name, "device__", 8) != 0 && !isnan(values[i].value);
    assert_int_equal(known, sizeof told / sizeof *told);
}
