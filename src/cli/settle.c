/* Settles the options of a line: finds its command, and checks that the options fit it and each other. */
#include "cli/parse.h"

#include "cli/commands.h"
#include "cli/idle.h"
#include "cli/paths.h"
#include "core/config.h"
#include "core/fields.h"
#include "core/files.h"
#include "core/log.h"
#include "core/process_filter.h"
#include "core/regex.h"
#include "metricset/catalog.h"
#include "report/model/change.h"
#include "report/report.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* --import makes the default command a report; the file may also be the report command's argument. */
static kprof_status settle_import(kprof_options *options)
{
    if (!options->import_path)
        return KPROF_OK;
    if (options->application)
        return kprof_fail(KPROF_USAGE, "--import reads a report: it takes no application (%s)",
                          options->application[0]);
    if (options->argument)
        return kprof_fail(KPROF_USAGE, "report: give the file once, not both %s and %s", options->import_path,
                          options->argument);
    if (options->command == kprof_commands)
        options->command = kprof_command_find("report");
    options->argument = options->import_path;
    kprof_strlist_add(&options->reports, options->import_path);
    return KPROF_OK;
}

bool kprof_option_is_given(const kprof_options *options, size_t field)
{
    return KPROF_ANY(i, KPROF_OPTION_ROWS, kprof_option_rows[i].field == field && options->given[i]);
}

/* "--list-sets" is "list sets". */
static kprof_status settle_alias(kprof_options *options)
{
    const kprof_option_row *alias = options->alias;
    const bool is_run = options->command == kprof_commands;
    if (!alias && is_run && !options->application && KPROF_IS_GIVEN(options, query_mode)) {
        options->command = kprof_command_find("list"); /* the mode implies --query-metrics */
        options->argument = "metrics";
    }
    if (!alias && is_run && !options->application && options->restored) {
        options->command = kprof_command_find("list"); /* they are as they were installed */
        options->argument = "sections";
    }
    if (!alias)
        return KPROF_OK;
    const char *word;
    const kprof_command *command = kprof_command_of_alias(alias, &word);
    if (!is_run && options->command != command)
        return kprof_fail(KPROF_USAGE, "--%s is no option of kprof %s; it is the command kprof %s%s%s", alias->name,
                          options->command->name, command->name, word ? " " : "", word ? word : "");
    options->command = command;
    options->argument = word;
    return KPROF_OK;
}

/* Is it an option of a run that ncu also takes, without effect, beside --import? */
static bool is_idle_on_import(const kprof_options *options, const kprof_option_row *row)
{
    const size_t filter = offsetof(kprof_options, filter);
    const bool chooses = row->field >= filter && row->field < filter + sizeof options->filter;
    return options->import_path && options->command->mask & KPROF_IN(report) && row->commands & KPROF_IN(profile) &&
           row->type != KPROF_OPTION_ALIAS && !chooses;
}

/* Every option given must be one of the command, or at least be ignored there. */
static kprof_status check_commands(const kprof_options *options)
{
    const unsigned mask = options->command->mask;
    const kprof_option_row *row = kprof_option_rows, *end = row + KPROF_OPTION_ROWS;
    KPROF_AUTO(kprof_strbuf) idle = KPROF_STRBUF_INIT;
    size_t idle_count = 0;
    for (; row < end; row++) {
        const bool is_taken = mask ? row->commands & (mask | KPROF_IGNORED_IN(mask)) : row->commands == KPROF_IN_ALL;
        if (!options->given[row - kprof_option_rows] || is_taken || row == options->alias)
            continue;
        if (!is_idle_on_import(options, row))
            break;
        if (!kprof_option_has_default(options, row))
            kprof_strbuf_printf(&idle, "%s--%s", idle_count++ ? ", " : "", row->name);
    }
    if (row == end && idle_count > 0)
        kprof_log(KPROF_LOG_WARNING, "%s %s no effect on a report, which is measured already", kprof_strbuf_text(&idle),
                  idle_count > 1 ? "have" : "has");
    if (row == end)
        return KPROF_OK;
    KPROF_AUTO(kprof_strbuf) owners = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < KPROF_COMMAND_COUNT; i++) {
        const char *name = kprof_commands[i].name;
        if (row->commands & kprof_commands[i].mask)
            kprof_strbuf_printf(&owners, "%s%s%s", owners.length ? ", " : "", *name ? "kprof " : "a run", name);
    }
    const char *name = options->command->name;
    const bool may_be_both = strcmp(name, "trace") == 0 && row->commands & kprof_commands[0].mask;
    return kprof_fail(KPROF_USAGE, "--%s is no option of %s%s; it belongs to: %s%s", row->name,
                      *name ? "kprof " : "a run", name, kprof_strbuf_text(&owners),
                      may_be_both ? "; kprof --trace measures launches and records a trace in one run" : "");
}

/* A command that takes a word says which words it takes. */
static kprof_status check_operand(const kprof_options *options)
{
    const char *given = options->argument;
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strbuf) known = KPROF_STRBUF_INIT;
    kprof_command_words(options->command, &words);
    if (words.count == 0 || !given || kprof_strlist_contains(&words, given))
        return KPROF_OK;
    const char *nearest = kprof_nearest(given, (const char *const *)words.items, words.count);
    for (size_t i = 0; i < words.count; i++)
        kprof_strbuf_printf(&known, "%s%s", i ? ", " : "", words.items[i]);
    return kprof_fail(KPROF_USAGE, "kprof %s: \"%s\" is none of %s%s%s%s", options->command->name, given, known.data,
                      nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* A part of --kernel-id; NULL where it is empty. */
static char *take_part(char *text)
{
    return *text ? text : NULL;
}

/* The filter knows the pattern as that of -k. */
static kprof_status check_pattern(const char *option, const char *pattern)
{
    kprof_regex *regex = NULL;
    const kprof_status status = kprof_regex_new(option, pattern, &regex);
    kprof_regex_free(regex);
    return status;
}

/* "CONTEXT:STREAM:NAME:N", where each may be empty. A name may have colons of its own. */
static kprof_status settle_kernel_id(kprof_options *options)
{
    const char *id = options->kernel_id;
    if (options->filter.kernel || options->kernel_regex || options->kernel_regex_exclude)
        return kprof_fail(KPROF_USAGE,
                          "--kernel-id and --kernel-name exclude each other; -s and -c choose launches too");
    char *context = options->kernel_made = kprof_strdup(id), *stream = context ? strchr(context, ':') : NULL;
    char *name = stream ? strchr(stream + 1, ':') : NULL, *number = name ? strrchr(name + 1, ':') : NULL;
    if (!number)
        return kprof_fail(KPROF_USAGE,
                          "--kernel-id \"%s\": write CONTEXT:STREAM:NAME:N, where each part may be empty, such as "
                          "::gemm:2 for the second launch of kernel gemm",
                          id);
    *stream++ = *name++ = *number++ = '\0';
    if (!kprof_regex_pattern(name) && (*name == ':' || number[-2] == ':') && *name)
        return kprof_fail(KPROF_USAGE,
                          "--kernel-id \"%s\": its NAME would be \"%s\", but no name begins or ends with a colon; "
                          "write CONTEXT:STREAM:NAME:N, with three colons besides those of a name like ns::gemm",
                          id, name);
    kprof_filter_spec *filter = &options->filter;
    filter->context = take_part(context);
    filter->stream = take_part(stream);
    filter->kernel = take_part(name);
    filter->invocation = take_part(number);
    const char *pattern = filter->kernel ? kprof_regex_pattern(filter->kernel) : NULL;
    return pattern ? check_pattern("--kernel-id", pattern) : KPROF_OK;
}

/* No name of a function has a comma: a list of names would match nothing once the application has run. */
static kprof_status refuse_list(const char *names)
{
    KPROF_AUTO(kprof_strlist) all = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strbuf) pattern = KPROF_STRBUF_INIT;
    kprof_value_list(names, &all);
    for (size_t i = 0; i < all.count; i++)
        kprof_strbuf_printf(&pattern, "%s%s", i > 0 ? "|" : "", all.items[i]);
    return kprof_fail(
        KPROF_USAGE,
        "--kernel-name \"%s\": no name has a comma; one pattern takes kernels of several names: -k \"regex:^(%s)$\"",
        names, kprof_strbuf_text(&pattern));
}

/* Old options of ncu give a pattern: one that names have, or one that they do not have. */
static kprof_status settle_kernel(kprof_options *options)
{
    if (options->kernel_id)
        return settle_kernel_id(options);
    const char *pattern = options->kernel_regex, *without = options->kernel_regex_exclude;
    const kprof_filter_spec *filter = &options->filter;
    const bool is_plain = filter->kernel && !kprof_regex_pattern(filter->kernel) && !strpbrk(filter->kernel, "<(");
    if (is_plain && filter->name_base != KPROF_NAME_DEMANGLED && strchr(filter->kernel, ','))
        return refuse_list(filter->kernel);
    if (!pattern && !without)
        return KPROF_OK;
    if (options->filter.kernel || (pattern && without))
        return kprof_fail(KPROF_USAGE, "--kernel-name, --kernel-regex and --kernel-regex-exclude exclude each other; "
                                       "one pattern does for all: -k \"regex:^(?!.*NOT)(.*AND)\"");
    const char *given = without ? without : pattern, *behind_prefix = kprof_regex_pattern(given);
    options->kernel_made =
        kprof_strprintf(without ? "regex:^(?!.*(?:%s))" : "regex:%s", behind_prefix ? behind_prefix : given);
    options->filter.kernel = options->kernel_made;
    return check_pattern(without ? "--kernel-regex-exclude" : "--kernel-regex", behind_prefix ? behind_prefix : given);
}

/* Ranges that are measured are those of --nvtx-include, or those between cudaProfilerStart and cudaProfilerStop. */
static kprof_status settle_ranges(kprof_options *options)
{
    kprof_filter_spec *filter = &options->filter;
    if (!kprof_replay_is_of_ranges(options->replay_choice))
        return KPROF_OK;
    const char *other = filter->nvtx_exclude.count > 0        ? "--nvtx-exclude"
                        : kprof_filter_asks_functions(filter) ? "--python-include, --native-include and -exclude"
                        : options->kernel_id                  ? "--kernel-id"
                        : filter->kernel                      ? "--kernel-name"
                                                              : NULL;
    if (other)
        return kprof_fail(KPROF_USAGE,
                          "--replay-mode %s measures all that a range has: leave out %s; --nvtx-include and "
                          "--range-filter choose ranges, and --replay-mode auto measures launches",
                          kprof_replay_name(options->replay_choice), other);
    filter->measures_ranges = filter->nvtx_include.count > 0;
    if (!filter->measures_ranges && options->ignores_profiler_calls)
        return kprof_fail(KPROF_USAGE,
                          "--replay-mode %s has no ranges to measure: give --nvtx-include, or leave out "
                          "--disable-profiler-start-stop",
                          kprof_replay_name(options->replay_choice));
    if (!filter->measures_ranges)
        options->profile_from_start = 0;
    return KPROF_OK;
}

/* The program runs once for each pass, so all its launches are counted from the start of each run. */
static kprof_status check_application_replay(const kprof_options *options)
{
    const bool is_chosen = kprof_replay_is_of_runs(options->replay_choice);
    const char *other = options->census                          ? "--census"
                        : options->rank_passes                   ? "--rank-passes"
                        : options->starts_unarmed                ? "--armed no"
                        : options->traces                        ? "--trace"
                        : options->counter_data_dir              ? "--counter-data"
                        : options->selection.limits.budget_s > 0 ? "--budget"
                                                                 : NULL;
    if (is_chosen && other)
        return kprof_fail(KPROF_USAGE,
                          "--replay-mode %s runs the program once for each pass, and does not go with %s; "
                          "leave one of them out%s",
                          kprof_replay_name(options->replay_choice), other,
                          options->selection.limits.budget_s > 0 ? ", or limit the runs with --max-passes" : "");
    return KPROF_OK;
}

static kprof_status settle_profiler_calls(kprof_options *options)
{
    if (options->profile_from_start == 0 && options->ignores_profiler_calls)
        return kprof_fail(KPROF_USAGE, "--profile-from-start off waits for a call that --disable-profiler-start-stop "
                                       "ignores; leave one of them out");
    const bool are_ignored = options->ignores_profiler_calls ||
                             (options->command->mask == KPROF_IN(trace) && options->profile_from_start == KPROF_UNSET);
    options->filter.profiler_calls = are_ignored                        ? KPROF_PROFILER_CALLS_IGNORED
                                     : options->profile_from_start == 0 ? KPROF_FROM_A_START_CALL
                                                                        : KPROF_FROM_THE_START;
    return KPROF_OK;
}

/* "all" leaves no process out. */
static kprof_status settle_processes(kprof_options *options)
{
    kprof_strlist *expressions = &options->filter.processes;
    if (expressions->count == 1 && strcasecmp(expressions->items[0], "all") == 0)
        kprof_strlist_free(expressions);
    return kprof_process_filter_check(expressions);
}

/* Settle what to do, and whether all that was given goes with it. */
static kprof_status settle_command(kprof_options *options)
{
    kprof_status status = settle_import(options);
    KPROF_THEN(status, settle_alias(options));
    if (status != KPROF_OK || options->complete)
        return status;
    if (options->help || options->version) { /* they are answered whatever else was asked for */
        options->topic = options->command;
        options->command = kprof_command_find(options->help ? "help" : "version");
        return KPROF_OK;
    }
    status = check_commands(options);
    KPROF_THEN(status, check_operand(options));
    KPROF_THEN(status, kprof_nsys_settle(options));
    KPROF_THEN(status, settle_kernel(options));
    KPROF_THEN(status, settle_processes(options));
    if (options->import_path) /* nothing is measured */
        return status;
    KPROF_THEN(status, settle_ranges(options));
    KPROF_THEN(status, check_application_replay(options));
    return KPROF_THEN(status, settle_profiler_calls(options));
}

#define FORMAT_NAME(id, name, ...) [KPROF_FORMAT_##id] = #name,
static const char *const format_names[] = {KPROF_FORMATS(FORMAT_NAME, FORMAT_NAME)};

/* Wrong conditions are found before an application is started. */
static kprof_status settle_conditions(kprof_options *options)
{
    kprof_status status = KPROF_OK;
    const bool has_launches = options->page != KPROF_PAGE_SESSION && options->page != KPROF_PAGE_SOURCES &&
                              options->page != KPROF_PAGE_CENSUS;
    if (options->filters.count > 0 && !has_launches)
        return kprof_fail(KPROF_USAGE,
                          "--filter chooses launches for the pages details, raw, summary, statistics, "
                          "brief and source; leave it out of --page session, --page sources and --page census");
    options->conditions = kprof_calloc(options->filters.count + 1, sizeof *options->conditions);
    for (size_t i = 0; i < options->filters.count && status == KPROF_OK; i++)
        status = kprof_condition_parse_filter(options->filters.items[i], &options->conditions[i]);
    return status;
}

/* Does the command collect, or plan to? */
static bool collects(const kprof_options *options)
{
    return (options->command->mask & (KPROF_IN(profile) | KPROF_IN(plan))) != 0;
}

/* Does it print pages of launches? */
static bool prints_pages(const kprof_options *options)
{
    return (options->command->mask & (KPROF_IN(profile) | KPROF_IN(report))) != 0;
}

/* A source file may be in another place, so the text of those that are found is still shown. */
static void tell_missing(const kprof_strlist *paths, const char *option, bool are_folders)
{
    for (size_t i = 0; i < paths->count; i++) {
        struct stat found;
        int error = access(paths->items[i], R_OK) != 0 || stat(paths->items[i], &found) != 0 ? errno : 0;
        if (!error && S_ISDIR(found.st_mode) != are_folders)
            error = are_folders ? ENOTDIR : EISDIR;
        if (error)
            kprof_log(KPROF_LOG_WARNING, "--%s %s: %s; no source is looked for there", option, paths->items[i],
                      strerror(error));
    }
}

/* Tables have all rows of the source page in the order of the program, unless the hottest are asked for. */
static kprof_status settle_source(kprof_options *options)
{
    enum { HOTTEST = 10 };
    const bool has_top = KPROF_IS_GIVEN(options, top);
    const bool is_source = options->page == KPROF_PAGE_SOURCE;
    tell_missing(&options->source_folders, "source-folders", true);
    tell_missing(&options->resolve_source_files, "resolve-source-file", false);
    if (options->sort != KPROF_UNSET && is_source != (options->sort >= KPROF_SORT_SAMPLES))
        return kprof_fail(KPROF_USAGE, "--sort %s is about %s", kprof_option_word("sort", options->sort),
                          is_source ? "rows of kernels; --page source sorts by samples, instructions, sectors, "
                                      "conflicts, local or divergence"
                                    : "rows of code: give --page source");
    if (!is_source)
        return KPROF_OK;
    if (kprof_is_csv(options->format) && !has_top && options->sort == KPROF_UNSET)
        options->all_rows = true;
    else if (!has_top && !options->all_rows)
        options->top = HOTTEST;
    if (options->format == KPROF_FORMAT_CSV_NCU && !KPROF_IS_GIVEN(options, source_view))
        options->source_view = KPROF_VIEW_SASS; /* as ncu prints */
    return KPROF_OK;
}

/* Orders, groups and numbers of rows choose the page that has such rows, where no page is named. */
static void choose_page_of_rows(kprof_options *options)
{
    const bool has_kernels = options->top || options->group_by != KPROF_UNSET || options->sort != KPROF_UNSET;
    const bool has_code =
        options->sort >= KPROF_SORT_SAMPLES ||
        (options->sort == KPROF_UNSET && options->group_by == KPROF_UNSET && KPROF_IS_GIVEN(options, source_view));
    if (prints_pages(options) && has_kernels && options->page == KPROF_UNSET && !options->census && !options->html_path)
        options->page = has_code ? KPROF_PAGE_SOURCE : KPROF_PAGE_SUMMARY;
}

/* Rows of kernels are in some pages only, and some of these rank them. */
static kprof_status check_rows(const kprof_options *options)
{
    const bool ranks = options->page == KPROF_PAGE_SUMMARY || options->page == KPROF_PAGE_BRIEF ||
                       (options->page == KPROF_PAGE_SOURCE && options->group_by == KPROF_UNSET);
    const bool is_census = options->page == KPROF_PAGE_CENSUS && options->sort == KPROF_UNSET &&
                           (options->group_by == KPROF_UNSET || options->group_by == KPROF_GROUP_KERNEL ||
                            options->group_by == KPROF_GROUP_CONFIG);
    const bool is_ordered = options->page != KPROF_PAGE_SOURCE; /* that page has rows to order, and groups none */
    const char *order = !is_ordered ? NULL : options->top ? "top" : options->sort != KPROF_UNSET ? "sort" : NULL;
    const char *name = order ? order : options->group_by != KPROF_UNSET ? "group-by" : NULL;
    if (!name || ranks || is_census || options->census || !prints_pages(options) ||
        (options->page == KPROF_PAGE_STATISTICS && !order))
        return KPROF_OK;
    if (options->html_path)
        return kprof_fail(KPROF_USAGE,
                          "--%s is about rows of text: leave it out, as the page of --html has all kernels and "
                          "launches and sorts them itself",
                          name);
    if (options->page == KPROF_PAGE_CENSUS)
        return kprof_fail(KPROF_USAGE,
                          "--page census ranks kernels by their time, or with --group-by config kernels "
                          "and shapes; leave --%s out",
                          name);
    if (options->page == KPROF_PAGE_STATISTICS)
        return kprof_fail(KPROF_USAGE, "--%s is about the summary and brief pages, which rank kernels; leave it out",
                          name);
    const bool is_code = options->sort >= KPROF_SORT_SAMPLES;
    return kprof_fail(KPROF_USAGE, "--%s is about rows of %s, and --page %s has none: give %s", name,
                      !order         ? "kernels"
                      : options->top ? "kernels or code"
                      : is_code      ? "code"
                                     : "kernels",
                      kprof_option_word("page", options->page),
                      !order         ? "summary, statistics or brief"
                      : options->top ? "summary, census, brief or source"
                      : is_code      ? "source"
                                     : "summary or brief");
}

static kprof_status settle_format(kprof_options *options)
{
    if (options->csv_layout != KPROF_UNSET) {
        if (options->format != KPROF_UNSET && options->format != KPROF_FORMAT_CSV)
            return kprof_fail(KPROF_USAGE, "--csv-layout and --%s exclude each other", format_names[options->format]);
        options->format = options->csv_layout;
    } else if (options->format == KPROF_FORMAT_CSV && kprof_is_called_ncu()) {
        options->format = KPROF_FORMAT_CSV_NCU;
    }
    if (options->html_path) {
        const char *other = options->csv_layout != KPROF_UNSET      ? "csv-layout"
                            : options->format != KPROF_UNSET        ? format_names[options->format]
                            : options->page == KPROF_PAGE_BRIEF     ? "brief"
                            : options->page != KPROF_UNSET          ? "page"
                            : options->print_summary != KPROF_UNSET ? "print-summary"
                            : options->log_file                     ? "log-file"
                                                                    : NULL;
        if (other)
            return kprof_fail(KPROF_USAGE, "--html writes all pages to its own file; leave --%s out", other);
        options->format = KPROF_FORMAT_HTML;
    }
    if (options->print_summary != KPROF_UNSET) {
        if (options->page > KPROF_PAGE_RAW && options->page != KPROF_PAGE_STATISTICS)
            return kprof_fail(KPROF_USAGE, "--print-summary prints --page statistics; leave it or --%s out",
                              options->page == KPROF_PAGE_BRIEF ? "brief" : "page");
        options->page = KPROF_PAGE_STATISTICS;
        if (options->group_by == KPROF_UNSET && options->print_summary != KPROF_GROUP_KERNEL)
            options->group_by = options->print_summary;
    }
    return KPROF_OK;
}

/* Choose ncu's text on the pages that ncu has, where kprof is called ncu. */
static kprof_status settle_text(kprof_options *options)
{
    const int page = options->page;
    const bool has_layout =
        page == KPROF_UNSET || page == KPROF_PAGE_DETAILS || page == KPROF_PAGE_RAW || page == KPROF_PAGE_STATISTICS;
    const bool is_text = options->format == KPROF_UNSET || options->format == KPROF_FORMAT_TEXT;
    if (options->text_layout != KPROF_UNSET && !is_text)
        return kprof_fail(KPROF_USAGE, "--text-layout and %s exclude each other",
                          options->html_path ? "--html" : "formats other than text");
    if (options->text_layout == KPROF_FORMAT_TEXT_NCU && !has_layout)
        return kprof_fail(KPROF_USAGE, "--text-layout ncu has the pages details, raw and statistics; leave it out");
    if (options->text_layout == KPROF_UNSET)
        options->text_layout = prints_pages(options) && is_text && has_layout && kprof_is_called_ncu()
                                   ? KPROF_FORMAT_TEXT_NCU
                                   : KPROF_FORMAT_TEXT;
    return KPROF_OK;
}

static bool is_of_ncu(const char *name)
{
    return kprof_ends_with(name, ".section");
}

static bool has_sections_of_ncu(const char *path)
{
    bool has = false;
    KPROF_AUTO_CLOSEDIR DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !has && (entry = readdir(folder));)
        has = is_of_ncu(entry->d_name);
    return has;
}

/* A folder can have sections of ncu and of kprof. */
typedef struct section_owners {
    bool ncu, kprof;
} section_owners;

static section_owners look_for_sections(const char *path)
{
    section_owners owners = {false, false};
    KPROF_AUTO_CLOSEDIR DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        KPROF_AUTO_FREE char *below = kprof_strprintf("%s/%s", path, entry->d_name);
        const bool is_of_kind = kprof_catalog_reads(entry->d_name);
        const bool is_ncus = is_of_kind ? has_sections_of_ncu(below) : is_of_ncu(below);
        owners.ncu = owners.ncu || is_ncus;
        owners.kprof = owners.kprof || (is_of_kind && !is_ncus);
    }
    return owners;
}

static int compare_entries(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

/* Append the folder, or of a tree all its folders, where kprof's sections are. One without any is refused later; but
 * scripts name the folder of ncu's sections, of which kprof has its own. */
static void add_sections(const char *option, char *path, bool is_tree, kprof_strlist *out)
{
    const size_t before = out->count;
    section_owners all = {false, false};
    FTS *tree = fts_open((char *[]){path, NULL}, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_entries);
    for (FTSENT *at; tree && (at = fts_read(tree));) {
        const section_owners owners = at->fts_info == FTS_D ? look_for_sections(at->fts_path) : (section_owners){0};
        all.ncu = all.ncu || owners.ncu;
        if (owners.kprof)
            kprof_strlist_add(out, at->fts_path);
        if (!is_tree)
            break;
    }
    if (tree)
        fts_close(tree);
    if (out->count == before && all.ncu)
        kprof_log(KPROF_LOG_WARNING,
                  "%s %s has no effect: it has ncu's files *.section, of which kprof reads none; kprof list sections "
                  "shows its own, which have ncu's identifiers",
                  option, path);
    else if (out->count == before)
        kprof_strlist_add(out, path);
}

static void settle_section_folders(kprof_options *options)
{
    KPROF_AUTO(kprof_strlist) folders = options->section_folders;
    options->section_folders = (kprof_strlist)KPROF_STRLIST_INIT;
    for (size_t i = 0; i < folders.count; i++)
        add_sections("--section-folder", folders.items[i], false, &options->section_folders);
    for (size_t i = 0; i < options->section_trees.count; i++)
        add_sections("--section-folder-recursive", options->section_trees.items[i], true, &options->section_folders);
}

static kprof_status settle_pages(kprof_options *options)
{
    kprof_status status = settle_format(options);
    if (status == KPROF_OK)
        choose_page_of_rows(options);
    KPROF_THEN(status, settle_text(options));
    if (options->page == KPROF_PAGE_CENSUS && !options->census && options->command->mask == KPROF_IN(profile))
        return kprof_fail(KPROF_USAGE, "--page census shows what --census counts: give --census, too");
    /* A run collects what its page is about, unless the user chooses sets, sections or metrics. */
    const char *set = options->page == KPROF_PAGE_BRIEF      ? "agent"
                      : options->page == KPROF_PAGE_SOURCE   ? "source"
                      : options->page == KPROF_PAGE_TIMELINE ? "pmsampling"
                                                             : NULL;
    if (set && collects(options) && kprof_selection_count(&options->selection) == 0)
        kprof_strlist_add(&options->selection.sets, set);
    KPROF_THEN(status, check_rows(options));
    KPROF_THEN(status, settle_source(options));
    options->sort = options->sort == KPROF_UNSET ? KPROF_SORT_GAIN : options->sort;
    if (options->group_by == KPROF_UNSET && options->page == KPROF_PAGE_STATISTICS && kprof_is_as_ncu(options))
        options->group_by = KPROF_GROUP_SHAPE;
    options->group_by = options->group_by == KPROF_UNSET ? KPROF_GROUP_KERNEL : options->group_by;
    if (status == KPROF_OK && options->page == KPROF_PAGE_BRIEF && kprof_is_csv(options->format))
        status = kprof_fail(KPROF_USAGE, "the brief page is not a table; give --json, or --page summary --csv");
    if (options->page == KPROF_PAGE_BRIEF && options->format == KPROF_FORMAT_JSON)
        options->format = KPROF_FORMAT_JSONL; /* the page has a document for each kernel */
    return KPROF_THEN(status, settle_conditions(options));
}

/* Can the run that takes the census measure what is asked for? It measures kernels as they come again; a choice of
 * launches by numbers and places takes a run of its own. */
static bool measures_beside(const kprof_options *options)
{
    const kprof_filter_spec *filter = &options->filter;
    const bool repeats =
        options->replay_choice == KPROF_REPLAY_WHERE_PROVED || options->replay_choice == KPROF_REPLAY_ONLY;
    return options->is_measured && repeats && !options->traces && filter->filter_mode == KPROF_FILTER_PER_CONFIG &&
           filter->launch_count > 0 && !filter->context && !filter->stream && !filter->invocation &&
           !filter->range_filter && !filter->schedule && filter->device_mask == 0 &&
           filter->profiler_calls != KPROF_FROM_A_START_CALL;
}

/* If options also choose something to measure, the run with the census measures it, or a second run does. */
static kprof_status settle_census(kprof_options *options)
{
    kprof_filter_spec *filter = &options->filter;
    if (!options->census || !(options->command->mask & KPROF_IN(profile)))
        return KPROF_OK;
    if (options->graph_profiling == KPROF_GRAPH_WHOLE)
        return kprof_fail(KPROF_USAGE, "--census counts each kernel of a CUDA graph, and --graph-profiling graph "
                                       "measures none of them; leave one of them out");
    if (kprof_replay_is_of_ranges(options->replay_choice))
        return kprof_fail(KPROF_USAGE,
                          "--census counts kernels, and --replay-mode %s measures ranges; leave one of them out",
                          kprof_replay_name(options->replay_choice));
    const bool counts = filter->launch_count > 0 || filter->filter_mode != KPROF_FILTER_GLOBAL;
    options->is_measured = options->top > 0 || counts || kprof_selection_count(&options->selection) > 0;
    if (options->traces && !options->is_measured)
        return kprof_fail(KPROF_USAGE, "--trace is beside counters, and --census alone measures none: give --top, a "
                                       "set or metrics, too, or have kprof trace record each kernel without --census");
    if (options->starts_unarmed && options->is_measured)
        return kprof_fail(KPROF_USAGE,
                          "--census with --armed no counts launches alone: leave --top, -c, --filter-mode, "
                          "metrics, sections and sets out; without --census kprof ctl start measures");
    if (options->top > 0 && !counts && !filter->invocation) {
        filter->filter_mode = KPROF_FILTER_PER_CONFIG;
        filter->launch_count = 1;
    }
    options->measures_beside = measures_beside(options);
    const bool prints = !options->export_path || options->format != KPROF_UNSET;
    const bool is_of_launches = options->page != KPROF_UNSET && options->page != KPROF_PAGE_CENSUS &&
                                options->page != KPROF_PAGE_SUMMARY && options->page != KPROF_PAGE_SESSION &&
                                options->page != KPROF_PAGE_SOURCES;
    const bool is_summary = options->print_summary != KPROF_UNSET; /* ncu's, of metrics */
    if ((is_of_launches || is_summary) && !options->is_measured)
        return kprof_fail(KPROF_USAGE,
                          "--census alone measures no launch that --%s would show; add --top N, a set or metrics, or "
                          "leave that out",
                          is_summary ? "print-summary" : "page");
    if (prints && options->page == KPROF_UNSET && options->print_summary == KPROF_UNSET)
        options->page = options->is_measured ? KPROF_PAGE_SUMMARY : KPROF_PAGE_CENSUS;
    return KPROF_OK;
}

/* Passes of launches and samples of the whole program would want the same counters. */
static kprof_status settle_trace(kprof_options *options)
{
    const bool is_trace = options->command->mask == KPROF_IN(trace);
    if (options->traces && options->starts_unarmed)
        return kprof_fail(KPROF_USAGE, "--trace records from the start; leave it or --armed no out");
    if (options->samples_program && !is_trace)
        return kprof_fail(
            KPROF_USAGE, "--pm-sampling samples a program that kprof trace runs: where launches are measured, their "
                         "passes have the counters. Run kprof trace --pm-sampling, or take --section PmSampling, which "
                         "samples each launch");
    if (is_trace && options->filter.schedule && !options->filter.step && options->profile_from_start != 0)
        return kprof_fail(KPROF_USAGE,
                          "--schedule %s counts no launches for a trace: say with --step which NVTX ranges "
                          "are steps, or take those of cudaProfilerStart, with --profile-from-start off",
                          options->filter.schedule);
    const bool is_timed = options->delay_s + options->duration_s > 0;
    if (is_timed && KPROF_IS_GIVEN(options, starts_unarmed))
        return kprof_fail(KPROF_USAGE, "--delay and --duration trace by the clock, and --armed no when kprof ctl says "
                                       "so: leave it or these out");
    if (is_timed)
        options->starts_unarmed = 1;
    options->filter.measures_ranges |= is_trace && options->filter.nvtx_include.count > 0;
    return KPROF_OK;
}

kprof_status kprof_options_settle(kprof_options *options)
{
    kprof_status status = settle_command(options);
    if (status != KPROF_OK || options->complete || options->topic) /* help is given whatever else was asked for */
        return status;
    status = settle_trace(options);
    KPROF_THEN(status, settle_census(options));
    KPROF_THEN(status, kprof_filter_check(&options->filter));
    if (status != KPROF_OK)
        return status;
    uint64_t launches = options->filter.filter_mode == KPROF_FILTER_GLOBAL ? options->filter.launch_count : 0;
    options->most_launches = launches;
    const bool has_limit = launches > 0 || (options->filter.filter_mode == KPROF_FILTER_PER_DEVICE &&
                                            options->filter.launch_count > 0 && options->filter.device_mask != 0);
    if (options->kills && !has_limit && !kprof_filter_ends(&options->filter) && !options->import_path)
        kprof_log(KPROF_LOG_WARNING, "--kill has no effect: nothing tells when all launches are measured; give %s",
                  options->filter.filter_mode == KPROF_FILTER_PER_CONFIG
                      ? "--schedule, or --launch-count without --filter-mode per-launch-config, as nobody knows how "
                        "many there are of these"
                      : "--launch-count or --schedule, and with --filter-mode per-gpu --devices");
    options->nvtx = options->nvtx || options->nvtx_of_process || kprof_filter_asks_nvtx(&options->filter);
    if (options->call_stack && !KPROF_IS_GIVEN(options, call_stack_type))
        options->call_stack_type = KPROF_CALL_STACK_BOTH;
    if (options->filter.python_include.count + options->filter.python_exclude.count > 0)
        options->call_stack_type |= KPROF_CALL_STACK_PYTHON;
    if (options->filter.native_include.count + options->filter.native_exclude.count > 0)
        options->call_stack_type |= KPROF_CALL_STACK_NATIVE;
    kprof_workload *workload = &options->selection.limits.workload;
    workload->launches = launches ? launches : KPROF_ASSUMED_LAUNCHES;
    workload->batch = options->replay_batch;
    workload->cache_control = (kprof_cache_control)options->cache_control;
    const bool repeats =
        options->replay_choice == KPROF_REPLAY_ONLY || options->replay_choice == KPROF_REPLAY_APPLICATION;
    if (KPROF_IS_GIVEN(options, multiplex_samples) && repeats)
        return kprof_fail(KPROF_USAGE, "--multiplex-samples is about launches that are not repeated: leave it out, or "
                                       "give --replay-mode auto or multiplex");
    settle_section_folders(options);
    status = settle_pages(options);
    if (status != KPROF_OK || !kprof_replay_is_of_ranges(options->replay_choice) || !collects(options))
        return status;
    if (kprof_selection_count(&options->selection) == 0)
        kprof_strlist_add(&options->selection.sets, "default");
    /* A range reports its number of launches like a metric that somebody asks for. */
    kprof_strlist_add_unique(&options->selection.metrics, KPROF_RANGE_LAUNCHES);
    return KPROF_OK;
}
