/* The memory that the application has and kernels reach, known from its driver calls: what a snapshot saves. Arrays and
 * what the driver itself allocates are not in it. Thread-safe. */
#pragma once

#include "cupti/driver_call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum kprof_memory_change_kind {
    KPROF_MEMORY_UNCHANGED = 0,
    KPROF_MEMORY_OF_CONTEXT, /* the call brought memory of its context: address and size */
    KPROF_MEMORY_MANAGED,    /* likewise, and the host reaches it, too */
    KPROF_MEMORY_OF_HOST,    /* pinned or registered: kernels of all contexts reach it */
    KPROF_MEMORY_OF_DEVICE,  /* it brought memory of a pool, likewise */
    KPROF_MEMORY_FREED,      /* it freed the memory at the address */
    KPROF_MEMORY_ACCESSED,   /* it set who reaches mapped memory: address, size and access */
    KPROF_MEMORY_UNMAPPED,   /* address and size */
    KPROF_MEMORY_CREATED,    /* it made physical memory, which is mapped nowhere yet: handle */
    KPROF_MEMORY_USED,       /* such memory has been mapped, or is gone: handle */
} kprof_memory_change_kind;

typedef struct kprof_memory_change {
    kprof_memory_change_kind kind; /* tells which of the following are set */
    uint64_t address;
    size_t size_bytes;
    unsigned long long handle;
    const CUmemAccessDesc *access; /* [access_count], the application's */
    size_t access_count;
} kprof_memory_change;

/* From now on managed memory stays on the host while a batch is open, or not: kernels that are repeated do not reach
 * it, so that no snapshot has it. No batch may be open. */
void kprof_allocations_let_managed_stay(bool stays);
bool kprof_allocations_managed_stays(void);
/* Note what a call, which succeeded in `context`, allocated, mapped, freed or unmapped. */
void kprof_allocations_note(const kprof_memory_change *change, const void *context);
/* Changes when memory was added, or could not be. */
unsigned kprof_allocations_version(void);
/* The memory of a context, and of its device where it belongs to no context, and managed memory unless that stays on
 * the host, as an array that the caller frees. False when it is not known, because memory ran out. */
bool kprof_allocations_list(const void *context, int device, kprof_span **out, size_t *count);
/* List managed memory, which kernels of all contexts reach. */
bool kprof_allocations_list_managed(kprof_span **out, size_t *count);
/* List the memory of the host that kernels reach; that of the functions above is the device's or managed. */
bool kprof_allocations_list_host(kprof_span **out, size_t *count);
/* Add up the memory that is not the host's, of all contexts and devices. 0: not known. */
uint64_t kprof_allocations_bytes(void);
/* Return the size of the allocation that begins there, if it is one of this context alone and not managed; else 0. */
size_t kprof_allocations_size(uint64_t address, const void *context);
/* Find the allocation that begins there: kind and size. It may be of any context, since any may free it. False if none
 * is known. */
bool kprof_allocations_find(uint64_t address, kprof_memory_change *out);
/* Is this physical memory known to be unmapped? A second mapping would show memory that may be saved already. */
bool kprof_allocations_is_unmapped(unsigned long long handle);
/* The context ends, and its memory with it. The next list asks the driver what memory of no context is left. */
void kprof_allocations_forget(const void *context);
