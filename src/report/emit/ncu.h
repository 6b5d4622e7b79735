/* ncu's words for sections, kernels and units, in its CSV and in its text, and the rows that it prints of a roofline.
 */
#pragma once

#include "report/emit/emit.h"

/* Readers of ncu's output do not know kprof's own comparison of passes: leave the metric out. */
bool kprof_ncu_is_unknown(const kprof_emit_metric *metric);
/* The base unit of a metric: ncu counts the dimensions of a block in blocks. */
const char *kprof_ncu_base_unit(const kprof_emit_metric *metric);
/* ncu calls a roofline a roofline chart. Caller frees. */
char *kprof_ncu_section_name(const char *name);
/* The name of the launch's kernel, behind its innermost pushed range where the options ask for it. Caller frees. */
char *kprof_ncu_kernel_name(const kprof_emitter *emitter, const kprof_model_launch *launch, const char *kernel);
/* Write a number as ncu does: with two decimals, which whole ones have only if `is_fixed`, and with commas between
 * thousands where the user's locale has them. Other locales' commas and points mislead: their numbers are as in the C
 * locale. Writes at most KPROF_NUMBER_SIZE bytes and returns the length; NaN gives "". */
size_t kprof_ncu_number(char *out, double value, bool is_fixed);
/* OPT (with an estimate), INF (what limits the launch) or WRN. */
const char *kprof_ncu_rule_type(const kprof_found *found);

/* A row of a roofline: what its roof or its point is made of. */
typedef struct kprof_ncu_row {
    const char *item;  /* the roof or the point */
    const char *label; /* of the value, as the options title metrics */
    const char *unit;
    double value; /* NaN: not measured */
} kprof_ncu_row;

/* Gets each row, whose texts live as long as the call. */
typedef struct kprof_ncu_writer {
    const kprof_emitter *emitter;
    const kprof_model_launch *launch;
    void (*put)(void *user, const kprof_ncu_row *row);
    void *user;
} kprof_ncu_writer;

/* Write the rows of rooflines, and the cells of a table, if the options ask for tables. */
void kprof_ncu_rooflines(const kprof_ncu_writer *to, const kprof_emit_roofline *rooflines, size_t count);
void kprof_ncu_table(kprof_emitter *emitter, const kprof_emit_table *table);
