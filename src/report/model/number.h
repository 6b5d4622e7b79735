/* Numbers as text, fast and independent of any locale: always '.' for the decimal point. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KPROF_NUMBER_SIZE 48 /* bytes that any of these may write, NUL included */

/* Return the ending of a word behind a number: "" for one, else that of several, "s" or "es". */
static inline const char *kprof_ending(uint64_t count, const char *of_several)
{
    return count == 1 ? "" : of_several;
}

/* Each of these writes a NUL-terminated text of at most KPROF_NUMBER_SIZE bytes and returns its length. */

/* A whole number. */
size_t kprof_number_integer(char *out, int64_t value);
/* Likewise, with a comma between thousands: "4,963,609,951". */
size_t kprof_number_integer_grouped(char *out, int64_t value);
/* At most 15 significant digits, as short as they allow: "38.72", "1e+20". NaN gives "" (missing), infinity "inf". */
size_t kprof_number_exact(char *out, double value);
/* printf's %.*g with `digits` (1 to 15) significant digits. */
size_t kprof_number_general(char *out, double value, int digits);
/* `decimals` (0 to 6) digits after the point; whole numbers have none unless `fixed`. Digits are grouped by thousands
 * with commas, "4,963,609,951.19", unless `plain`. NaN gives "". */
typedef struct kprof_number_style {
    unsigned decimals;
    int fixed; /* write the decimals of whole numbers too */
    int plain;
} kprof_number_style;
size_t kprof_number_grouped(char *out, double value, kprof_number_style style);
