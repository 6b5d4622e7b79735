/* What a process measured of instructions, from records to tables, and through merging and choosing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"
#include "log_capture.h"
#include "report/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL "_Z9vectorAddPKfS0_Pfi"

static log_capture said;
static char path[512];
static fixture_metrics metrics;
static kprof_report *report;
static kprof_ingest *ingest;
static const char *const counter_names[] = {"smsp__sass_inst_executed", "smsp__sass_sectors_mem_global"};
static const char *const sample_names[] = {"smsp__pcsamp_warps_issue_stalled_wait"};

static int set_up(void **state)
{
    (void)state;
    metrics = fixture_metrics_load();
    snprintf(path, sizeof path, "%s", fixture_path("code-store.kprof"));
    log_capture_start(&said);
    report = fixture_create(path, &metrics);
    assert_int_equal(kprof_ingest_new(report, &ingest), KPROF_OK);
    fixture_begin_process(ingest, &metrics);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kprof_ingest_free(ingest);
    if (report)
        kprof_report_discard(report);
    ingest = NULL;
    report = NULL;
    unlink(path);
    fixture_metrics_free(&metrics);
    return 0;
}

static void store_launch(uint64_t position, uint32_t grid)
{
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    record.launch.launch = position;
    record.launch.grid[0] = grid;
    fixture_store(ingest, &record);
}

static kprof_record rows(uint64_t position, bool sampled, double *values, uint32_t count)
{
    kprof_record record = {.type = KPROF_RECORD_INSTRUCTIONS};
    record.instructions = (kprof_instructions_record){.launch = position,
                                                      .crc = 7,
                                                      .function = KERNEL,
                                                      .sampled = sampled,
                                                      .period_cycles = sampled ? 256 : 0,
                                                      .dropped = sampled ? 3 : 0,
                                                      .reason = "",
                                                      .name_count = sampled ? 1 : 2,
                                                      .names = sampled ? sample_names : counter_names,
                                                      .value_count = count,
                                                      .values = values};
    return record;
}

static void store_rows(uint64_t position)
{
    double counted[] = {0, 4, 0, 16, 4, 32}, sampled[] = {16, 5};
    const kprof_record records[] = {rows(position, false, counted, 6), rows(position, true, sampled, 2)};
    for (size_t i = 0; i < 2; i++)
        fixture_store(ingest, &records[i]);
}

static void store_code(const char *file)
{
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_CODE, .code = {7, 4096, (char *)file}});
}

/* The number that SQL gives, in the report or in another file that is open. */
static int64_t number(const char *sql)
{
    int64_t out = -1;
    assert_int_equal(kprof_store_integer(report, sql, &out), KPROF_OK);
    return out;
}

static void expect_sums(int64_t launches)
{
    assert_int_equal(number("SELECT count(*) FROM instruction_value"), 4);
    assert_int_equal(number("SELECT value FROM instruction_value JOIN metric ON metric.id=metric_id WHERE "
                            "name='smsp__sass_sectors_mem_global' AND offset=16"),
                     32 * launches);
    assert_int_equal(number("SELECT value FROM instruction_value JOIN metric ON metric.id=metric_id WHERE "
                            "name='smsp__pcsamp_warps_issue_stalled_wait'"),
                     5 * launches);
}

static void test_sums(void **state)
{
    (void)state;
    store_code("");
    for (uint64_t i = 0; i < 3; i++) {
        store_launch(i, i == 1 ? 99 : 7);
        if (i != 1)
            store_rows(i);
    }
    assert_int_equal(number("SELECT count(*) FROM code_profile"), 1);
    assert_int_equal(number("SELECT counted*100000+sampled*10000+period_cycles*10+dropped FROM code_profile"),
                     200000 + 20000 + 2560 + 6);
    assert_int_equal(number("SELECT count(*) FROM launch_code_profile"), 2);
    assert_int_equal(number("SELECT count(*) FROM code_profile_metric"), 3);
    assert_int_equal(number("SELECT count(*) FROM metric WHERE kind='instruction'"), 3);
    assert_int_equal(number("SELECT count(*) FROM code_function WHERE demangled LIKE 'vectorAdd(%'"), 1);
    expect_sums(2);
    store_launch(3, 8); /* another shape */
    store_rows(3);
    assert_int_equal(number("SELECT count(*) FROM code_profile"), 2);
}

static void test_single_launches(void **state)
{
    (void)state;
    kprof_report_keep_launches_apart(report);
    store_code("");
    for (uint64_t i = 0; i < 3; i++) {
        store_launch(i, 7);
        store_rows(i);
    }
    assert_int_equal(number("SELECT count(*) FROM code_profile WHERE counted=1 AND sampled=1"), 3);
    assert_int_equal(number("SELECT max(value) FROM instruction_value"), 32);
}

static void test_reason(void **state)
{
    (void)state;
    store_launch(0, 7);
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_INSTRUCTIONS,
                                          .instructions = {.sampled = 1, .function = "", .reason = "no permission"}});
    assert_int_equal(number("SELECT count(*) FROM code_profile WHERE counted=0 AND sampled=0 AND "
                            "reason='no permission'"),
                     1);
    assert_int_equal(number("SELECT count(*) FROM launch_code_profile"), 1);
    assert_int_equal(number("SELECT count(*) FROM code"), 0);
}

static void refuse(const kprof_record *record, const char *why)
{
    assert_int_equal(kprof_ingest_record(ingest, record), KPROF_BAD_SPOOL);
    assert_non_null(strstr(said.last, why));
}

static void test_records_that_do_not_fit(void **state)
{
    (void)state;
    double odd[] = {0, 1, 2, 16}, negative[] = {0, -1, 2}, between[] = {0.5, 1, 2}, far[] = {1e12, 1, 2};
    double *const impossible[] = {negative, between, far};
    store_code("");
    refuse(&(kprof_record){.type = KPROF_RECORD_CODE, .code = {7, 4096, ""}}, "a cubin twice: 7");
    kprof_record record = rows(4711, false, negative, 0);
    refuse(&record, "instructions of an unknown launch, 4711");
    store_launch(0, 7);
    record = rows(0, false, odd, 4);
    refuse(&record, "a wrong number of values");
    for (size_t i = 0; i < 3; i++) {
        record = rows(0, false, impossible[i], 3);
        refuse(&record, "impossible values");
    }
    assert_int_equal(number("SELECT count(*) FROM instruction_value"), 0);
    store_rows(0); /* goes on */
    expect_sums(1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sums),
        TEST(test_single_launches),
        TEST(test_reason),
        TEST(test_records_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
