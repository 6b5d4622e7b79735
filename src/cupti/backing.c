/* Chunks that are filled one after the other. */
#include "cupti/backing.h"

#include "core/config.h"
#include "core/log.h"
#include "core/memory.h"

#include <stdbool.h>
#include <stdlib.h>

#define ALIGNMENT         ((size_t)256)
#define LEAST_CHUNK_BYTES ((size_t)32 << 20)
#define CHUNK_GRANULE     ((size_t)2 << 20)
#define MEGABYTE          1e6
#define HOST_SHARE        4 /* page-locked memory takes no more than this share of what is left: it cannot be swapped */

struct kprof_backing_chunk {
    kprof_backing_chunk *next;
    CUdeviceptr address;
    size_t size_bytes, used_bytes, marked_bytes;
};

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static CUresult allocate(const kprof_backing *backing, const kprof_driver_api *driver, size_t bytes, CUdeviceptr *out)
{
    void *host = NULL;
    if (!backing->is_host)
        return driver->cuMemAlloc_(out, bytes);
    const size_t left_bytes = kprof_memory_available_bytes("");
    if (left_bytes > 0 && bytes > left_bytes / HOST_SHARE)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = driver->cuMemAllocHost_(&host, bytes);
    *out = (CUdeviceptr)(uintptr_t)host;
    return result;
}

static kprof_status add_chunk(kprof_backing *backing, const kprof_driver_api *driver, size_t least_bytes)
{
    const size_t wanted = round_up(least_bytes, CHUNK_GRANULE);
    const size_t bytes = wanted > LEAST_CHUNK_BYTES ? wanted : LEAST_CHUNK_BYTES;
    size_t free_bytes = 0, total_bytes = 0;
    CUresult result = backing->is_host ? CUDA_SUCCESS : driver->cuMemGetInfo_(&free_bytes, &total_bytes);
    if (!backing->is_host && result == CUDA_SUCCESS && bytes + KPROF_DEVICE_RESERVE_BYTES > free_bytes)
        return kprof_fail(KPROF_NO_MEMORY,
                          "keeping memory for a replay takes %.0f MB of the device, and %.0f MB are free",
                          (double)bytes / MEGABYTE, (double)free_bytes / MEGABYTE);
    kprof_backing_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to keep track of copies");
    KPROF_THEN(result, allocate(backing, driver, bytes, &chunk->address));
    if (result != CUDA_SUCCESS) {
        free(chunk);
        return kprof_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? KPROF_NO_MEMORY : KPROF_INTERNAL,
                          "%.0f MB of memory to keep copies in: %s", (double)bytes / MEGABYTE,
                          kprof_driver_error(result));
    }
    chunk->size_bytes = bytes;
    chunk->next = backing->chunks;
    backing->chunks = chunk;
    return KPROF_OK;
}

kprof_status kprof_backing_grow(kprof_backing *backing, const kprof_driver_api *driver, size_t bytes)
{
    return add_chunk(backing, driver, bytes + ALIGNMENT);
}

kprof_status kprof_backing_reserve(kprof_backing *backing, const kprof_driver_api *driver, size_t bytes, size_t largest)
{
    size_t left = 0, wanted = bytes + largest + ALIGNMENT;
    for (const kprof_backing_chunk *c = backing->chunks; c; c = c->next)
        if (c->size_bytes - c->used_bytes > largest)
            left += c->size_bytes - c->used_bytes - largest; /* pieces may leave so much of a chunk unused */
    if (left >= wanted)
        return KPROF_OK;
    return add_chunk(backing, driver, wanted - left + largest);
}

CUdeviceptr kprof_backing_take(kprof_backing *backing, size_t bytes)
{
    size_t wanted = round_up(bytes, ALIGNMENT);
    for (kprof_backing_chunk *c = backing->chunks; c; c = c->next)
        if (c->size_bytes - c->used_bytes >= wanted) {
            CUdeviceptr address = c->address + c->used_bytes;
            c->used_bytes += wanted;
            return address;
        }
    return 0;
}

size_t kprof_backing_bytes(const kprof_backing *backing)
{
    size_t bytes = 0;
    for (const kprof_backing_chunk *c = backing->chunks; c; c = c->next)
        bytes += c->size_bytes;
    return bytes;
}

void kprof_backing_mark(kprof_backing *backing)
{
    for (kprof_backing_chunk *c = backing->chunks; c; c = c->next)
        c->marked_bytes = c->used_bytes;
}

void kprof_backing_rewind(kprof_backing *backing)
{
    for (kprof_backing_chunk *c = backing->chunks; c; c = c->next)
        c->used_bytes = c->marked_bytes;
}

void kprof_backing_reset(kprof_backing *backing)
{
    for (kprof_backing_chunk *c = backing->chunks; c; c = c->next)
        c->used_bytes = c->marked_bytes = 0;
}

void kprof_backing_release(kprof_backing *backing, const kprof_driver_api *driver, bool lives)
{
    while (backing->chunks) {
        kprof_backing_chunk *chunk = backing->chunks;
        backing->chunks = chunk->next;
        if (lives && backing->is_host)
            (void)driver->cuMemFreeHost_((void *)(uintptr_t)chunk->address);
        else if (lives)
            (void)driver->cuMemFree_(chunk->address);
        free(chunk);
    }
}
