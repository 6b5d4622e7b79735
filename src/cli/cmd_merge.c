/* kprof merge: make one report of those of several ranks, processes or machines. */
#include "cli/commands.h"
#include "cli/subset.h"
#include "core/log.h"

int kprof_cmd_merge(const kprof_options *options)
{
    KPROF_AUTO_FREE char *path = NULL;
    kprof_status status = KPROF_OK;
    if (options->reports.count < 2 || !options->export_path)
        status = kprof_fail(KPROF_USAGE, "%s? usage: kprof merge A.kprof B.kprof ... -o ALL.kprof",
                            options->reports.count < 2 ? "which reports" : "into which report");
    KPROF_THEN(status, kprof_reports_join(options, NULL, &path));
    if (status == KPROF_OK)
        kprof_log(KPROF_LOG_INFO, "report: %s (%zu reports)", path, options->reports.count);
    return kprof_status_exit_code(status);
}
