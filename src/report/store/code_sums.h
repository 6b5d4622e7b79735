/* Adds up values of instructions within a transaction: many launches of a kernel come at once, with the same rows. */
#pragma once

#include "report/store/store.h"

/* A launch's values of a function: rows of an offset and a value for each metric. */
typedef struct kprof_code_values {
    int64_t profile, function;
    const int64_t *metrics; /* [count]: rows of the table metric; 0: not stored */
    size_t count;
    const double *values; /* [rows * (1 + count)] */
    size_t rows;
} kprof_code_values;

/* A transaction begins. */
void kprof_code_sums_begin(kprof_report *report);
/* Add values to those that are stored; in a transaction, when it ends. */
void kprof_code_sums_add(kprof_report *report, const kprof_code_values *values);
/* The transaction ends: store all that was added, or forget it. */
void kprof_code_sums_store(kprof_report *report);
void kprof_code_sums_drop(kprof_report *report);
