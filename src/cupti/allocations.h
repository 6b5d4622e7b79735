/* The memory that the application has and kernels reach, known from its driver calls: what a snapshot saves. Arrays and
 * what the driver itself allocates are not in it. Thread-safe. */
#ifndef KPROF_CUPTI_ALLOCATIONS_H
#define KPROF_CUPTI_ALLOCATIONS_H

#include "cupti/calls.h"
#include "cupti/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Note what a call, which succeeded in `context`, allocated, mapped, freed or unmapped. */
void kprof_allocations_note(const kprof_memory_change *change, const void *context);
/* Changes when memory was added, or could not be. */
unsigned kprof_allocations_version(void);
/* The memory of a context, and of its device where it belongs to no context, as an array that the caller frees. False
 * when it is not known, because memory ran out. */
bool kprof_allocations_list(const void *context, int device, kprof_span **out, size_t *count);
/* List those of them that are managed. */
bool kprof_allocations_list_managed(const void *context, kprof_span **out, size_t *count);
/* List the memory of the host that kernels reach; that of the functions above is the device's or managed. */
bool kprof_allocations_list_host(kprof_span **out, size_t *count);
/* Return the size of the allocation that begins there, if it is one of this context alone and not managed; else 0. */
size_t kprof_allocations_size(uint64_t address, const void *context);
/* Is this physical memory known to be mapped nowhere yet? What a second mapping shows may be saved already. */
bool kprof_allocations_is_unmapped(unsigned long long handle);
/* The context ends, and its memory with it. Of memory that belongs to no context the driver is asked what is left, when
 * it is listed next. */
void kprof_allocations_forget(const void *context);

#endif
