/* The kprof command: reads the command line and runs the command that it names. */
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/unfinished.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "metricset/json.h"
#include "report/report.h"

#include <stdlib.h>

/* Applications run on, and write on into their session. */
static void end_without_memory(void)
{
    (void)kprof_log_set_sink(NULL, NULL);
    (void)kprof_fail(KPROF_NO_MEMORY, "out of memory%s",
                     kprof_session_is_open() ? "; kprof recover makes a report when the application has ended" : "");
    kprof_unfinished_remove();
    if (!kprof_session_is_open())
        kprof_report_abandon();
    exit(kprof_status_exit_code(KPROF_NO_MEMORY));
}

int main(int argc, char **argv)
{
    kprof_options options;
    (void)argc;
    kprof_memory_end_with(end_without_memory);
    kprof_json_watch();
    kprof_streams_settle();
    kprof_signals_settle();
    kprof_umask_settle();
    kprof_status status = kprof_options_parse(argv, &options);
    KPROF_THEN(status, kprof_outputs_check(&options));
    int code = kprof_status_exit_code(status);
    if (options.quiet || options.verbose)
        kprof_log_set_level(options.verbose ? KPROF_LOG_DEBUG : KPROF_LOG_WARNING);
    if (status == KPROF_OK && options.complete)
        code = kprof_status_exit_code(kprof_results_close(&options, stdout, kprof_complete(&options, stdout)));
    else if (status == KPROF_OK)
        code = options.command->run(&options);
    if (code == kprof_status_exit_code(KPROF_NO_MEMORY) && !kprof_log_has_failed())
        (void)kprof_fail(KPROF_NO_MEMORY, "out of memory");
    kprof_options_free(&options);
    return code;
}
