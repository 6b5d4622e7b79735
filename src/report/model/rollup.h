/* Combines the values of many launches into the average launch of a group. Ratios are never averaged: their parts are,
 * if the report has them or they follow from the ratio and its denominator. docs/report-schema.md has the rules. */
#pragma once

#include "report/model/model.h"

/* How the value of a group came about. */
typedef enum kprof_rollup_method {
    KPROF_ROLLUP_NONE,    /* there is no value: none was measured, or nothing to weigh it by */
    KPROF_ROLLUP_SAME,    /* all launches have this value */
    KPROF_ROLLUP_MEAN,    /* of an amount: its sum over the number of launches that have it */
    KPROF_ROLLUP_RATIO,   /* sum of the numerators over sum of the denominators */
    KPROF_ROLLUP_TIME,    /* weighted by the time of each launch, since its denominator is not in the report */
    KPROF_ROLLUP_FORMULA, /* the section's formula, applied to the combined values of its operands */
} kprof_rollup_method;
/* "same", "mean", "ratio", "time", "formula"; NULL for NONE. */
const char *kprof_rollup_name(kprof_rollup_method method);

/* The sums over a group's launches, for one metric. All zero at first. */
typedef struct kprof_rollup_total {
    uint64_t count, weighed; /* launches with a value, and those of them that also have its weight */
    double minimum, maximum, sum;
    double weighted, weight; /* sums of value times weight, and of the weights */
    bool disagrees;          /* the passes of at least one of the values do */
} kprof_rollup_total;

/* How the metrics of a model are rolled up. The model is borrowed. */
typedef struct kprof_rollup kprof_rollup;
kprof_rollup *kprof_rollup_new(const kprof_model *model);
/* Add the values[metric_count] of a launch to the totals[metric_count] of its group. */
void kprof_rollup_add(const kprof_rollup *rollup, const double *values, kprof_rollup_total *totals);
/* The values of a group on a chip (into the model's; SIZE_MAX: no formulas are known), valid until the next call. */
typedef struct kprof_rolled_up {
    double *values;               /* [metric_count]; NaN: none */
    kprof_rollup_method *methods; /* [metric_count] */
} kprof_rolled_up;
kprof_rolled_up kprof_rollup_finish(const kprof_rollup *rollup, size_t chip, const kprof_rollup_total *totals);
/* Is the metric an amount, which launches add up ("inst", "byte", "ns"), and no share, rate, average or property? */
bool kprof_rollup_is_amount(const kprof_rollup *rollup, size_t metric);
