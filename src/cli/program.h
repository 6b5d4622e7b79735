/* Programs that are to be started, before they are. */
#pragma once

#include "cli/options.h"

/* Say why a program cannot be started; `reason` is an errno. Gives NO_APPLICATION. */
kprof_status kprof_program_fail(const char *name, int reason) KPROF_MUST_CHECK;
/* Can the program be started, as far as kprof can tell without starting it? NO_APPLICATION with a message. */
kprof_status kprof_program_check(const char *name) KPROF_MUST_CHECK;

/* No program has the application's name. Is it no program's at all, but that of a set, a section, a command or a
 * report, or of what should stand in the list before it? NO_APPLICATION with what to write instead. */
kprof_status kprof_program_word_check(const kprof_options *options) KPROF_MUST_CHECK;

/* Is the disassembler of --nvdisasm (NULL: none is given) a program? kprof runs it after the application has ended,
 * when a wrong name would cost all of its work. USAGE with a message. */
kprof_status kprof_nvdisasm_check(const char *path) KPROF_MUST_CHECK;

/* The file that starting `name` would run, looked up in $PATH where it has no slash. Caller frees; NULL: none. */
char *kprof_program_find(const char *name);
