/* Makes one report of a part of a report, or of several: what kprof merge keeps, and what kprof report shows when it is
 * not to show all of one file. */
#ifndef KPROF_CLI_SUBSET_H
#define KPROF_CLI_SUBSET_H

#include "cli/options.h"
#include "report/subset.h"

/* Does the line ask kprof report for something else than all of one report? */
bool kprof_subset_is_wanted(const kprof_options *options);

/* Make a report of what the options take of options->reports. *path is where it is: at --export, or else below TMPDIR,
 * where the caller removes it. The caller frees *path, which is NULL on failure; nothing is left behind then. */
kprof_status kprof_subset_make(const kprof_options *options, char **path) KPROF_MUST_CHECK;

/* Make a report at options->export_path of what `subset` (NULL: all) takes of options->reports, as above. */
kprof_status kprof_reports_join(const kprof_options *options, const kprof_subset *subset, char **path) KPROF_MUST_CHECK;

#endif
