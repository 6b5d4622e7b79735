/* Strict reading of JSON: bounded, typed, and with an error that names the place. */
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
enum { MAX_TEXT = 2 << 20, MAX_VALUES = 65536, MAX_STRING = 8192, MAX_ELEMENTS = 8192 };

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
    kprof_strbuf where = KPROF_STRBUF_INIT;
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    put_place(&where, place);
    kprof_status status =
        kprof_fail(KPROF_BAD_METRICSET, "%s%s%s", where.data ? where.data : "", place->parent ? ": " : "", reason);
    kprof_strbuf_free(&where);
    return status;
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
    /* A zero byte would end a string of C. Backslashes stand in strings only, so what they escape can be found without
     * parsing. */
    const char *zero = strchr(text, '\\');
    while (zero && strncmp(zero, "\\u0000", 6) != 0)
        zero = zero[1] ? strchr(zero + 2, '\\') : NULL;
    if (zero)
        return fail_at(place, text, zero, "\\u0000 cannot stand in a text");
    cJSON *value = cJSON_ParseWithLengthOpts(text, length + 1, &end, true);
    if (!value && kprof_memory_was_lacking())
        return KPROF_NO_MEMORY;
    if (!value)
        return fail_at(place, text, end, "not valid JSON");
    if (count_values(value) > MAX_VALUES) {
        cJSON_Delete(value);
        return kprof_json_fail(place, "holds more than %d values; split it into several sections", MAX_VALUES);
    }
    *out = value;
    return KPROF_OK;
}

kprof_status kprof_json_check_object(const kprof_json_place *place, const cJSON *value, const char *const *keys)
{
    if (!cJSON_IsObject(value))
        return kprof_json_fail(place, "must be an object");
    const cJSON *member;
    cJSON_ArrayForEach(member, value)
    {
        kprof_json_place at = {place, member->string, 0};
        bool is_known = false;
        size_t count = 0;
        for (; keys[count]; count++)
            is_known = is_known || strcmp(member->string, keys[count]) == 0;
        if (!is_known) {
            const char *nearest = kprof_nearest(member->string, keys, count);
            return kprof_json_fail(&at, "is not a key that is known here%s%s%s", nearest ? "; did you mean \"" : "",
                                   nearest ? nearest : "", nearest ? "\"?" : "");
        }
        if (cJSON_GetObjectItemCaseSensitive(value, member->string) != member)
            return kprof_json_fail(&at, "is given twice");
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
        const kprof_json_place at = {place, child->string, index++};
        status = kprof_json_check_texts(&at, child);
    }
    return status;
}

static kprof_status copy_string(const kprof_json_place *place, const cJSON *value, char **out)
{
    if (!cJSON_IsString(value))
        return kprof_json_fail(place, "must be a string");
    size_t length = strlen(value->valuestring);
    if (length > MAX_STRING)
        return kprof_json_fail(place, "is longer than %d characters", MAX_STRING);
    for (const char *c = value->valuestring; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return kprof_json_fail(place, "holds a control character");
    }
    *out = kprof_strdup(value->valuestring);
    return *out ? KPROF_OK : KPROF_NO_MEMORY;
}

kprof_status kprof_json_get_string(const kprof_json_place *place, const cJSON *object, const char *key, char **out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    kprof_json_place at = {place, key, 0};
    return value ? copy_string(&at, value, out) : KPROF_OK;
}

kprof_status kprof_json_require_string(const kprof_json_place *place, const cJSON *object, const char *key, char **out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    kprof_json_place at = {place, key, 0};
    if (!value)
        return kprof_json_fail(&at, "is missing");
    if (cJSON_IsString(value) && value->valuestring[0] == '\0')
        return kprof_json_fail(&at, "must not be empty");
    return copy_string(&at, value, out);
}

kprof_status kprof_json_get_bool(const kprof_json_place *place, const cJSON *object, const char *key, bool *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    kprof_json_place at = {place, key, 0};
    if (!value)
        return KPROF_OK;
    if (!cJSON_IsBool(value))
        return kprof_json_fail(&at, "must be true or false");
    *out = cJSON_IsTrue(value);
    return KPROF_OK;
}

kprof_status kprof_json_get_int(const kprof_json_place *place, const cJSON *object, const char *key, int *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    kprof_json_place at = {place, key, 0};
    if (!value)
        return KPROF_OK;
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= INT_MIN && value->valuedouble <= INT_MAX) ||
        value->valuedouble != (double)(int)value->valuedouble)
        return kprof_json_fail(&at, "must be a whole number");
    *out = (int)value->valuedouble;
    return KPROF_OK;
}

kprof_status kprof_json_require_number(const kprof_json_place *place, const cJSON *object, const char *key, double *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    kprof_json_place at = {place, key, 0};
    if (!value)
        return kprof_json_fail(&at, "is missing");
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble))
        return kprof_json_fail(&at, "must be a number");
    *out = value->valuedouble;
    return KPROF_OK;
}

kprof_status kprof_json_get_word(const kprof_json_place *place, const cJSON *object, const char *key,
                                 const kprof_json_words *words)
{
    char *text = NULL;
    kprof_json_place at = {place, key, 0};
    kprof_status status = kprof_json_get_string(place, object, key, &text);
    if (status != KPROF_OK || !text)
        return status;
    size_t i = 0;
    while (i < words->count && strcmp(words->words[i], text) != 0)
        i++;
    free(text);
    if (i < words->count) {
        *words->out = (int)i;
        return KPROF_OK;
    }
    kprof_strbuf list = KPROF_STRBUF_INIT;
    for (i = 0; i < words->count; i++)
        kprof_strbuf_printf(&list, "%s\"%s\"", i ? ", " : "", words->words[i]);
    status = kprof_json_fail(&at, "must be one of %s", list.failed ? "a few words" : list.data);
    kprof_strbuf_free(&list);
    return status;
}

static kprof_status check_array(const kprof_json_place *place, const cJSON *value)
{
    if (!cJSON_IsArray(value))
        return kprof_json_fail(place, "must be a list");
    if (cJSON_GetArraySize(value) > MAX_ELEMENTS)
        return kprof_json_fail(place, "has more than %d elements", MAX_ELEMENTS);
    return KPROF_OK;
}

kprof_status kprof_json_get_strings(const kprof_json_place *place, const cJSON *object, const char *key, char ***out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    kprof_json_place at = {place, key, 0};
    if (!value)
        return KPROF_OK;
    kprof_status status = check_array(&at, value);
    if (status != KPROF_OK)
        return status;
    char **strings = calloc((size_t)cJSON_GetArraySize(value) + 1, sizeof(char *));
    if (!strings)
        return KPROF_NO_MEMORY;
    *out = strings;
    const cJSON *element;
    kprof_json_place in = {&at, NULL, 0};
    cJSON_ArrayForEach(element, value)
    {
        status = copy_string(&in, element, &strings[in.index]);
        if (status != KPROF_OK)
            return status;
        in.index++;
    }
    return KPROF_OK;
}

void kprof_strings_free(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

size_t kprof_strings_count(char *const *strings)
{
    size_t count = 0;
    while (strings && strings[count])
        count++;
    return count;
}

kprof_status kprof_json_get_array(const kprof_json_place *place, const cJSON *object, const kprof_json_array *array,
                                  kprof_json_list *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, array->key);
    kprof_json_place at = {place, array->key, 0};
    *out = (kprof_json_list){NULL, 0};
    if (!value)
        return KPROF_OK;
    kprof_status status = check_array(&at, value);
    if (status != KPROF_OK || !value->child)
        return status;
    out->count = (size_t)cJSON_GetArraySize(value);
    out->elements = calloc(out->count, array->element_size);
    if (!out->elements) {
        out->count = 0;
        return KPROF_NO_MEMORY;
    }
    const cJSON *element;
    kprof_json_place in = {&at, NULL, 0};
    cJSON_ArrayForEach(element, value)
    {
        status = array->read(&in, element, (char *)out->elements + in.index * array->element_size);
        if (status != KPROF_OK)
            return status;
        in.index++;
    }
    return KPROF_OK;
}
