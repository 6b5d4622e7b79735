/* The wrapper of the Profiler Host API and NVPW: chips, names, units, breakdowns, what can be collected, config images.
 */
#include "host/nvpw.h"
#include "host_test.h"
#include "log_capture.h"
#include "test.h"

#include <string.h>

static kprof_host *host;

static int open_host(void **state)
{
    return kprof_host_open("GH100", NULL, &host) == KPROF_OK ? 0 : -1;
}

static int close_host(void **state)
{
    kprof_host_close(host);
    return 0;
}

TEST(test_chips)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_host_chips(&chips), KPROF_OK);
    assert_true(kprof_strlist_contains(&chips, "TU102"));
    assert_true(kprof_strlist_contains(&chips, "GH100"));
    assert_string_equal(kprof_host_chip(host), "GH100");
}

TEST(test_unknown_chip)
{
    log_capture capture;
    kprof_host *none;
    log_capture_start(&capture);
    assert_int_equal(kprof_host_open("GH101", NULL, &none), KPROF_UNKNOWN_NAME);
    assert_null(none);
    assert_non_null(strstr(capture.last, "did you mean \"GH100\"?"));
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_names)
{
    KPROF_AUTO(kprof_strlist) bases = KPROF_STRLIST_INIT, suffixes = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_host_base_metrics(host, KPROF_METRIC_COUNTER, &bases), KPROF_OK);
    /* CUPTI itself would list them twice the second time. */
    size_t count = bases.count;
    assert_int_equal(kprof_host_base_metrics(host, KPROF_METRIC_COUNTER, &bases), KPROF_OK);
    assert_int_equal(bases.count, 2 * count);
    assert_true(bases.count > 1000);
    assert_true(kprof_strlist_contains(&bases, "dram__bytes"));
    assert_int_equal(kprof_host_submetrics(host, "dram__bytes", &suffixes), KPROF_OK);
    assert_true(kprof_strlist_contains(&suffixes, "sum.per_second"));
    assert_false(kprof_strlist_contains(&suffixes, "ratio"));
    assert_true(kprof_host_has_metric(host, "dram__bytes"));
    assert_true(kprof_host_has_metric(host, "dram__bytes.sum"));
    assert_false(kprof_host_has_metric(host, "dram__bites"));
}

TEST(test_units)
{
    static const struct {
        const char *name, *unit;
        kprof_metric_type type;
    } rows[] = {
        {"gpu__time_duration.sum", "ns", KPROF_METRIC_COUNTER},
        {"dram__bytes", "byte", KPROF_METRIC_COUNTER},
        {"dram__bytes.sum.per_second", "byte/second", KPROF_METRIC_COUNTER},
        {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", KPROF_METRIC_THROUGHPUT},
        {"sm__throughput", "%", KPROF_METRIC_THROUGHPUT},
        {"gpc__cycles_elapsed.avg.per_second", "cycle/second", KPROF_METRIC_COUNTER},
        {"sm__inst_executed.avg.per_cycle_active", "inst/cycle", KPROF_METRIC_COUNTER},
        {"smsp__average_warp_latency_per_inst_issued.ratio", "cycle", KPROF_METRIC_RATIO},
        {"l1tex__t_sector_hit_rate.pct", "%", KPROF_METRIC_RATIO},
        {"l1tex__t_sector_hit_rate.ratio", "", KPROF_METRIC_RATIO},
        {"lts__t_sectors.sum", "sector", KPROF_METRIC_COUNTER},
        {"TPC.TriageCompute.sm__cycles_active", "cycle", KPROF_METRIC_COUNTER},
        {"TPC.TriageCompute.sm__cycles_active.avg", "cycle", KPROF_METRIC_COUNTER},
        {"l1tex__t_requests.sum", "request", KPROF_METRIC_COUNTER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kprof_metric_info info;
        assert_int_equal(kprof_host_metric_info(host, rows[i].name, &info), KPROF_OK);
        if (strcmp(info.unit, rows[i].unit) != 0)
            fail_msg("%s is in \"%s\", not \"%s\"", rows[i].name, info.unit, rows[i].unit);
        assert_int_equal(info.type, rows[i].type);
        assert_int_equal(strlen(info.name), kprof_metric_base_length(rows[i].name));
        assert_non_null(info.description);
        kprof_metric_info_free(&info);
    }
}

TEST(test_unknown_metric)
{
    log_capture capture;
    kprof_metric_info info;
    kprof_strlist list = KPROF_STRLIST_INIT;
    log_capture_start(&capture);
    assert_int_equal(kprof_host_metric_info(host, "no__such.sum", &info), KPROF_UNKNOWN_NAME);
    assert_int_equal(kprof_host_submetrics(host, "no__such", &list), KPROF_UNKNOWN_NAME);
    assert_int_equal(kprof_host_breakdown(host, "dram__bytes.sum", &list), KPROF_UNKNOWN_NAME);
    assert_int_equal(list.count, 0);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_breakdown)
{
    KPROF_AUTO(kprof_strlist) members = KPROF_STRLIST_INIT;
    assert_int_equal(
        kprof_host_breakdown(host, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", &members),
        KPROF_OK);
    assert_true(members.count > 15);
    assert_true(kprof_strlist_contains(&members, "dram__cycles_active.avg.pct_of_peak_sustained_elapsed"));
    assert_true(kprof_strlist_contains(&members, "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"));
    for (size_t i = 0; i < members.count; i++)
        assert_true(kprof_host_can_collect(host, members.items[i]));
}

/* Answers of a group must be those of each name alone. */
TEST(test_can_collect)
{
    static const struct {
        const char *name;
        bool can;
    } rows[] = {
        {"dram__bytes.sum", true},
        {"foo__bar.sum", false},
        {"dram__bytes", false},
        {"l1tex__t_sector_hit_rate.pct", true},
        {"dram__bytes.pct", false},
        {"pcie__read_bytes.sum", false},
        {"nvltx__bytes.sum", false},
        {"sm__inst_executed.avg.per_cycle_active", true},
        {"", false},
        {".", false},
        {"dram__bytes.sum.", false},
        {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", true},
        {"lts__t_sectors.sum", true},
    };
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_host *fresh;
    assert_int_equal(kprof_host_open("GH100", NULL, &fresh), KPROF_OK);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(kprof_strlist_add(&names, rows[i].name));
        if (kprof_host_can_collect(fresh, rows[i].name) != rows[i].can)
            fail_msg("\"%s\" alone", rows[i].name);
    }
    assert_int_equal(kprof_host_check(host, &names), KPROF_OK);
    for (size_t i = 0; i < COUNT; i++) {
        if (kprof_host_can_collect(host, rows[i].name) != rows[i].can)
            fail_msg("\"%s\" in a group", rows[i].name);
    }
    kprof_host_close(fresh);
}

TEST(test_config_image)
{
    char *one[] = {(char *)"dram__bytes.sum"};
    char *bad[] = {(char *)"dram__bytes.sum", (char *)"no__such.sum"};
    kprof_strlist none = {NULL, 0, 0}, single = {one, 1, 1}, wrong = {bad, 2, 2};
    kprof_config_image image;
    log_capture capture;
    assert_int_equal(kprof_host_draft_image(host, &single, &image), KPROF_OK);
    assert_int_equal(image.pass_count, 1);
    assert_true(image.size > 0 && image.data);
    kprof_config_image_free(&image);
    assert_int_equal(kprof_host_draft_image(host, &none, &image), KPROF_OK);
    assert_int_equal(image.pass_count, 0);
    log_capture_start(&capture);
    assert_int_equal(kprof_host_draft_image(host, &wrong, &image), KPROF_INTERNAL);
    assert_null(image.data);
    kprof_log_set_sink(NULL, NULL);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(open_host, close_host)
