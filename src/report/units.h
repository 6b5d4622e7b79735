/* Values for people: scaled to a unit with an SI prefix, two decimals, digits grouped. */
#ifndef KPROF_REPORT_UNITS_H
#define KPROF_REPORT_UNITS_H

#include "report/number.h"

#include <stdbool.h>

typedef struct kprof_human {
    char number[KPROF_NUMBER_SIZE];
    char unit[40];
} kprof_human;

/* A value in a base unit ("ns", "byte/second", "cycle/second", "flop/second", "inst" ...). Times, bytes, operations and
 * rates get a decimal prefix ("us", "GB/s", "GHz", "TFLOP/s"); counts and "%" stay. With `base` nothing is scaled. A
 * missing value (NaN) is "n/a" without a unit. */
kprof_human kprof_units_human(double value, const char *unit, bool base);

/* ncu's spelling of a base unit: "byte/s" for "byte/second", "hz" for "cycle/second". Writes at most `size` bytes. */
void kprof_units_ncu(const char *unit, char *out, size_t size);

#endif
