/* Warns of options that have no effect beside the others of a line, such as an order of rows on a page without rows.
 * The line runs all the same. */
#include "cli/idle.h"

#include "cli/commands.h"
#include "cli/output.h"
#include "core/config.h"
#include "core/log.h"

#include <string.h>

/* A row with this in place of names is about all options that choose launches, or what kprof keeps of them. */
#define CHOOSING_LAUNCHES ""

typedef struct idle_row {
    /* Names options, with "|" between them, or says how several begin, with a dash at its end; or CHOOSING_LAUNCHES.
     * kprof warns of an option with its default value only if the names begin with "=". */
    const char *names;
    bool is_idle;
    const char *why;
} idle_row;

enum { MOST_OF_EACH = 24, MOST_ROWS = 2 * MOST_OF_EACH }; /* of the functions that judge a part */

/* Does kprof stats write a table as CSV, as --format says or as files are? */
static bool has_csv_apart(const kprof_options *options)
{
    const char *to = options->export_path;
    return options->stats_formats ? strstr(options->stats_formats, "csv") || strchr(options->stats_formats, '.')
                                  : to && strcmp(to, "-") != 0;
}

/* Judge what a line measures, lists and keeps. Return the number of rows. */
static size_t judge_command(const kprof_options *options, idle_row *out)
{
    const unsigned command = options->command->mask;
    const kprof_filter_spec *filter = &options->filter;
    const kprof_selection *selection = &options->selection;
    const kprof_route route = kprof_route_profile(options, true);
    const char *word = command & (KPROF_IN(list) | KPROF_IN(ctl)) ? options->argument : NULL;
    const bool counts =
        filter->launch_skip + filter->launch_count + filter->launch_skip_before_match > 0 || filter->schedule;
    const bool lists_another = command & KPROF_IN(list) && word && strcmp(word, "collected") != 0;
    const bool orders = command & KPROF_IN(ctl) && word && strcmp(word, "status") != 0; /* and prints no results */
    const bool is_silent = route.results == KPROF_TO_NOTHING && route.as_ncu == KPROF_TO_NOTHING;
    const idle_row rows[] = {
        {"kernel-name-base", !filter->kernel, " without --kernel-name"},
        {"filter-mode", !counts && !options->census,
         " without --launch-skip, --launch-count or --launch-skip-before-match"},
        {"config-file-path", options->reads_config == 0, " beside --config-file no, with which no file is read"},
        {"app-replay-", !kprof_replay_is_of_runs(options->replay_choice),
         " without --replay-mode application or app-range"},
        {"pm-sampling-", command & KPROF_IN(trace) && !options->samples_program, " without --pm-sampling"},
        {"log-file", command & KPROF_IN(stats) && options->export_path && strcmp(options->export_path, "-") != 0,
         " beside --export, which names the files"},
        {"set", lists_another, ": kprof list collected tells what a set collects"},
        {"section", lists_another, ": kprof list collected tells what a section collects"},
        {"section-exclude", lists_another, ": kprof list collected tells what is collected without a section"},
        {"metrics", lists_another && strcmp(word, "metrics") != 0,
         ": kprof list metrics and kprof list collected take names of metrics"},
        {"query-metrics-mode", lists_another && strcmp(word, "metrics") != 0, ": kprof list metrics takes it"},
        {"chips|devices", lists_another && kprof_word_is_among("sections|findings|chips|tables", word, strlen(word)),
         ": this list is the same for all chips"},
        {"devices", options->chips.count > 0, " beside --chips"},
        {"log-file|filter|rule",
         (command & KPROF_IN(report) && options->export_path && options->page == KPROF_UNSET &&
          options->format == KPROF_UNSET && !options->html_path) ||
             (command & (KPROF_IN(profile) | KPROF_IN(trace)) && is_silent),
         " with --export alone, which prints nothing; kprof report and kprof stats print what is kept"},
        {"log-file", command & KPROF_IN(merge), ": kprof merge prints no results"},
        {"log-file|csv|json|markdown", orders, ": kprof ctl status alone prints results"},
        {"set|section|metrics|export", command & KPROF_IN(ctl) && !orders,
         " on kprof ctl status; kprof ctl start takes it"},
        {"allocated", command & KPROF_IN(profile) && selection->limits.budget_s <= 0,
         " without --budget or kprof plan"},
        {"section-exclude", selection->metrics.count > 0 && selection->sets.count + selection->sections.count == 0,
         " beside metrics alone, without --set or --section"},
    };
    _Static_assert(COUNT_OF(rows) <= MOST_OF_EACH, "the caller has space for all rows");
    memcpy(out, rows, sizeof rows);
    return COUNT_OF(rows);
}

/* Judge the pages and formats that it prints, likewise. */
static size_t judge_pages(const kprof_options *options, idle_row *out)
{
    const unsigned command = options->command->mask;
    const int page = options->page, format = command & KPROF_IN(export) ? options->export_format : options->format;
    const bool is_report = command & KPROF_IN(report), is_ncu = kprof_is_as_ncu(options);
    const bool is_ncu_csv = options->format == KPROF_FORMAT_CSV_NCU;
    const bool is_of_runs = page == KPROF_PAGE_CENSUS || page == KPROF_PAGE_SESSION;
    const bool is_of_code = page == KPROF_PAGE_SOURCE || page == KPROF_PAGE_SOURCES;
    const bool is_ranked = page == KPROF_PAGE_SUMMARY || page == KPROF_PAGE_CENSUS || page == KPROF_PAGE_BRIEF;
    const bool is_without_sections =
        is_ranked || is_of_code || page == KPROF_PAGE_SESSION || page == KPROF_PAGE_TIMELINE;
    const bool is_without_help = is_without_sections || page == KPROF_PAGE_STATISTICS;
    const bool has_no_help = kprof_is_csv(options->format) || options->format == KPROF_FORMAT_MARKDOWN;
    const idle_row rows[] = {
        {"print-nvtx-rename", !is_ncu,
         " but in ncu's layouts: the ranges stand below the kernel's name; --group-by nvtx has rows of them"},
        {"print-fp|fp", !is_ncu, " but in ncu's layouts"},
        {"print-metric-instances", !is_ncu_csv || page != KPROF_PAGE_RAW,
         " but on the raw page in ncu's layout of CSV; --page source has metrics of instructions"},
        {"all|details-help", options->text_layout == KPROF_FORMAT_TEXT_NCU, " in ncu's layout of text"},
        {"text-layout", options->text_layout == KPROF_FORMAT_TEXT_NCU && page == KPROF_PAGE_CENSUS,
         ": ncu has no census"},
        {"=print-units", !options->base_units && kprof_is_csv(options->format), " in CSV, which has base units"},
        {"csv-safe", !kprof_is_csv(format) && !(command & KPROF_IN(stats) && has_csv_apart(options)), " but in CSV"},
        {"set|section|metrics",
         is_report && (page == KPROF_PAGE_SUMMARY || page == KPROF_PAGE_BRIEF || is_of_runs || is_of_code),
         " on this page: the pages details, raw and statistics show what is chosen"},
        {"print-source|inlined",
         (is_report || command & KPROF_IN(profile)) && page != KPROF_PAGE_SOURCE && !options->html_path,
         " without --page source"},
        {"inlined", page == KPROF_PAGE_SOURCE && options->source_view == KPROF_VIEW_SASS,
         " on rows of instructions, which stand at their own lines: --print-source cuda has rows of lines"},
        {"top", page == KPROF_PAGE_SOURCE && options->all_rows && !options->census, " beside --all"},
        {"source-folders|resolve-source-file",
         is_report && page != KPROF_PAGE_SOURCE && !options->html_path && !options->baseline,
         " without --page source, --html or --baseline"},
        {"all", is_ranked, " on this page: --top 0 shows all rows"},
        {"details-help", has_no_help, " but in text, and JSON has the help anyway"},
        {"details-help", is_without_help, " on this page: the pages details and raw tell what metrics mean"},
        {"print-metric-name", is_without_sections,
         " on this page: the pages details and statistics have metrics in sections"},
        {"rule", options->apply_rules == 0, " with --apply-rules no"},
        {"rule",
         page == KPROF_PAGE_RAW || page == KPROF_PAGE_STATISTICS || page == KPROF_PAGE_TIMELINE || is_of_runs ||
             is_of_code || options->format == KPROF_FORMAT_CSV_WIDE,
         ": the pages details, summary and brief tell findings, but not in --csv-layout wide"},
        {CHOOSING_LAUNCHES, is_report && is_of_runs,
         " on the census and session pages: they are about all launches of the run"},
        {CHOOSING_LAUNCHES, options->census && !options->is_measured,
         ": --census alone counts all launches and measures none; add --top N, a set or metrics"},
    };
    _Static_assert(COUNT_OF(rows) <= MOST_OF_EACH, "the caller has space for all rows");
    memcpy(out, rows, sizeof rows);
    return COUNT_OF(rows);
}

/* Judge a line. Return the number of rows. */
static size_t judge(const kprof_options *options, idle_row out[MOST_ROWS])
{
    const size_t count = judge_command(options, out);
    return count + judge_pages(options, out + count);
}

/* Does it choose launches, or what is kept of them? */
static bool chooses(const kprof_option_row *row)
{
    const size_t first = offsetof(kprof_options, filter), behind = first + sizeof(kprof_filter_spec);
    return (row->field >= first && row->field < behind) || row->field == offsetof(kprof_options, kernel_id) ||
           row->field == offsetof(kprof_options, launches) || row->field == offsetof(kprof_options, call_stack) ||
           row->field == offsetof(kprof_options, call_stack_type);
}

static bool is_named(const kprof_option_row *row, const char *names)
{
    const size_t length = strlen(names);
    if (length == 0)
        return chooses(row);
    return names[length - 1] == '-' ? strncmp(row->name, names, length) == 0
                                    : kprof_word_is_among(names, row->name, strlen(row->name));
}

bool kprof_option_has_default(const kprof_options *options, const kprof_option_row *row)
{
    const void *field = (const char *)options + row->field;
    if (row->type == KPROF_OPTION_BYTES)
        return *(const uint64_t *)field == 0;
    return (row->type == KPROF_OPTION_CHOICE || row->type == KPROF_OPTION_COUNT) && *(const int *)field == row->initial;
}

/* Tell the first reason for each option. */
static void tell(const kprof_options *options, const idle_row *rows, size_t count)
{
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        bool is_told = !options->given[i] || !(row->commands & options->command->mask);
        for (size_t k = 0; k < count && !is_told; k++) {
            const bool is_any = rows[k].names[0] == '=';
            is_told = rows[k].is_idle && is_named(row, rows[k].names + is_any);
            if (is_told && (is_any || !kprof_option_has_default(options, row)))
                kprof_log(KPROF_LOG_WARNING, "--%s has no effect%s", row->name, rows[k].why);
        }
    }
}

void kprof_idle_tell(const kprof_options *options, const kprof_options *told)
{
    idle_row rows[MOST_ROWS], before[MOST_ROWS];
    const size_t count = judge(options, rows);
    for (size_t i = 0, told_rows = told ? judge(told, before) : 0; i < told_rows; i++)
        rows[i].is_idle = rows[i].is_idle && !before[i].is_idle;
    tell(options, rows, count);
}

void kprof_idle_tell_planned(const kprof_options *options, const kprof_plans_hold *held)
{
    const idle_row rows[] = {
        {"import-source|import-sass|source-per-launch", !held->instructions,
         ": no instructions are measured; --set source measures them"},
        {"warp-sampling-", !held->samples, ": no instructions are sampled; --set source samples them"},
        {"pm-sampling-", !held->timelines, ": nothing is sampled over time; --set pmsampling samples counters"},
    };
    tell(options, rows, COUNT_OF(rows));
}
