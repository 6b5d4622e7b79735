/* Asks the system which pages the host has. */
#include "cupti/managed.h"

#include "core/strbuf.h"
#include "cupti/mappings.h"
#include "cupti/variables.h"

#include <stdlib.h>

/* With more managed memory, looking for the host's pages takes longer than 10 ms a launch. */
#define MOST_LOOKED_AT_BYTES ((size_t)8 << 30)

typedef struct span_list {
    kprof_span *items; /* [count], owned */
    size_t count;
} span_list;

static bool add_touched(span_list *list, uint64_t begin, uint64_t end)
{
    for (uint64_t at = begin; at < end;) {
        uint64_t from = at, to = end;
        if (!kprof_mappings_find_present(&from, &to))
            return true;
        if (!KPROF_APPEND(list->items, list->count))
            return false;
        list->items[list->count++] = (kprof_span){from, (size_t)(to - from)};
        at = to;
    }
    return true;
}

static bool add_allocations(span_list *list)
{
    KPROF_AUTO_FREE kprof_span *spans = NULL;
    size_t count, bytes = 0;
    bool known = kprof_allocations_list_managed(&spans, &count);
    for (size_t i = 0; known && i < count; i++) {
        bytes += spans[i].size_bytes;
        known = bytes <= MOST_LOOKED_AT_BYTES &&
                add_touched(list, spans[i].address, spans[i].address + spans[i].size_bytes);
    }
    return known;
}

static bool add_variables(span_list *list)
{
    kprof_variable *variables;
    size_t count;
    if (!kprof_variables_list(NULL, &variables, &count))
        return false;
    bool known = true;
    for (size_t i = 0; i < count && known; i++)
        if (variables[i].is_managed)
            known = variables[i].size_bytes > 0 &&
                    add_touched(list, variables[i].address, variables[i].address + variables[i].size_bytes);
    free(variables);
    return known;
}

bool kprof_managed_list_touched(kprof_span **out, size_t *count)
{
    span_list list = {0};
    bool known = add_allocations(&list) && add_variables(&list);
    if (!known)
        free(list.items);
    *out = known ? list.items : NULL;
    *count = known ? list.count : 0;
    return known;
}
