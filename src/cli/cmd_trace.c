/* kprof trace: run an application as the default command does, and record activities in place of counters. */
#include "cli/commands.h"

int kprof_cmd_trace(const kprof_options *options)
{
    return kprof_cmd_profile(options);
}
