/* Cells collected row by row and printed as aligned columns, CSV or JSON. */
#ifndef KPROF_CLI_LISTING_H
#define KPROF_CLI_LISTING_H

#include "core/strbuf.h"
#include "report/report.h"

#include <stdio.h>

/* Cells without content, empty in CSV and null in JSON: not known here, and not there at all. */
#define KPROF_LISTING_MISSING "n/a"
#define KPROF_LISTING_NONE    "-"

/* The first row is the header. In text, numbers are aligned right, all else left; the last column is not padded. CSV
 * and JSON take the header's words in lower case; JSON is an array of objects. */
typedef struct kprof_listing {
    kprof_strlist cells;
    size_t columns; /* at most 8 */
    bool failed;    /* out of memory */
} kprof_listing;

void kprof_listing_add(kprof_listing *listing, const char *cell);
void kprof_listing_add_number(kprof_listing *listing, size_t number);
/* Errors show in `out`, or for want of memory in listing->failed. */
void kprof_listing_print(kprof_listing *listing, kprof_format format, FILE *out);
void kprof_listing_free(kprof_listing *listing);

#endif
