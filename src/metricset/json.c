/* Strict reading of JSON: bounded, typed, and with an error that names the place. */
#include "metricset/json.h"

#include "core/log.h"
#include "core/strbuf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 8 << 20, MAX_STRING = 8192, MAX_ELEMENTS = 8192 };

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

static kprof_status fail_syntax(const kprof_json_place *place, const char *text, const char *at)
{
    size_t line = 1;
    const char *start = text;
    for (const char *p = text; p < at; p++) {
        if (*p == '\n') {
            line++;
            start = p + 1;
        }
    }
    return kprof_json_fail(place, "line %zu, column %zu: not valid JSON", line, (size_t)(at - start) + 1);
}

kprof_status kprof_json_parse(const kprof_json_place *place, const char *text, size_t length, cJSON **out)
{
    const char *end = text;
    *out = NULL;
    if (length > MAX_TEXT)
        return kprof_json_fail(place, "longer than %d MB", MAX_TEXT >> 20);
    if (memchr(text, '\0', length))
        return kprof_json_fail(place, "holds a zero byte");
    cJSON *value = cJSON_ParseWithLengthOpts(text, length + 1, &end, true);
    if (!value)
        return fail_syntax(place, text, end);
    *out = value;
    return KPROF_OK;
}

static bool is_known(const char *key, const char *const *keys)
{
    for (; *keys; keys++) {
        if (strcmp(key, *keys) == 0)
            return true;
    }
    return false;
}

kprof_status kprof_json_check_object(const kprof_json_place *place, const cJSON *value, const char *const *keys)
{
    if (!cJSON_IsObject(value))
        return kprof_json_fail(place, "must be an object");
    const cJSON *member;
    cJSON_ArrayForEach(member, value)
    {
        kprof_json_place at = {place, member->string, 0};
        if (!is_known(member->string, keys)) {
            size_t count = 0;
            while (keys[count])
                count++;
            const char *nearest = kprof_nearest(member->string, keys, count);
            return kprof_json_fail(&at, "is not a key that is known here%s%s%s", nearest ? "; did you mean \"" : "",
                                   nearest ? nearest : "", nearest ? "\"?" : "");
        }
        if (cJSON_GetObjectItemCaseSensitive(value, member->string) != member)
            return kprof_json_fail(&at, "is given twice");
    }
    return KPROF_OK;
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
    *out = strdup(value->valuestring);
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
