/* --max-passes and --budget: the plan keeps within them, nothing is lost between what is kept and what is left out, and
 * the most useful comes first. */
#include "log_capture.h"
#include "planner/planner.h"
#include "planner_test.h"
#include "test.h"

#include <string.h>

#define SM_THROUGHPUT     "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define MEMORY_THROUGHPUT "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
#define DRAM_READ         "dram__bytes_read.sum"

typedef struct request {
    const char *chip, *set, *metric; /* NULL: none */
    kprof_limits limits;
} request;

static kprof_status make_plan_of(kprof_catalog *catalog, const request *from, kprof_plan *out)
{
    kprof_host *host;
    kprof_selection selection = {.limits = from->limits};
    assert_true(!from->set || kprof_strlist_add(&selection.sets, from->set));
    assert_true(!from->metric || kprof_strlist_add(&selection.metrics, from->metric));
    assert_int_equal(kprof_host_open(from->chip, NULL, &host), KPROF_OK);
    kprof_status status = kprof_plan_make(catalog, &selection, host, out);
    kprof_host_close(host);
    kprof_strlist_free(&selection.sets);
    kprof_strlist_free(&selection.metrics);
    return status;
}

static kprof_status make_plan(const request *from, kprof_plan *out)
{
    return make_plan_of(shipped_catalog, from, out);
}

static kprof_plan plan_of(request from)
{
    kprof_plan plan;
    assert_int_equal(make_plan(&from, &plan), KPROF_OK);
    return plan;
}

/* With what is used: the image that has all witnesses. */
static double cost_s(const kprof_plan *plan, const kprof_workload *workload)
{
    kprof_effort effort = kprof_effort_of(&plan->schedule, plan->collect.count);
    assert_int_equal(plan->variants.items[KPROF_IMAGE_WITNESSED].pass_count, plan->schedule.pass_count);
    return kprof_cost_of(&effort, workload).total_s;
}

/* Each name that was asked for is either kept or left out. */
static void assert_whole(const kprof_plan *part, const kprof_plan *all)
{
    assert_int_equal(part->collect.count + part->left_out.count, all->collect.count);
    for (size_t i = 0; i < all->collect.count; i++) {
        const char *name = all->collect.items[i];
        bool kept = kprof_strlist_contains(&part->collect, name);
        assert_true(kept != kprof_strlist_contains(&part->left_out, name));
    }
}

static void assert_item_measured(const kprof_plan *plan, const kprof_item *item)
{
    KPROF_AUTO(kprof_strlist) required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    if (!item->name)
        return;
    kprof_expr_operands(item->compiled, &required, &optional);
    for (size_t i = 0; i < required.count; i++) {
        const char *name = required.items[i];
        if (!kprof_launch_metric_find(name) && !kprof_strlist_contains(&plan->collect, name))
            fail_msg("%s: %s is shown but not collected", plan->chip, name);
    }
}

/* In a table of the parts of a throughput, a part that is left out keeps its row beside others that are collected. */
static void assert_table_measured(const kprof_plan *plan, const kprof_table *table)
{
    const bool has_parts = strstr(table->id, "breakdown");
    size_t missing = 0;
    for (size_t i = 0; i < table->row_count * table->column_count; i++) {
        const kprof_item *cell = &table->rows[i / table->column_count].cells[i % table->column_count];
        const bool is_left_out = has_parts && kprof_strlist_contains(&plan->left_out, cell->name);
        missing += is_left_out;
        if (!is_left_out)
            assert_item_measured(plan, cell);
    }
    assert_true(missing == 0 || missing < table->row_count);
}

/* Sections promise what is collected, but for such parts, and nothing else. */
static void assert_sections_measured(const kprof_plan *plan)
{
    for (size_t i = 0; i < plan->section_count; i++) {
        const kprof_section *section = &plan->sections[i];
        assert_true(section->item_count + section->table_count + section->roofline_count > 0);
        for (size_t k = 0; k < section->item_count; k++)
            assert_item_measured(plan, &section->items[k]);
        for (size_t k = 0; k < section->table_count; k++)
            assert_table_measured(plan, &section->tables[k]);
        for (size_t k = 0; k < section->roofline_count; k++) {
            assert_item_measured(plan, &section->rooflines[k].work);
            assert_true(section->rooflines[k].roof_count > 0);
        }
    }
}

TEST(test_passes_are_kept_to)
{
    static const struct {
        const char *chip;
        uint32_t passes;
    } cases[] = {{"TU102", 1}, {"TU102", 4}, {"TU102", 7}, {"GA100", 3}, {"GH100", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!tries_chip(cases[i].chip))
            continue;
        kprof_plan all = plan_of((request){.chip = cases[i].chip, .set = "default"});
        kprof_plan plan = plan_of((request){cases[i].chip, "default", NULL, {.max_passes = cases[i].passes}});
        assert_int_equal(all.left_out.count, 0);
        assert_true(plan.pass_count <= cases[i].passes && plan.collect.count > 10);
        assert_int_equal(plan.pass_count, plan.variants.items[0].pass_count);
        assert_whole(&plan, &all);
        assert_sections_measured(&plan);
        kprof_plan_free(&plan);
        kprof_plan_free(&all);
    }
}

TEST(test_wide_limits_change_nothing)
{
    kprof_plan all = plan_of((request){.chip = "TU102", .set = "default"});
    kprof_limits wide = {.max_passes = 1000, .budget_s = 1e6, .workload = {.launches = 1000}};
    kprof_plan plan = plan_of((request){"TU102", "default", NULL, wide});
    assert_int_equal(plan.left_out.count, 0);
    assert_int_equal(plan.pass_count, all.pass_count);
    assert_int_equal(plan.section_count, all.section_count);
    assert_whole(&plan, &all);
    kprof_plan_free(&plan);
    kprof_plan_free(&all);
}

static bool shows_section(const kprof_plan *plan, const char *id)
{
    for (size_t i = 0; i < plan->section_count; i++) {
        if (strcmp(plan->sections[i].id, id) == 0)
            return true;
    }
    return false;
}

/* The headlines of a report outweigh what they take the room of: they are kept as soon as the limits have passes for
 * them, and until then something else is kept. */
TEST(test_the_most_useful_comes_first)
{
    kprof_plan plan = plan_of((request){"TU102", "default", NULL, {.max_passes = 4}});
    assert_true(kprof_strlist_contains(&plan.collect, SM_THROUGHPUT));
    assert_true(plan.left_out.count > 0);
    kprof_plan_free(&plan);
    plan = plan_of((request){"TU102", "default", NULL, {.max_passes = 2}});
    assert_string_equal(plan.left_out.items[0], SM_THROUGHPUT);
    static const char *const kept[] = {"gpu__time_duration.sum", DRAM_READ, "l1tex__t_sector_hit_rate.pct",
                                       "lts__t_sector_hit_rate.pct",
                                       "sm__warps_active.avg.pct_of_peak_sustained_active"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_true(kprof_strlist_contains(&plan.collect, kept[i]));
    assert_true(shows_section(&plan, "LaunchStats"));
    kprof_plan_free(&plan);
    if (!tries_chip("GH100"))
        return;
    plan = plan_of((request){"GH100", "default", NULL, {.max_passes = 4}});
    assert_true(kprof_strlist_contains(&plan.collect, MEMORY_THROUGHPUT));
    assert_true(plan.left_out.count < 22);
    kprof_plan_free(&plan);
}

/* The compute headline takes seven passes. Where there are fewer, its parts tell a lower bound of it. */
TEST(test_headlines_of_gh100)
{
    static const char issued[] = "sm__inst_executed.avg.pct_of_peak_sustained_elapsed";
    for (uint32_t passes = 4; passes < 7; passes++) {
        kprof_host *host;
        kprof_strlist parts = KPROF_STRLIST_INIT;
        kprof_plan plan = plan_of((request){"GH100", "default", NULL, {.max_passes = passes}});
        assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
        assert_true(kprof_strlist_contains(&plan.collect, MEMORY_THROUGHPUT));
        assert_false(kprof_strlist_contains(&plan.collect, SM_THROUGHPUT));
        assert_int_equal(kprof_limits_stand_ins(host, SM_THROUGHPUT, &plan.collect, &parts), KPROF_OK);
        assert_true(parts.count > 5 && kprof_strlist_contains(&parts, issued));
        kprof_strlist_free(&parts);
        assert_int_equal(kprof_limits_stand_ins(host, DRAM_READ, &plan.collect, &parts), KPROF_OK);
        assert_int_equal(parts.count, 0);
        kprof_host_close(host);
        kprof_plan_free(&plan);
    }
}

TEST(test_named_metrics_come_before_sections)
{
    static const char tensor[] = "sm__inst_executed_pipe_tensor_op_imma.sum";
    kprof_plan plan = plan_of((request){"TU102", "default", tensor, {.max_passes = 2}});
    assert_true(kprof_strlist_contains(&plan.collect, tensor));
    assert_int_equal(plan.shown.count, 1);
    kprof_plan_free(&plan);
    plan = plan_of((request){"TU102", "default", SM_THROUGHPUT, {.max_passes = 3}});
    assert_true(kprof_strlist_contains(&plan.left_out, SM_THROUGHPUT));
    assert_int_equal(plan.shown.count, 0);
    kprof_plan_free(&plan);
}

/* A headline that is dear comes first, and what is cheap beside it is not lost. */
TEST(test_a_dear_headline_is_kept)
{
    static const char *const kept[] = {"l1tex__t_sector_hit_rate.pct",
                                       "sm__warps_active.avg.pct_of_peak_sustained_active",
                                       "smsp__issue_active.avg.per_cycle_active"};
    if (!tries_chip("GA100"))
        return;
    kprof_limits limits = {.budget_s = 4.5, .workload = {.launches = 1000}};
    kprof_plan plan = plan_of((request){"GA100", "default", NULL, limits});
    assert_true(kprof_strlist_contains(&plan.collect, SM_THROUGHPUT));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_true(kprof_strlist_contains(&plan.collect, kept[i]));
    kprof_plan_free(&plan);
    limits.budget_s = 10;
    plan = plan_of((request){"GA100", "default", NULL, limits});
    assert_int_equal(plan.left_out.count, 0);
    kprof_plan_free(&plan);
}

/* A group that is dear as CUPTI schedules it is packed before it gives way to less useful ones. Single metrics get the
 * room that is left. */
TEST(test_room_is_used)
{
    if (!tries_chip("GA100"))
        return;
    kprof_plan plan = plan_of((request){"GA100", "full", NULL, {.max_passes = 20}});
    assert_true(plan.left_out.count < 16);
    for (size_t i = 0; i < plan.left_out.count; i++)
        assert_null(strstr(plan.left_out.items[i], "issue_stalled"));
    kprof_plan_free(&plan);
}

/* A larger budget does not lose what a smaller one paid for, but where it pays for a headline that takes its room. */
TEST(test_more_budget_keeps_more)
{
    static const double budgets_s[] = {3, 4.5, 7};
    if (!tries_chip("GA100"))
        return;
    bool had_headline = false;
    for (size_t i = 0, before = SIZE_MAX; i < sizeof budgets_s / sizeof *budgets_s; i++) {
        kprof_limits limits = {.budget_s = budgets_s[i], .workload = {.launches = 1000}};
        kprof_plan plan = plan_of((request){"GA100", "default", NULL, limits});
        bool has_headline = kprof_strlist_contains(&plan.collect, SM_THROUGHPUT);
        assert_true(plan.left_out.count > 0 && has_headline >= had_headline);
        assert_true(plan.left_out.count <= before || has_headline > had_headline);
        before = plan.left_out.count;
        had_headline = has_headline;
        kprof_plan_free(&plan);
    }
}

/* The plan keeps a part of a dear group that would take nearly all of the budget, or more than the passes have room
 * for. */
TEST(test_a_budget_is_used)
{
    kprof_limits limits = {.budget_s = 5, .workload = {.launches = 1000}};
    kprof_plan plan = plan_of((request){"TU102", "default", NULL, limits});
    assert_true(plan.collect.count > 70);
    kprof_plan_free(&plan);
    limits.budget_s = 1100;
    limits.workload.launches = 1000000;
    plan = plan_of((request){"TU102", "full", NULL, limits});
    assert_true(plan.collect.count > 30);
    kprof_plan_free(&plan);
}

/* Neither witnesses nor a schedule that is made for large batches takes what is planned beyond the budget. */
TEST(test_budgets_are_kept_to)
{
    static const struct {
        const char *chip, *set;
        uint64_t launches;
        double budget_s;
    } rows[] = {
        {"TU102", "default", 1000, 2}, {"TU102", "default", 20000, 60}, {"TU102", "detailed", 2, 0.7},
        {"GA100", "default", 1000, 3}, {"GA100", "detailed", 2, 0.9},   {"AD102", "default", 1000, 4},
        {"GH100", "default", 1000, 3}, {"GH100", "default", 2, 0.8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!tries_chip(rows[i].chip))
            continue;
        kprof_limits limits = {.budget_s = rows[i].budget_s, .workload = {.launches = rows[i].launches}};
        kprof_plan plan = plan_of((request){rows[i].chip, rows[i].set, NULL, limits});
        assert_true(plan.collect.count > 10);
        assert_sections_measured(&plan);
        assert_true(cost_s(&plan, &limits.workload) <= rows[i].budget_s);
        kprof_plan_free(&plan);
    }
}

/* A fallback stands for what a chip lacks, not for what was left out. */
TEST(test_what_is_left_out_has_no_fallback)
{
    char *items[] = {(char *)KPROF_TESTS_DIR "/fixtures/fallback"};
    kprof_strlist folders = {items, 1, 1};
    kprof_catalog *catalog;
    assert_int_equal(kprof_catalog_load(&folders, &catalog), KPROF_OK);
    for (uint32_t passes = 0; passes < 2; passes++) {
        kprof_plan plan;
        request limited = {"TU102", "fallback", NULL, {.max_passes = passes}};
        assert_int_equal(make_plan_of(catalog, &limited, &plan), KPROF_OK);
        assert_int_equal(kprof_strlist_contains(&plan.left_out, SM_THROUGHPUT), passes == 1);
        assert_int_equal(plan.section_count, 1);
        assert_int_equal(plan.sections[0].item_count, passes == 1 ? 1 : 2);
        kprof_plan_free(&plan);
    }
    kprof_catalog_free(catalog);
}

TEST(test_nothing_fits)
{
    log_capture capture;
    kprof_plan plan;
    log_capture_start(&capture);
    request passes = {"GH100", NULL, SM_THROUGHPUT, {.max_passes = 3}};
    assert_int_equal(make_plan(&passes, &plan), KPROF_USAGE);
    assert_non_null(strstr(capture.last, "fits into --max-passes 3"));
    request budget = {"GH100", "default", NULL, {.budget_s = 0.2, .workload = {.launches = 1}}};
    assert_int_equal(make_plan(&budget, &plan), KPROF_USAGE);
    assert_non_null(strstr(capture.last, "fits into --budget 0.2"));
    /* Metrics that the launch tells take no pass. */
    request free_of_charge = {"GH100", NULL, "launch__grid_size", {.max_passes = 1}};
    assert_int_equal(make_plan(&free_of_charge, &plan), KPROF_OK);
    assert_int_equal(plan.shown.count, 1);
    kprof_plan_free(&plan);
    kprof_log_set_sink(NULL, NULL);
}

/* Usage: test_planner_limits [TEST] */
int main(int argc, char **argv)
{
    if (!cupti_is_here())
        return SKIPPED;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    around_all(set_up_catalog, tear_down_catalog);
    return run_all_tests();
}
