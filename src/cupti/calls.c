/* Reads driver calls: their kind, and launches from each of the driver's entry points. */
#include "cupti/calls.h"

#include "core/strbuf.h"
#include "cupti/allocations.h"
#include "cupti/driver.h"

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

/* Each macro pastes its name itself: cuda.h defines some names as macros, which another macro would expand. */
#define CALL(kind, name) [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_CALL_##kind
#define SETUP(name)      [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_CALL_SETUP
#define HARMLESS(name)   [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_CALL_HARMLESS
/* A call, and its variant for the default stream of each thread. */
#define BOTH(kind, name)                                                                                               \
    [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_CALL_##kind, [CUPTI_DRIVER_TRACE_CBID_##name##_ptsz] = KPROF_CALL_##kind
/* A call, and its second version. */
#define WITH_V2(kind, name)                                                                                            \
    [CUPTI_DRIVER_TRACE_CBID_##name] = KPROF_CALL_##kind, [CUPTI_DRIVER_TRACE_CBID_##name##_v2] = KPROF_CALL_##kind

/* A call that is not in this table, a newer driver's too, is KPROF_CALL_OTHER, which is 0, unless its parameters tell
 * more: see find_kind. */
static const unsigned char kinds[CUPTI_DRIVER_TRACE_CBID_SIZE] = {
    CALL(LAUNCH, cuLaunch),
    BOTH(LAUNCH, cuLaunchCooperativeKernel),
    CALL(LAUNCH, cuLaunchGrid),
    CALL(LAUNCH, cuLaunchGridAsync),
    BOTH(LAUNCH, cuLaunchKernel),
    BOTH(LAUNCH, cuLaunchKernelEx),

    BOTH(GRAPH_LAUNCH, cuGraphLaunch),
    CALL(GRAPH_LAUNCH, cuLaunchCooperativeKernelMultiDevice),

    CALL(GRAPH_CHANGE, cuGraphExecChildGraphNodeSetParams),
    CALL(GRAPH_CHANGE, cuGraphExecDestroy),
    CALL(GRAPH_CHANGE, cuGraphExecKernelNodeSetParams_v2),
    CALL(GRAPH_CHANGE, cuGraphExecMemcpyNodeSetParams),
    CALL(GRAPH_CHANGE, cuGraphExecMemsetNodeSetParams),
    CALL(GRAPH_CHANGE, cuGraphExecNodeSetParams),
    CALL(GRAPH_CHANGE, cuGraphExecUpdate_v2),
    CALL(GRAPH_CHANGE, cuGraphNodeSetEnabled),
    BOTH(GRAPH_CHANGE, cuGraphUpload),

    CALL(CODE, cuFuncLoad),
    CALL(CODE, cuFuncSetCacheConfig),
    CALL(CODE, cuKernelGetFunction),
    CALL(CODE, cuKernelSetCacheConfig),
    CALL(CODE, cuLibraryEnumerateKernels),
    CALL(CODE, cuLibraryGetGlobal),
    CALL(CODE, cuLibraryGetKernel),
    CALL(CODE, cuLibraryGetKernelCount),
    CALL(CODE, cuLibraryGetModule),
    CALL(CODE, cuLibraryLoadData),
    CALL(CODE, cuLibraryLoadFromFile),
    CALL(CODE, cuLinkAddData_v2),
    CALL(CODE, cuLinkAddFile_v2),
    CALL(CODE, cuLinkComplete),
    CALL(CODE, cuLinkCreate_v2),
    CALL(CODE, cuLinkDestroy),
    CALL(CODE, cuModuleEnumerateFunctions),
    CALL(CODE, cuModuleGetFunction),
    CALL(CODE, cuModuleGetFunctionCount),
    CALL(CODE, cuModuleGetGlobal_v2),
    CALL(CODE, cuModuleLoad),
    CALL(CODE, cuModuleLoadData),
    CALL(CODE, cuModuleLoadDataEx),
    CALL(CODE, cuModuleLoadFatBinary),

    CALL(UNLOAD, cuLibraryUnload),
    CALL(UNLOAD, cuModuleUnload),

    CALL(ALLOCATE, cuMemAlloc_v2),
    BOTH(ALLOCATE, cuMemAllocAsync),
    BOTH(ALLOCATE, cuMemAllocFromPoolAsync),
    CALL(ALLOCATE, cuMemAllocPitch_v2),
    CALL(ALLOCATE, cuMemSetAccess),

    CALL(FREE, cuMemFree_v2),

    BOTH(POOL_FREE, cuMemFreeAsync),

    CALL(MEMORY_INFO, cuMemGetInfo_v2),

    WITH_V2(WAIT, cuCtxSynchronize),
    WITH_V2(WAIT, cuEventElapsedTime),
    CALL(WAIT, cuEventQuery),
    CALL(WAIT, cuEventSynchronize),
    BOTH(WAIT, cuStreamQuery),
    BOTH(WAIT, cuStreamSynchronize),

    BOTH(CAPTURE, cuStreamBeginCapture),
    BOTH(CAPTURE, cuStreamBeginCapture_v2),
    BOTH(CAPTURE, cuStreamBeginCaptureToGraph),

    BOTH(CAPTURE_END, cuStreamEndCapture),

    WITH_V2(STOP, cuCtxDestroy),
    CALL(STOP, cuCtxDetach),
    WITH_V2(STOP, cuDevicePrimaryCtxRelease),
    WITH_V2(STOP, cuDevicePrimaryCtxReset),

    BOTH(ORDER, cuEventRecord),
    BOTH(ORDER, cuEventRecordWithFlags),
    BOTH(ORDER, cuStreamWaitEvent),

    BOTH(VALUE_WAIT, cuStreamWaitValue32),
    BOTH(VALUE_WAIT, cuStreamWaitValue32_v2),
    BOTH(VALUE_WAIT, cuStreamWaitValue64),
    BOTH(VALUE_WAIT, cuStreamWaitValue64_v2),

    BOTH(MIGRATE, cuMemPrefetchAsync),
    BOTH(MIGRATE, cuMemPrefetchAsync_v2),
    BOTH(MIGRATE, cuMemPrefetchBatchAsync),

    /* Kernels write arrays through surfaces only, and mappings keep the memory that cuMemRelease gives back. */
    SETUP(cuArray3DCreate_v2),
    SETUP(cuArrayCreate_v2),
    SETUP(cuEventDestroy_v2),
    SETUP(cuGraphAddChildGraphNode),
    WITH_V2(SETUP, cuGraphAddDependencies),
    SETUP(cuGraphAddEmptyNode),
    WITH_V2(SETUP, cuGraphAddKernelNode),
    SETUP(cuGraphAddMemcpyNode),
    SETUP(cuGraphAddMemsetNode),
    WITH_V2(SETUP, cuGraphAddNode),
    SETUP(cuGraphChildGraphNodeGetGraph),
    SETUP(cuGraphClone),
    SETUP(cuGraphCreate),
    SETUP(cuGraphDebugDotPrint),
    SETUP(cuGraphDestroy),
    SETUP(cuGraphDestroyNode),
    SETUP(cuGraphEventRecordNodeGetEvent),
    SETUP(cuGraphEventWaitNodeGetEvent),
    SETUP(cuGraphExecGetFlags),
    WITH_V2(SETUP, cuGraphGetEdges),
    SETUP(cuGraphGetNodes),
    SETUP(cuGraphGetRootNodes),
    SETUP(cuGraphHostNodeGetParams),
    SETUP(cuGraphInstantiateWithFlags),
    BOTH(SETUP, cuGraphInstantiateWithParams),
    SETUP(cuGraphKernelNodeCopyAttributes),
    SETUP(cuGraphKernelNodeGetAttribute),
    WITH_V2(SETUP, cuGraphKernelNodeGetParams),
    SETUP(cuGraphKernelNodeSetAttribute),
    SETUP(cuGraphKernelNodeSetParams_v2),
    SETUP(cuGraphMemAllocNodeGetParams),
    SETUP(cuGraphMemcpyNodeGetParams),
    SETUP(cuGraphMemcpyNodeSetParams),
    SETUP(cuGraphMemFreeNodeGetParams),
    SETUP(cuGraphMemsetNodeGetParams),
    SETUP(cuGraphMemsetNodeSetParams),
    SETUP(cuGraphNodeFindInClone),
    WITH_V2(SETUP, cuGraphNodeGetDependencies),
    WITH_V2(SETUP, cuGraphNodeGetDependentNodes),
    SETUP(cuGraphNodeGetEnabled),
    SETUP(cuGraphNodeGetType),
    SETUP(cuGraphNodeSetParams),
    SETUP(cuGraphReleaseUserObject),
    WITH_V2(SETUP, cuGraphRemoveDependencies),
    SETUP(cuGraphRetainUserObject),
    BOTH(SETUP, cuLaunchHostFunc),
    SETUP(cuMemAddressReserve),
    SETUP(cuMemAllocHost_v2),
    SETUP(cuMemCreate),
    SETUP(cuMemFreeHost),
    SETUP(cuMemHostAlloc),
    SETUP(cuMemHostRegister_v2),
    SETUP(cuMemHostUnregister),
    SETUP(cuMemPoolCreate),
    SETUP(cuMemRelease),
    SETUP(cuMipmappedArrayCreate),
    SETUP(cuMipmappedArrayGetLevel),
    BOTH(SETUP, cuStreamAddCallback),
    SETUP(cuStreamCreate),
    SETUP(cuStreamCreateWithPriority),
    SETUP(cuTexObjectCreate),
    SETUP(cuUserObjectRelease),
    SETUP(cuUserObjectRetain),

    /* Maps of tensors are made in memory of the host's own. */
    HARMLESS(cuArray3DGetDescriptor_v2),
    HARMLESS(cuArrayGetDescriptor_v2),
    HARMLESS(cuArrayGetMemoryRequirements),
    HARMLESS(cuArrayGetPlane),
    HARMLESS(cuArrayGetSparseProperties),
    HARMLESS(cuCoredumpGetAttribute),
    HARMLESS(cuCoredumpGetAttributeGlobal),
    HARMLESS(cuCtxGetApiVersion),
    HARMLESS(cuCtxGetCacheConfig),
    HARMLESS(cuCtxGetCurrent),
    WITH_V2(HARMLESS, cuCtxGetDevice),
    HARMLESS(cuCtxGetDevResource),
    HARMLESS(cuCtxGetExecAffinity),
    HARMLESS(cuCtxGetFlags),
    HARMLESS(cuCtxGetId),
    HARMLESS(cuCtxGetLimit),
    HARMLESS(cuCtxGetSharedMemConfig),
    HARMLESS(cuCtxGetStreamPriorityRange),
    WITH_V2(HARMLESS, cuCtxPopCurrent),
    WITH_V2(HARMLESS, cuCtxPushCurrent),
    HARMLESS(cuCtxSetCurrent),
    HARMLESS(cuDeviceCanAccessPeer),
    HARMLESS(cuDeviceComputeCapability),
    HARMLESS(cuDeviceGet),
    HARMLESS(cuDeviceGetAttribute),
    HARMLESS(cuDeviceGetByPCIBusId),
    HARMLESS(cuDeviceGetCount),
    HARMLESS(cuDeviceGetDefaultMemPool),
    HARMLESS(cuDeviceGetDevResource),
    HARMLESS(cuDeviceGetExecAffinitySupport),
    HARMLESS(cuDeviceGetHostAtomicCapabilities),
    HARMLESS(cuDeviceGetLuid),
    HARMLESS(cuDeviceGetMemPool),
    HARMLESS(cuDeviceGetName),
    HARMLESS(cuDeviceGetP2PAtomicCapabilities),
    HARMLESS(cuDeviceGetP2PAttribute),
    HARMLESS(cuDeviceGetPCIBusId),
    HARMLESS(cuDeviceGetProperties),
    HARMLESS(cuDeviceGetTexture1DLinearMaxWidth),
    WITH_V2(HARMLESS, cuDeviceGetUuid),
    HARMLESS(cuDevicePrimaryCtxGetState),
    WITH_V2(HARMLESS, cuDeviceTotalMem),
    HARMLESS(cuDriverGetGpuCodeIsaVersion),
    HARMLESS(cuDriverGetVersion),
    HARMLESS(cuEventCreate),
    HARMLESS(cuFuncGetAttribute),
    HARMLESS(cuFuncGetModule),
    HARMLESS(cuFuncGetName),
    HARMLESS(cuFuncGetParamInfo),
    HARMLESS(cuFuncIsLoaded),
    HARMLESS(cuGetErrorName),
    HARMLESS(cuGetErrorString),
    WITH_V2(HARMLESS, cuGetProcAddress),
    HARMLESS(cuGreenCtxGetDevResource),
    HARMLESS(cuGreenCtxGetId),
    HARMLESS(cuInit),
    HARMLESS(cuKernelGetAttribute),
    HARMLESS(cuKernelGetLibrary),
    HARMLESS(cuKernelGetName),
    HARMLESS(cuKernelGetParamInfo),
    HARMLESS(cuLogsCurrent),
    HARMLESS(cuMemGetAccess),
    WITH_V2(HARMLESS, cuMemGetAddressRange),
    HARMLESS(cuMemGetAllocationGranularity),
    HARMLESS(cuMemGetAllocationPropertiesFromHandle),
    WITH_V2(HARMLESS, cuMemHostGetDevicePointer),
    HARMLESS(cuMemHostGetFlags),
    HARMLESS(cuMemPoolGetAccess),
    HARMLESS(cuMipmappedArrayGetMemoryRequirements),
    HARMLESS(cuMipmappedArrayGetSparseProperties),
    HARMLESS(cuModuleGetLoadingMode),
    HARMLESS(cuMulticastGetGranularity),
    HARMLESS(cuOccupancyAvailableDynamicSMemPerBlock),
    HARMLESS(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    HARMLESS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    HARMLESS(cuOccupancyMaxActiveClusters),
    HARMLESS(cuOccupancyMaxPotentialBlockSize),
    HARMLESS(cuOccupancyMaxPotentialBlockSizeWithFlags),
    HARMLESS(cuOccupancyMaxPotentialClusterSize),
    HARMLESS(cuPointerGetAttribute),
    HARMLESS(cuPointerGetAttributes),
    HARMLESS(cuProfilerStart),
    HARMLESS(cuProfilerStop),
    BOTH(HARMLESS, cuStreamGetAttribute),
    BOTH(HARMLESS, cuStreamGetCaptureInfo),
    BOTH(HARMLESS, cuStreamGetCaptureInfo_v2),
    BOTH(HARMLESS, cuStreamGetCaptureInfo_v3),
    BOTH(HARMLESS, cuStreamGetCtx),
    BOTH(HARMLESS, cuStreamGetCtx_v2),
    BOTH(HARMLESS, cuStreamGetDevice),
    BOTH(HARMLESS, cuStreamGetFlags),
    BOTH(HARMLESS, cuStreamGetId),
    BOTH(HARMLESS, cuStreamGetPriority),
    BOTH(HARMLESS, cuStreamIsCapturing),
    HARMLESS(cuSurfObjectGetResourceDesc),
    HARMLESS(cuTensorMapEncodeIm2col),
    HARMLESS(cuTensorMapEncodeIm2colWide),
    HARMLESS(cuTensorMapEncodeTiled),
    HARMLESS(cuTensorMapReplaceAddress),
    HARMLESS(cuTexObjectGetResourceDesc),
    HARMLESS(cuTexObjectGetResourceViewDesc),
    HARMLESS(cuTexObjectGetTextureDesc),
    HARMLESS(cuThreadExchangeStreamCaptureMode),
};

/* Return the attribute that the call sets of a function; _MAX: none. */
static CUfunction_attribute set_attribute(CUpti_CallbackId id, const void *parameters)
{
    if (id == ID(cuFuncSetAttribute))
        return ((const cuFuncSetAttribute_params *)parameters)->attrib;
    return id == ID(cuKernelSetAttribute) ? ((const cuKernelSetAttribute_params *)parameters)->attrib
                                          : CU_FUNC_ATTRIBUTE_MAX;
}

bool kprof_call_changes_setting(CUpti_CallbackId id, const void *parameters)
{
    CUfunction_attribute attribute = set_attribute(id, parameters);
    return attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ||
           attribute == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
}

/* These attributes of functions change what a launch may ask for, or how fast it is, not what it does. If the
 * application changes one, replays repeat earlier launches with the old value. */
static bool sets_limit(CUpti_CallbackId id, const void *parameters)
{
    CUfunction_attribute attribute = set_attribute(id, parameters);
    return kprof_call_changes_setting(id, parameters) || attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
           attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
}

/* While kprof holds a pool, it keeps and reserves more than the application would see. */
static bool asks_what_is_kept(const cuMemPoolGetAttribute_params *p)
{
    return p->attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || p->attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
           p->attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
}

/* The first call creates the context, later ones count its users. */
static bool has_primary_context(const cuDevicePrimaryCtxRetain_params *p)
{
    const kprof_driver_api *driver;
    unsigned flags;
    int active = 0;
    return kprof_driver_load(&driver) == KPROF_OK &&
           driver->cuDevicePrimaryCtxGetState_(p->dev, &flags, &active) == CUDA_SUCCESS && active;
}

/* A replay would lack access that the call takes away. */
static bool takes_access(const cuMemSetAccess_params *p)
{
    return p->desc && KPROF_ANY(i, p->count, p->desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

/* A stream that is captured allocates nothing now: the memory will be the graph's. */
static kprof_memory_change_kind kind_in_stream(CUpti_CallbackId id, const void *parameters)
{
    return kprof_stream_is_captured(kprof_allocation_stream(id, parameters)) ? KPROF_MEMORY_UNCHANGED
                                                                             : KPROF_MEMORY_OF_DEVICE;
}

/* A call and what it changes, from `p`, its arguments. */
#define MEMORY(name, what, start, bytes)                                                                               \
    case ID(name): {                                                                                                   \
        const name##_params *p = parameters;                                                                           \
        *out = (kprof_memory_change){.kind = (what), .address = (CUdeviceptr)(start), .size_bytes = (bytes)};          \
        break;                                                                                                         \
    }
#define HANDLE(name, what, of)                                                                                         \
    case ID(name): {                                                                                                   \
        const name##_params *p = parameters;                                                                           \
        *out = (kprof_memory_change){.kind = (what), .handle = (of)};                                                  \
        break;                                                                                                         \
    }

void kprof_call_memory_change(CUpti_CallbackId id, const void *parameters, kprof_memory_change *out)
{
    switch (id) {
        MEMORY(cuMemAlloc_v2, KPROF_MEMORY_OF_CONTEXT, *p->dptr, p->bytesize)
        MEMORY(cuMemAllocManaged, KPROF_MEMORY_MANAGED, *p->dptr, p->bytesize)
        MEMORY(cuMemAllocPitch_v2, KPROF_MEMORY_OF_CONTEXT, *p->dptr, *p->pPitch * p->Height)
        MEMORY(cuMemAllocAsync, kind_in_stream(id, p), *p->dptr, p->bytesize)
        MEMORY(cuMemAllocAsync_ptsz, kind_in_stream(id, p), *p->dptr, p->bytesize)
        MEMORY(cuMemAllocFromPoolAsync, kind_in_stream(id, p), *p->dptr, p->bytesize)
        MEMORY(cuMemAllocFromPoolAsync_ptsz, kind_in_stream(id, p), *p->dptr, p->bytesize)
        MEMORY(cuMemAllocHost_v2, KPROF_MEMORY_OF_HOST, *p->pp, p->bytesize)
        MEMORY(cuMemHostAlloc, KPROF_MEMORY_OF_HOST, *p->pp, p->bytesize)
        MEMORY(cuMemHostRegister_v2, KPROF_MEMORY_OF_HOST, p->p, p->bytesize)
        MEMORY(cuMemFree_v2, KPROF_MEMORY_FREED, p->dptr, 0)
        MEMORY(cuMemFreeAsync, KPROF_MEMORY_FREED, p->dptr, 0)
        MEMORY(cuMemFreeAsync_ptsz, KPROF_MEMORY_FREED, p->dptr, 0)
        MEMORY(cuMemFreeHost, KPROF_MEMORY_FREED, p->p, 0)
        MEMORY(cuMemHostUnregister, KPROF_MEMORY_FREED, p->p, 0)
        MEMORY(cuMemUnmap, KPROF_MEMORY_UNMAPPED, p->ptr, p->size)
        HANDLE(cuMemCreate, KPROF_MEMORY_CREATED, *p->handle)
        HANDLE(cuMemMap, KPROF_MEMORY_USED, p->handle)
        HANDLE(cuMemRelease, KPROF_MEMORY_USED, p->handle)
    case ID(cuMemSetAccess): {
        const cuMemSetAccess_params *p = parameters;
        *out = (kprof_memory_change){KPROF_MEMORY_ACCESSED, p->ptr, p->size, 0, p->desc, p->count};
        break;
    }
    default:
        out->kind = KPROF_MEMORY_UNCHANGED;
        break;
    }
}

#define FINDS_VARIABLE(name, of)                                                                                       \
    case ID(name): {                                                                                                   \
        const name##_params *p = parameters;                                                                           \
        out->module = p->of;                                                                                           \
        out->has_variable = p->dptr != NULL;                                                                           \
        out->variable = p->dptr ? *p->dptr : 0;                                                                        \
        out->variable_bytes = p->bytes ? *p->bytes : 0;                                                                \
        break;                                                                                                         \
    }
#define LOADS(name)                                                                                                    \
    case ID(name):                                                                                                     \
        out->loaded = *((const name##_params *)parameters)->module;                                                    \
        break;
#define UNLOADS(name, of)                                                                                              \
    case ID(name):                                                                                                     \
        out->module = ((const name##_params *)parameters)->of;                                                         \
        break;

void kprof_call_decode_result(CUpti_CallbackId id, const void *parameters, kprof_call_result *out)
{
    *out = (kprof_call_result){.sharing = kprof_call_sharing(id, parameters)};
    kprof_call_memory_change(id, parameters, &out->memory);
    switch (id) {
        FINDS_VARIABLE(cuModuleGetGlobal_v2, hmod)
        FINDS_VARIABLE(cuLibraryGetGlobal, library)
        FINDS_VARIABLE(cuLibraryGetManaged, library)
        LOADS(cuModuleLoad)
        LOADS(cuModuleLoadData)
        LOADS(cuModuleLoadDataEx)
        LOADS(cuModuleLoadFatBinary)
        UNLOADS(cuModuleUnload, hmod)
        UNLOADS(cuLibraryUnload, library)
    default:
        break;
    }
}

/* The calling thread's default stream, where a call that is `per_thread` names none. */
static CUstream or_threads(CUstream stream, bool per_thread)
{
    return !stream && per_thread ? CU_STREAM_PER_THREAD : stream;
}

static CUstream ordered_stream(CUpti_CallbackId id, const void *parameters)
{
    const bool per_thread =
        id == ID(cuStreamWaitEvent_ptsz) || id == ID(cuEventRecord_ptsz) || id == ID(cuEventRecordWithFlags_ptsz);
    CUstream stream = id == ID(cuStreamWaitEvent) || id == ID(cuStreamWaitEvent_ptsz)
                          ? ((const cuStreamWaitEvent_params *)parameters)->hStream
                      : id == ID(cuEventRecord) || id == ID(cuEventRecord_ptsz)
                          ? ((const cuEventRecord_params *)parameters)->hStream
                          : ((const cuEventRecordWithFlags_params *)parameters)->hStream;
    return or_threads(stream, per_thread);
}

/* All versions of the call have the same first argument. */
static CUstream waiting_stream(CUpti_CallbackId id, const void *parameters)
{
    const bool per_thread = id == ID(cuStreamWaitValue32_ptsz) || id == ID(cuStreamWaitValue32_v2_ptsz) ||
                            id == ID(cuStreamWaitValue64_ptsz) || id == ID(cuStreamWaitValue64_v2_ptsz) ||
                            id == ID(cuStreamBatchMemOp_ptsz) || id == ID(cuStreamBatchMemOp_v2_ptsz);
    return or_threads(((const cuStreamWaitValue32_v2_params *)parameters)->stream, per_thread);
}

static CUstream migrating_stream(CUpti_CallbackId id, const void *parameters)
{
    const bool per_thread = id == ID(cuMemPrefetchAsync_ptsz) || id == ID(cuMemPrefetchAsync_v2_ptsz) ||
                            id == ID(cuMemPrefetchBatchAsync_ptsz);
    CUstream stream = id == ID(cuMemPrefetchAsync) || id == ID(cuMemPrefetchAsync_ptsz)
                          ? ((const cuMemPrefetchAsync_params *)parameters)->hStream
                      : id == ID(cuMemPrefetchAsync_v2) || id == ID(cuMemPrefetchAsync_v2_ptsz)
                          ? ((const cuMemPrefetchAsync_v2_params *)parameters)->hStream
                          : ((const cuMemPrefetchBatchAsync_params *)parameters)->hStream;
    return or_threads(stream, per_thread);
}

/* In the legacy default stream streams that block wait for one another at an event, too. */
static bool orders_streams(CUpti_CallbackId id, const void *parameters)
{
    const CUstream stream = ordered_stream(id, parameters);
    return id == ID(cuStreamWaitEvent) || id == ID(cuStreamWaitEvent_ptsz) || !stream || stream == CU_STREAM_LEGACY;
}

/* Does the call only wait for values, by several operations? */
static bool awaits_values(CUpti_CallbackId id, const void *parameters)
{
    const cuStreamBatchMemOp_v2_params *p = parameters; /* in all versions */
    if (id != ID(cuStreamBatchMemOp) && id != ID(cuStreamBatchMemOp_ptsz) && id != ID(cuStreamBatchMemOp_v2) &&
        id != ID(cuStreamBatchMemOp_v2_ptsz))
        return false;
    const kprof_value_operations operations = kprof_call_value_operations(p->paramArray, p->count);
    return operations.waits > 0 && operations.writes == 0 && operations.others == 0;
}

/* `transfer` is set for a transfer that the table does not have. */
static kprof_call_kind find_kind(CUpti_CallbackId id, const void *parameters, kprof_transfer *transfer)
{
    kprof_call_kind kind = id < CUPTI_DRIVER_TRACE_CBID_SIZE ? (kprof_call_kind)kinds[id] : KPROF_CALL_OTHER;
    if (id == ID(cuMemSetAccess) && takes_access(parameters))
        return KPROF_CALL_OTHER;
    if (kind == KPROF_CALL_ORDER && !orders_streams(id, parameters))
        return KPROF_CALL_HARMLESS;
    if (kind != KPROF_CALL_OTHER)
        return kind;
    if (kprof_call_transfer(id, parameters, transfer))
        return KPROF_CALL_TRANSFER;
    if (awaits_values(id, parameters))
        return KPROF_CALL_VALUE_WAIT;
    if (sets_limit(id, parameters)) /* never beside a replay, which sets and resets the same */
        return KPROF_CALL_CODE;
    if (id == ID(cuDevicePrimaryCtxRetain) && has_primary_context(parameters))
        return KPROF_CALL_HARMLESS;
    if (id == ID(cuMemPoolGetAttribute))
        return asks_what_is_kept(parameters) ? KPROF_CALL_MEMORY_INFO : KPROF_CALL_HARMLESS;
    if (id == ID(cuMemMap) && kprof_allocations_is_unmapped(((const cuMemMap_params *)parameters)->handle))
        return KPROF_CALL_SETUP;
    return kind;
}

static void set3(uint32_t out[3], uint32_t x, uint32_t y, uint32_t z)
{
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

void kprof_launch_read_config(const CUlaunchConfig *config, kprof_given_launch *out)
{
    set3(out->grid, config->gridDimX, config->gridDimY, config->gridDimZ);
    set3(out->block, config->blockDimX, config->blockDimY, config->blockDimZ);
    out->dynamic_smem_bytes = config->sharedMemBytes;
    for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            set3(out->cluster, a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
        else if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            out->cooperative = a->value.cooperative != 0;
    }
}

static void read_extended(const cuLaunchKernelEx_params *p, kprof_given_launch *out)
{
    out->function = p->f;
    out->has_arguments = true;
    out->arguments = p->kernelParams;
    out->extra = p->extra;
    out->config = p->config;
    if (!p->config) /* the driver refuses it */
        return;
    out->stream = p->config->hStream;
    kprof_launch_read_config(p->config, out);
}

static void read_plain(const cuLaunchKernel_params *p, kprof_given_launch *out)
{
    out->function = p->f;
    out->has_arguments = true;
    out->stream = p->hStream;
    out->arguments = p->kernelParams;
    out->extra = p->extra;
    set3(out->grid, p->gridDimX, p->gridDimY, p->gridDimZ);
    set3(out->block, p->blockDimX, p->blockDimY, p->blockDimZ);
    out->dynamic_smem_bytes = p->sharedMemBytes;
}

static void read_cooperative(const cuLaunchCooperativeKernel_params *p, kprof_given_launch *out)
{
    out->function = p->f;
    out->has_arguments = true;
    out->stream = p->hStream;
    out->arguments = p->kernelParams;
    set3(out->grid, p->gridDimX, p->gridDimY, p->gridDimZ);
    set3(out->block, p->blockDimX, p->blockDimY, p->blockDimZ);
    out->dynamic_smem_bytes = p->sharedMemBytes;
    out->cooperative = 1;
}

/* By one of the driver's oldest entry points. */
static void read_old(CUpti_CallbackId id, const void *parameters, kprof_given_launch *out)
{
    if (id == ID(cuLaunch)) {
        out->function = ((const cuLaunch_params *)parameters)->f;
        set3(out->grid, 1, 1, 1);
    } else if (id == ID(cuLaunchGrid)) {
        const cuLaunchGrid_params *p = parameters;
        out->function = p->f;
        set3(out->grid, (uint32_t)p->grid_width, (uint32_t)p->grid_height, 1);
    } else if (id == ID(cuLaunchGridAsync)) {
        const cuLaunchGridAsync_params *p = parameters;
        out->function = p->f;
        out->stream = p->hStream;
        set3(out->grid, (uint32_t)p->grid_width, (uint32_t)p->grid_height, 1);
    } else if (id == ID(cuLaunchCooperativeKernelMultiDevice)) {
        const cuLaunchCooperativeKernelMultiDevice_params *p = parameters;
        out->stream = p->launchParamsList && p->numDevices > 0 ? p->launchParamsList[0].hStream : NULL;
    }
}

/* Both forms of a call have the same arguments. */
static void read_launch(CUpti_CallbackId id, const void *parameters, kprof_given_launch *out)
{
    static const kprof_given_launch nothing;
    *out = nothing; /* each launch comes here, and to clear takes longer */
    out->per_thread = id == ID(cuLaunchKernel_ptsz) || id == ID(cuLaunchKernelEx_ptsz) ||
                      id == ID(cuLaunchCooperativeKernel_ptsz) || id == ID(cuGraphLaunch_ptsz);
    switch (id) {
    case ID(cuLaunchKernel):
    case ID(cuLaunchKernel_ptsz):
        read_plain(parameters, out);
        break;
    case ID(cuLaunchKernelEx):
    case ID(cuLaunchKernelEx_ptsz):
        read_extended(parameters, out);
        break;
    case ID(cuLaunchCooperativeKernel):
    case ID(cuLaunchCooperativeKernel_ptsz):
        read_cooperative(parameters, out);
        break;
    case ID(cuGraphLaunch):
    case ID(cuGraphLaunch_ptsz):
        out->is_graph = true;
        out->graph = ((const cuGraphLaunch_params *)parameters)->hGraph;
        out->stream = ((const cuGraphLaunch_params *)parameters)->hStream;
        break;
    default:
        read_old(id, parameters, out);
        break;
    }
}

bool kprof_call_may_go_unseen(CUpti_CallbackId id)
{
    const kprof_call_kind kind = id < CUPTI_DRIVER_TRACE_CBID_SIZE ? (kprof_call_kind)kinds[id] : KPROF_CALL_OTHER;
    return kind == KPROF_CALL_LAUNCH || kind == KPROF_CALL_WAIT || kind == KPROF_CALL_HARMLESS ||
           kind == KPROF_CALL_ORDER ||
           (kind == KPROF_CALL_GRAPH_LAUNCH && id != ID(cuLaunchCooperativeKernelMultiDevice));
}

bool kprof_call_launches(CUpti_CallbackId id)
{
    return id < CUPTI_DRIVER_TRACE_CBID_SIZE && kinds[id] == KPROF_CALL_LAUNCH;
}

bool kprof_call_is_ignored(CUpti_CallbackId id, bool sees_order)
{
    return id < CUPTI_DRIVER_TRACE_CBID_SIZE &&
           (kinds[id] == KPROF_CALL_HARMLESS || (kinds[id] == KPROF_CALL_ORDER && !sees_order)) &&
           id != ID(cuProfilerStart) && id != ID(cuProfilerStop);
}

bool kprof_call_is_decoded(kprof_call_kind kind)
{
    return kind == KPROF_CALL_LAUNCH || kind == KPROF_CALL_GRAPH_LAUNCH || kind == KPROF_CALL_TRANSFER ||
           kind == KPROF_CALL_ALLOCATE || kind == KPROF_CALL_SETUP || kind == KPROF_CALL_CODE ||
           kind == KPROF_CALL_MEMORY_INFO || kind == KPROF_CALL_FREE || kind == KPROF_CALL_UNLOAD ||
           kind == KPROF_CALL_POOL_FREE || kind == KPROF_CALL_ORDER || kind == KPROF_CALL_VALUE_WAIT ||
           kind == KPROF_CALL_MIGRATE;
}

void kprof_call_decode_known(kprof_call_kind kind, CUpti_CallbackId id, const void *parameters, kprof_decoded_call *out)
{
    if (kind == KPROF_CALL_LAUNCH || kind == KPROF_CALL_GRAPH_LAUNCH) {
        read_launch(id, parameters, &out->launch);
        out->stream = or_threads(out->launch.stream, out->launch.per_thread);
    } else if (kind == KPROF_CALL_TRANSFER) {
        (void)kprof_call_transfer(id, parameters, &out->transfer);
        out->stream = out->transfer.stream;
    } else if (kind == KPROF_CALL_MEMORY_INFO) {
        out->stream = NULL;
        out->free_bytes = id == ID(cuMemGetInfo_v2) ? ((const cuMemGetInfo_v2_params *)parameters)->free : NULL;
    } else if (kind == KPROF_CALL_ORDER) {
        out->stream = ordered_stream(id, parameters);
    } else if (kind == KPROF_CALL_VALUE_WAIT) {
        out->stream = waiting_stream(id, parameters);
    } else if (kind == KPROF_CALL_MIGRATE) {
        out->stream = migrating_stream(id, parameters);
    } else if (kind == KPROF_CALL_FREE) {
        out->stream = NULL;
        out->freed = (kprof_argument){.memory = (CUdeviceptr *)&((const cuMemFree_v2_params *)parameters)->dptr};
    } else if (kind == KPROF_CALL_UNLOAD) {
        CUmodule *module =
            id == ID(cuModuleUnload) ? (CUmodule *)&((const cuModuleUnload_params *)parameters)->hmod : NULL;
        out->stream = NULL;
        out->freed = (kprof_argument){.is_module = true, .module = module};
    } else if (kind == KPROF_CALL_POOL_FREE) {
        out->stream = NULL;
        out->freed_to_pool = ((const cuMemFreeAsync_params *)parameters)->dptr;
    } else if (kind == KPROF_CALL_ALLOCATE || kind == KPROF_CALL_SETUP || kind == KPROF_CALL_CODE) {
        out->stream = kprof_allocation_stream(id, parameters);
        out->allocation_bytes = kprof_allocation_bytes(id, parameters);
    }
}

kprof_call_kind kprof_call_decode(CUpti_CallbackId id, const void *parameters, kprof_decoded_call *out)
{
    kprof_call_kind kind = find_kind(id, parameters, &out->transfer);
    if (kind == KPROF_CALL_TRANSFER)
        out->stream = out->transfer.stream;
    else
        kprof_call_decode_known(kind, id, parameters, out);
    return kind;
}

CUlaunchConfig kprof_launch_config(const kprof_launch_record *shape, CUlaunchAttribute *attribute)
{
    CUlaunchConfig config = {
        .gridDimX = shape->grid[0],
        .gridDimY = shape->grid[1],
        .gridDimZ = shape->grid[2],
        .blockDimX = shape->block[0],
        .blockDimY = shape->block[1],
        .blockDimZ = shape->block[2],
        .sharedMemBytes = shape->dynamic_smem_bytes,
        .attrs = attribute,
        .numAttrs = 1,
    };
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = shape->cluster[0];
    attribute->value.clusterDim.y = shape->cluster[1];
    attribute->value.clusterDim.z = shape->cluster[2];
    return config;
}
