/* Functions for SQL that SQLite lacks, and the numbers that they keep. */
#pragma once

#include "report/report.h"

typedef struct kprof_spread_value {
    double value;
    uint64_t count; /* 0: the place has no number */
} kprof_spread_value;

/* Numbers of a group: begin with zeros. They take 32 to 64 bytes for each different number. */
typedef struct kprof_spread {
    kprof_spread_value *items; /* [capacity], owned */
    size_t capacity, distinct;
    uint64_t count;
} kprof_spread;
void kprof_spread_add(kprof_spread *of, double value, uint64_t count); /* so many; NaN is none */
/* NaN: there are none. From then on items[0] to items[distinct - 1] have them in order, and nothing can be added. */
double kprof_spread_median(kprof_spread *of);
void kprof_spread_free(kprof_spread *of); /* members */

/* Add kprof_median(x) and kprof_deviation(x), the standard deviation of a sample, of the rows of a group that have a
 * number; kprof_quote(text), a pattern of that text alone; and kprof_application(line), what stands behind the "--" of
 * a command line of kprof's, or NULL. */
void kprof_trace_add_functions(kprof_report *report);
