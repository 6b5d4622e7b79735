/* Reads memory of this process that may not be there: the kernel copies it, so that a wrong address gives an error and
 * no fault. What one walk has read the next one gets in a single call. A reader belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory is kept in blocks of this size, of which each lies in one page. */
#define KPROF_MEMORY_BLOCK_BYTES 4096
/* So many are kept. */
#define KPROF_MEMORY_BLOCKS_MAX 256

typedef struct kprof_memory kprof_memory;

/* NULL when out of memory. */
kprof_memory *kprof_memory_new(void);
void kprof_memory_free(kprof_memory *memory);

/* Begin a walk: forget what was read, and read again what the walk before this one used. */
void kprof_memory_begin(kprof_memory *memory);
/* Copy `bytes` from `address`. False where there is no such memory. */
bool kprof_memory_read(kprof_memory *memory, uintptr_t address, void *out, size_t bytes);
