/* Collects what the --list options and --query-metrics find, row by row, and prints it once all is known. */
#pragma once

#include "core/strbuf.h"
#include "report/page/page.h"

#define KPROF_LISTING_COLUMNS_MAX 8

typedef struct kprof_listing_column {
    const char *key, *label; /* for programs and for people */
    kprof_field_type type;   /* text or integer */
    const char *missing;     /* people see this, and programs nothing, where a cell is ""; NULL: it is an empty text */
    bool folds;              /* a long text, which people see below its row where the columns are too wide */
} kprof_listing_column;

typedef struct kprof_listing {
    const kprof_listing_column *columns; /* ended by one without a key */
    kprof_strlist cells;
} kprof_listing;

/* Add cells; NULL is "". */
#define KPROF_LISTING_ADD(listing, ...)                                                                                \
    kprof_listing_add_cells(listing, (const char *[]){__VA_ARGS__},                                                    \
                            sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))
void kprof_listing_add_cells(kprof_listing *listing, const char *const *cells, size_t count);
void kprof_listing_add_number(kprof_listing *listing, size_t number);
void kprof_listing_free(kprof_listing *listing);

/* A page whose content is a kprof_listing. */
extern const kprof_page_row kprof_listing_page;
