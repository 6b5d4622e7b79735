/* Lists what the sections of each chip show. Names are resolved to columns of values once, not for every launch. */
#ifndef KPROF_REPORT_VIEW_H
#define KPROF_REPORT_VIEW_H

#include "report/emit.h"

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
    bool in_sections;     /* launches show these sections; else all of `columns` */
    kprof_strlist labels; /* made for table cells and rooflines */
} kprof_view;

/* Resolve the sections of every chip (the details and summary pages). */
kprof_status kprof_view_sections(const kprof_model *model, kprof_view *out) KPROF_MUST_CHECK;
/* Every metric of the report, with the first section that shows it (the raw page); `columns` is
 * sorted by name. */
kprof_status kprof_view_all(const kprof_model *model, kprof_view *out) KPROF_MUST_CHECK;
void kprof_view_free(kprof_view *view); /* members */

/* Take a launch's value of a metric, and the passes that it came from. */
void kprof_view_fill_metric(const kprof_model *model, const kprof_model_launch *launch, kprof_emit_metric *metric);
/* Take all of a launch's values, sort tables and locate points; NULL when no sections are stored for the launch's chip.
 */
const kprof_view_chip *kprof_view_fill(kprof_view *view, const kprof_model_launch *launch);

#endif
