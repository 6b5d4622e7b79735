/* The rule that keeps results and the application's output apart, row by row. */
#include "cli/output.h"
#include "log_capture.h"
#include "test.h"

#include <errno.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static kprof_options with(char *export_path, int page, int format, char *log_file)
{
    return (kprof_options){.export_path = export_path, .page = page, .format = format, .log_file = log_file};
}

TEST(profile_route)
{
    enum {
        NO = KPROF_UNSET,
        CSV = KPROF_FORMAT_CSV,
        MD = KPROF_FORMAT_MARKDOWN,
        JSON = KPROF_FORMAT_JSON,
        RAW = KPROF_PAGE_RAW
    };
    static const struct {
        char *export_path;
        int page, format;
        char *log_file;
        bool terminal;
        kprof_destination results;
        bool application_to_stderr;
    } rows[] = {
        {NULL, NO, NO, NULL, true, KPROF_TO_STDOUT, false},
        {NULL, NO, NO, NULL, false, KPROF_TO_STDERR, false},
        {NULL, RAW, NO, NULL, false, KPROF_TO_STDERR, false},
        {NULL, NO, CSV, NULL, true, KPROF_TO_STDOUT, true},
        {NULL, NO, CSV, NULL, false, KPROF_TO_STDOUT, true},
        {NULL, NO, JSON, NULL, false, KPROF_TO_STDOUT, true},
        {NULL, NO, MD, NULL, false, KPROF_TO_STDOUT, true},
        {NULL, NO, NO, "f", true, KPROF_TO_FILE, false},
        {NULL, NO, CSV, "f", false, KPROF_TO_FILE, false},
        {NULL, NO, CSV, "stderr", false, KPROF_TO_STDERR, false},
        {NULL, NO, CSV, "stdout", false, KPROF_TO_STDOUT, true},
        {NULL, NO, NO, "stdout", false, KPROF_TO_STDOUT, false},
        {NULL, NO, CSV, "-", false, KPROF_TO_STDOUT, true},
        {"r", NO, NO, NULL, true, KPROF_TO_NOTHING, false},
        {"r", NO, NO, "f", true, KPROF_TO_NOTHING, false},
        {"r", RAW, NO, NULL, true, KPROF_TO_STDOUT, false},
        {"r", NO, CSV, NULL, false, KPROF_TO_STDOUT, true},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        kprof_options options = with(rows[i].export_path, rows[i].page, rows[i].format, rows[i].log_file);
        kprof_route route = kprof_route_profile(&options, rows[i].terminal);
        if (route.results != rows[i].results || route.application_to_stderr != rows[i].application_to_stderr)
            fail_msg("row %zu: results %d, application to stderr %d", i, route.results, route.application_to_stderr);
    }
}

/* Where kprof is called ncu, the lines that ncu prints while a program runs go where its results do. */
TEST(route_as_ncu)
{
    static const struct {
        char *export_path;
        int format;
        char *log_file;
        kprof_destination results, as_ncu;
    } rows[] = {
        {NULL, KPROF_UNSET, NULL, KPROF_TO_STDOUT, KPROF_TO_STDOUT},
        {NULL, KPROF_FORMAT_CSV_NCU, NULL, KPROF_TO_STDOUT, KPROF_TO_STDOUT},
        {NULL, KPROF_FORMAT_CSV_NCU, "f", KPROF_TO_FILE, KPROF_TO_FILE},
        {NULL, KPROF_FORMAT_CSV, NULL, KPROF_TO_STDOUT, KPROF_TO_NOTHING},
        {NULL, KPROF_FORMAT_JSON, "f", KPROF_TO_FILE, KPROF_TO_NOTHING},
        {"r", KPROF_UNSET, NULL, KPROF_TO_NOTHING, KPROF_TO_STDOUT},
        {"r", KPROF_UNSET, "f", KPROF_TO_NOTHING, KPROF_TO_FILE},
    };
    char *name = program_invocation_short_name, ncu[] = "ncu";
    for (size_t i = 0; i < LENGTH(rows); i++) {
        kprof_options options = with(rows[i].export_path, KPROF_UNSET, rows[i].format, rows[i].log_file);
        assert_int_equal(kprof_route_profile(&options, true).as_ncu, KPROF_TO_NOTHING);
        program_invocation_short_name = ncu;
        const kprof_route route = kprof_route_profile(&options, false);
        options.quiet = 1;
        assert_int_equal(kprof_route_profile(&options, false).as_ncu, KPROF_TO_NOTHING);
        program_invocation_short_name = name;
        assert_int_equal(route.results, rows[i].results);
        assert_int_equal(route.as_ncu, rows[i].as_ncu);
        /* The application's stdout stays what it is, as scripts made for ncu expect. */
        assert_int_equal(route.application_to_stderr, rows[i].format == KPROF_FORMAT_CSV);
    }
}

TEST(report_route)
{
    kprof_options options = with(NULL, KPROF_UNSET, KPROF_UNSET, NULL);
    assert_int_equal(kprof_route_report(&options).results, KPROF_TO_STDOUT);
    options.log_file = "file";
    assert_int_equal(kprof_route_report(&options).results, KPROF_TO_FILE);
    options = (kprof_options){.html_path = "page.html"};
    assert_int_equal(kprof_route_report(&options).results, KPROF_TO_HTML);
    options.html_path = "-";
    assert_int_equal(kprof_route_report(&options).results, KPROF_TO_STDOUT);
}

TEST(a_full_disk_is_noticed)
{
    log_capture captured;
    log_capture_start(&captured);
    FILE *out = NULL;
    kprof_options options = with(NULL, KPROF_UNSET, KPROF_UNSET, "/dev/full");
    assert_int_equal(kprof_results_open(&options, KPROF_TO_FILE, &out), KPROF_OK);
    fputs("results", out);
    assert_int_equal(kprof_results_close(&options, out, KPROF_OK), KPROF_OUTPUT);
    assert_non_null(strstr(captured.last, "/dev/full"));
    options.log_file = "/nonexistent/file";
    assert_int_equal(kprof_results_open(&options, KPROF_TO_FILE, &out), KPROF_OUTPUT);
}

TEST(colour_only_on_terminals)
{
    FILE *out = tmpfile();
    kprof_options options = with(NULL, KPROF_UNSET, KPROF_UNSET, NULL);
    assert_false(kprof_print_options_make(&options, out).color);
    options.color = KPROF_COLOR_ALWAYS;
    assert_true(kprof_print_options_make(&options, out).color);
    options.color = KPROF_COLOR_NEVER;
    assert_false(kprof_print_options_make(&options, out).color);
    fclose(out);
}

TEST(width_as_asked_for)
{
    FILE *out = tmpfile();
    kprof_options options = with(NULL, KPROF_UNSET, KPROF_UNSET, NULL);
    assert_int_equal(kprof_print_options_make(&options, out).width, 0);
    options.width = 80;
    assert_int_equal(kprof_print_options_make(&options, out).width, 80);
    options.width = UINT64_C(1) << 40;
    assert_true(kprof_print_options_make(&options, out).width >= 100000);
    fclose(out);
}
