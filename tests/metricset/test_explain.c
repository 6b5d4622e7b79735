/* The set files alone tell this of a metric, as where CUDA is missing. With a chip the command itself is tested. */
#include "log_capture.h"
#include "metricset/explain.h"
#include "metricset/expr.h"
#include "metricset/instruction.h"
#include "test.h"

#include <string.h>

static kprof_catalog *catalog;

static int load_catalog(void **state)
{
    char *items[] = {(char *)KPROF_METRICSETS_DIR};
    return kprof_catalog_load(&(kprof_strlist){items, 1, 1}, &catalog) == KPROF_OK ? 0 : -1;
}

static int free_catalog(void **state)
{
    kprof_catalog_free(catalog);
    return 0;
}

static bool has_alias(const kprof_explanation *of, const char *name)
{
    for (size_t i = 0; i < of->alias_count; i++) {
        if (strcmp(kprof_alias_describe(of->aliases[i]).name, name) == 0)
            return true;
    }
    return false;
}

TEST(test_alias)
{
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "l2.hit_rate", &found), KPROF_OK);
    assert_string_equal(found.metric, "lts__t_sector_hit_rate.pct");
    assert_null(found.kind);
    assert_false(found.has_passes);
    assert_non_null(found.help);
    assert_true(kprof_strlist_contains(&found.sections, "MemoryWorkloadAnalysis"));
    assert_true(kprof_strlist_contains(&found.sets, "default"));
    assert_true(has_alias(&found, "l2.hit_rate") && has_alias(&found, "l2_tex_hit_rate"));
    assert_int_equal(found.part_count, 2);
    assert_string_equal(found.parts[0].part, "lts");
    assert_non_null(strstr(found.parts[0].meaning, "L2"));
    assert_string_equal(found.parts[1].part, "pct");
    kprof_explanation_free(&found);
    /* No section shows what stands for this one of nvprof. */
    assert_int_equal(kprof_explain(catalog, NULL, "gld_efficiency", &found), KPROF_OK);
    assert_string_equal(found.metric, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct");
    assert_non_null(found.help);
    assert_true(has_alias(&found, "gld_efficiency"));
    kprof_explanation_free(&found);
}

TEST(test_section)
{
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "Occupancy", &found), KPROF_OK);
    assert_string_equal(found.kind, "section");
    assert_null(found.metric);
    assert_null(found.finding);
    assert_non_null(found.help);
    assert_true(found.place_count > 3);
    assert_int_equal(found.sections.count, 1);
    assert_true(kprof_strlist_contains(&found.sets, "full"));
    kprof_explanation_free(&found);
}

TEST(test_finding)
{
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "WarpStall", &found), KPROF_OK);
    assert_string_equal(found.kind, "finding");
    assert_string_equal(found.description, "Warps wait");
    assert_non_null(found.help);
    assert_non_null(found.formula);
    assert_true(found.finding->threshold_count > 0);
    assert_true(kprof_strlist_contains(&found.members, "smsp__average_warp_latency_per_inst_issued.ratio"));
    assert_true(kprof_strlist_contains(&found.sections, "WarpStateStats"));
    assert_true(kprof_strlist_contains(&found.sets, "full"));
    kprof_explanation_free(&found);
}

/* What pages show people is explained, too. */
TEST(test_words_of_pages)
{
    static const struct {
        const char *word, *kind, *metric, *description;
    } rows[] = {
        {"Warps wait", "finding", NULL, "Warps wait"},
        {"CPIStall", "finding", NULL, "Warps wait"}, /* as ncu's layouts name it */
        {"warp state statistics", "section", NULL, "Warp State Statistics"},
        {"Long Scoreboard", NULL, "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", NULL},
        {"long_scoreboard", NULL, "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", NULL},
        {"LongScoreboard", NULL, "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", NULL},
        {"long-scoreboard, share", "derived", "derived__stall_share_long_scoreboard.pct", NULL},
        {"ideal_sectors", "instruction", "source:smsp__sass_sectors_mem_global_ideal", NULL},
        {"tensor_idle", "finding", NULL, NULL},
        {"warp_state_stats", "section", NULL, "Warp State Statistics"},
        {"L1 data pipe", "finding", NULL, "What limits the kernel"},
        {"l1_data_pipe", "finding", NULL, "What limits the kernel"},
        {"XU pipe", "finding", NULL, "What limits the kernel"}, /* with a chip: its metric */
        {"Waves Per SM", "launch", "launch__waves_per_multiprocessor", NULL},
        {"latency", "finding", NULL, "What limits the kernel"},
        {"Limited by", "finding", NULL, "What limits the kernel"},
        {"top stall", "finding", NULL, "Warps wait"},
        {"Idle SMs", "finding", NULL, NULL},
        {"Blocks Launched", NULL, "FE_B.TriageCompute.gr__ctas_launched_realtime.sum", NULL}, /* of samples over time */
        {"Stall reasons", "table", NULL, NULL},
        {"sectors/req", "column", NULL, NULL},
        {"Hit Rate", "column", NULL, NULL},
        {"Loads", "row", NULL, NULL},
        {"atomics", "finding", NULL, "What limits the kernel"}, /* not a row of that name */
        {"Worth most", "word", NULL, NULL},
        {"Waits for", "word", NULL, NULL},
        {"Gain at most", "word", NULL, "The time that could be saved at most. That of several GPUs is added up."},
        {"Min", "word", NULL, "The least value."}, /* not of "Min (ns)" */
        {"min (NS)", "word", NULL, "The least of them."},
        {"cuda_gpu_trace", "word", NULL, "Each kernel, copy and set, in the order of time."},
        {"SMs Busy (%)", NULL, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", NULL},
        {"costs", "word", NULL, NULL},
        {"Ideal sectors", "instruction", "source:smsp__sass_sectors_mem_global_ideal", NULL},
        {"Samples", "instruction", "smsp__pcsamp_sample_count", NULL}, /* not what a finding calls so */
        {"not issued", "word", NULL, NULL},
        {"PTX", "word", NULL, NULL},
        {"Line", "word", NULL, NULL},
        {"Address", "word", NULL, NULL},
        {"FP32 against DRAM: intensity", "word", NULL, "Operations for each byte that is moved."},
        {"DRAM peak", NULL, "derived__dram_peak_bytes.per_second", NULL},
        {"Long Scoreboard: Share", "derived", "derived__stall_share_long_scoreboard.pct", NULL}, /* of statistics */
        {"Long Scoreboard, Share", "derived", "derived__stall_share_long_scoreboard.pct", NULL},
        {"Memory", NULL, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_explanation found;
        assert_int_equal(kprof_explain(catalog, NULL, rows[i].word, &found), KPROF_OK);
        if (rows[i].kind)
            assert_string_equal(found.kind, rows[i].kind);
        if (rows[i].metric)
            assert_string_equal(found.metric, rows[i].metric);
        if (rows[i].description)
            assert_string_equal(found.description, rows[i].description);
        const bool is_heading = rows[i].kind && (!strcmp(rows[i].kind, "table") || !strcmp(rows[i].kind, "column"));
        assert_true(!is_heading || (found.place_count > 3 && found.sets.count > 0));
        kprof_explanation_free(&found);
    }
    /* A metric of launches, and a column of the source page. */
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "Threads", &found), KPROF_OK);
    assert_string_equal(found.metric, "launch__thread_count");
    assert_non_null(strstr(found.help, "As a heading of pages: Active threads of each execution."));
    kprof_explanation_free(&found);
}

/* What the source page says of samples is the name of a row of Warp State Statistics. */
TEST(test_stalls_of_samples)
{
#define PEOPLE(name, people, ...) people,
    static const char *const stalls[] = {KPROF_STALL_REASONS(PEOPLE)};
    for (size_t i = 0; i < sizeof stalls / sizeof *stalls; i++) {
        kprof_explanation found;
        assert_int_equal(kprof_explain(catalog, NULL, stalls[i], &found), KPROF_OK);
        assert_true(kprof_strlist_contains(&found.sections, "WarpStateStats"));
        kprof_explanation_free(&found);
    }
}

TEST(test_base_name)
{
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "sm__warps_active", &found), KPROF_OK);
    assert_null(found.help); /* kprof's are about one of its full names each */
    assert_true(kprof_strlist_contains(&found.sections, "Occupancy"));
    assert_true(has_alias(&found, "occupancy.achieved") && has_alias(&found, "achieved_occupancy"));
    kprof_explanation_free(&found);
}

TEST(test_derived)
{
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "derived__stall_share_barrier.pct", &found), KPROF_OK);
    assert_string_equal(found.kind, "derived");
    assert_string_equal(found.unit, "%");
    assert_int_equal(found.members.count, 2);
    assert_true(kprof_strlist_contains(&found.sections, "WarpStateStats"));
    assert_non_null(strstr(found.formula, found.members.items[0]));
    kprof_explanation_free(&found);
    assert_int_equal(kprof_explain(catalog, NULL, "flop_count_dp", &found), KPROF_OK);
    assert_string_equal(found.metric, "derived__flop_count_dp");
    assert_int_equal(found.members.count, 3);
    assert_true(has_alias(&found, "flop_count_dp"));
    kprof_explanation_free(&found);
}

/* The instructions of a kernel: as many with FP16 as `user` says, of 100,000 in a microsecond. */
static double executed(void *user, const char *name)
{
    if (strcmp(name, "smsp__sass_thread_inst_executed_pred_on.sum") == 0)
        return 100000;
    if (strcmp(name, "gpu__time_duration.sum") == 0)
        return 1000;
    return strstr(name, "hfma") ? *(double *)user : 0;
}

TEST(test_moves_are_no_fp16_work)
{
    kprof_explanation found;
    kprof_expr *expr;
    double few = 900, many = 5000;
    assert_int_equal(kprof_explain(catalog, NULL, "derived__flops_fp16.per_second", &found), KPROF_OK);
    assert_int_equal(kprof_expr_parse(&found.pool, found.formula, &expr), KPROF_OK);
    assert_true(kprof_expr_evaluate(expr, executed, &few) == 0);
    assert_true(kprof_expr_evaluate(expr, executed, &many) == 4 * 5000 / 1000.0 * 1e9);
    kprof_explanation_free(&found);
}

/* The cycles that a warp waits for each reason add up to those between two of its instructions. */
TEST(test_unit_of_stalls)
{
    const char *stall = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio";
    assert_string_equal(kprof_metric_unit(stall, "inst"), "cycle");
    assert_string_equal(kprof_metric_unit("smsp__average_warps_issue_stalled_barrier_per_issue_active.pct", "%"), "%");
    assert_string_equal(kprof_metric_unit("smsp__inst_executed.sum", "inst"), "inst");
    assert_string_equal(kprof_metric_unit("sm__icc_requests.sum", "cycle"), "request");
    assert_string_equal(kprof_metric_unit("sm__cycles_active.sum", "cycle"), "cycle");
    assert_null(kprof_metric_unit(stall, NULL));
}

TEST(test_launch)
{
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "registers", &found), KPROF_OK);
    assert_string_equal(found.metric, "launch__registers_per_thread");
    assert_string_equal(found.kind, "launch");
    assert_true(found.has_passes);
    assert_int_equal(found.pass_count, 0);
    assert_non_null(found.description);
    kprof_explanation_free(&found);
}

TEST(test_nothing_counts_it)
{
    kprof_explanation found;
    assert_int_equal(kprof_explain(catalog, NULL, "inst_replay_overhead", &found), KPROF_OK);
    assert_null(found.metric);
    assert_non_null(found.help);
    assert_string_equal(found.closest.items[0], "smsp__inst_issued.sum");
    kprof_explanation_free(&found);
}

static void refuse(const char *word, kprof_status status, const char *reason)
{
    log_capture capture;
    kprof_explanation found;
    log_capture_start(&capture);
    assert_int_equal(kprof_explain(catalog, NULL, word, &found), status);
    kprof_log_set_sink(NULL, NULL);
    kprof_explanation_free(&found);
    if (!strstr(capture.last, reason))
        fail_msg("\"%s\" has no \"%s\"", capture.last, reason);
}

TEST(test_refused)
{
    refuse("occupancy.achievd", KPROF_UNKNOWN_NAME, "did you mean \"occupancy.achieved\"?");
    refuse("tensor.actve", KPROF_UNKNOWN_NAME, "did you mean \"tensor.active\"?");
    refuse("l2.hitrate", KPROF_UNKNOWN_NAME, "did you mean \"l2.hit_rate\"?");
    refuse("long_scorebord", KPROF_UNKNOWN_NAME, "did you mean \"Long Scoreboard\"?");
    refuse("uncoalesced", KPROF_UNKNOWN_NAME, "no metric, section or finding; did you mean \"UncoalescedGlobal\"?");
    refuse("no__such.sum", KPROF_UNSUPPORTED, "no__such.sum");
    refuse("regex:dram", KPROF_USAGE, "several metrics");
    refuse("group:SpeedOfLight", KPROF_USAGE, "several metrics");
}

AROUND_ALL(load_catalog, free_catalog)
