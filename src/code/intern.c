/* A binary tree, balanced by the C library, finds the number of a text. */
#include "code/intern.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
    const char *text;
    uint32_t number;
} node;

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const node *)a)->text, ((const node *)b)->text);
}

static bool take(size_t *left, size_t bytes)
{
    if (bytes > *left)
        return false;
    *left -= bytes;
    return true;
}

kprof_status kprof_intern_text(kprof_intern *intern, const char *text, uint32_t *number)
{
    size_t bytes = strlen(text) + 1;
    if (!take(&intern->compared_left, bytes))
        return KPROF_UNSUPPORTED;
    node key = {text, 0};
    node *const *found = tfind(&key, &intern->root, compare_nodes);
    if (found) {
        *number = (*found)->number;
        return KPROF_OK;
    }
    if (!take(&intern->bytes_left, bytes))
        return KPROF_UNSUPPORTED;
    node *added = kprof_calloc(1, sizeof *added);
    kprof_strlist_add(intern->texts, text);
    *number = added->number = (uint32_t)(intern->texts->count - 1);
    added->text = intern->texts->items[added->number];
    if (!tsearch(added, &intern->root, compare_nodes))
        kprof_memory_note_lack();
    return KPROF_OK;
}

void kprof_intern_free(kprof_intern *intern)
{
    tdestroy(intern->root, free);
    intern->root = NULL;
}
