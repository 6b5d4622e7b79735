/* Builds JSON for the emitters that write it: members of objects and arrays. Keys are literals or live as long as the
 * report's model. */
#ifndef KPROF_REPORT_JSON_VALUES_H
#define KPROF_REPORT_JSON_VALUES_H

#include "report/emit/json_text.h"

static inline cJSON *known(bool is_known, int64_t value)
{
    return is_known ? kprof_json_integer(value) : cJSON_CreateNull();
}

static inline void add(cJSON *object, const char *key, cJSON *value)
{
    cJSON_AddItemToObjectCS(object, key, value);
}

static inline void add_text(cJSON *object, const char *key, const char *text)
{
    add(object, key, text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

static inline cJSON *add_array(cJSON *object, const char *key)
{
    cJSON *array = cJSON_CreateArray();
    add(object, key, array);
    return array;
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
    cJSON_AddItemToArray(array, object);
    return object;
}

/* Sizes of a grid, a block or a cluster. */
static inline cJSON *shape(bool is_known, const uint32_t dimensions[3])
{
    if (!is_known)
        return cJSON_CreateNull();
    cJSON *array = cJSON_CreateArray();
    for (int i = 0; i < 3; i++)
        cJSON_AddItemToArray(array, kprof_json_integer(dimensions[i]));
    return array;
}

#endif
