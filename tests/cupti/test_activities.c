/* CUPTI's activity records become kprof's, over functions that stand in for CUPTI's: buffers of records that a test
 * fills, as CUPTI would. */
#include "cupti/activities.h"
#include "cupti/call_records.h"
#include "cupti/driver.h"
#include "host/load.h"
#include "log_capture.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_NAMES 64
#define MOST_TAKEN 32
#define CUPTI_NOW  5000000

static log_capture log_seen;

static struct {
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
    CUpti_ActivityKind refused; /* a kind that cannot be enabled */
    CUptiResult registered, managed;
    size_t dropped, driver_calls, questions, flushes, forced;
    bool launches;           /* are calls of the driver that launch recorded? */
    void (*meanwhile)(void); /* as CUPTI is told to leave them out */
} cupti;

/* What came out. */
static struct {
    const char *names[MOST_NAMES];
    bool mangled[MOST_NAMES];
    size_t name_count;
    kprof_activity taken[MOST_TAKEN];
    size_t count;
    uint64_t dropped, unknown, buffers;
} got;

static CUptiResult get_timestamp(uint64_t *out)
{
    *out = CUPTI_NOW;
    return CUPTI_SUCCESS;
}

static CUptiResult set_thread_id_type(CUpti_ActivityThreadIdType type)
{
    assert_int_equal(type, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    return CUPTI_SUCCESS;
}

static CUptiResult register_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                      CUpti_BuffersCallbackCompleteFunc complete)
{
    cupti.request = request;
    cupti.complete = complete;
    return cupti.registered;
}

static CUptiResult enable(CUpti_ActivityKind kind)
{
    assert_int_not_equal(kind, CUPTI_ACTIVITY_KIND_KERNEL); /* kernels would run one after the other */
    if (kind == cupti.refused)
        return CUPTI_ERROR_NOT_COMPATIBLE;
    cupti.enabled[kind] = true;
    return CUPTI_SUCCESS;
}

static CUptiResult disable(CUpti_ActivityKind kind)
{
    cupti.enabled[kind] = false;
    return CUPTI_SUCCESS;
}

static CUptiResult get_name(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        *name = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel   ? "cuLaunchKernel"
                : id == CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2   ? "cuMemFree_v2"
                : id == CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice ? "cuCtxGetDevice"
                                                               : NULL;
    else
        *name = id == 1   ? "cudaLaunchKernel_v7000"
                : id == 2 ? "cudaMemcpyAsync_ptsz_v7000"
                : id == 3 ? "cudaGetLastError_v3020"
                : id == 4 ? "__cudaLaunchKernel_v13000"
                : id == 5 ? "__cudaPushCallConfiguration_v13000"
                          : NULL;
    return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static CUptiResult enable_driver_api(CUpti_CallbackId id, uint8_t on)
{
    const bool is_launch = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    assert_true(is_launch || (on && id == CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2));
    cupti.driver_calls += on;
    if (!on && cupti.meanwhile)
        cupti.meanwhile();
    if (is_launch)
        cupti.launches = on;
    return CUPTI_SUCCESS;
}

static CUptiResult enable_runtime_api(CUpti_CallbackId id, uint8_t on)
{
    assert_true(cupti.enabled[CUPTI_ACTIVITY_KIND_RUNTIME]); /* which would enable all of them again */
    assert_true(!on && (id == 3 || id == 5));
    cupti.questions++;
    return CUPTI_SUCCESS;
}

static CUptiResult configure_managed(CUpti_ActivityUnifiedMemoryCounterConfig *configs, uint32_t count)
{
    assert_int_equal(count, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT - 1);
    for (uint32_t i = 0; i < count; i++)
        assert_true(configs[i].kind == i + 1 && configs[i].enable);
    return cupti.managed;
}

static CUptiResult flush_all(uint32_t flag)
{
    cupti.flushes++;
    cupti.forced += flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED; /* which may not return */
    return CUPTI_SUCCESS;
}

static CUcontext current;
static CUcontext failed[2];

static CUresult push_context(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

static CUresult pop_context(CUcontext *context)
{
    *context = current;
    current = NULL;
    return CUDA_SUCCESS;
}

static CUresult get_info(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = 1;
    return current == failed[0] || current == failed[1] ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return CUDA_SUCCESS;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api driver = {.cuCtxPushCurrent_ = push_context,
                                            .cuCtxPopCurrent_ = pop_context,
                                            .cuMemGetInfo_ = get_info,
                                            .cuThreadExchangeStreamCaptureMode_ = exchange_mode};
    *out = &driver;
    return KPROF_OK;
}

static CUptiResult flush_period(uint32_t ms)
{
    assert_in_range(ms, 1, 2000);
    return CUPTI_SUCCESS;
}

static size_t size_of(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
        return sizeof(CUpti_ActivityUnifiedMemoryCounter3);
    default:
        return sizeof(CUpti_ActivityAPI);
    }
}

static CUptiResult get_next(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + size_of(*record) : buffer;
    if (next == buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    if (((CUpti_Activity *)(void *)next)->kind == CUPTI_ACTIVITY_KIND_INVALID)
        return CUPTI_ERROR_INVALID_KIND;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

static CUptiResult get_dropped(CUcontext context, uint32_t stream, size_t *dropped)
{
    assert_true(!context && stream == 0);
    *dropped = cupti.dropped;
    cupti.dropped = 0;
    return CUPTI_SUCCESS;
}

static CUptiResult get_string(CUptiResult result, const char **text)
{
    *text = result == CUPTI_SUCCESS ? "fine" : "an error";
    return CUPTI_SUCCESS;
}

/* Handles are the numbers. */
static CUptiResult get_context_id(CUcontext context, uint32_t *out)
{
    *out = (uint32_t)(uintptr_t)context;
    return CUPTI_SUCCESS;
}

static CUptiResult get_stream_id(CUcontext context, CUstream stream, uint8_t is_per_thread, uint32_t *out)
{
    assert_true(context && !is_per_thread);
    *out = (uint32_t)(uintptr_t)stream;
    return CUPTI_SUCCESS;
}

kprof_status kprof_cupti_load(const kprof_cupti_api **out)
{
    static const kprof_cupti_api api = {
        .cuptiGetContextId = get_context_id,
        .cuptiGetStreamIdEx = get_stream_id,
        .cuptiGetResultString = get_string,
        .cuptiGetTimestamp = get_timestamp,
        .cuptiGetCallbackName = get_name,
        .cuptiSetThreadIdType = set_thread_id_type,
        .cuptiActivityRegisterCallbacks = register_callbacks,
        .cuptiActivityEnable = enable,
        .cuptiActivityDisable = disable,
        .cuptiActivityEnableDriverApi = enable_driver_api,
        .cuptiActivityEnableRuntimeApi = enable_runtime_api,
        .cuptiActivityConfigureUnifiedMemoryCounter = configure_managed,
        .cuptiActivityFlushAll = flush_all,
        .cuptiActivityFlushPeriod = flush_period,
        .cuptiActivityGetNextRecord = get_next,
        .cuptiActivityGetNumDroppedRecords = get_dropped,
    };
    *out = &api;
    return KPROF_OK;
}

static int64_t number_name(const char *text, bool is_mangled)
{
    size_t i = 0;
    while (i < got.name_count && strcmp(got.names[i], text) != 0)
        i++;
    if (i == got.name_count) {
        assert_true(i < MOST_NAMES);
        got.names[i] = strdup(text);
        got.mangled[i] = is_mangled;
        got.name_count++;
    }
    return (int64_t)i + 1;
}

static void take(const kprof_activity *activity)
{
    assert_true(got.count < MOST_TAKEN);
    got.taken[got.count++] = *activity;
}

static void end(uint64_t dropped, uint64_t unknown)
{
    got.dropped += dropped;
    got.unknown += unknown;
    got.buffers++;
}

static const kprof_activity_sink sink = {number_name, take, end};

static void assert_name(int64_t number, const char *text)
{
    assert_in_range(number, 1, got.name_count);
    assert_string_equal(got.names[number - 1], text);
}

/* CUPTI fills a buffer with records of any kinds, and hands it back. */
typedef struct filled {
    uint8_t *buffer;
    size_t size, valid;
} filled;

static filled request(void)
{
    filled out = {0};
    size_t most = 1;
    cupti.request(&out.buffer, &out.size, &most);
    assert_int_equal(most, 0);
    return out;
}

static void put(filled *out, const void *record, size_t size)
{
    assert_true(out->buffer && out->valid + size <= out->size && (uintptr_t)out->buffer % 8 == 0);
    memcpy(out->buffer + out->valid, record, size);
    out->valid += size;
}
#define PUT(out, record) put(out, &(record), sizeof(record))

static void complete(filled *out)
{
    cupti.complete(NULL, 0, out->buffer, out->size, out->valid);
}

/* While the GPU is never idle CUPTI hands over full buffers alone, and who is killed loses the others. */
TEST(buffers_are_small_where_little_comes)
{
    enum { MANY = 40 };
    const size_t least = 64 << 10, full = 1 << 20;
    filled buffers[MANY];
    usleep(150000);
    buffers[0] = request();
    complete(&buffers[0]); /* it has nothing */
    for (size_t i = 0; i < MANY; i++)
        buffers[i] = request();
    assert_true(buffers[0].size <= least);
    assert_true(buffers[MANY - 1].size == full); /* so many at once */
    usleep(150000);
    for (size_t i = 0; i < MANY; i++)
        complete(&buffers[i]);
    filled next = request();
    assert_true(next.size <= least);
    complete(&next);
}

TEST(what_runs_on_the_gpu)
{
    filled buffer = request();
    const CUpti_ActivityKernel10 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           .registersPerThread = 40,
                                           .start = 6000000,
                                           .end = 6002500,
                                           .deviceId = 1,
                                           .contextId = 2,
                                           .streamId = 3,
                                           .gridX = 4,
                                           .gridY = 5,
                                           .gridZ = 6,
                                           .blockX = 7,
                                           .blockY = 8,
                                           .blockZ = 9,
                                           .staticSharedMemory = 10,
                                           .dynamicSharedMemory = 11,
                                           .localMemoryPerThread = 12,
                                           .correlationId = 13,
                                           .name = "_Z3addv",
                                           .graphNodeId = 14,
                                           .graphId = 15};
    CUpti_ActivityKernel10 untimed = kernel;
    untimed.start = untimed.end = 0;
    untimed.graphNodeId = untimed.graphId = 0;
    const CUpti_ActivityMemcpy6 copy = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                        .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                                        .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
                                        .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                        .flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC,
                                        .bytes = 1u << 20,
                                        .start = 7000000,
                                        .end = 7040000};
    const CUpti_ActivityMemcpyPtoP4 peer = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
                                            .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
                                            .srcKind = 200, /* of a later CUPTI */
                                            .srcDeviceId = 1,
                                            .dstDeviceId = 2,
                                            .bytes = 9};
    const CUpti_ActivityMemset4 set = {.kind = CUPTI_ACTIVITY_KIND_MEMSET,
                                       .bytes = 4096,
                                       .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                       .correlationId = 21};
    PUT(&buffer, kernel);
    PUT(&buffer, untimed);
    PUT(&buffer, copy);
    PUT(&buffer, peer);
    PUT(&buffer, set);
    complete(&buffer);
    assert_int_equal(got.count, 5);
    const kprof_kernel_activity *k = &got.taken[0].kernel;
    assert_true(k->device == 1 && k->context == 2 && k->stream == 3 && k->correlation == 13);
    assert_true(k->graph == 15 && k->graph_node == 14 && k->registers_per_thread == 40);
    assert_true(k->grid_x == 4 && k->grid_y == 5 && k->grid_z == 6);
    assert_true(k->block_x == 7 && k->block_y == 8 && k->block_z == 9);
    assert_true(k->static_smem_bytes == 10 && k->dynamic_smem_bytes == 11 && k->local_bytes_per_thread == 12);
    assert_int_equal(k->end_ns - k->start_ns, 2500);
    /* The clock is that of the host: CUPTI's time of the start is now. */
    const int64_t since_start_ns = kprof_activities_now_ns() - k->start_ns;
    assert_int_equal(since_start_ns, CUPTI_NOW - 6000000);
    assert_true(k->start_ns > INT64_C(1500000000000000000));
    assert_name(k->name, "_Z3addv");
    assert_true(got.mangled[k->name - 1]);
    k = &got.taken[1].kernel;
    assert_true(k->start_ns == -1 && k->end_ns == -1 && k->graph == -1 && k->graph_node == -1);
    const kprof_copy_activity *c = &got.taken[2].copy;
    assert_name(c->operation, "Host-to-Device");
    assert_name(c->source_memory, "Pageable");
    assert_name(c->target_memory, "Device");
    assert_true(c->bytes == 1 << 20 && c->is_async == 1 && c->source_device == -1);
    assert_int_equal(c->end_ns - c->start_ns, 40000);
    c = &got.taken[3].copy;
    assert_name(c->operation, "Peer-to-Peer");
    assert_name(c->source_memory, "Unknown");
    assert_true(c->source_device == 1 && c->target_device == 2 && c->is_async == 0);
    assert_true(got.taken[4].set.bytes == 4096 && got.taken[4].set.correlation == 21);
    assert_name(got.taken[4].set.memory, "Device");
}

/* kprof saves memory while the application runs: no trace tells of that. */
TEST(what_runs_in_streams_of_kprof)
{
    kprof_activities_leave_out((void *)5, (void *)50);
    filled buffer = request();
    CUpti_ActivityKernel10 kernel = {
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .contextId = 5, .streamId = 50, .name = "kprof_scan"};
    CUpti_ActivityMemcpy6 copy = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .contextId = 5, .streamId = 50};
    CUpti_ActivityMemset4 set = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .contextId = 5, .streamId = 50};
    PUT(&buffer, kernel);
    PUT(&buffer, copy);
    PUT(&buffer, set);
    kernel.contextId = 6; /* its streams have numbers of their own */
    copy.streamId = 51;
    PUT(&buffer, kernel);
    PUT(&buffer, copy);
    kernel.name = "kprof_follow";
    PUT(&buffer, kernel);
    complete(&buffer);
    assert_int_equal(got.count, 2);
    assert_true(got.taken[0].kernel.context == 6 && got.taken[1].copy.stream == 51);
}

static CUpti_ActivityAPI call_of(CUpti_ActivityKind kind, uint32_t id, uint64_t start, uint64_t end_time)
{
    return (CUpti_ActivityAPI){
        .kind = kind, .cbid = id, .start = start, .end = end_time, .threadId = 44, .correlationId = 5};
}

/* What the runtime's call does through the driver is a part of it; what else the driver is asked for is not. */
TEST(calls)
{
    filled buffer = request();
    const CUpti_ActivityAPI inner =
                                call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 110, 190),
                            outer = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 1, 100, 200),
                            other = call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, 300, 310),
                            later = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 2, 320, 400),
                            last =
                                call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 500, 510);
    PUT(&buffer, inner);
    PUT(&buffer, outer);
    PUT(&buffer, other);
    PUT(&buffer, later);
    PUT(&buffer, last);
    complete(&buffer);
    assert_int_equal(got.count, 3); /* the last one may be a part of a call that stands in another buffer */
    kprof_activities_flush();
    static const char *const names[] = {"cudaLaunchKernel", "cuMemFree_v2", "cudaMemcpyAsync_ptsz", "cuLaunchKernel"};
    assert_int_equal(got.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(got.taken[i].kind, KPROF_ACTIVITY_CALL);
        assert_name(got.taken[i].call.name, names[i]);
        assert_name(got.taken[i].call.layer, i % 2 ? "driver" : "runtime");
        assert_int_equal(got.taken[i].call.thread, 44);
    }
    assert_int_equal(got.taken[0].call.end_ns - got.taken[0].call.start_ns, 100);
}

/* Buffers end anywhere, and threads have their own. */
TEST(parts_of_calls_in_other_buffers)
{
    filled first = request(), second = request();
    const CUpti_ActivityAPI load = call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, 110, 120),
                            inner =
                                call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 130, 190),
                            outer = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 1, 100, 200);
    CUpti_ActivityAPI other = inner;
    other.threadId++;
    PUT(&first, load);
    PUT(&first, inner);
    PUT(&second, other);
    complete(&first);
    complete(&second);
    assert_int_equal(got.count, 0);
    filled third = request();
    PUT(&third, outer);
    complete(&third);
    assert_int_equal(got.count, 1);
    assert_name(got.taken[0].call.name, "cudaLaunchKernel");
    kprof_activities_flush();
    assert_int_equal(got.count, 2);
    assert_int_equal(got.taken[1].call.thread, 45);
}

/* The last call of the driver before is told, too, where it was no part of one. */
static void launch_by_the_runtime_beside(size_t told)
{
    filled buffer = request();
    const CUpti_ActivityAPI outer = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 1, 400, 500);
    PUT(&buffer, outer);
    complete(&buffer);
    assert_int_equal(got.count, 1 + told);
}

static void launch_by_the_runtime(size_t count)
{
    const CUpti_ActivityAPI inner =
                                call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 110, 190),
                            outer = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 1, 100, 200);
    for (size_t i = 0; i < count; i++) {
        filled buffer = request();
        PUT(&buffer, inner);
        PUT(&buffer, outer);
        complete(&buffer);
        assert_int_equal(got.count, 1);
        got.count = 0;
    }
}

static void get_a_kernel(void)
{
    kprof_call_records_note_handle(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel);
}

/* A record more makes each launch slower. */
TEST(launches_by_the_runtime_are_recorded_once)
{
    cupti.launches = true;
    launch_by_the_runtime(1999);
    assert_true(kprof_activities_save() && cupti.launches);
    launch_by_the_runtime(1);
    assert_true(kprof_activities_save());
    assert_false(cupti.launches);
    get_a_kernel(); /* the runtime does so, too, as it launches a kernel for the first time */
    assert_true(cupti.launches);
    assert_true(kprof_activities_save() && cupti.launches);
    launch_by_the_runtime(2000);
    cupti.meanwhile = get_a_kernel;
    assert_true(kprof_activities_save() && cupti.launches);
    cupti.meanwhile = NULL;
    launch_by_the_runtime(2000);
    assert_true(kprof_activities_save());
    assert_false(cupti.launches);
    kprof_call_records_note_handle(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
    assert_false(cupti.launches);
    kprof_call_records_note_handle(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetFuncBySymbol_v11000);
    assert_true(cupti.launches); /* for the driver's calls, from now on */
    launch_by_the_runtime(2000);
    assert_false(kprof_activities_save());
    assert_true(cupti.launches);
}

TEST(launches_of_cuda_13_have_their_name)
{
    filled buffer = request();
    const CUpti_ActivityAPI inner =
                                call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 110, 190),
                            outer = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 4, 100, 200);
    PUT(&buffer, inner);
    PUT(&buffer, outer);
    complete(&buffer);
    assert_int_equal(got.count, 1);
    assert_name(got.taken[0].call.name, "cudaLaunchKernel");
}

static void launch_by_the_driver(void)
{
    filled buffer = request();
    const CUpti_ActivityAPI alone =
        call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 300, 310);
    PUT(&buffer, alone);
    complete(&buffer);
    launch_by_the_runtime_beside(1);
    got.count = 0;
}

/* One launch by the driver does not mean that more follow, but kprof looks whether they do. */
TEST(launches_by_the_driver_are_found)
{
    cupti.launches = true;
    launch_by_the_driver();
    launch_by_the_runtime(1999);
    launch_by_the_driver();
    assert_true(kprof_activities_save() && cupti.launches);
    launch_by_the_runtime(2000);
    unsigned recorded = 0;
    for (int i = 0; i < 100; i++) {
        assert_true(kprof_activities_save());
        recorded += cupti.launches;
    }
    assert_int_equal(recorded, 5);
    while (!cupti.launches)
        assert_true(kprof_activities_save());
    launch_by_the_driver();
    assert_false(kprof_activities_save());
    assert_true(cupti.launches);
    assert_non_null(strstr(log_seen.last, "launches kernels through the driver, too"));
}

TEST(all_else)
{
    filled buffer = request();
    const CUpti_ActivityOverhead3 overhead = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
                                              .overheadKind = CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING,
                                              .objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
                                              .objectId.pt.threadId = 77,
                                              .start = 1,
                                              .end = 5};
    const CUpti_ActivityGraphTrace2 graph = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE, .graphId = 6, .start = 2};
    const CUpti_ActivityExternalCorrelation external = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                        .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                        .externalId = 1ull << 40,
                                                        .correlationId = 8};
    const CUpti_ActivityAPI unknown = {.kind = CUPTI_ACTIVITY_KIND_JIT};
    PUT(&buffer, overhead);
    PUT(&buffer, graph);
    PUT(&buffer, external);
    PUT(&buffer, unknown);
    cupti.dropped = 12;
    complete(&buffer);
    assert_int_equal(got.count, 3);
    assert_name(got.taken[0].overhead.name, "Lazy function loading");
    assert_int_equal(got.taken[0].overhead.thread, 77);
    assert_true(got.taken[1].graph.graph == 6 && got.taken[1].graph.end_ns == -1);
    assert_true(got.taken[2].external.external_id == INT64_C(1) << 40 && got.taken[2].external.correlation == 8);
    assert_true(got.unknown == 1 && got.dropped == 12 && got.buffers == 1);
}

/* CUPTI reads no further once it has met a record that it cannot tell. */
TEST(rest_of_a_buffer_that_cannot_be_read)
{
    const CUpti_ActivityAPI call = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 2, 320, 400),
                            broken = {.kind = CUPTI_ACTIVITY_KIND_INVALID, .cbid = 7},
                            nothing = {.kind = CUPTI_ACTIVITY_KIND_INVALID};
    filled buffer = request();
    PUT(&buffer, call);
    PUT(&buffer, nothing);
    complete(&buffer);
    assert_true(got.count == 1 && got.unknown == 0 && log_seen.count == 0);
    buffer = request();
    PUT(&buffer, call);
    PUT(&buffer, nothing);
    PUT(&buffer, broken);
    buffer.valid = sizeof call - sizeof(uint64_t); /* records of an older CUPTI are shorter */
    complete(&buffer);
    assert_true(got.count == 2 && got.unknown == 0 && log_seen.count == 0);
    for (int i = 0; i < 2; i++) {
        buffer = request();
        PUT(&buffer, call);
        PUT(&buffer, broken);
        PUT(&buffer, call);
        complete(&buffer);
    }
    assert_true(got.count == 4 && got.unknown == 2 && log_seen.count == 1);
    assert_string_equal(log_seen.last, "the trace lacks activities: CUPTI cannot read the last 80 bytes of a buffer of "
                                       "its records (error 21)");
}

TEST(managed_memory)
{
    assert_false(cupti.enabled[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER]);
    cupti.managed = CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED;
    assert_int_equal(kprof_activities_follow_managed(), KPROF_UNSUPPORTED);
    assert_false(cupti.enabled[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER]);
    cupti.managed = CUPTI_SUCCESS;
    assert_int_equal(kprof_activities_follow_managed(), KPROF_OK);
    assert_true(cupti.enabled[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER]);
    filled buffer = request();
    CUpti_ActivityUnifiedMemoryCounter3 record = {.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
                                                  .value = 65536,
                                                  .start = 10,
                                                  .end = 30,
                                                  .address = 0x7f0000000000,
                                                  .srcId = CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID,
                                                  .dstId = 1};
    for (unsigned kind = 1; kind <= CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT; kind++) {
        record.counterKind = (CUpti_ActivityUnifiedMemoryCounterKind)kind;
        PUT(&buffer, record);
    }
    complete(&buffer);
    static const char *const names[] = {"Host-to-Device", "Device-to-Host",   "CPU page fault",
                                        "GPU page fault", "thrashing",        "throttling",
                                        "remote map",     "Device-to-Device", "unknown"};
    assert_int_equal(got.count, sizeof names / sizeof *names);
    for (size_t i = 0; i < got.count; i++)
        assert_name(got.taken[i].managed.operation, names[i]);
    const kprof_managed_activity *move = &got.taken[0].managed, *cpu = &got.taken[2].managed,
                                 *gpu = &got.taken[3].managed;
    assert_true(move->bytes == 65536 && move->end_ns - move->start_ns == 20 && move->instruction == -1);
    assert_true(move->source_device == -1 && move->target_device == 1 && move->address == 0x7f0000000000);
    assert_true(cpu->instruction == 65536 && cpu->bytes == -1 && cpu->end_ns == -1 && cpu->target_device == -1);
    assert_true(gpu->faults == 65536 && gpu->bytes == -1 && gpu->end_ns - gpu->start_ns == 20);
}

/* However many threads ask, there is an end to the memory; what comes back is used again. */
TEST(memory_is_bounded)
{
    enum { MANY = 400 };
    static filled buffers[MANY];
    size_t bytes = 0, count = 0;
    for (size_t i = 0; i < MANY; i++) {
        buffers[i] = request();
        count += buffers[i].buffer != NULL;
        bytes += buffers[i].buffer ? buffers[i].size : 0;
    }
    assert_in_range(count, 100, MANY - 1);
    assert_in_range(bytes, 1, 256u << 20);
    assert_int_equal(kprof_activities_flush(), count);
    for (size_t i = 0; i < count; i++)
        complete(&buffers[i]);
    assert_int_equal(kprof_activities_flush(), 0);
    filled again = request();
    bool was_there = false;
    for (size_t i = 0; i < count; i++)
        was_there = was_there || again.buffer == buffers[i].buffer;
    assert_true(was_there);
    complete(&again);
    cupti.complete(NULL, 0, NULL, 0, 0); /* as CUPTI answers a request that was declined */
}

/* CUPTI is forced to hand over what it has only where no context can run anything any more. */
TEST(contexts_in_error)
{
    char places[70];
    const CUcontext first = (CUcontext)(void *)&places[0], second = (CUcontext)(void *)&places[1];
    const size_t before = cupti.forced;
    failed[0] = first;
    (void)kprof_activities_flush_failed(); /* no context is known */
    kprof_activities_note_context(first, false);
    kprof_activities_note_context(second, false);
    (void)kprof_activities_flush_failed();
    assert_int_equal(cupti.forced, before);
    failed[1] = second;
    (void)kprof_activities_flush();
    assert_int_equal(cupti.forced, before);
    (void)kprof_activities_flush_failed();
    assert_int_equal(cupti.forced, before + 1);
    failed[1] = NULL;
    kprof_activities_note_context(second, true);
    (void)kprof_activities_flush_failed();
    assert_int_equal(cupti.forced, before + 2);
    assert_null(current);
    for (size_t i = 2; i < sizeof places; i++)
        kprof_activities_note_context(&places[i], false);
    for (size_t i = 2; i < sizeof places; i++)
        kprof_activities_note_context(&places[i], true);
    (void)kprof_activities_flush_failed(); /* a context may have been forgotten */
    assert_int_equal(cupti.forced, before + 2);
}

TEST(nothing_is_taken_for_granted)
{
    cupti.registered = CUPTI_ERROR_NOT_COMPATIBLE;
    assert_int_equal(kprof_activities_start(&sink, KPROF_ACTIVITIES_OF_NODES), KPROF_UNSUPPORTED);
    assert_non_null(strstr(log_seen.last, "does another tool trace this process?"));
    cupti.registered = CUPTI_SUCCESS;
    cupti.refused = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    assert_int_equal(kprof_activities_start(&sink, KPROF_ACTIVITIES_OF_NODES), KPROF_UNSUPPORTED);
    cupti.refused = CUPTI_ACTIVITY_KIND_OVERHEAD; /* which a trace can do without */
    assert_int_equal(kprof_activities_start(&sink, KPROF_ACTIVITIES_OF_NODES), KPROF_OK);
    assert_false(cupti.enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]);
    assert_int_equal(kprof_activities_start(&sink, KPROF_ACTIVITIES_OF_GRAPHS), KPROF_OK);
    assert_true(cupti.enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]);
    cupti.refused = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    assert_int_equal(kprof_activities_start(&sink, KPROF_ACTIVITIES_OF_GRAPHS), KPROF_UNSUPPORTED);
}

TEST(kernels_alone)
{
    memset(cupti.enabled, 0, sizeof cupti.enabled);
    cupti.driver_calls = 0;
    assert_int_equal(kprof_activities_start(&sink, KPROF_ACTIVITIES_OF_KERNELS), KPROF_OK);
    for (size_t i = 0; i < CUPTI_ACTIVITY_KIND_COUNT; i++)
        assert_int_equal(cupti.enabled[i], i == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    assert_int_equal(cupti.driver_calls, 0);
}

/* CUPTI's own records of memory, and of waits, would make each launch slower. */
TEST(memory_is_told_by_calls)
{
    const kprof_memory_activity memory = {
        .device = 1, .context = 2, .stream = -1, .correlation = 3, .address = INT64_C(0x7f0000000000), .bytes = 512};
    assert_true(kprof_activities_want_memory());
    assert_false(cupti.enabled[CUPTI_ACTIVITY_KIND_MEMORY2] || cupti.enabled[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]);
    kprof_activities_note_memory(&memory, false, "Pinned");
    assert_int_equal(got.count, 1);
    assert_name(got.taken[0].memory.operation, "release");
    assert_name(got.taken[0].memory.memory, "Pinned");
    assert_true(got.taken[0].memory.address == memory.address && got.taken[0].memory.bytes == 512);
    assert_true(got.taken[0].memory.time_ns == kprof_activities_now_ns());
}

/* Calls go on: enabling them anew would enable those that only ask. */
TEST(pauses)
{
    for (int i = 0; i < 2; i++) {
        kprof_activities_pause(true);
        assert_false(cupti.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] ||
                     cupti.enabled[CUPTI_ACTIVITY_KIND_MEMCPY] || cupti.enabled[CUPTI_ACTIVITY_KIND_MEMSET]);
        assert_true(cupti.enabled[CUPTI_ACTIVITY_KIND_RUNTIME]);
        kprof_activities_pause(false);
        assert_true(cupti.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] && cupti.enabled[CUPTI_ACTIVITY_KIND_MEMSET]);
    }
    assert_int_equal(cupti.questions, 2);
}

static int set_up(void **state)
{
    memset(&cupti, 0, sizeof cupti);
    for (size_t i = 0; i < got.name_count; i++)
        free((char *)(uintptr_t)got.names[i]);
    memset(&got, 0, sizeof got);
    log_capture_start(&log_seen);
    assert_int_equal(kprof_activities_start(&sink, KPROF_ACTIVITIES_OF_NODES), KPROF_OK);
    assert_true(cupti.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] && cupti.driver_calls == 2 &&
                cupti.questions == 2);
    kprof_activities_flush();
    assert_int_equal(cupti.flushes, 1);
    return 0;
}

AROUND_EACH(set_up, NULL)
