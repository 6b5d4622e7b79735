/* Compares two reports: whether they can be compared, what changed in each kernel, and whether it became faster.
 * docs/man/kprof-diff.1 says how. */
#pragma once

#include "report/diff/pairs.h"
#include "report/model/change.h"
#include "report/page/page.h"

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

/* Settings that no table of the report holds; NULL: not known. */
typedef struct kprof_diff_settings {
    const char *file; /* as the user named it */
    const char *cache_control;
} kprof_diff_settings;

typedef struct kprof_diff_outcome {
    size_t pairs;                /* kernels and shapes that both reports have */
    size_t failed, inconclusive; /* conditions, counted for each kernel */
} kprof_diff_outcome;

/* The content of the page. */
typedef struct kprof_diff_request {
    kprof_diff_settings settings[KPROF_SIDES];
    kprof_condition *conditions; /* [condition_count]; limits are brought to base units */
    size_t condition_count;
    kprof_tolerances tolerances;
    bool anyway;                 /* compare what is not comparable */
    kprof_diff_outcome *outcome; /* filled in */
} kprof_diff_request;

/* The page: the baseline first, then the new report. NOT_COMPARABLE, with a message and before anything is printed,
 * where numbers would mislead; UNKNOWN_NAME when a condition's metric is in neither report. */
extern const kprof_page_row kprof_diff_page;

/* In the order that they are shown in. */
typedef enum kprof_judgement {
    KPROF_JUDGEMENT_WORSE,
    KPROF_JUDGEMENT_BETTER,
    KPROF_JUDGEMENT_INCONCLUSIVE,
    KPROF_JUDGEMENT_SAME,
    KPROF_JUDGEMENT_ONLY_BASELINE,
    KPROF_JUDGEMENT_ONLY_NEW,
    KPROF_JUDGEMENT_COUNT
} kprof_judgement;

/* A kernel and shape. */
typedef struct kprof_diff_kernel {
    const kprof_launch_group *groups[KPROF_SIDES]; /* NULL: the report has none */
    kprof_match match;
    kprof_judgement verdict;
    char reason[160];      /* of an inconclusive verdict; "" */
    double p;              /* p-value for an unchanged time, corrected for all kernels; NaN: not tested */
    kprof_change *changes; /* [metrics.count]; NULL without a partner */
    kprof_gate *gates;     /* [condition_count]; NULL without a partner */
} kprof_diff_kernel;

typedef struct kprof_diff {
    kprof_pool *pool; /* that of the baseline, which has all of it */
    const kprof_diff_request *request;
    kprof_diff_metrics metrics;
    size_t *condition_metrics; /* [condition_count]: into metrics */
    kprof_launch_pairs pairs;
    kprof_diff_kernel *kernels; /* [kernel_count]: those that changed most first */
    size_t kernel_count;
    bool is_cut; /* some kernel has more launches than were read */
} kprof_diff;

/* Compare the launches that the filter takes. With `all`, compare all metrics that both reports have. */
kprof_status kprof_diff_make(const kprof_page_context *context, kprof_diff *out) KPROF_MUST_CHECK;

/* Decide on one kernel by its changes of time and cycles; `kernel->p` is known. */
void kprof_diff_judge(kprof_diff_kernel *kernel, double tolerance_pct);

/* A difference between the runs. */
typedef struct kprof_run_difference {
    const char *what, *effect;
    const char *values[KPROF_SIDES];
    bool misleads; /* the reports share numbers that this difference makes incomparable */
} kprof_run_difference;
/* All of them, in memory of the diff. */
typedef struct kprof_run_differences {
    kprof_run_difference *items;
    size_t count;
} kprof_run_differences;
void kprof_run_differences_find(const kprof_page_context *context, const kprof_diff *diff, kprof_run_differences *out);
