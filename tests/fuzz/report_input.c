/* Reports for harnesses. */
#include "report_input.h"

#include "../report/diff_fixture.h"
#include "../report/fixture.h"
#include "../report/trace_fixture.h"
#include "fuzz.h"
#include "output_check.h"
#include "report/diff/diff.h"
#include "report/model/merge.h"
#include "report/model/trace_stats.h"
#include "report/page/page_stats.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const kernel_bases[] = {"function", "demangled", "mangled", NULL};

/* The same findings for all inputs. */
static const kprof_finding_list *shipped_findings(void)
{
    static kprof_finding_list findings;
    static kprof_catalog *catalog; /* stays, since the findings are its */
    if (!catalog)
        catalog = fixture_findings_load(true, &findings);
    return &findings;
}

/* The report that others are compared with stays open. */
static kprof_report *baseline(void)
{
    static kprof_report *report;
    if (report)
        return report;
    char path[256];
    size_t size;
    KPROF_AUTO_FREE uint8_t *data = fuzz_read_fixture(false, &size);
    snprintf(path, sizeof path, "%s", fuzz_path("baseline.kprof"));
    fuzz_write_file(path, data, size);
    FUZZ_CHECK(kprof_report_open(path, &report) == KPROF_OK);
    return report;
}

static kprof_status compare(kprof_report *report, const kprof_print_options *options, FILE *out)
{
    kprof_condition condition = {(char *)"duration>+1%", (char *)KPROF_TIME_METRIC, KPROF_ABOVE, 1, true, ""};
    kprof_diff_outcome outcome;
    kprof_diff_request request = {.settings = {{.file = "a"}, {.file = "b"}},
                                  .conditions = &condition,
                                  .condition_count = 1,
                                  .tolerances = {KPROF_TIME_TOLERANCE_PCT, KPROF_TRAFFIC_TOLERANCE_PCT},
                                  .anyway = true,
                                  .outcome = &outcome};
    kprof_page_input source = {(kprof_report *[]){baseline(), report}, KPROF_SIDES, &request};
    kprof_status status = kprof_page_show(&kprof_diff_page, &source, options, out);
    return status == KPROF_UNKNOWN_NAME || status == KPROF_NOT_COMPARABLE ? KPROF_OK : status;
}

static kprof_status count(kprof_report *report, const kprof_filter_spec *filter)
{
    kprof_report_counts counts;
    kprof_seen_kernel *seen = NULL;
    size_t seen_count = 0;
    uint64_t taken;
    char *line = NULL;
    kprof_status status = kprof_report_count(report, &counts);
    if (status == KPROF_OK)
        status = kprof_report_count_taken(report, filter, &taken);
    if (status == KPROF_OK)
        status = kprof_report_seen(report, &seen, &seen_count);
    if (status == KPROF_OK)
        status = kprof_report_command_line(report, &line);
    kprof_seen_free(seen, seen_count);
    free(line);
    return status;
}

/* KPROF_PAGE_COUNT stands for the page of a comparison. */
static kprof_status print(kprof_report *report, const kprof_print_options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(out != NULL);
    kprof_status status = options->page == KPROF_PAGE_COUNT ? compare(report, options, out)
                                                            : kprof_report_print(&report, 1, options, out);
    FUZZ_CHECK(fclose(out) == 0 && strlen(text) == size);
    const bool is_refused = options->page == KPROF_PAGE_COUNT && size == 0; /* the reports cannot be compared */
    if (status == KPROF_OK && !is_refused)
        fuzz_check_output(options, text);
    free(text);
    return status;
}

/* What is written to a file of its own: folded stacks, and the HTML page. */
static kprof_status write_files(kprof_report *report, const kprof_filter_spec *filter)
{
    const kprof_print_options options = {.format = KPROF_FORMAT_HTML, .filter = filter, .kernel_base = "function"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(out != NULL);
    kprof_status status = kprof_report_print_folded(report, filter, out);
    if (status == KPROF_OK || status == KPROF_NOT_COLLECTED)
        status = kprof_page_show(&kprof_whole_page, &(kprof_page_input){&report, 1, NULL}, &options, out);
    FUZZ_CHECK(fclose(out) == 0 && strlen(text) == size);
    free(text);
    return status;
}

/* All tables of a trace in one format, and its timeline. */
static kprof_status print_trace(kprof_report *report, unsigned how)
{
    static const kprof_format formats[] = {KPROF_FORMAT_TEXT, KPROF_FORMAT_CSV, KPROF_FORMAT_JSON,
                                           KPROF_FORMAT_MARKDOWN};
    kprof_print_options options = {.format = formats[how % 4], .kernel_base = kernel_bases[how / 4 % 3]};
    KPROF_AUTO(kprof_strlist) tables = KPROF_STRLIST_INIT;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(out != NULL);
    for (size_t i = 0; i < kprof_trace_stats_count; i++)
        if (!kprof_trace_stats_tables[i].why_none)
            FUZZ_CHECK(kprof_strlist_add(&tables, kprof_trace_stats_tables[i].name));
    const kprof_stats_content content = {.tables = &tables, .are_asked_for = true};
    kprof_status status = kprof_page_show(&kprof_stats_page, &(kprof_page_input){&report, 1, &content}, &options, out);
    if (status == KPROF_OK)
        status = kprof_report_print_chrome(report, out);
    if (status == KPROF_OK)
        status = kprof_page_show(&kprof_program_page, &(kprof_page_input){&report, 1, NULL},
                                 &(kprof_print_options){.format = KPROF_FORMAT_HTML}, out);
    FUZZ_CHECK(fclose(out) == 0 && strlen(text) == size);
    free(text);
    return status == KPROF_NOT_COLLECTED ? KPROF_OK : status;
}

kprof_status fuzz_print_report(kprof_report *report, unsigned how)
{
    bool has_findings = how & FUZZ_PRINT_FINDINGS;
    kprof_filter_spec filter = {.kernel = how & 2 ? (char *)"regex:[aeiou].*o|Kernel" : NULL,
                                .launch_skip = how & 4 ? 1 : 0};
    unsigned page = how / 8 % (KPROF_PAGE_COUNT + 1), format = how / 64 % KPROF_FORMAT_COUNT;
    kprof_print_options options = {.page = (kprof_page)page,
                                   .format = (kprof_format)format,
                                   .color = how & 0x200,
                                   .base_units = how & 0x400,
                                   .width = how & 0x800 ? 20 : 0,
                                   .all_rows = how & 0x1000,
                                   .details_help = how & 0x2000,
                                   .source_view = (kprof_source_view)(how >> 10 & 3),
                                   .with_tables = how & 0x400,
                                   .metric_title = (kprof_metric_title)(how % 3),
                                   .inlined = how & 0x200 ? KPROF_INLINED_CALLER : KPROF_INLINED_CALLEE,
                                   .top = how & 0x2000 ? 3 : 0,
                                   .filter = how & 6 ? &filter : NULL,
                                   .findings = has_findings ? shipped_findings() : NULL,
                                   .kernel_base = kernel_bases[how >> 14 & 3]};
    const bool is_csv = options.format == KPROF_FORMAT_CSV || options.format == KPROF_FORMAT_CSV_WIDE ||
                        options.format == KPROF_FORMAT_CSV_NCU;
    if (options.page == KPROF_PAGE_BRIEF && is_csv) /* the command line refuses that */
        options.format = KPROF_FORMAT_MARKDOWN;
    kprof_status status = how & 0x100 ? count(report, &filter) : KPROF_OK;
    if (status == KPROF_OK && how & 0x100)
        status = write_files(report, &filter);
    if (status == KPROF_OK && how & 0x100)
        status = print_trace(report, how);
    if (status != KPROF_OK)
        return status;
    status = print(report, &options);
    return status == KPROF_NO_MATCH ? KPROF_OK : status; /* the page would be empty */
}

kprof_status fuzz_print_finding(kprof_report *report, const kprof_finding *finding)
{
    kprof_finding_list findings = {&finding, 1};
    kprof_print_options options = {.findings = &findings, .details_help = true, .all_rows = true};
    return print(report, &options);
}

/* Make a report of a part of a file twice, the second time as that of other processes, and show the part alone. */
static void try_part(const char *path, unsigned how)
{
    static const kprof_run_info run = {"fuzz", "/", "0", NULL, 0};
    char name[256];
    kprof_report *part = NULL;
    kprof_filter_spec filter = {.kernel = how & 2 ? (char *)"regex:o" : NULL};
    kprof_strlist sections = KPROF_STRLIST_INIT, sets = KPROF_STRLIST_INIT, metrics = KPROF_STRLIST_INIT;
    const kprof_launch_range range = {1, 1000};
    FUZZ_CHECK(!(how & 8) || kprof_strlist_add(&sections, how & 16 ? "Occupancy" : "regex:e"));
    FUZZ_CHECK(!(how & 32) || kprof_strlist_add(&metrics, how & 64 ? "dram__bytes" : "regex:sum"));
    const kprof_subset subset = {.filter = &filter,
                                 .ranges = &range,
                                 .range_count = how & 4 ? 1 : 0,
                                 .sections = &sections,
                                 .sections_of_set = &sets,
                                 .metrics = &metrics};
    snprintf(name, sizeof name, "%s", fuzz_path("part.kprof"));
    FUZZ_CHECK(kprof_report_create(name, KPROF_CREATE_REPLACE, &run, &part) == KPROF_OK);
    kprof_merge *merge = kprof_merge_new(part);
    kprof_status status = kprof_merge_add(merge, path, "first", how & 0x80 ? NULL : &subset);
    if (status == KPROF_OK)
        status = kprof_merge_add(merge, path, "second", &subset);
    kprof_merge_free(merge);
    kprof_report_discard(part);
    if (kprof_report_open(path, &part) == KPROF_OK)
        (void)!print(part, &(kprof_print_options){.page = how & 0x100 ? KPROF_PAGE_RAW : KPROF_PAGE_DETAILS,
                                                  .filter = &filter,
                                                  .part = &subset});
    (void)!kprof_report_close(part);
    kprof_strlist_free(&sections);
    kprof_strlist_free(&metrics);
}

void fuzz_try_report(const char *path, unsigned how)
{
    if (how >> 13 == 7)
        try_part(path, how);
    kprof_report *report = NULL;
    kprof_status status = kprof_report_open(path, &report);
    (void)kprof_report_is_unfinished(path);
    if (status == KPROF_OK)
        status = fuzz_print_report(report, how);
    FUZZ_CHECK(status == KPROF_OK || status == KPROF_BAD_REPORT || status == KPROF_NO_MEMORY);
    FUZZ_CHECK(kprof_report_close(report) == KPROF_OK);
}

/* The smaller a file and the quicker it is printed, the more of its changes are tried. */
static uint8_t *read_shrunk(const char *path, size_t *size)
{
    sqlite3 *db = NULL;
    FUZZ_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_exec(db,
                            "DELETE FROM value WHERE metric_id % 6;"
                            "DELETE FROM schedule WHERE metric_id NOT IN (SELECT metric_id FROM value);"
                            "UPDATE metric SET description = substr(description, 1, 8);"
                            "PRAGMA page_size=512; VACUUM",
                            NULL, NULL, NULL) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_close(db) == SQLITE_OK);
    uint8_t *data = fuzz_read_file(path, size);
    unlink(path);
    return data;
}

uint8_t *fuzz_read_seed_report(size_t *size)
{
    char path[256];
    snprintf(path, sizeof path, "%s", fuzz_path("plans.kprof"));
    fixture_metrics metrics = fixture_metrics_load();
    kprof_report *report = fixture_create(path, &metrics);
    FUZZ_CHECK(kprof_report_close(report) == KPROF_OK);
    fixture_metrics_free(&metrics);
    return read_shrunk(path, size);
}

uint8_t *fuzz_read_trace(size_t *size)
{
    char path[256];
    snprintf(path, sizeof path, "%s", fuzz_path("trace.kprof"));
    trace_fixture_write(path);
    return read_shrunk(path, size);
}

uint8_t *fuzz_read_code(size_t *size)
{
    char *content = fixture_read(KPROF_TESTS_DIR "/fixtures/source/source.kprof", size);
    FUZZ_CHECK(content != NULL);
    return (uint8_t *)content;
}

/* Two launches come from frames of Python and of native code. */
static void add_stacks(const char *path)
{
    static const char sql[] =
        "INSERT INTO stack VALUES(1,'a.py:3 in f','/a.py','[{\"function\":\"f\",\"file\":\"/a.py\",\"line\":3},"
        "{\"module\":\"/lib/b.so\",\"offset\":16}]',0,'');"
        "INSERT INTO launch_stack SELECT id,1,'launch' FROM launch LIMIT 2;";
    sqlite3 *db = NULL;
    FUZZ_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_close(db) == SQLITE_OK);
}

uint8_t *fuzz_read_fixture(bool multiplexed, size_t *size)
{
    char path[256];
    snprintf(path, sizeof path, "%s", fuzz_path("fixture.kprof"));
    if (multiplexed)
        fixture_write_multiplexed(path);
    else
        fixture_write(path);
    add_stacks(path);
    return read_shrunk(path, size);
}
