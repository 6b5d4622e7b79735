/* Every page in every format against recorded output. KPROF_UPDATE_GOLDEN=1 records it anew
 * (tests/golden/update.sh); read the difference before committing it. */
#include "fixture.h"
#include "report/model/change.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct golden_case {
    const char *name;
    kprof_print_options options;
} golden_case;

#define OLDER(version) KPROF_TESTS_DIR "/fixtures/report-v" #version ".kprof"

static char report_path[512], multiplexed_path[512], census_path[512];
static kprof_finding_list golden_findings, shipped_findings;

/* A case, and the report that it prints. */
typedef struct golden_check {
    const char *report;
    const golden_case *test;
} golden_check;

static void check_golden(void **state)
{
    const golden_check *check = *state;
    kprof_report *report = NULL;
    kprof_status status;
    assert_int_equal(kprof_report_open(check->report, &report), KPROF_OK);
    KPROF_AUTO_FREE char *printed = fixture_print(report, &check->test->options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    fixture_assert_golden(check->test->name, printed);
}

static const kprof_condition long_launches = {.text = (char *)"duration>65us",
                                              .metric = (char *)KPROF_TIME_METRIC,
                                              .comparator = KPROF_ABOVE,
                                              .limit = 65,
                                              .unit = "us"};
static char vector_add[] = "vectorAdd";
static char any_kernel[] = "regex:.*";
static const kprof_filter_spec only_vector_add = {.kernel = vector_add};
static char *forward[] = {"train/*/forward]"}, *layers[] = {"regex:^NET@/[0-9/]"};
static const kprof_filter_spec forward_launches = {.nvtx_include = {forward, 1, 1}, .nvtx_exclude = {layers, 1, 1}};
static const kprof_filter_spec second_launch = {.kernel = any_kernel, .launch_skip = 1, .launch_count = 1};
static const kprof_filter_spec last_launch = {.kernel = any_kernel, .launch_skip = 3};

#define TEXT(PAGE)        .page = KPROF_PAGE_##PAGE, .format = KPROF_FORMAT_TEXT
#define CSV(PAGE, LAYOUT) .page = KPROF_PAGE_##PAGE, .format = LAYOUT
#define LONG              KPROF_FORMAT_CSV
#define WIDE              KPROF_FORMAT_CSV_WIDE
#define NCU               KPROF_FORMAT_CSV_NCU
#define AS_NCU(PAGE)      .page = KPROF_PAGE_##PAGE, .format = KPROF_FORMAT_TEXT_NCU
#define MARKDOWN(PAGE)    .page = KPROF_PAGE_##PAGE, .format = KPROF_FORMAT_MARKDOWN
#define JSON(PAGE)        .page = KPROF_PAGE_##PAGE, .format = KPROF_FORMAT_JSON

static golden_case cases[] = {
    {"details.txt", {TEXT(DETAILS)}},
    {"details-color.txt", {TEXT(DETAILS), .color = true, .filter = &second_launch}},
    {"details-base-units.txt", {TEXT(DETAILS), .base_units = true, .filter = &only_vector_add}},
    {"summary-narrow.txt", {TEXT(SUMMARY), .width = 72}},
    {"details-narrow.txt", {TEXT(DETAILS), .width = 72, .filter = &second_launch}},
    {"details-help.txt", {TEXT(DETAILS), .details_help = true, .filter = &only_vector_add}},
    {"details-function.txt", {TEXT(DETAILS), .kernel_base = "function", .filter = &second_launch}},
    {"raw.txt", {TEXT(RAW)}},
    {"raw-narrow.txt", {TEXT(RAW), .width = 80, .filter = &second_launch}},
    {"raw-100.txt", {TEXT(RAW), .width = 100, .filter = &second_launch}},
    {"statistics.txt", {TEXT(STATISTICS)}},
    {"summary.txt", {TEXT(SUMMARY)}},
    {"session.txt", {TEXT(SESSION)}},
    {"sources.txt", {TEXT(SOURCES)}},
    {"sources-narrow.txt", {TEXT(SOURCES), .width = 72}},
    {"sources.json", {JSON(SOURCES)}},
    {"details-long.csv", {CSV(DETAILS, LONG)}},
    {"raw-long.csv", {CSV(RAW, LONG)}},
    {"statistics-long.csv", {CSV(STATISTICS, LONG)}},
    {"summary-long.csv", {CSV(SUMMARY, LONG)}},
    {"session-long.csv", {CSV(SESSION, LONG)}},
    {"details-wide.csv", {CSV(DETAILS, WIDE)}},
    {"raw-wide.csv", {CSV(RAW, WIDE), .kernel_base = "mangled"}},
    {"details-ncu.csv", {CSV(DETAILS, NCU)}},
    {"raw-ncu.csv", {CSV(RAW, NCU)}},
    {"details-ncu-decimals.csv", {CSV(DETAILS, NCU), .with_decimals = true}},
    {"statistics-ncu.csv", {CSV(STATISTICS, NCU), .group_by = KPROF_GROUP_SHAPE, .with_decimals = true}},
    {"details-ncu.txt", {AS_NCU(DETAILS)}},
    {"details-ncu-tables.txt", {AS_NCU(DETAILS), .with_tables = true, .base_units = true, .filter = &only_vector_add}},
    {"raw-ncu.txt", {AS_NCU(RAW), .with_decimals = true, .filter = &second_launch}},
    {"statistics-ncu.txt", {AS_NCU(STATISTICS), .group_by = KPROF_GROUP_SHAPE}},
    {"details.json", {JSON(DETAILS)}},
    {"raw.json", {JSON(RAW)}},
    {"statistics.json", {JSON(STATISTICS)}},
    {"summary.json", {JSON(SUMMARY)}},
    {"session.json", {JSON(SESSION)}},
    {"details.md", {MARKDOWN(DETAILS)}},
    {"raw.md", {MARKDOWN(RAW), .filter = &second_launch}},
    {"statistics.md", {MARKDOWN(STATISTICS)}},
    {"summary.md", {MARKDOWN(SUMMARY)}},
    {"session.md", {MARKDOWN(SESSION)}},
    {"raw.jsonl", {.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_JSONL}},
    {"statistics.jsonl", {.page = KPROF_PAGE_STATISTICS, .format = KPROF_FORMAT_JSONL, .filter = &only_vector_add}},
    {"statistics.prom", {.page = KPROF_PAGE_STATISTICS, .format = KPROF_FORMAT_PROMETHEUS}},
    {"summary-config.txt", {TEXT(SUMMARY), .group_by = KPROF_GROUP_CONFIG, .sort = KPROF_SORT_DURATION, .top = 1}},
    {"summary-nvtx.txt", {TEXT(SUMMARY), .group_by = KPROF_GROUP_NVTX, .sort = KPROF_SORT_NAME}},
    {"summary-nvtx.json", {JSON(SUMMARY), .group_by = KPROF_GROUP_NVTX}},
    {"details-nvtx.txt", {TEXT(DETAILS), .filter = &forward_launches}},
    {"summary-process.csv", {CSV(SUMMARY, LONG), .group_by = KPROF_GROUP_PROCESS, .sort = KPROF_SORT_NAME}},
    {"summary-filter.txt", {TEXT(SUMMARY), .conditions = &long_launches, .condition_count = 1}},
    {"details-filter.txt", {TEXT(DETAILS), .conditions = &long_launches, .condition_count = 1}},
    {"brief.txt", {TEXT(BRIEF)}},
    {"brief.jsonl", {.page = KPROF_PAGE_BRIEF, .format = KPROF_FORMAT_JSONL}},
    {"brief.md", {MARKDOWN(BRIEF)}},
    {"raw-trace.json", {.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_PERFETTO}},
};

/* Launches that were multiplexed. */
static const kprof_filter_spec later_launches = {.kernel = any_kernel, .launch_skip = 6};
static golden_case multiplexed_cases[] = {
    {"multiplexed-details.txt", {TEXT(DETAILS)}},
    {"multiplexed-details-some.txt", {TEXT(DETAILS), .filter = &later_launches}},
    {"multiplexed-raw.txt", {TEXT(RAW)}},
    {"multiplexed-statistics.txt", {TEXT(STATISTICS)}},
    {"multiplexed-summary.txt", {TEXT(SUMMARY)}},
    {"multiplexed-sources.txt", {TEXT(SOURCES)}},
    {"multiplexed-details-long.csv", {CSV(DETAILS, LONG)}},
    {"multiplexed-raw-wide.csv", {CSV(RAW, WIDE)}},
    {"multiplexed-details-ncu.csv", {CSV(DETAILS, NCU)}},
    {"multiplexed-statistics-long.csv", {CSV(STATISTICS, LONG)}},
    {"multiplexed-summary-long.csv", {CSV(SUMMARY, LONG)}},
    {"multiplexed-details.md", {MARKDOWN(DETAILS)}},
    {"multiplexed-details.json", {JSON(DETAILS)}},
    {"multiplexed-raw.json", {JSON(RAW)}},
    {"multiplexed-statistics.json", {JSON(STATISTICS)}},
    {"multiplexed-summary.json", {JSON(SUMMARY)}},
    {"multiplexed-brief.txt", {TEXT(BRIEF)}},
    {"multiplexed-brief.jsonl", {.page = KPROF_PAGE_BRIEF, .format = KPROF_FORMAT_JSONL}},
    {"multiplexed-raw.jsonl", {.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_JSONL}},
    {"multiplexed-statistics.prom", {.page = KPROF_PAGE_STATISTICS, .format = KPROF_FORMAT_PROMETHEUS}},
};

/* The same run as version 1 of the schema had it, which does not tell passes. */
static golden_case version_1_cases[] = {
    {"details-v1.txt", {TEXT(DETAILS), .filter = &second_launch}},
    {"statistics-v1.json", {JSON(STATISTICS)}},
    {"raw-wide-v1.csv", {CSV(RAW, WIDE), .filter = &second_launch}},
    {"raw-v1.txt", {TEXT(RAW), .filter = &second_launch}},
    {"raw-v1.json", {JSON(RAW), .filter = &second_launch}},
    {"session-v1.txt", {TEXT(SESSION)}},
};

/* The same run as version 2 of the schema had it, which does not tell graph nodes. */
static golden_case version_2_cases[] = {
    {"details-v2.txt", {TEXT(DETAILS), .filter = &second_launch}},
    {"raw-wide-v2.csv", {CSV(RAW, WIDE), .filter = &second_launch}},
    {"raw-v2.json", {JSON(RAW), .filter = &second_launch}},
    {"session-v2.txt", {TEXT(SESSION)}},
};

/* The same run as version 3 of the schema had it, which calls a column by another name. */
static golden_case version_3_cases[] = {
    {"details-v3.txt", {TEXT(DETAILS), .filter = &second_launch}},
    {"raw-v3.json", {JSON(RAW), .filter = &second_launch}},
};

/* The same run as version 4 of the schema had it, which knows no merged reports. */
static golden_case version_4_cases[] = {
    {"raw-v4.json", {JSON(RAW), .filter = &second_launch}},
    {"sources-v4.txt", {TEXT(SOURCES)}},
};

/* The same run as version 5 of the schema had it, which knows no NVTX ranges, and no time between a range and its
 * kernel. */
static golden_case version_5_cases[] = {
    {"details-v5.txt", {TEXT(DETAILS), .filter = &last_launch}},
    {"brief-v5.jsonl", {.page = KPROF_PAGE_BRIEF, .format = KPROF_FORMAT_JSONL}},
    {"raw-v5.json", {JSON(RAW), .filter = &second_launch}},
    {"summary-nvtx-v5.txt", {TEXT(SUMMARY), .group_by = KPROF_GROUP_NVTX}},
};

/* A report of instructions, whose files are in the same folder. */
static char source_folder[] = KPROF_TESTS_DIR "/fixtures/source", *source_folder_list[] = {source_folder};
static const kprof_strlist source_folders = {source_folder_list, 1, 1};
static char recorded_kernels[] = "regex:^(vectorAdd|incr)$", softmax[] = "softmax_kernel", incr[] = "incr",
            stripped[] = "stripped";
static const kprof_filter_spec recorded = {.kernel = recorded_kernels}, only_softmax = {.kernel = softmax},
                               only_incr = {.kernel = incr}, only_stripped = {.kernel = stripped};
#define HERE .source_folders = &source_folders, .top = 10
static golden_case source_cases[] = {
    {"source.txt", {TEXT(SOURCE), .width = 100, HERE}},
    {"source-lines.txt", {TEXT(SOURCE), .width = 100, .top = 2, .filter = &only_softmax}},
    {"source-caller.txt", {TEXT(SOURCE), .inlined = KPROF_INLINED_CALLER, .filter = &only_softmax, HERE}},
    {"source-both.txt",
     {TEXT(SOURCE), .width = 100, .source_view = KPROF_VIEW_BOTH, .filter = &only_softmax, .all_rows = true, HERE}},
    {"source-both.md",
     {.page = KPROF_PAGE_SOURCE,
      .format = KPROF_FORMAT_MARKDOWN,
      .source_view = KPROF_VIEW_BOTH,
      .filter = &only_softmax,
      .source_folders = &source_folders,
      .top = 2}},
    {"source-sass.txt", {TEXT(SOURCE), .width = 120, .source_view = KPROF_VIEW_SASS, .filter = &only_softmax, HERE}},
    {"source-sass-narrow.txt",
     {TEXT(SOURCE), .width = 80, .source_view = KPROF_VIEW_SASS, .filter = &only_softmax, HERE}},
    {"source-sectors.txt", {TEXT(SOURCE), .sort = KPROF_SORT_SECTORS, .filter = &only_softmax, HERE}},
    {"source-no-lines.txt", {TEXT(SOURCE), .width = 80, .filter = &only_incr, .source_view = KPROF_VIEW_CUDA, HERE}},
    {"source-stripped.txt", {TEXT(SOURCE), .filter = &only_stripped, HERE}},
    {"source.csv", {CSV(SOURCE, LONG), .source_view = KPROF_VIEW_CUDA, .all_rows = true, HERE}},
    {"source-details.txt", {TEXT(DETAILS), .width = 100, .filter = &only_softmax}},
    {"source-details.json", {JSON(DETAILS), .filter = &only_softmax}},
    {"source-details.csv", {CSV(DETAILS, LONG), .filter = &only_stripped}},
    {"source-brief.txt", {TEXT(BRIEF)}},
    {"source-brief.jsonl", {.page = KPROF_PAGE_BRIEF, .format = KPROF_FORMAT_JSONL}},
    {"source-ncu.csv", {CSV(SOURCE, NCU), .source_view = KPROF_VIEW_SASS, .filter = &recorded, .all_rows = true}},
    {"source-ncu-cuda.csv", {CSV(SOURCE, NCU), .source_view = KPROF_VIEW_CUDA, .all_rows = true, HERE}},
    {"source-ncu-both.csv",
     {CSV(SOURCE, NCU), .source_view = KPROF_VIEW_BOTH, .filter = &only_softmax, .all_rows = true, HERE}},
    {"source.json", {JSON(SOURCE), .filter = &only_softmax, HERE}},
    {"source.md", {MARKDOWN(SOURCE), .filter = &only_softmax, HERE}},
};

/* A census, and one launch of another run. */
static golden_case census_cases[] = {
    {"census.txt", {TEXT(CENSUS), .width = 100}},
    {"census-config.txt", {TEXT(CENSUS), .group_by = KPROF_GROUP_CONFIG, .top = 3}},
    {"census.csv", {CSV(CENSUS, LONG), .group_by = KPROF_GROUP_CONFIG}},
    {"census.json", {JSON(CENSUS), .top = 1}},
    {"census.md", {MARKDOWN(CENSUS)}},
    {"census-summary.txt", {TEXT(SUMMARY), .width = 100}},
    {"census-summary.json", {JSON(SUMMARY), .group_by = KPROF_GROUP_CONFIG}},
    {"census-summary.csv", {CSV(SUMMARY, LONG)}},
    {"timeline.txt", {TEXT(TIMELINE), .width = 100}},
    {"timeline.csv", {CSV(TIMELINE, LONG)}},
    {"timeline.json", {JSON(TIMELINE)}},
    {"timeline.md", {MARKDOWN(TIMELINE)}},
};

/* Every line has at most `width` columns. */
static void expect_narrow(const char *text, unsigned width)
{
    while (*text) {
        size_t length = strcspn(text, "\n"), columns = 0;
        for (size_t i = 0; i < length; i++)
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (columns > width)
            fail_msg("%zu columns, not %u: %.*s", columns, width, (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static void check_width(const char *report_file, unsigned width)
{
    kprof_report *report = NULL;
    assert_int_equal(kprof_report_open(report_file, &report), KPROF_OK);
    static const kprof_page pages[] = {KPROF_PAGE_DETAILS, KPROF_PAGE_SUMMARY};
    for (unsigned i = 0; i < 16; i++) {
        const kprof_print_options options = {.page = pages[i / 8],
                                             .width = width,
                                             .all_rows = i & 1,
                                             .details_help = (i & 2) != 0,
                                             .base_units = (i & 4) != 0,
                                             .findings = &shipped_findings};
        kprof_status status;
        char *printed = fixture_print(report, &options, &status);
        assert_int_equal(status, KPROF_OK);
        expect_narrow(printed, width);
        free(printed);
    }
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* No line of the details page is wider than it may be, whatever the report has. */
TEST(widths)
{
    static const unsigned widths[] = {100, 80, 72};
    const char *reports[] = {
        report_path, multiplexed_path, OLDER(1),    OLDER(2),
        OLDER(3),    OLDER(4),         OLDER(5),    OLDER(6),
        OLDER(7),    OLDER(8),         OLDER(9),    OLDER(10),
        OLDER(11),   OLDER(12),        census_path, KPROF_TESTS_DIR "/../samples/vectorAdd-h200.kprof"};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
            check_width(reports[i], widths[k]);
    }
}

/* Cases of one report; those of versions 1 to 5 are printed without findings. */
typedef struct golden_part {
    const char *report;
    golden_case *cases;
    size_t count;
    const kprof_finding_list *findings;
} golden_part;
#define PART(report, cases, findings)                                                                                  \
    {                                                                                                                  \
        report, cases, sizeof cases / sizeof *cases, findings                                                          \
    }
/* Versions 6 and later have only added tables that these cases do not show. */
#define OF_VERSION_6(report)                                                                                           \
    {                                                                                                                  \
        report, cases, 8, &golden_findings                                                                             \
    }
static const golden_part parts[] = {
    PART(report_path, cases, &golden_findings),
    PART(OLDER(1), version_1_cases, NULL),
    PART(OLDER(2), version_2_cases, NULL),
    PART(OLDER(3), version_3_cases, NULL),
    PART(OLDER(4), version_4_cases, NULL),
    PART(OLDER(5), version_5_cases, NULL),
    OF_VERSION_6(OLDER(6)),
    OF_VERSION_6(OLDER(7)),
    OF_VERSION_6(OLDER(8)),
    OF_VERSION_6(OLDER(9)),
    OF_VERSION_6(OLDER(10)),
    OF_VERSION_6(OLDER(11)),
    OF_VERSION_6(OLDER(12)),
    PART(multiplexed_path, multiplexed_cases, &golden_findings),
    PART(census_path, census_cases, &golden_findings),
    PART(KPROF_TESTS_DIR "/fixtures/source/source.kprof", source_cases, &golden_findings),
};

static void add_tests(const golden_part *part)
{
    static golden_check checks[256];
    static size_t count;
    for (size_t i = 0; i < part->count; i++, count++) {
        part->cases[i].options.findings = part->findings;
        checks[count] = (golden_check){part->report, &part->cases[i]};
        test_register((struct CMUnitTest){part->cases[i].name, check_golden, NULL, NULL, &checks[count]});
    }
}

static int write_report(void **state)
{
    snprintf(report_path, sizeof report_path, "%s", fixture_path("golden.kprof"));
    fixture_write(report_path);
    snprintf(multiplexed_path, sizeof multiplexed_path, "%s", fixture_path("golden-multiplexed.kprof"));
    fixture_write_multiplexed(multiplexed_path);
    snprintf(census_path, sizeof census_path, "%s", fixture_path("golden-census.kprof"));
    fixture_write_census(census_path);
    return 0;
}

static int remove_report(void **state)
{
    return unlink(report_path) + unlink(multiplexed_path) + unlink(census_path);
}

int main(void)
{
    setenv("LC_ALL", "C", 1); /* ncu's layouts follow it */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_tests(&parts[i]);
    kprof_catalog *golden = fixture_findings_load(false, &golden_findings);
    kprof_catalog *shipped = fixture_findings_load(true, &shipped_findings);
    around_all(write_report, remove_report);
    int failed = run_all_tests();
    free(golden_findings.items);
    free(shipped_findings.items);
    kprof_catalog_free(golden);
    kprof_catalog_free(shipped);
    return failed;
}
