/* Keeps the cubins that the process loads, for those whose instructions are measured. Keeps nothing until asked to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Keep cubins from now on. Call it before the process loads the first one. */
void kprof_codes_keep(void);
/* Note a cubin as CUPTI shows it when a module is loaded: copies it, and asks CUPTI nothing. Thread-safe. */
void kprof_codes_add(const void *cubin, size_t size);
/* Find the cubin with this function among those with CUPTI's checksum, which is one of some 30 bytes: cubins of one
 * size often share it. Return its bytes, valid until kprof_codes_drop; NULL where it was not kept, or was dropped. *id
 * is CUPTI's checksum, and in its upper half one of the bytes if they are known, so that it tells such cubins apart.
 * Not within the loading of a module, and not while instructions are counted. Thread-safe. */
const void *kprof_codes_find(uint64_t crc, const char *function, size_t *size, uint64_t *id);
/* The bytes are not needed any more; small ones are kept to tell what has which function. Thread-safe. */
void kprof_codes_drop(uint64_t id);
