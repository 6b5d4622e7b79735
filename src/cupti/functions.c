/* Asks the driver once for each handle, so that a usual launch costs a load and a comparison. */
#include "cupti/functions.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PLACES_LOG2 8

/* Handles that the driver took, each at the place of its hash. A later one takes the place of an earlier. */
static _Atomic(CUfunction) taken[1 << PLACES_LOG2];

CUfunction kprof_function_resolve(const kprof_driver_api *driver, CUfunction handle)
{
    int registers = 0;
    CUfunction function = NULL;
    if (driver->cuFuncGetAttribute_(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, handle) == CUDA_SUCCESS)
        return handle;
    return driver->cuKernelGetFunction_(&function, (CUkernel)handle) == CUDA_SUCCESS ? function : NULL;
}

CUfunction kprof_function_find(const kprof_driver_api *driver, CUfunction handle)
{
    KPROF_RELAX(driver);
    return kprof_function_resolve(driver, handle);
}

const char *kprof_function_name(const kprof_driver_api *driver, CUfunction handle, const char *name)
{
    const uint64_t hash = (uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);
    _Atomic(CUfunction) *place = &taken[hash >> (64 - PLACES_LOG2)];
    if (!handle || !name)
        return "(unnamed kernel)";
    if (atomic_load_explicit(place, memory_order_relaxed) == handle)
        return name;
    if (!kprof_function_find(driver, handle))
        return "(unnamed kernel)";
    atomic_store_explicit(place, handle, memory_order_relaxed);
    return name;
}

void kprof_functions_forget(void)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        atomic_store_explicit(&taken[i], NULL, memory_order_relaxed);
}
