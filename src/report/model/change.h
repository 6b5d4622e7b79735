/* Rules that tell a change of a metric from noise, and conditions of --fail-on. docs/man/kprof-diff.1 tells them. */
#pragma once

#include "report/model/robust.h"
#include "report/store/rows.h"

/* How far the values of a metric may differ between two runs of the same code. */
typedef enum kprof_metric_class {
    KPROF_CLASS_EXACT,   /* not at all: instructions and requests of the SMs, and what the launch tells */
    KPROF_CLASS_TRAFFIC, /* a little, in any launch: bytes, sectors and requests beyond the SMs */
    KPROF_CLASS_NOISY    /* with everything else: times, cycles, rates, shares */
} kprof_metric_class;
kprof_metric_class kprof_class_of(const kprof_model_metric *metric);

/* In percent of the baseline's median. */
typedef struct kprof_tolerances {
    double time_pct; /* noisy metrics */
    double traffic_pct;
} kprof_tolerances;
#define KPROF_TIME_TOLERANCE_PCT    2.0
#define KPROF_TRAFFIC_TOLERANCE_PCT 2.0

typedef enum kprof_change_state {
    KPROF_CHANGE_UNKNOWN, /* a report has no value */
    KPROF_CHANGE_NONE,
    KPROF_CHANGE_REAL
} kprof_change_state;

/* A metric of a kernel in the baseline, [0], and in the new report, [1]. */
typedef struct kprof_change {
    kprof_metric_class metric_class;
    kprof_center centers[2];
    double difference; /* of the medians, new - baseline; NaN: not known */
    kprof_change_state state;
    kprof_shift shift; /* tested only where that was asked for; all NaN where it was not */
} kprof_change;

/* The values to compare, one for each launch, NaN where it has none. Comparing them changes their order. */
typedef struct kprof_changed_values {
    kprof_metric_class metric_class;
    kprof_sample sides[2];
    bool is_tested; /* also test whether the values differ by more than chance */
} kprof_changed_values;
void kprof_change_of(const kprof_changed_values *values, const kprof_tolerances *tolerances, kprof_change *out);

/* An amount in percent of the baseline's median; NaN where that is 0 or missing. */
double kprof_change_pct(const kprof_change *change, double amount);
/* Have both sides enough values for a verdict? */
bool kprof_change_is_repeated(const kprof_change *change);

/* A condition that makes a comparison fail: "dram__bytes_read.sum>+3%" is met by a rise of more than 3 percent. */
typedef enum kprof_comparator { KPROF_ABOVE, KPROF_AT_LEAST, KPROF_BELOW, KPROF_AT_MOST, KPROF_EQUAL } kprof_comparator;
typedef struct kprof_condition {
    char *text;   /* as given */
    char *metric; /* full name; "duration" is replaced by KPROF_TIME_METRIC */
    kprof_comparator comparator;
    double limit; /* percent of the baseline's median, or as `unit` says */
    bool is_pct;
    char unit[16]; /* "us", "%"; "": base units of the metric */
} kprof_condition;
#define KPROF_TIME_METRIC "gpu__time_duration.sum"

/* Read METRIC, one of > >= < <=, a number with or without sign and decimals, and a unit or nothing. As of --fail-on,
 * "%" is of the baseline's median, and "duration" needs a unit. As of --filter, == is a comparison too. USAGE, with a
 * message that names the part that is wrong. To be freed with kprof_condition_free. */
kprof_status kprof_condition_parse(const char *text, kprof_condition *out) KPROF_MUST_CHECK;
kprof_status kprof_condition_parse_filter(const char *text, kprof_condition *out) KPROF_MUST_CHECK;
/* Convert the limit of a condition of --fail-on to its metric's base unit. USAGE, with a message, when such values do
 * not have the unit, or when a time has none: it might as well be a percentage. */
kprof_status kprof_condition_settle_unit(kprof_condition *condition, const char *base_unit) KPROF_MUST_CHECK;
/* Does an amount meet the condition? Both the amount and the limit are in base units. NaN meets no condition. */
bool kprof_condition_is_met(const kprof_condition *condition, double amount);
void kprof_condition_free(kprof_condition *condition); /* members */

typedef enum kprof_gate { KPROF_GATE_PASSED, KPROF_GATE_FAILED, KPROF_GATE_INCONCLUSIVE } kprof_gate;
/* Does the change meet the condition? A noisy metric meets it when its whole interval does and `p`, corrected for the
 * number of kernels, is below 1 - KPROF_CONFIDENCE; it passes when nothing of the interval meets it. */
kprof_gate kprof_condition_check(const kprof_condition *condition, const kprof_change *change, double p);
