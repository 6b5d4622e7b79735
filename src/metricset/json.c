/* Strict reading of JSON: bounded, typed, and with an error that names the place; and writing. */
#include "metricset/json.h"

#include "core/clean.h"
#include "core/log.h"
#include "core/strbuf.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bound what a file may hold. A value of two bytes takes hundreds in memory. */
enum { MAX_TEXT = 2 << 20, MAX_VALUES = 65536, MAX_STRING = 8192, MAX_ELEMENTS = 8192, MAX_KEYS = 32 };

static void *allocate(size_t size)
{
    void *block = malloc(size);
    if (!block)
        kprof_memory_note_lack();
    return block;
}

void kprof_json_watch(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){allocate, free});
}

static const kprof_json_place *file_of(const kprof_json_place *place)
{
    while (place->parent)
        place = place->parent;
    return place;
}

kprof_pool *kprof_json_pool(const kprof_json_place *place)
{
    return file_of(place)->pool;
}

static void put_place(kprof_strbuf *text, const kprof_json_place *place)
{
    if (!place->parent) {
        kprof_strbuf_printf(text, "%s: ", place->name);
        return;
    }
    put_place(text, place->parent);
    bool first = !place->parent->parent;
    if (place->name)
        kprof_strbuf_printf(text, "%s%s", first ? "" : ".", place->name);
    else
        kprof_strbuf_printf(text, "[%zu]", place->index);
}

kprof_status kprof_json_fail(const kprof_json_place *place, const char *format, ...)
{
    KPROF_AUTO(kprof_strbuf) where = KPROF_STRBUF_INIT;
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    put_place(&where, place);
    return kprof_fail(KPROF_BAD_METRICSET, "%s%s%s", kprof_strbuf_text(&where), place->parent ? ": " : "", reason);
}

static kprof_status fail_at(const kprof_json_place *place, const char *text, const char *at, const char *reason)
{
    size_t line = 1;
    const char *start = text;
    for (const char *p = text; p < at; p++) {
        if (*p == '\n') {
            line++;
            start = p + 1;
        }
    }
    return kprof_json_fail(place, "line %zu, column %zu: %s", line, (size_t)(at - start) + 1, reason);
}

/* Count a value and all within it; cJSON bounds the depth. */
static size_t count_values(const cJSON *value)
{
    size_t count = 1;
    for (const cJSON *child = value->child; child; child = child->next)
        count += count_values(child);
    return count;
}

kprof_status kprof_json_parse(const kprof_json_place *place, const char *text, size_t length, cJSON **out)
{
    const char *end = text;
    *out = NULL;
    if (length > MAX_TEXT)
        return kprof_json_fail(place, "is longer than %d MB; split it into several sections", MAX_TEXT >> 20);
    if (memchr(text, '\0', length))
        return kprof_json_fail(place, "holds a zero byte");
    /* A zero byte would end a string of C. Backslashes stand in strings only: no parsing finds what they escape. */
    const char *zero = strchr(text, '\\');
    while (zero && !kprof_begins_with(zero, "\\u0000"))
        zero = zero[1] ? strchr(zero + 2, '\\') : NULL;
    if (zero)
        return fail_at(place, text, zero, "\\u0000 cannot stand in a text");
    cJSON *value = cJSON_ParseWithLengthOpts(text, length + 1, &end, true);
    if (!value)
        return fail_at(place, text, end, "not valid JSON");
    if (count_values(value) > MAX_VALUES) {
        cJSON_Delete(value);
        return kprof_json_fail(place, "holds more than %d values; split it into several sections", MAX_VALUES);
    }
    *out = value;
    return KPROF_OK;
}

static kprof_status check_object(const kprof_json_place *place, const cJSON *value, const kprof_json_field *fields)
{
    const char *keys[MAX_KEYS];
    size_t count = 0;
    if (!cJSON_IsObject(value))
        return kprof_json_fail(place, "must be an object");
    for (; fields[count].key && count < MAX_KEYS; count++)
        keys[count] = fields[count].key;
    const cJSON *member;
    cJSON_ArrayForEach(member, value)
    {
        const kprof_json_place *at = KPROF_JSON_KEY(place, member->string);
        const bool is_known = KPROF_ANY(i, count, strcmp(member->string, keys[i]) == 0);
        if (!is_known) {
            const char *nearest = kprof_nearest(member->string, keys, count);
            return kprof_json_fail(at, "is not a key that is known here%s%s%s", nearest ? "; did you mean \"" : "",
                                   nearest ? nearest : "", nearest ? "\"?" : "");
        }
        if (cJSON_GetObjectItemCaseSensitive(value, member->string) != member)
            return kprof_json_fail(at, "is given twice");
    }
    return KPROF_OK;
}

kprof_status kprof_json_check_texts(const kprof_json_place *place, const cJSON *value)
{
    kprof_status status = KPROF_OK;
    if (cJSON_IsString(value) && !kprof_text_is_clean(value->valuestring))
        return kprof_json_fail(place, "holds a control character, a mark of direction or bytes that are no UTF-8");
    size_t index = 0;
    for (const cJSON *child = value->child; child && status == KPROF_OK; child = child->next) {
        const kprof_json_place at = {.parent = place, .name = child->string, .index = index++};
        status = kprof_json_check_texts(&at, child);
    }
    return status;
}

kprof_status kprof_json_read_text(const kprof_json_place *place, const cJSON *value, void *out)
{
    if (!cJSON_IsString(value))
        return kprof_json_fail(place, "must be a string");
    size_t length = strlen(value->valuestring);
    if (length > MAX_STRING)
        return kprof_json_fail(place, "is longer than %d characters", MAX_STRING);
    for (const char *c = value->valuestring; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return kprof_json_fail(place, "holds a control character");
    const kprof_json_place *file = file_of(place);
    *(char **)out = kprof_pool_keep(file->pool, file->cleans ? kprof_clean_text(value->valuestring)
                                                             : kprof_strdup(value->valuestring));
    return KPROF_OK;
}

static kprof_status read_field_text(const kprof_json_place *place, const cJSON *value, const kprof_json_field *field,
                                    char **out)
{
    kprof_status status = kprof_json_read_text(place, value, out);
    if (status == KPROF_OK && field->is_needed && **out == '\0')
        return kprof_json_fail(place, "must not be empty");
    if (status == KPROF_OK && field->most > 0 && strlen(value->valuestring) > field->most)
        return kprof_json_fail(place, "is longer than %zu characters", field->most);
    return status;
}

static kprof_status read_whole(const kprof_json_place *place, const cJSON *value, int *out)
{
    const double number = cJSON_IsNumber(value) ? value->valuedouble : NAN;
    if (!(number >= INT_MIN && number <= INT_MAX) || number != (double)(int)number)
        return kprof_json_fail(place, "must be a whole number");
    *out = (int)number;
    return KPROF_OK;
}

kprof_status kprof_json_read_word(const kprof_json_place *place, const cJSON *value, const char *const *words, int *out)
{
    char *text = NULL;
    kprof_status status = kprof_json_read_text(place, value, &text);
    if (status != KPROF_OK)
        return status;
    int found = 0;
    while (words[found] && strcmp(words[found], text) != 0)
        found++;
    if (words[found]) {
        *out = found;
        return KPROF_OK;
    }
    KPROF_AUTO(kprof_strbuf) list = KPROF_STRBUF_INIT;
    for (size_t i = 0; words[i]; i++)
        kprof_strbuf_printf(&list, "%s\"%s\"", i ? ", " : "", words[i]);
    return kprof_json_fail(place, "must be one of %s", kprof_strbuf_text(&list));
}

/* *out has what was read, on failure too. */
typedef struct list {
    void *elements;
    size_t count;
} list;

static kprof_status read_list(const kprof_json_place *place, const cJSON *value, const kprof_json_field *field,
                              list *out)
{
    if (!cJSON_IsArray(value))
        return kprof_json_fail(place, "must be a list");
    const size_t count = (size_t)cJSON_GetArraySize(value);
    if (count > MAX_ELEMENTS)
        return kprof_json_fail(place, "has more than %d elements", MAX_ELEMENTS);
    const bool are_texts = field->kind == KPROF_JSON_TEXTS;
    const size_t size = are_texts ? sizeof(char *) : field->element_size;
    if (count == 0 && !are_texts)
        return KPROF_OK;
    out->elements = kprof_pool_calloc(kprof_json_pool(place), count + 1, size);
    out->count = count;
    const cJSON *element;
    kprof_json_place in = {.parent = place};
    cJSON_ArrayForEach(element, value)
    {
        void *to = (char *)out->elements + in.index * size;
        kprof_status status = (are_texts ? kprof_json_read_text : field->read)(&in, element, to);
        if (status != KPROF_OK)
            return status;
        in.index++;
    }
    return KPROF_OK;
}

static kprof_status read_member(const kprof_json_place *place, const cJSON *value, const kprof_json_field *field,
                                void *out)
{
    void *member = (char *)out + field->offset;
    list read = {NULL, 0};
    kprof_status status;
    switch (field->kind) {
    case KPROF_JSON_TEXT:
        return read_field_text(place, value, field, member);
    case KPROF_JSON_FLAG:
        *(bool *)member = cJSON_IsTrue(value);
        return cJSON_IsBool(value) ? KPROF_OK : kprof_json_fail(place, "must be true or false");
    case KPROF_JSON_WHOLE:
        return read_whole(place, value, member);
    case KPROF_JSON_REAL:
        *(double *)member = cJSON_IsNumber(value) ? value->valuedouble : NAN;
        return isfinite(*(double *)member) ? KPROF_OK : kprof_json_fail(place, "must be a number");
    case KPROF_JSON_WORD:
        return kprof_json_read_word(place, value, field->words, member);
    case KPROF_JSON_TEXTS:
    case KPROF_JSON_ARRAY:
        status = read_list(place, value, field, &read);
        *(void **)member = read.elements;
        if (field->kind == KPROF_JSON_ARRAY)
            *(size_t *)((char *)out + field->count_offset) = read.count;
        return status;
    case KPROF_JSON_PART:
        return field->read(place, value, member);
    default:
        return KPROF_OK;
    }
}

kprof_status kprof_json_read_members(const kprof_json_place *place, const cJSON *object, const kprof_json_field *fields,
                                     void *out)
{
    kprof_status status = KPROF_OK;
    for (; fields->key && status == KPROF_OK; fields++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, fields->key);
        const kprof_json_place *at = KPROF_JSON_KEY(place, fields->key);
        if (value)
            status = read_member(at, value, fields, out);
        else if (fields->is_needed)
            status = kprof_json_fail(at, "is missing");
    }
    return status;
}

kprof_status kprof_json_read(const kprof_json_place *place, const cJSON *value, const kprof_json_field *fields,
                             void *out)
{
    kprof_status status = check_object(place, value, fields);
    return KPROF_THEN(status, kprof_json_read_members(place, value, fields, out));
}

size_t kprof_strings_count(char *const *strings)
{
    size_t count = 0;
    while (strings && strings[count])
        count++;
    return count;
}

cJSON *kprof_json_add(cJSON *object, const kprof_json_member *members)
{
    for (; members->key; members++)
        if (members->value)
            cJSON_AddItemToObjectCS(object, members->key, members->value);
    return object;
}

cJSON *kprof_json_array(cJSON *const *elements)
{
    cJSON *array = cJSON_CreateArray();
    for (; *elements; elements++)
        cJSON_AddItemToArray(array, *elements);
    return array;
}
