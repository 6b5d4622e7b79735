/* Chooses processes of an application by the names of their programs, as ncu's --target-processes-filter does. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <sys/types.h>

/* Check the patterns among the expressions: USAGE. */
kprof_status kprof_process_filter_check(const kprof_strlist *expressions) KPROF_MUST_CHECK;
/* Is the calling process wanted? The first expression that matches it decides. If none does, it is wanted unless some
 * expression names processes to include. `root`: the application's first process; 0: not known. */
bool kprof_process_is_wanted(const kprof_strlist *expressions, pid_t root);
