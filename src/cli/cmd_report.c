/* kprof report: print a report file. */
#include "cli/commands.h"
#include "cli/outcome.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "core/log.h"

#include <stdlib.h>

static kprof_status print_report(const kprof_options *options, kprof_report *report)
{
    FILE *results = NULL;
    kprof_status status = kprof_results_open(options, kprof_route_report(options).results, &results);
    if (status != KPROF_OK)
        return status;
    kprof_print_options print = kprof_print_options_make(options, results);
    print.filter = &options->filter;
    status = kprof_report_print(&report, 1, &print, results);
    kprof_status written = kprof_results_close(options, results);
    return status == KPROF_OK ? written : status;
}

/* Every page but that of the session is about launches. */
static kprof_status check_launches(const kprof_options *options, kprof_report *report)
{
    uint64_t taken = 1;
    kprof_status status = KPROF_OK;
    if (options->page != KPROF_PAGE_SESSION)
        status = kprof_report_count_taken(report, &options->filter, &taken);
    if (status != KPROF_OK || taken > 0)
        return status;
    kprof_outcome_explain_no_match(options, report);
    return KPROF_NO_MATCH;
}

static kprof_status open_report(const kprof_options *options, kprof_report **out)
{
    if (!options->argument)
        return kprof_fail(KPROF_USAGE, "which report? usage: kprof report FILE.kprof [options]");
    char *path = kprof_report_path(options->argument);
    kprof_status status = path ? kprof_report_open(path, out) : kprof_fail(KPROF_NO_MEMORY, "out of memory");
    free(path);
    return status;
}

int kprof_cmd_report(const kprof_options *options)
{
    kprof_report *report = NULL;
    kprof_status status = kprof_filter_check(&options->filter);
    if (status == KPROF_OK)
        status = open_report(options, &report);
    if (status == KPROF_OK)
        status = check_launches(options, report);
    if (status == KPROF_OK)
        status = print_report(options, report);
    if (report)
        (void)!kprof_report_close(report);
    return kprof_status_exit_code(status);
}
