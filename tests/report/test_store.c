/* The report file: created safely, readable after a kill or a full disk, and what its tables hold. */

#include "core/activities.h"
#include "fixture.h"
#include "log_capture.h"
#include "report/store/own_code.h"
#include "report/store/store.h"
#include "test.h"

#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static log_capture said;
static char path[512];
static fixture_metrics metrics;

static int set_up(void **state)
{
    metrics = fixture_metrics_load();
    snprintf(path, sizeof path, "%s", fixture_path("store.kprof"));
    log_capture_start(&said);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < 4; i++) {
        char name[600];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    fixture_metrics_free(&metrics);
    return 0;
}

static const kprof_run_info run = {"kprof ./app", "/tmp", "0.1.0", NULL, 0};

static kprof_ingest *begin_storing(kprof_report **report)
{
    kprof_ingest *ingest = NULL;
    *report = fixture_create(path, &metrics);
    ingest = kprof_ingest_new(*report);
    return ingest;
}

static void end_storing(kprof_report *report, kprof_ingest *ingest)
{
    kprof_ingest_free(ingest);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

static bool exists(const char *suffix)
{
    char name[600];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return access(name, F_OK) == 0;
}

TEST(test_create)
{
    kprof_report *report = NULL;
    struct stat info;
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_NEW, &run, &report), KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_false(exists("-wal") || exists("-shm") || exists("-journal"));
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_NEW, &run, &report), KPROF_OUTPUT);
    assert_non_null(strstr(said.last, "exists already"));
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &report), KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* A kprof that is killed while it begins leaves nothing that has to be rolled back before anybody can read it. */
TEST(test_no_journal_while_a_report_begins)
{
    kprof_report *report = NULL;
    _Alignas(struct inotify_event) char events[4096];
    char folder[600];
    const char *name = strrchr(path, '/') + 1;
    snprintf(folder, sizeof folder, "%s", path);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, dirname(folder), IN_CREATE) >= 0);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &report), KPROF_OK);
    ssize_t got = read(watch, events, sizeof events);
    size_t seen = 0;
    for (const char *at = events; at < events + got;) {
        const struct inotify_event *event = (const struct inotify_event *)at;
        if (strncmp(event->name, name, strlen(name)) == 0) { /* other tests use the folder, too */
            assert_null(strstr(event->name, "-journal"));
            seen++;
        }
        at += sizeof *event + event->len;
    }
    assert_true(seen > 0);
    close(watch);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

static int64_t query(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

/* Files in the folder whose names begin as the report's does. */
static size_t files_of_report(void)
{
    char pattern[600];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s*", path);
    size_t count = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return count;
}

/* Files that stand beside the report under names of its own. */
static void remove_drafts(void)
{
    char pattern[600];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s.new-*", path);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

TEST(test_replaced_when_complete)
{
    kprof_report *first = NULL, *second = NULL;
    fixture_write(path);
    int64_t before = query("SELECT count(*) FROM launch");
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &first), KPROF_OK);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &second), KPROF_OK);
    assert_int_equal(query("SELECT count(*) FROM launch"), before); /* the old one stays until then */
    assert_int_equal(kprof_report_close(first), KPROF_OK);
    assert_int_equal(query("SELECT count(*) FROM launch"), 0);
    assert_int_equal(kprof_report_close(second), KPROF_OK);
    assert_int_equal(query("SELECT count(*) FROM launch"), 0);
    assert_int_equal(files_of_report(), 1);
    fixture_write(path);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &first), KPROF_OK);
    kprof_report_discard(first);
    assert_int_equal(query("SELECT count(*) FROM launch"), before);
    assert_int_equal(files_of_report(), 1);
}

/* One run writes the report of a name in its place; another would replace it, at its start or at its end. */
TEST(test_not_replaced_while_written)
{
    kprof_report *live = NULL, *other = NULL;
    kprof_ingest *ingest = NULL;
    unlink(path);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &other), KPROF_OK);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_NEW, &run, &live), KPROF_OK);
    kprof_report *late = NULL;
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &late), KPROF_OUTPUT);
    assert_non_null(strstr(said.last, "another run is writing it"));
    ingest = kprof_ingest_new(live);
    fixture_begin_process(ingest, &metrics);
    assert_int_equal(kprof_report_close(other), KPROF_OUTPUT);
    assert_non_null(strstr(said.last, "the new report is in"));
    assert_true(exists("-wal"));
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &record);
    kprof_ingest_free(ingest);
    assert_int_equal(kprof_report_close(live), KPROF_OK);
    assert_int_equal(query("SELECT count(*) FROM launch"), 1);
    assert_int_equal(files_of_report(), 2);
    remove_drafts();
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_REPLACE, &run, &other), KPROF_OK);
    assert_int_equal(kprof_report_close(other), KPROF_OK); /* now it is nobody's */
    assert_int_equal(query("SELECT count(*) FROM launch"), 0);
}

/* A report of the same run and plans, made from what was kept of it before anything was measured. */
TEST(test_made_again_from_its_seed)
{
    char seed[600];
    kprof_report *report = NULL, *again = NULL;
    kprof_ingest *ingest = begin_storing(&report);
    snprintf(seed, sizeof seed, "%s-seed", path);
    unlink(seed);
    assert_int_equal(kprof_report_keep_seed(report, seed), KPROF_OK);
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_begin_process(ingest, &metrics);
    fixture_store(ingest, &launch);
    end_storing(report, ingest);
    int64_t values = query("SELECT count(*) FROM value"), sum = query("SELECT 1000*sum(value) FROM value");
    assert_true(kprof_report_is_same_run(path, seed));

    int fd = open(seed, O_RDONLY | O_CLOEXEC);
    assert_int_equal(kprof_report_recreate(path, KPROF_CREATE_NEW, fd, &again), KPROF_OUTPUT); /* it exists */
    unlink(path);
    assert_int_equal(kprof_report_recreate(path, KPROF_CREATE_NEW, fd, &again), KPROF_OK);
    assert_true(kprof_report_is_unfinished(path));
    ingest = kprof_ingest_new(again);
    fixture_begin_process(ingest, &metrics);
    fixture_store(ingest, &launch);
    end_storing(again, ingest);
    assert_false(kprof_report_is_unfinished(path));
    assert_int_equal(query("SELECT count(*) FROM value"), values);
    assert_int_equal(query("SELECT 1000*sum(value) FROM value"), sum);
    assert_true(kprof_report_is_same_run(path, seed));
    close(fd);
    unlink(seed);
}

/* A seed that has launches, or is none, makes no report. */
TEST(test_seeds_that_are_none)
{
    char target[600];
    kprof_report *report = NULL;
    fixture_write(path);
    snprintf(target, sizeof target, "%s-again", path);
    unlink(target);
    int fd = open(path, O_RDONLY | O_CLOEXEC), text = open(__FILE__, O_RDONLY | O_CLOEXEC);
    assert_int_equal(kprof_report_recreate(target, KPROF_CREATE_NEW, fd, &report), KPROF_BAD_REPORT);
    assert_int_not_equal(kprof_report_recreate(target, KPROF_CREATE_NEW, text, &report), KPROF_OK);
    assert_int_equal(access(target, F_OK), -1);
    close(fd);
    close(text);
}

/* Somebody looks at the report while it is completed: both have all of it. */
TEST(test_closed_under_a_reader)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    kprof_report *report = NULL;
    kprof_ingest *ingest = NULL;
    unlink(path);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_NEW, &run, &report), KPROF_OK);
    ingest = kprof_ingest_new(report);
    fixture_begin_process(ingest, &metrics);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM metric", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW); /* and holds what it reads */
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &record);
    kprof_ingest_free(ingest);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    assert_int_equal(query("SELECT count(*) FROM launch"), 1);
    assert_int_equal(query("PRAGMA application_id"), 0x6b707266);
    assert_int_equal(query("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'"), 1);
    assert_int_equal(files_of_report(), 1);
}

TEST(test_create_where_it_cannot_be)
{
    kprof_report *report = NULL;
    assert_int_equal(kprof_report_create("/", KPROF_CREATE_REPLACE, &run, &report), KPROF_OUTPUT);
    assert_int_equal(kprof_report_create("/nonexistent/run.kprof", KPROF_CREATE_REPLACE, &run, &report), KPROF_OUTPUT);
    assert_int_equal(kprof_report_create("/dev/null", KPROF_CREATE_REPLACE, &run, &report), KPROF_OUTPUT);
    assert_null(report);
}

TEST(test_contents)
{
    fixture_write(path);
    assert_int_equal(query("SELECT count(*) FROM launch"), 4);
    assert_int_equal(query("SELECT count(*) FROM kernel"), 2); /* shared by both processes */
    assert_int_equal(query("SELECT count(*) FROM device"), 1);
    assert_int_equal(query("SELECT launches FROM seen_kernels"), 199);
    assert_int_equal(query("SELECT value FROM launch_metrics WHERE launch=0 AND metric='gpu__time_duration.sum'"),
                     62464);
    /* Asked for and not measured: NULL. Not asked for, because the launch was not measured: no row. */
    assert_int_equal(query("SELECT value IS NULL FROM launch_metrics WHERE launch=1 AND "
                           "metric='l1tex__t_sector_hit_rate.pct'"),
                     1);
    assert_int_equal(query("SELECT count(*) FROM launch_metrics WHERE launch=2 AND metric LIKE 'gpu__%'"), 0);
    assert_int_equal(query("SELECT value FROM launch_metrics WHERE launch=2 AND metric='launch__grid_size'"), 65536);
    assert_int_equal(query("SELECT count(*) FROM metric WHERE kind='launch' AND id NOT IN "
                           "(SELECT metric_id FROM value WHERE launch_id=2)"),
                     0);
    assert_int_equal(query("SELECT sum(value IS NULL) FROM value JOIN metric ON metric.id=metric_id "
                           "WHERE launch_id=1 AND name LIKE 'derived__sectors%'"),
                     2);
    assert_int_equal(query("SELECT round(value*1e6) FROM launch_metrics WHERE launch=0 AND "
                           "metric='derived__roofline_fp32_dram_intensity'"),
                     83279);
    assert_int_equal(query("SELECT wait_status FROM process WHERE pid=4243"), 9);
}

TEST(test_graph_nodes)
{
    fixture_write(path);
    assert_int_equal(query("SELECT count(*) FROM graph_node"), 2);
    assert_int_equal(query("SELECT node FROM graph_node WHERE launch_id=2"), 17);
    assert_int_equal(query("SELECT node=(1<<32)+18 FROM graph_node WHERE launch_id=3"), 1);
    assert_int_equal(query("SELECT count(*) FROM launches"), 4);
    assert_int_equal(query("SELECT sum(graph_node IS NULL) FROM launches"), 2);
}

TEST(test_nvtx_ranges)
{
    fixture_write(path);
    assert_int_equal(query("SELECT count(*) FROM nvtx"), 2);
    assert_int_equal(query("SELECT ranges='train/step 1/' FROM nvtx WHERE launch_id=2"), 1);
    assert_int_equal(query("SELECT count(*) FROM launches WHERE nvtx LIKE 'train/step 1/%'"), 2);
    assert_int_equal(query("SELECT sum(nvtx IS NULL) FROM launches"), 2);
}

TEST(test_passes)
{
    fixture_write(path);
    assert_int_equal(query("SELECT count(*) FROM pass WHERE chip='GH100'"), 9);
    assert_int_equal(query("SELECT sum(sm_side) FROM pass"), 8);
    assert_int_equal(query("SELECT counters FROM pass WHERE pass=9"), 8);
    /* Every counter has a pass, launch metrics have none, and throughputs several. */
    assert_int_equal(query("SELECT count(*) FROM metric WHERE kind='hardware' AND id NOT IN "
                           "(SELECT metric_id FROM schedule)"),
                     0);
    assert_int_equal(query("SELECT count(*) FROM metric WHERE kind='launch' AND id IN "
                           "(SELECT metric_id FROM schedule)"),
                     0);
    assert_int_equal(query("SELECT passes FROM metric_passes WHERE metric="
                           "'sm__throughput.avg.pct_of_peak_sustained_elapsed'"),
                     8);
    /* A derived value comes from all passes of its operands, and of theirs. */
    static const char sources[] = "SELECT count(*) FROM schedule JOIN metric ON metric.id=metric_id WHERE chip='GH100' "
                                  "AND name='derived__sectors_per_request_ld' AND pass IN (SELECT pass FROM schedule "
                                  "JOIN metric ON metric.id=metric_id WHERE name IN "
                                  "('l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum', "
                                  "'l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum'))";
    assert_int_equal(query(sources), 2);
    assert_int_equal(
        query("SELECT passes FROM metric_passes WHERE metric LIKE '%inst_executed%pct_spread_over_passes'"), 8);
    assert_true(query("SELECT passes FROM metric_passes WHERE metric='derived__roofline_fp32_dram_pct_of_roof'") >
                query("SELECT passes FROM metric_passes WHERE metric='derived__roofline_fp32_dram_intensity'"));
}

TEST(test_witnesses)
{
    fixture_write(path);
    assert_int_equal(query("SELECT count(*) FROM metric WHERE kind='witness'"), 2);
    assert_int_equal(query("SELECT 1000*value FROM launch_metrics WHERE launch=1 AND metric="
                           "'gpu__time_active.sum.pct_spread_over_passes'"),
                     14250);
    assert_int_equal(query("SELECT value=0 FROM launch_metrics WHERE launch=0 AND metric LIKE '%inst%over_passes'"), 1);
    /* Measured, but without witnesses; and not measured. */
    assert_int_equal(
        query("SELECT sum(value IS NULL) FROM launch_metrics WHERE launch=3 AND metric LIKE '%over_passes'"), 2);
    assert_int_equal(query("SELECT count(*) FROM launch_metrics WHERE launch=2 AND metric LIKE '%over_passes'"), 0);
}

TEST(test_counts)
{
    fixture_write(path);
    kprof_report *report = NULL;
    kprof_report_counts counts;
    kprof_seen_kernel *kernels = NULL;
    size_t count = 0;
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    assert_int_equal(kprof_report_count(report, &counts), KPROF_OK);
    assert_true(counts.launches == 201 && counts.profiled == 3 && counts.not_measured == 1 && counts.kernels == 2);
    assert_int_equal(kprof_report_seen(report, &kernels, &count), KPROF_OK);
    assert_int_equal(count, 2);
    assert_string_equal(kernels[0].function, "vectorized_elementwise_kernel");
    assert_int_equal(kernels[0].launches, 199);
    assert_string_equal(kernels[1].mangled, "_Z9vectorAddPKfS0_Pfi");
    kprof_seen_free(kernels, count);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* Print from the report that is being written, as a run without -o does. */
TEST(test_print_while_writing)
{
    kprof_report *report = fixture_create(path, &metrics);
    kprof_ingest *ingest = NULL;
    kprof_status status;
    ingest = kprof_ingest_new(report);
    fixture_begin_process(ingest, &metrics);
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &record);
    KPROF_AUTO_FREE char *text = fixture_print(report, &(kprof_print_options){.page = KPROF_PAGE_DETAILS}, &status);
    assert_int_equal(status, KPROF_OK);
    assert_non_null(strstr(text, "62.46 us"));
    kprof_ingest_free(ingest);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

static void expect_printed(kprof_report *report, kprof_print_options options, const char *text)
{
    kprof_status status;
    KPROF_AUTO_FREE char *printed = fixture_print(report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    if (!strstr(printed, text))
        fail_msg("\"%s\" is not in:\n%.2000s", text, printed);
}

/* A graph as a whole has no shape: such values are missing in all formats, not 0. */
TEST(test_graph_as_a_whole)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    kprof_record record = {.type = KPROF_RECORD_KERNEL,
                           .kernel = {.kernel = 3, .mangled = "CUDAGraph<2 kernels, 00abcd>"}};
    fixture_store(ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    record.launch.kernel = 3;
    memset(record.launch.grid, 0, sizeof record.launch.grid);
    memset(record.launch.block, 0, sizeof record.launch.block);
    fixture_store(ingest, &record);
    expect_printed(report, (kprof_print_options){.page = KPROF_PAGE_DETAILS},
                   "CUDAGraph<2 kernels, 00abcd>, Context 1, Stream 7, ");
    expect_printed(report, (kprof_print_options){.format = KPROF_FORMAT_CSV}, ",9.0,,,,,,,\"batch\",");
    expect_printed(report, (kprof_print_options){.format = KPROF_FORMAT_CSV_NCU},
                   "\"CUDAGraph<2 kernels, 00abcd>\",\"1\",\"7\",\"\",\"\",\"0\"");
    expect_printed(report, (kprof_print_options){.format = KPROF_FORMAT_JSON},
                   "\"grid\":null,\"block\":null,\"cluster\":null,\"dynamic_shared_memory_bytes\":null");
    expect_printed(report, (kprof_print_options){.format = KPROF_FORMAT_JSON},
                   "\"registers_per_thread_compiled\":null");
    end_storing(report, ingest);
    assert_int_equal(
        query("SELECT count(*) FROM launch_metrics WHERE metric LIKE 'launch__grid%' AND value IS NOT NULL"), 0);
    assert_int_equal(query("SELECT count(*) FROM launches WHERE kernel='CUDAGraph'"), 1);
}

/* A kernel that the compiler gave 12 registers gets 16 from a GH100: the numbers have one name each in all formats. */
TEST(test_names_of_registers)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    kprof_record record = {.type = KPROF_RECORD_KERNEL, .kernel = fixture_kernel()};
    record.kernel.kernel = 3;
    record.kernel.registers_per_thread = 12;
    fixture_store(ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    record.launch.kernel = 3;
    fixture_store(ingest, &record);
    expect_printed(report, (kprof_print_options){.format = KPROF_FORMAT_JSON}, "\"registers_per_thread_compiled\":12");
    kprof_print_options raw = {.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_JSON};
    expect_printed(report, raw, "\"launch__registers_per_thread_compiled\":12");
    expect_printed(report, raw, "\"launch__registers_per_thread\":16");
    expect_printed(report, (kprof_print_options){.page = KPROF_PAGE_DETAILS}, "Compiled Registers Per Thread");
    expect_printed(report, (kprof_print_options){.page = KPROF_PAGE_DETAILS}, "12 register/thread");
    expect_printed(report, (kprof_print_options){.page = KPROF_PAGE_DETAILS}, "16 register/thread");
    end_storing(report, ingest);
    assert_int_equal(query("SELECT value FROM launch_metrics WHERE metric='launch__registers_per_thread'"), 16);
    assert_int_equal(query("SELECT value FROM launch_metrics WHERE metric='launch__registers_per_thread_compiled'"),
                     12);
}

static void expect_bad_spool(kprof_ingest *ingest, const kprof_record *record)
{
    assert_int_equal(kprof_ingest_record(ingest, record), KPROF_BAD_SPOOL);
}

TEST(test_records_that_do_not_fit)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    expect_bad_spool(ingest, &launch);
    fixture_begin_process(ingest, &metrics);
    launch.launch.kernel = 17;
    expect_bad_spool(ingest, &launch);
    launch.launch.kernel = 1;
    launch.launch.device = 3;
    expect_bad_spool(ingest, &launch);
    launch.launch.device = 0;
    launch.launch.value_count = 2;
    expect_bad_spool(ingest, &launch);
    launch.launch.value_count = (uint32_t)metrics.names.count;
    launch.launch.witness_count = 1;
    launch.launch.witness_spreads_pct = metrics.values;
    expect_bad_spool(ingest, &launch);
    kprof_record seen = {.type = KPROF_RECORD_SEEN, .seen = {17, 1}};
    expect_bad_spool(ingest, &seen);
    kprof_record census = {.type = KPROF_RECORD_CENSUS, .census = {.row = 1, .kernel = 1}};
    expect_bad_spool(ingest, &census); /* no launch has such a shape */
    kprof_record again = {.type = KPROF_RECORD_DEVICE, .device = fixture_device()};
    expect_bad_spool(ingest, &again);
    again = (kprof_record){.type = KPROF_RECORD_KERNEL, .kernel = fixture_kernel()};
    expect_bad_spool(ingest, &again);
    launch.launch = fixture_launch(&metrics);
    fixture_store(ingest, &launch); /* the others have left no trace */
    end_storing(report, ingest);
    assert_int_equal(query("SELECT count(*) FROM launch"), 1);
}

/* A spool from anywhere may tell of a sample twice. That ends no run. */
TEST(test_samples_that_are_told_twice)
{
    kprof_report *report;
    static const char *const names[] = {"active", "busy", "busy"};
    static const double values[] = {0, 10, 100, 50, 60};
    kprof_ingest *ingest = begin_storing(&report);
    kprof_record record = {.type = KPROF_RECORD_TIMELINE};
    record.timeline = (kprof_timeline_record){.launch = fixture_launch(&metrics).launch,
                                              .interval_ns = 10,
                                              .name_count = 3,
                                              .names = names,
                                              .value_count = 5,
                                              .values = values,
                                              .reason = ""};
    fixture_begin_process(ingest, &metrics);
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)});
    fixture_store(ingest, &record);
    fixture_store(ingest, &record);
    end_storing(report, ingest);
    assert_int_equal(query("SELECT count(*) FROM timeline"), 2);
    assert_int_equal(query("SELECT count(*) FROM timeline_pass"), 1);
}

static kprof_record activities_of(const char *bytes, uint32_t byte_count, uint32_t count)
{
    return (kprof_record){.type = KPROF_RECORD_ACTIVITIES, .activities = {count, byte_count, bytes}};
}

/* A block, here of numbers that somebody has given to calls, is stored whole or not at all. */
TEST(test_traces_that_do_not_fit)
{
    kprof_report *report;
    static const char two[] = {KPROF_ACTIVITY_EXTERNAL, 1, 2, KPROF_ACTIVITY_EXTERNAL, 1, 2},
                      named[] = {KPROF_ACTIVITY_OVERHEAD, 16, 4}, /* name 2 */
        called[] = {KPROF_ACTIVITY_CALLER, 2, 2};                 /* stack 1 */
    kprof_ingest *ingest = begin_storing(&report);
    kprof_record trace = {.type = KPROF_RECORD_TRACE, .trace = {5}},
                 name = {.type = KPROF_RECORD_NAME, .name = {1, 1, "_Z3addv"}}, block = activities_of(two, 6, 2);
    fixture_begin_process(ingest, &metrics);
    expect_bad_spool(ingest, &block);
    expect_bad_spool(ingest, &name);
    fixture_store(ingest, &trace);
    expect_bad_spool(ingest, &trace);
    fixture_store(ingest, &name);
    expect_bad_spool(ingest, &name); /* the next one is 2 */
    name.name = (kprof_name_record){UINT32_MAX, 0, "far away"};
    expect_bad_spool(ingest, &name);
    block = activities_of(named, 3, 1);
    expect_bad_spool(ingest, &block);
    block = activities_of(called, 3, 1);
    expect_bad_spool(ingest, &block);
    for (uint32_t size = 0; size < 6; size++) {
        block = activities_of(two, size, 2);
        expect_bad_spool(ingest, &block);
    }
    block = activities_of(two, 6, 3);
    expect_bad_spool(ingest, &block);
    block = activities_of(two, 6, 2);
    fixture_store(ingest, &block);
    name.name = (kprof_name_record){2, 0, "context"};
    fixture_store(ingest, &name);
    block = activities_of(named, 3, 1);
    fixture_store(ingest, &block);
    const kprof_record stack = {.type = KPROF_RECORD_STACK, .stack = {1, false, "no frames", 0, NULL}};
    fixture_store(ingest, &stack);
    block = activities_of(called, 3, 1);
    fixture_store(ingest, &block);
    end_storing(report, ingest);
    assert_int_equal(query("SELECT stack_id FROM trace_caller"), 1);
    assert_int_equal(query("SELECT count(*) FROM trace_external"), 2);
    assert_int_equal(query("SELECT max(correlation) FROM trace_external"), 2);
    assert_int_equal(
        query("SELECT count(*) FROM trace_overhead JOIN trace_name n ON n.id=name_id WHERE text='context'"), 1);
    assert_int_equal(query("SELECT activities FROM trace"), 4);
    assert_int_equal(query("SELECT count(*) FROM trace_name WHERE function='add' AND demangled='add()'"), 1);
}

static kprof_record metrics_of(const char *chip)
{
    static const char *const names[] = {"other__metric.sum"}, *const witnesses[] = {"other__witness.sum"};
    kprof_record record = {.type = KPROF_RECORD_METRICS};
    record.metrics = (kprof_metrics_record){chip, 1, 1, names, 1, witnesses};
    return record;
}

TEST(test_records_out_of_place)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    kprof_record device = {.type = KPROF_RECORD_DEVICE, .device = fixture_device()};
    kprof_record named = metrics_of("GH100"), process = {.type = KPROF_RECORD_PROCESS};
    expect_bad_spool(ingest, &device);
    fixture_begin_process(ingest, &metrics);
    expect_bad_spool(ingest, &process);
    expect_bad_spool(ingest, &named); /* it says otherwise what the values are */
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &launch);
    end_storing(report, ingest);
    assert_int_equal(query("SELECT count(*) FROM process"), 1);
    assert_int_equal(query("SELECT count(*) FROM launch_metrics WHERE metric='other__metric.sum'"), 0);
}

/* The application may use a GPU of another kind after the first launches. */
TEST(test_chip_told_of_later)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &launch);
    kprof_record device = {.type = KPROF_RECORD_DEVICE, .device = fixture_device()}, named = metrics_of("GB202");
    device.device.device = 1;
    device.device.chip = "GB202";
    device.device.uuid = "GPU-other";
    fixture_store(ingest, &device);
    fixture_store(ingest, &named);
    launch.launch.device = 1;
    launch.launch.value_count = launch.launch.witness_count = 1;
    launch.launch.values = (const double[]){42};
    launch.launch.witness_spreads_pct = (const double[]){7};
    fixture_store(ingest, &launch);
    end_storing(report, ingest);
    assert_int_equal(query("SELECT value FROM launch_metrics WHERE launch=1 AND metric='other__metric.sum'"), 42);
    assert_int_equal(query("SELECT value FROM launch_metrics WHERE launch=1 AND metric LIKE 'other__witness%'"), 7);
    assert_int_equal(query("SELECT count(*) FROM launch_metrics WHERE launch=1 AND metric LIKE 'gpu__time%'"), 0);
    assert_int_equal(query("SELECT count(*) FROM launch_metrics WHERE launch=0 AND metric LIKE 'other__%'"), 0);
}

static void arm(kprof_ingest *ingest, uint32_t turn, uint32_t plan)
{
    kprof_record record = {.type = KPROF_RECORD_ARMED, .armed = {turn, plan}};
    fixture_store(ingest, &record);
}

/* The run's own plan in turns 1 and 3, and another one with a metric of its own in turn 2. */
static void store_turns(kprof_ingest *ingest)
{
    static const double other[] = {42};
    kprof_record named = metrics_of("GH100"), seen = {.type = KPROF_RECORD_SEEN, .seen = {1, 1}};
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    arm(ingest, 1, 0);
    fixture_store(ingest, &launch);
    fixture_store(ingest, &seen);
    arm(ingest, 2, 1);
    fixture_store(ingest, &named);
    launch.launch.launch = 1;
    launch.launch.value_count = 1;
    launch.launch.values = other;
    fixture_store(ingest, &launch);
    seen.seen.launches = 4;
    fixture_store(ingest, &seen);
    arm(ingest, 3, 0);
    launch.launch = fixture_launch(&metrics);
    launch.launch.launch = 2;
    fixture_store(ingest, &launch);
    seen.seen.launches = 9;
    fixture_store(ingest, &seen);
}

/* Of what kprof ctl has started a report has the launches of one plan, and of its later turns alone if that is wanted.
 */
TEST(test_turns_of_kprof_ctl)
{
    static const struct {
        uint32_t plan, first_turn;
        int64_t launches, least, seen;
    } rows[] = {{0, 0, 2, 0, 9}, {0, 1, 2, 0, 9}, {0, 3, 1, 2, 5}, {1, 2, 1, 1, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_report *report;
        kprof_ingest *ingest = begin_storing(&report);
        kprof_ingest_choose(ingest, rows[i].plan, rows[i].first_turn);
        fixture_begin_process(ingest, &metrics);
        store_turns(ingest);
        end_storing(report, ingest);
        assert_int_equal(query("SELECT count(*) FROM launch"), rows[i].launches);
        assert_int_equal(query("SELECT min(position) FROM launch"), rows[i].least);
        assert_int_equal(query("SELECT launches FROM seen"), rows[i].seen);
        assert_int_equal(query("SELECT count(*) FROM launch_metrics WHERE metric='other__metric.sum'"), rows[i].plan);
    }
}

/* A launch is there with its values, or not at all; the next one takes its place. */
TEST(test_launch_that_cannot_be_stored)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    launch.launch.graph_node = 17;
    launch.launch.nvtx = "step/";
    assert_int_equal(kprof_store_exec(report,
                                      "CREATE TEMP TRIGGER refuse BEFORE INSERT ON value WHEN NEW.metric_id > 3 "
                                      "BEGIN SELECT RAISE(ABORT, 'refused'); END"),
                     KPROF_OK);
    assert_int_equal(kprof_ingest_record(ingest, &launch), KPROF_INTERNAL);
    assert_int_equal(kprof_store_exec(report, "DROP TRIGGER refuse"), KPROF_OK);
    launch.launch.thread = 77;
    launch.launch.graph_node = 0;
    launch.launch.nvtx = "";
    fixture_store(ingest, &launch);
    end_storing(report, ingest);
    assert_int_equal(query("SELECT count(*) FROM launch"), 1);
    assert_int_equal(query("SELECT count(*) FROM launch WHERE id=0 AND thread=77"), 1);
    assert_int_equal(query("SELECT count(*) FROM value WHERE launch_id NOT IN (SELECT id FROM launch)"), 0);
    assert_int_equal(query("SELECT count(*) FROM graph_node"), 0);
    assert_int_equal(query("SELECT count(*) FROM nvtx"), 0);
}

/* Two threads of the application may hand their kernels over in either order. */
TEST(test_kernels_in_any_order)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    for (uint32_t i = 0; i < 20; i++) {
        char name[32];
        kprof_record kernel = {.type = KPROF_RECORD_KERNEL, .kernel = fixture_kernel()};
        kernel.kernel.kernel = 3 + (i * 7) % 20;
        snprintf(name, sizeof name, "kernel%u", kernel.kernel.kernel);
        kernel.kernel.mangled = name;
        fixture_store(ingest, &kernel);
    }
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    launch.launch.kernel = 11;
    fixture_store(ingest, &launch);
    end_storing(report, ingest);
    assert_int_equal(query("SELECT count(*) FROM launch JOIN kernel ON kernel.id=kernel_id "
                           "WHERE mangled='kernel11'"),
                     1);
}

/* Store launches one by one, a transaction each; the child ends without closing anything. Returns how many it stored
 * through its exit status. */
static void store_until_failure(int limit)
{
    kprof_report *report = fixture_create(path, &metrics);
    kprof_ingest *ingest = kprof_ingest_new(report);
    int stored = 0;
    fixture_begin_process(ingest, &metrics);
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    kprof_status status = KPROF_OK;
    while (stored < limit && status == KPROF_OK) {
        status = kprof_report_begin(report);
        if (status == KPROF_OK)
            status = kprof_ingest_record(ingest, &record);
        if (status == KPROF_OK)
            status = kprof_report_commit(report);
        stored += status == KPROF_OK;
    }
    if (status != KPROF_OK && (status != KPROF_OUTPUT || !strstr(said.last, "cannot write the report")))
        _exit(254);
    if (limit < 250) { /* killed in the middle of the next transaction */
        (void)!kprof_report_begin(report);
        (void)!kprof_ingest_record(ingest, &record);
    }
    _exit(stored);
}

static int run_child(int limit, rlim_t file_size)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limits = {file_size, file_size};
        if (file_size && setrlimit(RLIMIT_FSIZE, &limits) != 0)
            _exit(253);
        store_until_failure(limit);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_launches(int at_least)
{
    kprof_report *report = NULL;
    kprof_report_counts counts;
    kprof_status status;
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    assert_int_equal(kprof_report_count(report, &counts), KPROF_OK);
    assert_int_equal(counts.profiled, at_least);
    free(fixture_print(report, &(kprof_print_options){.format = KPROF_FORMAT_CSV}, &status));
    assert_int_equal(status, KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

TEST(test_killed_while_writing)
{
    int stored = run_child(20, 0);
    assert_int_equal(stored, 20);
    expect_launches(20);
}

TEST(test_full_disk)
{
    const rlim_t sizes[] = {500 * 1024, 700 * 1024, 1024 * 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int stored = run_child(250, sizes[i]);
        assert_true(stored > 0 && stored < 250);
        expect_launches(stored);
    }
}

#define TIME_ROWS 20

/* Two samples before the SMs are busy, 14 in which they are, and four of a tail. */
static void store_times(kprof_ingest *ingest, uint64_t launch, size_t rows)
{
    static const char *const names[] = {KPROF_SAMPLE_ACTIVITY, "gr__cycles_active.avg.pct_of_peak_sustained_elapsed"};
    double values[4 * TIME_ROWS];
    for (size_t i = 0; i < rows; i++) {
        const double row[] = {1000.0 * (double)i, 1000, i < 2 ? 50 : i < 16 ? 80 : 16, 100};
        memcpy(values + 4 * i, row, sizeof row);
    }
    kprof_record record = {.type = KPROF_RECORD_TIMELINE, .timeline = {.launch = launch, .reason = "", .names = names}};
    record.timeline.name_count = 2;
    record.timeline.value_count = (uint32_t)(4 * rows);
    record.timeline.values = values;
    fixture_store(ingest, &record);
    fixture_store(ingest, &record); /* the first one counts */
}

TEST(test_times)
{
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &launch);
    const uint64_t position = launch.launch.launch;
    store_times(ingest, position, TIME_ROWS);
    launch.launch.launch++;
    fixture_store(ingest, &launch);
    store_times(ingest, position + 1, TIME_ROWS - 1); /* too few to tell how it begins and ends */
    end_storing(report, ingest);
    assert_int_equal(query("SELECT count(*) FROM timeline"), 2 * (2 * TIME_ROWS - 1));
    assert_int_equal(query("SELECT sum(samples) FROM timeline_pass"), 2 * TIME_ROWS - 1);
    assert_int_equal(query("SELECT count(*) FROM value JOIN metric ON id=metric_id WHERE name GLOB 'timeline__*'"), 3);
#define PCT(name) query("SELECT round(value) FROM value JOIN metric ON id=metric_id WHERE name='timeline__" name "'")
    assert_int_equal(PCT("ramp_up_pct"), 10);
    assert_int_equal(PCT("tail_pct"), 20);
    assert_int_equal(PCT("tail_lost_pct"), 16);
#undef PCT
}

/* DRAM is the busiest for 12 of 30 us, then the tensor cores. */
TEST(test_phases)
{
    enum { ROWS = 30, WIDTH = 5 };
    static const char *const names[] = {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
                                        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                                        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"};
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &launch);
    double values[ROWS * WIDTH];
    for (size_t i = 0; i < ROWS; i++) {
        const double row[] = {1000.0 * (double)i, 1000, 99, i < 12 ? 82 : 10, i < 12 ? 0 : 71};
        memcpy(values + WIDTH * i, row, sizeof row);
    }
    kprof_record record = {.type = KPROF_RECORD_TIMELINE};
    record.timeline = (kprof_timeline_record){.launch = launch.launch.launch, .reason = "", .names = names};
    record.timeline.name_count = WIDTH - 2;
    record.timeline.value_count = ROWS * WIDTH;
    record.timeline.values = values;
    fixture_store(ingest, &record);
    end_storing(report, ingest);
#define VALUE(name) query("SELECT round(value) FROM value JOIN metric ON id=metric_id WHERE name='timeline__" name "'")
    assert_int_equal(VALUE("phases"), 2);
    assert_int_equal(VALUE("phase1_end_pct"), 40);
    assert_int_equal(VALUE("phase1_unit"), 1);
    assert_int_equal(VALUE("phase1_pct"), 82);
    assert_int_equal(VALUE("phase2_end_pct"), 100);
    assert_int_equal(VALUE("phase2_unit"), 4);
    assert_int_equal(VALUE("phase2_pct"), 71);
    assert_int_equal(query("SELECT count(*) FROM metric WHERE name GLOB 'timeline__phase3*'"), 0);
#undef VALUE
}

/* Each pass tells of all launches of a batch, behind them. */
TEST(test_times_of_many_launches)
{
    enum { LAUNCHES = 1000, PASSES = 3 };
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    for (size_t i = 0; i < LAUNCHES; i++, launch.launch.launch++)
        fixture_store(ingest, &launch);
    for (uint32_t i = 0; i < PASSES * LAUNCHES; i++) {
        const uint64_t position = launch.launch.launch - LAUNCHES + i % LAUNCHES;
        fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_TIMELINE,
                                              .timeline = {.launch = position, .pass = i / LAUNCHES, .reason = ""}});
    }
    const int steps = sqlite3_stmt_status(report->statements[KPROF_SQL_FIND_LAUNCH], SQLITE_STMTSTATUS_VM_STEP, 0);
    assert_in_range(steps, PASSES * LAUNCHES, PASSES * LAUNCHES * 200);
    end_storing(report, ingest);
    assert_int_equal(query("SELECT count(DISTINCT launch_id) FROM timeline_pass"), LAUNCHES);
}

static void refuse_times(kprof_ingest *ingest, kprof_timeline_record record)
{
    record.reason = "";
    assert_int_equal(kprof_ingest_record(ingest, &(kprof_record){.type = KPROF_RECORD_TIMELINE, .timeline = record}),
                     KPROF_BAD_SPOOL);
}

TEST(test_bad_times)
{
    static const char *const names[] = {"a", "b"};
    static const double backwards[] = {1000, 10, 1, 500, 10, 1}, odd[] = {0.5, 10, 1}, endless[] = {0, INFINITY, 1};
    kprof_report *report;
    kprof_ingest *ingest = begin_storing(&report);
    fixture_begin_process(ingest, &metrics);
    const kprof_record launch = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
    fixture_store(ingest, &launch);
    const uint64_t position = launch.launch.launch;
    refuse_times(ingest, (kprof_timeline_record){.launch = position + 7});
    refuse_times(ingest,
                 (kprof_timeline_record){
                     .launch = position, .name_count = 1, .names = names, .value_count = 6, .values = backwards});
    refuse_times(ingest, (kprof_timeline_record){
                             .launch = position, .name_count = 1, .names = names, .value_count = 3, .values = odd});
    refuse_times(ingest, (kprof_timeline_record){
                             .launch = position, .name_count = 1, .names = names, .value_count = 3, .values = endless});
    refuse_times(ingest,
                 (kprof_timeline_record){
                     .launch = position, .name_count = 2, .names = names, .value_count = 6, .values = backwards});
    refuse_times(ingest, (kprof_timeline_record){.launch = position, .value_count = 3, .values = odd});
    refuse_times(ingest, (kprof_timeline_record){.launch = position, .pass = UINT32_MAX});
    end_storing(report, ingest);
}

TEST(test_full_disk_at_creation)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        kprof_report *report = NULL;
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limits = {4096, 4096};
        (void)!setrlimit(RLIMIT_FSIZE, &limits);
        unlink(path);
        _exit(kprof_report_create(path, KPROF_CREATE_NEW, &run, &report) == KPROF_OUTPUT && files_of_report() == 0 ? 0
                                                                                                                   : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(test_output_that_cannot_be_written)
{
    fixture_write_census(path); /* of which each page and format tells something */
    kprof_report *report = NULL;
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    for (int i = 0; i < KPROF_PAGE_COUNT * KPROF_FORMAT_COUNT; i++) {
        kprof_print_options options = {.page = (kprof_page)(i % KPROF_PAGE_COUNT),
                                       .format = (kprof_format)(i / KPROF_PAGE_COUNT)};
        const bool is_of_ncu = options.page <= KPROF_PAGE_RAW || options.page == KPROF_PAGE_STATISTICS;
        const bool may_lack_all = options.page == KPROF_PAGE_STATISTICS || options.page == KPROF_PAGE_SOURCE;
        if (options.format == KPROF_FORMAT_TEXT_NCU && !is_of_ncu) /* the command line refuses it */
            continue;
        FILE *full = fopen("/dev/full", "w");
        assert_non_null(full);
        const kprof_status status = kprof_report_print(&report, 1, &options, full);
        if (!may_lack_all || status != KPROF_NO_MATCH) { /* that tells what it lacks */
            assert_int_equal(status, KPROF_OUTPUT);
            assert_non_null(strstr(said.last, "No space left"));
        }
        fclose(full);
    }
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

#define DIGEST "bd2kzq4x7rjmwp5ythfuvg3sne6alcobd2kzq4x7rjmwp5ythfu" /* a SHA-256 */
#define KEY    "BD2KZQ4X7RJMWP5YTHFUVG3SNE6ALCOBD2KZQ4X7RJMWP5YTHFUQ"

TEST(frames_of_frameworks_are_not_the_users_own)
{
    static const struct {
        const char *file;
        bool is_native, is_installed;
    } cases[] = {
        {"/home/me/train.py", false, false},
        {"/tmp/ipykernel_12/34.py", false, false},
        {"<string>", false, false},
        {"/usr/lib/python3.12/threading.py", false, true},
        {"/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", false, true},
        {"/usr/lib/python3/dist-packages/numpy/core.py", false, true},
        {"/tmp/torchinductor_me/ab/cab.py", false, true},
        {"/scratch/own/bd/c" DIGEST ".py", false, true},
        {"/scratch/own/bd/c" DIGEST ".main.so", true, true},
        {"/scratch/own/triton/" KEY "/launch.cpython-312-x86_64-linux-gnu.so", true, true},
        {"/home/me/.triton/cache/0af3/cuda_utils.so", true, true},
        {"/scratch/own/__triton_launcher.so", true, true},
        {"/tmp/__autograph_generated_fileo2g4eo52.py", false, true},
        {"/home/me/ab/cab.py", false, false},
        {"/home/me/c" DIGEST "2.py", false, false},
        {"/home/me/c0" DIGEST ".py", false, false},
        {"/home/me/" KEY "/project/train.py", false, false},
        {"c" DIGEST ".py", false, true},
        {"/root/.pex/installed_wheels/0/ab/torch-2.8.0-cp312-cp312-linux_x86_64.whl/torch/nn.py", false, true},
        {"<eval_with_key>.3", false, true},
        {"<frozen importlib._bootstrap>", false, true},
        {"<@beartype(lib.ops.run) at 0x7f>", false, true},
        {"<decorator-gen-7>", false, true},
        {"<__array_function__ internals>", false, true},
        {"<attrs generated init lib.Shape>", false, true},
        {"<lambdifygenerated-1>", false, true},
        {"<template>", false, true},
        {"<stdin>", false, false},
        {"<ipython-input-3-5d0a>", false, false},
        {"<python-input-0>", false, false},
        {"<cell line: 1>", false, false},
        {"<console>", false, false},
        {"<torch_package_0>.net/model.py", false, false},
        {"/home/me/app", true, false},
        {"/home/me/libkernels.so", true, false},
        {"/usr/bin/python3.12", true, true},
        {"/lib/x86_64-linux-gnu/libc.so.6", true, true},
        {"/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so", true, true},
        {"", true, true}, /* code that was generated */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_own;
        KPROF_AUTO(kprof_strbuf) package = KPROF_STRBUF_INIT;
        (void)kprof_own_code_find(&(kprof_frame_place){"", cases[i].file, cases[i].is_native, false}, 1, &is_own,
                                  &package);
        if ((is_own && package.length == 0) == cases[i].is_installed)
            fail_msg("\"%s\" is the user's own: %d", cases[i].file, cases[i].is_installed);
    }
}

/* "|" stands between the files, the innermost first; native ones have an .so in their name. */
static const char *told_of(const char *files)
{
    static char text[256];
    kprof_frame_place places[8];
    bool is_own[8];
    size_t count = 0;
    snprintf(text, sizeof text, "%s", files);
    for (char *at = text, *file; (file = strsep(&at, "|")) != NULL;)
        places[count++] = (kprof_frame_place){"f", file, strstr(file, ".so") != NULL, false};
    KPROF_AUTO(kprof_strbuf) package = KPROF_STRBUF_INIT;
    return places[kprof_own_code_find(places, count, is_own, &package)].file;
}

TEST(frame_that_stands_for_a_stack)
{
    assert_string_equal(told_of("/p/site-packages/torch/nn.py|/me/a.py|/me/b.py"), "/me/a.py");
    assert_string_equal(told_of("/p/site-packages/torch/nn.py|/me/own.so"), "/p/site-packages/torch/nn.py");
    assert_string_equal(told_of("/usr/lib/libc.so|/me/own.so"), "/me/own.so");
    /* Both python -c and programs that make up code run it as <string>. */
    assert_string_equal(told_of("<string>|/p/site-packages/lib/ops.py|/me/a.py"), "/me/a.py");
    assert_string_equal(told_of("<string>|/p/site-packages/lib/ops.py|<stdin>"), "<stdin>");
    assert_string_equal(told_of("<decorator-gen-7>|/p/site-packages/lib/ops.py|<string>"), "<string>");
    assert_string_equal(told_of("<frozen runpy>|/p/site-packages/lib/ops.py"), "/p/site-packages/lib/ops.py");
    /* A thread of PyTorch without Python launches by the runtime. */
    assert_string_equal(told_of("/lib64/libcuda.so|/p/site-packages/nvidia/libcudart.so|/p/site-packages/torch/lib/c.so"
                                "|/p/site-packages/torch/lib/a.so|/lib64/libc.so"),
                        "/p/site-packages/torch/lib/c.so");
    assert_string_equal(told_of("/lib64/libcuda.so|/lib64/libc.so"), "/lib64/libcuda.so");
}

/* nvcc links the runtime into the program, and kernels have functions of their names there, which launch them. */
TEST(frames_of_the_runtime_in_a_program)
{
    static const kprof_frame_place places[] = {
        {"libcudart_static_fff5db4de8afb04f893374d0840e43d8d209e179", "/me/app", true, false},
        {"cudaLaunchKernel", "/me/app", true, false},
        {"__cudaLaunchKernel", "/me/app", true, false},
        {"__cudaLaunchKernel_helper(CUkern_st*, dim3, dim3, void**, unsigned long, CUstream_st*)", "/me/app", true,
         false},
        {"cudaError cudaLaunchKernel<char>(char const*, dim3, dim3, void**, unsigned long, CUstream_st*)", "/me/app",
         true, false},
        {"__device_stub__Z5scaleIfEvPT_(float*)", "/me/app", true, false},
        {"void __wrapper__device_stub_scale<float>(float*&)", "/me/app", true, false},
        {"void scale<float>(float*)", "/me/app", true, false}, /* it follows its stub */
        {"plain(float*)", "/me/app", true, true},
        {"nvtxRangePushA", "/me/app", true, false},
        {"lib::Net::forward()", "/me/app", true, false},
        {"main", "/me/app", true, false},
    };
    bool is_own[COUNT_OF(places)];
    KPROF_AUTO(kprof_strbuf) package = KPROF_STRBUF_INIT;
    assert_int_equal(kprof_own_code_find(places, COUNT_OF(places), is_own, &package), 10);
    assert_true(is_own[10] && is_own[11] && !is_own[0]);
}

AROUND_EACH(set_up, tear_down)
