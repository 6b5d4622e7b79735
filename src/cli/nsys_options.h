/* The options of nsys, on the lines of kprof trace, kprof stats and kprof export. */
#pragma once

#include "cli/options.h"

/* The first row of a name (without dashes), or of a letter unless it is 0; NULL where the command has none. */
const kprof_other_option *kprof_nsys_find(const kprof_command *command, const char *name, char letter);
/* The row of the same option that has a value, perhaps of several words with commas; NULL: none has. *is_same: kprof
 * does so anyway. */
const kprof_other_option *kprof_nsys_answer(const kprof_other_option *first, const char *value, bool *is_same);
/* Make options of kprof's of those that were kept. */
kprof_status kprof_nsys_settle(kprof_options *options) KPROF_MUST_CHECK;
