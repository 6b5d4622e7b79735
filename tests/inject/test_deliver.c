/* A range begins before its kernel: the report gets the kernel's share of its values. */
#include "inject/deliver.h"
#include "inject/evaluate.h"
#include "inject/process.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { METRICS = 15, WITNESSES = 3 };

/* A kernel of 20 us in a range of 25 us, with 1,050 cycles around the kernel that every range has. */
#define RANGE_NS      25000.0
#define RANGE_CYCLES  40000.0
#define KERNEL_CYCLES (32000.0 - 1050)

/* The factor of a value. */
static const struct {
    char *name;
    double factor;
} rows[METRICS] = {
    {"gpu__time_duration.sum", 0.8},
    {"sm__cycles_elapsed.max", 0.8},
    {"sm__cycles_elapsed.avg.per_second", 1},
    {"sm__cycles_active.avg", 1},
    {"dram__bytes.sum", 1},
    {"dram__bytes.sum.per_second", 1.25},
    {"dram__bytes.sum.peak_sustained_elapsed", 0.8},
    {"dram__bytes.sum.peak_sustained_elapsed.per_second", 1},
    {"smsp__inst_executed.avg.per_cycle_elapsed", 1.25},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 1.25},
    {"l1tex__throughput.avg.pct_of_peak_sustained_active", 1},
    {"gpc__cycles_in_frame.max", 0.8},
    {"sm__inst_executed.avg.per_cycle_in_frame", 1.25},
    {"dram__throughput.avg.pct_of_peak_sustained_frame", 1.25},
    {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", 1},
};

static char *metric_names[METRICS];
static char *witness_names[WITNESSES] = {KPROF_KERNEL_CYCLES, KPROF_TIME_WITNESS, KPROF_RANGE_CYCLES};
static uint32_t patched[METRICS];
static kprof_chip_metrics metrics = {.chip = "GH100",
                                     .metrics = {metric_names, METRICS, METRICS},
                                     .patched = patched,
                                     .witnesses = {witness_names, WITNESSES, WITNESSES},
                                     .witness_passes = {3, 3, 1}};
static double values[METRICS];
static kprof_evaluation evaluation;
static kprof_launch_record record;

static struct {
    unsigned count;
    char reason[512];
    uint32_t witnesses;
    double cycles_spread, time_spread; /* as the stand-in computes them */
} told;

/* In place of the engine's. */
double kprof_witness_spread_pct(const kprof_witness *witness)
{
    return witness->high - witness->low;
}

void kprof_process_write(const kprof_record *written)
{
    const kprof_launch_record *launch = &written->launch;
    told.witnesses = launch->witness_count;
    told.cycles_spread = launch->witness_spreads_pct[0];
    told.time_spread = launch->witness_spreads_pct[1];
    assert_int_equal(written->type, KPROF_RECORD_LAUNCH);
    told.count++;
    snprintf(told.reason, sizeof told.reason, "%s", launch->reason);
}

static int set_up(void **state)
{
    for (size_t i = 0; i < METRICS; i++) {
        metric_names[i] = rows[i].name;
        values[i] = 100;
    }
    metrics.witnesses.count = WITNESSES;
    evaluation = (kprof_evaluation){.values = values, .status = KPROF_OK};
    evaluation.witnesses[0] = (kprof_witness){9, KERNEL_CYCLES, KERNEL_CYCLES, KERNEL_CYCLES + 7, 0};
    evaluation.witnesses[1] = (kprof_witness){9, RANGE_NS, RANGE_NS, RANGE_NS + 8, 0};
    evaluation.witnesses[2] = (kprof_witness){1, RANGE_CYCLES, RANGE_CYCLES, RANGE_CYCLES, KERNEL_CYCLES};
    record = (kprof_launch_record){.grid = {1, 1, 1}, .block = {1, 1, 1}};
    told.count = 0;
    return 0;
}

static void assert_values(bool is_scaled)
{
    for (size_t i = 0; i < METRICS; i++)
        assert_true(fabs(record.values[i] - 100 * (is_scaled ? rows[i].factor : 1)) < 1e-9);
    assert_int_equal(told.count, 1);
}

TEST(test_lead_is_left_out)
{
    kprof_deliver(&metrics, &evaluation, &record, "why");
    assert_values(true);
    assert_int_equal(record.range_lead_ns, 5000);
    assert_string_equal(told.reason, "why");
    assert_int_equal(told.witnesses, 2); /* the third is in one pass, and compares nothing */
    assert_true(told.cycles_spread == 7);
    assert_true(isnan(told.time_spread));
}

/* A metric that is collected is no witness. */
TEST(test_time_is_collected)
{
    metric_names[4] = (char *)KPROF_TIME_WITNESS;
    witness_names[1] = (char *)"another";
    values[4] = RANGE_NS;
    kprof_deliver(&metrics, &evaluation, &record, "");
    witness_names[1] = (char *)KPROF_TIME_WITNESS;
    assert_true(fabs(record.values[0] - 80) < 1e-9);
    assert_true(fabs(record.values[4] - 0.8 * RANGE_NS) < 1e-9);
    assert_int_equal(record.range_lead_ns, 5000);
}

/* CUPTI's range begins with its kernel, whatever the witnesses tell. */
TEST(test_range_of_cupti)
{
    evaluation.automatic = true;
    kprof_deliver(&metrics, &evaluation, &record, "");
    assert_values(false);
    assert_true(told.cycles_spread == 7);
    assert_true(told.time_spread == 8);
    assert_int_equal(record.range_lead_ns, 0);
    assert_string_equal(told.reason, "");
}

/* Launches of a sample may take differently long: what counts is the pass with the time of the range. */
TEST(test_kernel_of_the_same_pass)
{
    evaluation.witnesses[0].mean = 2 * RANGE_CYCLES;
    kprof_deliver(&metrics, &evaluation, &record, "");
    assert_values(true);
    assert_int_equal(record.range_lead_ns, 5000);
}

/* A kernel that takes all of its range, and more by noise, leaves nothing out. */
TEST(test_no_lead)
{
    evaluation.witnesses[2].beside = RANGE_CYCLES - 1000;
    kprof_deliver(&metrics, &evaluation, &record, "");
    assert_values(false);
    assert_int_equal(record.range_lead_ns, 0);
    assert_string_equal(told.reason, "");
}

static void assert_early(const char *before)
{
    char expected[512];
    kprof_deliver(&metrics, &evaluation, &record, before);
    snprintf(expected, sizeof expected, "%s%s" KPROF_BEGINS_EARLY, before, *before ? "; " : "");
    assert_values(false);
    assert_int_equal(record.range_lead_ns, 0);
    assert_string_equal(told.reason, expected);
}

TEST(test_unknown_lead_is_told)
{
    metrics.witnesses.count = 2; /* a chip, or a plan, without the counter */
    assert_early("why");
    set_up(NULL);
    evaluation.witnesses[2].passes = 0; /* its passes were not measured */
    assert_early("");
    set_up(NULL);
    evaluation.witnesses[2].mean = NAN;
    assert_early("");
    set_up(NULL);
    evaluation.witnesses[2].beside = NAN; /* the pass of the range did not count the kernel */
    assert_early("");
}

/* Between the kernels of a graph the GPU executes none, either. */
TEST(test_graph)
{
    record = (kprof_launch_record){.graph_node = 0};
    assert_true(kprof_launch_is_graph(&record));
    assert_early("");
}

TEST(test_no_times)
{
    metrics.witnesses.count = 2;
    metrics.metrics = (kprof_strlist){metric_names + 3, 2, 2};
    kprof_deliver(&metrics, &evaluation, &record, "");
    metrics.metrics = (kprof_strlist){metric_names, METRICS, METRICS};
    assert_string_equal(told.reason, "");
}

AROUND_EACH(set_up, NULL)
