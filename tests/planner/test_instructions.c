/* Metrics of single instructions: their names on the chips, what --metrics and sections make of them, and what their
 * passes cost. */
#include "log_capture.h"
#include "planner_test.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static kprof_status plan_words(const char *words, const kprof_limits *limits, kprof_plan *plan)
{
    kprof_selection selection = {.limits = *limits};
    char text[512], *place = NULL;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, ",", &place); word; word = strtok_r(NULL, ",", &place)) {
        kprof_strlist *list = *word == '@'   ? &selection.sections
                              : *word == '!' ? &selection.excluded
                                             : &selection.metrics;
        assert_true(kprof_strlist_add(list, word + (list != &selection.metrics)));
    }
    kprof_status status = kprof_plan_make(shipped_catalog, &selection, gh100, plan);
    kprof_selection_free(&selection);
    return status;
}

/* The counters of a plan, then "samples", joined by commas. */
static void assert_plan(const char *words, const char *expected)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_plan plan;
    assert_int_equal(plan_words(words, &(kprof_limits){0}, &plan), KPROF_OK);
    for (size_t i = 0; i < plan.instructions.counters.count; i++)
        kprof_strbuf_printf(&text, "%s,", plan.instructions.counters.items[i] + strlen("smsp__sass_"));
    kprof_strbuf_printf(&text, "%s", plan.instructions.samples ? "samples" : "");
    if (strcmp(text.data, expected) != 0)
        fail_msg("%s gives \"%s\", not \"%s\"", words, text.data, expected);
    assert_true(plan.collect.count > 0);
    for (size_t i = 0; i < plan.collect.count; i++)
        assert_false(kprof_instruction_is_word(plan.collect.items[i]));
    for (size_t i = 0; i < plan.shown.count; i++)
        assert_false(kprof_instruction_is_word(plan.shown.items[i]));
    kprof_plan_free(&plan);
}

TEST(test_words)
{
    assert_plan("inst_executed", "inst_executed,");
    assert_plan("source:inst_executed", "inst_executed,");
    assert_plan("source:smsp__sass_inst_executed", "inst_executed,");
    assert_plan("thread_inst_executed_true,thread_inst_executed", "thread_inst_executed_pred_on,thread_inst_executed,");
    assert_plan("smsp__branch_targets_threads_divergent", "branch_targets_threads_divergent,");
    assert_plan("memory_l2_theoretical_sectors_global,memory_l2_theoretical_sectors_global_ideal",
                "sectors_mem_global,sectors_mem_global_ideal,");
    assert_plan("derived__memory_l1_wavefronts_shared_excessive",
                "l1tex_pipe_lsu_wavefronts_mem_shared,l1tex_pipe_lsu_wavefronts_mem_shared_ideal,");
    assert_plan("memory_access_type", "inst_executed,");
    assert_plan("source:smsp__sass_inst_executed_op_shared", "inst_executed_op_shared,"); /* which no row has */
    assert_plan("smsp__pcsamp_sample_count", "samples");
    assert_plan("smsp__pcsamp_interval_cycles,smsp__pcsamp_sample_buffer_full", "samples");
    assert_plan("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued", "samples");
    assert_plan("group:smsp__pcsamp_warp_stall_reasons", "samples");
    assert_plan("group:smsp__pcsamp_warp_stall_reasons_not_issued", "samples");
    assert_plan("regex:^smsp__pcsamp.*_stalled_wait,regex:^source:.*local$", "sectors_mem_local,samples");
    /* What a launch has under the same name stays that. */
    assert_plan("smsp__sass_inst_executed", "");
    assert_plan("regex:smsp__sass_inst_executed$", "");
}

/* The launch's value of a name that has one, or else its duration. */
TEST(test_values_of_the_launch)
{
    static const char *const pairs[][2] = {{"inst_executed", "smsp__inst_executed.sum"},
                                           {"thread_inst_executed_true", "smsp__thread_inst_executed_pred_on.sum"},
                                           {"source:inst_executed", "gpu__time_duration.sum"},
                                           {"smsp__pcsamp_sample_count", "gpu__time_duration.sum"}};
    kprof_plan plan;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(plan_words(pairs[i][0], &(kprof_limits){0}, &plan), KPROF_OK);
        assert_int_equal(plan.shown.count, 1);
        assert_string_equal(plan.shown.items[0], pairs[i][1]);
        assert_int_equal(kprof_plan_pass_count(&plan), 2);
        kprof_plan_free(&plan);
    }
}

/* Launches are repeated only where something is collected, so the duration is, though nothing shows it. */
TEST(test_nothing_but_the_launch_itself)
{
    kprof_plan plan;
    assert_int_equal(plan_words("launch__grid_size", &(kprof_limits){0}, &plan), KPROF_OK);
    assert_int_equal(kprof_plan_pass_count(&plan), 0);
    kprof_plan_free(&plan);
    assert_int_equal(plan_words("launch__grid_size,source:inst_executed", &(kprof_limits){0}, &plan), KPROF_OK);
    assert_int_equal(kprof_plan_pass_count(&plan), 2);
    assert_int_equal(plan.collect.count, 1);
    assert_string_equal(plan.collect.items[0], "gpu__time_duration.sum");
    assert_int_equal(plan.shown.count, 1);
    assert_string_equal(plan.shown.items[0], "launch__grid_size");
    kprof_plan_free(&plan);
}

TEST(test_sections_that_are_left_out)
{
    kprof_plan plan, without;
    const kprof_workload workload = {.launches = 100};
    assert_int_equal(plan_words("@SourceCounters,@LaunchStats", &(kprof_limits){0}, &plan), KPROF_OK);
    assert_int_equal(plan.section_count, 2);
    assert_true(plan.cost.launch_ms > kprof_plan_cost_without_instructions(&plan, &workload).launch_ms + 5);
    kprof_plan_free(&plan);
    static const char *const words[] = {"@SourceCounters,@LaunchStats,!SourceCounters",
                                        "@SourceCounters,@LaunchStats,!regex:^Source"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(plan_words(words[i], &(kprof_limits){0}, &without), KPROF_OK);
        assert_int_equal(without.section_count, 1);
        assert_int_equal(kprof_instruction_passes(&without.instructions), 0);
        kprof_plan_free(&without);
    }
    log_capture capture;
    log_capture_start(&capture);
    assert_int_equal(plan_words("@SourceCounters,!SourceCounters", &(kprof_limits){0}, &plan), KPROF_USAGE);
    assert_int_equal(plan_words("!SourceCounterz", &(kprof_limits){0}, &plan), KPROF_UNKNOWN_NAME);
    assert_int_equal(plan_words("!regex:zzz", &(kprof_limits){0}, &plan), KPROF_UNKNOWN_NAME);
    assert_non_null(strstr(capture.last, "--section-exclude regex:zzz matches no section"));
    kprof_log_set_sink(NULL, NULL);
}

static void assert_refused(const char *word, const char *reason)
{
    log_capture capture;
    kprof_plan plan;
    log_capture_start(&capture);
    assert_int_equal(plan_words(word, &(kprof_limits){0}, &plan), KPROF_UNKNOWN_NAME);
    if (!strstr(capture.last, reason))
        fail_msg("%s: \"%s\" lacks \"%s\"", word, capture.last, reason);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_refused)
{
    assert_refused("source:inst_exectued", "did you mean \"source:inst_executed\"?");
    assert_refused("source:smsp__inst_executed", "did you mean \"source:smsp__sass_inst_executed\"?");
    assert_refused("source:smsp__sass_average_branch_targets_threads_uniform", "of instructions is not known");
    assert_refused("smsp__pcsamp_warps_issue_stalled_long_scorebord",
                   "did you mean \"smsp__pcsamp_warps_issue_stalled_long_scoreboard\"?");
    assert_refused("smsp__pcsamp_sample_count.sum", "did you mean \"smsp__pcsamp_sample_count\"?");
    assert_refused("memory_type.max", "did you mean \"memory_type\"?");
    assert_refused("breakdown:memory_type", "is not a throughput metric");
    assert_refused("group:smsp__pcsamp_warp_stall", "there is no section of that name");
    assert_refused("memory_l2_theoretical_sectors_global_load", "memory_access_type tells the kind");
    assert_refused("memory_l1_wavefronts_shared_load", "memory_access_type tells the kind");
    assert_refused("smsp__warpidsamp_warps_issue_stalled_wait", "not warps by their number");
    assert_refused("smsp__pcsamp_buffer_size_bytes", "--warp-sampling-buffer-size gives the size");
    assert_refused("smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared.sum",
                   "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum has the bank conflicts of a kernel");
}

/* Every name of a counter is one of the library's; Turing has no policies for L2, and GH100 declines one. */
TEST(test_chips)
{
    static const char policy[] = "smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_first";
    static const char declined[] = "smsp__sass_thread_inst_executed_op_fp64_pred_on";
    kprof_host *turing = NULL;
    assert_int_equal(kprof_host_open("TU102", NULL, &turing), KPROF_OK);
    for (const kprof_instruction_metric *row = kprof_instruction_metrics; row->name; row++) {
        if (kprof_instruction_metric_on(gh100, row) == (strcmp(row->name, declined) == 0))
            fail_msg("GH100 has %s, or has it not", row->name);
        assert_ptr_equal(kprof_instruction_metric_find(row->name), row);
        if (row->ncu)
            assert_ptr_equal(kprof_instruction_metric_find(row->ncu), row);
        for (size_t i = 0; row->needs[i]; i++)
            assert_int_equal(kprof_instruction_metric_find(row->needs[i])->kind, KPROF_INSTRUCTION_COUNTER);
    }
    assert_false(kprof_instruction_metric_on(turing, kprof_instruction_metric_find(policy)));
    assert_true(kprof_instruction_metric_on(turing, kprof_instruction_metric_find("inst_executed")));
    kprof_host_close(turing);
}

TEST(test_section)
{
    kprof_plan plan, group;
    assert_int_equal(plan_words("@SourceCounters", &(kprof_limits){0}, &plan), KPROF_OK);
    assert_int_equal(plan.instructions.counters.count, 19);
    assert_true(plan.instructions.samples);
    assert_int_equal(kprof_plan_pass_count(&plan), plan.pass_count + 2);
    assert_int_equal(plan_words("group:SourceCounters", &(kprof_limits){0}, &group), KPROF_OK);
    assert_int_equal(group.instructions.counters.count, plan.instructions.counters.count);
    assert_true(group.instructions.samples);
    assert_true(kprof_strlist_contains(&group.shown, "gpu__time_duration.sum"));
    kprof_plan_free(&group);
    kprof_plan_free(&plan);
}

/* The samples cost less than the counters, which are left out first, and each name that is left out is told. */
TEST(test_limits_on_passes)
{
    static const struct {
        const char *words;
        uint32_t most;
        size_t counters, left_out;
        bool samples;
    } cases[] = {
        {"source:inst_executed,smsp__pcsamp_sample_count", 3, 1, 0, true},
        {"source:inst_executed,smsp__pcsamp_sample_count", 2, 0, 1, true},
        {"source:inst_executed,smsp__pcsamp_sample_count", 1, 0, 2, false},
        {"source:inst_executed,inst_executed", 1, 0, 1, false},
        /* Speed of Light counts more than instructions do. */
        {"@SpeedOfLight,source:inst_executed", 4, 1, SIZE_MAX, false},
        {"@SpeedOfLight,@SourceCounters", 4, 0, SIZE_MAX, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kprof_limits limits = {.max_passes = cases[i].most, .workload = {.launches = 1000}};
        kprof_plan plan;
        assert_int_equal(plan_words(cases[i].words, &limits, &plan), KPROF_OK);
        assert_true(kprof_plan_pass_count(&plan) <= cases[i].most);
        assert_int_equal(plan.instructions.counters.count, cases[i].counters);
        assert_int_equal(plan.instructions.samples, cases[i].samples);
        if (cases[i].left_out != SIZE_MAX)
            assert_int_equal(plan.left_out.count, cases[i].left_out);
        else
            assert_true(plan.left_out.count > 0);
        if (cases[i].left_out == 1)
            assert_string_equal(plan.left_out.items[0], "source:smsp__sass_inst_executed");
        kprof_plan_free(&plan);
    }
}

TEST(test_budget)
{
    static const struct {
        double budget_s;
        size_t counters;
        bool samples;
    } cases[] = {{20, 1, true}, {5, 0, true}, {1.5, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kprof_limits limits = {.budget_s = cases[i].budget_s, .workload = {.launches = 1000}};
        kprof_plan plan;
        assert_int_equal(plan_words("source:inst_executed,smsp__pcsamp_sample_count", &limits, &plan), KPROF_OK);
        assert_int_equal(plan.instructions.counters.count, cases[i].counters);
        assert_int_equal(plan.instructions.samples, cases[i].samples);
        assert_true(plan.cost.total_s <= cases[i].budget_s);
        kprof_plan_free(&plan);
    }
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up_gh100, tear_down_gh100)
