/* kprof report: print a report file. */
#include "cli/aliases.h"
#include "cli/commands.h"
#include "cli/idle.h"
#include "cli/outcome.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/subset.h"
#include "cli/unfinished.h"
#include "core/log.h"
#include "report/model/trace_stats.h"

#include <unistd.h>

/* On these pages ncu's columns have no place to say which launches a value joins. */
static kprof_status tell_multiplexed(const kprof_print_options *print, kprof_report *report)
{
    const bool is_ncu =
        print->page == KPROF_PAGE_DETAILS || print->page == KPROF_PAGE_RAW || print->page == KPROF_PAGE_STATISTICS;
    uint64_t launches = 0;
    kprof_status status = KPROF_OK;
    if (is_ncu && (print->format == KPROF_FORMAT_CSV_NCU || print->format == KPROF_FORMAT_TEXT_NCU))
        status = kprof_report_count_multiplexed(report, print->filter, &launches);
    if (status == KPROF_OK && launches > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "%lu launch%s multiplexed: each value joins several of them; ncu's layouts do not tell which, "
                  "--csv-layout long and wide do",
                  launches, launches == 1 ? " is" : "es are");
    return status;
}

static kprof_status print_report(const kprof_options *options, kprof_report *report, const kprof_subset *part,
                                 const kprof_finding_source *rules)
{
    FILE *results = NULL;
    kprof_status status = kprof_results_open(options, kprof_route_report(options).results, &results);
    if (status != KPROF_OK)
        return status;
    kprof_print_options print = kprof_print_options_make(options, results);
    print.filter = &options->filter;
    print.part = part;
    print.findings = rules->catalog ? &rules->findings : NULL;
    if (options->html_path)
        status = kprof_page_show(&kprof_whole_page, &(kprof_page_input){&report, 1, NULL}, &print, results);
    else
        status = kprof_report_print(&report, 1, &print, results);
    KPROF_THEN(status, tell_multiplexed(&print, report));
    return kprof_results_close(options, results, status);
}

/* --launch may have asked for numbers that no launch has. */
static void tell_numbers(const kprof_options *options)
{
    kprof_report *report = NULL;
    int64_t first, last;
    for (size_t i = 0; options->launches.count > 0 && i < options->reports.count; i++) {
        KPROF_AUTO_FREE char *path = kprof_report_path(options->reports.items[i]);
        if (path && kprof_report_open(path, &report) == KPROF_OK) {
            if (kprof_report_launch_range(report, &first, &last) == KPROF_OK && first >= 0)
                kprof_log(KPROF_LOG_ERROR, "%s has launches with numbers from %ld to %ld", path, first, last);
            (void)!kprof_report_close(report);
        }
    }
}

/* All pages but session and census are about launches. A report may have a census alone; the page of sources then shows
 * how kernels load its sources. `given`: with the filter of the command line, for messages. */
static kprof_status check_launches(const kprof_options *given, kprof_options *options, kprof_report *report)
{
    uint64_t taken = 0;
    kprof_report_counts counts = {0};
    if (options->page == KPROF_PAGE_SESSION)
        return KPROF_OK;
    kprof_status status = KPROF_OK;
    if (options->page != KPROF_PAGE_CENSUS)
        status = kprof_report_count_taken(report, &options->filter, &taken);
    if (status != KPROF_OK || taken > 0)
        return status;
    status = kprof_report_count(report, &counts);
    if (status == KPROF_OK && options->page == KPROF_PAGE_CENSUS)
        return counts.timed > 0
                   ? KPROF_OK
                   : kprof_fail(KPROF_NO_MATCH, "%s has no census; kprof --census counts and times every launch",
                                options->argument);
    if (status != KPROF_OK)
        return status;
    if (counts.activities > 0 && options->html_path && counts.profiled + counts.not_measured == 0)
        return KPROF_OK; /* the page shows the trace */
    const bool is_alone = counts.timed > 0 && counts.profiled + counts.not_measured == 0;
    if (is_alone && options->page == KPROF_UNSET && !options->html_path) {
        const kprof_options told = *options;
        options->page = KPROF_PAGE_CENSUS;
        kprof_idle_tell(options, &told);
        options->text_layout = KPROF_FORMAT_TEXT; /* ncu has none for it */
    }
    const bool shows_census = options->page == KPROF_PAGE_CENSUS || options->page == KPROF_PAGE_SOURCES ||
                              (options->page == KPROF_PAGE_SUMMARY && !kprof_is_csv(options->format)); /* one table */
    if (is_alone && (shows_census || options->html_path))
        return KPROF_OK;
    kprof_outcome_explain_no_match(given, report, NULL);
    tell_numbers(given);
    return KPROF_NO_MATCH;
}

/* Make the part that was asked for, and open it. *kept is the file that keeps it, or NULL: then nothing of it is left
 * once it is closed, however kprof ends. */
static kprof_status open_part(const kprof_options *options, const kprof_subset *subset, kprof_report **out, char **kept)
{
    char *path = NULL;
    kprof_status status = kprof_subset_make(options, subset, &path);
    if (status == KPROF_OK && options->export_path)
        kprof_unfinished_begin(path, NULL); /* it may turn out to hold nothing */
    KPROF_THEN(status, kprof_report_open(path, out));
    if (options->export_path)
        *kept = path;
    else
        kprof_subset_discard(path);
    return status;
}

/* kprof prints a part that it keeps only if the line asks for a page or a format, as with a run. */
static bool prints(const kprof_options *options)
{
    return options->format != KPROF_UNSET || options->page != KPROF_UNSET || options->html_path;
}

/* Print the report, or keep the part of it, or both. */
static kprof_status show(const kprof_options *options, const kprof_subset *subset, const kprof_finding_source *rules)
{
    const bool is_part = kprof_subset_needs_file(options);
    static const kprof_filter_spec all = {0};
    kprof_options rest = *options; /* what the part was not made by */
    kprof_report *report = NULL;
    KPROF_AUTO_FREE char *kept = NULL;
    if (is_part)
        rest.filter = all;
    kprof_status status =
        is_part ? open_part(options, subset, &report, &kept) : kprof_report_open_named(options->argument, &report);
    KPROF_THEN(status, check_launches(options, &rest, report));
    if (status == KPROF_OK && rest.page == KPROF_PAGE_TIMELINE && !kprof_report_has_timelines(report) &&
        kprof_report_status(report) == KPROF_OK)
        status = kprof_fail(KPROF_NO_MATCH,
                            "%s has nothing over time; kprof --set pmsampling samples counters while kernels run",
                            options->argument);
    KPROF_THEN(status, kprof_report_status(report));
    KPROF_THEN(status, kprof_filters_translate(options, report));
    if (status == KPROF_OK && kept)
        kprof_log(KPROF_LOG_INFO, "report: %s", kept);
    if (status == KPROF_OK && (!kept || prints(options)))
        status = print_report(&rest, report, subset, rules);
    if (status == KPROF_OK && options->html_path && kprof_trace_is_there(report))
        status = kprof_trace_tell_missing(report, KPROF_TRACE_PAGE);
    else if (status == KPROF_OK)
        status = kprof_report_tell_cut_short(report, subset->name);
    (void)!kprof_report_close(report);
    if (kept && status != KPROF_OK)
        unlink(kept);
    if (kept)
        kprof_unfinished_end();
    return status;
}

static kprof_status check(const kprof_options *options)
{
    const char *of_two = options->fail_on.count > 0                     ? "fail-on"
                         : options->anyway                              ? "anyway"
                         : KPROF_IS_GIVEN(options, time_tolerance_pct)  ? "time-tolerance"
                         : KPROF_IS_GIVEN(options, bytes_tolerance_pct) ? "bytes-tolerance"
                                                                        : NULL;
    if (of_two)
        return kprof_fail(KPROF_USAGE, "--%s is about two reports; give --baseline too", of_two);
    if (options->export_path && options->filters.count > 0)
        return kprof_fail(KPROF_USAGE, "--filter chooses launches to show, not to keep; give --export the numbers of "
                                       "launches with --launch");
    if (!options->argument)
        return kprof_fail(KPROF_USAGE, "which report? usage: kprof report FILE.kprof [options]");
    return KPROF_OK;
}

int kprof_cmd_report(const kprof_options *options)
{
    kprof_finding_source rules = {NULL, {NULL, 0}};
    kprof_choice_of_part choice = {.sections_of_sets = KPROF_STRLIST_INIT};
    if (options->baseline && options->reports.count < 2 && !kprof_subset_is_wanted(options))
        return kprof_cmd_diff(options);
    kprof_status status = check(options);
    if (status == KPROF_OK && options->baseline)
        status = kprof_fail(KPROF_USAGE, "--baseline compares all of one report with another: make the part that you "
                                         "want with --export first");
    KPROF_THEN(status, kprof_findings_locate(options, &rules));
    KPROF_THEN(status, kprof_subset_read(options, &choice));
    KPROF_THEN(status, show(options, &choice.subset, &rules));
    kprof_subset_free(&choice);
    kprof_findings_free(&rules);
    return kprof_status_exit_code(status);
}
