/* Sets and sections as data: reads metricsets/sets/<id>.json and metricsets/sections/<id>.json, and resolves a selection for
 * one chip into the names to collect. docs/metricsets.md has the file format. */
#ifndef KPROF_METRICSET_METRICSET_H
#define KPROF_METRICSET_METRICSET_H

#include "core/strbuf.h"
#include "cupti/host.h"
#include "metricset/section.h"

typedef struct kprof_catalog kprof_catalog;

/* Load every set and section of the folders, later folders over earlier ones. BAD_METRICSET names file, place and reason. */
kprof_status kprof_catalog_load(const kprof_strlist *folders, kprof_catalog **out) KPROF_MUST_CHECK;
void kprof_catalog_free(kprof_catalog *catalog);

typedef struct kprof_catalog_entry {
    const char *id, *name, *help;      /* borrowed from the catalog */
    const char *const *aliases;        /* NULL-terminated: "basic" of "default" */
    const char *const *section_ids;    /* of a set, NULL-terminated; NULL for a section */
} kprof_catalog_entry;
size_t kprof_catalog_set_count(const kprof_catalog *catalog);
size_t kprof_catalog_section_count(const kprof_catalog *catalog); /* in display order */
kprof_catalog_entry kprof_catalog_set(const kprof_catalog *catalog, size_t index);
kprof_catalog_entry kprof_catalog_section(const kprof_catalog *catalog, size_t index);

/* What the user asked for. Empty everywhere means the default set. */
typedef struct kprof_selection {
    kprof_strlist sets;     /* ids or aliases */
    kprof_strlist sections; /* ids or "regex:..." */
    kprof_strlist metrics;  /* full names, base names (expand to first-level submetrics as ncu does), "regex:...",
                               "breakdown:<throughput>", "group:<section id>"; launch__* names too */
} kprof_selection;

/* Check set and section names against the catalog alone, before any chip is known: UNKNOWN_NAME with the nearest name. */
kprof_status kprof_selection_check(const kprof_catalog *catalog, const kprof_selection *selection) KPROF_MUST_CHECK;

/* A selection resolved for one chip. */
typedef struct kprof_plan {
    char *chip;
    kprof_strlist collect; /* hardware metrics in the order in which to collect and store them */
    kprof_strlist shown;   /* names that --metrics asked for, expanded; a subset of `collect` and launch__* names */
    kprof_section *sections; /* [section_count], display order */
    size_t section_count;
    size_t pass_count;
} kprof_plan;

/* UNKNOWN_NAME names each unknown metric with the nearest that exists; the plan is freed with kprof_plan_free. */
kprof_status kprof_plan_make(const kprof_catalog *catalog, const kprof_selection *selection, kprof_host *host,
                             kprof_plan *out) KPROF_MUST_CHECK;
void kprof_plan_free(kprof_plan *plan); /* members, not the struct */

/* Names known from the launch itself, not collected: launch__*, device__attribute_*. NULL-terminated name/unit/description
 * rows; the report computes their values. */
typedef struct kprof_launch_metric {
    const char *name, *unit, *description;
} kprof_launch_metric;
extern const kprof_launch_metric kprof_launch_metrics[];
/* The row of a name, or NULL when the launch does not tell it. */
const kprof_launch_metric *kprof_launch_metric_find(const char *name);

#endif
