/* The kprof command: reads the command line and runs the command that it names. */
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "core/log.h"

static int cmd_help(const kprof_options *options)
{
    return kprof_status_exit_code(kprof_help_print(options, stdout));
}

static int cmd_version(const kprof_options *options)
{
    (void)options;
    printf("kprof %s\n", KPROF_VERSION);
    return kprof_status_exit_code(fflush(stdout) == 0 ? KPROF_OK : KPROF_OUTPUT);
}

static int cmd_complete(const kprof_options *options)
{
    return kprof_status_exit_code(kprof_complete(options, stdout));
}

static const kprof_command commands[] = {
    {"", KPROF_IN_PROFILE, kprof_cmd_profile, "Profile the CUDA kernels of an application."},
    {"report", KPROF_IN_REPORT, kprof_cmd_report, "Print a report file that kprof --export made."},
    {"help", 0, cmd_help, "Print the help of kprof or of a command."},
    {"version", 0, cmd_version, "Print the version."},
    {NULL, 0, NULL, NULL},
};

static int (*const actions[])(const kprof_options *options) = {
    [KPROF_ACTION_HELP] = cmd_help,
    [KPROF_ACTION_VERSION] = cmd_version,
    [KPROF_ACTION_LIST_SETS] = kprof_cmd_list,
    [KPROF_ACTION_LIST_SECTIONS] = kprof_cmd_list,
    [KPROF_ACTION_LIST_CHIPS] = kprof_cmd_list,
    [KPROF_ACTION_QUERY_METRICS] = kprof_cmd_list,
    [KPROF_ACTION_PLAN] = kprof_cmd_plan,
};

int main(int argc, char **argv)
{
    kprof_options options;
    (void)argc;
    kprof_streams_settle();
    kprof_signals_ignore();
    kprof_status status = kprof_options_parse(argv, commands, &options);
    int code = kprof_status_exit_code(status);
    if (options.quiet || options.verbose)
        kprof_log_set_level(options.verbose ? KPROF_LOG_DEBUG : KPROF_LOG_WARNING);
    if (status == KPROF_OK && options.complete)
        code = cmd_complete(&options);
    else if (status == KPROF_OK && options.action != KPROF_ACTION_RUN)
        code = actions[options.action](&options);
    else if (status == KPROF_OK)
        code = options.command->run(&options);
    kprof_options_free(&options);
    return code;
}
