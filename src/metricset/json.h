/* Strict reading of JSON from anyone: every mistake is reported with the file, the path of the key and the reason. */
#pragma once

#include "core/pool.h"
#include "core/status.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Note a lack of memory in cJSON, too, which leaves out what it cannot add without a word. */
void kprof_json_watch(void);

/* The place of a value, for messages: a chain on the caller's stack from the value to the file. */
typedef struct kprof_json_place {
    const struct kprof_json_place *parent; /* NULL: the file */
    const char *name;                      /* of the file or the key; NULL: element `index` */
    size_t index;
    kprof_pool *pool; /* of the file: what is read is taken from it */
    bool cleans;      /* of the file: texts are made safe for people */
} kprof_json_place;
/* The place of a member of an object, or of an element of a list, which lives as long as the block around it. */
#define KPROF_JSON_KEY(place, key)       (&(kprof_json_place){.parent = (place), .name = (key)})
#define KPROF_JSON_ELEMENT(place, which) (&(kprof_json_place){.parent = (place), .index = (which)})
kprof_pool *kprof_json_pool(const kprof_json_place *place); /* of its file */

/* Log "<file>: items[3].label: <reason>" and return BAD_METRICSET. */
kprof_status kprof_json_fail(const kprof_json_place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Parse the whole text; BAD_METRICSET, with line and column, when it is not one JSON value, too long or too much. */
kprof_status kprof_json_parse(const kprof_json_place *place, const char *text, size_t length,
                              cJSON **out) KPROF_MUST_CHECK;

/* Check that no text within the value has control characters, marks of direction or bytes that are no UTF-8. */
kprof_status kprof_json_check_texts(const kprof_json_place *place, const cJSON *value) KPROF_MUST_CHECK;

/* Read a value of any kind into `out`. */
typedef kprof_status kprof_json_reader(const kprof_json_place *place, const cJSON *value, void *out);
/* A string is copied into a char *, bounded in length, and free of control characters. */
kprof_json_reader kprof_json_read_text;
/* `out` gets the place of a string among NULL-terminated words. */
kprof_status kprof_json_read_word(const kprof_json_place *place, const cJSON *value, const char *const *words,
                                  int *out) KPROF_MUST_CHECK;

typedef enum kprof_json_kind {
    KPROF_JSON_TEXT,  /* char *, as kprof_json_read_text */
    KPROF_JSON_FLAG,  /* bool */
    KPROF_JSON_WHOLE, /* int */
    KPROF_JSON_REAL,  /* double */
    KPROF_JSON_WORD,  /* an enum: the place among `words` */
    KPROF_JSON_TEXTS, /* char **, NULL-terminated */
    KPROF_JSON_ARRAY, /* an array of elements, zeroed before `read` reads each; NULL when absent or empty */
    KPROF_JSON_PART,  /* what `read` reads */
    KPROF_JSON_OTHER, /* known, but read by others */
} kprof_json_kind;

/* A member of an object, and where it goes in a struct. */
typedef struct kprof_json_field {
    const char *key; /* NULL ends a list */
    kprof_json_kind kind;
    size_t offset;
    bool is_needed;           /* it must be there, and a text must not be empty */
    size_t most;              /* characters of a text; 0: as many as any may have */
    const char *const *words; /* NULL-terminated */
    kprof_json_reader *read;
    size_t element_size, count_offset; /* of ARRAY; the count is set on failure too */
} kprof_json_field;
#define KPROF_JSON_FIELD(type, word, json_kind, member, ...)                                                           \
    {                                                                                                                  \
        .key = (word), .kind = KPROF_JSON_##json_kind, .offset = offsetof(type, member), __VA_ARGS__                   \
    }
#define KPROF_JSON_LIST(type, word, member, count, reader, element)                                                    \
    KPROF_JSON_FIELD(type, word, ARRAY, member, .read = (reader), .element_size = sizeof(element),                     \
                     .count_offset = offsetof(type, count))

/* A table of fields. */
#define KPROF_JSON_FIELDS(name, ...) static const kprof_json_field name[] = {__VA_ARGS__, {.key = NULL}}

/* Read an object with these members only, each once, in the order of the fields. Absent ones leave `out` as it was. */
kprof_status kprof_json_read(const kprof_json_place *place, const cJSON *value, const kprof_json_field *fields,
                             void *out) KPROF_MUST_CHECK;
/* The same of an object that has been checked, and may have others. */
kprof_status kprof_json_read_members(const kprof_json_place *place, const cJSON *object, const kprof_json_field *fields,
                                     void *out) KPROF_MUST_CHECK;

size_t kprof_strings_count(char *const *strings); /* 0 for NULL */

/* Writing: a member of an object, whose value is the object's then. Keys live as long as the object. */
typedef struct kprof_json_member {
    const char *key;
    cJSON *value; /* NULL: the object does not get the member */
} kprof_json_member;
#define KPROF_JSON_ADD(object, ...) kprof_json_add((object), (const kprof_json_member[]){__VA_ARGS__, {NULL, NULL}})
#define KPROF_JSON_OBJECT(...)      KPROF_JSON_ADD(cJSON_CreateObject(), __VA_ARGS__)
/* Add members, up to one without a key; returns the object. */
cJSON *kprof_json_add(cJSON *object, const kprof_json_member *members);
/* An array of these elements, at least one, which are its own then. */
#define KPROF_JSON_ARRAY(...) kprof_json_array((cJSON *const[]){__VA_ARGS__, NULL})
cJSON *kprof_json_array(cJSON *const *elements);
/* An array with a value for each index `i` below `count`. */
#define KPROF_JSON_EACH(i, count, value)                                                                               \
    __extension__({                                                                                                    \
        cJSON *each_##i = cJSON_CreateArray();                                                                         \
        for (size_t i = 0; i < (count); i++)                                                                           \
            cJSON_AddItemToArray(each_##i, (value));                                                                   \
        each_##i;                                                                                                      \
    })
