/* Makes one report of a part of a report, or of several: what kprof merge keeps, and what kprof report shows when it is
 * not to show all of one file. */
#ifndef KPROF_CLI_SUBSET_H
#define KPROF_CLI_SUBSET_H

#include "cli/options.h"
#include "report/subset.h"

/* Does the line ask kprof report for something else than all of one report? */
bool kprof_subset_is_wanted(const kprof_options *options);

/* Make a report of what the options take of options->reports, at --export or else in a temporary folder. The caller
 * frees *path, or discards it; it is NULL on failure, and nothing is left behind then. */
kprof_status kprof_subset_make(const kprof_options *options, char **path) KPROF_MUST_CHECK;
/* Remove a report that was made in a temporary folder, and free its path. */
void kprof_subset_discard(char *path);

/* Make a report at options->export_path of what `subset` (NULL: all) takes of options->reports, as above. */
kprof_status kprof_reports_join(const kprof_options *options, const kprof_subset *subset, char **path) KPROF_MUST_CHECK;

#endif
