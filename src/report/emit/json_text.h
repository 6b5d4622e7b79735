/* The part that the formats made of JSON share: numbers, members of objects and arrays, and values written so that
 * their texts cannot steer a terminal. Keys are literals or live as long as the report's model. */
#pragma once

#include "metricset/json.h"
#include "report/emit/emit.h"

/* Numbers as text: cJSON's printing follows the locale and is slow. null: it is not finite. */
cJSON *kprof_json_number(double value);
cJSON *kprof_json_integer(int64_t value);

/* A cell of a launch; null where it is missing, unless its column always has a value. */
cJSON *kprof_json_cell(const kprof_column *column, const kprof_cell *cell);

/* A curve of theoretical occupancy. */
cJSON *kprof_json_what_if(const kprof_what_if *curve);

/* The labels of a table's columns. */
static inline cJSON *kprof_json_columns(const kprof_table *table)
{
    return cJSON_CreateStringArray((const char *const *)table->column_labels, (int)table->column_count);
}

/* A process, and all metrics that launches may show, with what each one means. */
cJSON *kprof_json_process(const kprof_model_process *process);
/* Say of a range that was measured as one that it is a range, and how many launches it has. */
void kprof_json_add_range(cJSON *object, const kprof_model *model, const kprof_model_launch *launch);
cJSON *kprof_json_metrics(const kprof_emit_launches *launches);

/* For the page that kprof's HTML has of code, which web/src/data.js reads: the object of the part "files", which all
 * codes of the page refer to by number, and an object of the part "code". */
cJSON *kprof_html_code_files(const kprof_code_profiles *profiles);
cJSON *kprof_html_code(const kprof_emit_code *code, kprof_source_view view);

/* Take a text over; null when it is empty. */
cJSON *kprof_json_take(kprof_strbuf *text);
/* A text of a finding with its values, as people read it. */
cJSON *kprof_json_found(const kprof_found *found, const char *text);

/* Write JSON, in which anything may stand in strings. */
void kprof_json_put_text(kprof_output *out, const char *text);
/* Print a value in one line, and free it. */
void kprof_json_write(kprof_emitter *emitter, cJSON *value);

static inline cJSON *known(bool is_known, int64_t value)
{
    return is_known ? kprof_json_integer(value) : cJSON_CreateNull();
}

static inline cJSON *text_of(const char *of)
{
    return of ? cJSON_CreateString(of) : cJSON_CreateNull();
}

static inline void append(cJSON *array, cJSON *value)
{
    cJSON_AddItemToArray(array, value);
}

static inline void add(cJSON *object, const char *key, cJSON *value)
{
    cJSON_AddItemToObjectCS(object, key, value);
}

static inline void add_text(cJSON *object, const char *key, const char *text)
{
    add(object, key, text_of(text));
}

static inline cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static inline cJSON *add_array(cJSON *object, const char *key)
{
    cJSON *array = cJSON_CreateArray();
    add(object, key, array);
    return array;
}

/* An array of the list's texts. */
static inline cJSON *texts_of(const kprof_strlist *list)
{
    return list->count > 0 ? cJSON_CreateStringArray((const char *const *)list->items, (int)list->count)
                           : cJSON_CreateArray();
}

static inline cJSON *add_object(cJSON *object, const char *key)
{
    cJSON *member = cJSON_CreateObject();
    add(object, key, member);
    return member;
}

static inline cJSON *append_object(cJSON *array)
{
    cJSON *object = cJSON_CreateObject();
    append(array, object);
    return object;
}
