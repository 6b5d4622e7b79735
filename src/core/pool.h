/* Memory that is freed at once: what is taken from a pool lives until the pool is freed. The command line alone uses
 * pools, and ends where memory runs out. */
#pragma once

#include <stddef.h>

typedef struct kprof_pool {
    void **blocks; /* [count] */
    size_t count;
    struct kprof_pool *children, *next;
} kprof_pool;

/* A pool within another one, which frees it with all else unless somebody has done so before. */
kprof_pool *kprof_pool_child(kprof_pool *pool);

/* Let the pool free a block of malloc's. Returns the block, which may be NULL. */
void *kprof_pool_keep(kprof_pool *pool, void *block);
/* As calloc, and strdup of a text that may be NULL. */
void *kprof_pool_calloc(kprof_pool *pool, size_t count, size_t size);
char *kprof_pool_strdup(kprof_pool *pool, const char *text);
/* As KPROF_ADD: what the array was before it grew stays in the pool, too. */
#define KPROF_POOL_ADD(pool, array, count)                                                                             \
    ((__typeof__(array))kprof_pool_add((pool), (void **)&(array), &(count), sizeof *(array)))
void *kprof_pool_add(kprof_pool *pool, void **array, size_t *count, size_t size);
void kprof_pool_free(kprof_pool *pool); /* all blocks; the pool is empty then */
