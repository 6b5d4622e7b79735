/* A growing byte buffer, growing arrays, and lists of strings. An allocation failure is remembered, not fatal: check
 * `failed` once at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kprof_strbuf {
    char *data; /* NUL-terminated when length > 0; NULL when empty and never grown */
    size_t length, capacity;
    bool failed;
} kprof_strbuf;

#define KPROF_STRBUF_INIT                                                                                              \
    {                                                                                                                  \
        NULL, 0, 0, false                                                                                              \
    }

/* Call `end`, which does not return, as soon as memory runs out in a buffer, a list or below. The command line does so.
 * What only the command line has need not check whether it got memory; within applications nothing ends, and what runs
 * there gets NULL or false. */
void kprof_memory_end_with(void (*end)(void));
void kprof_memory_note_lack(void);

/* As calloc, realloc, strdup and strndup. */
void *kprof_calloc(size_t count, size_t size);
void *kprof_realloc(void *block, size_t size);
char *kprof_strdup(const char *text);
char *kprof_strndup(const char *text, size_t size);
/* Likewise a text as printf makes it. */
char *kprof_strprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

void kprof_strbuf_append(kprof_strbuf *buf, const void *data, size_t size);
/* Append this many bytes for the caller to fill in; NULL when out of memory. */
void *kprof_strbuf_extend(kprof_strbuf *buf, size_t size);
void kprof_strbuf_puts(kprof_strbuf *buf, const char *text);
void kprof_strbuf_printf(kprof_strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append a word of a command line: if it is empty or has other characters than a shell takes as they are, in quotes. */
void kprof_strbuf_quote(kprof_strbuf *buf, const char *word);
/* Begin another part of a list: append "; " unless the buffer is empty. Returns the buffer. */
kprof_strbuf *kprof_strbuf_part(kprof_strbuf *buf);
void kprof_strbuf_clear(kprof_strbuf *buf); /* length 0, keeps the memory */
void kprof_strbuf_free(kprof_strbuf *buf);
/* Free each of several. */
#define KPROF_FREE_TEXTS(...)                                                                                          \
    kprof_strbuf_free_each((kprof_strbuf *[]){__VA_ARGS__}, sizeof((kprof_strbuf *[]){__VA_ARGS__}) / sizeof(void *))
void kprof_strbuf_free_each(kprof_strbuf *const *texts, size_t count);
/* Take the text out (caller frees; "" when empty) and leave the buffer empty; NULL when it had failed. */
char *kprof_strbuf_take(kprof_strbuf *buf);
/* Its text so far, which is never NULL; with _or_null it is when empty. */
const char *kprof_strbuf_text(const kprof_strbuf *buf);
const char *kprof_strbuf_or_null(const kprof_strbuf *buf);

/* Add an element, set to zero, behind the `count` of an array that has grown so from its first on; NULL when out of
 * memory. The caller counts it. */
#define KPROF_APPEND(array, count) ((__typeof__(array))kprof_append((void **)&(array), (count), sizeof *(array)))
/* The same, and count it. */
#define KPROF_ADD(array, count) ((__typeof__(array))kprof_add((void **)&(array), &(count), sizeof *(array)))
void *kprof_append(void **array, size_t count, size_t size);
void *kprof_add(void **array, size_t *count, size_t size);

/* The elements of an array. */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
/* -1, 0 or 1, as qsort asks it of two numbers. Evaluates each twice. */
#define KPROF_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* Make a function `name` for qsort and its like, of elements of a type, by a member that is a text, or a number. */
#define KPROF_BY_TEXT(name, type, member)                                                                              \
    static int name(const void *a, const void *b)                                                                      \
    {                                                                                                                  \
        return strcmp(((const type *)a)->member, ((const type *)b)->member);                                           \
    }
#define KPROF_BY_NUMBER(name, type, member)                                                                            \
    static int name(const void *a, const void *b)                                                                      \
    {                                                                                                                  \
        return KPROF_COMPARE(((const type *)a)->member, ((const type *)b)->member);                                    \
    }
/* By the first of two expressions about two elements, `a` and `b`, that is not 0. */
#define KPROF_BY_BOTH(name, type, first, second)                                                                       \
    static int name(const void *left, const void *right)                                                               \
    {                                                                                                                  \
        const type *a = left;                                                                                          \
        const type *b = right;                                                                                         \
        const int order = (first);                                                                                     \
        return order ? order : (second);                                                                               \
    }

/* Is an expression about the index `i` true for any, or for all, of `count` elements? Ends at the first that decides.
 */
#define KPROF_ANY(i, count, is_so)                                                                                     \
    __extension__({                                                                                                    \
        bool any_##i = false;                                                                                          \
        for (size_t i = 0; i < (count) && !any_##i; i++)                                                               \
            any_##i = (is_so);                                                                                         \
        any_##i;                                                                                                       \
    })
#define KPROF_ALL(i, count, is_so) (!KPROF_ANY(i, count, !(is_so)))
/* The index of the first; `count`: of none. */
#define KPROF_FIND(i, count, is_it)                                                                                    \
    __extension__({                                                                                                    \
        size_t i = 0;                                                                                                  \
        while (i < (count) && !(is_it))                                                                                \
            i++;                                                                                                       \
        i;                                                                                                             \
    })

/* The first element, as `it`, or NULL. */
#define KPROF_FIRST(it, array, count, is_it)                                                                           \
    __extension__({                                                                                                    \
        size_t left_##it = (count);                                                                                    \
        __typeof__((array) + 0) it = (array);                                                                          \
        for (; left_##it > 0 && !(is_it); left_##it--)                                                                 \
            it++;                                                                                                      \
        left_##it > 0 ? it : NULL;                                                                                     \
    })
/* The sum of an expression that is not below 0, or of a real number; of a condition: how often it is true. */
#define KPROF_SUM(i, count, value)                                                                                     \
    __extension__({                                                                                                    \
        size_t i = 0;                                                                                                  \
        __typeof__((value) + (size_t)0) sum_##i = 0;                                                                   \
        for (; i < (count); i++)                                                                                       \
            sum_##i += (value);                                                                                        \
        sum_##i;                                                                                                       \
    })

/* As in ncu: "yes", "on", "1" and "true" give 1, "no", "off", "0" and "false" 0, in any case, and other texts -1. */
int kprof_yes_or_no(const char *text);
const char *kprof_after(const char *text, const char *start); /* what follows it; NULL: the text begins otherwise */
bool kprof_begins_with(const char *text, const char *start);
bool kprof_begins_with_one(const char *text, const char *const *starts); /* NULL ends these */
bool kprof_ends_with(const char *text, const char *end);

/* Free each of several blocks. */
#define KPROF_FREE(...) kprof_free_each((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
void kprof_free_each(void *const *blocks, size_t count);

/* Before a variable: it is freed as its block ends, on whatever way. So return early, and hand nothing of it out.
 * KPROF_AUTO(type) takes a struct with a function `type`_free, which must bear to be called twice. */
#define KPROF_AUTO(type) __attribute__((cleanup(type##_free))) type
#define KPROF_AUTO_FREE  __attribute__((cleanup(kprof_free_at)))
void kprof_free_at(void *variable);

/* An owned list of owned strings. */
typedef struct kprof_strlist {
    char **items;
    size_t count, capacity;
} kprof_strlist;

#define KPROF_STRLIST_INIT                                                                                             \
    {                                                                                                                  \
        NULL, 0, 0                                                                                                     \
    }

/* Append a copy; _add_unique only if it is new. False when out of memory, here and below. */
bool kprof_strlist_add(kprof_strlist *list, const char *text);
bool kprof_strlist_add_unique(kprof_strlist *list, const char *text);
/* The same with a text that the list frees in any case; false for NULL, too. */
bool kprof_strlist_take(kprof_strlist *list, char *text);
bool kprof_strlist_take_unique(kprof_strlist *list, char *text);
bool kprof_strlist_contains(const kprof_strlist *list, const char *text);
/* Sort by bytes; a list that is sorted so can be searched without walking it. */
void kprof_strlist_sort(kprof_strlist *list);
bool kprof_strlist_contains_sorted(const kprof_strlist *list, const char *text);
/* Append a whole list, or its new items. */
bool kprof_strlist_add_all(kprof_strlist *list, const kprof_strlist *texts);
bool kprof_strlist_add_all_unique(kprof_strlist *list, const kprof_strlist *texts);
void kprof_strlist_free(kprof_strlist *list);
/* Free each of several. */
#define KPROF_FREE_LISTS(...)                                                                                          \
    kprof_strlist_free_each((kprof_strlist *[]){__VA_ARGS__}, sizeof((kprof_strlist *[]){__VA_ARGS__}) / sizeof(void *))
void kprof_strlist_free_each(kprof_strlist *const *lists, size_t count);
/* Return the rest of `text` behind these words, NULL if it does not begin with them. Case does not matter, nor whether
 * blanks, underscores, hyphens or nothing part them. */
const char *kprof_after_words(const char *text, const char *words);
/* The item that `text` probably means: the nearest by edit distance, else the shortest that contains it, ignoring
 * case; NULL when none is near enough. */
const char *kprof_nearest(const char *text, const char *const *items, size_t count);
/* Append the `most` nearest to `out`, the nearest first: those that kprof_nearest would suggest if the nearer ones were
 * not there. None may be near enough. False when out of memory. */
bool kprof_nearest_few(const char *text, const kprof_strlist *items, size_t most, kprof_strlist *out);
/* As kprof_nearest, for a small vocabulary: only an item that differs from `text` in at most a third of its letters. */
const char *kprof_nearest_spelling(const char *text, const char *const *items, size_t count);
