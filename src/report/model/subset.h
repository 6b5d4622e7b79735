/* Chooses a part of a report: some launches, sections and metrics. Sections and metrics that are not chosen are hidden:
 * pages do not show them, but findings know them. */
#pragma once

#include "report/model/model.h"

typedef struct kprof_launch_range {
    int64_t first, last; /* ids, both included */
} kprof_launch_range;

/* The part that is taken. All is borrowed. */
typedef struct kprof_subset {
    const char *name;                 /* what messages call the report whose pages are shown; NULL: its path */
    const kprof_filter_spec *filter;  /* takes launches; NULL: all */
    const kprof_launch_range *ranges; /* [range_count]: take only launches of these; none: all */
    size_t range_count;
    /* Sections and metrics; with all three lists empty, all are taken. */
    const kprof_strlist *sections;        /* ids or "regex:..." */
    const kprof_strlist *sections_of_set; /* ids; the report has one of them at least */
    const kprof_strlist *metrics;         /* full names, base names, aliases or "regex:..."; they become a section */
    bool with_instances;                  /* metrics of instructions may be named, too, for their sums over a launch */
    const kprof_catalog *catalog;         /* that has the aliases, and tells of sections; NULL: there is none */
} kprof_subset;

/* Hide the sections of the model that are not chosen, and add that of the named metrics to each chip. Hide all metrics
 * but these and those of the chosen sections; what goes along with sections is kept, too. UNKNOWN_NAME when a word
 * matches nothing in the report, with a message that begins with `path`. */
kprof_status kprof_subset_apply(const kprof_subset *subset, const char *path, kprof_model *model) KPROF_MUST_CHECK;

/* Call `visit` for each launch that is taken, in order. */
kprof_status kprof_subset_launches(const kprof_subset *subset, const kprof_model_walk *walk, kprof_model_visit *visit,
                                   void *user) KPROF_MUST_CHECK;
