/* Reads the JSON of a section, from the set files or from a report, into definitions. */
#include "metricset/definition.h"
#include "metricset/instruction.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 32, MAX_LABEL = 512 };

typedef struct text_field {
    const char *key;
    bool required;
    char **out;
} text_field;

static kprof_status read_texts(const kprof_json_place *place, const cJSON *value, const text_field *fields)
{
    kprof_status status = KPROF_OK;
    for (; fields->key && status == KPROF_OK; fields++) {
        status = (fields->required ? kprof_json_require_string : kprof_json_get_string)(place, value, fields->key,
                                                                                        fields->out);
        /* Names and labels are repeated, for cells and in tables as wide as the longest; helps are not. */
        kprof_json_place at = {place, fields->key, 0};
        const char *text = *fields->out;
        if (status == KPROF_OK && text && strlen(text) > MAX_LABEL && strcmp(fields->key, "help") != 0)
            status = kprof_json_fail(&at, "is longer than %d characters", MAX_LABEL);
    }
    return status;
}

static kprof_status add_choice(const kprof_json_place *place, kprof_item_definition *item, char *text)
{
    kprof_choice *choice = &item->choices[item->choice_count++];
    choice->text = text;
    kprof_status status = kprof_expr_parse(text, &choice->compiled);
    if (status != KPROF_OK)
        return status == KPROF_NO_MEMORY ? status : kprof_json_fail(place, "is not an expression");
    if (!item->name && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")])
        return kprof_json_fail(place,
                               "must be the name of a metric; an expression needs a \"name\" to be stored under");
    return KPROF_OK;
}

kprof_status kprof_item_choices_read(const kprof_json_place *place, const cJSON *value, kprof_item_definition *item)
{
    const char *key = item->name ? "expression" : "metric";
    kprof_json_place at = {place, key, 0};
    char *first = NULL;
    char **others = NULL;
    kprof_status status = kprof_json_require_string(place, value, key, &first);
    if (status == KPROF_OK)
        status = kprof_json_get_strings(place, value, "alternatives", &others);
    if (status == KPROF_OK) {
        item->choices = calloc(1 + kprof_strings_count(others), sizeof(*item->choices));
        status = item->choices ? add_choice(&at, item, first) : KPROF_NO_MEMORY;
        first = item->choices ? NULL : first;
    }
    kprof_json_place list = {place, "alternatives", 0};
    for (size_t i = 0; status == KPROF_OK && others && others[i]; i++) {
        kprof_json_place element = {&list, NULL, i};
        char *text = kprof_strdup(others[i]);
        status = text ? add_choice(&element, item, text) : KPROF_NO_MEMORY;
    }
    free(first);
    kprof_strings_free(others);
    return status;
}

static kprof_status check_kind(const kprof_json_place *place, const cJSON *value, const kprof_item_definition *item)
{
    kprof_json_place expression = {place, "expression", 0}, metric = {place, "metric", 0};
    if (!item->name && cJSON_HasObjectItem(value, "expression"))
        return kprof_json_fail(&expression, "needs a \"name\" beside it, under which the value is stored");
    if (item->name && cJSON_HasObjectItem(value, "metric"))
        return kprof_json_fail(&metric, "is its own name: leave out \"name\", or give an \"expression\"");
    return KPROF_OK;
}

/* An item is an object, or in short the name of a metric. */
static kprof_status read_item(const kprof_json_place *place, const cJSON *value, kprof_item_definition *item)
{
    static const char *const keys[] = {"name",       "label",        "unit",     "help",     "metric",
                                       "expression", "alternatives", "optional", "priority", NULL};
    if (cJSON_IsString(value)) {
        char *text = kprof_strdup(value->valuestring);
        item->choices = calloc(1, sizeof(*item->choices));
        if (text && item->choices)
            return add_choice(place, item, text);
        free(text);
        return KPROF_NO_MEMORY;
    }
    const text_field fields[] = {{"name", false, &item->name},
                                 {"label", false, &item->label},
                                 {"unit", false, &item->unit},
                                 {"help", false, &item->help},
                                 {NULL, false, NULL}};
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = read_texts(place, value, fields);
    if (status == KPROF_OK)
        status = check_kind(place, value, item);
    if (status == KPROF_OK)
        status = kprof_json_get_bool(place, value, "optional", &item->optional);
    if (status == KPROF_OK)
        status = kprof_json_get_int(place, value, "priority", &item->priority);
    return status == KPROF_OK ? kprof_item_choices_read(place, value, item) : status;
}

static kprof_status read_header_item(const kprof_json_place *place, const cJSON *value, void *element)
{
    kprof_item_definition *item = element;
    kprof_status status = read_item(place, value, item);
    kprof_json_place label = {place, "label", 0};
    if (status == KPROF_OK && !item->label)
        return kprof_json_fail(&label, "is missing");
    return status;
}

/* Each sample is of one metric: what could be computed of several, somebody else may. */
static kprof_status read_timeline_item(const kprof_json_place *place, const cJSON *value, void *element)
{
    kprof_item_definition *item = element;
    kprof_json_place name = {place, "name", 0};
    kprof_status status = read_header_item(place, value, item);
    return status == KPROF_OK && item->name ? kprof_json_fail(&name, "is for expressions; a timeline has metrics")
                                            : status;
}

/* null is an empty cell: no choices. */
static kprof_status read_cell(const kprof_json_place *place, const cJSON *value, void *element)
{
    return cJSON_IsNull(value) ? KPROF_OK : read_item(place, value, element);
}

static kprof_status read_row(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const char *const keys[] = {"label", "optional", "cells", NULL};
    static const kprof_json_array cells = {"cells", sizeof(kprof_item_definition), read_cell};
    kprof_row_definition *row = element;
    const text_field fields[] = {{"label", true, &row->label}, {NULL, false, NULL}};
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = read_texts(place, value, fields);
    if (status == KPROF_OK)
        status = kprof_json_get_bool(place, value, "optional", &row->optional);
    kprof_json_list list = {NULL, 0};
    if (status == KPROF_OK)
        status = kprof_json_get_array(place, value, &cells, &list);
    row->cells = list.elements;
    row->cell_count = list.count;
    return status;
}

static kprof_status check_table(const kprof_json_place *place, const kprof_table_definition *table)
{
    size_t columns = kprof_strings_count(table->column_labels);
    kprof_json_place column_place = {place, "columns", 0}, rows_place = {place, "rows", 0};
    if (columns == 0 || columns > MAX_COLUMNS)
        return kprof_json_fail(&column_place, "must name 1 to %d columns", MAX_COLUMNS);
    for (size_t i = 0; i < columns; i++) {
        const kprof_json_place label_place = {&column_place, NULL, i};
        if (strlen(table->column_labels[i]) > MAX_LABEL)
            return kprof_json_fail(&label_place, "is longer than %d characters", MAX_LABEL);
    }
    for (size_t i = 0; i < table->row_count; i++) {
        kprof_json_place row_place = {&rows_place, NULL, i};
        if (table->rows[i].cell_count != columns)
            return kprof_json_fail(&row_place, "has %zu cells, but the table has %zu columns",
                                   table->rows[i].cell_count, columns);
    }
    if (table->breakdowns && columns != 1)
        return kprof_json_fail(&column_place, "must be one column in a table with a \"breakdown\"");
    return KPROF_OK;
}

static kprof_status read_table(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const char *const keys[] = {"id", "title", "sorted", "columns", "breakdown", "not_collected", "rows", NULL};
    static const kprof_json_array rows = {"rows", sizeof(kprof_row_definition), read_row};
    kprof_table_definition *table = element;
    const text_field fields[] = {{"id", true, &table->id}, {"title", true, &table->title}, {NULL, false, NULL}};
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = read_texts(place, value, fields);
    if (status == KPROF_OK)
        status = kprof_json_get_bool(place, value, "sorted", &table->sorted);
    if (status == KPROF_OK)
        status = kprof_json_get_strings(place, value, "columns", &table->column_labels);
    if (status == KPROF_OK)
        status = kprof_json_get_strings(place, value, "breakdown", &table->breakdowns);
    if (status == KPROF_OK)
        status = kprof_json_get_strings(place, value, "not_collected", &table->uncollected);
    kprof_json_list list = {NULL, 0};
    if (status == KPROF_OK)
        status = kprof_json_get_array(place, value, &rows, &list);
    table->rows = list.elements;
    table->row_count = list.count;
    return status == KPROF_OK ? check_table(place, table) : status;
}

static kprof_status read_member_item(const kprof_json_place *place, const cJSON *object, const char *key,
                                     kprof_item_definition *item)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    kprof_json_place at = {place, key, 0};
    return value ? read_item(&at, value, item) : kprof_json_fail(&at, "is missing");
}

static kprof_status read_roof(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const char *const keys[] = {"label", "optional", "traffic", "peak", NULL};
    kprof_roof_definition *roof = element;
    const text_field fields[] = {{"label", true, &roof->label}, {NULL, false, NULL}};
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = read_texts(place, value, fields);
    if (status == KPROF_OK)
        status = kprof_json_get_bool(place, value, "optional", &roof->optional);
    if (status == KPROF_OK)
        status = read_member_item(place, value, "traffic", &roof->traffic);
    return status == KPROF_OK ? read_member_item(place, value, "peak", &roof->peak) : status;
}

static kprof_status read_roofline(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const char *const keys[] = {"id", "label", "optional", "work", "peak", "roofs", NULL};
    static const kprof_json_array roofs = {"roofs", sizeof(kprof_roof_definition), read_roof};
    kprof_roofline_definition *roofline = element;
    const text_field fields[] = {{"id", true, &roofline->id}, {"label", true, &roofline->label}, {NULL, false, NULL}};
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = read_texts(place, value, fields);
    if (status == KPROF_OK)
        status = kprof_json_get_bool(place, value, "optional", &roofline->optional);
    if (status == KPROF_OK)
        status = read_member_item(place, value, "work", &roofline->work);
    if (status == KPROF_OK)
        status = read_member_item(place, value, "peak", &roofline->peak);
    kprof_json_list list = {NULL, 0};
    if (status == KPROF_OK)
        status = kprof_json_get_array(place, value, &roofs, &list);
    roofline->roofs = list.elements;
    roofline->roof_count = list.count;
    return status;
}

/* Chips differ in what they count, but no chip has a counter of another name. */
static kprof_status read_instructions(const kprof_json_place *place, const cJSON *value, kprof_section_definition *out)
{
    const kprof_json_place list = {place, "instructions", 0};
    kprof_status status = kprof_json_get_strings(place, value, "instructions", &out->instructions);
    for (char **name = out->instructions; name && *name && status == KPROF_OK; name++) {
        const kprof_instruction_metric *metric = kprof_instruction_metric_find(*name);
        const kprof_json_place at = {&list, NULL, (size_t)(name - out->instructions)};
        if (!metric || metric->kind != KPROF_INSTRUCTION_COUNTER || strcmp(metric->name, *name) != 0)
            status = kprof_json_fail(&at,
                                     "is \"%s\", which is no counter of instructions; kprof list metrics --metrics "
                                     "regex:^source: shows them",
                                     *name);
    }
    return status == KPROF_OK ? kprof_json_get_bool(place, value, "samples", &out->samples) : status;
}

static kprof_status read_bodies(const kprof_json_place *place, const cJSON *value, kprof_section_definition *out)
{
    static const kprof_json_array items = {"items", sizeof(kprof_item_definition), read_header_item};
    static const kprof_json_array tables = {"tables", sizeof(kprof_table_definition), read_table};
    static const kprof_json_array rooflines = {"rooflines", sizeof(kprof_roofline_definition), read_roofline};
    static const kprof_json_array timeline = {"timeline", sizeof(kprof_item_definition), read_timeline_item};
    kprof_json_list list;
    kprof_status status = kprof_json_get_array(place, value, &items, &list);
    out->items = list.elements;
    out->item_count = list.count;
    if (status != KPROF_OK)
        return status;
    status = kprof_json_get_array(place, value, &tables, &list);
    out->tables = list.elements;
    out->table_count = list.count;
    if (status != KPROF_OK)
        return status;
    status = kprof_json_get_array(place, value, &rooflines, &list);
    out->rooflines = list.elements;
    out->roofline_count = list.count;
    if (status != KPROF_OK)
        return status;
    status = kprof_json_get_array(place, value, &timeline, &list);
    out->timeline = list.elements;
    out->timeline_count = list.count;
    return status;
}

kprof_status kprof_section_definition_read(const kprof_json_place *place, const cJSON *value,
                                           kprof_section_definition *out)
{
    static const char *const keys[] = {"id",       "name",     "help",   "aliases",   "order",
                                       "priority", "items",    "tables", "rooflines", "instructions",
                                       "samples",  "timeline", NULL};
    *out = (kprof_section_definition){0};
    const text_field fields[] = {
        {"id", true, &out->id}, {"name", true, &out->name}, {"help", false, &out->help}, {NULL, false, NULL}};
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = read_texts(place, value, fields);
    if (status == KPROF_OK)
        status = kprof_json_get_strings(place, value, "aliases", &out->aliases);
    if (status == KPROF_OK)
        status = kprof_json_get_int(place, value, "order", &out->order);
    if (status == KPROF_OK)
        status = kprof_json_get_int(place, value, "priority", &out->priority);
    if (status == KPROF_OK)
        status = read_instructions(place, value, out);
    return status == KPROF_OK ? read_bodies(place, value, out) : status;
}

void kprof_item_definition_free(kprof_item_definition *item)
{
    for (size_t i = 0; i < item->choice_count; i++) {
        free(item->choices[i].text);
        kprof_expr_free(item->choices[i].compiled);
    }
    free(item->choices);
    free(item->name);
    free(item->label);
    free(item->unit);
    free(item->help);
}

static void free_table(kprof_table_definition *table)
{
    for (size_t i = 0; i < table->row_count; i++) {
        for (size_t j = 0; j < table->rows[i].cell_count; j++)
            kprof_item_definition_free(&table->rows[i].cells[j]);
        free(table->rows[i].cells);
        free(table->rows[i].label);
    }
    free(table->rows);
    free(table->id);
    free(table->title);
    kprof_strings_free(table->column_labels);
    kprof_strings_free(table->breakdowns);
    kprof_strings_free(table->uncollected);
}

static void free_roofline(kprof_roofline_definition *roofline)
{
    for (size_t i = 0; i < roofline->roof_count; i++) {
        free(roofline->roofs[i].label);
        kprof_item_definition_free(&roofline->roofs[i].traffic);
        kprof_item_definition_free(&roofline->roofs[i].peak);
    }
    free(roofline->roofs);
    free(roofline->id);
    free(roofline->label);
    kprof_item_definition_free(&roofline->work);
    kprof_item_definition_free(&roofline->peak);
}

void kprof_section_definition_free(kprof_section_definition *definition)
{
    for (size_t i = 0; i < definition->item_count; i++)
        kprof_item_definition_free(&definition->items[i]);
    for (size_t i = 0; i < definition->table_count; i++)
        free_table(&definition->tables[i]);
    for (size_t i = 0; i < definition->roofline_count; i++)
        free_roofline(&definition->rooflines[i]);
    for (size_t i = 0; i < definition->timeline_count; i++)
        kprof_item_definition_free(&definition->timeline[i]);
    free(definition->timeline);
    free(definition->items);
    free(definition->tables);
    free(definition->rooflines);
    free(definition->id);
    free(definition->name);
    free(definition->help);
    free(definition->path);
    kprof_strings_free(definition->aliases);
    kprof_strings_free(definition->instructions);
    *definition = (kprof_section_definition){0};
}
