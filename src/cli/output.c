/* Decides where results go and opens that stream; the rule stands in output.h. Refuses an output that is one of kprof's
 * inputs, under whatever name: writing it would destroy what is to be read. */
#include "cli/output.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/program.h"
#include "cli/unfinished.h"
#include "core/files.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
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
    const bool is_as_ncu = kprof_is_called_ncu() && (is_text(options) || options->format == KPROF_FORMAT_CSV_NCU);
    kprof_route route = {results, results == KPROF_TO_STDOUT && !is_text(options) && !is_as_ncu, KPROF_TO_NOTHING};
    if (is_as_ncu && !options->quiet)
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

FILE *kprof_output_open(const char *path, int flags, mode_t mode)
{
    struct stat info;
    const int how = O_WRONLY | O_CLOEXEC | flags;
    const bool is_pipe = stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
    int file = open(path, is_pipe ? how | O_NONBLOCK : how, mode);
    if (is_pipe && file < 0 && errno == ENXIO) {
        kprof_log(KPROF_LOG_INFO, "%s is a pipe: kprof waits until something reads it", path);
        file = open(path, how, mode);
    } else if (is_pipe && file >= 0) {
        (void)fcntl(file, F_SETFL, 0); /* from here on it waits for room */
    }
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (file >= 0 && !out)
        close(file);
    return out;
}

/* Reports tell of programs and machines, so others may not read it unless its owner lets them. */
static kprof_status open_html(const kprof_options *options, FILE **out)
{
    const char *path = options->html_path;
    struct stat file;
    const bool is_special = lstat(path, &file) == 0 && !S_ISREG(file.st_mode); /* a pipe may be waited for */
    if (!is_special)
        kprof_unfinished_hold();
    *out = kprof_output_open(path, O_CREAT | (options->force_overwrite ? O_TRUNC : O_EXCL), 0600);
    if (*out && !is_special)
        kprof_unfinished_begin(path, NULL);
    else
        kprof_unfinished_end();
    if (!*out && errno == EEXIST)
        return kprof_fail(KPROF_OUTPUT, "--html %s exists; give -f to replace it", path);
    return *out ? KPROF_OK : kprof_fail_to_make(path, "--html %s", path);
}

kprof_status kprof_results_open(const kprof_options *options, kprof_destination to, FILE **out)
{
    if (to == KPROF_TO_HTML)
        return open_html(options, out);
    *out = to == KPROF_TO_STDOUT ? stdout : to == KPROF_TO_STDERR ? stderr : NULL;
    if (to == KPROF_TO_FILE)
        *out = kprof_output_open(options->log_file, O_CREAT | O_TRUNC, 0666);
    return to == KPROF_TO_FILE && !*out
               ? kprof_fail_to_make(options->log_file, "cannot write the results to %s", options->log_file)
               : KPROF_OK;
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
    if (html)
        kprof_unfinished_end();
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
    return ioctl(fileno(results), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

kprof_print_options kprof_print_options_make(const kprof_options *options, FILE *results)
{
    static const char *const bases[] = {
        [KPROF_NAME_FUNCTION] = "function", [KPROF_NAME_DEMANGLED] = "demangled", [KPROF_NAME_MANGLED] = "mangled"};
    return (kprof_print_options){
        .page = options->page == KPROF_UNSET ? KPROF_PAGE_DETAILS : (kprof_page)options->page,
        .begins_with_summary = options->page == KPROF_UNSET && is_text(options) && !kprof_is_as_ncu(options),
        .verbose = options->verbose,
        .format = (kprof_format)(is_text(options) ? options->text_layout : options->format),
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
        .table = options->table_style,
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

/* Identifies the file that a path leads to, or for a file that does not exist yet, its folder and name. */
typedef struct identity {
    dev_t device;
    ino_t inode;
    char *name; /* NULL: the file exists */
} identity;

/* False where nothing can be overwritten: a device, a pipe, a folder, or a path that leads nowhere. */
static bool identify(const char *path, identity *out)
{
    struct stat file;
    *out = (identity){0};
    if (stat(path, &file) == 0) {
        *out = (identity){file.st_dev, file.st_ino, NULL};
        return S_ISREG(file.st_mode);
    }
    char *copy = kprof_strdup(path), *other = kprof_strdup(path);
    if (copy && other && stat(dirname(copy), &file) == 0)
        *out = (identity){file.st_dev, file.st_ino, kprof_strdup(basename(other))};
    KPROF_FREE(copy, other);
    return out->name != NULL;
}

bool kprof_paths_are_same(const char *a, const char *b)
{
    identity first, second;
    bool is_known = identify(a, &first), is_other_known = identify(b, &second);
    bool is_one = is_known && is_other_known && first.device == second.device && first.inode == second.inode &&
                  (first.name ? second.name && strcmp(first.name, second.name) == 0 : !second.name);
    KPROF_FREE(first.name, second.name);
    return is_one;
}

static void add_folder(kprof_strlist *out, const char *folder, const char *part)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, part);
    KPROF_AUTO_CLOSEDIR DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, part, entry->d_name);
        kprof_strlist_add(out, path);
    }
}

/* All that the command reads: the report, the program and the files that its arguments name, libraries, sets. */
static kprof_status find_inputs(const kprof_options *options, kprof_strlist *out)
{
    bool is_report = kprof_command_reads_reports(options->command);
    if (is_report && options->baseline)
        kprof_strlist_take(out, kprof_report_path(options->baseline));
    if (is_report && options->argument)
        kprof_strlist_take(out, kprof_report_path(options->argument));
    for (size_t i = 0; i < options->reports.count; i++)
        kprof_strlist_take(out, kprof_report_path(options->reports.items[i]));
    if (options->application)
        kprof_strlist_take(out, kprof_program_find(options->application[0])); /* NULL: there is none */
    for (char **word = options->application; word && *word; word++)
        kprof_strlist_add(out, *word);
    if (options->injection_path)
        kprof_strlist_add(out, options->injection_path);
    if (options->nvdisasm)
        kprof_strlist_add(out, options->nvdisasm);
    if (is_report && !kprof_catalog_is_there())
        return KPROF_OK;
    KPROF_AUTO(kprof_strlist) folders = KPROF_STRLIST_INIT; /* shipped ones and the user's */
    kprof_status status = kprof_catalog_folders(options, &folders);
    for (size_t i = 0; i < folders.count && status == KPROF_OK; i++) {
        add_folder(out, folders.items[i], "sets");
        add_folder(out, folders.items[i], "sections");
        add_folder(out, folders.items[i], "findings");
    }
    return status;
}

/* A path of NULL is none. */
static kprof_status check_output(const char *shown, const char *path, const kprof_strlist *inputs, bool may_be_report)
{
    for (size_t i = 0; path && i < inputs->count; i++) {
        const char *input = inputs->items[i];
        if (access(input, F_OK) == 0 && kprof_paths_are_same(path, input))
            return kprof_fail(KPROF_USAGE, "%s would overwrite %s, which is to be read; name another file", shown,
                              input);
    }
    if (path && !may_be_report && kprof_is_report(path))
        return kprof_fail(KPROF_USAGE, "%s %s is a report; name another file, or remove it", shown, path);
    return KPROF_OK;
}

/* Does --export name a file of another format? It is taken as it is. */
static bool is_export(const kprof_options *options)
{
    return options->command->run == kprof_cmd_export;
}

static kprof_status check_outputs(const kprof_options *options, const char *log_file, const char *export_path,
                                  const kprof_strlist *inputs)
{
    kprof_status status = check_output("--log-file", log_file, inputs, false);
    KPROF_THEN(status, check_output("--html", options->html_path, inputs, false));
    KPROF_THEN(status, check_output("--export", export_path, inputs, !is_export(options)));
    if (status == KPROF_OK && log_file && export_path && kprof_paths_are_same(log_file, export_path))
        status = kprof_fail(KPROF_USAGE, "--log-file %s and --export %s are one file", log_file, export_path);
    /* "kprof report run.kprof >>run.kprof". What an application prints may go wherever its user wants. */
    if (status == KPROF_OK && kprof_command_reads_reports(options->command))
        status = check_output("stdout", "/dev/fd/1", inputs, true);
    return status;
}

/* Files are written as they are named, but reports, whose %i takes its number as they are made. */
static kprof_status expand_name(kprof_options *options, const char *option, char **path)
{
    KPROF_AUTO_FREE char *name = NULL;
    if (!*path || !strchr(*path, '%'))
        return KPROF_OK;
    kprof_status status = kprof_name_expand_to_new(option, *path, &name);
    if (status == KPROF_OK)
        *path = kprof_pool_strdup(&options->made_words, name);
    return status;
}

/* Has the command this option? Else kprof report has it. */
static bool takes(const kprof_command *command, const char *name)
{
    return KPROF_ANY(i, KPROF_OPTION_ROWS,
                     kprof_option_rows[i].commands & command->mask && strcmp(kprof_option_rows[i].name, name) == 0);
}

/* Whoever names a report as a file of another kind most likely wants that. */
static void warn_of_other_kind(const kprof_options *options, const char *report)
{
    static const struct {
        const char *end, *name, *option, *words;
    } kinds[] = {{".csv", "CSV", "csv", "--csv --log-file"},
                 {".json", "JSON", "json", "--json --log-file"},
                 {".html", "a page", "html", "--html"},
                 {".txt", "text", "csv", "--log-file"}};
    const char *given = options->export_path;
    const size_t i = KPROF_FIND(k, COUNT_OF(kinds), kprof_ends_with(given, kinds[k].end));
    if (i == COUNT_OF(kinds))
        return;
    KPROF_AUTO_FREE char *way = takes(options->command, kinds[i].option)
                                    ? kprof_strprintf("give %s %s", kinds[i].words, given)
                                    : kprof_strprintf("run kprof report %s %s %s", report, kinds[i].words, given);
    kprof_log(KPROF_LOG_WARNING, "--export %s keeps a report, %s; for %s %s", given, report, kinds[i].name, way);
}

kprof_status kprof_outputs_check(kprof_options *options)
{
    bool makes_report = options->command == kprof_commands || options->command->run == kprof_cmd_trace ||
                        options->command->operand == KPROF_OPERAND_FOLDER ||
                        options->command->operand == KPROF_OPERAND_MANY_REPORTS;
    bool is_file = options->log_file && kprof_route_report(options).results == KPROF_TO_FILE;
    bool is_report = kprof_command_reads_reports(options->command);
    KPROF_AUTO_FREE char *export_path = NULL;
    KPROF_AUTO(kprof_strlist) inputs = KPROF_STRLIST_INIT;
    kprof_status status = expand_name(options, "--html", &options->html_path);
    if (is_export(options))
        KPROF_THEN(status, expand_name(options, "--export", &options->export_path));
    if (makes_report && options->export_path)
        KPROF_THEN(status, kprof_export_path_expand(options->export_path, &export_path));
    if (makes_report && status == KPROF_OK && export_path)
        warn_of_other_kind(options, export_path);
    if (status == KPROF_OK && is_export(options) && options->export_path && strcmp(options->export_path, "-") != 0)
        export_path = kprof_strdup(options->export_path);
    if (status == KPROF_OK && (is_file || export_path || is_report))
        status = find_inputs(options, &inputs);
    return KPROF_THEN(status, check_outputs(options, is_file ? options->log_file : NULL, export_path, &inputs));
}
