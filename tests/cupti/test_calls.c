/* Tests with whom driver calls share memory, by the call alone or by the access that it gives; and what is read out of
 * them. */
#include "cupti/allocations.h"
#include "cupti/calls.h"
#include "cupti/driver.h"
#include "test.h"

#include <sys/mman.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

enum { OWN_DEVICE = 3, OTHER_DEVICE = 0 };
/* The driver knows memory at each of these addresses. */
enum { OWN_MEMORY = 0x400000, OTHER_MEMORY = 0x800000, MORE_OWN_MEMORY = 0xc00000, MEMORY_BYTES = 0x400000 };

static CUresult context_result; /* of asking for the context's device */
static int device_count = 1;

static CUresult CUDAAPI context_device(CUdevice *device)
{
    *device = OWN_DEVICE;
    return context_result;
}

static CUresult CUDAAPI count_devices(int *count)
{
    *count = device_count;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI pointer_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUdeviceptr start = address & ~(CUdeviceptr)(MEMORY_BYTES - 1);
    if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || start < OWN_MEMORY || start > MORE_OWN_MEMORY)
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)out = start == OTHER_MEMORY ? OTHER_DEVICE : OWN_DEVICE;
    return CUDA_SUCCESS;
}

static char captured_stream;

static CUresult CUDAAPI is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = (void *)stream == &captured_stream ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

#define USED_DEVICE 1

static CUresult CUDAAPI primary_state(CUdevice device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = device == USED_DEVICE;
    return CUDA_SUCCESS;
}

/* In place of the driver's. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuCtxGetDevice_ = context_device,
                                         .cuDeviceGetCount_ = count_devices,
                                         .cuDevicePrimaryCtxGetState_ = primary_state,
                                         .cuPointerGetAttribute_ = pointer_attribute,
                                         .cuStreamIsCapturing_ = is_capturing};
    *out = &api;
    return KPROF_OK;
}

TEST(test_calls_that_share)
{
    static const struct {
        CUpti_CallbackId id;
        unsigned shared;
    } rows[] = {
        {ID(cuMemAllocHost_v2), KPROF_SHARES_WITH_HOST},
        {ID(cuMemHostAlloc), KPROF_SHARES_WITH_HOST},
        {ID(cuMemAllocManaged), KPROF_MANAGED},
        {ID(cuLibraryGetManaged), KPROF_MANAGED},
        {ID(cuCtxEnablePeerAccess), KPROF_SHARES_WITH_DEVICES},
        {ID(cuIpcOpenMemHandle_v2), KPROF_SHARES_WITH_DEVICES},
        {ID(cuMemImportFromShareableHandle), KPROF_SHARES_WITH_DEVICES},
        {ID(cuMemGetHandleForAddressRange), KPROF_SHARES_WITH_DEVICES},
        {ID(cuMemPeerRegister), KPROF_SHARES_WITH_DEVICES},
        {ID(cuGLMapBufferObject_v2_ptds), KPROF_SHARES_WITH_DEVICES},
        {ID(cuEGLStreamConsumerConnect), KPROF_SHARES_WITH_DEVICES},
        {ID(cuGraphicsMapResources_ptsz), KPROF_SHARES_WITH_DEVICES},
        {ID(cuLaunchHostFunc_ptsz), KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE},
        {ID(cuGraphAddHostNode), KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE},
        {ID(cuGraphAddExternalSemaphoresWaitNode), KPROF_WAITS_FOR_HOST},
        {ID(cuGraphicsEGLRegisterImage), KPROF_SHARES_WITH_DEVICES},
        {ID(cuUserObjectCreate), KPROF_RUNS_HOST_CODE},
        {ID(cuMemMapArrayAsync), KPROF_MAY_NOT_SAVE},
        {ID(cuMemMapArrayAsync_ptsz), KPROF_MAY_NOT_SAVE},
        {ID(cuGreenCtxCreate), KPROF_MAY_NOT_SAVE},
        {ID(cuSurfObjectCreate), KPROF_MAY_NOT_SAVE},
        {ID(cuSurfRefSetArray), KPROF_MAY_NOT_SAVE},
        {ID(cuMemMap), 0},
        {ID(cuMemAlloc), KPROF_MAY_NOT_SAVE},
        {ID(cuMemAllocPitch), KPROF_MAY_NOT_SAVE},
        {ID(cuStreamWaitValue64_v2_ptsz), KPROF_WAITS_FOR_HOST},
        {ID(cuWaitExternalSemaphoresAsync), KPROF_WAITS_FOR_HOST},
        {ID(cuIpcOpenEventHandle), KPROF_WAITS_FOR_HOST},
        {ID(cuEventCreateFromEGLSync), KPROF_WAITS_FOR_HOST},
        {ID(cuLogsRegisterCallback), KPROF_RUNS_HOST_CODE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(kprof_call_sharing(rows[i].id, NULL), rows[i].shared);
}

TEST(test_calls_that_share_nothing)
{
    static const CUpti_CallbackId ids[] = {
        ID(INVALID), ID(cuMemAlloc_v2), ID(cuMemsetD8_v2), ID(cuLaunchKernel), ID(cuGraphLaunch), ID(cuMemFreeHost),
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        assert_int_equal(kprof_call_sharing(ids[i], NULL), 0);
}

/* Memory that is allocated in a capture is a graph's. */
TEST(test_memory_of_captures)
{
    cuMemAllocAsync_params plain = {.bytesize = 64};
    cuMemAllocFromPoolAsync_params captured = {.bytesize = 64, .hStream = (CUstream)(void *)&captured_stream};
    assert_int_equal(kprof_call_sharing(ID(cuMemAllocAsync), &plain), 0);
    assert_int_equal(kprof_call_sharing(ID(cuMemAllocFromPoolAsync_ptsz), &captured), KPROF_MAY_NOT_SAVE);
}

static kprof_call_kind kind_of(CUpti_CallbackId id, const void *parameters)
{
    kprof_decoded_call decoded;
    return kprof_call_decode(id, parameters, &decoded);
}

/* The engine looks for new sharing after calls that it keeps out of a replay, not after others. */
TEST(test_calls_that_share_are_kept_apart)
{
    static const uint64_t no_parameters[16] = {0};
    for (CUpti_CallbackId id = 0; id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++) {
        kprof_call_kind kind = kind_of(id, no_parameters);
        if (kind == KPROF_CALL_WAIT || kind == KPROF_CALL_HARMLESS || kind == KPROF_CALL_ORDER)
            assert_int_equal(kprof_call_sharing(id, no_parameters), 0);
    }
}

/* A call that only a newer driver has closes a batch, and may share with everybody. */
TEST(test_unknown_calls)
{
    static const CUpti_CallbackId ids[] = {CUPTI_DRIVER_TRACE_CBID_SIZE, CUPTI_DRIVER_TRACE_CBID_SIZE + 1, 100000,
                                           ID(FORCE_INT), UINT32_MAX};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        assert_int_equal(kind_of(ids[i], NULL), KPROF_CALL_OTHER);
        assert_int_equal(kprof_call_sharing(ids[i], NULL), KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES |
                                                               KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE |
                                                               KPROF_MANAGED | KPROF_UNLISTED_HOST);
    }
}

/* What is not seen must bring nothing, take nothing away and share nothing. */
TEST(test_calls_that_may_go_unseen)
{
    static const uint64_t no_parameters[16] = {0};
    static const CUpti_CallbackId unseen[] = {ID(cuLaunchKernel),      ID(cuLaunchKernelEx_ptsz), ID(cuGraphLaunch),
                                              ID(cuStreamSynchronize), ID(cuEventRecord),         ID(cuCtxGetCurrent)};
    static const CUpti_CallbackId seen[] = {ID(cuMemAlloc_v2),      ID(cuMemFree_v2),
                                            ID(cuModuleUnload),     ID(cuLibraryLoadData),
                                            ID(cuStreamEndCapture), ID(cuMemHostAlloc),
                                            ID(cuGraphExecDestroy), ID(cuGraphExecUpdate_v2),
                                            ID(cuLaunchHostFunc),   ID(cuLaunchCooperativeKernelMultiDevice)};
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
        assert_true(kprof_call_may_go_unseen(unseen[i]));
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        assert_false(kprof_call_may_go_unseen(seen[i]));
    assert_false(kprof_call_may_go_unseen(CUPTI_DRIVER_TRACE_CBID_SIZE)); /* of a newer driver */
    for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++) {
        kprof_call_result result;
        if (!kprof_call_may_go_unseen(id))
            continue;
        kprof_call_decode_result(id, no_parameters, &result);
        assert_int_equal(result.sharing, 0);
        assert_int_equal(result.memory.kind, KPROF_MEMORY_UNCHANGED);
        assert_null(result.module);
    }
}

/* CUPTI never tells of these: kprof's own events and what frameworks ask at each launch are among them. */
TEST(test_calls_that_are_ignored)
{
    static const CUpti_CallbackId ignored[] = {ID(cuStreamIsCapturing), ID(cuEventCreate), ID(cuCtxGetCurrent),
                                               ID(cuFuncGetAttribute), ID(cuThreadExchangeStreamCaptureMode)};
    static const CUpti_CallbackId ordering[] = {ID(cuStreamWaitEvent), ID(cuEventRecord),
                                                ID(cuEventRecordWithFlags_ptsz)};
    static const CUpti_CallbackId told[] = {ID(cuProfilerStart), ID(cuProfilerStop),          ID(cuEventQuery),
                                            ID(cuLaunchKernel),  ID(cuStreamSynchronize),     ID(cuMemPoolGetAttribute),
                                            ID(cuMemcpyAsync),   ID(cuDevicePrimaryCtxRetain)};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        assert_true(kprof_call_is_ignored(ignored[i], i % 2));
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        assert_false(kprof_call_is_ignored(told[i], i % 2));
    assert_false(kprof_call_is_ignored(CUPTI_DRIVER_TRACE_CBID_SIZE, false)); /* of a newer driver */
    for (size_t i = 0; i < sizeof ordering / sizeof *ordering; i++) {
        assert_true(kprof_call_is_ignored(ordering[i], false));
        assert_false(kprof_call_is_ignored(ordering[i], true));
    }
    for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++)
        assert_true(!kprof_call_is_ignored(id, false) || kprof_call_may_go_unseen(id));
}

TEST(test_kinds)
{
    static const uint64_t no_parameters[16] = {0};
    static const struct {
        CUpti_CallbackId id;
        kprof_call_kind kind;
    } rows[] = {
        {ID(cuLaunchKernel), KPROF_CALL_LAUNCH},
        {ID(cuLaunchKernelEx_ptsz), KPROF_CALL_LAUNCH},
        {ID(cuLaunchCooperativeKernel), KPROF_CALL_LAUNCH},
        {ID(cuGraphLaunch_ptsz), KPROF_CALL_GRAPH_LAUNCH},
        {ID(cuGraphExecUpdate_v2), KPROF_CALL_GRAPH_CHANGE},
        {ID(cuGraphExecDestroy), KPROF_CALL_GRAPH_CHANGE},
        {ID(cuGraphUpload_ptsz), KPROF_CALL_GRAPH_CHANGE},
        {ID(cuGraphKernelNodeSetParams_v2), KPROF_CALL_SETUP},
        {ID(cuModuleUnload), KPROF_CALL_UNLOAD},
        {ID(cuStreamQuery), KPROF_CALL_WAIT},
        {ID(cuEventRecord_ptsz), KPROF_CALL_HARMLESS},
        {ID(cuDevicePrimaryCtxGetState), KPROF_CALL_HARMLESS},
        {ID(cuCtxGetDevice_v2), KPROF_CALL_HARMLESS},
        {ID(cuStreamGetCaptureInfo_v3_ptsz), KPROF_CALL_HARMLESS},
        {ID(cuCtxSynchronize_v2), KPROF_CALL_WAIT},
        {ID(cuCtxPushCurrent_v2), KPROF_CALL_HARMLESS},
        {ID(cuThreadExchangeStreamCaptureMode), KPROF_CALL_HARMLESS},
        {ID(cuTensorMapEncodeTiled), KPROF_CALL_HARMLESS},
        {ID(cuTensorMapReplaceAddress), KPROF_CALL_HARMLESS},
        {ID(cuMemsetD8Async), KPROF_CALL_TRANSFER},
        {ID(cuMemcpyDtoDAsync_v2_ptsz), KPROF_CALL_TRANSFER},
        {ID(cuMemcpyHtoDAsync_v2), KPROF_CALL_TRANSFER},
        {ID(cuMemcpyDtoH_v2_ptds), KPROF_CALL_TRANSFER},
        {ID(cuMemcpy2DAsync_v2), KPROF_CALL_OTHER}, /* of no rows at all */
        {ID(cuMemcpyPeerAsync), KPROF_CALL_OTHER},
        {ID(cuMemGetInfo_v2), KPROF_CALL_MEMORY_INFO},
        {ID(cuKernelGetFunction), KPROF_CALL_CODE},
        {ID(cuLibraryGetKernel), KPROF_CALL_CODE},
        {ID(cuMemPoolGetAttribute), KPROF_CALL_HARMLESS},
        {ID(cuInit), KPROF_CALL_HARMLESS},
        {ID(cuOccupancyMaxPotentialBlockSize), KPROF_CALL_HARMLESS},
        {ID(cuGraphMemcpyNodeGetParams), KPROF_CALL_SETUP},
        {ID(cuGraphRetainUserObject), KPROF_CALL_SETUP},
        {ID(cuMemRangeGetAttribute), KPROF_CALL_OTHER},
        {ID(cuDeviceGetGraphMemAttribute), KPROF_CALL_OTHER},
        {ID(cuCtxSetLimit), KPROF_CALL_OTHER},
        {ID(cuEventDestroy_v2), KPROF_CALL_SETUP},
        {ID(cuFuncSetCacheConfig), KPROF_CALL_CODE},
        {ID(cuMemcpyHtoD_v2), KPROF_CALL_TRANSFER},
        {ID(cuMemFree_v2), KPROF_CALL_FREE},
        {ID(cuMemAlloc_v2), KPROF_CALL_ALLOCATE},
        {ID(cuMemAlloc), KPROF_CALL_OTHER},
        {ID(cuMemAllocAsync_ptsz), KPROF_CALL_ALLOCATE},
        {ID(cuMemAllocFromPoolAsync), KPROF_CALL_ALLOCATE},
        {ID(cuMemSetAccess), KPROF_CALL_ALLOCATE},
        {ID(cuMemAllocManaged), KPROF_CALL_OTHER},
        {ID(cuMemAllocHost_v2), KPROF_CALL_SETUP},
        {ID(cuMemHostRegister_v2), KPROF_CALL_SETUP},
        {ID(cuMemCreate), KPROF_CALL_SETUP},
        {ID(cuMemMap), KPROF_CALL_OTHER},
        {ID(cuMemUnmap), KPROF_CALL_OTHER},
        {ID(cuMemFreeAsync), KPROF_CALL_POOL_FREE},
        {ID(cuModuleLoadData), KPROF_CALL_CODE},
        {ID(cuLaunchHostFunc), KPROF_CALL_SETUP},
        {ID(cuStreamCreateWithPriority), KPROF_CALL_SETUP},
        {ID(cuStreamBatchMemOp_v2), KPROF_CALL_OTHER},
        {ID(cuStreamWaitValue32_v2), KPROF_CALL_VALUE_WAIT},
        {ID(cuStreamWaitValue64_v2_ptsz), KPROF_CALL_VALUE_WAIT},
        {ID(cuMemPoolTrimTo), KPROF_CALL_OTHER},
        {ID(cuMemcpyPeer), KPROF_CALL_OTHER},
        {ID(cuMemcpy3DPeerAsync), KPROF_CALL_OTHER},
        {ID(cuStreamBeginCapture_v2), KPROF_CALL_CAPTURE},
        {ID(cuStreamEndCapture), KPROF_CALL_CAPTURE_END},
        {ID(cuCtxDestroy_v2), KPROF_CALL_STOP},
        {ID(cuCtxDetach), KPROF_CALL_STOP},
        {ID(INVALID), KPROF_CALL_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(kind_of(rows[i].id, no_parameters), rows[i].kind);
}

/* Another user of a context changes nothing, a new context may. */
TEST(test_retaining_a_context)
{
    cuDevicePrimaryCtxRetain_params used = {.dev = USED_DEVICE}, unused = {.dev = USED_DEVICE + 1};
    assert_int_equal(kind_of(ID(cuDevicePrimaryCtxRetain), &used), KPROF_CALL_HARMLESS);
    assert_int_equal(kind_of(ID(cuDevicePrimaryCtxRetain), &unused), KPROF_CALL_OTHER);
}

static kprof_call_kind kind_of_setting(CUfunction_attribute attribute, int value)
{
    cuFuncSetAttribute_params function = {.attrib = attribute, .value = value};
    cuKernelSetAttribute_params kernel = {.attrib = attribute, .val = value};
    kprof_call_kind kind = kind_of(ID(cuFuncSetAttribute), &function);
    assert_int_equal(kind_of(ID(cuKernelSetAttribute), &kernel), kind);
    return kind;
}

TEST(test_calls_that_change_settings)
{
    const cuFuncSetAttribute_params limit = {.attrib = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES};
    const cuFuncSetAttribute_params carveout = {.attrib = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
    const cuKernelSetAttribute_params policy = {.attrib = CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
    assert_false(kprof_call_changes_setting(ID(cuFuncSetAttribute), &limit));
    assert_true(kprof_call_changes_setting(ID(cuFuncSetAttribute), &carveout));
    assert_true(kprof_call_changes_setting(ID(cuKernelSetAttribute), &policy));
    assert_false(kprof_call_changes_setting(ID(cuFuncGetAttribute), &carveout));
}

/* A replay of a launch has the limits that it had, and puts back those of now: nobody may change them meanwhile. */
TEST(test_function_attributes)
{
    static const CUfunction_attribute limits[] = {
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        assert_int_equal(kind_of_setting(limits[i], 1), KPROF_CALL_CODE);
        assert_int_equal(kind_of_setting(limits[i], 0), KPROF_CALL_CODE);
    }
    assert_int_equal(kind_of_setting(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2), KPROF_CALL_OTHER);
    assert_int_equal(kind_of_setting(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 1), KPROF_CALL_OTHER);
}

#define CHECK_LOAD(name)                                                                                               \
    do {                                                                                                               \
        CUmodule made = module;                                                                                        \
        name##_params p = {.module = &made};                                                                           \
        kprof_call_decode_result(ID(name), &p, &result);                                                               \
        assert_ptr_equal(result.loaded, module);                                                                       \
        assert_int_equal(kind_of(ID(name), &p), KPROF_CALL_CODE);                                                      \
    } while (0)

/* The hook may put another module in the place of the one that is unloaded. */
TEST(test_modules)
{
    char places[2];
    const CUmodule module = (CUmodule)(void *)&places[0], other = (CUmodule)(void *)&places[1];
    kprof_call_result result;
    CHECK_LOAD(cuModuleLoad);
    CHECK_LOAD(cuModuleLoadData);
    CHECK_LOAD(cuModuleLoadDataEx);
    CHECK_LOAD(cuModuleLoadFatBinary);
    kprof_decoded_call decoded = {0};
    cuModuleUnload_params unload = {.hmod = module};
    assert_int_equal(kprof_call_decode(ID(cuModuleUnload), &unload, &decoded), KPROF_CALL_UNLOAD);
    assert_true(decoded.freed.is_module);
    *decoded.freed.module = other;
    assert_ptr_equal(unload.hmod, other);
    kprof_call_decode_result(ID(cuModuleUnload), &unload, &result);
    assert_null(result.loaded);
    assert_ptr_equal(result.module, other);
    cuLibraryUnload_params library = {0};
    assert_int_equal(kprof_call_decode(ID(cuLibraryUnload), &library, &decoded), KPROF_CALL_UNLOAD);
    assert_true(decoded.freed.is_module);
    assert_null(decoded.freed.module);
}

/* What the pool is told to keep decides later, where a batch is open, and not the call. */
TEST(test_frees_to_pools)
{
    static const CUpti_CallbackId ids[] = {ID(cuMemFreeAsync), ID(cuMemFreeAsync_ptsz)};
    cuMemFreeAsync_params p = {.dptr = OWN_MEMORY};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        kprof_decoded_call decoded = {0};
        assert_int_equal(kprof_call_decode(ids[i], &p, &decoded), KPROF_CALL_POOL_FREE);
        assert_int_equal(decoded.freed_to_pool, OWN_MEMORY);
    }
}

static kprof_call_kind kind_of_question(CUmemPool_attribute attribute)
{
    cuMemPoolGetAttribute_params p = {.attr = attribute};
    kprof_decoded_call decoded = {.free_bytes = (size_t *)&p};
    kprof_call_kind kind = kprof_call_decode(ID(cuMemPoolGetAttribute), &p, &decoded);
    assert_true(kind != KPROF_CALL_MEMORY_INFO || !decoded.free_bytes);
    return kind;
}

/* kprof changes what a pool keeps, and so what it has, but not what the application uses of that. */
TEST(test_questions_of_pools)
{
    assert_int_equal(kind_of_question(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), KPROF_CALL_MEMORY_INFO);
    assert_int_equal(kind_of_question(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), KPROF_CALL_MEMORY_INFO);
    assert_int_equal(kind_of_question(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), KPROF_CALL_MEMORY_INFO);
    assert_int_equal(kind_of_question(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), KPROF_CALL_HARMLESS);
    assert_int_equal(kind_of_question(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), KPROF_CALL_HARMLESS);
}

static void note_memory(CUpti_CallbackId id, const void *parameters)
{
    kprof_memory_change change;
    kprof_call_memory_change(id, parameters, &change);
    kprof_allocations_note(&change, NULL);
}

/* Memory that is mapped a second time may be saved at its first address. */
TEST(test_mappings)
{
    CUmemGenericAllocationHandle handle = 77;
    cuMemCreate_params create = {.handle = &handle};
    cuMemMap_params map = {.ptr = OWN_MEMORY, .size = MEMORY_BYTES, .handle = handle};
    assert_int_equal(kind_of(ID(cuMemMap), &map), KPROF_CALL_OTHER);
    note_memory(ID(cuMemCreate), &create);
    assert_int_equal(kind_of(ID(cuMemMap), &map), KPROF_CALL_SETUP);
    note_memory(ID(cuMemMap), &map);
    assert_int_equal(kind_of(ID(cuMemMap), &map), KPROF_CALL_OTHER);
}

/* The stream in whose order memory comes. */
TEST(test_allocations_in_streams)
{
    CUstream stream = (CUstream)0x100;
    cuMemAllocAsync_params own = {.hStream = stream}, of_default = {.hStream = NULL};
    cuMemAllocFromPoolAsync_params from_pool = {.hStream = stream}, of_pool = {.hStream = NULL};
    assert_ptr_equal(kprof_allocation_stream(ID(cuMemAllocAsync), &own), stream);
    assert_ptr_equal(kprof_allocation_stream(ID(cuMemAllocAsync_ptsz), &own), stream);
    assert_ptr_equal(kprof_allocation_stream(ID(cuMemAllocAsync), &of_default), CU_STREAM_LEGACY);
    assert_ptr_equal(kprof_allocation_stream(ID(cuMemAllocAsync_ptsz), &of_default), CU_STREAM_PER_THREAD);
    assert_ptr_equal(kprof_allocation_stream(ID(cuMemAllocFromPoolAsync), &from_pool), stream);
    assert_ptr_equal(kprof_allocation_stream(ID(cuMemAllocFromPoolAsync), &of_pool), CU_STREAM_LEGACY);
    assert_ptr_equal(kprof_allocation_stream(ID(cuMemAllocFromPoolAsync_ptsz), &of_pool), CU_STREAM_PER_THREAD);
    assert_null(kprof_allocation_stream(ID(cuMemAlloc_v2), &own));
}

TEST(test_streams_that_wait)
{
    kprof_decoded_call decoded;
    cuStreamWaitEvent_params own = {.hStream = (CUstream)0x100}, of_default = {.hStream = NULL};
    assert_int_equal(kprof_call_decode(ID(cuStreamWaitEvent), &own, &decoded), KPROF_CALL_ORDER);
    assert_ptr_equal(decoded.stream, own.hStream);
    (void)kprof_call_decode(ID(cuStreamWaitEvent_ptsz), &own, &decoded);
    assert_ptr_equal(decoded.stream, own.hStream);
    (void)kprof_call_decode(ID(cuStreamWaitEvent), &of_default, &decoded);
    assert_null(decoded.stream);
    (void)kprof_call_decode(ID(cuStreamWaitEvent_ptsz), &of_default, &decoded);
    assert_ptr_equal(decoded.stream, CU_STREAM_PER_THREAD);
    assert_true(kprof_call_is_decoded(KPROF_CALL_ORDER));
    static const CUpti_CallbackId for_values[] = {
        ID(cuStreamWaitValue32),      ID(cuStreamWaitValue32_ptsz),    ID(cuStreamWaitValue64),
        ID(cuStreamWaitValue64_ptsz), ID(cuStreamWaitValue32_v2),      ID(cuStreamWaitValue32_v2_ptsz),
        ID(cuStreamWaitValue64_v2),   ID(cuStreamWaitValue64_v2_ptsz),
    };
    cuStreamWaitValue32_params value = {.stream = (CUstream)0x100}, of_default_value = {.stream = NULL};
    for (size_t i = 0; i < sizeof for_values / sizeof *for_values; i++) {
        assert_int_equal(kprof_call_decode(for_values[i], &value, &decoded), KPROF_CALL_VALUE_WAIT);
        assert_ptr_equal(decoded.stream, value.stream);
        (void)kprof_call_decode(for_values[i], &of_default_value, &decoded);
        assert_ptr_equal(decoded.stream, i % 2 ? CU_STREAM_PER_THREAD : NULL);
        assert_false(kprof_call_may_go_unseen(for_values[i]));
        assert_false(kprof_call_is_ignored(for_values[i], false));
    }
    assert_true(kprof_call_is_decoded(KPROF_CALL_VALUE_WAIT));
}

TEST(test_streams_of_migrations)
{
    static const CUpti_CallbackId ids[] = {ID(cuMemPrefetchAsync),      ID(cuMemPrefetchAsync_ptsz),
                                           ID(cuMemPrefetchAsync_v2),   ID(cuMemPrefetchAsync_v2_ptsz),
                                           ID(cuMemPrefetchBatchAsync), ID(cuMemPrefetchBatchAsync_ptsz)};
    CUstream stream = (CUstream)0x100;
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
        cuMemPrefetchAsync_params first = {.hStream = stream};
        cuMemPrefetchAsync_v2_params second = {.hStream = stream};
        cuMemPrefetchBatchAsync_params many = {.hStream = stream};
        const void *const parameters[] = {&first, &second, &many};
        kprof_decoded_call decoded;
        assert_int_equal(kprof_call_decode(ids[i], parameters[i / 2], &decoded), KPROF_CALL_MIGRATE);
        assert_ptr_equal(decoded.stream, stream);
        first.hStream = second.hStream = many.hStream = NULL;
        (void)kprof_call_decode(ids[i], parameters[i / 2], &decoded);
        assert_ptr_equal(decoded.stream, i % 2 ? CU_STREAM_PER_THREAD : NULL);
    }
    assert_true(kprof_call_is_decoded(KPROF_CALL_MIGRATE));
}

/* A batch stays open over those that wait alone, or write one value. */
TEST(test_operations_on_values)
{
    static const CUpti_CallbackId ids[] = {ID(cuStreamBatchMemOp), ID(cuStreamBatchMemOp_ptsz),
                                           ID(cuStreamBatchMemOp_v2), ID(cuStreamBatchMemOp_v2_ptsz)};
    enum { WAIT = CU_STREAM_MEM_OP_WAIT_VALUE_32, LONG_WAIT = CU_STREAM_MEM_OP_WAIT_VALUE_64, NEW = 1000 };
    enum { WRITE = CU_STREAM_MEM_OP_WRITE_VALUE_32, LONG_WRITE = CU_STREAM_MEM_OP_WRITE_VALUE_64 };
    enum { BARRIER = CU_STREAM_MEM_OP_BARRIER, FLUSH = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES };
    static const struct {
        int operations[4];
        kprof_call_kind kind;
        size_t bytes;
    } rows[] = {
        {{WAIT}, KPROF_CALL_VALUE_WAIT, 0},
        {{LONG_WAIT, FLUSH, WAIT, BARRIER}, KPROF_CALL_VALUE_WAIT, 0},
        {{WRITE}, KPROF_CALL_TRANSFER, 4},
        {{BARRIER, LONG_WRITE}, KPROF_CALL_TRANSFER, 8},
        {{WRITE, WRITE}, KPROF_CALL_OTHER, 0},
        {{WAIT, WRITE}, KPROF_CALL_OTHER, 0},
        {{WRITE, NEW}, KPROF_CALL_OTHER, 0},
        {{WAIT, NEW}, KPROF_CALL_OTHER, 0},
        {{0}, KPROF_CALL_OTHER, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUstreamBatchMemOpParams list[4] = {0};
        cuStreamBatchMemOp_v2_params call = {.stream = NULL, .paramArray = list};
        for (; call.count < 4 && rows[i].operations[call.count]; call.count++) {
            CUstreamBatchMemOpParams *it = &list[call.count];
            it->operation = (CUstreamBatchMemOpType)rows[i].operations[call.count];
            it->writeValue.address = 64;
            it->writeValue.value64 = UINT64_C(0x123456789);
        }
        for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
            kprof_decoded_call decoded;
            assert_int_equal(kprof_call_decode(ids[k], &call, &decoded), rows[i].kind);
            if (rows[i].kind != KPROF_CALL_OTHER)
                assert_ptr_equal(decoded.stream, k % 2 ? CU_STREAM_PER_THREAD : NULL);
            if (rows[i].kind != KPROF_CALL_TRANSFER)
                continue;
            assert_int_equal(decoded.transfer.kind, KPROF_TRANSFER_SET);
            assert_int_equal(decoded.transfer.destination, 64);
            assert_int_equal(decoded.transfer.element_bytes, rows[i].bytes);
            assert_int_equal(decoded.transfer.value, rows[i].bytes == 4 ? 0x23456789 : UINT64_C(0x123456789));
        }
    }
}

TEST(test_transfers)
{
    kprof_transfer t;
    CUstream stream = (CUstream)0x100;
    cuMemsetD2D16Async_params rows = {.dstDevice = 64, .dstPitch = 512, .us = 7, .Width = 30, .Height = 4};
    rows.hStream = stream;
    assert_true(kprof_call_transfer(ID(cuMemsetD2D16Async), &rows, &t));
    assert_true(t.destination == 64 && t.element_bytes == 2 && t.value == 7 && t.pitch_bytes == 512);
    assert_true(t.width == 30 && t.height == 4 && t.stream == stream);
    cuMemsetD8_v2_params row = {.dstDevice = 64, .uc = 9, .N = 100};
    assert_true(kprof_call_transfer(ID(cuMemsetD8_v2), &row, &t));
    assert_true(t.element_bytes == 1 && t.value == 9 && t.width == 100 && t.height == 1 && t.stream == NULL);
    assert_int_equal(t.kind, KPROF_TRANSFER_SET);
    assert_true(kprof_call_transfer(ID(cuMemsetD8_v2_ptds), &row, &t));
    assert_true(t.stream == CU_STREAM_PER_THREAD);
    cuMemcpyDtoDAsync_v2_params copy = {.dstDevice = 64, .srcDevice = 128, .ByteCount = 16, .hStream = stream};
    assert_true(kprof_call_transfer(ID(cuMemcpyDtoDAsync_v2_ptsz), &copy, &t));
    assert_true(t.kind == KPROF_TRANSFER_COPY && !t.waits && t.height == 1);
    assert_true(t.destination == 64 && t.source == 128 && t.width == 16 && t.stream == stream);
}

/* Such a write is a set of one value. */
TEST(test_values_that_are_written_in_the_order_of_a_stream)
{
    kprof_transfer t;
    CUstream stream = (CUstream)0x100;
    cuStreamWriteValue32_params of4 = {.stream = stream, .addr = 64, .value = 4000000000u};
    cuStreamWriteValue64_params of8 = {.addr = 64, .value = UINT64_C(0x123456789)};
    static const CUpti_CallbackId ids[] = {ID(cuStreamWriteValue32), ID(cuStreamWriteValue32_ptsz),
                                           ID(cuStreamWriteValue32_v2), ID(cuStreamWriteValue32_v2_ptsz)},
                                  longer[] = {ID(cuStreamWriteValue64), ID(cuStreamWriteValue64_ptsz),
                                              ID(cuStreamWriteValue64_v2), ID(cuStreamWriteValue64_v2_ptsz)};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(kind_of(ids[i], &of4), KPROF_CALL_TRANSFER);
        assert_true(kprof_call_transfer(ids[i], &of4, &t));
        assert_true(t.kind == KPROF_TRANSFER_SET && !t.waits && t.destination == 64 && t.stream == stream);
        assert_true(t.value == 4000000000u && t.element_bytes == 4 && t.width == 1 && t.height == 1);
        assert_true(kprof_call_transfer(longer[i], &of8, &t));
        assert_true(t.kind == KPROF_TRANSFER_SET && t.destination == 64 && t.element_bytes == 8);
        assert_true(t.value == UINT64_C(0x123456789) && t.width == 1 && t.height == 1);
        assert_ptr_equal(t.stream, i % 2 == 1 ? CU_STREAM_PER_THREAD : NULL);
        assert_int_equal(kprof_transfer_destination_bytes(&t), 8);
    }
}

/* The host's side is none of the device's addresses. */
TEST(test_transfers_from_and_to_the_host)
{
    char host;
    kprof_transfer t;
    CUstream stream = (CUstream)0x100;
    cuMemcpyHtoDAsync_v2_params in = {.dstDevice = 64, .srcHost = &host, .ByteCount = 16, .hStream = stream};
    cuMemcpyDtoHAsync_v2_params out = {.dstHost = &host, .srcDevice = 128, .ByteCount = 16, .hStream = stream};
    assert_true(kprof_call_transfer(ID(cuMemcpyHtoDAsync_v2), &in, &t));
    assert_true(t.kind == KPROF_TRANSFER_IN && !t.waits && t.destination == 64);
    assert_true(t.source == (CUdeviceptr)(uintptr_t)&host);
    assert_true(t.width == 16 && t.height == 1 && t.stream == stream);
    assert_true(kprof_call_transfer(ID(cuMemcpyDtoHAsync_v2_ptsz), &out, &t));
    assert_true(t.kind == KPROF_TRANSFER_OUT && !t.waits && t.source == 128);
    assert_true(t.destination == (CUdeviceptr)(uintptr_t)&host);
    assert_true(t.width == 16 && t.height == 1 && t.stream == stream);
    assert_true(kprof_call_transfer(ID(cuMemcpyHtoD_v2_ptds), &in, &t));
    assert_true(t.kind == KPROF_TRANSFER_IN && t.waits && t.stream == CU_STREAM_PER_THREAD);
    assert_true(kprof_call_transfer(ID(cuMemcpyDtoH_v2), &out, &t));
    assert_true(t.kind == KPROF_TRANSFER_OUT && t.waits && t.stream == NULL);
}

/* The kind of a call that sets or copies, in either of its forms. */
typedef struct known_transfer {
    CUpti_CallbackId plain, per_thread;
    const void *parameters;
    size_t element_bytes;
    bool waits; /* takes no stream: its arguments are those of the call that does, but for the last */
} known_transfer;

static void assert_known(const known_transfer *known, CUpti_CallbackId id, size_t rows, CUstream stream)
{
    kprof_transfer t;
    assert_true(kprof_call_transfer(id, known->parameters, &t));
    assert_int_equal(t.element_bytes, known->element_bytes);
    assert_int_equal(t.destination, 64);
    assert_int_equal(t.width, 30);
    assert_ptr_equal(t.stream, stream);
    assert_int_equal(t.kind, known->element_bytes > 0 ? KPROF_TRANSFER_SET : KPROF_TRANSFER_COPY);
    if (known->element_bytes == 0) {
        assert_int_equal(t.source, 128);
        assert_int_equal(t.waits, known->waits);
        return;
    }
    assert_int_equal(t.value, 200);
    assert_int_equal(t.height, rows);
    if (rows > 1)
        assert_int_equal(t.pitch_bytes, 512);
}

static void assert_all_known(const known_transfer *known, size_t count, size_t rows, CUstream stream)
{
    for (size_t i = 0; i < count; i++) {
        CUstream given = known[i].waits ? NULL : stream;
        assert_known(&known[i], known[i].plain, rows, given);
        assert_known(&known[i], known[i].per_thread, rows, given ? given : CU_STREAM_PER_THREAD);
    }
}

#define BOTH(name, suffix) ID(name), ID(name##suffix)

static void assert_sets(CUstream stream)
{
    cuMemsetD8Async_params p8 = {64, 200, 30, stream};
    cuMemsetD16Async_params p16 = {64, 200, 30, stream};
    cuMemsetD32Async_params p32 = {64, 200, 30, stream};
    const known_transfer sets[] = {
        {BOTH(cuMemsetD8_v2, _ptds), &p8, 1, true},      {BOTH(cuMemsetD16_v2, _ptds), &p16, 2, true},
        {BOTH(cuMemsetD32_v2, _ptds), &p32, 4, true},    {BOTH(cuMemsetD8Async, _ptsz), &p8, 1, false},
        {BOTH(cuMemsetD16Async, _ptsz), &p16, 2, false}, {BOTH(cuMemsetD32Async, _ptsz), &p32, 4, false},
    };
    assert_all_known(sets, sizeof sets / sizeof *sets, 1, stream);
}

static void assert_sets_of_rows(CUstream stream)
{
    cuMemsetD2D8Async_params p8 = {64, 512, 200, 30, 4, stream};
    cuMemsetD2D16Async_params p16 = {64, 512, 200, 30, 4, stream};
    cuMemsetD2D32Async_params p32 = {64, 512, 200, 30, 4, stream};
    const known_transfer sets[] = {
        {BOTH(cuMemsetD2D8_v2, _ptds), &p8, 1, true},      {BOTH(cuMemsetD2D16_v2, _ptds), &p16, 2, true},
        {BOTH(cuMemsetD2D32_v2, _ptds), &p32, 4, true},    {BOTH(cuMemsetD2D8Async, _ptsz), &p8, 1, false},
        {BOTH(cuMemsetD2D16Async, _ptsz), &p16, 2, false}, {BOTH(cuMemsetD2D32Async, _ptsz), &p32, 4, false},
    };
    assert_all_known(sets, sizeof sets / sizeof *sets, 4, stream);
}

static void assert_copies(CUstream stream)
{
    cuMemcpyAsync_params p = {64, 128, 30, stream};
    const known_transfer copies[] = {
        {BOTH(cuMemcpy, _ptds), &p, 0, true},
        {BOTH(cuMemcpyDtoD_v2, _ptds), &p, 0, true},
        {BOTH(cuMemcpyAsync, _ptsz), &p, 0, false},
        {BOTH(cuMemcpyDtoDAsync_v2, _ptsz), &p, 0, false},
    };
    assert_all_known(copies, sizeof copies / sizeof *copies, 1, stream);
}

static CUDA_MEMCPY2D example_rows(void)
{
    static char host[1];
    return (CUDA_MEMCPY2D){.srcXInBytes = 3,
                           .srcY = 2,
                           .srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcDevice = 1,
                           .srcPitch = 100,
                           .dstXInBytes = 5,
                           .dstY = 4,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstHost = host,
                           .dstDevice = 64,
                           .dstPitch = 1000,
                           .WidthInBytes = 30,
                           .Height = 4};
}

/* Its first layer. */
static CUDA_MEMCPY3D as_layer(const CUDA_MEMCPY2D *p)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = p->srcXInBytes,
                           .srcY = p->srcY,
                           .srcMemoryType = p->srcMemoryType,
                           .srcHost = p->srcHost,
                           .srcDevice = p->srcDevice,
                           .srcPitch = p->srcPitch,
                           .dstXInBytes = p->dstXInBytes,
                           .dstY = p->dstY,
                           .dstMemoryType = p->dstMemoryType,
                           .dstHost = p->dstHost,
                           .dstDevice = p->dstDevice,
                           .dstPitch = p->dstPitch,
                           .WidthInBytes = p->WidthInBytes,
                           .Height = p->Height,
                           .Depth = 1};
}

/* Each of them, in both forms. */
TEST(test_copies_of_rows)
{
    const CUDA_MEMCPY2D rows = example_rows();
    const CUDA_MEMCPY3D layer = as_layer(&rows);
    cuMemcpy2DAsync_v2_params flat = {&rows, (CUstream)0x100};
    cuMemcpy3DAsync_v2_params deep = {&layer, (CUstream)0x100};
    const known_transfer copies[] = {
        {BOTH(cuMemcpy2D_v2, _ptds), &flat, 0, true},       {BOTH(cuMemcpy2DUnaligned_v2, _ptds), &flat, 0, true},
        {BOTH(cuMemcpy2DAsync_v2, _ptsz), &flat, 0, false}, {BOTH(cuMemcpy3D_v2, _ptds), &deep, 0, true},
        {BOTH(cuMemcpy3DAsync_v2, _ptsz), &deep, 0, false},
    };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        kprof_transfer t;
        assert_true(kprof_call_transfer(copies[i].plain, copies[i].parameters, &t));
        assert_ptr_equal(t.stream, copies[i].waits ? NULL : flat.hStream);
        assert_true(kprof_call_transfer(copies[i].per_thread, copies[i].parameters, &t));
        assert_ptr_equal(t.stream, copies[i].waits ? CU_STREAM_PER_THREAD : flat.hStream);
        assert_true(t.kind == KPROF_TRANSFER_COPY && t.waits == copies[i].waits);
        assert_int_equal(t.destination, 64 + 4 * 1000 + 5);
        assert_int_equal(t.source, (uintptr_t)rows.srcHost + 2 * 100 + 3);
        assert_true(t.pitch_bytes == 1000 && t.source_pitch_bytes == 100);
        assert_true(t.width == 30 && t.height == 4);
        assert_int_equal(kind_of(copies[i].plain, copies[i].parameters), KPROF_CALL_TRANSFER);
    }
}

static bool is_read(const CUDA_MEMCPY2D *rows)
{
    cuMemcpy2D_v2_params p = {rows};
    kprof_transfer t;
    return kprof_call_transfer(ID(cuMemcpy2D_v2), &p, &t);
}

/* Arrays have no address, and rows that overlap are an error. */
TEST(test_copies_of_rows_that_are_not_read)
{
    CUDA_MEMCPY2D rows = example_rows();
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    assert_true(is_read(&rows));
    rows.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    assert_false(is_read(&rows));
    rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    assert_false(is_read(&rows));
    rows = example_rows();
    rows.srcPitch = 29;
    assert_false(is_read(&rows));
    rows.Height = 1;
    assert_true(is_read(&rows));
    rows.dstPitch = 0;
    assert_true(is_read(&rows));
    rows.Height = 2;
    rows.srcPitch = 30;
    assert_false(is_read(&rows));
}

TEST(test_copies_of_layers)
{
    const CUDA_MEMCPY2D rows = example_rows();
    CUDA_MEMCPY3D layers = as_layer(&rows);
    cuMemcpy3D_v2_params p = {&layers};
    kprof_transfer t;
    layers.srcZ = layers.dstZ = 3;
    layers.srcHeight = 10;
    layers.dstHeight = 20;
    assert_true(kprof_call_transfer(ID(cuMemcpy3D_v2), &p, &t));
    assert_int_equal(t.destination, 64 + (3 * 20 + 4) * 1000 + 5);
    assert_int_equal(t.source, (uintptr_t)rows.srcHost + (3 * 10 + 2) * 100 + 3);
    layers.Depth = 2;
    assert_false(kprof_call_transfer(ID(cuMemcpy3D_v2), &p, &t));
}

/* Each of them, in both forms, with a stream and with none. */
TEST(test_each_transfer)
{
    CUstream streams[] = {NULL, CU_STREAM_LEGACY, (CUstream)0x100};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        assert_sets(streams[i]);
        assert_sets_of_rows(streams[i]);
        assert_copies(streams[i]);
    }
}

/* All that a replay repeats in place of launches can be read. */
TEST(test_transfers_are_read)
{
    uint64_t parameters[16] = {0};
    kprof_transfer t;
    for (CUpti_CallbackId id = 0; id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++)
        assert_int_equal(kprof_call_transfer(id, parameters, &t), kind_of(id, parameters) == KPROF_CALL_TRANSFER);
}

/* Memory and pools take the same list of who gets access. */
static void assert_access_shares(const CUmemAccessDesc *access, size_t count, unsigned shared)
{
    cuMemSetAccess_params memory = {.desc = access, .count = count};
    cuMemPoolSetAccess_params pool = {.map = access, .count = count};
    assert_int_equal(kprof_call_sharing(ID(cuMemSetAccess), &memory), shared);
    assert_int_equal(kprof_call_sharing(ID(cuMemPoolSetAccess), &pool), shared);
}

TEST(test_access)
{
    static const CUmemAccessDesc access[] = {
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OWN_DEVICE}},
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OTHER_DEVICE}},
        {.location = {.type = CU_MEM_LOCATION_TYPE_HOST}},
    };
    assert_access_shares(NULL, 0, 0);
    assert_access_shares(&access[0], 1, 0);
    assert_access_shares(&access[1], 1, KPROF_SHARES_WITH_DEVICES);
    assert_access_shares(&access[2], 1, KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST);
    assert_access_shares(&access[0], 2, KPROF_SHARES_WITH_DEVICES);
    assert_access_shares(&access[0], 3, KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES | KPROF_UNLISTED_HOST);
}

static unsigned sharing_of_range(CUdeviceptr start, size_t size)
{
    static const CUmemAccessDesc own = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OWN_DEVICE}};
    cuMemSetAccess_params p = {.ptr = start, .size = size, .desc = &own, .count = 1};
    return kprof_call_sharing(ID(cuMemSetAccess), &p);
}

/* The current device may be given another one's memory, which its own snapshots lack. */
TEST(test_access_to_memory_of_others)
{
    static const CUmemAccessDesc own = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OWN_DEVICE}};
    cuMemPoolSetAccess_params pool = {.map = &own, .count = 1};
    device_count = 2;
    assert_int_equal(sharing_of_range(OWN_MEMORY, MEMORY_BYTES), 0);
    assert_int_equal(sharing_of_range(OTHER_MEMORY, MEMORY_BYTES), KPROF_SHARES_WITH_DEVICES);
    assert_int_equal(sharing_of_range(OWN_MEMORY, 2 * MEMORY_BYTES), KPROF_SHARES_WITH_DEVICES);
    assert_int_equal(sharing_of_range(0, 4096), KPROF_SHARES_WITH_DEVICES); /* the driver does not tell */
    assert_int_equal(kprof_call_sharing(ID(cuMemPoolSetAccess), &pool), KPROF_SHARES_WITH_DEVICES);
    device_count = 1;
    assert_int_equal(sharing_of_range(0, 4096), 0);
}

/* A range may begin and end with memory of its own device, and have another one's in between. */
TEST(test_access_to_several_devices)
{
    device_count = 2;
    assert_int_equal(sharing_of_range(MORE_OWN_MEMORY, MEMORY_BYTES), 0);
    assert_int_equal(sharing_of_range(OWN_MEMORY, 3 * MEMORY_BYTES), KPROF_SHARES_WITH_DEVICES);
    device_count = 1;
    assert_int_equal(sharing_of_range(OWN_MEMORY, 3 * MEMORY_BYTES), 0);
}

/* Memory that a graph allocates. */
static void assert_graph_shares(const CUmemAccessDesc *access, CUmemLocationType where, unsigned shared)
{
    const unsigned any_node = KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE;
    CUmemPoolProps pool = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = where}};
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.poolProps = pool, .accessDescs = access, .accessDescCount = access != NULL};
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    node.alloc.poolProps = pool;
    node.alloc.accessDescs = access;
    node.alloc.accessDescCount = access != NULL;
    cuGraphAddMemAllocNode_params memory = {.nodeParams = &alloc};
    cuGraphAddNode_params general = {.nodeParams = &node};
    cuGraphAddNode_v2_params with_edges = {.nodeParams = &node};
    assert_int_equal(kprof_call_sharing(ID(cuGraphAddMemAllocNode), &memory), shared);
    assert_int_equal(kprof_call_sharing(ID(cuGraphAddNode), &general), shared | any_node);
    assert_int_equal(kprof_call_sharing(ID(cuGraphAddNode_v2), &with_edges), shared | any_node);
}

TEST(test_memory_of_graphs)
{
    static const CUmemAccessDesc peer = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OTHER_DEVICE}};
    CUgraphNodeParams kernel = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    cuGraphAddNode_params general = {.nodeParams = &kernel};
    device_count = 2;
    assert_graph_shares(NULL, CU_MEM_LOCATION_TYPE_DEVICE, KPROF_MAY_NOT_SAVE);
    assert_graph_shares(NULL, CU_MEM_LOCATION_TYPE_HOST,
                        KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST | KPROF_MAY_NOT_SAVE);
    assert_graph_shares(&peer, CU_MEM_LOCATION_TYPE_DEVICE, KPROF_SHARES_WITH_DEVICES | KPROF_MAY_NOT_SAVE);
    assert_int_equal(kprof_call_sharing(ID(cuGraphAddNode), &general), KPROF_WAITS_FOR_HOST | KPROF_RUNS_HOST_CODE);
    device_count = 1;
}

static void assert_memory_shares(CUmemAllocationType type, CUmemLocationType where, unsigned shared)
{
    CUmemLocation location = {.type = where};
    CUmemAllocationProp property = {.type = type, .location = location};
    CUmemPoolProps pool = {.allocType = type, .location = location};
    assert_int_equal(kprof_call_sharing(ID(cuMemCreate), &(cuMemCreate_params){.prop = &property}), shared);
    assert_int_equal(kprof_call_sharing(ID(cuMemPoolCreate), &(cuMemPoolCreate_params){.poolProps = &pool}), shared);
    cuMemGetDefaultMemPool_params default_pool = {.location = &location, .type = type};
    assert_int_equal(kprof_call_sharing(ID(cuMemGetDefaultMemPool), &default_pool), shared);
    cuMemGetMemPool_params current_pool = {.location = &location, .type = type};
    assert_int_equal(kprof_call_sharing(ID(cuMemGetMemPool), &current_pool), shared);
}

/* A network card writes without a call that tells of it. */
TEST(test_memory_for_network_cards)
{
    cuPointerSetAttribute_params ordered = {.attribute = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
    cuPointerSetAttribute_params other = {.attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID};
    assert_int_equal(kprof_call_sharing(ID(cuPointerSetAttribute), &ordered), KPROF_SHARES_WITH_DEVICES);
    assert_int_equal(kprof_call_sharing(ID(cuPointerSetAttribute), &other), 0);
}

static unsigned registered_sharing(int mapping, unsigned flags)
{
    size_t size_bytes = 1 << 16;
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, mapping | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    cuMemHostRegister_v2_params registered = {.p = memory, .bytesize = size_bytes, .Flags = flags};
    cuMemHostRegister_params before = {.p = memory, .bytesize = size_bytes, .Flags = flags};
    unsigned shared = kprof_call_sharing(ID(cuMemHostRegister_v2), &registered);
    assert_int_equal(kprof_call_sharing(ID(cuMemHostRegister), &before), shared | KPROF_UNLISTED_HOST);
    munmap(memory, size_bytes);
    return shared;
}

/* Other processes may write what they share, and devices what is theirs. */
TEST(test_registered_memory)
{
    assert_int_equal(registered_sharing(MAP_PRIVATE, 0), KPROF_SHARES_WITH_HOST);
    assert_int_equal(registered_sharing(MAP_PRIVATE, CU_MEMHOSTREGISTER_DEVICEMAP), KPROF_SHARES_WITH_HOST);
    assert_int_equal(registered_sharing(MAP_SHARED, 0), KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES);
    assert_int_equal(registered_sharing(MAP_PRIVATE, CU_MEMHOSTREGISTER_IOMEMORY),
                     KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES);
}

/* Memory of the host needs no access to be given to it. */
TEST(test_location)
{
    assert_memory_shares(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, 0);
    assert_memory_shares(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST,
                         KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST);
    assert_memory_shares(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA,
                         KPROF_SHARES_WITH_HOST | KPROF_UNLISTED_HOST);
    assert_memory_shares(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_DEVICE,
                         KPROF_MANAGED | KPROF_MAY_NOT_SAVE);
}

TEST(test_access_without_a_context)
{
    static const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OWN_DEVICE}};
    context_result = CUDA_ERROR_INVALID_CONTEXT;
    assert_access_shares(&access, 1, KPROF_SHARES_WITH_DEVICES);
    context_result = CUDA_SUCCESS;
}

static kprof_decoded_call decode(CUpti_CallbackId id, const void *parameters)
{
    kprof_decoded_call decoded;
    assert_int_equal(kprof_call_decode(id, parameters, &decoded), KPROF_CALL_LAUNCH);
    return decoded;
}

static kprof_given_launch shape_of(CUpti_CallbackId id, const void *parameters)
{
    return decode(id, parameters).launch;
}

static void assert_three(const uint32_t *found, uint32_t x, uint32_t y, uint32_t z)
{
    assert_true(found[0] == x && found[1] == y && found[2] == z);
}

static void assert_shape(CUpti_CallbackId id, const void *parameters, bool cooperative)
{
    kprof_given_launch shape = shape_of(id, parameters);
    assert_three(shape.grid, 2, 3, 4);
    assert_three(shape.block, 5, 6, 7);
    assert_int_equal(shape.dynamic_smem_bytes, 8);
    assert_int_equal(shape.cooperative, cooperative);
    assert_ptr_equal(decode(id, parameters).stream, 0x100);
    assert_ptr_equal(decode(id, parameters).launch.function, 0x200);
}

/* Each way to launch, and its form for per-thread default streams. */
TEST(test_launches)
{
    CUfunction function = (CUfunction)0x200;
    CUstream stream = (CUstream)0x100;
    cuLaunchKernel_params plain = {function, 2, 3, 4, 5, 6, 7, 8, stream, NULL, NULL};
    cuLaunchCooperativeKernel_params together = {function, 2, 3, 4, 5, 6, 7, 8, stream, NULL};
    CUlaunchConfig config = {2, 3, 4, 5, 6, 7, 8, stream, NULL, 0};
    cuLaunchKernelEx_params extended = {.config = &config, .f = function};
    assert_shape(ID(cuLaunchKernel), &plain, false);
    assert_shape(ID(cuLaunchKernel_ptsz), &plain, false);
    assert_shape(ID(cuLaunchCooperativeKernel), &together, true);
    assert_shape(ID(cuLaunchCooperativeKernel_ptsz), &together, true);
    assert_shape(ID(cuLaunchKernelEx), &extended, false);
    assert_shape(ID(cuLaunchKernelEx_ptsz), &extended, false);
    cuLaunchGridAsync_params old = {.f = function, .grid_width = 2, .grid_height = 3, .hStream = stream};
    assert_three(shape_of(ID(cuLaunchGridAsync), &old).grid, 2, 3, 1);
    assert_ptr_equal(decode(ID(cuLaunchGridAsync), &old).stream, stream);
    assert_ptr_equal(decode(ID(cuLaunchGridAsync), &old).launch.function, function);
}

TEST(test_launch_attributes)
{
    CUlaunchAttribute attributes[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 3},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 2, 1}},
    };
    CUlaunchConfig config = {.attrs = attributes, .numAttrs = 3};
    cuLaunchKernelEx_params p = {.config = &config};
    kprof_given_launch shape = shape_of(ID(cuLaunchKernelEx), &p);
    assert_three(shape.cluster, 4, 2, 1);
    assert_int_equal(shape.cooperative, 1);
    attributes[0].value.cooperative = 0;
    assert_int_equal(shape_of(ID(cuLaunchKernelEx), &p).cooperative, 0);
}

/* The driver refuses it, and the application runs on. */
TEST(test_launches_without_a_configuration)
{
    CUlaunchConfig config = {2, 3, 4, 5, 6, 7, 8, (CUstream)0x100, NULL, 3};
    cuLaunchKernelEx_params nothing = {.f = (CUfunction)0x200}, no_attributes = {.config = &config};
    assert_three(shape_of(ID(cuLaunchKernelEx), &nothing).grid, 0, 0, 0);
    assert_null(decode(ID(cuLaunchKernelEx_ptsz), &nothing).launch.stream);
    assert_three(shape_of(ID(cuLaunchKernelEx), &no_attributes).grid, 2, 3, 4);
}

/* The default stream of a launch is the thread's, or that of the context. */
static void assert_default_stream(CUpti_CallbackId id, const void *parameters, bool per_thread)
{
    kprof_decoded_call decoded;
    kprof_call_decode(id, parameters, &decoded);
    assert_null(decoded.launch.stream);
    assert_int_equal(decoded.launch.per_thread, per_thread);
    assert_ptr_equal(decoded.stream, per_thread ? CU_STREAM_PER_THREAD : NULL);
}

TEST(test_per_thread_streams)
{
    CUlaunchConfig config = {.gridDimX = 1};
    cuLaunchKernel_params plain = {.gridDimX = 1};
    cuLaunchKernelEx_params extended = {.config = &config};
    cuLaunchCooperativeKernel_params together = {.gridDimX = 1};
    cuGraphLaunch_params graph = {.hGraph = (CUgraphExec)0x300};
    assert_default_stream(ID(cuLaunchKernel_ptsz), &plain, true);
    assert_default_stream(ID(cuLaunchKernelEx_ptsz), &extended, true);
    assert_default_stream(ID(cuLaunchCooperativeKernel_ptsz), &together, true);
    assert_default_stream(ID(cuGraphLaunch_ptsz), &graph, true);
    assert_default_stream(ID(cuLaunchKernel), &plain, false);
    assert_default_stream(ID(cuLaunchKernelEx), &extended, false);
    assert_default_stream(ID(cuLaunchCooperativeKernel), &together, false);
    assert_default_stream(ID(cuGraphLaunch), &graph, false);
}

/* An event in the legacy default stream has streams that block wait for one another, and one elsewhere does not. */
TEST(test_calls_that_order_streams)
{
    const CUstream own = (CUstream)0x400;
    const cuEventRecord_params event = {.hStream = NULL}, in_own = {.hStream = own};
    const cuEventRecordWithFlags_params legacy = {.hStream = CU_STREAM_LEGACY};
    const cuStreamWaitEvent_params waits = {.hStream = own}, waits_in_default = {.hStream = NULL};
    const struct {
        CUpti_CallbackId id;
        const void *parameters;
        kprof_call_kind kind;
        CUstream stream;
    } rows[] = {{ID(cuEventRecord), &event, KPROF_CALL_ORDER, NULL},
                {ID(cuEventRecordWithFlags_ptsz), &legacy, KPROF_CALL_ORDER, CU_STREAM_LEGACY},
                {ID(cuStreamWaitEvent), &waits, KPROF_CALL_ORDER, own},
                {ID(cuStreamWaitEvent_ptsz), &waits_in_default, KPROF_CALL_ORDER, CU_STREAM_PER_THREAD},
                {ID(cuEventRecord), &in_own, KPROF_CALL_HARMLESS, NULL},
                {ID(cuEventRecord_ptsz), &event, KPROF_CALL_HARMLESS, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_decoded_call decoded = {.stream = NULL};
        assert_int_equal(kprof_call_decode(rows[i].id, rows[i].parameters, &decoded), rows[i].kind);
        if (rows[i].kind == KPROF_CALL_ORDER)
            assert_ptr_equal(decoded.stream, rows[i].stream);
    }
}

/* The places of the arguments, for the calls that take them. */
TEST(test_launch_arguments)
{
    void *arguments[1], *extra[1];
    CUlaunchConfig config = {.gridDimX = 1};
    cuLaunchKernel_params plain = {.kernelParams = arguments, .extra = extra};
    cuLaunchKernelEx_params extended = {.config = &config, .kernelParams = arguments, .extra = extra};
    cuLaunchCooperativeKernel_params together = {.kernelParams = arguments};
    cuLaunch_params old = {.f = (CUfunction)0x200};
    kprof_given_launch found = shape_of(ID(cuLaunchKernel), &plain);
    assert_true(found.has_arguments && found.arguments == arguments && found.extra == extra && !found.config);
    found = shape_of(ID(cuLaunchKernelEx), &extended);
    assert_true(found.has_arguments && found.arguments == arguments && found.extra == extra);
    assert_ptr_equal(found.config, &config);
    found = shape_of(ID(cuLaunchCooperativeKernel), &together);
    assert_true(found.has_arguments && found.arguments == arguments && !found.extra && !found.config);
    assert_false(shape_of(ID(cuLaunch), &old).has_arguments);
}

TEST(test_graph_launches)
{
    cuGraphLaunch_params graph = {.hGraph = (CUgraphExec)0x300, .hStream = (CUstream)0x100};
    CUDA_LAUNCH_PARAMS launches[] = {{.hStream = (CUstream)0x200}, {.hStream = (CUstream)0x400}};
    cuLaunchCooperativeKernelMultiDevice_params several = {.launchParamsList = launches, .numDevices = 2};
    kprof_decoded_call decoded;
    assert_int_equal(kprof_call_decode(ID(cuGraphLaunch), &graph, &decoded), KPROF_CALL_GRAPH_LAUNCH);
    assert_true(decoded.launch.is_graph);
    assert_ptr_equal(decoded.launch.graph, 0x300);
    assert_ptr_equal(decoded.stream, 0x100);
    assert_int_equal(kprof_call_decode(ID(cuLaunchCooperativeKernelMultiDevice), &several, &decoded),
                     KPROF_CALL_GRAPH_LAUNCH);
    assert_false(decoded.launch.is_graph);
    assert_ptr_equal(decoded.stream, 0x200); /* none of them is a default stream */
}

/* As a call enters, and as it leaves. */
TEST(test_allocations)
{
    CUstream stream = (CUstream)0x100;
    cuMemAllocAsync_params in_order = {.bytesize = 4096, .hStream = stream};
    cuMemAllocPitch_v2_params rows = {.WidthInBytes = 100, .Height = 3};
    cuMemCreate_params physical = {.size = 8192};
    kprof_decoded_call decoded;
    assert_int_equal(kprof_call_decode(ID(cuMemAllocAsync), &in_order, &decoded), KPROF_CALL_ALLOCATE);
    assert_true(decoded.allocation_bytes == 4096 && decoded.stream == stream);
    kprof_call_decode_known(KPROF_CALL_ALLOCATE, ID(cuMemAllocAsync), &in_order, &decoded);
    assert_true(decoded.allocation_bytes == 4096 && decoded.stream == stream);
    assert_int_equal(kprof_call_decode(ID(cuMemAllocPitch_v2), &rows, &decoded), KPROF_CALL_ALLOCATE);
    assert_true(decoded.allocation_bytes == 300 && decoded.stream == NULL);
    assert_int_equal(kprof_call_decode(ID(cuMemCreate), &physical, &decoded), KPROF_CALL_SETUP);
    assert_int_equal(decoded.allocation_bytes, 8192);
    CUDA_ARRAY_DESCRIPTOR flat = {100, 10, CU_AD_FORMAT_FLOAT, 2};
    CUDA_ARRAY3D_DESCRIPTOR deep = {100, 10, 5, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0},
                            line = {100, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    cuArrayCreate_v2_params of_flat = {.pAllocateArray = &flat}, of_nothing = {0};
    cuArray3DCreate_v2_params of_deep = {.pAllocateArray = &deep}, of_line = {.pAllocateArray = &line};
    cuMipmappedArrayCreate_params of_levels = {.pMipmappedArrayDesc = &deep};
    assert_int_equal(kprof_allocation_bytes(ID(cuArrayCreate_v2), &of_flat), 8000);
    assert_int_equal(kprof_allocation_bytes(ID(cuArrayCreate_v2), &of_nothing), 0);
    assert_int_equal(kprof_allocation_bytes(ID(cuArray3DCreate_v2), &of_deep), 5000);
    assert_int_equal(kprof_allocation_bytes(ID(cuArray3DCreate_v2), &of_line), 400);
    assert_int_equal(kprof_allocation_bytes(ID(cuMipmappedArrayCreate), &of_levels), 10000);
}

#define ASSERT_FINDS(name, parameters, of, bytes)                                                                      \
    do {                                                                                                               \
        kprof_call_decode_result(ID(name), (parameters), &found);                                                      \
        assert_true(found.has_variable &&found.variable == 0x1000 && found.variable_bytes == (bytes));                 \
        assert_ptr_equal(found.module, (of));                                                                          \
    } while (0)

/* The library that is unloaded has to be the one that the variables were noted for. */
TEST(test_modules_and_variables)
{
    CUdeviceptr variable = 0x1000;
    size_t size = 24;
    kprof_call_result found;
    cuModuleGetGlobal_v2_params of_module = {.dptr = &variable, .bytes = &size, .hmod = (CUmodule)0x10};
    cuLibraryGetGlobal_params of_library = {.dptr = &variable, .library = (CUlibrary)0x20};
    cuLibraryGetManaged_params managed = {.dptr = &variable, .bytes = &size, .library = (CUlibrary)0x20};
    cuLibraryUnload_params library = {.library = (CUlibrary)0x20};
    ASSERT_FINDS(cuModuleGetGlobal_v2, &of_module, 0x10, 24);
    ASSERT_FINDS(cuLibraryGetGlobal, &of_library, 0x20, 0); /* not asked for */
    ASSERT_FINDS(cuLibraryGetManaged, &managed, 0x20, 24);
    kprof_call_decode_result(ID(cuLibraryUnload), &library, &found);
    assert_true(found.module == (void *)0x20 && !found.has_variable);
    of_module.dptr = NULL;
    kprof_call_decode_result(ID(cuModuleGetGlobal_v2), &of_module, &found);
    assert_false(found.has_variable);
}

/* All at once, as a call leaves. */
TEST(test_results)
{
    CUdeviceptr address = 0x1000;
    size_t size = 24;
    cuMemAlloc_v2_params allocation = {.dptr = &address, .bytesize = 4096};
    kprof_call_result found;
    kprof_call_decode_result(ID(cuMemAlloc_v2), &allocation, &found);
    assert_int_equal(found.memory.kind, KPROF_MEMORY_OF_CONTEXT);
    assert_true(found.memory.address == 0x1000 && found.memory.size_bytes == 4096);
    assert_true(found.sharing == 0 && !found.module && !found.has_variable);
    cuMemAllocManaged_params managed = {.dptr = &address, .bytesize = 8192};
    kprof_call_decode_result(ID(cuMemAllocManaged), &managed, &found);
    assert_int_equal(found.memory.kind, KPROF_MEMORY_MANAGED);
    assert_true(found.memory.size_bytes == 8192 && found.sharing == KPROF_MANAGED);
    cuModuleGetGlobal_v2_params variable = {.dptr = &address, .bytes = &size, .hmod = (CUmodule)0x10};
    kprof_call_decode_result(ID(cuModuleGetGlobal_v2), &variable, &found);
    assert_true(found.has_variable && found.variable == 0x1000 && found.variable_bytes == 24);
    assert_ptr_equal(found.module, 0x10);
    assert_int_equal(found.memory.kind, KPROF_MEMORY_UNCHANGED);
    kprof_call_decode_result(ID(cuMemHostAlloc), &variable, &found);
    assert_int_equal(found.sharing, KPROF_SHARES_WITH_HOST);
}
