/* The commands that main.c lists. Each gives kprof's exit code. */
#ifndef KPROF_CLI_COMMANDS_H
#define KPROF_CLI_COMMANDS_H

#include "cli/options.h"

int kprof_cmd_profile(const kprof_options *options);
int kprof_cmd_report(const kprof_options *options);
/* --list-sets, --list-sections, --list-chips, --query-metrics: by options->action. */
int kprof_cmd_list(const kprof_options *options);
/* --plan: what a run would collect, and what that costs. */
int kprof_cmd_plan(const kprof_options *options);

#endif
