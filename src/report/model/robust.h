/* Statistics that a few outliers do not move, and that assume no distribution: medians, how far values spread around
 * them, and by how much two samples differ. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Fewer values than these are not judged. */
#define KPROF_REPEATS_MIN 5
/* The default confidence of intervals and tests. */
#define KPROF_CONFIDENCE 0.99
/* A median is stable if its interval is within this share of it to either side. */
#define KPROF_STABLE_PCT 2.0

typedef struct kprof_center {
    size_t count;  /* values that are numbers */
    double median; /* of these; NaN: there is none. The mean of the two in the middle, if their number is even */
    double mad;    /* the median of their distances from it; NaN: there is no value, or the median is infinite */
} kprof_center;

/* Put values in order, the smallest first; none may be NaN. */
void kprof_sort(double *values, size_t count);

/* Leaves out NaN. Changes the order of the values. */
kprof_center kprof_center_of(double *values, size_t count);

/* NaN, NaN: there are too few values for the confidence asked for. */
typedef struct kprof_interval {
    double low, high;
} kprof_interval;

/* The interval between two of the sorted values that holds the median of what they were drawn from with at least this
 * confidence (0 to 1, both excluded). Source: the sign test; Conover, Practical Nonparametric Statistics, 3.2. */
kprof_interval kprof_median_interval(const double *sorted, size_t count, double confidence);

/* Repeats of one measurement. */
typedef struct kprof_repeats {
    kprof_center center;
    kprof_interval interval; /* of the median */
    bool is_stable;          /* at least KPROF_REPEATS_MIN values, and the interval is within KPROF_STABLE_PCT */
} kprof_repeats;
/* Leaves out NaN. Changes the order of the values. */
kprof_repeats kprof_repeats_of(double *values, size_t count, double confidence);

/* Numbers whose differences are finite; the functions below sort them. */
typedef struct kprof_sample {
    double *values; /* [count] */
    size_t count;
} kprof_sample;

/* How far a second sample lies above a first one, in their unit. */
typedef struct kprof_shift {
    double p;                /* Mann-Whitney, two-sided: exact, with ties, for up to KPROF_EXACT_MAX values in all; else
                                the normal approximation. NaN: a sample is empty */
    double estimate;         /* Hodges-Lehmann: the median of all differences between the samples; NaN: as above */
    kprof_interval interval; /* of the shift; NaN: too few values */
} kprof_shift;
#define KPROF_EXACT_MAX 40
/* Takes time for n log n values, not for their n^2 differences. */
void kprof_shift_of(kprof_sample from, kprof_sample to, double confidence, kprof_shift *out);

/* How many values both samples need at least for a Mann-Whitney test to tell a difference when `tests` such tests may
 * have an error rate of `alpha` together: with fewer, not even samples without overlap do. */
size_t kprof_repeats_needed(size_t tests, double alpha);

/* Holm's correction: replace each p (NaN: no test) by one that may be compared with the error rate of all tests
 * together. Source: Holm, Scandinavian Journal of Statistics 6, 1979. */
void kprof_holm(double *p, size_t count);
