/* Lists the chosen metrics, the most useful first. Names of --metrics lead; then come the values below the headings of
 * the sections, by the priority of the sections; then the tables and rooflines of these. */
#pragma once

#include "metricset/catalog.h"

typedef struct kprof_queue_sources {
    const kprof_catalog *catalog;
    const bool *wanted;         /* [section_count of the catalog] */
    const kprof_strlist *first; /* hardware metrics of --metrics */
} kprof_queue_sources;

/* Append the names to `out`, each once. Errors as of kprof_section_resolve. */
kprof_status kprof_queue_fill(const kprof_queue_sources *from, kprof_host *host, kprof_strlist *out) KPROF_MUST_CHECK;
