/* Copies of launches and transfers. Attributes are copied as they are, but for those that record events. Replays run in
 * one stream, in the order of the application's calls, but for those of whole ranges. */
#include "cupti/operation.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "core/strbuf.h"
#include "cupti/allocations.h"
#include "cupti/arguments.h"
#include "cupti/calls.h"
#include "cupti/device.h"
#include "cupti/driver.h"
#include "cupti/graphs.h"
#include "cupti/managed.h"
#include "cupti/place.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Between two looks at the application's work, sleep for this part of the time waited so far. Do not sleep for less,
 * since the system adds 50 us to each sleep, nor for more: on average the call goes on half a sleep too late. */
#define POLL_SHARE     32
#define LEAST_PAUSE_NS 5000
#define MOST_PAUSE_NS  200000

/* If a copy from the host is no larger, it goes into the GPU's queue, and the host goes on (CUDA C++ Programming Guide,
 * "Concurrent Execution between Host and Device"). With driver 580 the host waits in each synchronous copy all the
 * same, and in asynchronous ones from pageable memory only beyond 1 MiB. */
#define QUEUED_BYTES ((size_t)64 << 10)
#define PERHAPS_NS   INT64_C(-1) /* whether the host waits is not known */

#define NO_LANE "the driver makes no stream to repeat the work of another one in"

/* kprof copies memory of the host before each launch of its batch, and over the bus in each pass. If there is more,
 * each launch has a batch of its own. */
#define MOST_HOST_BYTES ((size_t)64 << 20)

#define ADDRESS_BITS 57 /* of the host, at most; 48 on most Arm machines, 47 on most others */

/* Any launch may ask for this much; for more, the application raises a limit of the function first (CUDA C++
 * Programming Guide, "Shared Memory" and "Thread Block Clusters"). */
#define UNLIMITED_SMEM_BYTES 49152
#define UNLIMITED_CLUSTER    8

/* These say how a function runs, and so change what kprof measures. Replays need the very value that the launch had. */
static const CUfunction_attribute settings[] = {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                                CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
static const int default_settings[] = {CU_SHAREDMEM_CARVEOUT_DEFAULT, CU_CLUSTER_SCHEDULING_POLICY_DEFAULT};
enum { SETTINGS = COUNT_OF(settings) };

/* The application has changed a setting. Until then each launch has the defaults, and kprof does not ask for them. */
static atomic_bool has_settings;

/* Memory that a graph reads or writes without a kernel. */
typedef struct touched_memory {
    uint64_t address;
    size_t size_bytes;
} touched_memory;

struct kprof_operation {
    CUfunction function; /* of a kernel; else NULL */
    CUgraphExec graph;   /* else NULL */
    touched_memory *touched;
    size_t touched_count;
    kprof_kept_memory *kept_memory; /* that the operation writes again; else NULL */
    kprof_transfer transfer;
    bool in_graph;         /* the transfer is a node */
    CUdeviceptr kept;      /* [height][width] of the transfer, on the device: what came from the host, or went to it */
    uint64_t locked;       /* likewise, of the host, for _run_counted; or 0 */
    CUlaunchConfig config; /* attrs: `attributes` */
    CUlaunchAttribute *attributes;
    kprof_arguments arguments; /* of a graph: those of all its kernels */
    int settings[SETTINGS];    /* of a kernel's function */
};

static bool is_transfer(const kprof_operation *operation)
{
    return !operation->function && !operation->graph && !operation->kept_memory;
}

/* A launch keeps the lines of L2 that its stream's policy names, unless it has a policy itself. */
static bool read_policy(const kprof_driver_api *driver, const kprof_given_launch *launch, CUlaunchAttribute *out)
{
    CUstream stream = !launch->stream && launch->per_thread ? CU_STREAM_PER_THREAD : launch->stream;
    unsigned given = launch->config && launch->config->attrs ? launch->config->numAttrs : 0;
    if (KPROF_ANY(i, given, launch->config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW))
        return false;
    out->id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    return driver->cuStreamGetAttribute_(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &out->value) ==
               CUDA_SUCCESS &&
           out->value.accessPolicyWindow.num_bytes > 0;
}

/* `in_stream`: the launch is no node of a graph, which has all attributes itself. */
static bool copy_attributes(const kprof_driver_api *driver, kprof_operation *operation, bool in_stream,
                            const kprof_given_launch *launch)
{
    const CUlaunchConfig *config = launch->config;
    unsigned given = config && config->attrs ? config->numAttrs : 0, count = config ? given : launch->cooperative;
    CUlaunchAttribute *attributes = calloc(count + 1u, sizeof *attributes);
    if (!attributes)
        return false;
    if (given > 0)
        memcpy(attributes, config->attrs, given * sizeof *attributes);
    /* Do not record events again: a thread that saw that one had happened would see that it has not. */
    for (unsigned i = 0; i < given; i++)
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            attributes[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            attributes[i] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_IGNORE};
    if (!config && launch->cooperative) {
        attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[0].value.cooperative = 1;
    }
    count += in_stream && read_policy(driver, launch, &attributes[count]);
    operation->attributes = operation->config.attrs = attributes;
    operation->config.numAttrs = count;
    return true;
}

bool kprof_transfer_is_hosts(const kprof_call *call)
{
    const kprof_transfer *t = &((const kprof_decoded_call *)call->parameters)->transfer;
    const kprof_driver_api *driver;
    if (call->kind != KPROF_CALL_TRANSFER || t->width == 0 || kprof_driver_load(&driver) != KPROF_OK)
        return false;
    bool from_host = t->kind == KPROF_TRANSFER_SET || t->kind == KPROF_TRANSFER_IN;
    return (from_host || kprof_driver_find_place(driver, t->source) == KPROF_PLACE_PINNED) &&
           (t->kind == KPROF_TRANSFER_OUT || kprof_driver_find_place(driver, t->destination) == KPROF_PLACE_PINNED);
}

/* A copy between any addresses: find out which side is the host's. */
static void sort_copy(const kprof_driver_api *driver, const kprof_snapshot *snapshot, kprof_transfer *t)
{
    if (t->kind != KPROF_TRANSFER_COPY)
        return;
    if (!kprof_snapshot_holds(snapshot, t->source, kprof_transfer_source_bytes(t)) &&
        kprof_place_is_hosts(kprof_driver_find_place(driver, t->source)))
        t->kind = KPROF_TRANSFER_IN;
    else if (!kprof_snapshot_holds(snapshot, t->destination, kprof_transfer_destination_bytes(t)) &&
             kprof_place_is_hosts(kprof_driver_find_place(driver, t->destination)))
        t->kind = KPROF_TRANSFER_OUT;
}

static bool reserve_kept(kprof_operation *operation, kprof_snapshot *snapshot)
{
    const kprof_transfer *t = &operation->transfer;
    if (kprof_transfer_may_be_kept(t))
        operation->kept = kprof_snapshot_space(snapshot, t->width, t->height);
    return operation->kept != 0;
}

/* The copy of rows of memory of this type to where they are kept. */
static CUDA_MEMCPY2D copy_of_rows(const kprof_operation *operation, CUmemorytype from, size_t pitch_bytes)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = from,
                           .srcPitch = pitch_bytes,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = operation->kept,
                           .dstPitch = operation->transfer.width,
                           .WidthInBytes = operation->transfer.width,
                           .Height = operation->transfer.height};
}

/* Copy the rows to where they are kept, in the application's stream. */
static CUresult keep_rows(const kprof_driver_api *driver, const kprof_operation *operation)
{
    const kprof_transfer *t = &operation->transfer;
    bool is_output = t->kind == KPROF_TRANSFER_OUT;
    CUdeviceptr from = is_output ? t->source : t->destination;
    if (t->height == 1)
        return driver->cuMemcpyDtoDAsync_(operation->kept, from, t->width, t->stream);
    CUDA_MEMCPY2D rows =
        copy_of_rows(operation, CU_MEMORYTYPE_DEVICE, is_output ? t->source_pitch_bytes : t->pitch_bytes);
    rows.srcDevice = from;
    return driver->cuMemcpy2DAsync_(&rows, t->stream);
}

/* Keep what the host will get before the application's own copy: kernels of other streams may change it afterwards.
 * kprof keeps what a node copies to the host behind its graph; if that may be gone by then, replays do nothing. */
static bool keep_output(const kprof_driver_api *driver, kprof_operation *operation, const kprof_call *call,
                        kprof_snapshot *snapshot)
{
    kprof_transfer *t = &operation->transfer;
    if (operation->in_graph && (call->node_traits & KPROF_NODE_HIDES_OUTPUT)) {
        t->width = 0;
        return true;
    }
    return kprof_snapshot_holds(snapshot, t->source, kprof_transfer_source_bytes(t)) &&
           reserve_kept(operation, snapshot) && (operation->in_graph || keep_rows(driver, operation) == CUDA_SUCCESS);
}

/* Can the process read the first and the last byte? The driver reads pageable memory likewise, and would fault, too. */
static bool is_readable(CUdeviceptr address, size_t size_bytes)
{
    char bytes[2];
    struct iovec local = {bytes, sizeof bytes};
    struct iovec ends[] = {{(void *)(uintptr_t)address, 1}, {(void *)(uintptr_t)(address + size_bytes - 1), 1}};
    return process_vm_readv(getpid(), &local, 1, ends, 2, 0) == (ssize_t)sizeof bytes;
}

/* Keep what a node will copy from the host before its graph is launched, in the order of the stream: graphs.c has found
 * that nothing in the graph changes it. */
static bool keep_input(const kprof_driver_api *driver, const kprof_operation *operation, const kprof_call *call)
{
    const kprof_transfer *t = &operation->transfer;
    void *host = (void *)(uintptr_t)t->source;
    CUDA_MEMCPY2D rows = copy_of_rows(operation, CU_MEMORYTYPE_HOST, t->source_pitch_bytes);
    rows.srcHost = host;
    if ((call->node_traits & KPROF_NODE_READS_PAGEABLE) && !is_readable(t->source, kprof_transfer_source_bytes(t)))
        return false;
    CUresult result = t->height == 1 ? driver->cuMemcpyHtoDAsync_(operation->kept, host, t->width, t->stream)
                                     : driver->cuMemcpy2DAsync_(&rows, t->stream);
    return result == CUDA_SUCCESS;
}

/* The graph told which side of a copy is the host's when made. Memory that was unknown then may be the device's now. */
static bool is_host_side_saved(const kprof_snapshot *snapshot, const kprof_transfer *t)
{
    return t->kind == KPROF_TRANSFER_IN
               ? kprof_snapshot_holds(snapshot, t->source, kprof_transfer_source_bytes(t))
               : t->kind == KPROF_TRANSFER_OUT &&
                     kprof_snapshot_holds(snapshot, t->destination, kprof_transfer_destination_bytes(t));
}

static bool copy_transfer(kprof_operation *operation, const kprof_call *call, kprof_snapshot *snapshot)
{
    const kprof_driver_api *driver;
    kprof_transfer *t = &operation->transfer;
    if (!snapshot || kprof_driver_load(&driver) != KPROF_OK || !kprof_stream_is_of(call->context, t->stream) ||
        kprof_stream_is_captured(t->stream))
        return false;
    if (t->width == 0 || t->height == 0)
        return true;
    operation->in_graph = call->node_traits & KPROF_NODE;
    if (!operation->in_graph)
        sort_copy(driver, snapshot, t);
    else if (is_host_side_saved(snapshot, t))
        return false;
    if (t->kind == KPROF_TRANSFER_OUT)
        return keep_output(driver, operation, call, snapshot);
    if (!kprof_snapshot_holds(snapshot, t->destination, kprof_transfer_destination_bytes(t)))
        return false;
    if (t->kind == KPROF_TRANSFER_COPY)
        return kprof_snapshot_holds(snapshot, t->source, kprof_transfer_source_bytes(t));
    if (t->kind != KPROF_TRANSFER_IN)
        return true;
    return reserve_kept(operation, snapshot) && (!operation->in_graph || keep_input(driver, operation, call));
}

/* cudart passes a CUkernel in place of the function, which has attributes for each device. */
static CUresult get_attribute(const kprof_driver_api *driver, CUfunction function, CUfunction_attribute attribute,
                              int *value)
{
    CUdevice device = 0;
    CUresult result = driver->cuFuncGetAttribute_(value, attribute, function);
    if (result == CUDA_SUCCESS || driver->cuCtxGetDevice_(&device) != CUDA_SUCCESS)
        return result;
    return driver->cuKernelGetAttribute_(value, attribute, (CUkernel)function, device);
}

static CUresult set_attribute(const kprof_driver_api *driver, CUfunction function, CUfunction_attribute attribute,
                              int value)
{
    CUdevice device = 0;
    CUresult result = driver->cuFuncSetAttribute_(function, attribute, value);
    if (result == CUDA_SUCCESS || driver->cuCtxGetDevice_(&device) != CUDA_SUCCESS)
        return result;
    return driver->cuKernelSetAttribute_(attribute, value, (CUkernel)function, device);
}

void kprof_operations_note_setting(void)
{
    atomic_store(&has_settings, true);
}

static void read_settings(const kprof_driver_api *driver, kprof_operation *operation)
{
    memcpy(operation->settings, default_settings, sizeof default_settings);
    for (size_t i = 0; i < SETTINGS && atomic_load(&has_settings); i++)
        if (get_attribute(driver, operation->function, settings[i], &operation->settings[i]) != CUDA_SUCCESS)
            operation->settings[i] = default_settings[i];
}

static bool copy_launch(kprof_operation *operation, const kprof_call *call)
{
    const kprof_driver_api *driver;
    const kprof_given_launch *launch = &((const kprof_decoded_call *)call->parameters)->launch;
    kprof_given_arguments given = {call->function, launch->arguments, launch->extra};
    if (kprof_driver_load(&driver) != KPROF_OK || !launch->has_arguments)
        return false;
    operation->function = call->function;
    operation->config = (CUlaunchConfig){.gridDimX = launch->grid[0],
                                         .gridDimY = launch->grid[1],
                                         .gridDimZ = launch->grid[2],
                                         .blockDimX = launch->block[0],
                                         .blockDimY = launch->block[1],
                                         .blockDimZ = launch->block[2],
                                         .sharedMemBytes = launch->dynamic_smem_bytes};
    read_settings(driver, operation);
    return kprof_stream_is_of(call->context, call->stream) &&
           copy_attributes(driver, operation, !(call->node_traits & KPROF_NODE), launch) &&
           kprof_arguments_copy(driver, &given, &operation->arguments);
}

static bool add_touched(kprof_operation *operation, uint64_t address, size_t size_bytes)
{
    if (!KPROF_APPEND(operation->touched, operation->touched_count))
        return false;
    operation->touched[operation->touched_count++] = (touched_memory){address, size_bytes};
    return true;
}

/* At a multiple of 8 bytes, as addresses lie. */
static bool append_arguments(kprof_arguments *to, const kprof_arguments *from)
{
    size_t padded = (from->size_bytes + 7) / 8 * 8;
    unsigned char *grown = padded > 0 ? realloc(to->buffer, to->size_bytes + padded) : to->buffer;
    if (padded == 0 || !grown)
        return padded == 0;
    memset(grown + to->size_bytes, 0, padded);
    memcpy(grown + to->size_bytes, from->buffer, from->size_bytes);
    *to = (kprof_arguments){grown, to->size_bytes + padded};
    return true;
}

/* `user`: the operation of the graph. */
static bool note_node(const kprof_call *node, void *user)
{
    kprof_operation *operation = user;
    const kprof_driver_api *driver;
    const kprof_decoded_call *decoded = node->parameters;
    const kprof_transfer *t = &decoded->transfer;
    if (kprof_driver_load(&driver) != KPROF_OK)
        return false;
    if (node->kind == KPROF_CALL_TRANSFER) {
        if (t->width == 0 || t->height == 0)
            return true;
        return add_touched(operation, t->destination, kprof_transfer_destination_bytes(t)) &&
               (t->kind == KPROF_TRANSFER_SET || add_touched(operation, t->source, kprof_transfer_source_bytes(t)));
    }
    KPROF_AUTO(kprof_arguments) arguments = {0};
    kprof_given_arguments given = {node->function, decoded->launch.arguments, decoded->launch.extra};
    return decoded->launch.has_arguments && kprof_arguments_copy(driver, &given, &arguments) &&
           append_arguments(&operation->arguments, &arguments);
}

static bool copy_graph(kprof_operation *operation, const kprof_call *call)
{
    const kprof_driver_api *driver;
    operation->graph = call->function;
    return kprof_driver_load(&driver) == KPROF_OK && kprof_stream_is_of(call->context, call->stream) &&
           kprof_graphs_visit(call, note_node, operation);
}

kprof_operation *kprof_operation_copy(const kprof_call *call, kprof_snapshot *snapshot)
{
    kprof_operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return NULL;
    bool is_graph = call->kind == KPROF_CALL_GRAPH_LAUNCH;
    bool moves = call->kind == KPROF_CALL_TRANSFER;
    if (moves)
        operation->transfer = ((const kprof_decoded_call *)call->parameters)->transfer;
    if (moves      ? copy_transfer(operation, call, snapshot)
        : is_graph ? copy_graph(operation, call)
                   : copy_launch(operation, call))
        return operation;
    kprof_operation_free(operation);
    if (!moves)
        kprof_log(KPROF_LOG_DEBUG, "%s cannot be repeated: its arguments, or its stream", call->kernel_name);
    return NULL;
}

/* Add all memory of the host that kernels reach to the spans: kprof cannot tell what the host has written there. */
static bool add_host(kprof_span **spans, size_t *count)
{
    kprof_span *host, *all;
    size_t host_count, bytes = 0;
    if (!kprof_allocations_list_host(&host, &host_count))
        return false;
    for (size_t i = 0; i < host_count; i++)
        bytes += host[i].size_bytes;
    all = bytes <= MOST_HOST_BYTES ? kprof_realloc(*spans, (*count + host_count + 1) * sizeof *all) : NULL;
    for (size_t i = 0; all && i < host_count; i++)
        all[(*count)++] = host[i];
    *spans = all ? all : *spans;
    free(host);
    return all != NULL;
}

static kprof_status list_used_by_host(const kprof_snapshot *snapshot, kprof_span **spans, size_t *count)
{
    bool known =
        kprof_managed_list_touched(spans, count) && (!kprof_snapshot_has_host(snapshot) || add_host(spans, count));
    return known ? KPROF_OK
                 : kprof_fail(KPROF_UNSUPPORTED, "what the host did to memory that the GPU reaches is not known");
}

kprof_status kprof_operation_keep_host(kprof_snapshot *snapshot, kprof_operation **out)
{
    KPROF_AUTO_FREE kprof_span *spans = NULL;
    size_t count = 0;
    *out = NULL;
    kprof_status status = list_used_by_host(snapshot, &spans, &count);
    if (status == KPROF_OK && count > 0) {
        *out = calloc(1, sizeof **out);
        status = *out ? kprof_snapshot_keep(snapshot, spans, count, &(*out)->kept_memory) : KPROF_NO_MEMORY;
    }
    if (status != KPROF_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

kprof_status kprof_operation_keep_all(kprof_snapshot *snapshot, kprof_operation **out)
{
    *out = calloc(1, sizeof **out);
    kprof_status status = *out ? kprof_snapshot_keep_all(snapshot, &(*out)->kept_memory) : KPROF_NO_MEMORY;
    if (status != KPROF_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* A call that has waited for its copy must not return before kprof's copy is done: other streams may go on. Behind the
 * launch of a graph, kprof keeps what went to the host. */
kprof_status kprof_operation_returned(kprof_operation *operation)
{
    const kprof_driver_api *driver;
    const kprof_transfer *t = &operation->transfer;
    kprof_transfer_kind kept_behind = operation->in_graph ? KPROF_TRANSFER_OUT : KPROF_TRANSFER_IN;
    if (!is_transfer(operation) || t->kind != kept_behind || !operation->kept)
        return KPROF_OK;
    kprof_status status = kprof_driver_load(&driver);
    if (status != KPROF_OK)
        return status;
    CUresult result = keep_rows(driver, operation);
    if (result == CUDA_SUCCESS && t->waits)
        result = driver->cuStreamSynchronize_(t->stream);
    return result == CUDA_SUCCESS
               ? KPROF_OK
               : kprof_fail(KPROF_INTERNAL, "keeping what was copied: %s", kprof_driver_error(result));
}

/* An attribute of a function that the launch needs, and that the application may have changed since. */
typedef struct function_attribute {
    CUfunction_attribute attribute;
    int wanted, before;
    bool is_limit; /* a larger one will do, and any if it is 0 */
    bool changed;
} function_attribute;

/* If the driver refuses, leave the attribute: a launch that needs it fails, and says why. */
static void change(const kprof_driver_api *driver, CUfunction function, function_attribute *a)
{
    if ((a->is_limit && a->wanted == 0) || get_attribute(driver, function, a->attribute, &a->before) != CUDA_SUCCESS)
        return;
    if (a->is_limit ? a->before < a->wanted : a->before != a->wanted)
        a->changed = set_attribute(driver, function, a->attribute, a->wanted) == CUDA_SUCCESS;
}

static CUresult launch_now(const kprof_driver_api *driver, const kprof_operation *operation, CUstream stream)
{
    CUlaunchConfig config = operation->config;
    if (operation->graph)
        return driver->cuGraphLaunch_(operation->graph, stream);
    size_t size = operation->arguments.size_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, operation->arguments.buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    config.hStream = stream;
    return driver->cuLaunchKernelEx_(&config, operation->function, NULL, size > 0 ? extra : NULL);
}

static unsigned cluster_blocks(const kprof_operation *operation)
{
    for (unsigned i = 0; i < operation->config.numAttrs; i++)
        if (operation->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return operation->attributes[i].value.clusterDim.x * operation->attributes[i].value.clusterDim.y *
                   operation->attributes[i].value.clusterDim.z;
    return 1;
}

/* Launch with the attributes of the function that the application's own launch had. */
static CUresult launch(const kprof_driver_api *driver, const kprof_operation *operation, CUstream stream)
{
    unsigned smem_bytes = operation->config.sharedMemBytes;
    size_t count = 2;
    function_attribute attributes[2 + SETTINGS] = {
        {.attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
         .wanted = smem_bytes > UNLIMITED_SMEM_BYTES ? (int)smem_bytes : 0,
         .is_limit = true},
        {.attribute = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
         .wanted = cluster_blocks(operation) > UNLIMITED_CLUSTER,
         .is_limit = true},
    };
    for (size_t i = 0; i < SETTINGS && operation->function && atomic_load(&has_settings); i++)
        attributes[count++] = (function_attribute){.attribute = settings[i], .wanted = operation->settings[i]};
    for (size_t i = 0; i < count; i++)
        change(driver, operation->function, &attributes[i]);
    CUresult result = launch_now(driver, operation, stream);
    for (size_t i = 0; i < count; i++)
        if (attributes[i].changed)
            (void)set_attribute(driver, operation->function, attributes[i].attribute, attributes[i].before);
    return result;
}

static kprof_status transfer(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    const kprof_transfer *t = &operation->transfer;
    if (t->width == 0 || t->height == 0)
        return KPROF_OK;
    if (t->kind == KPROF_TRANSFER_SET) {
        const unsigned bytes = t->element_bytes < 8 ? (unsigned)t->element_bytes : 4;
        const kprof_set set = {t->destination, t->pitch_bytes, t->width, t->height, (unsigned)t->value, bytes},
                        upper = {t->destination + bytes, 0, 1, 1, (unsigned)(t->value >> 32), bytes};
        const kprof_status status = kprof_snapshot_set(snapshot, &set);
        return status != KPROF_OK || t->element_bytes == bytes ? status : kprof_snapshot_set(snapshot, &upper);
    }
    kprof_rows rows = {t->destination, t->source, t->pitch_bytes, t->source_pitch_bytes, t->width, t->height};
    if (t->kind == KPROF_TRANSFER_IN) {
        rows.from = operation->kept;
        rows.from_pitch_bytes = t->width;
    }
    return kprof_snapshot_copy(snapshot, &rows);
}

/* The host may have acted upon what it got, so a replay must give it the same. */
static kprof_status check_output(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    const kprof_transfer *t = &operation->transfer;
    kprof_rows rows = {operation->kept, t->source, t->width, t->source_pitch_bytes, t->width, t->height};
    bool same = true;
    kprof_status status = kprof_snapshot_compare(snapshot, &rows, &same);
    if (status == KPROF_OK && !same)
        return kprof_fail(
            KPROF_NOT_COLLECTED,
            "a replay computed something else than the application's own run, as what the host got shows");
    return status;
}

static kprof_status launch_in(const kprof_operation *operation, CUstream stream)
{
    const kprof_driver_api *driver;
    kprof_status status = kprof_driver_load(&driver);
    CUresult result = status == KPROF_OK ? launch(driver, operation, stream) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "repeating a launch: %s", kprof_driver_error(result));
    return status;
}

kprof_status kprof_operation_run(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    if (operation->kept_memory)
        return kprof_snapshot_put(snapshot, operation->kept_memory);
    if (is_transfer(operation))
        return kprof_operation_output_bytes(operation) > 0 ? check_output(operation, snapshot)
                                                           : transfer(operation, snapshot);
    return launch_in(operation, kprof_snapshot_stream(snapshot));
}

static CUresult set_row_by_driver(const kprof_driver_api *driver, const kprof_transfer *t, CUstream stream)
{
    if (t->element_bytes == 1)
        return driver->cuMemsetD8Async_(t->destination, (unsigned char)t->value, t->width, stream);
    if (t->element_bytes == 2)
        return driver->cuMemsetD16Async_(t->destination, (unsigned short)t->value, t->width, stream);
    const CUresult result = driver->cuMemsetD32Async_(t->destination, (unsigned)t->value, t->width, stream);
    return t->element_bytes == 4 || result != CUDA_SUCCESS
               ? result
               : driver->cuMemsetD32Async_(t->destination + 4, (unsigned)(t->value >> 32), 1, stream);
}

static CUresult set_by_driver(const kprof_driver_api *driver, const kprof_transfer *t, CUstream stream)
{
    if (t->height == 1)
        return set_row_by_driver(driver, t, stream);
    if (t->element_bytes == 1)
        return driver->cuMemsetD2D8Async_(t->destination, t->pitch_bytes, (unsigned char)t->value, t->width, t->height,
                                          stream);
    if (t->element_bytes == 2)
        return driver->cuMemsetD2D16Async_(t->destination, t->pitch_bytes, (unsigned short)t->value, t->width,
                                           t->height, stream);
    return driver->cuMemsetD2D32Async_(t->destination, t->pitch_bytes, (unsigned)t->value, t->width, t->height, stream);
}

static CUresult copy_by_driver(const kprof_driver_api *driver, const kprof_operation *operation, CUstream stream)
{
    const kprof_transfer *t = &operation->transfer;
    const bool is_in = t->kind == KPROF_TRANSFER_IN, is_out = t->kind == KPROF_TRANSFER_OUT;
    void *host = (void *)(uintptr_t)operation->locked;
    if (t->height == 1)
        return is_in    ? driver->cuMemcpyHtoDAsync_(t->destination, host, t->width, stream)
               : is_out ? driver->cuMemcpyDtoHAsync_(host, t->source, t->width, stream)
                        : driver->cuMemcpyDtoDAsync_(t->destination, t->source, t->width, stream);
    CUDA_MEMCPY2D copy = {.srcMemoryType = is_in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .srcHost = host,
                          .srcDevice = t->source,
                          .srcPitch = is_in ? t->width : t->source_pitch_bytes,
                          .dstMemoryType = is_out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .dstHost = host,
                          .dstDevice = t->destination,
                          .dstPitch = is_out ? t->width : t->pitch_bytes,
                          .WidthInBytes = t->width,
                          .Height = t->height};
    return driver->cuMemcpy2DAsync_(&copy, stream);
}

kprof_status kprof_operation_prepare_counted(kprof_operation *operation, kprof_snapshot *snapshot, unsigned lane)
{
    const kprof_driver_api *driver;
    const kprof_transfer *t = &operation->transfer;
    const bool is_out = t->kind == KPROF_TRANSFER_OUT;
    const size_t size_bytes = t->width * t->height;
    if (!kprof_snapshot_lane(snapshot, (kprof_lane){.number = lane}))
        return kprof_fail(KPROF_NOT_COLLECTED, NO_LANE);
    if (!is_transfer(operation) || (t->kind != KPROF_TRANSFER_IN && !is_out) || size_bytes == 0)
        return KPROF_OK;
    operation->locked = kprof_snapshot_locked_space(snapshot, size_bytes, is_out);
    if (!operation->locked)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "the range was not repeated: what it copies from the host or to it takes "
                          "more page-locked memory than kprof may have");
    kprof_status status = kprof_driver_load(&driver);
    if (status != KPROF_OK || is_out)
        return status;
    const CUresult result = driver->cuMemcpyDtoHAsync_((void *)(uintptr_t)operation->locked, operation->kept,
                                                       size_bytes, kprof_snapshot_stream(snapshot));
    return result == CUDA_SUCCESS
               ? KPROF_OK
               : kprof_fail(KPROF_NOT_COLLECTED, "keeping what came from the host: %s", kprof_driver_error(result));
}

/* Elsewhere kernels of kprof's own repeat sets and copies. Here they would be counted, and so would kernels by which
 * the driver copies within the GPU. The copy engines copy from and to the host, as in the program's own run. */
kprof_status kprof_operation_run_counted(const kprof_operation *operation, kprof_snapshot *snapshot, kprof_lane lane)
{
    const kprof_driver_api *driver;
    const kprof_transfer *t = &operation->transfer;
    if (operation->kept_memory)
        return kprof_operation_run(operation, snapshot);
    const CUstream stream = kprof_snapshot_lane(snapshot, lane);
    if (!stream)
        return kprof_fail(KPROF_NOT_COLLECTED, NO_LANE);
    if (!is_transfer(operation))
        return launch_in(operation, stream);
    if (t->width == 0 || t->height == 0)
        return KPROF_OK;
    kprof_status status = kprof_driver_load(&driver);
    if (status != KPROF_OK)
        return status;
    const CUresult result =
        t->kind == KPROF_TRANSFER_SET ? set_by_driver(driver, t, stream) : copy_by_driver(driver, operation, stream);
    return result == CUDA_SUCCESS
               ? KPROF_OK
               : kprof_fail(KPROF_NOT_COLLECTED, "a set or copy could not be repeated by the driver: %s",
                            kprof_driver_error(result));
}

size_t kprof_operation_kernels(const kprof_operation *operation)
{
    const kprof_transfer *t = &operation->transfer;
    if (is_transfer(operation))
        return t->width > 0 && t->height > 0 ? 1 : 0;
    if (operation->kept_memory)
        return kprof_kept_memory_kernels(operation->kept_memory);
    return operation->graph ? KPROF_MANY_KERNELS : 1;
}

size_t kprof_operation_output_bytes(const kprof_operation *operation)
{
    const kprof_transfer *t = &operation->transfer;
    return is_transfer(operation) && t->kind == KPROF_TRANSFER_OUT ? t->width * t->height : 0;
}

/* Memory of the host that CUDA does not know. */
static bool is_pageable(const kprof_driver_api *driver, CUdeviceptr address)
{
    unsigned type;
    return driver->cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS;
}

/* Return how long the host waits in the transfer for the work before it. Perhaps it does not wait, if the copy goes
 * into the GPU's queue or through the driver's own memory, or if the GPU reaches pageable memory. */
static int64_t longest_wait_ns(const kprof_driver_api *driver, const kprof_transfer *t)
{
    if (t->kind == KPROF_TRANSFER_SET || t->width == 0 || t->height == 0)
        return 0;
    const bool is_any = t->kind == KPROF_TRANSFER_COPY;
    const bool from_device =
        t->kind == KPROF_TRANSFER_OUT || (is_any && !kprof_place_is_hosts(kprof_driver_find_place(driver, t->source)));
    const bool to_device = t->kind == KPROF_TRANSFER_IN ||
                           (is_any && !kprof_place_is_hosts(kprof_driver_find_place(driver, t->destination)));
    const bool is_small = to_device && t->height == 1 && t->width <= QUEUED_BYTES;
    if (from_device && to_device)
        return 0;
    if (t->waits || (!from_device && !to_device))
        return is_small ? PERHAPS_NS : INT64_MAX;
    if (is_small || !is_pageable(driver, to_device ? t->source : t->destination))
        return 0;
    return to_device || kprof_target_reaches_pageable() ? PERHAPS_NS : INT64_MAX;
}

static bool await_event(const kprof_driver_api *driver, CUevent event, int64_t limit_ns)
{
    const int64_t start_ns = kprof_monotonic_ns();
    while (driver->cuEventQuery_(event) == CUDA_ERROR_NOT_READY) {
        int64_t waited_ns = kprof_monotonic_ns() - start_ns, pause_ns = waited_ns / POLL_SHARE;
        if (waited_ns > limit_ns)
            return false;
        if (pause_ns > LEAST_PAUSE_NS)
            usleep((useconds_t)(pause_ns < MOST_PAUSE_NS ? pause_ns / 1000 : MOST_PAUSE_NS / 1000));
    }
    return true;
}

kprof_awaited kprof_transfer_await_start(const kprof_call *call, int64_t perhaps_ns)
{
    const kprof_decoded_call *decoded = call->parameters;
    const kprof_driver_api *driver;
    CUevent event;
    kprof_awaited awaited = KPROF_AWAIT_TIMED_OUT;
    if (kprof_driver_load(&driver) != KPROF_OK)
        return awaited;
    const int64_t longest_ns = longest_wait_ns(driver, &decoded->transfer);
    const int64_t limit_ns = longest_ns == PERHAPS_NS ? perhaps_ns : longest_ns;
    if (longest_ns == 0 || limit_ns < 0)
        return KPROF_NOT_AWAITED;
    if (driver->cuEventCreate_(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return awaited;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* another thread may begin a capture meanwhile */
    driver->cuThreadExchangeStreamCaptureMode_(&mode);
    if (driver->cuEventRecord_(event, call->stream) == CUDA_SUCCESS && await_event(driver, event, limit_ns))
        awaited = KPROF_AWAITED;
    driver->cuThreadExchangeStreamCaptureMode_(&mode);
    (void)driver->cuEventDestroy_(event);
    return awaited;
}

bool kprof_operation_is_saved(const kprof_operation *operation, const kprof_snapshot *snapshot)
{
    const touched_memory *touched = operation->touched;
    return KPROF_ALL(i, operation->touched_count,
                     kprof_snapshot_holds(snapshot, touched[i].address, touched[i].size_bytes));
}

void kprof_operation_free(kprof_operation *operation)
{
    if (!operation)
        return;
    KPROF_FREE(operation->attributes, operation->touched);
    kprof_kept_memory_free(operation->kept_memory);
    kprof_arguments_free(&operation->arguments);
    free(operation);
}

/* Ask CUDA about memory that it knows; else, if the GPU reaches all memory, look whether something is mapped there. */
static bool is_host_address(const kprof_driver_api *driver, bool pageable, uint64_t value)
{
    static long page;
    unsigned char resident;
    unsigned type = 0;
    if (value < 65536 || value >> ADDRESS_BITS != 0)
        return false;
    if (driver->cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)value) == CUDA_SUCCESS)
        return type == CU_MEMORYTYPE_HOST ||
               (kprof_allocations_managed_stays() &&
                kprof_driver_find_place(driver, (CUdeviceptr)value) != KPROF_PLACE_DEVICE);
    if (!pageable)
        return false;
    if (page == 0)
        page = sysconf(_SC_PAGESIZE);
    return mincore((void *)(uintptr_t)(value & ~((uint64_t)page - 1)), 1, &resident) == 0;
}

/* Is one of the words an address of the host's memory? */
static bool has_host_address(const kprof_driver_api *driver, const void *words, size_t size_bytes)
{
    const bool pageable = kprof_target_reaches_pageable();
    for (size_t at = 0; at + sizeof(uint64_t) <= size_bytes; at += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, (const unsigned char *)words + at, sizeof value);
        if (is_host_address(driver, pageable, value))
            return true;
    }
    return false;
}

bool kprof_operation_sees_host(const kprof_operation *operation)
{
    const kprof_driver_api *driver;
    return kprof_driver_load(&driver) != KPROF_OK ||
           has_host_address(driver, operation->arguments.buffer, operation->arguments.size_bytes);
}

static bool points_to_host(const kprof_driver_api *driver, kprof_snapshot *snapshot, uint64_t value)
{
    unsigned type;
    if (value < 65536 || value >> ADDRESS_BITS != 0 ||
        driver->cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)value) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE)
        return false;
    size_t size_bytes = kprof_driver_measure_rest(driver, (CUdeviceptr)value);
    size_bytes = size_bytes < KPROF_PEEK_BYTES ? size_bytes : KPROF_PEEK_BYTES;
    const void *begin = kprof_snapshot_peek(snapshot, value, size_bytes);
    return !begin || has_host_address(driver, begin, size_bytes);
}

bool kprof_operation_leads_to_host(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    const kprof_driver_api *driver;
    if (kprof_driver_load(&driver) != KPROF_OK)
        return true;
    for (size_t at = 0; at + sizeof(uint64_t) <= operation->arguments.size_bytes; at += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, operation->arguments.buffer + at, sizeof value);
        if (points_to_host(driver, snapshot, value))
            return true;
    }
    return false;
}
