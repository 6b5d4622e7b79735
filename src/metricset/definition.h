/* Sections as they are written in the set files: an item may name alternatives, and each chip takes the first one
 * that it can collect. kprof_section_resolve makes the section of one chip from it. */
#pragma once

#include "host/host.h"
#include "metricset/json.h"
#include "metricset/section.h"

/* One way to get a value. */
typedef struct kprof_choice {
    char *text; /* a metric's name or an expression */
    kprof_expr *compiled;
} kprof_choice;

typedef struct kprof_item_definition {
    char *name; /* NULL: the metric that is chosen */
    char *label, *unit, *help;
    bool optional;         /* left out on chips that have none of the choices */
    bool linked;           /* of a timeline: sampled only where GPUs are linked */
    int priority;          /* of a value below the heading, instead of its section's; 0: the section's */
    kprof_choice *choices; /* [choice_count]; none: an empty cell */
    size_t choice_count;
} kprof_item_definition;

typedef struct kprof_row_definition {
    char *label;
    bool optional; /* left out on chips that have none of its cells */
    kprof_item_definition *cells;
    size_t cell_count;
} kprof_row_definition;

typedef struct kprof_table_definition {
    char *id, *title;
    bool sorted;
    char **column_labels;
    char **breakdowns;  /* throughput metrics whose members become rows; NULL: none */
    char **uncollected; /* base names of members that are shown without a value: they cost too much; NULL: none */
    kprof_row_definition *rows;
    size_t row_count;
} kprof_table_definition;

typedef struct kprof_roof_definition {
    char *label;
    bool optional;
    kprof_item_definition traffic, peak;
} kprof_roof_definition;

typedef struct kprof_roofline_definition {
    char *id, *label;
    bool optional;
    kprof_item_definition work, peak;
    kprof_roof_definition *roofs;
    size_t roof_count;
} kprof_roofline_definition;

typedef struct kprof_section_definition {
    char *id, *name, *help;
    char *path; /* of its file; NULL: it has none */
    char **aliases;
    char **held_by; /* ids of sections that show together what it does; a report may have them instead. NULL: none */
    int order;
    int priority; /* the lowest is kept first where not everything fits; 0: after all that have one */
    kprof_item_definition *items;
    size_t item_count;
    kprof_table_definition *tables;
    size_t table_count;
    kprof_roofline_definition *rooflines;
    size_t roofline_count;
    char **instructions;             /* names of counters of single instructions, NULL-terminated; NULL: none */
    bool samples;                    /* it has samples of instructions */
    kprof_item_definition *timeline; /* metrics that are sampled over time */
    size_t timeline_count;
} kprof_section_definition;

/* Read a section's JSON; BAD_METRICSET names the place. */
kprof_status kprof_section_definition_read(const kprof_json_place *place, const cJSON *value,
                                           kprof_section_definition *out) KPROF_MUST_CHECK;

/* Read the choices of an item: "metric", or "expression" if it has a name, and the "alternatives" in their order. */
kprof_status kprof_item_choices_read(const kprof_json_place *place, const cJSON *value,
                                     kprof_item_definition *item) KPROF_MUST_CHECK;

/* Append every metric that the section might collect on the chip of `host`, for kprof_host_check. */
kprof_status kprof_section_candidates(const kprof_section_definition *definition, kprof_host *host,
                                      kprof_strlist *out) KPROF_MUST_CHECK;

/* The metrics that a section may choose from. */
typedef struct kprof_supply {
    kprof_pool *pool;          /* for arrays of the section */
    kprof_host *host;          /* NULL: every first choice is taken */
    const kprof_strlist *only; /* in alphabetical order; NULL: all metrics that the chip can collect */
} kprof_supply;

/* Make the section of the chip of `host`, and append the names to collect to `collect`, each once. UNKNOWN_NAME when an
 * item that is not optional has no choice that the chip can collect. With `only`, an item without a choice among those
 * names is left out instead. Without a host `collect` may be NULL. The section borrows the definition's texts. */
kprof_status kprof_section_resolve(const kprof_section_definition *definition, const kprof_supply *supply,
                                   kprof_strlist *collect, kprof_section *out) KPROF_MUST_CHECK;

/* The value of an item by one of its choices: `label` where the item has none. */
kprof_item kprof_item_of(const kprof_item_definition *item, const kprof_choice *choice, const char *label);

/* The first choice that one pass of the host's chip samples over time, or NULL; without a host the first. */
const kprof_choice *kprof_item_sampled(const kprof_item_definition *item, kprof_host *host);

/* Append the metrics from which one item of a section is computed on the chip of `host`, each once. Nothing when the
 * chip has none of its choices. */
void kprof_item_collect(const kprof_item_definition *item, kprof_host *host, kprof_strlist *collect);
