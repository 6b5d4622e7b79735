/* Strict reading of JSON from anyone: every mistake is reported with the file, the path of the key and the reason. */
#ifndef KPROF_METRICSET_JSON_H
#define KPROF_METRICSET_JSON_H

#include "core/status.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Let kprof_memory_was_lacking know from now on of cJSON, which leaves out what it cannot add without a word. */
void kprof_json_watch(void);

/* The place of a value, for messages: a chain on the caller's stack from the value to the file. */
typedef struct kprof_json_place {
    const struct kprof_json_place *parent; /* NULL: the file */
    const char *name;                      /* of the file or the key; NULL: element `index` */
    size_t index;
} kprof_json_place;

/* Log "<file>: items[3].label: <reason>" and return BAD_METRICSET. */
kprof_status kprof_json_fail(const kprof_json_place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Parse the whole text; BAD_METRICSET, with line and column, when it is not one JSON value, too long or of too many
 * values. */
kprof_status kprof_json_parse(const kprof_json_place *place, const char *text, size_t length,
                              cJSON **out) KPROF_MUST_CHECK;

/* Check that the value is an object with keys of the NULL-terminated list only, each at most once. */
kprof_status kprof_json_check_object(const kprof_json_place *place, const cJSON *value,
                                     const char *const *keys) KPROF_MUST_CHECK;

/* Check that no text within the value has control characters, marks of direction or bytes that are no UTF-8. */
kprof_status kprof_json_check_texts(const kprof_json_place *place, const cJSON *value) KPROF_MUST_CHECK;

/* Read a member of a checked object. An absent member leaves *out as it was; kprof_json_require_string makes that an
 * error. A string is copied (caller frees), bounded in length, and free of control characters. */
kprof_status kprof_json_get_string(const kprof_json_place *place, const cJSON *object, const char *key,
                                   char **out) KPROF_MUST_CHECK;
kprof_status kprof_json_require_string(const kprof_json_place *place, const cJSON *object, const char *key,
                                       char **out) KPROF_MUST_CHECK;
kprof_status kprof_json_get_bool(const kprof_json_place *place, const cJSON *object, const char *key,
                                 bool *out) KPROF_MUST_CHECK;
kprof_status kprof_json_get_int(const kprof_json_place *place, const cJSON *object, const char *key,
                                int *out) KPROF_MUST_CHECK;
/* A number of any kind, which must be there. */
kprof_status kprof_json_require_number(const kprof_json_place *place, const cJSON *object, const char *key,
                                       double *out) KPROF_MUST_CHECK;
/* A word of a small vocabulary: `out` gets its place among them. */
typedef struct kprof_json_words {
    const char *const *words; /* [count] */
    size_t count;
    int *out;
} kprof_json_words;
kprof_status kprof_json_get_word(const kprof_json_place *place, const cJSON *object, const char *key,
                                 const kprof_json_words *words) KPROF_MUST_CHECK;
/* Read an array of strings as a NULL-terminated list (caller frees with kprof_strings_free). */
kprof_status kprof_json_get_strings(const kprof_json_place *place, const cJSON *object, const char *key,
                                    char ***out) KPROF_MUST_CHECK;
void kprof_strings_free(char **strings);
size_t kprof_strings_count(char *const *strings); /* 0 for NULL */

/* An array of objects: its place, the size of a C element, and the function that reads one into zeroed memory. */
typedef struct kprof_json_array {
    const char *key;
    size_t element_size;
    kprof_status (*read)(const kprof_json_place *place, const cJSON *value, void *element);
} kprof_json_array;
typedef struct kprof_json_list {
    void *elements; /* zeroed before reading; NULL when absent or empty */
    size_t count;   /* set on failure too, so that the caller frees what was read */
} kprof_json_list;
kprof_status kprof_json_get_array(const kprof_json_place *place, const cJSON *object, const kprof_json_array *array,
                                  kprof_json_list *out) KPROF_MUST_CHECK;

#endif
