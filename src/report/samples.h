/* The middle of a metric's values over samples, and how far they spread around it. */
#ifndef KPROF_REPORT_SAMPLES_H
#define KPROF_REPORT_SAMPLES_H

#include <stddef.h>

typedef struct kprof_center {
    size_t count;  /* values that are numbers */
    double median; /* of these; NaN: there is none. The mean of the two in the middle, if their number is even */
    double mad;    /* the median of their distances from it; NaN: there is no value, or the median is infinite */
} kprof_center;

/* NaN is left out. The values are put into another order. */
kprof_center kprof_center_of(double *values, size_t count);

#endif
