/* Lists what the sections of each chip show, in memory of the model. Names are resolved to columns of values once, not
 * for every launch. */
#pragma once

#include "report/model/model.h"
#include "report/store/derived.h"

/* The values of a metric for each instruction of the launch's kernel. */
typedef struct kprof_emit_instances {
    const double *values;      /* [count] */
    const uint64_t *addresses; /* [count]: bytes from the start of the kernel's code */
    size_t count;
} kprof_emit_instances;

/* One value of a launch. */
typedef struct kprof_emit_metric {
    size_t slot;                  /* the same slot always has the same section, name, label and unit: to cache by */
    size_t column;                /* into the columns of the page */
    size_t metric;                /* index into the model's metrics; SIZE_MAX: the report does not have the metric */
    const kprof_section *section; /* that shows it, or NULL */
    const char *name, *label, *unit;
    const char *help;                 /* what the section says of it; NULL: nothing */
    const char *table;                /* the title of the table whose cell it is; NULL: it is none */
    const char *passes;               /* that it comes from on the launch's chip, "1-3 5"; "": none, or not known */
    size_t pass_count;                /* how many these are */
    bool disagrees;                   /* the value joins counters of passes that disagree */
    bool repeated;                    /* the same section has shown it before */
    bool shown_before;                /* so has the same or an earlier section of the chip */
    bool told_before;                 /* an earlier section has it below its heading, under the same label */
    double value;                     /* NaN: not measured */
    const kprof_model_spread *spread; /* over the samples that `value` is the median of; NULL: it is of none */
    const kprof_emit_instances *instances; /* whose sum is `value`; NULL: there are none */
} kprof_emit_metric;

typedef struct kprof_emit_table {
    const kprof_table *table;
    const kprof_emit_metric **cells; /* [row_count * column_count]; NULL: an empty cell */
    const size_t *order;             /* [row_count]: rows in the order in which to show them */
    const kprof_emit_metric *whole;  /* the throughput whose parts the rows are; NULL: the table is no breakdown */
} kprof_emit_table;

/* A roofline against one level of memory. */
typedef struct kprof_emit_point {
    const char *level;
    const kprof_emit_metric *traffic, *peak, *intensity, *pct;
    kprof_roofline_point at;
} kprof_emit_point;

typedef struct kprof_emit_roofline {
    const char *id, *label;
    const kprof_emit_metric *work, *peak;
    kprof_emit_point *points;
    size_t point_count;
} kprof_emit_roofline;

/* One section: its metrics are metrics[0 .. metric_count), header items first. */
typedef struct kprof_view_section {
    const kprof_section *section;
    kprof_emit_metric *metrics; /* part of the chip's array */
    size_t metric_count;
    kprof_emit_table *tables;       /* [section->table_count] */
    kprof_emit_roofline *rooflines; /* [section->roofline_count] */
} kprof_view_section;

typedef struct kprof_view_chip {
    kprof_view_section *sections;
    size_t section_count;
    kprof_emit_metric *metrics; /* of all sections */
    size_t metric_count;
} kprof_view_chip;

typedef struct kprof_view {
    const kprof_model *model;
    kprof_view_chip *chips;     /* [model->chip_count] */
    kprof_emit_metric *columns; /* distinct metrics, in the order in which they appear */
    size_t column_count, slot_count;
    bool in_sections; /* launches show these sections; else all of `columns` */
} kprof_view;

/* Resolve the sections of every chip (the details and statistics pages). `title`: what labels tell. */
void kprof_view_sections(const kprof_model *model, kprof_metric_title title, kprof_view *out);
/* Every metric of launches, with the first section that shows it, for the raw page; sorted by name. With
 * `with_instructions` those of instructions, too, by ncu's names. */
void kprof_view_all(const kprof_model *model, bool with_instructions, kprof_view *out);

/* Mark what an earlier section tells, of those of a chip's sections that are shown. NULL: all are. */
void kprof_view_mark(const kprof_view *view, kprof_view_chip *chip, const bool *is_shown);

/* Take a launch's value of a metric, and the passes that it came from. */
void kprof_view_fill_metric(const kprof_model *model, const kprof_model_launch *launch, kprof_emit_metric *metric);
/* Take all of a launch's values, sort tables and locate points; NULL when the launch's chip has no sections. */
const kprof_view_chip *kprof_view_fill(kprof_view *view, const kprof_model_launch *launch);
