/* How much time of intervals of several classes has passed at each of many points: the time of a class between two
 * points is a difference. Points and intervals are read once, in the order of time, and none is kept. */
#pragma once

#include "report/report.h"

#include <sqlite3.h>

#define KPROF_CUMULATE_CLASSES 5

typedef struct kprof_cumulation {
    const char *points;    /* SQL: two keys, time, number of the point, and more; in the order of keys and time */
    const char *intervals; /* SQL: two keys, start, end, class; likewise. A later one that begins in an earlier one
                              counts from where that ends */
    /* Take a point: its row, and the time of each class until then (ns). */
    void (*take)(void *user, sqlite3_stmt *point, const double sums[KPROF_CUMULATE_CLASSES]);
    void *user;
} kprof_cumulation;

/* The report notes failures. */
void kprof_trace_cumulate(kprof_report *report, const kprof_cumulation *what);
