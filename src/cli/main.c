/* The kprof command: reads the command line and runs the command that it names. */
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "metricset/json.h"

static int complete(const kprof_options *options)
{
    return kprof_status_exit_code(kprof_complete(options, stdout));
}

int main(int argc, char **argv)
{
    kprof_options options;
    (void)argc;
    kprof_json_watch();
    kprof_streams_settle();
    kprof_signals_ignore();
    kprof_umask_settle();
    kprof_status status = kprof_options_parse(argv, &options);
    if (status == KPROF_OK)
        status = kprof_outputs_check(&options);
    int code = kprof_status_exit_code(status);
    if (options.quiet || options.verbose)
        kprof_log_set_level(options.verbose ? KPROF_LOG_DEBUG : KPROF_LOG_WARNING);
    if (status == KPROF_OK)
        code = options.complete ? complete(&options) : options.command->run(&options);
    if (code == 0 && kprof_memory_was_lacking())
        code = kprof_status_exit_code(KPROF_NO_MEMORY);
    if (code == kprof_status_exit_code(KPROF_NO_MEMORY) &&
        !kprof_log_has_failed()) /* most of its sources say nothing */
        (void)kprof_fail(KPROF_NO_MEMORY, "out of memory");
    kprof_options_free(&options);
    return code;
}
