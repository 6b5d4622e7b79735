/* Prints aligned columns for the --list options. */
#include "cli/listing.h"

#include <string.h>

#define MAX_COLUMNS 8

void kprof_listing_add(kprof_listing *listing, const char *cell)
{
    listing->failed = !kprof_strlist_add(&listing->cells, cell) || listing->failed;
}

void kprof_listing_add_number(kprof_listing *listing, size_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", number);
    kprof_listing_add(listing, text);
}

static bool is_number(const char *cell)
{
    return *cell && strspn(cell, "0123456789") == strlen(cell);
}

static void measure(const kprof_listing *listing, int widths[MAX_COLUMNS])
{
    for (size_t i = 0; i < listing->cells.count; i++) {
        int length = (int)strlen(listing->cells.items[i]);
        int *width = &widths[i % listing->columns];
        *width = length > *width ? length : *width;
    }
}

void kprof_listing_print(const kprof_listing *listing, FILE *out)
{
    int widths[MAX_COLUMNS] = {0};
    measure(listing, widths);
    for (size_t i = 0; i < listing->cells.count; i++) {
        const char *cell = listing->cells.items[i];
        size_t column = i % listing->columns;
        if (column + 1 == listing->columns)
            fprintf(out, "%s\n", cell);
        else
            fprintf(out, "%*s  ", is_number(cell) ? widths[column] : -widths[column], cell);
    }
}

void kprof_listing_free(kprof_listing *listing)
{
    kprof_strlist_free(&listing->cells);
}
