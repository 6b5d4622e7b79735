/* Prints what the --list options and --query-metrics collect. */
#include "cli/listing.h"

#include <cjson/cJSON.h>
#include <csv.h>
#include <stdlib.h>
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

static void print_text(const kprof_listing *listing, FILE *out)
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

static void lower(char *text)
{
    for (; *text; text++)
        *text = (char)(*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text);
}

static bool is_missing(const char *cell)
{
    return strcmp(cell, KPROF_LISTING_MISSING) == 0 || strcmp(cell, KPROF_LISTING_NONE) == 0;
}

static void print_csv(const kprof_listing *listing, FILE *out)
{
    for (size_t i = 0; i < listing->cells.count; i++) {
        const char *cell = listing->cells.items[i];
        if (is_number(cell))
            fputs(cell, out);
        else if (!is_missing(cell))
            csv_fwrite(out, cell, strlen(cell));
        fputc((i + 1) % listing->columns ? ',' : '\n', out);
    }
}

static cJSON *json_cell(const char *cell)
{
    if (is_missing(cell))
        return cJSON_CreateNull();
    return is_number(cell) ? cJSON_CreateNumber(strtod(cell, NULL)) : cJSON_CreateString(cell);
}

static void print_json(kprof_listing *listing, FILE *out)
{
    cJSON *rows = cJSON_CreateArray(), *row = NULL;
    for (size_t i = listing->columns; i < listing->cells.count; i++) {
        size_t column = i % listing->columns;
        if (column == 0)
            cJSON_AddItemToArray(rows, row = cJSON_CreateObject());
        cJSON *cell = json_cell(listing->cells.items[i]);
        listing->failed = !cJSON_AddItemToObject(row, listing->cells.items[column], cell) || listing->failed;
    }
    char *text = cJSON_Print(rows);
    listing->failed = !text || listing->failed;
    if (!listing->failed)
        fprintf(out, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(rows);
}

void kprof_listing_print(kprof_listing *listing, kprof_format format, FILE *out)
{
    for (size_t i = 0; format != KPROF_FORMAT_TEXT && i < listing->columns; i++)
        lower(listing->cells.items[i]);
    if (format == KPROF_FORMAT_CSV)
        print_csv(listing, out);
    else if (format == KPROF_FORMAT_JSON)
        print_json(listing, out);
    else
        print_text(listing, out);
}

void kprof_listing_free(kprof_listing *listing)
{
    kprof_strlist_free(&listing->cells);
}
