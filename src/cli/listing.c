/* Cells in memory, and the page that shows them. */
#include "cli/listing.h"

#include <stdlib.h>

void kprof_listing_add_cells(kprof_listing *listing, const char *const *cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kprof_strlist_add(&listing->cells, cells[i] ? cells[i] : "");
}

void kprof_listing_add_number(kprof_listing *listing, size_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", number);
    kprof_strlist_add(&listing->cells, text);
}

void kprof_listing_free(kprof_listing *listing)
{
    kprof_strlist_free(&listing->cells);
}

static kprof_emit_field field_of(const kprof_listing_column *column, const char *cell)
{
    const bool is_missing = column->missing && *cell == '\0';
    kprof_emit_field field = kprof_field_text(column->key, column->label, is_missing ? NULL : cell);
    if (column->type == KPROF_FIELD_INTEGER && !is_missing)
        field = kprof_field_integer(column->key, column->label, strtoll(cell, NULL, 10));
    field.missing = column->missing;
    return field;
}

static kprof_status print_listing(const kprof_page_context *context)
{
    const kprof_listing *listing = context->content;
    const kprof_listing_column *columns = listing->columns;
    kprof_emit_field fields[KPROF_LISTING_COLUMNS_MAX] = {0};
    kprof_emit_record record = {fields, 0};
    kprof_emitter *emitter = kprof_page_begin(context);
    for (; record.count < KPROF_LISTING_COLUMNS_MAX && columns[record.count].key; record.count++) {
        const kprof_listing_column *column = &columns[record.count];
        fields[record.count] = kprof_field_text(column->key, column->label, NULL);
        fields[record.count].type = column->type;
        fields[record.count].folds = fields[record.count].plain = column->folds;
    }
    kprof_list_begin(emitter, "list", "List", KPROF_LIST_ALONE, false);
    emitter->ops->columns(emitter, &record);
    for (size_t i = 0; i + record.count <= listing->cells.count; i += record.count) {
        for (size_t k = 0; k < record.count; k++)
            fields[k] = field_of(&columns[k], listing->cells.items[i + k]);
        kprof_show_record(emitter, fields, record.count);
    }
    emitter->ops->list_end(emitter);
    return kprof_page_end(emitter, KPROF_OK);
}

const kprof_page_row kprof_listing_page = {"list", 0, print_listing, NULL};
