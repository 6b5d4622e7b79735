/* kprof stats: print tables that sum up a trace. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "core/log.h"
#include "report/model/trace_stats.h"
#include "report/page/page_stats.h"

static kprof_status print_tables(const kprof_options *options, kprof_report *report, const kprof_strlist *tables)
{
    FILE *results = NULL;
    kprof_status status = kprof_results_open(options, kprof_route_report(options).results, &results);
    if (status != KPROF_OK)
        return status;
    const kprof_print_options print = kprof_print_options_make(options, results);
    status = kprof_page_show(&kprof_stats_page, &(kprof_page_input){&report, 1, tables}, &print, results);
    if (status == KPROF_OK)
        status = kprof_trace_tell_missing(report);
    return kprof_results_close(options, results, status);
}

int kprof_cmd_stats(const kprof_options *options)
{
    kprof_strlist tables = KPROF_STRLIST_INIT;
    kprof_report *report = NULL;
    kprof_status status = kprof_stats_choose(&options->stats_reports, &tables);
    if (status == KPROF_OK && !options->argument)
        status = kprof_fail(KPROF_USAGE, "which report? usage: kprof stats FILE.kprof [options]");
    if (status == KPROF_OK)
        status = kprof_report_open_named(options->argument, &report);
    if (status == KPROF_OK)
        status = print_tables(options, report, &tables);
    if (report)
        (void)!kprof_report_close(report);
    kprof_strlist_free(&tables);
    return kprof_status_exit_code(status);
}
