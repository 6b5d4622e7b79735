/* Cells collected row by row and printed as aligned columns. */
#ifndef KPROF_CLI_LISTING_H
#define KPROF_CLI_LISTING_H

#include "core/strbuf.h"

#include <stdio.h>

/* The first row is the header. Numbers are aligned right, all else left; the last column is not padded. */
typedef struct kprof_listing {
    kprof_strlist cells;
    size_t columns; /* at most 8 */
    bool failed;    /* out of memory */
} kprof_listing;

void kprof_listing_add(kprof_listing *listing, const char *cell);
void kprof_listing_add_number(kprof_listing *listing, size_t number);
void kprof_listing_print(const kprof_listing *listing, FILE *out);
void kprof_listing_free(kprof_listing *listing);

#endif
