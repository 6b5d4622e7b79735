/* Decides where results go and opens that stream; the rule stands in output.h. */
#include "cli/output.h"
#include "cli/paths.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* No line is longer; more columns mean the same. */
#define WIDTH_MOST  1000000u
#define WIDTH_LEAST 40 /* columns: the least width */

void kprof_streams_settle(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) < 0) /* open gives the lowest number that is free */
            (void)open("/dev/null", file == STDIN_FILENO    ? O_RDWR
                                    : file == STDOUT_FILENO ? O_RDONLY | O_CLOEXEC
                                                            : O_RDONLY);
    }
}

static kprof_destination named_destination(const char *name)
{
    if (strcmp(name, "stdout") == 0 || strcmp(name, "-") == 0)
        return KPROF_TO_STDOUT;
    return strcmp(name, "stderr") == 0 ? KPROF_TO_STDERR : KPROF_TO_FILE;
}

static bool is_text(const kprof_options *options)
{
    return options->format == KPROF_UNSET || options->format == KPROF_FORMAT_TEXT;
}

kprof_route kprof_route_profile(const kprof_options *options, bool stdout_is_terminal)
{
    kprof_destination results = KPROF_TO_STDOUT;
    if (options->log_file)
        results = named_destination(options->log_file);
    else if (is_text(options) && !stdout_is_terminal && !kprof_is_called_ncu())
        results = KPROF_TO_STDERR;
    kprof_route route = {results, results == KPROF_TO_STDOUT && !is_text(options), KPROF_TO_NOTHING};
    if (kprof_is_called_ncu() && !options->quiet && (is_text(options) || options->format == KPROF_FORMAT_CSV_NCU))
        route.as_ncu = results;
    const bool prints = options->page != KPROF_UNSET || options->format != KPROF_UNSET || options->prints_stats ||
                        options->stats_reports.count > 0;
    if (options->export_path && !prints) {
        route.results = KPROF_TO_NOTHING;
        route.application_to_stderr = false;
    }
    return route;
}

kprof_route kprof_route_report(const kprof_options *options)
{
    if (options->html_path)
        return (kprof_route){.results = strcmp(options->html_path, "-") == 0 ? KPROF_TO_STDOUT : KPROF_TO_HTML};
    return (kprof_route){.results = options->log_file ? named_destination(options->log_file) : KPROF_TO_STDOUT};
}

/* Reports tell of programs and machines, so others may not read it unless its owner lets them. */
static kprof_status open_html(const kprof_options *options, FILE **out)
{
    const char *path = options->html_path;
    const int replace = options->force_overwrite ? O_TRUNC : O_EXCL;
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | replace, 0600);
    if (file < 0 && errno == EEXIST)
        return kprof_fail(KPROF_OUTPUT, "--html %s exists; give -f to replace it", path);
    *out = file < 0 ? NULL : fdopen(file, "w");
    if (*out)
        return KPROF_OK;
    kprof_status status = kprof_fail(KPROF_OUTPUT, "--html %s: %m", path);
    if (file >= 0)
        close(file);
    return status;
}

kprof_status kprof_results_open(const kprof_options *options, kprof_destination to, FILE **out)
{
    switch (to) {
    case KPROF_TO_STDOUT:
        *out = stdout;
        return KPROF_OK;
    case KPROF_TO_STDERR:
        *out = stderr;
        return KPROF_OK;
    case KPROF_TO_FILE:
        *out = fopen(options->log_file, "we");
        return *out ? KPROF_OK : kprof_fail(KPROF_OUTPUT, "cannot write the results to %s: %m", options->log_file);
    case KPROF_TO_HTML:
        return open_html(options, out);
    default:
        *out = NULL;
        return KPROF_OK;
    }
}

/* `is_told`: a message has said why results could not be written. */
static kprof_status flush(const kprof_options *options, FILE *results, bool is_told)
{
    /* A reader that has seen enough ("kprof ... | head") needs no message. */
    struct pollfd pipe = {.fd = fileno(results), .events = POLLOUT};
    bool is_gone = poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR);
    bool is_file = results != stdout && results != stderr;
    const char *file_name = options->html_path ? options->html_path : options->log_file;
    const char *name = is_file ? file_name : results == stdout ? "stdout" : "stderr";
    bool failed_before = ferror(results) != 0;
    bool failed = (is_file ? fclose(results) : fflush(results)) != 0;
    if (is_gone && (failed || failed_before))
        return KPROF_OUTPUT;
    if (failed)
        return kprof_fail(KPROF_OUTPUT, "cannot write the results to %s: %m", name);
    return failed_before ? kprof_fail(KPROF_OUTPUT, "not all results could be written to %s%s", name,
                                      is_told ? "" : "; is the disk full?")
                         : KPROF_OK;
}

kprof_status kprof_results_close(const kprof_options *options, FILE *results, kprof_status status)
{
    if (!results)
        return status;
    struct stat file;
    const char *html = results != stdout ? options->html_path : NULL;
    const kprof_status written = flush(options, results, status == KPROF_OUTPUT);
    status = status == KPROF_OK ? written : status;
    if (html && status == KPROF_OK)
        kprof_log(KPROF_LOG_INFO, "page: %s", html);
    else if (html && lstat(html, &file) == 0 && S_ISREG(file.st_mode)) /* part of a page is of no use */
        (void)unlink(html);
    return status;
}

bool kprof_output_takes_codes(FILE *out)
{
    const char *term = getenv("TERM");
    return term && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}

/* https://no-color.org says what NO_COLOR means. */
static bool wants_color(const kprof_options *options, FILE *results)
{
    const char *no_color = getenv("NO_COLOR");
    if (options->color != KPROF_COLOR_AUTO)
        return options->color == KPROF_COLOR_ALWAYS;
    return !(no_color && *no_color) && kprof_output_takes_codes(results);
}

unsigned kprof_results_width(const kprof_options *options, FILE *results)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    const uint64_t width = options->width || !columns ? options->width : strtoul(columns, NULL, 10);
    if (width > 0)
        return width < WIDTH_LEAST ? WIDTH_LEAST : width < WIDTH_MOST ? (unsigned)width : WIDTH_MOST;
    if (ioctl(fileno(results), TIOCGWINSZ, &size) == 0)
        return size.ws_col;
    return 0;
}

kprof_print_options kprof_print_options_make(const kprof_options *options, FILE *results)
{
    static const char *const bases[] = {
        [KPROF_NAME_FUNCTION] = "function", [KPROF_NAME_DEMANGLED] = "demangled", [KPROF_NAME_MANGLED] = "mangled"};
    return (kprof_print_options){
        .page = options->page == KPROF_UNSET ? KPROF_PAGE_DETAILS : (kprof_page)options->page,
        .begins_with_summary = options->page == KPROF_UNSET && is_text(options),
        .verbose = options->verbose,
        .format = options->format == KPROF_UNSET ? KPROF_FORMAT_TEXT : (kprof_format)options->format,
        .color = wants_color(options, results),
        .base_units = options->base_units != 0,
        .width = kprof_results_width(options, results),
        .all_rows = options->all_rows,
        .csv_safe = options->csv_safe,
        .details_help = options->details_help,
        .findings_are_named = options->rules.count > 0,
        .kernel_base = bases[options->kernel_base],
        .metric_title = (kprof_metric_title)options->metric_title,
        .with_tables = options->with_tables,
        .with_decimals = options->with_decimals,
        .nvtx_renames = options->nvtx_rename,
        .instances =
            options->format == KPROF_FORMAT_CSV_NCU ? (kprof_instances)options->instances : KPROF_INSTANCES_NONE,
        .group_by = (kprof_grouping)options->group_by,
        .sort = (kprof_sort_key)options->sort,
        .top = options->top,
        .source_view = (kprof_source_view)options->source_view,
        .inlined = (kprof_inlined)options->inlined,
        .source_folders = &options->source_folders,
        .source_files = &options->resolve_source_files,
        .conditions = options->conditions,
        .condition_count = options->filters.count,
    };
}

kprof_status kprof_results_show(const kprof_options *options, const kprof_page_row *page, const kprof_page_input *input)
{
    FILE *results = NULL;
    kprof_status status = kprof_results_open(options, kprof_route_report(options).results, &results);
    if (status != KPROF_OK)
        return status;
    kprof_print_options print = kprof_print_options_make(options, results);
    print.filter = &options->filter;
    status = kprof_page_show(page, input, &print, results);
    return kprof_results_close(options, results, status);
}
