/* What was asked for, the most useful first: names of --metrics; the values below the headings of the sections, by the
 * priority of these; and their tables and rooflines, likewise. */
#ifndef KPROF_METRICSET_QUEUE_H
#define KPROF_METRICSET_QUEUE_H

#include "metricset/catalog.h"

/* Names in groups that belong together: those of --metrics, and those that the heading or the body of a section adds.
 */
typedef struct kprof_queue {
    kprof_strlist names; /* each once */
    size_t named_count;  /* of --metrics, which come first */
    size_t *group_ends;  /* [group_count]: group i ends before this index; rising */
    size_t group_count;
} kprof_queue;

typedef struct kprof_queue_sources {
    const kprof_catalog *catalog;
    const bool *wanted;         /* [section_count of the catalog] */
    const kprof_strlist *first; /* hardware metrics of --metrics */
} kprof_queue_sources;

/* Errors as of kprof_section_resolve. Free with kprof_queue_free in either case. */
kprof_status kprof_queue_fill(const kprof_queue_sources *from, kprof_host *host, kprof_queue *out) KPROF_MUST_CHECK;
void kprof_queue_free(kprof_queue *queue);

#endif
