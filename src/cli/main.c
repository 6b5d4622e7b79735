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

/* Without memory a list may be short and a name may match nothing, so other errors may follow from that. Most code that
 * lacks memory says nothing. */
static int judge_memory(int code)
{
    const int no_memory = kprof_status_exit_code(KPROF_NO_MEMORY);
    const bool has_failed = kprof_log_has_failed();
    if (code != no_memory && !(kprof_memory_was_lacking() && (code == 0 || has_failed)))
        return code;
    if (code != no_memory || !has_failed)
        (void)kprof_fail(KPROF_NO_MEMORY, "out of memory%s", has_failed ? ": the errors above may follow from it" : "");
    return no_memory;
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
    KPROF_THEN(status, kprof_outputs_check(&options));
    int code = kprof_status_exit_code(status);
    if (options.quiet || options.verbose)
        kprof_log_set_level(options.verbose ? KPROF_LOG_DEBUG : KPROF_LOG_WARNING);
    if (status == KPROF_OK)
        code = options.complete ? complete(&options) : options.command->run(&options);
    code = judge_memory(code);
    kprof_options_free(&options);
    return code;
}
