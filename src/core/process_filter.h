/* Chooses processes of an application by the names of their programs, as ncu's --target-processes-filter does. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <sys/types.h>

/* Check the patterns among the expressions: USAGE. */
kprof_status kprof_process_filter_check(const kprof_strlist *expressions) KPROF_MUST_CHECK;
/* Names of programs that are left out with all that they start, in the application's environment: each behind a "-",
 * with "/" between them. In a program of such a name, and so in those that it starts, that is a "+": the preloaded
 * library writes it there. */
#define KPROF_TREES_ENV "KPROF_EXCLUDED_TREES"
/* Return the value of the variable, NULL where no expression is about a tree. To be freed. */
char *kprof_process_trees(const kprof_strlist *expressions);
/* Is the calling process wanted? The first expression that matches it decides. If none does, it is wanted unless some
 * expression names processes to include. `root`: the application's first process; 0: not known. */
bool kprof_process_is_wanted(const kprof_strlist *expressions, pid_t root);
