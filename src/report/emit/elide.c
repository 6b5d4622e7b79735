/* Shortens kernel names for terminals. Names of templates have thousands of characters, and share most of them. */
#include "core/clean.h"
#include "core/names.h"
#include "report/emit/grid.h"

#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>

#define GAP "..."

/* Byte offset of the `count`-th code point. */
static size_t offset_of(const char *text, size_t count)
{
    size_t i = 0;
    for (; text[i]; i++)
        if (!kprof_utf8_continues(text[i]) && count-- == 0)
            break;
    return i;
}

/* A name on its way to being shortened. */
typedef struct long_name {
    const char *text;
    size_t index;  /* in the caller's list */
    size_t shared; /* bytes that it has in common with the name most like it, from the left */
} long_name;

KPROF_BY_TEXT(by_text, long_name, text)

/* In a sorted list, the name most like another one is one of its nearest neighbours that differ from it. */
static void find_shared(long_name *names, size_t count)
{
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; i + 1 < count; i++) {
        if (strcmp(names[i].text, names[i + 1].text) == 0)
            continue;
        size_t common = 0;
        while (names[i].text[common] && names[i].text[common] == names[i + 1].text[common])
            common++;
        for (size_t k = i + 1; k-- > 0 && strcmp(names[k].text, names[i].text) == 0;)
            names[k].shared = names[k].shared > common ? names[k].shared : common;
        for (size_t k = i + 1; k < count && strcmp(names[k].text, names[i + 1].text) == 0; k++)
            names[k].shared = names[k].shared > common ? names[k].shared : common;
    }
}

static void put_columns(kprof_strbuf *out, const char *text, size_t from, size_t count)
{
    const size_t start = offset_of(text, from);
    kprof_strbuf_append(out, text + start, offset_of(text + start, count));
}

/* Keep the beginning, which has the function's name, a little of the end, and between them the part that differs from
 * the most similar name. */
static char *shorten(const long_name *name, size_t width)
{
    const size_t total = kprof_text_width(name->text), kept = width - strlen(GAP), head = kept - kept / 4;
    const size_t tail = kept - head;
    const size_t differs = KPROF_SUM(i, name->shared, !kprof_utf8_continues(name->text[i])); /* in columns */
    kprof_strbuf out = KPROF_STRBUF_INIT;
    if (differs + 4 <= head || differs >= total - tail) {
        put_columns(&out, name->text, 0, head);
        kprof_strbuf_puts(&out, GAP);
        put_columns(&out, name->text, total - tail, tail);
        return kprof_strbuf_take(&out);
    }
    const size_t middle = (kept - strlen(GAP)) / 2, outer = kept - strlen(GAP) - middle, start = differs - middle / 3;
    put_columns(&out, name->text, 0, (outer + 1) / 2);
    kprof_strbuf_puts(&out, GAP);
    put_columns(&out, name->text, start, middle);
    if (start + middle < total - outer / 2)
        kprof_strbuf_puts(&out, GAP);
    const size_t end = start + middle > total - outer / 2 ? start + middle : total - outer / 2;
    put_columns(&out, name->text, end, total - end);
    return kprof_strbuf_take(&out);
}

/* If shortening made a name equal to an earlier one, replace its end by a number: "~2". */
static void tell_apart(char **text, size_t width, size_t number)
{
    char suffix[32];
    kprof_strbuf out = KPROF_STRBUF_INIT;
    snprintf(suffix, sizeof suffix, "~%zu", number);
    put_columns(&out, *text, 0, width - strlen(suffix));
    kprof_strbuf_puts(&out, suffix);
    free(*text);
    *text = kprof_strbuf_take(&out);
}

/* Short names in the order of `names`, whose equal ones are neighbours. */
static void shorten_all(const long_name *names, size_t count, size_t width, char **out)
{
    KPROF_AUTO(kprof_names) taken = {0};
    for (size_t i = 0; i < count; i++) {
        char **text = &out[names[i].index];
        if (i > 0 && strcmp(names[i].text, names[i - 1].text) == 0) {
            *text = kprof_strdup(out[names[i - 1].index]);
            continue;
        }
        *text = kprof_text_width(names[i].text) > width ? shorten(&names[i], width) : kprof_strdup(names[i].text);
        for (size_t number = 2; kprof_names_find(&taken, *text) != KPROF_NAMES_NONE; number++)
            tell_apart(text, width, number);
        kprof_names_add(&taken, *text, i);
    }
}

char **kprof_short_names_new(kprof_pool *pool, const char *const *names, size_t count, size_t width)
{
    KPROF_AUTO_FREE long_name *all = kprof_calloc(count + 1, sizeof *all);
    char **out = kprof_pool_calloc(pool, count + 1, sizeof *out);
    width = width > KPROF_SHORT_NAME ? width : KPROF_SHORT_NAME;
    for (size_t i = 0; i < count; i++) {
        /* The return type of a kernel is always the same. */
        const bool cut_void = kprof_text_width(names[i]) > width && strncmp(names[i], "void ", 5) == 0;
        all[i] = (long_name){cut_void ? names[i] + 5 : names[i], i, 0};
    }
    find_shared(all, count);
    shorten_all(all, count, width, out);
    for (size_t i = 0; i < count; i++)
        kprof_pool_keep(pool, out[i]);
    return out;
}
