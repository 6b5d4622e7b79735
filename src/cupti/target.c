/* Turns CUPTI's callbacks into the hooks of target.h, and asks the driver what launches and kernels are. */
#include "cupti/target.h"

#include "core/config.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "cupti/activities.h"
#include "cupti/allocations.h"
#include "cupti/alone.h"
#include "cupti/call_records.h"
#include "cupti/calls.h"
#include "cupti/capturing.h"
#include "cupti/codes.h"
#include "cupti/device.h"
#include "cupti/driver.h"
#include "cupti/freed.h"
#include "cupti/functions.h"
#include "cupti/graphs.h"
#include "cupti/managed.h"
#include "cupti/modules.h"
#include "cupti/node_notes.h"
#include "cupti/operation.h"
#include "cupti/peeks.h"
#include "cupti/pools.h"
#include "cupti/profiler.h"
#include "cupti/redirect.h"
#include "cupti/smem.h"
#include "cupti/subscriber.h"
#include "cupti/variables.h"
#include "cupti/writers.h"
#include "host/load.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs make many small allocations: do not ask the driver about them. */
#define SMALL_ALLOCATION_BYTES ((size_t)1 << 20)

#define REASON_BYTES 256
/* To load a kernel takes 10 to 100 us, and one of many thousands of instructions longer. */
#define MOST_LOADED     256
#define MOST_LOADING_NS INT64_C(40000000)

/* If there is more memory of the host, saving it and putting it back takes longer than the passes do. */
#define MOST_HOST_BYTES ((size_t)1 << 30)

static struct {
    kprof_target_hooks hooks;
    const kprof_cupti_api *cupti;
    const kprof_driver_api *driver;
    atomic_uint sharing;                     /* kprof_sharing bits */
    bool told[CUPTI_DRIVER_TRACE_CBID_SIZE]; /* a trace tells of these calls, where the hooks want to see them */
} target;

static __thread bool in_hook; /* calls that come now are kprof's own */
static __thread bool looks;   /* at a launch that nobody follows, so that nobody is told of them */

static void note_sharing(const kprof_call *call, unsigned shared)
{
    unsigned before = atomic_fetch_or(&target.sharing, shared);
    if (shared & KPROF_SHARES_WITH_DEVICES)
        kprof_profilers_note_sharing();
    if ((before & shared) != shared)
        kprof_log(KPROF_LOG_DEBUG, "%s: from now on %s", call->name,
                  shared & KPROF_WAITS_FOR_HOST        ? "work may wait for the host"
                  : shared & KPROF_SHARES_WITH_DEVICES ? "memory is shared with other devices or processes"
                  : shared & KPROF_MANAGED             ? "there is managed memory"
                  : shared & KPROF_SHARES_WITH_HOST    ? "memory is shared with the host"
                  : shared & KPROF_MAY_NOT_SAVE        ? "there is memory that may not be saved"
                                                       : "CUDA's threads run functions of the application");
}

/* Have a trace tell of memory that came, or goes and is known. */
static void tell_memory(const kprof_call *call, kprof_memory_change change, uint32_t correlation)
{
    static const char *const kinds[] = {[KPROF_MEMORY_OF_CONTEXT] = "Device",
                                        [KPROF_MEMORY_MANAGED] = "Managed",
                                        [KPROF_MEMORY_OF_HOST] = "Pinned",
                                        [KPROF_MEMORY_OF_DEVICE] = "Device"};
    const bool frees = change.kind == KPROF_MEMORY_FREED;
    uint32_t device = 0;
    if (frees && !kprof_allocations_find(change.address, &change))
        return;
    if ((size_t)change.kind >= COUNT_OF(kinds) || !kinds[change.kind] ||
        kprof_target_current_device(&device) != KPROF_OK)
        return;
    const kprof_memory_activity memory = {.device = device,
                                          .context = call->context_id,
                                          .stream = -1,
                                          .correlation = correlation,
                                          .address = (int64_t)change.address,
                                          .bytes = (int64_t)change.size_bytes};
    kprof_activities_note_memory(&memory, !frees, kinds[change.kind]);
}

/* Note what a call of the application that succeeded has changed. */
static void note_result(const kprof_call *call, const CUpti_CallbackData *data)
{
    const void *parameters = data->functionParams;
    kprof_call_result result;
    kprof_call_decode_result(call->callback_id, parameters, &result);
    if (result.memory.kind != KPROF_MEMORY_UNCHANGED && kprof_activities_want_memory())
        tell_memory(call, result.memory, data->correlationId);
    if (result.sharing)
        note_sharing(call, result.sharing);
    kprof_allocations_note(&result.memory, call->context);
    if (target.hooks.is_brief) /* nothing is repeated, and not all calls are seen that change what follows */
        return;
    kprof_graphs_note(call->callback_id, parameters);
    if (kprof_call_changes_setting(call->callback_id, parameters))
        kprof_operations_note_setting();
    kprof_pools_note(call->callback_id, parameters);
    if (result.has_variable)
        kprof_variables_note(call->context, result.module, result.variable, result.variable_bytes);
    else if (call->kind == KPROF_CALL_UNLOAD && result.module)
        kprof_variables_unload(result.module);
    if (result.loaded)
        kprof_freed_note_load(call->context, result.loaded);
    if (call->kind == KPROF_CALL_UNLOAD) {
        kprof_freed_note_unload(result.module);
        kprof_functions_forget();
    }
}

/* A call has the same kind as it enters and as it leaves, whatever it did meanwhile. */
static void decode(CUpti_CallbackId id, const CUpti_CallbackData *data, kprof_call *call, kprof_decoded_call *out)
{
    if (data->callbackSite == CUPTI_API_EXIT && data->correlationData) {
        call->kind = (kprof_call_kind)*data->correlationData;
        if (call->kind != KPROF_CALL_ALLOCATE && call->kind != KPROF_CALL_MEMORY_INFO) /* nothing asks for more */
            return;
        kprof_call_decode_known(call->kind, id, data->functionParams, out);
    } else {
        call->kind = kprof_call_decode(id, data->functionParams, out);
        if (data->correlationData)
            *data->correlationData = (uint64_t)call->kind;
        if (!kprof_call_is_decoded(call->kind))
            return;
    }
    call->stream = out->stream;
    call->is_threads_stream = out->stream == CU_STREAM_PER_THREAD;
    call->parameters = out;
}

/* Does nobody follow this launch? If somebody did as it entered, decode has noted that. */
static bool is_to_be_looked_at(CUpti_CallbackId id, const CUpti_CallbackData *data)
{
    return kprof_peeks_run() && kprof_call_launches(id) &&
           (data->callbackSite == CUPTI_API_ENTER || !data->correlationData || *data->correlationData == 0);
}

static void look_at(CUpti_CallbackId id, const CUpti_CallbackData *data)
{
    kprof_decoded_call decoded;
    kprof_call call = {.name = data->functionName, .context = data->context, .parameters = &decoded};
    if (data->correlationData)
        *data->correlationData = 0;
    if (data->callbackSite == CUPTI_API_ENTER || !data->symbolName)
        return;
    in_hook = looks = true;
    call.kind = kprof_call_decode(id, data->functionParams, &decoded);
    call.function = decoded.launch.function;
    call.kernel_name = data->symbolName;
    call.failed = data->functionReturnValue && *(const CUresult *)data->functionReturnValue != CUDA_SUCCESS;
    if (kprof_peeks_want(&call)) {
        kprof_target_note_variables(&call);
        kprof_peeks_settle();
    }
    in_hook = looks = false;
}

static void on_driver_call(CUpti_CallbackId id, const CUpti_CallbackData *data)
{
    bool own = in_hook;
    in_hook = true;
    kprof_decoded_call decoded;
    kprof_call call = {
        .name = data->functionName,
        .context = data->context,
        .context_id = data->contextUid,
        .callback_id = id,
        .correlation = data->correlationId,
        .is_told = id < CUPTI_DRIVER_TRACE_CBID_SIZE && target.told[id],
    };
    decode(id, data, &call, &decoded);
    if (data->callbackSite == CUPTI_API_ENTER) {
        if (call.kind == KPROF_CALL_FREE || call.kind == KPROF_CALL_UNLOAD)
            kprof_redirect(decoded.freed);
        if (call.kind == KPROF_CALL_LAUNCH) {
            call.function = decoded.launch.function;
            if (!target.hooks.is_brief) /* a trace's names come with what ran */
                call.kernel_name = kprof_function_name(target.driver, call.function, data->symbolName);
        }
        target.hooks.enter(&call);
        if (id == CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy && !own && !target.hooks.is_brief) /* beside no replay */
            kprof_pools_let_outlive((CUmemoryPool *)&((const cuMemPoolDestroy_params *)data->functionParams)->pool);
    } else {
        CUresult result = data->functionReturnValue ? *(const CUresult *)data->functionReturnValue : CUDA_SUCCESS;
        call.failed = result != CUDA_SUCCESS;
        kprof_capturing_note(id, data->functionParams, data->context, result);
        if (!call.failed && !own && call.kind != KPROF_CALL_LAUNCH) /* which changes nothing that is noted */
            note_result(&call, data);
        target.hooks.leave(&call);
    }
    in_hook = own;
}

/* Without a current context the runtime's call does not reach the driver. kprof measures what is launched between start
 * and stop. */
static void on_profiler_call(bool starts, CUpti_ApiCallbackSite site)
{
    if (target.hooks.profiler_called && !in_hook && (site == CUPTI_API_EXIT) == starts)
        target.hooks.profiler_called(starts);
}

/* A copy of a node keeps its number. What becomes of an executable graph needs none: kprof reads its nodes from the
 * graph that it is made of. */
static void on_node(CUpti_CallbackId id, const CUpti_GraphData *data)
{
    uint32_t number = 0;
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED && data->nodeType == CU_GRAPH_NODE_TYPE_KERNEL && !in_hook)
        number = target.hooks.node_made();
    else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)
        number = kprof_node_notes_find(data->originalNode);
    kprof_node_notes_set(data->node, number);
}

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *data)
{
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED || id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED ||
        id == CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING) {
        if (data->resourceDescriptor)
            on_node(id, data->resourceDescriptor);
    } else if (id == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED) {
        target.hooks.driver_started();
    } else if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
        kprof_activities_note_context(data->context, false);
        target.hooks.context_created(data->context);
    } else if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
        if (target.hooks.context_ending)
            target.hooks.context_ending(data->context);
        kprof_activities_note_context(data->context, true);
        kprof_variables_forget(data->context);
        kprof_allocations_forget(data->context);
        kprof_freed_forget(data->context);
        kprof_capturing_forget(data->context);
        kprof_pools_forget();
        kprof_functions_forget();
    } else if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
        const CUpti_ModuleResourceData *module = data->resourceDescriptor;
        if (module) {
            kprof_modules_add(module->pCubin, module->cubinSize);
            kprof_codes_add(module->pCubin, module->cubinSize);
            kprof_peeks_begin();
        }
    } else if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
        kprof_functions_forget();
        if (!in_hook)
            kprof_profilers_note_unload();
    }
}

static void on_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData *data)
{
    const bool is_runtimes = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    const CUpti_CallbackId start =
        is_runtimes ? CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000 : CUPTI_DRIVER_TRACE_CBID_cuProfilerStart;
    const CUpti_CallbackId stop =
        is_runtimes ? CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000 : CUPTI_DRIVER_TRACE_CBID_cuProfilerStop;
    if (id == start || id == stop)
        on_profiler_call(id == start, data->callbackSite);
    if (is_runtimes || looks)
        return;
    if (is_to_be_looked_at(id, data))
        look_at(id, data);
    else
        on_driver_call(id, data);
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    int saved_errno = errno; /* the application's */
    int cancel_state;        /* a thread that is cancelled while it waits here would take locks with it */
    (void)user;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    const bool is_kprofs = kprof_subscriber_route(in_hook, domain, id, data);
    if (target.hooks.is_brief)
        kprof_call_records_note_handle(domain, id);
    if (is_kprofs && domain == CUPTI_CB_DOMAIN_RESOURCE)
        on_resource(id, data);
    else if (is_kprofs && (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API))
        on_call(domain, id, data);
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
}

/* Without these a node has the call stack of its graph's launch. */
static void follow_nodes(void)
{
    static const CUpti_CallbackId nodes[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                             CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                                             CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING};
    CUptiResult result = CUPTI_SUCCESS;
    for (size_t i = 0; target.hooks.node_made && result == CUPTI_SUCCESS && i < COUNT_OF(nodes); i++)
        result = kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_RESOURCE, nodes[i]);
    if (result != CUPTI_SUCCESS)
        kprof_log(KPROF_LOG_DEBUG, "CUPTI does not tell of graph nodes (CUPTI error %d)", (int)result);
}

/* A version of CUDA may lack one of these calls; then no program makes it. */
static void enable_handles(CUpti_CallbackDomain domain)
{
    for (const CUpti_CallbackId *of = kprof_call_records_handles(domain); *of; of++)
        (void)kprof_subscriber_follow(true, domain, *of);
}

static CUptiResult enable_told(void)
{
    CUptiResult result = CUPTI_SUCCESS;
    for (CUpti_CallbackId id = 1; result == CUPTI_SUCCESS && id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++)
        if (target.told[id])
            result = kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_DRIVER_API, id);
    return result;
}

static CUptiResult enable_profiler_calls(void)
{
    static const struct {
        CUpti_CallbackDomain domain;
        CUpti_CallbackId id;
    } calls[] = {{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000},
                 {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000},
                 {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart},
                 {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop}};
    CUptiResult result = CUPTI_SUCCESS;
    for (size_t i = 0; target.hooks.profiler_called && result == CUPTI_SUCCESS && i < COUNT_OF(calls); i++)
        result = kprof_subscriber_follow(true, calls[i].domain, calls[i].id);
    return result;
}

/* All that the hooks of a trace want to see. */
static CUptiResult enable_brief(void)
{
    static const CUpti_CallbackId calls[] = {
        /* ends of contexts */
        CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy,
        CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2,
        CUPTI_DRIVER_TRACE_CBID_cuCtxDetach,
        CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset,
        CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2,
        CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease,
        CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2,
        /* memory */
        CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,
        CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync,
        CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
        CUPTI_DRIVER_TRACE_CBID_cuMemHostUnregister,
    };
    CUptiResult result = kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
    if (result == CUPTI_SUCCESS) /* its memory is gone then */
        result = kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    for (size_t i = 0; result == CUPTI_SUCCESS && i < COUNT_OF(calls); i++)
        result = kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_DRIVER_API, calls[i]);
    enable_handles(CUPTI_CB_DOMAIN_DRIVER_API);
    enable_handles(CUPTI_CB_DOMAIN_RUNTIME_API);
    KPROF_THEN(result, enable_profiler_calls());
    return result == CUPTI_SUCCESS && target.hooks.sees_calls ? enable_told() : result;
}

/* CUPTI takes time for each call that it tells of, and frameworks ask for the device or a capture at each launch. */
static CUptiResult disable_ignored(void)
{
    CUptiResult result = CUPTI_SUCCESS;
    for (CUpti_CallbackId id = 1; result == CUPTI_SUCCESS && id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++)
        if (kprof_call_is_ignored(id, target.hooks.sees_order))
            result = kprof_subscriber_follow(false, CUPTI_CB_DOMAIN_DRIVER_API, id);
    return result;
}

static CUptiResult enable_all(void)
{
    static const CUpti_CallbackId resources[] = {
        CUPTI_CBID_RESOURCE_CU_INIT_FINISHED,         CUPTI_CBID_RESOURCE_MODULE_LOADED,
        CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,   CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
        CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
    };
    CUptiResult result = kprof_subscriber_follow_all(CUPTI_CB_DOMAIN_DRIVER_API);
    KPROF_THEN(result, disable_ignored());
    for (size_t i = 0; result == CUPTI_SUCCESS && i < COUNT_OF(resources); i++)
        result = kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_RESOURCE, resources[i]);
    return result == CUPTI_SUCCESS ? enable_profiler_calls() : result;
}

static kprof_status subscribe(void)
{
    CUptiResult result = kprof_subscriber_start(target.cupti, on_callback);
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        return kprof_fail(KPROF_COUNTERS_BUSY,
                          "another tool in this process uses CUPTI already (a framework's own profiler, "
                          "or a debugger); turn it off and run again");
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "cuptiSubscribe failed (CUPTI error %d)", (int)result);
    for (CUpti_CallbackId id = 1; target.hooks.sees_calls && id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++)
        target.told[id] = kprof_call_records_tell(target.cupti, id);
    result = target.hooks.is_brief ? enable_brief() : enable_all();
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "CUPTI refuses callbacks (CUPTI error %d)", (int)result);
    follow_nodes();
    if (target.hooks.takes_guests)
        kprof_subscriber_take_guests();
    return KPROF_OK;
}

kprof_status kprof_target_start(const kprof_target_hooks *target_hooks)
{
    target.hooks = *target_hooks;
    if (target.hooks.takes_guests)
        kprof_cupti_share();
    kprof_status status = kprof_cupti_load(&target.cupti);
    KPROF_THEN(status, kprof_driver_load(&target.driver));
    return KPROF_THEN(status, subscribe());
}

/* Kernels that ran unseen may have left the addresses of their modules' variables to any kernel. */
static void note_unseen_variables(void)
{
    static const kprof_call call = {.name = "launches while kprof was not armed"};
    kprof_modules_tell_unnoted();
    if (kprof_modules_count_unnoted(NULL) > 0)
        note_sharing(&call, KPROF_MAY_NOT_SAVE);
}

kprof_status kprof_target_follow(bool follow)
{
    CUptiResult result = CUPTI_SUCCESS;
    if (follow && !kprof_subscriber_close())
        return kprof_fail(KPROF_COUNTERS_BUSY, "another tool of the process, such as torch.profiler, records what the "
                                               "GPU does; start kprof when it has ended");
    if (follow)
        kprof_peeks_allow(false);
    for (CUpti_CallbackId id = 1; result == CUPTI_SUCCESS && id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++) {
        if (kprof_call_may_go_unseen(id) && !kprof_call_is_ignored(id, target.hooks.sees_order))
            result = kprof_subscriber_follow(follow, CUPTI_CB_DOMAIN_DRIVER_API, id);
    }
    if (!follow || result != CUPTI_SUCCESS)
        kprof_subscriber_open();
    if (follow)
        note_unseen_variables(); /* of code, too, that came until now */
    else
        kprof_peeks_allow(true);
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "CUPTI refuses callbacks (CUPTI error %d)", (int)result);
    return KPROF_OK;
}

kprof_status kprof_target_current_device(uint32_t *device)
{
    CUdevice current = 0;
    CUresult result = target.driver->cuCtxGetDevice_(&current);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "cuCtxGetDevice: %s", kprof_driver_error(result));
    *device = (uint32_t)current;
    return KPROF_OK;
}

/* Retaining a primary context that is not there would make it. */
bool kprof_target_is_primary(const void *context, uint32_t device)
{
    CUcontext primary = NULL;
    unsigned flags;
    int is_active = 0;
    if (target.driver->cuDevicePrimaryCtxGetState_((CUdevice)device, &flags, &is_active) != CUDA_SUCCESS ||
        !is_active || target.driver->cuDevicePrimaryCtxRetain_(&primary, (CUdevice)device) != CUDA_SUCCESS)
        return false;
    (void)target.driver->cuDevicePrimaryCtxRelease_((CUdevice)device);
    return primary == context;
}

static int function_value(CUfunction function, CUfunction_attribute attribute, int unknown)
{
    int value = unknown;
    return target.driver->cuFuncGetAttribute_(&value, attribute, function) == CUDA_SUCCESS ? value : unknown;
}

static uint32_t configured_smem(CUfunction function, const kprof_launch_record *launch)
{
    kprof_device_record device;
    uint32_t ordinal = 0;
    if (kprof_target_current_device(&ordinal) != KPROF_OK || kprof_target_device(ordinal, &device) != KPROF_OK)
        return 0;
    int statically = function_value(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 0);
    kprof_smem_request request = {
        .cc_major = device.cc_major,
        .cc_minor = device.cc_minor,
        .threads_per_block = launch->block[0] * launch->block[1] * launch->block[2],
        .smem_per_block_bytes = launch->dynamic_smem_bytes + (uint32_t)statically,
        .reserved_smem_per_block_bytes = device.reserved_smem_per_block_bytes,
        .max_blocks_per_sm = launch->max_blocks_per_sm,
        .carveout_pct = function_value(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
    };
    return kprof_smem_configured_bytes(&request);
}

static void read_occupancy(CUfunction function, kprof_launch_record *out)
{
    int count = 0;
    uint32_t threads = out->block[0] * out->block[1] * out->block[2];
    if (target.driver->cuOccupancyMaxActiveBlocksPerMultiprocessor_(&count, function, (int)threads,
                                                                    out->dynamic_smem_bytes) == CUDA_SUCCESS)
        out->max_blocks_per_sm = (uint32_t)count;
    out->configured_smem_bytes = configured_smem(function, out);
    if (out->cluster[0] == 0)
        return;
    CUlaunchAttribute attribute;
    CUlaunchConfig config = kprof_launch_config(out, &attribute);
    if (target.driver->cuOccupancyMaxActiveClusters_(&count, function, &config) == CUDA_SUCCESS)
        out->max_active_clusters = (uint32_t)count;
}

/* The launch's function; its module may be loaded for that. NULL for a graph. */
static CUfunction find_function(const kprof_call *call)
{
    return call->kind == KPROF_CALL_GRAPH_LAUNCH ? NULL : kprof_function_find(target.driver, call->function);
}

void kprof_target_shape(const kprof_call *call, kprof_launch_record *out)
{
    const kprof_given_launch *launch = &((const kprof_decoded_call *)call->parameters)->launch;
    memcpy(out->grid, launch->grid, sizeof out->grid);
    memcpy(out->block, launch->block, sizeof out->block);
    memcpy(out->cluster, launch->cluster, sizeof out->cluster);
    out->dynamic_smem_bytes = launch->dynamic_smem_bytes;
    out->cooperative = launch->cooperative;
    out->context = call->context_id;
    uint32_t stream = 0;
    CUptiResult result = target.cupti->cuptiGetStreamIdEx(call->context, launch->stream, launch->per_thread, &stream);
    out->stream = result == CUPTI_SUCCESS ? stream : 0;
}

/* 0: not known, or kernels read memory that is in no list: that of graphs, of other processes, of other devices. */
static uint64_t device_memory_bytes(void)
{
    if (kprof_target_sharing() & (KPROF_SHARES_WITH_DEVICES | KPROF_MAY_NOT_SAVE))
        return 0;
    const uint64_t allocated = kprof_allocations_bytes();
    uint64_t of_variables;
    return allocated > 0 && kprof_variables_bytes(&of_variables) ? allocated + of_variables : 0;
}

void kprof_target_launch(const kprof_call *call, kprof_launch_record *out)
{
    kprof_target_shape(call, out);
    out->device_memory_bytes = device_memory_bytes();
    CUfunction function = find_function(call);
    KPROF_RELAX(target.driver);
    if (function)
        read_occupancy(function, out);
}

#define CU_FUNC_ATTRIBUTE_NONE (-1)
#define READ_TEXT(member, which)
#define READ_U32(member, which)                                                                                        \
    if ((which) != CU_FUNC_ATTRIBUTE_NONE)                                                                             \
        out->member = (uint32_t)function_value(function, (CUfunction_attribute)(which), 0);
#define FIELD(kind, member, column, since, which, ...) READ_##kind(member, CU_FUNC_ATTRIBUTE_##which)
#define NOT_READ(...)

void kprof_target_kernel(const kprof_call *call, kprof_kernel_record *out)
{
    CUfunction function = find_function(call);
    if (!function)
        return;
    KPROF_KERNEL_FIELDS(FIELD, NOT_READ, NOT_READ)
    out->device_launches = kprof_modules_device_launches(call->kernel_name);
    out->barriers = kprof_modules_barriers(call->kernel_name);
}

static bool note_variables(const kprof_call *node, void *user)
{
    (void)user;
    if (node->kind == KPROF_CALL_LAUNCH)
        kprof_target_note_variables(node);
    return true;
}

void kprof_target_load_beside(const kprof_call *call)
{
    CUfunction function = find_function(call), functions[MOST_LOADED];
    CUmodule module;
    unsigned count = 0;
    const int64_t start_ns = kprof_monotonic_ns();
    KPROF_RELAX(target.driver);
    if (function && target.driver->cuFuncGetModule_(&module, function) == CUDA_SUCCESS &&
        target.driver->cuModuleGetFunctionCount_(&count, module) == CUDA_SUCCESS && count <= MOST_LOADED &&
        target.driver->cuModuleEnumerateFunctions_(functions, count, module) == CUDA_SUCCESS)
        for (unsigned i = 0; i < count && kprof_monotonic_ns() - start_ns < MOST_LOADING_NS; i++)
            (void)target.driver->cuFuncLoad_(functions[i]);
}

void kprof_target_note_variables(const kprof_call *call)
{
    if (call->kind == KPROF_CALL_GRAPH_LAUNCH) {
        (void)kprof_graphs_visit(call, note_variables, NULL);
        return;
    }
    CUfunction function = find_function(call);
    KPROF_RELAX(target.driver);
    if (function)
        kprof_variables_note_module(call->context, function, call->kernel_name);
}

const kprof_graph_call *kprof_target_graph(const kprof_call *call, size_t *count, const char **why)
{
    return kprof_graphs_find(call, count, why);
}

bool kprof_target_name_graph(const kprof_call *call, kprof_call *out)
{
    static __thread char name[64];
    const kprof_given_launch *launch = &((const kprof_decoded_call *)call->parameters)->launch;
    if (!launch->is_graph)
        return false;
    kprof_graph_identity id = kprof_graphs_identify(call);
    if (id.launches_none)
        return false;
    if (id.number)
        snprintf(name, sizeof name, KPROF_NAME_OF_GRAPH "%zu kernel%s, %06x>", id.kernels, id.kernels == 1 ? "" : "s",
                 id.number & 0xffffff);
    else
        snprintf(name, sizeof name, KPROF_NAME_OF_GRAPH "unknown, %p>", (void *)launch->graph);
    *out = *call;
    out->function = launch->graph;
    out->kernel_name = name;
    if (id.changed) /* to kernels of the same names, perhaps, of another module */
        kprof_target_note_variables(out);
    return true;
}

bool kprof_target_awaits(const kprof_call *call)
{
    bool waits = false;
    if (call->kind == KPROF_CALL_GRAPH_LAUNCH)
        (void)kprof_graphs_obstacle(call, &waits);
    return waits;
}

bool kprof_target_capturing(void)
{
    return kprof_capturing();
}

bool kprof_target_has_space(const kprof_call *call, size_t local_bytes)
{
    const kprof_decoded_call *decoded = call->parameters;
    size_t wanted = decoded ? decoded->allocation_bytes : 0, free_bytes = 0, total_bytes = 0;
    if (local_bytes > wanted)
        wanted = local_bytes;
    return wanted < SMALL_ALLOCATION_BYTES || target.driver->cuMemGetInfo_(&free_bytes, &total_bytes) != CUDA_SUCCESS ||
           wanted + KPROF_DEVICE_RESERVE_BYTES / 2 < free_bytes;
}

void kprof_target_add_free(const kprof_call *call, size_t size_bytes)
{
    const kprof_decoded_call *decoded = call->parameters;
    if (decoded && decoded->free_bytes)
        *decoded->free_bytes += size_bytes;
}

bool kprof_target_pool_keeps(const kprof_call *call)
{
    return kprof_pools_keep(((const kprof_decoded_call *)call->parameters)->freed_to_pool);
}

bool kprof_target_holds_pools(void)
{
    return kprof_pools_are_held();
}

void kprof_target_let_go_of_pools(void)
{
    KPROF_RELAX(target.driver);
    kprof_pools_let_go(true);
}

bool kprof_target_set_own(bool own)
{
    bool before = in_hook;
    in_hook = own;
    return before;
}

/* Managed memory that is saved comes to the GPU. Leave a quarter of it for what is not listed. */
static bool fits_on_device(void)
{
    kprof_span *spans;
    size_t count, wanted_bytes = 0, total_bytes = 0;
    CUcontext context = NULL;
    CUdevice device = -1;
    if (target.driver->cuCtxGetCurrent_(&context) != CUDA_SUCCESS ||
        target.driver->cuCtxGetDevice_(&device) != CUDA_SUCCESS ||
        target.driver->cuDeviceTotalMem_(&total_bytes, device) != CUDA_SUCCESS ||
        !kprof_allocations_list(context, device, &spans, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        wanted_bytes += spans[i].size_bytes;
    free(spans);
    return wanted_bytes <= total_bytes / 4 * 3;
}

/* If the application's only thread is in a call of the driver, no code of the application runs. */
static const char *code_obstacle(void)
{
    if (atomic_load(&target.sharing) & KPROF_RUNS_HOST_CODE)
        return "functions that CUDA's threads call may use memory of the host while the launch is repeated";
    if (kprof_thread_is_foreign())
        return "the application went on, and may use memory of the host, when its launches had to be repeated";
    if (!kprof_thread_is_alone())
        return "other threads of the application may use memory of the host while the launch is repeated";
    return NULL;
}

const char *kprof_target_managed_obstacle(void)
{
    const char *why = code_obstacle();
    if (why)
        return why;
    if (!kprof_managed_moves_freely()) /* a replay must not change what the host must not touch meanwhile */
        return "this GPU does not let the host and kernels use managed memory at the same time";
    if (!fits_on_device())
        return "managed memory and the GPU's own take more than three quarters of the GPU's memory together";
    return kprof_writers_of_host(); /* the last, since it reads the most */
}

/* Do kernels reach the application's memory of the host by the host's own addresses, and is it little enough to be
 * saved for each launch? */
static bool can_save_host(void)
{
    KPROF_AUTO_FREE kprof_span *spans = NULL;
    size_t count, bytes = 0;
    CUdeviceptr address;
    bool same = kprof_allocations_list_host(&spans, &count);
    for (size_t i = 0; same && i < count; i++) {
        same = target.driver->cuPointerGetAttribute_(&address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, spans[i].address) ==
                   CUDA_SUCCESS &&
               address == spans[i].address;
        bytes += spans[i].size_bytes;
    }
    return same && bytes <= MOST_HOST_BYTES;
}

const char *kprof_target_host_obstacle(void)
{
    const char *why = code_obstacle();
    if (why)
        return why;
    if (kprof_target_reaches_pageable() || (kprof_target_sharing() & (KPROF_UNLISTED_HOST | KPROF_MANAGED_STAYS)))
        return "the GPU reaches memory of the host that kprof does not know of";
    if (!can_save_host())
        return "the GPU reaches more memory of the host than can be saved for each launch, or by other addresses";
    return kprof_writers_of_host();
}

bool kprof_target_stream_blocks(void *stream)
{
    unsigned flags = CU_STREAM_DEFAULT;
    return !target.driver || target.driver->cuStreamGetFlags_(stream, &flags) != CUDA_SUCCESS ||
           !(flags & CU_STREAM_NON_BLOCKING);
}

bool kprof_target_launch_captured(const kprof_call *call)
{
    return kprof_stream_is_captured(call->stream);
}

/* A stream of a green context may be another context's than the current one, and yet the GPU's that is measured. */
bool kprof_target_runs_elsewhere(const kprof_call *call)
{
    return !(atomic_load(&target.sharing) & KPROF_MAY_NOT_SAVE) && !kprof_stream_is_of(call->context, call->stream);
}

void *kprof_target_function(const kprof_call *call)
{
    if (call->kind == KPROF_CALL_GRAPH_LAUNCH)
        return call->function;
    return ((const kprof_decoded_call *)call->parameters)->launch.has_arguments
               ? kprof_function_resolve(target.driver, call->function)
               : NULL;
}

unsigned kprof_target_sharing(void)
{
    const unsigned sharing = atomic_load(&target.sharing) | (kprof_variables_managed() ? KPROF_MANAGED : 0);
    return sharing & KPROF_MANAGED && kprof_allocations_managed_stays()
               ? (sharing & ~(unsigned)KPROF_MANAGED) | KPROF_SHARES_WITH_HOST | KPROF_MANAGED_STAYS
               : sharing;
}

bool kprof_target_enter_context(void *context)
{
    CUcontext current = NULL;
    target.driver->cuCtxGetCurrent_(&current);
    return current != context && target.driver->cuCtxPushCurrent_(context) == CUDA_SUCCESS;
}

void kprof_target_leave_context(void)
{
    CUcontext popped;
    target.driver->cuCtxPopCurrent_(&popped);
}

/* `user`: where the reason goes, of REASON_BYTES. */
static bool has_no_side_effect(const kprof_call *node, void *user)
{
    const char *callee = node->kind == KPROF_CALL_LAUNCH ? kprof_modules_side_effect(node->kernel_name) : NULL;
    if (!callee)
        return true;
    if (strcmp(callee, "?") == 0)
        snprintf(user, REASON_BYTES, "the code of its kernel %s was not seen being loaded", node->kernel_name);
    else
        snprintf(user, REASON_BYTES, "its kernel %s calls %s, which a replay would do again", node->kernel_name,
                 callee);
    return false;
}

static const char *graph_side_effect(const kprof_call *call)
{
    static __thread char text[REASON_BYTES];
    bool waits;
    const char *obstacle = kprof_graphs_obstacle(call, &waits);
    if (obstacle)
        return obstacle;
    return kprof_graphs_visit(call, has_no_side_effect, text) ? NULL : text;
}

const char *kprof_target_side_effect(const kprof_call *call)
{
    static __thread char text[REASON_BYTES];
    if (call->kind == KPROF_CALL_GRAPH_LAUNCH)
        return graph_side_effect(call);
    const char *callee = kprof_modules_side_effect(call->kernel_name);
    if (!callee)
        return NULL;
    if (strcmp(callee, "?") == 0)
        return "its code was not seen being loaded";
    snprintf(text, sizeof text, "it calls %s, which a replay would do again", callee);
    return text;
}

bool kprof_target_only_prints(const kprof_call *call)
{
    const char *callee = call->kind == KPROF_CALL_LAUNCH ? kprof_modules_side_effect(call->kernel_name) : NULL;
    return callee && strcmp(callee, KPROF_PRINTS) == 0;
}

kprof_status kprof_target_synchronize(void)
{
    CUresult result = target.driver->cuCtxSynchronize_();
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "the context is in error before the launch: %s", kprof_driver_error(result));
    return KPROF_OK;
}
