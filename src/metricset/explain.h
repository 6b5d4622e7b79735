/* Explains one metric: what it counts, the chips that have it, how many passes it takes, and the sections that show it.
 * Explains a section or a finding: its subject and its metrics. */
#pragma once

#include "metricset/metricset.h"

/* A part of a full name, such as "sum" or "per_second", in words. */
typedef struct kprof_name_part {
    const char *part;
    const char *meaning; /* NULL: not known */
} kprof_name_part;

/* A value that is made of a base name. */
typedef struct kprof_full_name {
    const char *name;
    const char *unit; /* or NULL */
} kprof_full_name;

/* A value of a section that shows the metric. */
typedef struct kprof_explained_place {
    const char *section; /* id */
    const char *value;   /* the metric, or the derived value that is computed from it */
    const char *label;   /* in a table with the heading of the column */
    const char *help;    /* or NULL */
} kprof_explained_place;

typedef struct kprof_explanation {
    kprof_pool pool;
    const char *metric; /* the full, base or derived name that the word stands for; NULL: none */
    const char *kind; /* "counter", "ratio", "throughput", "launch", "derived", "instruction", "section", "finding", or
                       * of what else pages print "table", "column" or "word"; NULL: not known without the chip */
    const char *unit, *description, *help; /* NULL: none, or not known */
    const char *formula;                   /* of a finding that of its estimate; NULL: none */
    kprof_strlist members;                 /* of a throughput or a formula; what a finding needs */
    const kprof_finding *finding;          /* that is explained, borrowed from the catalog; else NULL */
    kprof_strlist closest;                 /* to a metric that nothing stands for */
    bool has_passes; /* else it is not known, or the chip cannot collect it beside a kernel's counters */
    size_t pass_count;
    kprof_name_part *parts; /* [part_count], of the name, from its left; of a base name also those of its full names */
    size_t part_count;
    kprof_full_name *full_names; /* [full_name_count], of a base name; none without the chip */
    size_t full_name_count;
    kprof_explained_place *places; /* [place_count], by section; of a section, a table or a column all that it shows */
    size_t place_count;
    kprof_strlist sections, sets; /* ids */
    const kprof_alias **aliases;  /* [alias_count], borrowed from the catalog: what stands for them is this metric */
    size_t alias_count;
} kprof_explanation;

/* Explain a full or base name, an alias, a derived value, a section or a finding for the chip of `host`. Without a host
 * (NULL) what the set files know: UNSUPPORTED for a name that they do not have, and UNKNOWN_NAME, with the nearest, for
 * one that nobody has. USAGE for a pattern or a group. Freed with kprof_explanation_free, on failure too. It borrows
 * from the catalog. */
kprof_status kprof_explain(const kprof_catalog *catalog, kprof_host *host, const char *word,
                           kprof_explanation *out) KPROF_MUST_CHECK;
/* The same of what pages print: UNKNOWN_NAME, without a message, for what they do not. */
kprof_status kprof_explain_label(const kprof_catalog *catalog, kprof_host *host, const char *label,
                                 kprof_explanation *out) KPROF_MUST_CHECK;
void kprof_explanation_free(kprof_explanation *explanation); /* members */
