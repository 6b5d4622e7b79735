/* Derived values: the expressions of a plan's sections and the rooflines' distances, computed once when a launch is
 * stored, so that every page, format and SQLite client reads the same numbers. */
#pragma once

#include "report/store/store.h"

/* The derived values of one chip; a list. */
typedef struct kprof_derived kprof_derived;

/* Add the derived values of a section, which the report's pool has, and register their metrics. New rows get their unit
 * and label from the section. */
void kprof_derived_add(kprof_report *report, const char *chip, const kprof_section *section);

/* Compute the derived values of `chip`: `lookup` gives values by name, `store` receives each result with its metric's
 * row id. Later expressions may use earlier results. */
typedef struct kprof_derived_sink {
    kprof_expr_lookup *lookup;
    void (*store)(void *user, int64_t metric_id, double value);
    void *user;
} kprof_derived_sink;
void kprof_derived_evaluate(const kprof_report *report, const char *chip, const kprof_derived_sink *sink);

/* Call `visit` for each derived value of `chip`, by its metric's row id, and each expression that it is computed from,
 * in the same order. */
typedef void kprof_derived_visit(void *user, int64_t metric_id, const kprof_expr *expression);
void kprof_derived_walk(const kprof_report *report, const char *chip, kprof_derived_visit *visit, void *user);

/* Write the name of the metric that holds the intensity ("intensity", FLOP per byte) or the share of the roof
 * ("pct_of_roof"): "derived__roofline_<roofline>_<roof>_<what>", lower case, at most `size` bytes. */
void kprof_roofline_metric_name(char *out, size_t size, const char *const parts[3]);

/* The roofline model: S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009. */

/* Rates of one precision against one level of memory; NaN where not measured. */
typedef struct kprof_roofline_input {
    double work, work_peak;       /* FLOP per second, achieved and peak */
    double traffic, traffic_peak; /* bytes per second, achieved and peak */
} kprof_roofline_input;

typedef struct kprof_roofline_point {
    double intensity;  /* FLOP per byte: work / traffic */
    double ridge;      /* FLOP per byte where compute takes over from memory: work_peak / traffic_peak */
    double attainable; /* FLOP per second: min(work_peak, intensity * traffic_peak) */
    double pct;        /* work of attainable, per cent */
    double headroom;   /* attainable / work: 1.4 is "1.4 times below the roof" */
    bool memory_bound; /* the memory roof is the lower one at this intensity */
    bool measured;     /* all of the input was there */
    bool has_work;     /* measured, and any work was done at all; without it intensity, pct and headroom say nothing */
} kprof_roofline_point;

/* Place a kernel under the roofs. Missing input gives NaN. Work without traffic has an infinite intensity. */
kprof_roofline_point kprof_roofline_locate(kprof_roofline_input input);
