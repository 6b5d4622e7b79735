/* Builds the reports through the public interface. Nothing depends on time, place or machine. */
#include "diff_fixture.h"
#include "fixture.h"
#include "report/store/rows.h"

#include <math.h>

#include <setjmp.h>
/* cmocka.h wants these before it. */
#include <cmocka.h>

double diff_uniform(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* The sum of twelve numbers is nearly normal. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += diff_uniform(state);
    return sum;
}

double diff_noisy_time(uint64_t *state, double time_ns, double noise)
{
    double time = time_ns * exp(noise * normal(state));
    if (diff_uniform(state) < 0.05)
        time *= 1.05 + 0.3 * diff_uniform(state);
    return round(time / 32) * 32;
}

enum {
    TIME,
    CYCLES,
    SM_CLOCK,
    DRAM_CLOCK,
    DRAM_READ,
    DRAM_WRITE,
    L2,
    L2_HITS,
    INSTRUCTIONS,
    LOADS,
    OCCUPANCY,
    LONG_STALL,
    WAIT_STALL,
    METRICS
};

static const char *const names[METRICS] = {
    [TIME] = "gpu__time_duration.sum",
    [CYCLES] = "gpc__cycles_elapsed.max",
    [SM_CLOCK] = "gpc__cycles_elapsed.avg.per_second",
    [DRAM_CLOCK] = "dram__cycles_elapsed.avg.per_second",
    [DRAM_READ] = "dram__bytes_read.sum",
    [DRAM_WRITE] = "dram__bytes_write.sum",
    [L2] = "lts__t_sectors_srcunit_tex.sum",
    [L2_HITS] = "lts__t_sector_hit_rate.pct",
    [INSTRUCTIONS] = "smsp__inst_executed.sum",
    [LOADS] = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    [OCCUPANCY] = "sm__warps_active.avg.pct_of_peak_sustained_active",
    [LONG_STALL] = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    [WAIT_STALL] = "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
};
static const char *const units[METRICS] = {[TIME] = "ns",
                                           [CYCLES] = "cycle",
                                           [SM_CLOCK] = "cycle/second",
                                           [DRAM_CLOCK] = "cycle/second",
                                           [DRAM_READ] = "byte",
                                           [DRAM_WRITE] = "byte",
                                           [L2] = "sector",
                                           [L2_HITS] = "%",
                                           [INSTRUCTIONS] = "inst",
                                           [LOADS] = "request",
                                           [OCCUPANCY] = "%",
                                           [LONG_STALL] = "inst",
                                           [WAIT_STALL] = "inst"};

/* A kernel, and by what factors the new run differs. */
typedef struct kernel_row {
    const char *mangled[2]; /* NULL: not in that run */
    uint32_t blocks, launches[2];
    double time_ns;
    double factors[METRICS]; /* 0: 1 */
} kernel_row;

static const kernel_row kernels[] = {
    {{"_Z9vectorAddPKfS0_Pfi", "_Z9vectorAddPKfS0_Pfi"},
     65536,
     {12, 12},
     58500,
     {[TIME] = 1.1, [CYCLES] = 1.1, [DRAM_READ] = 1.25, [INSTRUCTIONS] = 1.04, [LONG_STALL] = 1.3}},
    {{"_Z5scaleIfEvPT_S0_i", "_Z5scaleIfEvPT_S0_i"},
     4096,
     {10, 9},
     21400,
     {[TIME] = 0.85, [CYCLES] = 0.85, [OCCUPANCY] = 1.4, [LONG_STALL] = 0.8}},
    {{"_Z6reducePKfPfi", "_Z6reducePKfPfi"}, 1024, {20, 20}, 9800, {0}},
    {{"_Z7softmaxPfi", "_Z7softmaxPfi"}, 512, {10, 10}, 14000, {[TIME] = 1.12, [SM_CLOCK] = 1 / 1.12}},
    {{"_Z9transposePKfPf", "_Z9transposePKfPf"}, 256, {3, 3}, 7100, {[TIME] = 1.3, [CYCLES] = 1.3, [L2] = 1.5}},
    {{"_Z4tileILi16EEvPf", "_Z4tileILi32EEvPf"}, 128, {20, 20}, 5300, {0}},
    {{"_Z7gather1PKiPf", NULL}, 64, {6, 0}, 3000, {0}},
    {{NULL, "_Z7gather2PKiPf"}, 32, {0, 6}, 2900, {0}},
};
#define KERNEL_COUNT (sizeof kernels / sizeof *kernels)

static double factor_of(const kernel_row *kernel, const diff_run *run, int metric)
{
    return run->is_new && kernel->factors[metric] > 0 ? kernel->factors[metric] : 1;
}

/* Time and cycles of a launch have the same noise; instructions and requests have none. */
static void fill_values(const kernel_row *kernel, const diff_run *run, uint64_t *state, double values[METRICS])
{
    const double base[METRICS] = {[SM_CLOCK] = 1.98e9,
                                  [DRAM_CLOCK] = 3.2e9,
                                  [DRAM_READ] = 2048.0 * kernel->blocks,
                                  [DRAM_WRITE] = 1024.0 * kernel->blocks,
                                  [L2] = 96.0 * kernel->blocks,
                                  [L2_HITS] = 33.5,
                                  [INSTRUCTIONS] = 184.0 * kernel->blocks,
                                  [LOADS] = 16.0 * kernel->blocks,
                                  [OCCUPANCY] = 61,
                                  [LONG_STALL] = 40,
                                  [WAIT_STALL] = 1.5};
    for (int i = 0; i < METRICS; i++) {
        const bool is_exact = i == INSTRUCTIONS || i == LOADS;
        values[i] = base[i] * factor_of(kernel, run, i) * (is_exact ? 1 : 1 + 0.001 * normal(state));
    }
    const double time = diff_noisy_time(state, kernel->time_ns, 0.004);
    values[TIME] = time * factor_of(kernel, run, TIME);
    values[CYCLES] = round(time * 1.98 * factor_of(kernel, run, CYCLES));
    values[INSTRUCTIONS] = round(values[INSTRUCTIONS]);
    values[DRAM_READ] = round(values[DRAM_READ]);
    values[DRAM_WRITE] = round(values[DRAM_WRITE]);
    values[L2] = round(values[L2]);
}

static void store_launch(kprof_ingest *ingest, const diff_run *run, kprof_launch_record *launch, uint64_t *state)
{
    double values[METRICS];
    fill_values(&kernels[launch->kernel - 1], run, state, values);
    launch->values = values;
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_LAUNCH, .launch = *launch});
    launch->launch++;
}

/* Launches in turns, as a program has them. */
static void store_launches(kprof_ingest *ingest, const diff_run *run)
{
    uint64_t state = run->seed;
    kprof_launch_record launch = {.context = 1,
                                  .stream = 7,
                                  .grid = {0, 1, 1},
                                  .block = {256, 1, 1},
                                  .mode = run->is_multiplexed ? KPROF_REPLAY_MULTIPLEX : KPROF_REPLAY_BATCH,
                                  .pass_count = 3,
                                  .reason = "",
                                  .value_count = METRICS};
    for (uint32_t turn = 0; turn < 20; turn++) {
        for (size_t i = 0; i < KERNEL_COUNT; i++) {
            launch.kernel = (uint32_t)i + 1;
            launch.grid[0] = kernels[i].blocks;
            if (turn < kernels[i].launches[run->is_new])
                store_launch(ingest, run, &launch, &state);
        }
    }
}

/* The new run is a day later. */
static int64_t start_unix_ns(const diff_run *run)
{
    return INT64_C(1790000000000000000) + (run->is_new ? INT64_C(86400000000000) : 0);
}

static void store_process(kprof_ingest *ingest, const diff_run *run)
{
    kprof_record record = {.type = KPROF_RECORD_PROCESS};
    const int64_t start_ns = start_unix_ns(run) + 500000000;
    record.process = (kprof_process_record){4242, 4200, start_ns, "gpu-host", "/home/user/app", "./app"};
    fixture_store(ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_DEVICE, .device = fixture_device()};
    record.device.chip = run->chip ? run->chip : "GH100";
    record.device.driver_version = run->is_new ? 13010 : 13000;
    fixture_store(ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_METRICS};
    record.metrics = (kprof_metrics_record){
        .chip = run->chip ? run->chip : "GH100", .pass_count = 3, .count = METRICS, .names = names};
    fixture_store(ingest, &record);
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        const char *mangled = kernels[i].mangled[run->is_new];
        record = (kprof_record){.type = KPROF_RECORD_KERNEL, .kernel = fixture_kernel()};
        record.kernel.kernel = (uint32_t)i + 1;
        record.kernel.mangled = mangled ? mangled : "_Z6unusedv";
        fixture_store(ingest, &record);
    }
}

void diff_fixture_write(const char *path, const diff_run *run)
{
    static const char *const sets[] = {"full", NULL};
    const char *command_line = run->command_line ? run->command_line : "kprof --set full ./app";
    const kprof_run_info info = {command_line, "/home/user", "0.1.0", sets, start_unix_ns(run)};
    kprof_report *report = NULL;
    kprof_ingest *ingest = NULL;
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &info, &report), KPROF_OK);
    for (int i = 0; i < METRICS; i++) {
        const kprof_model_metric row = {names[i], units[i], "", "hardware"};
        kprof_store_metric(report, &row);
        assert_int_equal(report->status, KPROF_OK);
    }
    ingest = kprof_ingest_new(report);
    assert_int_equal(kprof_report_begin(report), KPROF_OK);
    store_process(ingest, run);
    store_launches(ingest, run);
    kprof_report_set_whole(report, 4242);
    assert_int_equal(kprof_report_commit(report), KPROF_OK);
    kprof_ingest_free(ingest);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}
