/* kprof stats: print tables that sum up a trace. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "core/log.h"
#include "report/model/trace_stats.h"
#include "report/page/page_stats.h"

int kprof_cmd_stats(const kprof_options *options)
{
    KPROF_AUTO(kprof_strlist) tables = KPROF_STRLIST_INIT;
    kprof_finding_source rules = {NULL, {NULL, 0}};
    kprof_report *report = NULL;
    kprof_status status = kprof_stats_choose(&options->stats_reports, &tables);
    if (status == KPROF_OK && !options->argument)
        status = kprof_fail(KPROF_USAGE, "which report? usage: kprof stats FILE.kprof [options]");
    KPROF_THEN(status, kprof_report_open_named(options->argument, &report));
    KPROF_THEN(status, kprof_findings_locate(options, &rules));
    const kprof_stats_content content = {&tables, options->stats_reports.count > 0,
                                         rules.catalog ? &rules.findings : NULL};
    KPROF_THEN(status, kprof_results_show(options, &kprof_stats_page, &(kprof_page_input){&report, 1, &content}));
    KPROF_THEN(status, kprof_trace_tell_missing(report));
    if (report)
        (void)!kprof_report_close(report);
    kprof_findings_free(&rules);
    return kprof_status_exit_code(status);
}
