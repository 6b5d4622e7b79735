/* What a process measured of instructions, from records to tables, and through merging and choosing. */

#include "fixture.h"
#include "log_capture.h"
#include "report/model/merge.h"
#include "report/store/code_read.h"
#include "report/store/store.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
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
    metrics = fixture_metrics_load();
    snprintf(path, sizeof path, "%s", fixture_path("code-store.kprof"));
    log_capture_start(&said);
    report = fixture_create(path, &metrics);
    ingest = kprof_ingest_new(report);
    fixture_begin_process(ingest, &metrics);
    return 0;
}

static int tear_down(void **state)
{
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
    const int64_t out = kprof_store_integer(report, sql);
    assert_int_equal(report->status, KPROF_OK);
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

/* "OFFSET INSTRUCTIONS SECTORS" of each instruction. */
static void expect_values(const char *expected)
{
    static const char sql[] =
        "SELECT group_concat(row, ', ') FROM (SELECT offset || ' ' || CAST(sum(CASE WHEN name LIKE '%executed' THEN "
        "value ELSE 0 END) AS INTEGER) || ' ' || CAST(sum(CASE WHEN name LIKE '%global' THEN value ELSE 0 END) AS "
        "INTEGER) AS row FROM instruction_value JOIN metric ON metric.id=metric_id WHERE name LIKE 'smsp\\_\\_sass%' "
        "ESCAPE '\\' GROUP BY offset ORDER BY offset)";
    KPROF_AUTO(kprof_cursor) found = kprof_cursor_new(report, sql, "");
    assert_true(kprof_cursor_next(&found));
    assert_string_equal(kprof_store_column(found.row, 0), expected);
}

TEST(test_sums)
{
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

/* CUPTI lists as reasons two names that it counts nothing by. */
TEST(test_numbers_of_all_samples)
{
    const char *const names[] = {"smsp__pcsamp_sample_count", sample_names[0]};
    double sampled[] = {16, 0, 5};
    kprof_record record = rows(0, true, sampled, 3);
    record.instructions.names = names;
    record.instructions.name_count = 2;
    store_code("");
    store_launch(0, 7);
    fixture_store(ingest, &record);
    assert_int_equal(number("SELECT count(*) FROM code_profile_metric JOIN metric ON metric.id=metric_id WHERE "
                            "name='smsp__pcsamp_warps_issue_stalled_wait'"),
                     1);
    assert_int_equal(number("SELECT count(*) FROM metric WHERE kind='instruction'"), 1);
    assert_int_equal(number("SELECT value FROM instruction_value"), 5);
}

TEST(test_single_launches)
{
    kprof_report_keep_launches_apart(report);
    store_code("");
    for (uint64_t i = 0; i < 3; i++) {
        store_launch(i, 7);
        store_rows(i);
    }
    assert_int_equal(number("SELECT count(*) FROM code_profile WHERE counted=1 AND sampled=1"), 3);
    assert_int_equal(number("SELECT max(value) FROM instruction_value"), 32);
}

static void lack_rows(uint64_t position, bool sampled, const char *reason)
{
    fixture_store(
        ingest, &(kprof_record){.type = KPROF_RECORD_INSTRUCTIONS,
                                .instructions = {
                                    .launch = position, .sampled = sampled, .function = "", .reason = (char *)reason}});
}

/* Of launches that are not repeated one was to be sampled, which did not work, and another one is counted. */
TEST(test_reason_beside_other_launches)
{
    double counted[] = {0, 4, 0};
    store_code("");
    store_launch(0, 7);
    store_launch(1, 7);
    lack_rows(0, true, "no permission");
    lack_rows(0, false, KPROF_IN_ANOTHER);
    const kprof_record record = rows(1, false, counted, 3);
    fixture_store(ingest, &record);
    lack_rows(1, true, KPROF_IN_ANOTHER);
    assert_int_equal(number("SELECT count(*) FROM code_profile WHERE counted=1 AND sampled=0 AND "
                            "reason='no permission'"),
                     1);
}

TEST(test_reason)
{
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

TEST(test_records_that_do_not_fit)
{
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

/* Launches of a transaction are added up before they are stored, in whatever order their rows are. */
TEST(test_sums_of_a_transaction)
{
    double more[] = {8, 1, 2, 16, 3, 0, 48, 5, 7}, falls[] = {16, 1, 0, 0, 2, 0};
    store_code("");
    assert_int_equal(kprof_report_begin(report), KPROF_OK);
    for (uint64_t i = 0; i < 4; i++)
        store_launch(i, 7);
    store_rows(0);
    store_rows(1);
    assert_int_equal(number("SELECT count(*) FROM instruction_value"), 0);
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_INSTRUCTIONS,
                                          .instructions = rows(2, false, more, 9).instructions});
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_INSTRUCTIONS,
                                          .instructions = rows(3, false, falls, 6).instructions});
    assert_int_equal(kprof_report_commit(report), KPROF_OK);
    expect_values("0 10 0, 8 1 2, 16 12 64, 48 5 7");
    assert_int_equal(kprof_report_begin(report), KPROF_OK); /* and to what was stored before */
    store_launch(4, 7);
    store_rows(4);
    assert_int_equal(kprof_report_commit(report), KPROF_OK);
    expect_values("0 14 0, 8 1 2, 16 16 96, 48 5 7");
}

#define CODE_FOLDER KPROF_TESTS_DIR "/fixtures/code"

static const kprof_strlist *below; /* the folders whose sources are kept; NULL: all */

/* Read the code that the file has, from a folder. */
static void read_code_of(const char *from, const char *file, const char *function, bool keeps)
{
    double counted[] = {0, 4, 0};
    const int folder = open(from, O_RDONLY | O_DIRECTORY);
    assert_true(folder >= 0);
    store_code(file);
    store_launch(0, 7);
    kprof_record record = rows(0, false, counted, 3);
    record.instructions.function = (char *)function;
    fixture_store(ingest, &record);
    const kprof_code_options options = {.folder = folder,
                                        .nvdisasm = "/bin/false",
                                        .keeps_source = keeps,
                                        .keeps_sass = keeps,
                                        .source_folders = below};
    assert_int_equal(kprof_report_read_code(report, &options), KPROF_OK);
    close(folder);
}

static void read_code(const char *file, const char *function, bool keeps)
{
    read_code_of(CODE_FOLDER, file, function, keeps);
}

TEST(test_code_of_a_cubin)
{
    read_code("lengths_sm90.cubin", "lengths", false);
    assert_true(number("SELECT count(*) FROM code_instruction") > 10);
    assert_int_equal(number("SELECT bytes=(SELECT 16*count(*) FROM code_instruction) FROM code_function"), 1);
    assert_int_equal(number("SELECT count(*) FROM code_file WHERE path LIKE '%.cu' AND content IS NULL"), 1);
    assert_true(number("SELECT count(DISTINCT line) FROM code_line WHERE depth=0") > 2);
    assert_int_equal(number("SELECT count(*) FROM code WHERE line_state='' AND text_state<>'' AND cubin IS NULL"), 1);
}

TEST(test_cubin_that_is_kept)
{
    read_code("loop.cubin", "walk", true);
    assert_int_equal(number("SELECT count(*) FROM code WHERE substr(cubin,1,4)=x'7f454c46'"), 1);
}

/* Instructions, lines, inlined frames and the files of a kernel, as the cubin has them. */
TEST(test_kinds_of_cubins)
{
    static const struct {
        const char *cubin, *kernel, *line_state;
        int64_t instructions, has_lines, most_depth;
    } kinds[] = {{"plain.cubin", "lengths", "the code was compiled without lines", 32, 0, -1},
                 {"lengths_sm90.cubin", "lengths", "", 32, 1, 2},
                 {"softmax.cubin", "softmax_kernel", "", 24, 1, 1},
                 {"linked.cubin", "quadrupled", "", 24, 1, 0},
                 {"lengths_sm90.cubin", "nonesuch", "_%", 0, 0, -1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char sql[256];
        read_code(kinds[i].cubin, kinds[i].kernel, false);
        snprintf(sql, sizeof sql, "SELECT count(*) FROM code WHERE line_state LIKE '%s'", kinds[i].line_state);
        assert_int_equal(number(sql), 1);
        assert_int_equal(number("SELECT count(*) FROM code_instruction"), kinds[i].instructions);
        assert_int_equal(number("SELECT count(*)>0 FROM code_line"), kinds[i].has_lines);
        assert_int_equal(number("SELECT coalesce(max(depth), -1) FROM code_line"), kinds[i].most_depth);
        tear_down(state);
        set_up(state);
    }
}

/* Read the code that so many files have, each with a function of the same name that was measured. */
static void read_codes(const char *from, const char *const *files, size_t count, const char *nvdisasm)
{
    double counted[] = {0, 4, 0};
    const int folder = open(from, O_RDONLY | O_DIRECTORY);
    assert_true(folder >= 0);
    for (size_t i = 0; i < count; i++) {
        fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_CODE, .code = {7 + i, 4096, (char *)files[i]}});
        store_launch(i, 7);
        kprof_record record = rows(i, false, counted, 3);
        record.instructions.function = (char *)"lengths";
        record.instructions.crc = 7 + (uint32_t)i;
        fixture_store(ingest, &record);
    }
    const kprof_code_options options = {.folder = folder, .nvdisasm = nvdisasm};
    assert_int_equal(kprof_report_read_code(report, &options), KPROF_OK);
    close(folder);
}

/* Launches of kernels of the same name in two modules stay apart. */
TEST(test_two_cubins)
{
    read_codes(CODE_FOLDER, (const char *const[]){"plain.cubin", "lengths_sm90.cubin"}, 2, "/bin/false");
    assert_int_equal(number("SELECT count(*) FROM code"), 2);
    assert_int_equal(number("SELECT count(*) FROM code_function WHERE mangled='lengths'"), 2);
    assert_int_equal(number("SELECT count(*) FROM code_instruction"), 64);
    assert_int_equal(number("SELECT count(DISTINCT function_id) FROM code_line"), 1);
    assert_int_equal(number("SELECT count(*) FROM code WHERE line_state=''"), 1);
}

static void make_nvdisasm(char *folder, char program[64], const char *lines)
{
    assert_non_null(mkdtemp(folder));
    snprintf(program, 64, "%s/nvdisasm", folder);
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\ncd %s\n%s", folder, lines);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(program, 0755), 0);
}

static void remove_nvdisasm(const char *folder)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* nvdisasm runs for several cubins at once, where there are processors: this one waits for another one of its kind. The
 * report is as if they had run one after the other. */
TEST(test_cubins_are_read_at_once)
{
    const char *const files[] = {"plain.cubin", "lengths_sm90.cubin", "lengths_sm80.cubin",
                                 "none.cubin",  "loop.cubin",         "lengths_sm100.cubin"};
    char folder[] = "/tmp/kprof-XXXXXX", program[64];
    size_t readers = 0;
    make_nvdisasm(folder, program,
                  ": >$$\ni=0\nset -- [0-9]*\nwhile [ $i -lt 1000 ] && [ $# -lt 2 ]; do\n"
                  "sleep 0.02; i=$((i + 1)); set -- [0-9]*; done\n"
                  "[ $i -lt 1000 ] && cat " CODE_FOLDER "/lengths_sm90.sass\n");
    kprof_log_set_level(KPROF_LOG_DEBUG);
    read_codes(CODE_FOLDER, files, sizeof files / sizeof *files, program);
    kprof_log_set_level(KPROF_LOG_INFO);
    remove_nvdisasm(folder);
    const char *told = strstr(said.last, " ms, ");
    assert_non_null(told);
    assert_int_equal(sscanf(told, " ms, %zu at once", &readers), 1);
    if (readers < 2)
        skip();
    assert_int_equal(number("SELECT count(*) FROM code WHERE text_state=''"), 4);
    assert_int_equal(number("SELECT count(*) FROM code WHERE text_state LIKE '%not in the run%'"), 1);
    assert_int_equal(number("SELECT count(DISTINCT function_id) FROM code_instruction WHERE text='EXIT'"), 4);
    assert_int_equal(number("SELECT min(id) FROM code_file"), /* that of the first cubin with lines */
                     number("SELECT min(file_id) FROM code_line JOIN code_function AS f ON f.id=function_id "
                            "JOIN code ON code.id=code_id WHERE crc=8"));
}

/* A signal that is to end kprof ends each nvdisasm, whichever thread waits for it, and no more are started. */
TEST(test_cubins_are_left_without_texts_after_a_signal)
{
    const char *const files[] = {"plain.cubin", "lengths_sm90.cubin", "lengths_sm80.cubin", "lengths_sm100.cubin"};
    char folder[] = "/tmp/kprof-XXXXXX", program[64];
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &ends, &before), 0);
    make_nvdisasm(folder, program, "kill -TERM $PPID\nexec sleep 1000\n");
    read_codes(CODE_FOLDER, files, sizeof files / sizeof *files, program);
    remove_nvdisasm(folder);
    assert_int_equal(sigtimedwait(&ends, NULL, &(struct timespec){0}), SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(number("SELECT count(*) FROM code WHERE text_state LIKE '%a signal has interrupted it'"), 4);
    assert_int_equal(number("SELECT count(*) FROM code_instruction"), 128);
    assert_int_equal(number("SELECT count(*) FROM code_instruction WHERE text NOT NULL"), 0);
}

/* Whichever table cannot be written to while code is stored, that is told, and nothing more is done. */
TEST(test_code_that_cannot_be_stored)
{
    static const char *const tables[] = {"code_file", "code_instruction", "code_line", "code_ptx"};
    double counted[] = {0, 4, 0};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char trigger[160];
        store_code("softmax.cubin");
        store_launch(0, 7);
        kprof_record record = rows(0, false, counted, 3);
        record.instructions.function = (char *)"softmax_kernel";
        fixture_store(ingest, &record);
        snprintf(trigger, sizeof trigger,
                 "CREATE TEMP TRIGGER refuse BEFORE INSERT ON %s BEGIN SELECT RAISE(FAIL, 'no space'); END", tables[i]);
        assert_int_equal(sqlite3_exec(report->db, trigger, NULL, NULL, NULL), SQLITE_OK);
        const int folder = open(CODE_FOLDER, O_RDONLY | O_DIRECTORY);
        const kprof_code_options options = {.folder = folder, .nvdisasm = "/bin/false"};
        assert_int_not_equal(kprof_report_read_code(report, &options), KPROF_OK);
        assert_non_null(strstr(said.last, "no space"));
        close(folder);
        tear_down(state);
        set_up(state);
    }
}

/* The PTX that the cubin has is a file that is nowhere else. */
TEST(test_ptx)
{
    read_code("softmax.cubin", "softmax_kernel", false);
    assert_int_equal(number("SELECT count(*) FROM code_ptx"), 24);
    assert_int_equal(
        number("SELECT count(*) FROM code_file WHERE path LIKE '%.ptx' AND content LIKE '.version 8.0%' AND "
               "id IN (SELECT file_id FROM code_ptx)"),
        1);
    kprof_ingest_free(ingest);
    ingest = NULL;
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    const kprof_print_options options = {.page = KPROF_PAGE_SOURCE, .all_rows = true, .source_view = KPROF_VIEW_PTX};
    kprof_status status;
    KPROF_AUTO_FREE char *text = fixture_print(report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_non_null(strstr(text, ".ptx:16 "));
    assert_non_null(strstr(text, "    ld.global.f32 %f1, [%rd3];\n"));
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    report = NULL;
}

/* A hash as a name leaves the table room for the rest, and stands in full once. */
TEST(test_files_with_long_names)
{
    read_code("lengths_sm90.cubin", "lengths", false);
    number("UPDATE code_file SET path='/tmp/c/9ceafe2987914e4d377816e34fc3daf773f79583.cubin.cu' RETURNING id");
    kprof_ingest_free(ingest);
    ingest = NULL;
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    const kprof_print_options options = {.page = KPROF_PAGE_SOURCE, .all_rows = true, .source_view = KPROF_VIEW_CUDA};
    kprof_status status;
    KPROF_AUTO_FREE char *text = fixture_print(report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_non_null(strstr(text, "\n  9ceafe2987...83.cubin.cu:"));
    assert_non_null(strstr(text, "\n  /tmp/c/9ceafe2987914e4d377816e34fc3daf773f79583.cubin.cu "));
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    report = NULL;
}

/* Of the texts that a cubin was linked from, those alone that a measured function is of. */
TEST(test_ptx_of_linked_code)
{
    read_code("linked.cubin", "quadrupled", false);
    assert_int_equal(number("SELECT count(*) FROM code_ptx"), number("SELECT count(*) FROM code_instruction"));
    assert_int_equal(number("SELECT count(*) FROM code_file WHERE path LIKE '%.ptx'"), 1);
    assert_int_equal(number("SELECT count(*) FROM code_file WHERE content LIKE '%.entry quadrupled%' AND "
                            "id IN (SELECT file_id FROM code_ptx)"),
                     1);
}

static void write_file(const char *folder, const char *name, const char *content, size_t size)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", folder, name);
    FILE *file = fopen(whole, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The cubin says that its source is in a folder; of the same length as the one that it was made in. */
static void check_source(bool keeps, int64_t expected)
{
    static const char recorded[] = "/home/ada/project", text[] = "line 1\nline 2\n";
    char folder[] = "/tmp/kprof-XXXXXX", whole[64];
    assert_int_equal(strlen(folder), strlen(recorded));
    assert_non_null(mkdtemp(folder));
    size_t size = 0;
    char *cubin = fixture_read(CODE_FOLDER "/lengths_sm90.cubin", &size);
    char *place = memmem(cubin, size, recorded, strlen(recorded));
    assert_non_null(place);
    memcpy(place, folder, strlen(folder));
    write_file(folder, "a.cubin", cubin, size);
    write_file(folder, "lengths.cu", text, strlen(text));
    read_code_of(folder, "a.cubin", "lengths", keeps);
    assert_int_equal(number("SELECT count(*) FROM code_file WHERE path LIKE '/tmp/kprof-%/lengths.cu' AND bytes=14"),
                     1);
    assert_int_equal(
        number("SELECT count(*) FROM code_file WHERE content='line 1' || char(10) || 'line 2' || char(10)"), expected);
    free(cubin);
    snprintf(whole, sizeof whole, "%s/a.cubin", folder);
    unlink(whole);
    snprintf(whole, sizeof whole, "%s/lengths.cu", folder);
    unlink(whole);
    assert_int_equal(rmdir(folder), 0);
}

TEST(test_source_that_is_kept)
{
    check_source(true, 1);
}

/* Cubins of others might name any file. */
TEST(test_source_elsewhere_is_not_kept)
{
    char tests[] = KPROF_TESTS_DIR, *folders[] = {tests};
    const kprof_strlist elsewhere = {folders, 1, 1};
    below = &elsewhere;
    check_source(true, 0);
    below = NULL;
}

TEST(test_source_below_a_folder_is_kept)
{
    char all[] = "/tmp/../tmp", *folders[] = {all};
    const kprof_strlist given = {folders, 1, 1};
    below = &given;
    check_source(true, 1);
    below = NULL;
}

TEST(test_source_that_is_not_kept)
{
    check_source(false, 0);
}

/* A part has the profiles of its launches and the code of these, and a merged report those of all. */
TEST(test_parts_and_merged_reports)
{
    char part[512], both[512];
    snprintf(part, sizeof part, "%s", fixture_path("code-part.kprof"));
    snprintf(both, sizeof both, "%s", fixture_path("code-both.kprof"));
    read_code("lengths_sm90.cubin", "lengths", true);
    store_launch(1, 9);
    store_rows(1);
    const int64_t instructions = number("SELECT count(*) FROM code_instruction");
    const int64_t lines = number("SELECT count(*) FROM code_line");
    assert_int_equal(number("SELECT count(*) FROM code_profile"), 2);
    kprof_ingest_free(ingest);
    ingest = NULL;
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    const kprof_launch_range first = {0, 0};
    const kprof_strlist none = KPROF_STRLIST_INIT;
    const kprof_subset subset = {
        .ranges = &first, .range_count = 1, .sections = &none, .sections_of_set = &none, .metrics = &none};
    for (size_t i = 0; i < 2; i++) {
        const char *to = i ? both : part;
        kprof_merge *merge = NULL;
        assert_int_equal(kprof_report_create(to, KPROF_CREATE_REPLACE,
                                             &(kprof_run_info){"kprof", "/tmp", "0.1.0", NULL, 1}, &report),
                         KPROF_OK);
        merge = kprof_merge_new(report);
        assert_int_equal(kprof_merge_add(merge, path, "one", i ? NULL : &subset), KPROF_OK);
        assert_int_equal(number("SELECT count(*) FROM main.code_profile"), i + 1);
        assert_int_equal(number("SELECT count(*) FROM main.launch_code_profile"), i + 1);
        assert_int_equal(number("SELECT count(*) FROM main.code_function"), i + 1);
        assert_int_equal(number("SELECT count(*) FROM main.code_instruction"), instructions);
        assert_int_equal(number("SELECT count(*) FROM main.code_ptx JOIN main.code_file ON code_file.id=file_id"),
                         instructions);
        assert_int_equal(number("SELECT count(*) FROM main.code_line JOIN main.code_file ON code_file.id=file_id"),
                         lines);
        assert_int_equal(number("SELECT count(*) FROM main.instruction_value JOIN main.code_function ON "
                                "code_function.id=function_id JOIN main.code ON code.id=code_id JOIN main.metric ON "
                                "metric.id=metric_id JOIN main.code_profile ON code_profile.id=profile_id JOIN "
                                "main.launch ON launch.id=launch_id WHERE metric.kind='instruction'"),
                         i ? 5 : 1);
        assert_int_equal(kprof_merge_finish(merge), KPROF_OK);
        kprof_merge_free(merge);
        kprof_report_discard(report);
    }
    report = NULL;
}

/* Nothing outside of the folder is opened, and what is no cubin is told. */
TEST(test_odd_cubins)
{
    static const char *const odd[] = {"../code/loop.cubin", "..", "no-such-file", "loop.cu"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        read_code(odd[i], "walk", true);
        assert_int_equal(number("SELECT count(*) FROM code WHERE line_state<>'' AND text_state<>''"), 1);
        assert_int_equal(number("SELECT count(*) FROM code_instruction"), 0);
        if (i < 3)
            assert_int_equal(number("SELECT count(*) FROM code WHERE cubin IS NOT NULL"), 0);
        tear_down(state);
        set_up(state);
    }
}

TEST(test_size_of_a_report)
{
    enum { LAUNCHES = 30, SHAPES = 10, KERNELS = 2, INSTRUCTIONS = 1500, NAMES = 16 };
    static const char *names[NAMES];
    static double values[INSTRUCTIONS * (NAMES + 1)];
    static char text[NAMES][32];
    struct stat file;
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(text[i], sizeof text[i], "smsp__sass_number_%zu", i);
        names[i] = text[i];
    }
    for (size_t i = 0; i < INSTRUCTIONS; i++) { /* of which 10 have a value */
        values[i * (NAMES + 1)] = 16.0 * (double)i;
        for (size_t k = 1; k <= 10; k++)
            values[i * (NAMES + 1) + k] = (double)(1000 * k + i);
    }
    store_code("");
    assert_int_equal(kprof_report_begin(report), KPROF_OK);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        char function[32];
        store_launch(i, 1 + (uint32_t)i % SHAPES);
        snprintf(function, sizeof function, "kernel_%d", (int)(i % KERNELS));
        kprof_record record = rows(i, false, values, INSTRUCTIONS * (NAMES + 1));
        record.instructions.name_count = NAMES;
        record.instructions.names = names;
        record.instructions.function = function;
        fixture_store(ingest, &record);
    }
    assert_int_equal(number("SELECT count(*) FROM code_profile"), SHAPES);
    assert_int_equal(kprof_store_exec(report,
                                      "INSERT INTO code_file VALUES(1,'/home/user/a/file/of/some/length.cu',1,'',NULL);"
                                      "WITH RECURSIVE n(at) AS (SELECT 0 UNION ALL SELECT at+16 FROM n WHERE at<23984) "
                                      "INSERT INTO code_instruction SELECT id, at, 'LDG.E.128.CONSTANT R24, "
                                      "desc[UR4][R2.64+0x100]', 'Global', 'Load', 128 FROM code_function, n;"
                                      "INSERT INTO code_line SELECT function_id, offset, depth, 1, offset/16, 'name' "
                                      "FROM code_instruction, (SELECT 0 AS depth UNION SELECT 1);"
                                      "INSERT INTO code_wait SELECT function_id, offset+16, offset FROM "
                                      "code_instruction"),
                     KPROF_OK);
    assert_int_equal(number("SELECT count(*) FROM code_instruction"), KERNELS * INSTRUCTIONS);
    kprof_ingest_free(ingest);
    ingest = NULL;
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    report = NULL;
    assert_int_equal(stat(path, &file), 0);
    print_message("%.2f MB\n", (double)file.st_size / 1e6);
    assert_true(file.st_size < 5000000);
}

AROUND_EACH(set_up, tear_down)
