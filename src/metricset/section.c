/* Visits the values of resolved sections, joins sections, and writes them as JSON in the format of the set files. */
#include "metricset/section.h"

#include "core/names.h"
#include "metricset/json.h"

#include <string.h>

static cJSON *text_of(const char *text)
{
    return text ? cJSON_CreateString(text) : NULL;
}

static cJSON *put_item(const kprof_item *item)
{
    if (!item->name)
        return cJSON_CreateNull();
    return KPROF_JSON_OBJECT({item->expression ? "name" : "metric", text_of(item->name)},
                             {"expression", text_of(item->expression)}, {"label", text_of(item->label)},
                             {"unit", text_of(item->unit)}, {"help", text_of(item->help)});
}

static cJSON *put_items(const kprof_item *items, size_t count)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(array, put_item(&items[i]));
    return array;
}

static cJSON *put_table(const kprof_table *table)
{
    cJSON *rows = cJSON_CreateArray();
    for (size_t i = 0; i < table->row_count; i++)
        cJSON_AddItemToArray(rows, KPROF_JSON_OBJECT({"label", text_of(table->rows[i].label)},
                                                     {"cells", put_items(table->rows[i].cells, table->column_count)}));
    return KPROF_JSON_OBJECT(
        {"id", text_of(table->id)}, {"title", text_of(table->title)}, {"sorted", cJSON_CreateBool(table->sorted)},
        {"columns", cJSON_CreateStringArray((const char *const *)table->column_labels, (int)table->column_count)},
        {"rows", rows});
}

static cJSON *put_roofline(const kprof_roofline *line)
{
    cJSON *roofs = cJSON_CreateArray();
    for (size_t i = 0; i < line->roof_count; i++)
        cJSON_AddItemToArray(roofs, KPROF_JSON_OBJECT({"label", text_of(line->roofs[i].label)},
                                                      {"traffic", put_item(&line->roofs[i].traffic)},
                                                      {"peak", put_item(&line->roofs[i].peak)}));
    return KPROF_JSON_OBJECT({"id", text_of(line->id)}, {"label", text_of(line->label)},
                             {"work", put_item(&line->work)}, {"peak", put_item(&line->peak)}, {"roofs", roofs});
}

char *kprof_section_to_json(const kprof_section *section)
{
    cJSON *tables = cJSON_CreateArray(), *rooflines = cJSON_CreateArray();
    for (size_t i = 0; i < section->table_count; i++)
        cJSON_AddItemToArray(tables, put_table(&section->tables[i]));
    for (size_t i = 0; i < section->roofline_count; i++)
        cJSON_AddItemToArray(rooflines, put_roofline(&section->rooflines[i]));
    cJSON *json = KPROF_JSON_OBJECT(
        {"id", text_of(section->id)}, {"name", text_of(section->name)}, {"help", text_of(section->help)},
        {"order", cJSON_CreateNumber(section->order)}, {"items", put_items(section->items, section->item_count)},
        {"tables", tables}, {"rooflines", rooflines},
        {"timeline", section->timeline_count > 0 ? put_items(section->timeline, section->timeline_count) : NULL});
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
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
    for (size_t i = 0; i < section->roofline_count; i++) {
        visit(user, &section->rooflines[i].work, "work");
        visit(user, &section->rooflines[i].peak, "peak");
        for (size_t k = 0; k < section->rooflines[i].roof_count; k++) {
            visit(user, &section->rooflines[i].roofs[k].traffic, "traffic");
            visit(user, &section->rooflines[i].roofs[k].peak, "peak");
        }
    }
}

/* The values of a section; another definition of it may have more. */
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
    for (size_t i = 0; i < from->timeline_count; i++)
        if (!KPROF_ANY(k, count, strcmp(into->timeline[k].name, from->timeline[i].name) == 0))
            into->timeline[into->timeline_count++] = from->timeline[i];
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
