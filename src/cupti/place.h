/* Tells where the driver has what is at an address. */
#pragma once

#include "cupti/allocations.h"
#include "cupti/driver.h"

/* Managed memory is the device's, what a snapshot holds of it tells more; while it stays on the host it is pinned. */
typedef enum kprof_place {
    KPROF_PLACE_DEVICE,
    KPROF_PLACE_PINNED,
    KPROF_PLACE_PAGEABLE,
    KPROF_PLACE_UNKNOWN
} kprof_place;

static inline kprof_place kprof_driver_find_place(const kprof_driver_api *driver, CUdeviceptr address)
{
    unsigned type = 0, managed = 0;
    CUresult result = driver->cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (result == CUDA_ERROR_INVALID_VALUE)
        return KPROF_PLACE_PAGEABLE;
    KPROF_THEN(result, driver->cuPointerGetAttribute_(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    if (result == CUDA_SUCCESS && managed != 0 && kprof_allocations_managed_stays())
        return KPROF_PLACE_PINNED;
    return result != CUDA_SUCCESS                         ? KPROF_PLACE_UNKNOWN
           : type == CU_MEMORYTYPE_DEVICE || managed != 0 ? KPROF_PLACE_DEVICE
           : type == CU_MEMORYTYPE_HOST                   ? KPROF_PLACE_PINNED
                                                          : KPROF_PLACE_UNKNOWN;
}

static inline bool kprof_place_is_hosts(kprof_place place)
{
    return place == KPROF_PLACE_PINNED || place == KPROF_PLACE_PAGEABLE;
}
