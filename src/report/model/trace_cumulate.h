/* How much time of intervals of several classes has passed at each of many points: the time of a class between two
 * points is a difference. Points and intervals are read once, in the order of time, and none is kept. */
#pragma once

#include "report/report.h"

#define KPROF_CUMULATE_CLASSES 5

typedef struct kprof_cumulation {
    const char *points;    /* SQL: two keys, time, number of the point; in the order of keys and time */
    const char *intervals; /* SQL: two keys, start, end, class; likewise. A later one that begins in an earlier one
                              counts from where that ends */
    const char *into;      /* a temporary table to be made: point, c0 to c4 (ns) */
} kprof_cumulation;

kprof_status kprof_trace_cumulate(kprof_report *report, const kprof_cumulation *what) KPROF_MUST_CHECK;
