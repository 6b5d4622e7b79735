/* Makes one report of a part of a report, or of several: what kprof merge keeps, and what kprof report shows when it is
 * not to show all of one file. */
#pragma once

#include "cli/options.h"
#include "report/model/subset.h"

/* The part of a report that the options choose. */
typedef struct kprof_choice_of_part {
    kprof_subset subset; /* borrows the options and the members below */
    char *path;          /* of the report, where it is one */
    kprof_launch_range *ranges;
    kprof_strlist sections_of_sets, sections, metrics;
    kprof_catalog *catalog;
} kprof_choice_of_part;
kprof_status kprof_subset_read(const kprof_options *options, kprof_choice_of_part *out) KPROF_MUST_CHECK;
void kprof_subset_free(kprof_choice_of_part *choice); /* members, not the struct */

/* Does the line ask kprof report for anything but one whole report? */
bool kprof_subset_is_wanted(const kprof_options *options);
/* Does that need a file of its own? Sections and metrics can be hidden in a report as it is. */
bool kprof_subset_needs_file(const kprof_options *options);

/* Make a report of what is chosen of options->reports: at --export; or else, with all sections and metrics, in a
 * temporary folder. The caller frees *path, or discards it; it is NULL on failure, and nothing is left behind then. */
kprof_status kprof_subset_make(const kprof_options *options, const kprof_subset *subset, char **path) KPROF_MUST_CHECK;
/* Remove a report that was made in a temporary folder, and free its path. */
void kprof_subset_discard(char *path);

/* Make a report at options->export_path of what `subset` (NULL: all) takes of options->reports, as above. */
kprof_status kprof_reports_join(const kprof_options *options, const kprof_subset *subset, char **path) KPROF_MUST_CHECK;
