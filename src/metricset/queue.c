/* Puts the names of a selection in order of usefulness. */
#include "metricset/queue.h"

#include <limits.h>
#include <stdlib.h>

/* A value below the heading of a section. */
typedef struct header {
    const kprof_section_definition *section;
    const kprof_item_definition *item;
    int priority;
} header;

static int priority_of(int priority, int otherwise)
{
    return priority ? priority : otherwise ? otherwise : INT_MAX;
}

/* By priority, then in display order, which is that of the catalog and of a section's items. */
KPROF_BY_BOTH(compare_headers, header, KPROF_COMPARE(a->priority, b->priority),
              a->section == b->section ? KPROF_COMPARE(a->item, b->item) : KPROF_COMPARE(a->section, b->section))

KPROF_BY_BOTH(compare_sections, kprof_section_definition *const,
              KPROF_COMPARE(priority_of((*a)->priority, 0), priority_of((*b)->priority, 0)), KPROF_COMPARE(*a, *b))

/* Sections and headers that are wanted. */
typedef struct wanted_parts {
    const kprof_section_definition **sections;
    header *headers;
    size_t section_count, header_count;
} wanted_parts;

static void list_parts(const kprof_queue_sources *from, wanted_parts *out)
{
    const kprof_catalog *catalog = from->catalog;
    const size_t headers = KPROF_SUM(i, catalog->section_count, catalog->sections[i].item_count);
    out->sections = kprof_calloc(catalog->section_count + 1, sizeof(*out->sections));
    out->headers = kprof_calloc(headers + 1, sizeof(*out->headers));
    for (size_t i = 0; i < catalog->section_count; i++) {
        const kprof_section_definition *section = &catalog->sections[i];
        if (!from->wanted[i])
            continue;
        out->sections[out->section_count++] = section;
        for (size_t k = 0; k < section->item_count; k++) {
            const kprof_item_definition *item = &section->items[k];
            out->headers[out->header_count++] = (header){section, item, priority_of(item->priority, section->priority)};
        }
    }
}

kprof_status kprof_queue_fill(const kprof_queue_sources *from, kprof_host *host, kprof_strlist *out)
{
    wanted_parts parts = {0};
    list_parts(from, &parts);
    kprof_strlist_add_all(out, from->first);
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_status status = KPROF_OK;
    if (parts.header_count > 0)
        qsort(parts.headers, parts.header_count, sizeof(*parts.headers), compare_headers);
    for (size_t i = 0; i < parts.header_count; i++)
        kprof_item_collect(parts.headers[i].item, host, out);
    if (parts.section_count > 0)
        qsort(parts.sections, parts.section_count, sizeof(*parts.sections), compare_sections);
    for (size_t i = 0; i < parts.section_count && status == KPROF_OK; i++) {
        /* Append what a section has beside the values below its heading: its tables and rooflines. */
        kprof_section section;
        status = kprof_section_resolve(parts.sections[i], &(kprof_supply){&pool, host, NULL}, out, &section);
    }
    KPROF_FREE(parts.sections, parts.headers);
    return status;
}
