/* Warns of options that have no effect beside the others of a line, such as an order of rows on a page without rows.
 * The line runs all the same. */
#include "cli/idle.h"

#include "cli/commands.h"
#include "cli/output.h"
#include "core/config.h"
#include "core/log.h"

#include <string.h>

static bool is_command(const kprof_options *options, unsigned commands)
{
    return (options->command->mask & commands) != 0;
}

/* Is there no name to compare? */
static bool lacks_kernel(const kprof_options *options)
{
    return !options->filter.kernel;
}

/* Does no option count launches? */
static bool counts_nothing(const kprof_options *options)
{
    const kprof_filter_spec *filter = &options->filter;
    return filter->launch_skip + filter->launch_count + filter->launch_skip_before_match == 0 && !filter->schedule &&
           !options->census;
}

static bool repeats_no_run(const kprof_options *options)
{
    return !kprof_replay_is_of_runs(options->replay_choice);
}

static bool is_trace_without_samples(const kprof_options *options)
{
    return is_command(options, KPROF_IN(trace)) && !options->samples_program;
}

static bool is_not_of_ncu(const kprof_options *options)
{
    return options->format != KPROF_FORMAT_CSV_NCU;
}

static bool has_no_instances(const kprof_options *options)
{
    return options->instances != KPROF_INSTANCES_NONE && (is_not_of_ncu(options) || options->page != KPROF_PAGE_RAW);
}

static bool is_no_csv(const kprof_options *options)
{
    const int format = is_command(options, KPROF_IN(export)) ? options->export_format : options->format;
    return format != KPROF_FORMAT_CSV && format != KPROF_FORMAT_CSV_WIDE && format != KPROF_FORMAT_CSV_NCU;
}

static bool lists_another(const kprof_options *options)
{
    return is_command(options, KPROF_IN(list)) && options->argument && strcmp(options->argument, "collected") != 0;
}

static bool lists_no_metric(const kprof_options *options)
{
    return lists_another(options) && strcmp(options->argument, "metrics") != 0;
}

static bool is_census_alone(const kprof_options *options)
{
    return options->census && !options->is_measured;
}

/* Does the page tell of kernels, whatever sections and metrics are chosen? */
static bool has_own_metrics(const kprof_options *options)
{
    return is_command(options, KPROF_IN(report)) &&
           (options->page == KPROF_PAGE_SUMMARY || options->page == KPROF_PAGE_BRIEF ||
            options->page == KPROF_PAGE_CENSUS || options->page == KPROF_PAGE_SOURCE ||
            options->page == KPROF_PAGE_SOURCES || options->page == KPROF_PAGE_SESSION);
}

/* Does the page tell of whole runs, not of chosen launches? */
static bool is_of_runs(const kprof_options *options)
{
    return is_command(options, KPROF_IN(report)) &&
           (options->page == KPROF_PAGE_CENSUS || options->page == KPROF_PAGE_SESSION);
}

static bool shows_no_code(const kprof_options *options)
{
    return is_command(options, KPROF_IN(report)) && options->page != KPROF_PAGE_SOURCE && !options->html_path;
}

/* Does it keep a report and print nothing? */
static bool prints_nothing(const kprof_options *options)
{
    const kprof_route route = kprof_route_profile(options, true);
    const bool is_silent = route.results == KPROF_TO_NOTHING && route.as_ncu == KPROF_TO_NOTHING;
    return (is_command(options, KPROF_IN(report)) && options->export_path) ||
           (is_command(options, KPROF_IN(profile) | KPROF_IN(trace)) && is_silent);
}

static bool is_merge(const kprof_options *options)
{
    return is_command(options, KPROF_IN(merge));
}

/* Does kprof ctl start or stop, which print no results? */
static bool orders(const kprof_options *options)
{
    return is_command(options, KPROF_IN(ctl)) && options->argument && strcmp(options->argument, "status") != 0;
}

static bool asks_for_status(const kprof_options *options)
{
    return is_command(options, KPROF_IN(ctl)) && !orders(options);
}

static bool has_no_budget(const kprof_options *options)
{
    return is_command(options, KPROF_IN(profile)) && options->selection.limits.budget_s <= 0;
}

/* Do metrics alone say what to collect? */
static bool takes_no_section(const kprof_options *options)
{
    const kprof_selection *selection = &options->selection;
    return selection->metrics.count > 0 && selection->sets.count + selection->sections.count == 0;
}

static bool finds_nothing(const kprof_options *options)
{
    return options->apply_rules == 0;
}

/* Does the page, or the layout, have no findings? */
static bool shows_no_finding(const kprof_options *options)
{
    return options->page == KPROF_PAGE_RAW || options->page == KPROF_PAGE_STATISTICS ||
           options->page == KPROF_PAGE_SOURCE || options->page == KPROF_PAGE_TIMELINE ||
           options->page == KPROF_PAGE_CENSUS || options->page == KPROF_PAGE_SOURCES ||
           options->page == KPROF_PAGE_SESSION || options->format == KPROF_FORMAT_CSV_WIDE;
}

/* A row with this in place of names is of all options that choose launches, or what is kept of them. */
#define CHOOSING_LAUNCHES ""

static const struct {
    const char *names; /* of options, between "|", or how several begin, with a dash at its end; or CHOOSING_LAUNCHES */
    bool (*is_idle)(const kprof_options *options);
    const char *why;
} rows[] = {
    {"kernel-name-base", lacks_kernel, " without --kernel-name"},
    {"filter-mode", counts_nothing, " without --launch-skip, --launch-count or --launch-skip-before-match"},
    {"app-replay-", repeats_no_run, " without --replay-mode application or app-range"},
    {"pm-sampling-", is_trace_without_samples, " without --pm-sampling"},
    {"print-nvtx-rename", is_not_of_ncu,
     " but in ncu's layout of CSV: the ranges stand below the kernel's name; --group-by nvtx has rows of them"},
    {"print-fp|fp", is_not_of_ncu, " but in ncu's layout of CSV"},
    {"print-metric-instances", has_no_instances,
     " but on the raw page in ncu's layout of CSV; --page source has metrics of instructions"},
    {"csv-safe", is_no_csv, " but in CSV"},
    {"set", lists_another, ": kprof list collected tells what a set collects"},
    {"section", lists_another, ": kprof list collected tells what a section collects"},
    {"section-exclude", lists_another, ": kprof list collected tells what is collected without a section"},
    {"metrics", lists_no_metric, ": kprof list metrics and kprof list collected take names of metrics"},
    {"set|section|metrics", has_own_metrics,
     " on this page: the pages details, raw and statistics show what is chosen"},
    {"print-source|inlined", shows_no_code, " without --page source"},
    {"log-file|filter|rule", prints_nothing,
     " with --export alone, which prints nothing; kprof report and kprof stats print what is kept"},
    {"log-file", is_merge, ": kprof merge prints no results"},
    {"log-file|csv|json|markdown", orders, ": kprof ctl status alone prints results"},
    {"set|section|metrics|export", asks_for_status, " on kprof ctl status; kprof ctl start takes it"},
    {"allocated", has_no_budget, " without --budget or kprof plan"},
    {"section-exclude", takes_no_section, " beside metrics alone, without --set or --section"},
    {"rule", finds_nothing, " with --apply-rules no"},
    {"rule", shows_no_finding, ": the pages details, summary and brief tell findings, but not in --csv-layout wide"},
    {CHOOSING_LAUNCHES, is_of_runs, " on the census and session pages: they are about all launches of the run"},
    {CHOOSING_LAUNCHES, is_census_alone,
     ": --census alone counts all launches and measures none; add --top N, a set or metrics"},
};

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

static void tell(const kprof_option_row *row, const char *why)
{
    kprof_log(KPROF_LOG_WARNING, "--%s has no effect%s", row->name, why);
}

void kprof_idle_tell(const kprof_options *options, const kprof_options *told)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        bool is_told = !options->given[i] || !is_command(options, row->commands);
        for (size_t k = 0; k < sizeof rows / sizeof rows[0] && !is_told; k++) {
            is_told = is_named(row, rows[k].names) && rows[k].is_idle(options) && !(told && rows[k].is_idle(told));
            if (is_told)
                tell(row, rows[k].why);
        }
    }
}

void kprof_idle_tell_planned(const kprof_options *options, const kprof_plans_hold *held)
{
    const struct {
        const char *names;
        bool is_idle;
        const char *why;
    } of_plans[] = {
        {"import-source|import-sass|source-per-launch", !held->instructions,
         ": no instructions are measured; --set source measures them"},
        {"warp-sampling-", !held->samples, ": no instructions are sampled; --set source samples them"},
        {"pm-sampling-", !held->timelines, ": nothing is sampled over time; --set pmsampling samples counters"},
    };
    for (size_t i = 0; i < kprof_option_row_count; i++)
        for (size_t k = 0; k < sizeof of_plans / sizeof of_plans[0] && options->given[i]; k++)
            if (of_plans[k].is_idle && is_named(&kprof_option_rows[i], of_plans[k].names))
                tell(&kprof_option_rows[i], of_plans[k].why);
}
