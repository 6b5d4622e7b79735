/* Reads the JSON of a section, from the set files or from a report, into definitions. */
#include "metricset/definition.h"
#include "metricset/instruction.h"

#include <string.h>

enum { MAX_COLUMNS = 32, MAX_LABEL = 512 };

/* Names and labels are repeated, for cells and in tables as wide as the longest; helps are not. */
#define LABEL(type, member, ...)                                                                                       \
    KPROF_JSON_FIELD(kprof_##type##_definition, #member, TEXT, member, .most = MAX_LABEL, __VA_ARGS__)
#define NEEDED(type, member)      LABEL(type, member, .is_needed = true)
#define FIELD(type, kind, member) KPROF_JSON_FIELD(kprof_##type##_definition, #member, kind, member)
#define LIST(type, word, member, count, reader, element)                                                               \
    KPROF_JSON_LIST(kprof_##type##_definition, word, member, count, reader, kprof_##element##_definition)
#define PART(type, member, reader)                                                                                     \
    KPROF_JSON_FIELD(kprof_##type##_definition, #member, PART, member, .is_needed = true, .read = (reader))

static kprof_status add_choice(const kprof_json_place *place, kprof_item_definition *item, char *text)
{
    kprof_choice *choice = &item->choices[item->choice_count++];
    choice->text = text;
    if (kprof_expr_parse(kprof_json_pool(place), text, &choice->compiled) != KPROF_OK)
        return kprof_json_fail(place, "is not an expression");
    if (!item->name && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")])
        return kprof_json_fail(place,
                               "must be the name of a metric; an expression needs a \"name\" to be stored under");
    return KPROF_OK;
}

kprof_status kprof_item_choices_read(const kprof_json_place *place, const cJSON *value, kprof_item_definition *item)
{
    struct texts {
        char *first, **others;
    } texts = {NULL, NULL};
    const char *key = item->name ? "expression" : "metric";
    const kprof_json_field fields[] = {KPROF_JSON_FIELD(struct texts, key, TEXT, first, .is_needed = true),
                                       KPROF_JSON_FIELD(struct texts, "alternatives", TEXTS, others),
                                       {.key = NULL}};
    kprof_status status = kprof_json_read_members(place, value, fields, &texts);
    const size_t count = kprof_strings_count(texts.others);
    item->choices = kprof_pool_calloc(kprof_json_pool(place), 1 + count, sizeof(*item->choices));
    KPROF_THEN(status, add_choice(KPROF_JSON_KEY(place, key), item, texts.first));
    for (size_t i = 0; i < count && status == KPROF_OK; i++)
        status = add_choice(KPROF_JSON_ELEMENT(KPROF_JSON_KEY(place, "alternatives"), i), item, texts.others[i]);
    return status;
}

static kprof_status check_kind(const kprof_json_place *place, const cJSON *value, const kprof_item_definition *item)
{
    if (!item->name && cJSON_HasObjectItem(value, "expression"))
        return kprof_json_fail(KPROF_JSON_KEY(place, "expression"),
                               "needs a \"name\" beside it, under which the value is stored");
    if (item->name && cJSON_HasObjectItem(value, "metric"))
        return kprof_json_fail(KPROF_JSON_KEY(place, "metric"),
                               "is its own name: leave out \"name\", or give an \"expression\"");
    return KPROF_OK;
}

/* An item is an object, or in short the name of a metric. */
static kprof_status read_item(const kprof_json_place *place, const cJSON *value, void *element)
{
    KPROF_JSON_FIELDS(fields, LABEL(item, name), LABEL(item, label), LABEL(item, unit), FIELD(item, TEXT, help),
                      {.key = "metric", .kind = KPROF_JSON_OTHER}, {.key = "expression", .kind = KPROF_JSON_OTHER},
                      {.key = "alternatives", .kind = KPROF_JSON_OTHER}, FIELD(item, FLAG, optional),
                      FIELD(item, FLAG, linked), FIELD(item, WHOLE, priority));
    kprof_item_definition *item = element;
    if (cJSON_IsString(value)) {
        kprof_pool *pool = kprof_json_pool(place);
        item->choices = kprof_pool_calloc(pool, 1, sizeof(*item->choices));
        return add_choice(place, item, kprof_pool_strdup(pool, value->valuestring));
    }
    kprof_status status = kprof_json_read(place, value, fields, item);
    KPROF_THEN(status, check_kind(place, value, item));
    return KPROF_THEN(status, kprof_item_choices_read(place, value, item));
}

static kprof_status read_header_item(const kprof_json_place *place, const cJSON *value, void *element)
{
    kprof_item_definition *item = element;
    kprof_status status = read_item(place, value, item);
    return status == KPROF_OK && !item->label ? kprof_json_fail(KPROF_JSON_KEY(place, "label"), "is missing") : status;
}

/* A sample has the value of one metric, so nothing is computed of several here. */
static kprof_status read_timeline_item(const kprof_json_place *place, const cJSON *value, void *element)
{
    kprof_item_definition *item = element;
    kprof_status status = read_header_item(place, value, item);
    return status == KPROF_OK && item->name
               ? kprof_json_fail(KPROF_JSON_KEY(place, "name"), "is for expressions; a timeline has metrics")
               : status;
}

/* null is an empty cell: no choices. */
static kprof_status read_cell(const kprof_json_place *place, const cJSON *value, void *element)
{
    return cJSON_IsNull(value) ? KPROF_OK : read_item(place, value, element);
}

static kprof_status read_row(const kprof_json_place *place, const cJSON *value, void *element)
{
    KPROF_JSON_FIELDS(fields, NEEDED(row, label), FIELD(row, FLAG, optional),
                      LIST(row, "cells", cells, cell_count, read_cell, item));
    return kprof_json_read(place, value, fields, element);
}

static kprof_status check_table(const kprof_json_place *place, const kprof_table_definition *table)
{
    size_t columns = kprof_strings_count(table->column_labels);
    const kprof_json_place *column_place = KPROF_JSON_KEY(place, "columns");
    if (columns == 0 || columns > MAX_COLUMNS)
        return kprof_json_fail(column_place, "must name 1 to %d columns", MAX_COLUMNS);
    for (size_t i = 0; i < columns; i++)
        if (strlen(table->column_labels[i]) > MAX_LABEL)
            return kprof_json_fail(KPROF_JSON_ELEMENT(column_place, i), "is longer than %d characters", MAX_LABEL);
    for (size_t i = 0; i < table->row_count; i++)
        if (table->rows[i].cell_count != columns)
            return kprof_json_fail(KPROF_JSON_ELEMENT(KPROF_JSON_KEY(place, "rows"), i),
                                   "has %zu cells, but the table has %zu columns", table->rows[i].cell_count, columns);
    if (table->breakdowns && columns != 1)
        return kprof_json_fail(column_place, "must be one column in a table with a \"breakdown\"");
    return KPROF_OK;
}

static kprof_status read_table(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const kprof_json_field fields[] = {
        NEEDED(table, id),
        NEEDED(table, title),
        FIELD(table, FLAG, sorted),
        KPROF_JSON_FIELD(kprof_table_definition, "columns", TEXTS, column_labels),
        KPROF_JSON_FIELD(kprof_table_definition, "breakdown", TEXTS, breakdowns),
        KPROF_JSON_FIELD(kprof_table_definition, "not_collected", TEXTS, uncollected),
        LIST(table, "rows", rows, row_count, read_row, row),
        {.key = NULL}};
    kprof_status status = kprof_json_read(place, value, fields, element);
    return KPROF_THEN(status, check_table(place, element));
}

static kprof_status read_roof(const kprof_json_place *place, const cJSON *value, void *element)
{
    KPROF_JSON_FIELDS(fields, NEEDED(roof, label), FIELD(roof, FLAG, optional), PART(roof, traffic, read_item),
                      PART(roof, peak, read_item));
    return kprof_json_read(place, value, fields, element);
}

static kprof_status read_roofline(const kprof_json_place *place, const cJSON *value, void *element)
{
    KPROF_JSON_FIELDS(fields, NEEDED(roofline, id), NEEDED(roofline, label), FIELD(roofline, FLAG, optional),
                      PART(roofline, work, read_item), PART(roofline, peak, read_item),
                      LIST(roofline, "roofs", roofs, roof_count, read_roof, roof));
    return kprof_json_read(place, value, fields, element);
}

/* Chips differ in what they count, but no chip has a counter of another name. */
static kprof_status check_instructions(const kprof_json_place *place, const kprof_section_definition *section)
{
    for (size_t i = 0; section->instructions && section->instructions[i]; i++) {
        const char *name = section->instructions[i];
        const kprof_instruction_metric *metric = kprof_instruction_metric_find(name);
        if (!metric || metric->kind != KPROF_INSTRUCTION_COUNTER || strcmp(metric->name, name) != 0)
            return kprof_json_fail(KPROF_JSON_ELEMENT(KPROF_JSON_KEY(place, "instructions"), i),
                                   "is \"%s\", which is no counter of instructions; kprof list metrics --metrics "
                                   "regex:^source: shows them",
                                   name);
    }
    return KPROF_OK;
}

kprof_status kprof_section_definition_read(const kprof_json_place *place, const cJSON *value,
                                           kprof_section_definition *out)
{
    static const kprof_json_field fields[] = {
        NEEDED(section, id),
        NEEDED(section, name),
        FIELD(section, TEXT, help),
        FIELD(section, TEXTS, aliases),
        FIELD(section, TEXTS, held_by),
        FIELD(section, WHOLE, order),
        FIELD(section, WHOLE, priority),
        FIELD(section, TEXTS, instructions),
        FIELD(section, FLAG, samples),
        LIST(section, "items", items, item_count, read_header_item, item),
        LIST(section, "tables", tables, table_count, read_table, table),
        LIST(section, "rooflines", rooflines, roofline_count, read_roofline, roofline),
        LIST(section, "timeline", timeline, timeline_count, read_timeline_item, item),
        {.key = NULL}};
    *out = (kprof_section_definition){0};
    kprof_status status = kprof_json_read(place, value, fields, out);
    return KPROF_THEN(status, check_instructions(place, out));
}
