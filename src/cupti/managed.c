/* Lists managed memory, and asks the system which pages of it the host has. */
#include "cupti/managed.h"

#include "core/strbuf.h"
#include "cupti/driver.h"
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

bool kprof_managed_list(kprof_span **out, size_t *count)
{
    kprof_variable *variables = NULL;
    size_t variable_count = 0;
    *out = NULL;
    bool known = kprof_allocations_list_managed(out, count) && kprof_variables_list(NULL, &variables, &variable_count);
    for (size_t i = 0; i < variable_count && known; i++) {
        if (!variables[i].is_managed)
            continue;
        known = variables[i].size_bytes > 0 && KPROF_APPEND(*out, *count);
        if (known)
            (*out)[(*count)++] = (kprof_span){variables[i].address, variables[i].size_bytes};
    }
    free(variables);
    if (known)
        return true;
    free(*out);
    *out = NULL;
    *count = 0;
    return false;
}

bool kprof_managed_list_touched(kprof_span **out, size_t *count)
{
    KPROF_AUTO_FREE kprof_span *spans = NULL;
    span_list list = {0};
    size_t span_count, bytes = 0;
    bool known = kprof_managed_list(&spans, &span_count);
    for (size_t i = 0; known && i < span_count; i++) {
        bytes += spans[i].size_bytes;
        known = bytes <= MOST_LOOKED_AT_BYTES &&
                add_touched(&list, spans[i].address, spans[i].address + spans[i].size_bytes);
    }
    if (!known)
        free(list.items);
    *out = known ? list.items : NULL;
    *count = known ? list.count : 0;
    return known;
}

bool kprof_managed_moves_freely(void)
{
    const kprof_driver_api *driver;
    CUdevice device = -1;
    int concurrent = 0;
    return kprof_driver_load(&driver) == KPROF_OK && driver->cuCtxGetDevice_(&device) == CUDA_SUCCESS &&
           driver->cuDeviceGetAttribute_(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device) ==
               CUDA_SUCCESS &&
           concurrent;
}
