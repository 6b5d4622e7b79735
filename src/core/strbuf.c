/* The growing byte buffer, string lists, and the search for the name that somebody probably meant. */
#include "core/strbuf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void (*_Atomic at_lack)(void);

void kprof_memory_end_with(void (*end)(void))
{
    atomic_store(&at_lack, end);
}

void kprof_memory_note_lack(void)
{
    void (*end)(void) = atomic_exchange(&at_lack, NULL); /* which may ask for memory, too */
    if (end)
        end();
}

void *kprof_calloc(size_t count, size_t size)
{
    void *block = calloc(count, size);
    if (!block)
        kprof_memory_note_lack();
    return block;
}

void *kprof_realloc(void *block, size_t size)
{
    void *grown = realloc(block, size);
    if (!grown)
        kprof_memory_note_lack();
    return grown;
}

char *kprof_strdup(const char *text)
{
    return kprof_strndup(text, strlen(text));
}

char *kprof_strndup(const char *text, size_t size)
{
    char *copy = strndup(text, size);
    if (!copy)
        kprof_memory_note_lack();
    return copy;
}

char *kprof_strprintf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        kprof_memory_note_lack();
    return length < 0 ? NULL : text;
}

/* Make room for `extra` more bytes and the closing NUL. */
static bool reserve(kprof_strbuf *buf, size_t extra)
{
    if (buf->failed)
        return false;
    size_t needed = buf->length + extra + 1;
    if (extra < SIZE_MAX / 2 - buf->length && needed <= buf->capacity)
        return true;
    size_t capacity = buf->capacity * 2 > needed ? buf->capacity * 2 : needed;
    capacity = capacity < 64 ? 64 : capacity;
    char *data = extra < SIZE_MAX / 2 - buf->length ? realloc(buf->data, capacity) : NULL;
    if (!data) {
        buf->failed = true;
        kprof_memory_note_lack();
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void *kprof_strbuf_extend(kprof_strbuf *buf, size_t size)
{
    if (!reserve(buf, size))
        return NULL;
    buf->length += size;
    buf->data[buf->length] = '\0';
    return buf->data + buf->length - size;
}

void kprof_strbuf_append(kprof_strbuf *buf, const void *data, size_t size)
{
    void *end = kprof_strbuf_extend(buf, size);
    if (end && size)
        memcpy(end, data, size);
}

void kprof_strbuf_puts(kprof_strbuf *buf, const char *text)
{
    kprof_strbuf_append(buf, text, strlen(text));
}

void kprof_strbuf_quote(kprof_strbuf *buf, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+%@";
    if (*word && word[strspn(word, plain)] == '\0') {
        kprof_strbuf_puts(buf, word);
        return;
    }
    kprof_strbuf_puts(buf, "'");
    for (const char *c = word; *c; c++)
        kprof_strbuf_append(buf, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
    kprof_strbuf_puts(buf, "'");
}

kprof_strbuf *kprof_strbuf_part(kprof_strbuf *buf)
{
    if (buf->length > 0)
        kprof_strbuf_puts(buf, "; ");
    return buf;
}

void kprof_strbuf_printf(kprof_strbuf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int needed = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (needed < 0)
        buf->failed = true;
    else if (reserve(buf, (size_t)needed)) {
        vsnprintf(buf->data + buf->length, (size_t)needed + 1, format, again);
        buf->length += (size_t)needed;
    }
    va_end(again);
}

void kprof_strbuf_clear(kprof_strbuf *buf)
{
    buf->length = 0;
    buf->failed = false;
    if (buf->data)
        buf->data[0] = '\0';
}

void kprof_strbuf_free(kprof_strbuf *buf)
{
    free(buf->data);
    *buf = (kprof_strbuf)KPROF_STRBUF_INIT;
}

void kprof_strbuf_free_each(kprof_strbuf *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kprof_strbuf_free(texts[i]);
}

char *kprof_strbuf_take(kprof_strbuf *buf)
{
    if (!buf->data)
        kprof_strbuf_append(buf, "", 0);
    char *text = buf->data;
    if (buf->failed) {
        free(text);
        text = NULL;
    }
    *buf = (kprof_strbuf)KPROF_STRBUF_INIT;
    return text;
}

const char *kprof_strbuf_text(const kprof_strbuf *buf)
{
    return buf->length > 0 ? buf->data : "";
}

const char *kprof_strbuf_or_null(const kprof_strbuf *buf)
{
    return buf->length > 0 ? buf->data : NULL;
}

void *kprof_append(void **array, size_t count, size_t size)
{
    if ((count & (count - 1)) == 0) { /* full at every power of two */
        void *grown = kprof_realloc(*array, (count ? count * 2 : 1) * size);
        if (!grown)
            return NULL;
        *array = grown;
    }
    void *element = (char *)*array + count * size;
    memset(element, 0, size);
    return element;
}

void *kprof_add(void **array, size_t *count, size_t size)
{
    void *element = kprof_append(array, *count, size);
    *count += element != NULL;
    return element;
}

int kprof_yes_or_no(const char *text)
{
    static const char *const words[] = {"no", "yes", "off", "on", "0", "1", "false", "true"};
    const size_t at = KPROF_FIND(i, COUNT_OF(words), strcasecmp(words[i], text) == 0);
    return at < COUNT_OF(words) ? (int)(at % 2) : -1;
}

const char *kprof_after(const char *text, const char *start)
{
    const size_t length = strlen(start);
    return strncmp(text, start, length) == 0 ? text + length : NULL;
}

bool kprof_begins_with(const char *text, const char *start)
{
    return kprof_after(text, start) != NULL;
}

bool kprof_begins_with_one(const char *text, const char *const *starts)
{
    while (*starts && !kprof_begins_with(text, *starts))
        starts++;
    return *starts;
}

bool kprof_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

void kprof_free_each(void *const *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

void kprof_free_at(void *variable)
{
    free(*(void **)variable);
}

bool kprof_strlist_add(kprof_strlist *list, const char *text)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        char **items = realloc(list->items, capacity * sizeof *items);
        if (!items) {
            kprof_memory_note_lack();
            return false;
        }
        list->items = items;
        list->capacity = capacity;
    }
    char *copy = kprof_strdup(text);
    if (!copy)
        return false;
    list->items[list->count++] = copy;
    return true;
}

bool kprof_strlist_add_all(kprof_strlist *list, const kprof_strlist *texts)
{
    return KPROF_ALL(i, texts->count, kprof_strlist_add(list, texts->items[i]));
}

bool kprof_strlist_contains(const kprof_strlist *list, const char *text)
{
    return KPROF_ANY(i, list->count, strcmp(list->items[i], text) == 0);
}

bool kprof_strlist_take(kprof_strlist *list, char *text)
{
    KPROF_AUTO_FREE char *taken = text;
    return taken && kprof_strlist_add(list, taken);
}

bool kprof_strlist_take_unique(kprof_strlist *list, char *text)
{
    KPROF_AUTO_FREE char *taken = text;
    return taken && kprof_strlist_add_unique(list, taken);
}

bool kprof_strlist_add_unique(kprof_strlist *list, const char *text)
{
    return kprof_strlist_contains(list, text) || kprof_strlist_add(list, text);
}

bool kprof_strlist_add_all_unique(kprof_strlist *list, const kprof_strlist *texts)
{
    return KPROF_ALL(i, texts->count, kprof_strlist_add_unique(list, texts->items[i]));
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void kprof_strlist_sort(kprof_strlist *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), compare_texts);
}

bool kprof_strlist_contains_sorted(const kprof_strlist *list, const char *text)
{
    return list->count > 0 && bsearch(&text, list->items, list->count, sizeof(*list->items), compare_texts);
}

void kprof_strlist_free(kprof_strlist *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (kprof_strlist)KPROF_STRLIST_INIT;
}

void kprof_strlist_free_each(kprof_strlist *const *lists, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kprof_strlist_free(lists[i]);
}

/* Longer texts are compared by this many characters only; nobody retypes more. */
#define NEAREST_MAX_LENGTH 255

/* Not tolower(3): the answer must not depend on the program's locale. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits that turn a into b: insert, delete, replace or swap neighbours (optimal string alignment). */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NEAREST_MAX_LENGTH + 1];
    size_t *before = rows[0], *previous = rows[1], *current = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        previous[j] = before[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        current[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t same = lower(a[i - 1]) == lower(b[j - 1]);
            current[j] = min(min(previous[j], current[j - 1]) + 1, previous[j - 1] + !same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                current[j] = min(current[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = previous;
        previous = current;
        current = oldest;
    }
    return previous[b_length];
}

static bool contains(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && lower(text[i]) == lower(part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return false;
}

/* The shortest item that has `text` in it; two letters are in anything. */
static const char *shortest_containing(const char *text, const char *const *items, size_t count)
{
    const char *best = NULL;
    if (strlen(text) < 3)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (contains(items[i], text) && (!best || strlen(items[i]) < strlen(best)))
            best = items[i];
    return best;
}

#define NOT_NEAR SIZE_MAX

/* No fewer edits lie between texts than letters that only one of them has: soon counted, where edits take long. */
static size_t fewest_possible(const char *text, size_t text_length, const char *item, size_t length)
{
    int counts[UCHAR_MAX + 1] = {0};
    size_t lacking = 0, left_over = text_length;
    for (size_t i = 0; i < text_length; i++)
        counts[(unsigned char)lower(text[i])]++;
    for (size_t i = 0; i < length; i++) {
        bool is_shared = counts[(unsigned char)lower(item[i])]-- > 0;
        lacking += !is_shared;
        left_over -= is_shared;
    }
    return lacking > left_over ? lacking : left_over;
}

/* Edits between the texts, or NOT_NEAR if more than a share of the longer text's or of the typed letters differ. */
static size_t edits_between(const char *text, const char *item, bool strict)
{
    size_t text_length = strnlen(text, NEAREST_MAX_LENGTH), length = strnlen(item, NEAREST_MAX_LENGTH);
    size_t longer = length > text_length ? length : text_length;
    size_t shorter = min(length, text_length);
    /* Two fifths may differ: "vectorAddKernel" still finds "vectorAdd". */
    size_t share = strict ? text_length / 3 : longer * 2 / 5;
    size_t limit = share > 1 ? share : 1;
    if (longer - shorter > limit || shorter == 0 || fewest_possible(text, text_length, item, length) > limit)
        return NOT_NEAR;
    size_t distance = edit_distance(text, text_length, item, length);
    return distance <= limit && distance < longer ? distance : NOT_NEAR;
}

static const char *fewest_edits(const char *text, const char *const *items, size_t count, bool strict)
{
    const char *best = NULL;
    size_t best_distance = NOT_NEAR;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edits_between(text, items[i], strict);
        if (distance < best_distance) {
            best = items[i];
            best_distance = distance;
        }
    }
    return best;
}

const char *kprof_after_words(const char *text, const char *words)
{
    static const char gaps[] = " _-";
    for (words += strspn(words, gaps); *words; words += strspn(words, gaps)) {
        text += strspn(text, gaps);
        if (strncasecmp(text++, words++, 1) != 0)
            return NULL;
    }
    return text;
}

const char *kprof_nearest(const char *text, const char *const *items, size_t count)
{
    const char *best = fewest_edits(text, items, count, false);
    return best ? best : shortest_containing(text, items, count);
}

bool kprof_nearest_few(const char *text, const kprof_strlist *items, size_t most, kprof_strlist *out)
{
    size_t *distances = calloc(items->count + 1, sizeof *distances), added = 0;
    bool whole = distances != NULL;
    for (size_t i = 0; i < items->count && whole; i++)
        distances[i] = edits_between(text, items->items[i], false);
    for (; added < most && whole; added++) {
        size_t best = items->count;
        distances[best] = NOT_NEAR;
        for (size_t i = 0; i < items->count; i++)
            best = distances[i] < distances[best] ? i : best;
        if (best == items->count)
            break;
        whole = kprof_strlist_add(out, items->items[best]);
        distances[best] = NOT_NEAR;
    }
    free(distances);
    const char *container = added ? NULL : shortest_containing(text, (const char *const *)items->items, items->count);
    return whole && (!container || kprof_strlist_add(out, container));
}

const char *kprof_nearest_spelling(const char *text, const char *const *items, size_t count)
{
    return fewest_edits(text, items, count, true);
}
