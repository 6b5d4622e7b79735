/* A section as it is shown: resolved for one chip, so every name in it is one that was collected or is known from the
 * launch. Reports store it as JSON (kprof_section_to_json) and render it years later without the set files. */
#pragma once

#include "metricset/expr.h"

#include <stdbool.h>

/* One value: a metric as collected, or an expression over several. */
typedef struct kprof_item {
    const char *name;  /* full metric name; a derived value has one for export: "derived__flops_fp32.per_second" */
    const char *label; /* "DRAM Throughput" */
    const char *unit;  /* base unit: "%", "ns", "byte/second", "flop/second", "cycle", "" ...; NULL: the metric's own */
    const char *help;  /* a sentence or two, or NULL */
    const char *expression; /* text of the expression; NULL: the metric `name` itself */
    kprof_expr *compiled;   /* the parsed `expression`, or `name` as one; never NULL */
} kprof_item;

typedef struct kprof_table_row {
    const char *label;
    kprof_item *cells; /* [column_count of the table]; a cell with name NULL is empty */
} kprof_table_row;

typedef struct kprof_table {
    const char *id, *title;
    bool sorted;          /* show rows by falling value of the first column */
    char **column_labels; /* [column_count] */
    size_t column_count;
    kprof_table_row *rows; /* [row_count] */
    size_t row_count;
} kprof_table;

/* One level of memory in a roofline. */
typedef struct kprof_roof {
    const char *label;        /* "DRAM", "L2", "L1" */
    kprof_item traffic, peak; /* bytes per second, achieved and peak */
} kprof_roof;

typedef struct kprof_roofline {
    const char *id, *label; /* "fp32", "FP32" */
    kprof_item work, peak;  /* FLOP per second, achieved and peak */
    kprof_roof *roofs;      /* [roof_count] */
    size_t roof_count;
} kprof_roofline;

typedef struct kprof_section {
    const char *id, *name, *help; /* "SpeedOfLight", "GPU Speed Of Light Throughput" */
    int order;
    kprof_item *items; /* header values [item_count] */
    size_t item_count;
    kprof_table *tables; /* [table_count] */
    size_t table_count;
    kprof_roofline *rooflines; /* [roofline_count] */
    size_t roofline_count;
    kprof_item *timeline; /* metrics that are sampled over time [timeline_count] */
    size_t timeline_count;
} kprof_section;

/* Write a resolved section as JSON; kprof_section_from_json reads it back. Caller frees. */
char *kprof_section_to_json(const kprof_section *section);

/* An item and the label of its column: NULL for a header value, "work", "peak" or "traffic" in a roofline. */
typedef void kprof_item_visit(void *user, kprof_item *item, const char *column);
/* Visit header values, then cells of tables, then what rooflines have. */
void kprof_section_visit(const kprof_section *section, kprof_item_visit *visit, void *user);

/* Give `into`, a definition of the same section, the values and metrics over time that `from` alone has, whose texts it
 * borrows. If `from` has all values of `into` and more, take its tables; else values of its tables become header
 * values. Return NULL; or do nothing and return the name, borrowed, of a value that the two compute in different ways.
 */
const char *kprof_section_join(kprof_section *into, const kprof_section *from, kprof_pool *pool);
