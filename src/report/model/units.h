/* Values for people: scaled to a unit with an SI prefix, two decimals, digits grouped. */
#pragma once

#include "core/strbuf.h"
#include "report/model/number.h"

#include <stdbool.h>

typedef struct kprof_human {
    char number[KPROF_NUMBER_SIZE];
    char unit[40];
} kprof_human;

/* A value in a base unit ("ns", "byte/second", "cycle/second", "flop/second", "inst" ...). Times, bytes, operations and
 * rates get a decimal prefix ("us", "GB/s", "GHz", "TFLOP/s"); counts and "%" stay. With `base` nothing is scaled. A
 * missing value (NaN) is "n/a" without a unit. */
kprof_human kprof_units_human(double value, const char *unit, bool base);
/* Append it: "58.69 us", "32", "n/a". */
void kprof_human_put(const kprof_human *human, kprof_strbuf *out);

/* By what a number in `text`, a unit as people read or write it ("us", "GB/s", "MHz", "%"), is to be multiplied to be
 * in the base unit; 1 for "" and for the base unit itself. False when it is no unit of such values. */
bool kprof_units_parse(const char *text, const char *unit, double *factor);

#define KPROF_NCU_UNIT_SIZE 64
/* ncu's unit for a value in a base unit: "us", "Kbyte/block", "Ghz". Return what to divide the value by. */
double kprof_units_ncu_scale(double value, const char *unit, char *out, size_t size);
/* ncu's spelling of a base unit: "byte/s" for "byte/second", "hz" for "cycle/second". Writes at most `size` bytes. */
void kprof_units_ncu(const char *unit, char *out, size_t size);
