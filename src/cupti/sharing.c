/* Knows which driver calls share memory with others, let work wait for the host, or have CUDA run the host's code. */
#include "cupti/calls.h"

#include "cupti/driver.h"
#include "cupti/mappings.h"

#define ID(name)        CUPTI_DRIVER_TRACE_CBID_##name
#define MAPPING_GRANULE ((size_t)2 << 20) /* what is mapped of a device's memory begins and ends at multiples of it */

enum { PARAMETERS_TELL = 256 }; /* no kprof_sharing bit: the call's parameters tell with whom it shares */

/* Each macro pastes its name itself: cuda.h defines some names as macros, which another macro would expand. */
#define SHARES(name, bits)  [CUPTI_DRIVER_TRACE_CBID_##name] = (bits)
#define DEVICES(name)       [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_SHARES_WITH_DEVICES
#define MAY_NOT_SAVE(name)  [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_MAY_NOT_SAVE
#define WAITS(name)         [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_WAITS_FOR_HOST
#define BY_PARAMETERS(name) [CUPTI_DRIVER_TRACE_CBID_##name] = PARAMETERS_TELL
/* A call, and its variant for the default stream of each thread. */
#define BOTH(name, bits) [CUPTI_DRIVER_TRACE_CBID_##name] = (bits), [CUPTI_DRIVER_TRACE_CBID_##name##_ptsz] = (bits)

/* Other calls of CUPTI's list share nothing. */
static const unsigned short sharing[CUPTI_DRIVER_TRACE_CBID_SIZE] = {
    SHARES(cuMemAllocHost, KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST),
    SHARES(cuMemHostAlloc_v2, KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST),
    SHARES(cuMemAllocHost_v2, KPROF_SHARES_WITH_HOST),
    SHARES(cuMemHostAlloc, KPROF_SHARES_WITH_HOST),
    SHARES(cuMemAllocManaged, KPROF_MANAGED),
    SHARES(cuLibraryGetManaged, KPROF_MANAGED),
    BOTH(cuLaunchHostFunc, KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE),
    SHARES(cuGraphAddHostNode, KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE),
    BOTH(cuStreamAddCallback, KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE),
    SHARES(cuUserObjectCreate, KPROF_RUNS_HOST_CODE),
    SHARES(cuDeviceRegisterAsyncNotification, KPROF_RUNS_HOST_CODE),
    SHARES(cuLogsRegisterCallback, KPROF_RUNS_HOST_CODE),

    DEVICES(cuCtxEnablePeerAccess),
    DEVICES(cuIpcGetMemHandle),
    DEVICES(cuIpcOpenMemHandle),
    DEVICES(cuIpcOpenMemHandle_v2),
    DEVICES(cuImportExternalMemory),
    DEVICES(cuMemExportToShareableHandle),
    DEVICES(cuMemImportFromShareableHandle),
    DEVICES(cuMemPoolExportToShareableHandle),
    DEVICES(cuMemPoolImportFromShareableHandle),
    DEVICES(cuMemGetHandleForAddressRange),
    DEVICES(cuMemPeerRegister),
    DEVICES(cuMemPeerGetDevicePointer),
    DEVICES(cuMulticastCreate),
    BOTH(cuGraphicsMapResources, KPROF_SHARES_WITH_DEVICES),
    DEVICES(cuGraphicsEGLRegisterImage),
    DEVICES(cuGraphicsResourceGetMappedEglFrame),
    DEVICES(cuGLMapBufferObject),
    DEVICES(cuGLMapBufferObject_v2),
    DEVICES(cuGLMapBufferObject_v2_ptds),
    DEVICES(cuGLMapBufferObjectAsync),
    BOTH(cuGLMapBufferObjectAsync_v2, KPROF_SHARES_WITH_DEVICES),
    DEVICES(cuEGLStreamConsumerConnect),
    DEVICES(cuEGLStreamConsumerConnectWithFlags),
    DEVICES(cuEGLStreamProducerConnect),

    BOTH(cuMemMapArrayAsync, KPROF_MAY_NOT_SAVE), /* it has no address */
    MAY_NOT_SAVE(cuGreenCtxCreate),               /* the memory is the primary context's */
    MAY_NOT_SAVE(cuSurfObjectCreate),             /* kernels write arrays through it */
    MAY_NOT_SAVE(cuSurfRefSetArray),
    /* the driver's first versions, which no list has */
    MAY_NOT_SAVE(cuMemAlloc),
    MAY_NOT_SAVE(cuMemAllocPitch),

    WAITS(cuGraphAddBatchMemOpNode),
    WAITS(cuGraphAddExternalSemaphoresWaitNode),
    BOTH(cuStreamBatchMemOp, KPROF_WAITS_FOR_HOST),
    BOTH(cuStreamBatchMemOp_v2, KPROF_WAITS_FOR_HOST),
    BOTH(cuStreamWaitValue32, KPROF_WAITS_FOR_HOST),
    BOTH(cuStreamWaitValue32_v2, KPROF_WAITS_FOR_HOST),
    BOTH(cuStreamWaitValue64, KPROF_WAITS_FOR_HOST),
    BOTH(cuStreamWaitValue64_v2, KPROF_WAITS_FOR_HOST),
    BOTH(cuWaitExternalSemaphoresAsync, KPROF_WAITS_FOR_HOST),
    WAITS(cuEventCreateFromEGLSync),
    WAITS(cuIpcOpenEventHandle), /* for another process, which may wait for this one */

    BOTH(cuMemAllocAsync, PARAMETERS_TELL),
    BOTH(cuMemAllocFromPoolAsync, PARAMETERS_TELL),
    BY_PARAMETERS(cuPointerSetAttribute),
    BY_PARAMETERS(cuMemHostRegister),
    BY_PARAMETERS(cuMemHostRegister_v2),
    BY_PARAMETERS(cuMemCreate),
    BY_PARAMETERS(cuMemPoolCreate),
    BY_PARAMETERS(cuMemGetDefaultMemPool),
    BY_PARAMETERS(cuMemGetMemPool),
    BY_PARAMETERS(cuMemSetAccess),
    BY_PARAMETERS(cuMemPoolSetAccess),
    BY_PARAMETERS(cuGraphAddMemAllocNode),
    BY_PARAMETERS(cuGraphAddNode),
    BY_PARAMETERS(cuGraphAddNode_v2),
};

bool kprof_stream_is_captured(CUstream stream)
{
    const kprof_driver_api *driver;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return kprof_driver_load(&driver) != KPROF_OK || driver->cuStreamIsCapturing_(stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool kprof_stream_is_of(const void *context, CUstream stream)
{
    const kprof_driver_api *driver;
    CUcontext owner = NULL;
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return true;
    return kprof_driver_load(&driver) == KPROF_OK && driver->cuStreamGetCtx_(stream, &owner) == CUDA_SUCCESS &&
           owner == context;
}

/* The memory of several devices may be mapped there by turns. */
static bool lies_on(const kprof_driver_api *driver, CUdevice device, CUdeviceptr memory, size_t size)
{
    for (size_t at = 0; at < size; at += MAPPING_GRANULE) {
        CUdevice found = -1;
        if (driver->cuPointerGetAttribute_(&found, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory + at) != CUDA_SUCCESS ||
            found != device)
            return false;
    }
    return size > 0;
}

/* A call shares nothing if it gives the current device alone access to its own memory, the `size` bytes from `memory`
 * on. `size` is 0 for a pool or a graph, which have no address: their own device has access anyway, so the call means
 * another one. */
static unsigned access_sharing(const CUmemAccessDesc *access, size_t count, CUdeviceptr memory, size_t size)
{
    const kprof_driver_api *driver;
    CUdevice device = -1;
    int device_count = 0;
    unsigned shared = 0;
    if (count == 0)
        return 0;
    if (kprof_driver_load(&driver) != KPROF_OK || driver->cuCtxGetDevice_(&device) != CUDA_SUCCESS)
        return KPROF_SHARES_WITH_DEVICES;
    bool only = driver->cuDeviceGetCount_(&device_count) == CUDA_SUCCESS && device_count == 1;
    bool own = only || lies_on(driver, device, memory, size);
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            shared |= KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST;
        else if (access[i].location.id != device || !own)
            shared |= KPROF_SHARES_WITH_DEVICES;
    }
    return shared;
}

/* The host always reaches its own memory, and managed memory. Managed memory of pools is not listed. */
static unsigned memory_sharing(CUmemAllocationType type, const CUmemLocation *location)
{
    if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return KPROF_MANAGED | KPROF_MAY_NOT_SAVE;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? 0 : KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST;
}

/* If the graph does not free its memory, that outlives the launch, and is not listed. */
static unsigned graph_memory_sharing(const CUmemPoolProps *pool, const CUmemAccessDesc *access, size_t count)
{
    return memory_sharing(pool->allocType, &pool->location) | access_sharing(access, count, 0, 0) | KPROF_MAY_NOT_SAVE;
}

static unsigned node_sharing(const CUgraphNodeParams *node)
{
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *alloc = &node->alloc;
    unsigned shared = KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE;
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        shared |= graph_memory_sharing(&alloc->poolProps, alloc->accessDescs, alloc->accessDescCount);
    return shared;
}

/* Other processes write what they share, and devices what is theirs, at any time. */
static unsigned registered_sharing(const void *address, size_t size_bytes, unsigned flags)
{
    bool beyond = (flags & CU_MEMHOSTREGISTER_IOMEMORY) || kprof_mappings_shared(address, size_bytes);
    bool general = kprof_mappings_general(address, size_bytes); /* to put pages back would undo what others do there */
    return KPROF_SHARES_WITH_HOST | (beyond ? KPROF_SHARES_WITH_DEVICES : 0) | (general ? KPROF_UNLISTED_HOST : 0);
}

/* Not by ID(), since the driver's header defines some of these names as others. */
#define CALL(name, shared)                                                                                             \
    case CUPTI_DRIVER_TRACE_CBID_##name: {                                                                             \
        const name##_params *p = parameters;                                                                           \
        return shared;                                                                                                 \
    }

static unsigned sharing_by_parameters(CUpti_CallbackId id, const void *parameters)
{
    switch (id) {
    case ID(cuMemAllocAsync):
    case ID(cuMemAllocAsync_ptsz):
    case ID(cuMemAllocFromPoolAsync):
    case ID(cuMemAllocFromPoolAsync_ptsz): /* captured, it is a graph's memory, which is there when the graph runs */
        return kprof_stream_is_captured(kprof_allocation_stream(id, parameters)) ? KPROF_MAY_NOT_SAVE : 0;
        /* programs do this for network cards, and no further call tells of those */
        CALL(cuPointerSetAttribute, p->attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? KPROF_SHARES_WITH_DEVICES : 0)
        CALL(cuMemHostRegister, registered_sharing(p->p, p->bytesize, p->Flags) | KPROF_UNLISTED_HOST)
        CALL(cuMemHostRegister_v2, registered_sharing(p->p, p->bytesize, p->Flags))
        CALL(cuMemCreate, memory_sharing(p->prop->type, &p->prop->location))
        CALL(cuMemPoolCreate, memory_sharing(p->poolProps->allocType, &p->poolProps->location))
        CALL(cuMemGetDefaultMemPool, memory_sharing(p->type, p->location))
        CALL(cuMemGetMemPool, memory_sharing(p->type, p->location))
        CALL(cuMemSetAccess, access_sharing(p->desc, p->count, p->ptr, p->size))
        CALL(cuMemPoolSetAccess, access_sharing(p->map, p->count, 0, 0))
        CALL(cuGraphAddMemAllocNode, graph_memory_sharing(&p->nodeParams->poolProps, p->nodeParams->accessDescs,
                                                          p->nodeParams->accessDescCount))
        CALL(cuGraphAddNode, node_sharing(p->nodeParams))
        CALL(cuGraphAddNode_v2, node_sharing(p->nodeParams))
    default:
        return 0;
    }
}

unsigned kprof_call_sharing(CUpti_CallbackId id, const void *parameters)
{
    if (id >= CUPTI_DRIVER_TRACE_CBID_SIZE) /* of a newer driver: it may do anything */
        return KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES | KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE |
               KPROF_MANAGED | KPROF_UNLISTED_HOST;
    unsigned shared = sharing[id];
    return shared == PARAMETERS_TELL ? sharing_by_parameters(id, parameters) : shared;
}
