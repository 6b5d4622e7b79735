/* The metrics that a comparison looks at: the time and what may explain a change of it. */
#pragma once

#include "report/diff/pairs.h"
#include "report/model/change.h"

/* A metric of a comparison. */
typedef struct kprof_diff_metric {
    const char *name, *unit; /* borrowed from a model or a condition */
    const char *theme;       /* "time", "traffic", "instructions", "occupancy", "clocks", "stalls" or "other" */
    const char *label;       /* what it is in words */
    kprof_metric_class metric_class;
    size_t indexes[KPROF_SIDES]; /* into the metrics of each model; SIZE_MAX: the report does not have it */
    bool is_tested;
} kprof_diff_metric;

typedef struct kprof_diff_metrics {
    kprof_diff_metric *items; /* [count]; the first two are always the time and the cycles */
    size_t count;
} kprof_diff_metrics;
enum { KPROF_DIFF_TIME, KPROF_DIFF_CYCLES };

/* Find the time, the cycles and the metrics that explain a change, as far as a report has them; then all others that
 * both have, if `all` is set. They are in memory of the baseline. */
void kprof_diff_metrics_find(const kprof_model *const models[KPROF_SIDES], bool all, kprof_diff_metrics *out);
/* The place of a metric, which is added if it is not there. */
size_t kprof_diff_metric_of(kprof_diff_metrics *metrics, const kprof_model *const models[KPROF_SIDES],
                            const char *name);

/* Fill weights[metrics->count]: how much each change explains, from 0: its share of the baseline's value. A share in
 * percent counts by its points, a stall by its share of all stalls. `changes` are those of `metrics`. */
void kprof_driver_weights(const kprof_diff_metrics *metrics, const kprof_change *changes, double *weights);
