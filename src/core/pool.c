/* Memory that is freed at once. */
#include "core/pool.h"

#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>

void *kprof_pool_keep(kprof_pool *pool, void *block)
{
    void **place = block ? KPROF_ADD(pool->blocks, pool->count) : NULL;
    if (place)
        *place = block;
    return block;
}

void *kprof_pool_calloc(kprof_pool *pool, size_t count, size_t size)
{
    return kprof_pool_keep(pool, kprof_calloc(count, size));
}

char *kprof_pool_strdup(kprof_pool *pool, const char *text)
{
    return text ? kprof_pool_keep(pool, kprof_strdup(text)) : NULL;
}

void *kprof_pool_add(kprof_pool *pool, void **array, size_t *count, size_t size)
{
    if ((*count & (*count - 1)) == 0) { /* full at every power of two */
        void *grown = kprof_pool_calloc(pool, *count ? *count * 2 : 1, size);
        if (*count > 0)
            memcpy(grown, *array, *count * size);
        *array = grown;
    }
    return memset((char *)*array + (*count)++ * size, 0, size);
}

kprof_pool *kprof_pool_child(kprof_pool *pool)
{
    kprof_pool *child = kprof_pool_calloc(pool, 1, sizeof *child);
    child->next = pool->children;
    return pool->children = child;
}

void kprof_pool_free(kprof_pool *pool)
{
    for (kprof_pool *child = pool->children; child; child = child->next)
        kprof_pool_free(child);
    for (size_t i = 0; i < pool->count; i++)
        free(pool->blocks[i]);
    free(pool->blocks);
    *pool = (kprof_pool){.next = pool->next};
}
