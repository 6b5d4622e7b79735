/* The kprof command: reads the command line and runs the command that it names. */
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "core/log.h"

static int complete(const kprof_options *options)
{
    return kprof_status_exit_code(kprof_complete(options, stdout));
}

int main(int argc, char **argv)
{
    kprof_options options;
    (void)argc;
    kprof_streams_settle();
    kprof_signals_ignore();
    kprof_status status = kprof_options_parse(argv, &options);
    if (status == KPROF_OK)
        status = kprof_outputs_check(&options);
    int code = kprof_status_exit_code(status);
    if (options.quiet || options.verbose)
        kprof_log_set_level(options.verbose ? KPROF_LOG_DEBUG : KPROF_LOG_WARNING);
    if (status == KPROF_OK)
        code = options.complete ? complete(&options) : options.command->run(&options);
    kprof_options_free(&options);
    return code;
}
