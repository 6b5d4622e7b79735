/* Aligns two versions of a text by the lines that each has once. */
#include "report/diff/moves.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A line without the white space around it. */
typedef struct text_line {
    const char *text;
    size_t length, number;
} text_line;

/* The lines of both texts, each with the number of the line that it is in the other one, from 1; 0: none. */
typedef struct alignment {
    text_line *lines[2];
    size_t counts[2];
    uint32_t *other[2];
} alignment;

static int compare_texts(const void *left, const void *right)
{
    const text_line *a = left, *b = right;
    const int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order ? order : KPROF_COMPARE(a->length, b->length);
}

static text_line *read_lines(const kprof_source_text *text)
{
    text_line *lines = kprof_calloc(text->line_count + 1, sizeof *lines);
    for (size_t i = 0; i < text->line_count; i++) {
        const char *at = text->text + text->lines[i];
        const char *end = text->text + (i + 1 < text->line_count ? text->lines[i + 1] : text->size);
        while (at < end && isspace((unsigned char)*at))
            at++;
        while (end > at && isspace((unsigned char)end[-1]))
            end--;
        lines[i] = (text_line){at, (size_t)(end - at), i};
    }
    return lines;
}

static void join(alignment *of, size_t old, size_t new)
{
    of->other[0][old] = (uint32_t)(new + 1);
    of->other[1][new] = (uint32_t)(old + 1);
}

/* Join lines that are alike and not joined yet. */
static bool try_to_join(alignment *of, size_t old, size_t new)
{
    const bool is_free = old < of->counts[0] && new < of->counts[1] && of->other[0][old] == 0 && of->other[1][new] == 0;
    if (!is_free || compare_texts(&of->lines[0][old], &of->lines[1][new]) != 0)
        return false;
    join(of, old, new);
    return true;
}

/* The lines of a side that are not joined, in the order of their texts. Returns how many. */
static size_t take_free(const alignment *of, int side, text_line *sorted)
{
    size_t count = 0;
    for (size_t i = 0; i < of->counts[side]; i++)
        if (of->other[side][i] == 0 && of->lines[side][i].length > 0)
            sorted[count++] = of->lines[side][i];
    qsort(sorted, count, sizeof *sorted, compare_texts);
    return count;
}

/* How many texts are alike from here on. */
static size_t count_alike(const text_line *sorted, size_t at, size_t count)
{
    size_t end = at + 1;
    while (end < count && compare_texts(&sorted[at], &sorted[end]) == 0)
        end++;
    return end - at;
}

static void join_unique(alignment *of)
{
    text_line *old = kprof_calloc(of->counts[0] + 1, sizeof *old), *new = kprof_calloc(of->counts[1] + 1, sizeof *new);
    const size_t old_count = take_free(of, 0, old), new_count = take_free(of, 1, new);
    for (size_t i = 0, k = 0; i < old_count && k < new_count;) {
        const int order = compare_texts(&old[i], &new[k]);
        const size_t olds = order <= 0 ? count_alike(old, i, old_count) : 0;
        const size_t news = order >= 0 ? count_alike(new, k, new_count) : 0;
        if (olds == 1 && news == 1)
            join(of, old[i].number, new[k].number);
        i += olds;
        k += news;
    }
    KPROF_FREE(old, new);
}

/* Lines between two that are joined were edited, if there are as many as before. */
static void join_edited(alignment *of)
{
    for (size_t i = 0, from = 0, start = 0; i < of->counts[0]; i++) {
        if (of->other[0][i] == 0)
            continue;
        const size_t end = of->other[0][i] - 1;
        bool is_free = end >= start && end - start == i - from;
        for (size_t k = start; k < end && is_free; k++)
            is_free = of->other[1][k] == 0;
        while (from < i && is_free)
            join(of, from++, start++);
        from = i + 1;
        start = end + 1;
    }
}

void kprof_line_map_make(kprof_pool *pool, const kprof_source_text *from, const kprof_source_text *to,
                         kprof_line_map *out)
{
    alignment of = {.lines = {read_lines(from), read_lines(to)},
                    .counts = {from->line_count, to->line_count},
                    .other = {kprof_pool_calloc(pool, from->line_count + 1, sizeof(uint32_t)),
                              kprof_calloc(to->line_count + 1, sizeof(uint32_t))}};
    size_t last = 1;
    for (size_t i = 0; try_to_join(&of, i, i); i++)
        ;
    while (try_to_join(&of, of.counts[0] - last, of.counts[1] - last)) /* the place before the first line is none */
        last++;
    join_unique(&of);
    /* Join the neighbours of joined lines where they are alike. */
    for (size_t i = 0; i < of.counts[0]; i++)
        if (of.other[0][i] != 0)
            try_to_join(&of, i + 1, of.other[0][i]);
    for (size_t i = of.counts[0]; i-- > 1;)
        if (of.other[0][i] > 1)
            try_to_join(&of, i - 1, of.other[0][i] - 2);
    join_edited(&of);
    *out = (kprof_line_map){of.other[0], from->line_count};
    KPROF_FREE(of.lines[0], of.lines[1], of.other[1]);
}
