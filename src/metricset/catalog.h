/* The loaded set files, as plan.c and select.c see them. */
#pragma once

#include "metricset/alias.h"
#include "metricset/definition.h"
#include "metricset/metricset.h"

typedef struct kprof_set_definition {
    char *id, *name, *help;
    char **aliases, **sections;
    int order;
} kprof_set_definition;

/* A word or a heading that pages show, or a part of metrics' names. */
typedef struct kprof_page_word {
    char **words; /* NULL-terminated */
    char *meaning;
    bool of_names;
} kprof_page_word;

struct kprof_catalog {
    kprof_pool pool;            /* has all that follows */
    kprof_set_definition *sets; /* [set_count], by order and id, as the sections are */
    size_t set_count;
    kprof_section_definition *sections; /* [section_count] */
    size_t section_count;
    kprof_finding *findings; /* [finding_count], by order and id */
    size_t finding_count;
    kprof_alias *aliases; /* [alias_count], in the order of the files */
    size_t alias_count;
    kprof_page_word *words; /* [word_count], in the order of the files */
    size_t word_count;
};

/* Is this the name of a folder that a folder of sections may have? */
bool kprof_catalog_reads(const char *folder);
/* Index of the set with this id or alias, or of the section; the count when there is none. */
size_t kprof_catalog_find_set(const kprof_catalog *catalog, const char *name);
size_t kprof_catalog_find_section(const kprof_catalog *catalog, const char *name);
/* The id of a section that is none's, or nearly so; NULL: there is none. */
const char *kprof_catalog_nearest_section(const kprof_catalog *catalog, const char *name);
/* Ask CUPTI about every candidate of these sections at once, so that resolving finds the answers remembered. NULL: of
 * all. */
kprof_status kprof_catalog_check_sections(const kprof_catalog *catalog, const bool *wanted,
                                          kprof_host *host) KPROF_MUST_CHECK;
