/* The application's call frees a small allocation of kprof's own instead. So it waits for the GPU as it would without
 * kprof, and fails where it would. */
#include "cupti/freed.h"

#include "core/config.h"
#include "core/strbuf.h"
#include "cupti/allocations.h"
#include "cupti/redirect.h"

/* Frees of more than this take the same path in the driver. */
#define MOST_INSTEAD_BYTES ((size_t)2 << 20)

/* Keep a quarter of free memory at most: the application may allocate more, and copies need space. */
#define MOST_KEPT_SHARE 4

static bool has_space(kprof_freed *freed, const kprof_driver_api *driver, size_t more_bytes)
{
    size_t free_bytes = 0, total_bytes;
    if (freed->most_bytes == 0 && driver->cuMemGetInfo_(&free_bytes, &total_bytes) == CUDA_SUCCESS &&
        free_bytes > KPROF_DEVICE_RESERVE_BYTES)
        freed->most_bytes = (free_bytes - KPROF_DEVICE_RESERVE_BYTES) / MOST_KEPT_SHARE;
    return freed->bytes <= freed->most_bytes && more_bytes <= freed->most_bytes - freed->bytes;
}

bool kprof_freed_keep(kprof_freed *freed, const void *context, CUdeviceptr *argument)
{
    const kprof_driver_api *driver;
    CUdeviceptr instead;
    if (*argument == 0) /* which frees nothing */
        return true;
    size_t bytes = kprof_allocations_size(*argument, context);
    if (bytes == 0 || kprof_driver_load(&driver) != KPROF_OK || !KPROF_APPEND(freed->addresses, freed->count) ||
        !has_space(freed, driver, bytes) || !kprof_redirect_works())
        return false;
    if (driver->cuMemAlloc_(&instead, bytes < MOST_INSTEAD_BYTES ? bytes : MOST_INSTEAD_BYTES) != CUDA_SUCCESS)
        return false;
    kprof_memory_change change = {.kind = KPROF_MEMORY_FREED, .address = *argument};
    kprof_allocations_note(&change, context); /* so that freeing it once more fails, as it would without kprof */
    freed->addresses[freed->count++] = *argument;
    freed->bytes += bytes;
    *argument = instead;
    return true;
}

void kprof_freed_let_go(kprof_freed *freed, const void *context)
{
    const kprof_driver_api *driver;
    CUcontext current = NULL;
    if (freed->count == 0 || kprof_driver_load(&driver) != KPROF_OK)
        return;
    if (driver->cuCtxGetCurrent_(&current) != CUDA_SUCCESS || current != context)
        return;
    for (size_t i = 0; i < freed->count; i++)
        (void)driver->cuMemFree_(freed->addresses[i]);
    freed->count = 0;
    freed->bytes = freed->most_bytes = 0;
}
