/* Visits the values of resolved sections, joins sections, and writes them as JSON in the format of the set files. */
#include "metricset/section.h"

#include "core/names.h"

#include <cjson/cJSON.h>
#include <string.h>

static cJSON *put_item(const kprof_item *item)
{
    if (!item->name)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    if (item->expression) {
        cJSON_AddStringToObject(json, "name", item->name);
        cJSON_AddStringToObject(json, "expression", item->expression);
    } else {
        cJSON_AddStringToObject(json, "metric", item->name);
    }
    if (item->label)
        cJSON_AddStringToObject(json, "label", item->label);
    if (item->unit)
        cJSON_AddStringToObject(json, "unit", item->unit);
    if (item->help)
        cJSON_AddStringToObject(json, "help", item->help);
    return json;
}

static cJSON *put_table(const kprof_table *table)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "id", table->id);
    cJSON_AddStringToObject(json, "title", table->title);
    cJSON_AddBoolToObject(json, "sorted", table->sorted);
    cJSON *columns = cJSON_AddArrayToObject(json, "columns");
    for (size_t i = 0; i < table->column_count; i++)
        cJSON_AddItemToArray(columns, cJSON_CreateString(table->column_labels[i]));
    cJSON *rows = cJSON_AddArrayToObject(json, "rows");
    for (size_t i = 0; i < table->row_count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "label", table->rows[i].label);
        cJSON *cells = cJSON_AddArrayToObject(row, "cells");
        for (size_t k = 0; k < table->column_count; k++)
            cJSON_AddItemToArray(cells, put_item(&table->rows[i].cells[k]));
        cJSON_AddItemToArray(rows, row);
    }
    return json;
}

static cJSON *put_roofline(const kprof_roofline *line)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "id", line->id);
    cJSON_AddStringToObject(json, "label", line->label);
    cJSON_AddItemToObject(json, "work", put_item(&line->work));
    cJSON_AddItemToObject(json, "peak", put_item(&line->peak));
    cJSON *roofs = cJSON_AddArrayToObject(json, "roofs");
    for (size_t i = 0; i < line->roof_count; i++) {
        cJSON *roof = cJSON_CreateObject();
        cJSON_AddStringToObject(roof, "label", line->roofs[i].label);
        cJSON_AddItemToObject(roof, "traffic", put_item(&line->roofs[i].traffic));
        cJSON_AddItemToObject(roof, "peak", put_item(&line->roofs[i].peak));
        cJSON_AddItemToArray(roofs, roof);
    }
    return json;
}

char *kprof_section_to_json(const kprof_section *section)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "id", section->id);
    cJSON_AddStringToObject(json, "name", section->name);
    if (section->help)
        cJSON_AddStringToObject(json, "help", section->help);
    cJSON_AddNumberToObject(json, "order", section->order);
    cJSON *items = cJSON_AddArrayToObject(json, "items");
    for (size_t i = 0; i < section->item_count; i++)
        cJSON_AddItemToArray(items, put_item(&section->items[i]));
    cJSON *tables = cJSON_AddArrayToObject(json, "tables");
    for (size_t i = 0; i < section->table_count; i++)
        cJSON_AddItemToArray(tables, put_table(&section->tables[i]));
    cJSON *rooflines = cJSON_AddArrayToObject(json, "rooflines");
    for (size_t i = 0; i < section->roofline_count; i++)
        cJSON_AddItemToArray(rooflines, put_roofline(&section->rooflines[i]));
    cJSON *timeline = section->timeline_count > 0 ? cJSON_AddArrayToObject(json, "timeline") : NULL;
    for (size_t i = 0; i < section->timeline_count; i++)
        cJSON_AddItemToArray(timeline, put_item(&section->timeline[i]));
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

static void visit_roofline(kprof_roofline *line, kprof_item_visit *visit, void *user)
{
    visit(user, &line->work, "work");
    visit(user, &line->peak, "peak");
    for (size_t i = 0; i < line->roof_count; i++) {
        visit(user, &line->roofs[i].traffic, "traffic");
        visit(user, &line->roofs[i].peak, "peak");
    }
}

void kprof_section_visit(const kprof_section *section, kprof_item_visit *visit, void *user)
{
    for (size_t i = 0; i < section->item_count; i++)
        visit(user, &section->items[i], NULL);
    for (size_t i = 0; i < section->table_count; i++) {
        const kprof_table *table = &section->tables[i];
        const size_t columns = table->column_count;
        for (size_t k = 0; k < table->row_count * columns; k++)
            visit(user, &table->rows[k / columns].cells[k % columns], table->column_labels[k % columns]);
    }
    for (size_t i = 0; i < section->roofline_count; i++)
        visit_roofline(&section->rooflines[i], visit, user);
}

/* The values of a section, of which another definition may have more. */
typedef struct value_names {
    kprof_names known;      /* their names, and these with what they are computed from */
    size_t lacking;         /* values of the other definition that are not known */
    const char *other_name; /* of a value that the two compute in different ways; NULL: there is none */
    kprof_section *into;    /* takes what is not known */
} value_names;

static char *formula_of(const kprof_item *item)
{
    return kprof_strprintf("%s\n%s", item->name, item->expression ? item->expression : "");
}

static bool is_known(const value_names *names, const kprof_item *item)
{
    return !item->name || kprof_names_find(&names->known, item->name) != KPROF_NAMES_NONE;
}

static void know_value(void *user, kprof_item *item, const char *column)
{
    (void)column;
    value_names *names = user;
    if (!item->name)
        return;
    KPROF_AUTO_FREE char *formula = formula_of(item);
    kprof_names_keep(&names->known, item->name, 0);
    kprof_names_keep(&names->known, formula, 0);
}

static void compare_value(void *user, kprof_item *item, const char *column)
{
    (void)column;
    value_names *names = user;
    KPROF_AUTO_FREE char *formula = item->name ? formula_of(item) : NULL;
    if (!is_known(names, item))
        names->lacking++;
    else if (formula && kprof_names_find(&names->known, formula) == KPROF_NAMES_NONE)
        names->other_name = item->name;
}

static value_names compare_sections(const kprof_section *one, const kprof_section *other)
{
    value_names names = {0};
    kprof_section_visit(one, know_value, &names);
    kprof_section_visit(other, compare_value, &names);
    return names;
}

static void take_value(void *user, kprof_item *item, const char *column)
{
    value_names *names = user;
    if (is_known(names, item))
        return;
    know_value(names, item, column);
    names->into->items[names->into->item_count++] = *item;
}

static kprof_item *copy_items(const kprof_item *items, size_t count, size_t more, kprof_pool *pool)
{
    kprof_item *copy = kprof_pool_calloc(pool, count + more + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = items[i];
    return copy;
}

static void join_timelines(kprof_section *into, const kprof_section *from, kprof_pool *pool)
{
    const size_t count = into->timeline_count;
    into->timeline = copy_items(into->timeline, count, from->timeline_count, pool);
    for (size_t i = 0; i < from->timeline_count; i++) {
        bool is_there = false;
        for (size_t k = 0; k < count && !is_there; k++)
            is_there = strcmp(into->timeline[k].name, from->timeline[i].name) == 0;
        if (!is_there)
            into->timeline[into->timeline_count++] = from->timeline[i];
    }
}

const char *kprof_section_join(kprof_section *into, const kprof_section *from, kprof_pool *pool)
{
    value_names names = compare_sections(into, from), others = compare_sections(from, into);
    const kprof_section smaller = *into;
    if (!names.other_name && names.lacking > 0 && others.lacking == 0) { /* the tables of what has all values */
        *into = *from;
        from = &smaller;
    } else if (!names.other_name) {
        names.into = into;
        into->items = copy_items(into->items, into->item_count, names.lacking, pool);
        kprof_section_visit(from, take_value, &names);
    }
    if (!names.other_name)
        join_timelines(into, from, pool);
    kprof_names_free(&names.known);
    kprof_names_free(&others.known);
    return names.other_name;
}
