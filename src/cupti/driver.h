/* The driver functions that kprof calls, from the libcuda that the process has, or opens for the probe. */
#pragma once

#include "core/status.h"

#include <cuda.h>
#include <stdbool.h>

/* cuda.h maps names to versioned symbols (cuDeviceTotalMem -> cuDeviceTotalMem_v2); the table has the plain name. */
#define KPROF_DRIVER_FUNCTIONS(X)                                                                                      \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetUuid)                                                                                                 \
    X(cuDeviceTotalMem)                                                                                                \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuDeviceGetDefaultMemPool)                                                                                       \
    X(cuDeviceGetMemPool)                                                                                              \
    X(cuDeviceSetMemPool)                                                                                              \
    X(cuDeviceGetP2PAttribute)                                                                                         \
    X(cuCtxGetDevice)                                                                                                  \
    X(cuDevicePrimaryCtxGetState)                                                                                      \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuCtxSynchronize)                                                                                                \
    X(cuFuncGetAttribute)                                                                                              \
    X(cuFuncSetAttribute)                                                                                              \
    X(cuKernelGetFunction)                                                                                             \
    X(cuGetErrorName)                                                                                                  \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                     \
    X(cuOccupancyMaxActiveClusters)                                                                                    \
    X(cuStreamIsCapturing)                                                                                             \
    X(cuStreamGetAttribute)                                                                                            \
    X(cuStreamGetCtx)                                                                                                  \
    X(cuStreamGetFlags)                                                                                                \
    X(cuFuncGetParamInfo)                                                                                              \
    X(cuKernelGetParamInfo)                                                                                            \
    X(cuKernelGetAttribute)                                                                                            \
    X(cuKernelSetAttribute)                                                                                            \
    X(cuPointerGetAttribute)                                                                                           \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxPushCurrent)                                                                                                \
    X(cuCtxPopCurrent)                                                                                                 \
    X(cuFuncGetModule)                                                                                                 \
    X(cuFuncLoad)                                                                                                      \
    X(cuModuleGetFunctionCount)                                                                                        \
    X(cuModuleEnumerateFunctions)                                                                                      \
    X(cuModuleGetGlobal)                                                                                               \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemAllocHost)                                                                                                  \
    X(cuMemFreeHost)                                                                                                   \
    X(cuMemFree)                                                                                                       \
    X(cuMemGetInfo)                                                                                                    \
    X(cuMemGetAddressRange)                                                                                            \
    X(cuMemAdvise)                                                                                                     \
    X(cuMemRangeGetAttribute)                                                                                          \
    X(cuMemPoolCreate)                                                                                                 \
    X(cuMemPoolDestroy)                                                                                                \
    X(cuMemPoolGetAttribute)                                                                                           \
    X(cuMemPoolSetAttribute)                                                                                           \
    X(cuMemPoolTrimTo)                                                                                                 \
    X(cuMemGetAllocationGranularity)                                                                                   \
    X(cuMemCreate)                                                                                                     \
    X(cuMemRelease)                                                                                                    \
    X(cuMemAddressReserve)                                                                                             \
    X(cuMemMap)                                                                                                        \
    X(cuMemUnmap)                                                                                                      \
    X(cuMemAddressFree)                                                                                                \
    X(cuMemSetAccess)                                                                                                  \
    X(cuMemcpy2DAsync)                                                                                                 \
    X(cuMemcpy3DAsync)                                                                                                 \
    X(cuEventCreate)                                                                                                   \
    X(cuEventDestroy)                                                                                                  \
    X(cuEventRecord)                                                                                                   \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuMemsetD8)                                                                                                      \
    X(cuMemsetD8Async)                                                                                                 \
    X(cuMemsetD16Async)                                                                                                \
    X(cuMemsetD32Async)                                                                                                \
    X(cuMemsetD2D8Async)                                                                                               \
    X(cuMemsetD2D16Async)                                                                                              \
    X(cuMemsetD2D32Async)                                                                                              \
    X(cuMemcpyDtoDAsync)                                                                                               \
    X(cuMemcpyDtoH)                                                                                                    \
    X(cuMemcpyDtoHAsync)                                                                                               \
    X(cuMemcpyHtoD)                                                                                                    \
    X(cuMemcpyHtoDAsync)                                                                                               \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleUnload)                                                                                                  \
    X(cuLinkCreate)                                                                                                    \
    X(cuLinkAddData)                                                                                                   \
    X(cuLinkComplete)                                                                                                  \
    X(cuLinkDestroy)                                                                                                   \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamDestroy)                                                                                                 \
    X(cuStreamQuery)                                                                                                   \
    X(cuEventQuery)                                                                                                    \
    X(cuStreamSynchronize)                                                                                             \
    X(cuModuleGetFunction)                                                                                             \
    X(cuLaunchKernel)                                                                                                  \
    X(cuFuncGetName)                                                                                                   \
    X(cuKernelGetName)                                                                                                 \
    X(cuGraphGetNodes)                                                                                                 \
    X(cuGraphGetEdges)                                                                                                 \
    X(cuGraphNodeGetType)                                                                                              \
    X(cuGraphKernelNodeGetParams)                                                                                      \
    X(cuGraphKernelNodeGetAttribute)                                                                                   \
    X(cuGraphMemsetNodeGetParams)                                                                                      \
    X(cuGraphMemcpyNodeGetParams)                                                                                      \
    X(cuGraphChildGraphNodeGetGraph)                                                                                   \
    X(cuGraphLaunch)                                                                                                   \
    X(cuLaunchKernelEx)                                                                                                \
    X(cuThreadExchangeStreamCaptureMode)

#define KPROF_DRIVER_MEMBER(name) __typeof__(&name) name##_;

typedef struct kprof_driver_api {
    KPROF_DRIVER_FUNCTIONS(KPROF_DRIVER_MEMBER)
} kprof_driver_api;

/* The table, opened on the first call; thread-safe. NO_GPU when libcuda.so.1 cannot be opened. */
kprof_status kprof_driver_load(const kprof_driver_api **out) KPROF_MUST_CHECK;

/* Name of a driver result: "CUDA_ERROR_ILLEGAL_ADDRESS"; never NULL. */
const char *kprof_driver_error(CUresult result);
/* Until the block ends, the thread's calls end no capture that another thread has under way. */
#define KPROF_RELAX(driver)                                                                                            \
    __attribute__((cleanup(kprof_relax_end), unused)) kprof_relaxed relaxed = kprof_relax(driver)

typedef struct kprof_relaxed {
    const kprof_driver_api *driver;
    CUstreamCaptureMode mode; /* before */
} kprof_relaxed;

static inline void kprof_relax_end(kprof_relaxed *relaxed)
{
    (void)relaxed->driver->cuThreadExchangeStreamCaptureMode_(&relaxed->mode);
}

static inline kprof_relaxed kprof_relax(const kprof_driver_api *driver)
{
    kprof_relaxed relaxed = {driver, CU_STREAM_CAPTURE_MODE_RELAXED};
    kprof_relax_end(&relaxed);
    return relaxed;
}

/* How much there is from an address on, to the end of its allocation; 0 when that is not known. */
static inline size_t kprof_driver_measure_rest(const kprof_driver_api *driver, CUdeviceptr address)
{
    CUdeviceptr start = 0;
    size_t size_bytes = 0;
    if (driver->cuPointerGetAttribute_(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS ||
        driver->cuPointerGetAttribute_(&size_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) != CUDA_SUCCESS)
        return 0;
    return size_bytes - (size_t)(address - start);
}
