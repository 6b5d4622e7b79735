/* Visits the values of resolved sections, and writes sections as JSON in the format of the set files. */
#include "metricset/section.h"

#include <cjson/cJSON.h>

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
