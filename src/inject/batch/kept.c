/* Keeps records until the launches' own records are written. */
#include "inject/batch/kept.h"

#include "core/strbuf.h"

#include <stdlib.h>

kprof_kept *kprof_kept_new(const char *text, size_t value_count)
{
    kprof_kept *made = calloc(1, sizeof *made);
    double *values = value_count > 0 ? calloc(value_count, sizeof *values) : NULL;
    char *copy = kprof_strdup(text);
    if (!made || !copy || (value_count > 0 && !values)) {
        KPROF_FREE(made, values, copy);
        return NULL;
    }
    made->text = copy;
    made->values = values;
    return made;
}

void kprof_kept_add(kprof_kept_list *list, kprof_kept *added, size_t value_count)
{
    if (list->last)
        list->last->next = added;
    else
        list->first = added;
    list->last = added;
    list->bytes += sizeof *added + value_count * sizeof *added->values;
}

void kprof_kept_free(kprof_kept_list *list)
{
    while (list->first) {
        kprof_kept *going = list->first;
        list->first = going->next;
        KPROF_FREE(going->text, going->values, going);
    }
    *list = (kprof_kept_list){0};
}
