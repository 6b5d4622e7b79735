/* Where kprof's own files are, found from the executable: never from the current directory. */
#ifndef KPROF_CLI_PATHS_H
#define KPROF_CLI_PATHS_H

#include "cli/options.h"

/* The injection library: --injection-path, or beside the installed or the built executable. Caller frees *out.
 * UNSUPPORTED with a message that lists where it was looked for. */
kprof_status kprof_injection_locate(const kprof_options *options, char **out) KPROF_MUST_CHECK;

/* Load the shipped sets and sections, then those of each --section-folder. Caller frees with kprof_catalog_free. */
kprof_status kprof_catalog_locate(const kprof_options *options, kprof_catalog **out) KPROF_MUST_CHECK;

/* Expand %h (host), %p (kprof's pid), %q{NAME} (environment), %i (lowest number that gives a new file) and %% of
 * --export, and append ".kprof" where it is missing. With %i the file is created, empty, and *claimed set, so that
 * runs at the same time get numbers of their own. Caller frees *out. USAGE on another % or an unset variable; OUTPUT
 * when the file cannot be created. */
kprof_status kprof_export_path_expand(const char *pattern, char **out, bool *claimed) KPROF_MUST_CHECK;

#endif
