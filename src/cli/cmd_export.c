/* kprof export: write a report in a format that other programs read. Launches stream; a whole file gets its name. */
#include "cli/commands.h"
#include "cli/outcome.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/unfinished.h"
#include "core/files.h"
#include "core/log.h"
#include "report/emit/columns.h"
#include "report/model/trace_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The file that the export goes to, or standard output. */
typedef struct sink {
    const char *path; /* NULL: where commands print */
    char *draft;      /* the file until it is whole; NULL: none is made */
    FILE *file;
} sink;

/* The statement for duckdb: it reads the long layout of CSV from its stdin and writes Parquet. It gives all types, as
 * duckdb may guess wrong ones from a pipe. No word comes from the user. */
static char *make_duckdb_query(void)
{
    static const char *const types[] = {[KPROF_CELL_WHOLE] = "BIGINT",
                                        [KPROF_CELL_SHAPE] = "BIGINT",
                                        [KPROF_CELL_REAL] = "DOUBLE",
                                        [KPROF_CELL_TEXT] = "VARCHAR",
                                        [KPROF_CELL_DIGITS] = "VARCHAR"};
    KPROF_AUTO(kprof_strbuf) columns = KPROF_STRBUF_INIT, nulls = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < KPROF_COLUMN_COUNT + KPROF_METRIC_COLUMN_COUNT; i++) {
        const bool is_of_launch = i < KPROF_COLUMN_COUNT;
        const kprof_column *column =
            is_of_launch ? &kprof_launch_columns[i] : &kprof_metric_columns[i - KPROF_COLUMN_COUNT];
        const char *parts = column->kind == KPROF_CELL_SHAPE ? "xyz" : " ";
        for (; *parts && (column->in_csv || !is_of_launch); parts++)
            kprof_strbuf_printf(&columns, "'%s%.*s%.*s':'%s',", column->id, *parts != ' ', "_", *parts != ' ', parts,
                                types[column->kind]);
        if (column->or_none)
            kprof_strbuf_printf(&nulls, "%snullif(%s,'none') AS %s", nulls.length ? "," : "", column->id, column->id);
    }
    return kprof_strprintf("COPY (SELECT * REPLACE (%s) FROM read_csv('/dev/stdin', auto_detect=false, header=true, "
                           "delim=',', quote='\"', escape='\"', columns={%s})) TO '/dev/stdout' (FORMAT parquet)",
                           nulls.data, columns.data);
}

static bool is_of_trace(const kprof_options *options)
{
    return options->export_format == KPROF_EXPORT_CHROME || options->export_format == KPROF_EXPORT_TIMELINE ||
           options->export_format == KPROF_EXPORT_NSYS;
}

static bool is_parquet(const kprof_options *options)
{
    return options->export_format == KPROF_EXPORT_PARQUET;
}

static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

/* A pipe or a device is written as it is; a file is built beside its place. */
static kprof_status open_file(const kprof_options *options, sink *to)
{
    struct stat info;
    const bool is_there = lstat(to->path, &info) == 0;
    if (is_special(to->path)) {
        to->file = kprof_output_open(to->path, O_TRUNC, 0);
        return to->file ? KPROF_OK : kprof_fail(KPROF_OUTPUT, "--export %s: %m", to->path);
    }
    if (is_there && !options->force_overwrite)
        return kprof_fail(KPROF_OUTPUT, "%s: exists already; use --force-overwrite or another name", to->path);
    to->draft = kprof_strprintf("%s.new-XXXXXX", to->path);
    kprof_unfinished_hold();
    int fd = mkostemp(to->draft, O_CLOEXEC);
    to->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (to->file) {
        kprof_unfinished_begin(to->draft, NULL);
        return KPROF_OK;
    }
    kprof_status status = kprof_fail_to_make(to->path, "--export %s", to->path);
    if (fd >= 0) {
        close(fd);
        unlink(to->draft);
    }
    kprof_unfinished_end();
    free(to->draft);
    to->draft = NULL;
    return status;
}

/* Give the whole file its name. Without -f it replaces no file, not even one that was made meanwhile. */
static kprof_status put_in_place(const kprof_options *options, const sink *to)
{
    int rc = -1;
    if (!options->force_overwrite)
        rc = renameat2(AT_FDCWD, to->draft, AT_FDCWD, to->path, RENAME_NOREPLACE);
    if (options->force_overwrite || (rc != 0 && (errno == EINVAL || errno == ENOSYS)))
        rc = rename(to->draft, to->path);
    return rc == 0 ? KPROF_OK : kprof_fail(KPROF_OUTPUT, "--export %s: %m", to->path);
}

static kprof_status close_sink(const kprof_options *options, sink *to, kprof_status status)
{
    if (!to->file)
        return status;
    if (!to->path)
        return kprof_results_close(options, to->file, status);
    bool failed = ferror(to->file) != 0;
    if ((fclose(to->file) != 0 || failed) && status == KPROF_OK)
        status = kprof_fail(KPROF_OUTPUT, "--export %s: cannot be written; is the disk full?", to->path);
    if (status == KPROF_OK && to->draft)
        status = put_in_place(options, to);
    if (status == KPROF_OK)
        kprof_log(KPROF_LOG_INFO, "export: %s", to->path);
    if (status != KPROF_OK && to->draft)
        unlink(to->draft);
    kprof_unfinished_end();
    free(to->draft);
    return status;
}

static kprof_status print(const kprof_options *options, kprof_report *report, FILE *out)
{
    if (options->export_format == KPROF_EXPORT_CHROME)
        return kprof_report_print_chrome(report, out);
    if (options->export_format == KPROF_EXPORT_TIMELINE)
        return kprof_page_show(&kprof_program_page, &(kprof_page_input){&report, 1, NULL},
                               &(kprof_print_options){.format = KPROF_FORMAT_HTML}, out);
    if (options->export_format == KPROF_EXPORT_FOLDED)
        return kprof_report_print_folded(report, &options->filter, out);
    if (options->export_format == KPROF_EXPORT_INSTRUCTIONS) {
        kprof_print_options rows = {.page = KPROF_PAGE_SOURCE,
                                    .format = KPROF_FORMAT_JSONL,
                                    .all_rows = true,
                                    .source_view = KPROF_VIEW_SASS,
                                    .filter = &options->filter};
        return kprof_report_print(&report, 1, &rows, out);
    }
    kprof_print_options how = {
        .page = options->export_format == KPROF_FORMAT_PROMETHEUS ? KPROF_PAGE_STATISTICS : KPROF_PAGE_RAW,
        .format = is_parquet(options) ? KPROF_FORMAT_CSV : (kprof_format)options->export_format,
        .csv_safe = options->csv_safe,
        .filter = &options->filter,
    };
    return kprof_report_print(&report, 1, &how, out);
}

/* Start duckdb with `out` as its stdout; the caller writes to *in. duckdb does not ignore the signals that kprof
 * ignores. */
static kprof_status start_duckdb(FILE *out, FILE **in, pid_t *child)
{
    int ends[2];
    sigset_t defaults;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    KPROF_AUTO_FREE char *query = make_duckdb_query();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return kprof_fail(KPROF_INTERNAL, "cannot make a pipe: %m");
    char *const words[] = {"duckdb", "-init", "/dev/null", "-batch", "-bail", "-c", query, NULL};
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(child, words[0], &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    *in = error == 0 ? fdopen(ends[1], "w") : NULL;
    if (*in)
        return KPROF_OK;
    close(ends[1]);
    return kprof_fail(KPROF_UNSUPPORTED,
                      "--to parquet needs duckdb's command line program in $PATH (%s): install it from "
                      "https://duckdb.org, or export --to long, which pandas, DuckDB and Spark read",
                      strerror(error));
}

static kprof_status print_parquet(const kprof_options *options, kprof_report *report, FILE *out)
{
    FILE *in = NULL;
    pid_t child = -1;
    int ended = 0;
    kprof_status status = start_duckdb(out, &in, &child);
    if (status != KPROF_OK)
        return status;
    status = print(options, report, in);
    if (fclose(in) != 0 && status == KPROF_OK)
        status = KPROF_OUTPUT;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        return kprof_fail(KPROF_OUTPUT, "--to parquet: duckdb failed; its messages stand above");
    return status;
}

/* SQLite writes the file itself, beside the report unless -o names it. */
static kprof_status write_nsys(const kprof_options *options, kprof_report *report)
{
    sink to = {NULL, NULL, NULL};
    const size_t length = strlen(options->argument) - (kprof_has_extension(options->argument) ? strlen(".kprof") : 0);
    KPROF_AUTO_FREE char *path = options->export_path ? kprof_strdup(options->export_path)
                                                      : kprof_strprintf("%.*s.sqlite", (int)length, options->argument);
    to.path = path;
    if (is_special(path)) /* kprof would wait for a reader of a pipe */
        return kprof_fail(KPROF_USAGE, "-o %s: --to nsys-sqlite writes a regular file", path);
    kprof_status status = open_file(options, &to);
    KPROF_THEN(status, kprof_report_write_nsys(report, to.draft));
    return close_sink(options, &to, status);
}

static kprof_status write_export(const kprof_options *options, kprof_report *report)
{
    sink to = {NULL, NULL, NULL};
    if (options->export_format == KPROF_EXPORT_NSYS)
        return write_nsys(options, report);
    kprof_status status = KPROF_OK;
    if (options->export_path && strcmp(options->export_path, "-") != 0) {
        to.path = options->export_path;
        status = open_file(options, &to);
    } else {
        kprof_destination place = options->export_path ? KPROF_TO_STDOUT : kprof_route_report(options).results;
        status = kprof_results_open(options, place, &to.file);
    }
    KPROF_THEN(status, is_parquet(options) ? print_parquet(options, report, to.file) : print(options, report, to.file));
    return close_sink(options, &to, status);
}

static bool chooses_launches(const kprof_filter_spec *filter)
{
    return filter->kernel || filter->context || filter->stream || filter->invocation || filter->device_mask ||
           filter->nvtx_include.count + filter->nvtx_exclude.count > 0 ||
           filter->launch_skip + filter->launch_skip_before_match + filter->launch_count > 0;
}

static kprof_status check_line(const kprof_options *options)
{
    if (!options->argument)
        return kprof_fail(KPROF_USAGE, "which report? usage: kprof export FILE.kprof --to FORMAT [-o FILE]");
    if (options->export_format == KPROF_UNSET)
        return kprof_fail(KPROF_USAGE, "in which format? give --to long, wide, jsonl, prometheus, perfetto, chrome, "
                                       "timeline, parquet, folded, instructions or nsys-sqlite");
    if (options->format != KPROF_UNSET)
        return kprof_fail(KPROF_USAGE, "kprof export writes what --to says (wide, jsonl ...); leave other formats out");
    if (options->export_path && options->log_file)
        return kprof_fail(KPROF_USAGE, "--export and --log-file both name the output; leave one out");
    if (is_of_trace(options) && chooses_launches(&options->filter))
        return kprof_fail(KPROF_USAGE, "--to %s writes all of a trace: leave out what chooses launches",
                          options->export_format == KPROF_EXPORT_CHROME ? "chrome"
                          : options->export_format == KPROF_EXPORT_NSYS ? "nsys-sqlite"
                                                                        : "timeline");
    return KPROF_OK;
}

/* A trace without launches may have the call stacks of its kernels, which no filter chooses. */
static kprof_status find_stacks_of_trace(const kprof_options *options, kprof_report *report, bool *out)
{
    const bool chooses = chooses_launches(&options->filter);
    const bool is_traced = kprof_trace_is_there(report);
    uint64_t launches = 0;
    kprof_status status = kprof_report_status(report);
    if (is_traced && chooses)
        status = kprof_report_count_taken(report, &(kprof_filter_spec){0}, &launches);
    *out = is_traced && launches == 0 && kprof_trace_has_callers(report);
    KPROF_THEN(status, kprof_report_status(report));
    return status == KPROF_OK && *out && chooses
               ? kprof_fail(KPROF_USAGE, "--to folded writes all kernels of a trace: leave out what chooses launches")
               : status;
}

int kprof_cmd_export(const kprof_options *options)
{
    kprof_report *report = NULL;
    uint64_t taken = 1;
    bool has_stacks = false;
    kprof_status status = check_line(options);
    KPROF_THEN(status, kprof_report_open_named(options->argument, &report));
    if (is_of_trace(options)) /* which has no launches */
        KPROF_THEN(status, kprof_trace_check(report));
    else
        KPROF_THEN(status, kprof_report_count_taken(report, &options->filter, &taken));
    if (status == KPROF_OK && taken == 0 && options->export_format == KPROF_EXPORT_FOLDED)
        status = find_stacks_of_trace(options, report, &has_stacks);
    if (status == KPROF_OK && taken == 0 && !has_stacks) {
        kprof_outcome_explain_no_match(options, report, NULL);
        status = KPROF_NO_MATCH;
    }
    KPROF_THEN(status, write_export(options, report));
    if (is_of_trace(options))
        KPROF_THEN(status, kprof_trace_tell_missing(report, options->export_format == KPROF_EXPORT_TIMELINE
                                                                ? KPROF_TRACE_PAGE
                                                                : KPROF_TRACE_EXPORT));
    else
        KPROF_THEN(status, kprof_report_tell_cut_short(report, NULL));
    (void)!kprof_report_close(report);
    return kprof_status_exit_code(status);
}
