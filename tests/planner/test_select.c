/* --metrics, --section and --query-metrics resolved for a chip: the words that ncu's users know, and unknown names. */
#include "log_capture.h"
#include "planner_test.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* The plan of one word of --metrics. */
static kprof_status plan_word(const char *word, kprof_plan *plan)
{
    char *items[] = {(char *)word};
    kprof_selection selection = {.metrics = {items, 1, 1}};
    return kprof_plan_make(shipped_catalog, &selection, gh100, plan);
}

static void assert_shown(const char *word, const char *const *names, size_t count)
{
    kprof_plan plan;
    assert_int_equal(plan_word(word, &plan), KPROF_OK);
    assert_int_equal(plan.section_count, 0);
    if (plan.shown.count != count)
        fail_msg("%s gives %zu names, not %zu", word, plan.shown.count, count);
    for (size_t i = 0; i < count; i++) {
        if (!kprof_strlist_contains(&plan.shown, names[i]))
            fail_msg("%s does not give %s", word, names[i]);
    }
    kprof_plan_free(&plan);
}

#define ASSERT_SHOWN(word, ...)                                                                                        \
    do {                                                                                                               \
        const char *const names[] = {__VA_ARGS__};                                                                     \
        assert_shown(word, names, sizeof(names) / sizeof(names[0]));                                                   \
    } while (0)

TEST(test_words)
{
    ASSERT_SHOWN("dram__bytes.sum.per_second", "dram__bytes.sum.per_second");
    ASSERT_SHOWN("dram__bytes", "dram__bytes.avg", "dram__bytes.max", "dram__bytes.min", "dram__bytes.sum");
    ASSERT_SHOWN("l1tex__t_sector_hit_rate", "l1tex__t_sector_hit_rate.pct", "l1tex__t_sector_hit_rate.ratio",
                 "l1tex__t_sector_hit_rate.max_rate");
    ASSERT_SHOWN("TPC.TriageCompute.sm__cycles_active", "TPC.TriageCompute.sm__cycles_active.avg",
                 "TPC.TriageCompute.sm__cycles_active.max", "TPC.TriageCompute.sm__cycles_active.min",
                 "TPC.TriageCompute.sm__cycles_active.sum");
    ASSERT_SHOWN("launch__grid_size", "launch__grid_size");
    ASSERT_SHOWN("regex:^launch__grid_(size|dim_x)$", "launch__grid_size", "launch__grid_dim_x");
    ASSERT_SHOWN("regex:^dram__bytes_(read|write)$", "dram__bytes_read.avg", "dram__bytes_read.max",
                 "dram__bytes_read.min", "dram__bytes_read.sum", "dram__bytes_write.avg", "dram__bytes_write.max",
                 "dram__bytes_write.min", "dram__bytes_write.sum");
    ASSERT_SHOWN("regex:^dram__bytes.*\\.sum$", "dram__bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum");
    ASSERT_SHOWN("breakdown:gpu__dram_throughput", "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
                 "fbpa__dram_sectors.avg.pct_of_peak_sustained_elapsed");
    ASSERT_SHOWN("breakdown:gpu__dram_throughput.max.pct_of_peak_sustained_elapsed",
                 "dram__cycles_active.max.pct_of_peak_sustained_elapsed",
                 "fbpa__dram_sectors.max.pct_of_peak_sustained_elapsed");
    ASSERT_SHOWN("group:SchedulerStats", "smsp__warps_active.avg.per_cycle_active",
                 "smsp__warps_eligible.avg.per_cycle_active", "smsp__issue_active.avg.per_cycle_active",
                 "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
                 "smsp__issue_active.avg.pct_of_peak_sustained_active");
}

/* The tables of memory that ncu has are those of a section of kprof's, of which all names are to be the same. */
TEST(test_groups_of_ncu)
{
    static const char *const tables[] = {"group:memory__chart", "group:memory__dram_table",
                                         "group:memory__shared_table", "group:memory__first_level_cache_table",
                                         "group:memory__l2_cache_table"};
    kprof_plan section, group;
    assert_int_equal(plan_word("group:MemoryWorkloadAnalysis_Tables", &section), KPROF_OK);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        assert_int_equal(plan_word(tables[i], &group), KPROF_OK);
        assert_int_equal(group.shown.count, section.shown.count);
        kprof_plan_free(&group);
    }
    assert_int_equal(plan_word("group:memory__l2_cache_evict_policy_table", &group), KPROF_OK);
    assert_true(group.shown.count > 0 && group.shown.count != section.shown.count);
    kprof_plan_free(&group);
    kprof_plan_free(&section);
}

static void assert_refused(const char *word, kprof_status expected, const char *reason)
{
    log_capture capture;
    kprof_plan plan;
    log_capture_start(&capture);
    assert_int_equal(plan_word(word, &plan), expected);
    if (!strstr(capture.last, reason))
        fail_msg("%s: \"%s\" lacks \"%s\"", word, capture.last, reason);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_unknown)
{
    assert_refused("dram__bytes.sum.per_secnd", KPROF_UNKNOWN_NAME, "did you mean \"dram__bytes.sum.per_second\"?");
    assert_refused("dram__inst_executed.sum", KPROF_UNKNOWN_NAME, "kprof list metrics shows those that are known");
    assert_refused("drom__bytes.sum", KPROF_UNKNOWN_NAME, "did you mean \"dram__bytes.sum\"?");
    assert_refused("launch__grid_sise", KPROF_UNKNOWN_NAME, "did you mean \"launch__grid_size\"?");
    assert_refused("launch__grid_size.sum", KPROF_UNKNOWN_NAME, "did you mean \"launch__grid_size\"?");
    assert_refused("regex:^nothing_like_it$", KPROF_UNKNOWN_NAME,
                   "matches no metric of chip GH100; kprof list metrics has all");
    assert_refused("regex:(", KPROF_USAGE, "character 2");
    assert_refused("breakdown:dram__bytes", KPROF_UNKNOWN_NAME, "is not a throughput metric");
    assert_refused("breakdown:launch__grid_size", KPROF_UNKNOWN_NAME, "is not a throughput metric");
    assert_refused("group:Nothing", KPROF_UNKNOWN_NAME, "there is no section of that name");
    assert_refused("group:memory__tables", KPROF_UNKNOWN_NAME, "kprof list sections tells which there are");
    assert_refused("group:Nvlink", KPROF_UNKNOWN_NAME, "CUPTI counts NVLink for the whole GPU");
    assert_refused("pcie__read_bytes.sum", KPROF_UNKNOWN_NAME,
                   "cannot be collected per kernel on chip GH100: CUPTI counts PCI Express for the whole GPU");
    assert_refused("nvlrx__bytes.sum", KPROF_UNKNOWN_NAME, "CUPTI counts NVLink for the whole GPU");
    assert_refused("dram__write_bytes.sum", KPROF_UNKNOWN_NAME, "did you mean \"dram__bytes_write.sum\"?");
    assert_refused("sm__active_cycles.avg", KPROF_UNKNOWN_NAME, "did you mean \"sm__cycles_active.avg\"?");
    assert_refused("l2__throughput.avg", KPROF_UNKNOWN_NAME, "did you mean \"lts__throughput.avg\"?");
    assert_refused("dram__bytes_*.sum", KPROF_UNKNOWN_NAME, "did you mean \"regex:^dram__bytes_.*\\.sum$\"?");
    assert_refused("^dram__bytes.*", KPROF_UNKNOWN_NAME, "did you mean \"regex:^dram__bytes.*\"?");
    assert_refused("sm__|dram__", KPROF_UNKNOWN_NAME, "did you mean \"regex:sm__|dram__\"?");
    assert_refused("dram.*", KPROF_UNKNOWN_NAME, "did you mean \"regex:dram.*\"?"); /* there are aliases */
    assert_refused("source:^inst", KPROF_UNKNOWN_NAME, "did you mean \"regex:^source:.*(?:inst)\"?");
    assert_refused("smsp__warp_active.avg", KPROF_UNKNOWN_NAME, "did you mean \"smsp__warps_active.avg\"?");
    assert_refused("lts__hit_rate.pct", KPROF_UNKNOWN_NAME, "did you mean \"lts__t_sector_hit_rate.pct\"?");
    assert_refused("sm__warps_active.avg.pct_of_peak_sustained", KPROF_UNKNOWN_NAME,
                   "did you mean \"sm__warps_active.avg.pct_of_peak_sustained_active\"?");
    assert_refused("sm__ops_path_tensor_src_fp8_dst_fp32.sum", KPROF_UNKNOWN_NAME,
                   "did you mean \"sm__ops_path_tensor_src_fp8.sum\"?");
    assert_refused("sm__ops_path_tensor_src_fp16_dst_fp32.sum", KPROF_UNKNOWN_NAME,
                   "did you mean \"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum\"?");
    assert_refused("smsp__sass_thread_inst_executed_op_fp31_pred_on.sum", KPROF_UNKNOWN_NAME,
                   "did you mean \"smsp__sass_thread_inst_executed_op_fp32_pred_on.sum\"?");
    assert_refused("launch__func_cache_config", KPROF_UNKNOWN_NAME, "launch__shared_mem_config_size");
    assert_refused("device__attribute_architecture", KPROF_UNKNOWN_NAME, "cuDeviceGetAttribute");
    assert_refused("all", KPROF_UNKNOWN_NAME, "--set full has the most useful ones");
}

/* The planner refuses a selection that CUPTI would take seconds for, and names a way out. */
TEST(test_too_much)
{
    kprof_selection selection = {.metrics = KPROF_STRLIST_INIT};
    log_capture capture;
    kprof_plan plan;
    assert_refused("regex:.*", KPROF_USAGE, "more than the 2048 that kprof plans at once");
    assert_refused("regex:^(sm|smsp|l1tex|gpc|gpu|fbpa|idc|raster|ctc|dram)__.*\\.sum$", KPROF_USAGE,
                   "more than the 1024 base names of chip GH100");
    for (size_t i = 0; i < 33; i++) {
        char word[32];
        snprintf(word, sizeof word, "regex:^dram__bytes_{%zu}read", i);
        assert_true(kprof_strlist_add(&selection.metrics, word));
    }
    log_capture_start(&capture);
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, gh100, &plan), KPROF_USAGE);
    assert_non_null(strstr(capture.last, "33 patterns, more than the 32"));
    assert_non_null(strstr(capture.last, "join some"));
    free(selection.metrics.items[--selection.metrics.count]);
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, gh100, &plan), KPROF_UNKNOWN_NAME);
    kprof_log_set_sink(NULL, NULL);
    kprof_strlist_free(&selection.metrics);
}

TEST(test_every_unknown_is_named)
{
    char *items[] = {(char *)"foo__one.sum", (char *)"dram__bytes.sum", (char *)"foo__two.sum"};
    kprof_selection selection = {.metrics = {items, 3, 3}};
    log_capture capture;
    kprof_plan plan;
    log_capture_start(&capture);
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, gh100, &plan), KPROF_UNKNOWN_NAME);
    assert_int_equal(capture.count, 2);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_section_and_metric)
{
    char *sections[] = {(char *)"regex:^Occu"};
    char *metrics[] = {(char *)"dram__bytes.sum", (char *)"launch__block_size", (char *)"dram__bytes.sum"};
    kprof_selection selection = {.sections = {sections, 1, 1}, .metrics = {metrics, 3, 3}};
    kprof_plan plan;
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, gh100, &plan), KPROF_OK);
    assert_string_equal(plan.chip, "GH100");
    assert_int_equal(plan.section_count, 1);
    assert_string_equal(plan.sections[0].id, "Occupancy");
    assert_int_equal(plan.shown.count, 2);
    assert_true(kprof_strlist_contains(&plan.collect, "dram__bytes.sum"));
    assert_true(kprof_strlist_contains(&plan.collect, "sm__warps_active.avg.pct_of_peak_sustained_active"));
    assert_false(kprof_strlist_contains(&plan.collect, "launch__block_size"));
    for (size_t i = 1; i < plan.collect.count; i++)
        assert_true(strcmp(plan.collect.items[i - 1], plan.collect.items[i]) < 0);
    assert_int_equal(plan.variants.items[0].pass_count, plan.pass_count);
    kprof_plan_free(&plan);
}

TEST(test_alternatives)
{
    char *sections[] = {(char *)"MemoryWorkloadAnalysis"};
    kprof_selection selection = {.sections = {sections, 1, 1}};
    kprof_host *other;
    kprof_plan plan;
    assert_int_equal(kprof_host_open("GB202", NULL, &other), KPROF_OK);
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, other, &plan), KPROF_OK);
    assert_true(kprof_strlist_contains(&plan.collect, "dram__bytes_op_read.sum"));
    assert_false(kprof_strlist_contains(&plan.collect, "dram__bytes_read.sum"));
    kprof_plan_free(&plan);
    kprof_host_close(other);
}

typedef struct query_count {
    size_t rows, launch;
    char first[128];
} query_count;

static kprof_status count_row(void *user, const kprof_query_row *row)
{
    query_count *count = user;
    if (count->rows++ == 0)
        snprintf(count->first, sizeof(count->first), "%s", row->name);
    count->launch += strcmp(row->kind, "launch") == 0;
    return row->unit && row->description ? KPROF_OK : KPROF_INTERNAL;
}

static query_count ask(kprof_query_mode mode, const char *name)
{
    char *items[] = {(char *)name};
    kprof_strlist names = {items, name ? 1 : 0, 1};
    query_count count = {0, 0, ""};
    kprof_query query = {shipped_catalog, mode, &names, count_row, &count};
    assert_int_equal(kprof_query_metrics(gh100, &query), KPROF_OK);
    return count;
}

TEST(test_query)
{
    query_count all = ask(KPROF_QUERY_BASE, NULL);
    assert_true(all.rows > 3000);
    assert_true(all.launch > 40);
    assert_int_equal(ask(KPROF_QUERY_BASE, "regex:^dram__bytes").rows, 3);
    query_count suffixes = ask(KPROF_QUERY_SUFFIX, "dram__bytes");
    assert_int_equal(suffixes.rows, 44);
    assert_string_equal(suffixes.first, "dram__bytes.avg");
    log_capture capture;
    log_capture_start(&capture);
    kprof_query bad = {shipped_catalog, KPROF_QUERY_SUFFIX, NULL, count_row, &all};
    assert_int_equal(kprof_query_metrics(gh100, &bad), KPROF_USAGE);
    kprof_log_set_sink(NULL, NULL);
}

/* The words that a run takes. */
TEST(test_query_expands)
{
    query_count parts = ask(KPROF_QUERY_BASE, "breakdown:gpu__dram_throughput");
    assert_int_equal(parts.rows, 2);
    assert_string_equal(parts.first, "dram__cycles_active");
    assert_true(ask(KPROF_QUERY_SUFFIX, "breakdown:gpu__dram_throughput").rows > 40);
    query_count section = ask(KPROF_QUERY_BASE, "group:SchedulerStats");
    assert_int_equal(section.rows, 4);
    assert_string_equal(section.first, "smsp__issue_active");
    assert_true(ask(KPROF_QUERY_BASE, "group:LaunchStats").launch > 4);
    query_count sums = ask(KPROF_QUERY_BASE, "regex:^dram__bytes.*\\.sum$");
    assert_int_equal(sums.rows, 3);
    assert_string_equal(sums.first, "dram__bytes.sum");
}

static void assert_query_fails(const char *name, const char *reason)
{
    char *items[] = {(char *)name};
    kprof_strlist names = {items, 1, 1};
    query_count count = {0, 0, ""};
    kprof_query query = {shipped_catalog, KPROF_QUERY_BASE, &names, count_row, &count};
    log_capture capture;
    log_capture_start(&capture);
    assert_int_equal(kprof_query_metrics(gh100, &query), KPROF_UNKNOWN_NAME);
    assert_int_equal(count.rows, 0);
    if (capture.count != 1 || !strstr(capture.last, reason))
        fail_msg("%s: \"%s\" lacks \"%s\"", name, capture.last, reason);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_query_unknown)
{
    assert_query_fails("regex:^nothing_like_it$", "matches no metric of chip GH100; kprof list metrics has all");
    assert_query_fails("dram__byte", "did you mean \"dram__bytes\"?");
    assert_query_fails("breakdown:dram__bytes", "is not a throughput metric");
    assert_query_fails("group:Nothing", "there is no section of that name");
}

TEST(test_cost)
{
    kprof_set_cost cost;
    assert_int_equal(kprof_set_cost_on(shipped_catalog, "basic", gh100, &cost), KPROF_OK);
    assert_true(cost.pass_count > 0 && cost.metric_count > 40);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up_gh100, tear_down_gh100)
