/* Keeps the cubins that the process loads, for those whose instructions are measured. Keeps nothing until asked to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Keep cubins from now on. Call it before the process loads the first one. */
void kprof_codes_keep(void);
/* Note a cubin as CUPTI shows it when a module is loaded: copies it, and asks CUPTI nothing. Thread-safe. */
void kprof_codes_add(const void *cubin, size_t size);
/* Find the cubin that has CUPTI's checksum: its bytes, valid until kprof_codes_drop. NULL when it was not kept. Not
 * within the loading of a module, and not while instructions are counted. Thread-safe. */
const void *kprof_codes_find(uint64_t crc, size_t *size);
/* Its bytes are not needed any more. Thread-safe. */
void kprof_codes_drop(uint64_t crc);
