/* Reads CUPTI's activity records into those of core/activities.h. Never enables CUPTI_ACTIVITY_KIND_KERNEL, which has
 * kernels run one after the other. */
#include "cupti/activities.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "cupti/call_records.h"
#include "cupti/driver.h"
#include "host/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each thread has its own buffer, so many threads take many. CUPTI drops, and counts, the records that get none. */
#define BUFFER_BYTES     ((size_t)1 << 20)
#define MOST_BUFFERS     256
#define KEPT_BUFFERS     8
#define BUFFER_ALIGNMENT 8
/* So often CUPTI hands over the buffers that are full, or have no activity that goes on. While the GPU is never idle
 * there is always one that goes on, so buffers are as large as what comes in FILL_NS, and a process that is killed
 * loses little more than that. */
#define FLUSH_PERIOD_MS 500
#define FILL_NS         INT64_C(125000000)
#define LEAST_BYTES     ((size_t)32 << 10)
#define MOST_LEAST      16 /* small ones in a row: who fills them faster gets whole ones until the next choice */
#define NAME_BYTES      128
#define MOST_CALLS      1024 /* of the runtime, or of the driver, whose names are kept */

/* With more contexts nothing tells whether all of them are in error. */
#define MOST_CONTEXTS 64

/* More than contexts have: an older one is then forgotten. */
#define MOST_OWN_STREAMS 64

typedef struct own_stream {
    uint32_t context, stream; /* CUPTI's numbers */
} own_stream;

typedef struct free_buffer {
    struct free_buffer *next;
} free_buffer;

static struct {
    const kprof_cupti_api *cupti;
    kprof_activity_sink sink;
    int64_t offset_ns; /* from CUPTI's clock to the time since 1970 */
    kprof_activity_scope scope;
    atomic_bool runs;
    pthread_mutex_t buffers; /* guards the next five */
    free_buffer *kept;
    size_t kept_count, out_count;
    size_t fill_bytes; /* what CUPTI may put into the next buffer */
    struct {
        int64_t begun_ns;
        size_t given, bytes; /* since then: buffers that CUPTI got, and bytes of records that came */
    } rate;
    pthread_mutex_t reading; /* one buffer is read at a time; guards the rest */
    const char *last_name;   /* CUPTI has one copy of a kernel's name */
    int64_t last_number;
    int64_t call_names[2][MOST_CALLS], layer_names[2]; /* of the runtime and the driver; 0: not known yet */
    bool is_broken;                                    /* CUPTI could not read a buffer to its end */
    own_stream own[MOST_OWN_STREAMS];                  /* kprof's, the last ones that were made */
    size_t own_count;                                  /* of all of them */
} activities = {.buffers = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, .reading = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

/* The contexts of the process. */
typedef struct context_list {
    CUcontext items[MOST_CONTEXTS];
    size_t count;
    bool is_cut; /* there was no space for one */
} context_list;

static struct {
    pthread_mutex_t mutex; /* guards the rest */
    context_list list;
} contexts = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

/* CUPTI's kinds of records. Those of kernels, copies, sets, the runtime's calls and graphs have to be there. */
static const struct {
    CUpti_ActivityKind kind;
    bool optional;
    bool pauses; /* with kprof_activities_pause */
} kinds[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, false, true},
    {CUPTI_ACTIVITY_KIND_MEMCPY, false, true},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, true, true},
    {CUPTI_ACTIVITY_KIND_MEMSET, false, true},
    {CUPTI_ACTIVITY_KIND_RUNTIME, false, false},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, true, false},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, true, false},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, false, true},
};
#define KIND_COUNT COUNT_OF(kinds)

static int64_t to_unix(uint64_t cupti_ns)
{
    return (int64_t)cupti_ns + activities.offset_ns;
}

/* CUPTI has 0 for a time that it does not know. */
static int64_t to_unix_if_known(uint64_t cupti_ns)
{
    return cupti_ns == 0 ? -1 : to_unix(cupti_ns);
}

static int64_t name(const char *text)
{
    return activities.sink.name(text, false);
}

/* Choose how much the next buffers are to hold, from the bytes that have come since the last choice. */
static void choose_fill(size_t valid)
{
    const int64_t now_ns = kprof_monotonic_ns(), since_ns = now_ns - activities.rate.begun_ns;
    activities.rate.bytes += valid;
    if (since_ns < FILL_NS)
        return;
    const double bytes = (double)activities.rate.bytes * FILL_NS / (double)since_ns / (double)activities.out_count;
    for (activities.fill_bytes = LEAST_BYTES; activities.fill_bytes < bytes && activities.fill_bytes < BUFFER_BYTES;)
        activities.fill_bytes *= 2;
    activities.rate.begun_ns = now_ns;
    activities.rate.given = activities.rate.bytes = 0;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *most_records = 0;
    pthread_mutex_lock(&activities.buffers);
    *size = activities.rate.given++ < MOST_LEAST ? activities.fill_bytes : BUFFER_BYTES;
    free_buffer *kept = activities.kept;
    const bool may_allocate = activities.out_count < MOST_BUFFERS;
    if (kept) {
        activities.kept = kept->next;
        activities.kept_count--;
    }
    *buffer = kept ? (uint8_t *)kept : may_allocate ? aligned_alloc(BUFFER_ALIGNMENT, BUFFER_BYTES) : NULL;
    activities.out_count += *buffer != NULL;
    pthread_mutex_unlock(&activities.buffers);
    if (!*buffer)
        *size = 0;
}

static void take_back(uint8_t *buffer, size_t valid)
{
    pthread_mutex_lock(&activities.buffers);
    choose_fill(valid);
    activities.out_count--;
    const bool is_kept = activities.kept_count < KEPT_BUFFERS;
    if (is_kept) {
        free_buffer *kept = (free_buffer *)(void *)buffer;
        kept->next = activities.kept;
        activities.kept = kept;
        activities.kept_count++;
    }
    pthread_mutex_unlock(&activities.buffers);
    if (!is_kept)
        free(buffer);
}

static int64_t kernel_name(const char *text)
{
    if (!text)
        return 0;
    if (text != activities.last_name) {
        activities.last_number = activities.sink.name(text, true);
        activities.last_name = text;
    }
    return activities.last_number;
}

/* A graph and a node are 0 where there is none. */
static int64_t or_none(uint64_t number)
{
    return number == 0 ? -1 : (int64_t)number;
}

/* The members that records of the GPU share, by the same names. */
#define FILL_ON_GPU(out, from)                                                                                         \
    do {                                                                                                               \
        (out)->start_ns = to_unix_if_known((from)->start);                                                             \
        (out)->end_ns = to_unix_if_known((from)->end);                                                                 \
        (out)->device = (from)->deviceId;                                                                              \
        (out)->context = (from)->contextId;                                                                            \
        (out)->stream = (from)->streamId;                                                                              \
        (out)->correlation = (from)->correlationId;                                                                    \
        (out)->graph = or_none((from)->graphId);                                                                       \
        (out)->graph_node = or_none((from)->graphNodeId);                                                              \
    } while (0)

static void read_kernel(const CUpti_ActivityKernel10 *record, kprof_kernel_activity *out)
{
    FILL_ON_GPU(out, record);
    out->name = kernel_name(record->name);
    out->grid_x = record->gridX;
    out->grid_y = record->gridY;
    out->grid_z = record->gridZ;
    out->block_x = record->blockX;
    out->block_y = record->blockY;
    out->block_z = record->blockZ;
    out->registers_per_thread = record->registersPerThread;
    out->static_smem_bytes = record->staticSharedMemory;
    out->dynamic_smem_bytes = record->dynamicSharedMemory;
    out->local_bytes_per_thread = record->localMemoryPerThread;
}

static const char *copy_operation(unsigned kind)
{
    static const char *const texts[] = {
        [CUPTI_ACTIVITY_MEMCPY_KIND_HTOD] = "Host-to-Device",  [CUPTI_ACTIVITY_MEMCPY_KIND_DTOH] = "Device-to-Host",
        [CUPTI_ACTIVITY_MEMCPY_KIND_HTOA] = "Host-to-Array",   [CUPTI_ACTIVITY_MEMCPY_KIND_ATOH] = "Array-to-Host",
        [CUPTI_ACTIVITY_MEMCPY_KIND_ATOA] = "Array-to-Array",  [CUPTI_ACTIVITY_MEMCPY_KIND_ATOD] = "Array-to-Device",
        [CUPTI_ACTIVITY_MEMCPY_KIND_DTOA] = "Device-to-Array", [CUPTI_ACTIVITY_MEMCPY_KIND_DTOD] = "Device-to-Device",
        [CUPTI_ACTIVITY_MEMCPY_KIND_HTOH] = "Host-to-Host",    [CUPTI_ACTIVITY_MEMCPY_KIND_PTOP] = "Peer-to-Peer",
    };
    const char *text = kind < COUNT_OF(texts) ? texts[kind] : NULL;
    return text ? text : "Unknown";
}

static const char *memory_kind(unsigned kind)
{
    static const char *const texts[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return kind < COUNT_OF(texts) ? texts[kind] : texts[0];
}

/* The members that both records of copies have. */
#define FILL_COPY(out, from)                                                                                           \
    do {                                                                                                               \
        FILL_ON_GPU(out, from);                                                                                        \
        (out)->operation = name(copy_operation((from)->copyKind));                                                     \
        (out)->source_memory = name(memory_kind((from)->srcKind));                                                     \
        (out)->target_memory = name(memory_kind((from)->dstKind));                                                     \
        (out)->bytes = (int64_t)(from)->bytes;                                                                         \
        (out)->is_async = ((from)->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0;                                     \
    } while (0)

static void read_copy(const CUpti_ActivityMemcpy6 *record, kprof_copy_activity *out)
{
    FILL_COPY(out, record);
    out->source_device = out->target_device = -1;
}

static void read_peer_copy(const CUpti_ActivityMemcpyPtoP4 *record, kprof_copy_activity *out)
{
    FILL_COPY(out, record);
    out->source_device = record->srcDeviceId;
    out->target_device = record->dstDeviceId;
}

static void read_set(const CUpti_ActivityMemset4 *record, kprof_set_activity *out)
{
    FILL_ON_GPU(out, record);
    out->memory = name(memory_kind(record->memoryKind));
    out->bytes = (int64_t)record->bytes;
}

static const char *overhead_name(CUpti_ActivityOverheadKind kind)
{
    static const struct {
        CUpti_ActivityOverheadKind kind;
        const char *name;
    } rows[] = {{CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, "Driver compiler"},
                {CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, "Buffer flush"},
                {CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, "Instrumentation"},
                {CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, "Resource"},
                {CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING, "Module loading"},
                {CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, "Lazy function loading"},
                {CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, "Command buffer full"},
                {CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, "Buffer request"},
                {CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT, "Unified memory set-up"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].kind == kind)
            return rows[i].name;
    return "Unknown";
}

static void read_overhead(const CUpti_ActivityOverhead3 *record, kprof_overhead_activity *out)
{
    const bool is_of_thread = record->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
    *out = (kprof_overhead_activity){
        .start_ns = to_unix(record->start),
        .end_ns = to_unix(record->end),
        .thread = is_of_thread ? (int64_t)record->objectId.pt.threadId : -1,
        .correlation = or_none(record->correlationId),
        .name = name(overhead_name(record->overheadKind)),
    };
}

static void read_graph(const CUpti_ActivityGraphTrace2 *record, kprof_graph_activity *out)
{
    *out = (kprof_graph_activity){
        .start_ns = to_unix_if_known(record->start),
        .end_ns = to_unix_if_known(record->end),
        .device = record->deviceId,
        .context = record->contextId,
        .stream = record->streamId,
        .correlation = record->correlationId,
        .graph = record->graphId,
    };
}

static void read_external(const CUpti_ActivityExternalCorrelation *record, kprof_external_activity *out)
{
    *out = (kprof_external_activity){
        .correlation = record->correlationId,
        .external_kind = record->externalKind,
        .external_id = (int64_t)record->externalId,
    };
}

static const char *managed_operation(CUpti_ActivityUnifiedMemoryCounterKind kind)
{
    static const char *const texts[] = {
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD] = "Host-to-Device",
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH] = "Device-to-Host",
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT] = "CPU page fault",
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT] = "GPU page fault",
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING] = "thrashing",
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING] = "throttling",
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP] = "remote map",
        [CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD] = "Device-to-Device",
    };
    const unsigned index = (unsigned)kind;
    return index < COUNT_OF(texts) && texts[index] ? texts[index] : "unknown";
}

static int64_t device_or_none(uint32_t device)
{
    return device == CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID ? -1 : (int64_t)device;
}

/* The kind of a record tells which of its members mean something, and what. */
static void read_managed(const CUpti_ActivityUnifiedMemoryCounter3 *record, kprof_managed_activity *out)
{
    const bool is_cpu_fault = record->counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
               is_gpu_fault = record->counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT,
               is_thrashing = record->counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING,
               is_map = record->counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP,
               is_throttling = record->counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING;
    const int64_t value = (int64_t)record->value;
    out->start_ns = to_unix(record->start);
    out->end_ns = is_cpu_fault || is_thrashing || is_map ? -1 : to_unix_if_known(record->end);
    out->operation = name(managed_operation(record->counterKind));
    out->address = (int64_t)record->address;
    out->bytes = is_cpu_fault || is_gpu_fault || is_throttling ? -1 : value;
    out->faults = is_gpu_fault ? value : -1;
    out->instruction = is_cpu_fault ? value : -1;
    out->source_device = is_cpu_fault || is_thrashing ? -1 : device_or_none(record->srcId);
    out->target_device =
        is_cpu_fault || is_gpu_fault || is_thrashing || is_throttling ? -1 : device_or_none(record->dstId);
}

static void take_call(const kprof_call_activity *call)
{
    kprof_activity activity = {.kind = KPROF_ACTIVITY_CALL, .call = *call};
    activities.sink.take(&activity);
}

/* "cudaLaunchKernel_v7000" and "__cudaLaunchKernel_v13000" are cudaLaunchKernel. In cuMemFree_v2 the version stays. */
static void cut_version(char *text)
{
    char *version = strrchr(text, '_');
    if (!version || version[1] != 'v')
        return;
    const size_t digits = strspn(version + 2, "0123456789");
    if (digits >= 4 && version[2 + digits] == '\0')
        *version = '\0';
}

static int64_t find_call_name(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    char text[NAME_BYTES];
    const char *known = NULL;
    if (activities.cupti->cuptiGetCallbackName(domain, id, &known) != CUPTI_SUCCESS || !known)
        return name("unknown call");
    snprintf(text, sizeof text, "%s", known + (kprof_begins_with(known, "__cudaLaunch") ? 2 : 0));
    cut_version(text);
    return name(text);
}

static int64_t call_name(bool is_driver, CUpti_CallbackId id)
{
    const CUpti_CallbackDomain domain = is_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    if (id >= MOST_CALLS)
        return find_call_name(domain, id);
    int64_t *known = &activities.call_names[is_driver][id];
    if (*known == 0)
        *known = find_call_name(domain, id);
    return *known;
}

static int64_t layer_name(bool is_driver)
{
    int64_t *known = &activities.layer_names[is_driver];
    if (*known == 0)
        *known = name(is_driver ? "driver" : "runtime");
    return *known;
}

static void take_api(const CUpti_ActivityAPI *record)
{
    const bool is_driver = record->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    kprof_call_activity told[2];
    const kprof_call_activity call = {
        .start_ns = to_unix(record->start),
        .end_ns = to_unix(record->end),
        .thread = record->threadId,
        .correlation = record->correlationId,
        .name = call_name(is_driver, record->cbid),
        .layer = layer_name(is_driver),
        .result = record->returnValue,
    };
    const size_t count = kprof_call_records_sort(&call, record, told);
    for (size_t i = 0; i < count; i++)
        take_call(&told[i]);
}

/* kprof saves memory while the application runs: in streams of its own, but for one kernel. Kernels, copies and sets
 * begin with the same fields. */
static bool is_own(const kprof_activity *activity, const CUpti_Activity *record)
{
    const kprof_kernel_activity *work = &activity->kernel;
    const CUpti_ActivityKernel10 *kernel = (const void *)record;
    const bool is_kernel = activity->kind == KPROF_ACTIVITY_KERNEL;
    const size_t count = activities.own_count < MOST_OWN_STREAMS ? activities.own_count : MOST_OWN_STREAMS;
    if (!is_kernel && activity->kind != KPROF_ACTIVITY_COPY && activity->kind != KPROF_ACTIVITY_SET)
        return false;
    return (is_kernel && kernel->name && strcmp(kernel->name, KPROF_FOLLOWER) == 0) ||
           KPROF_ANY(i, count, activities.own[i].context == work->context && activities.own[i].stream == work->stream);
}

#define READ(record_kind, type, activity_kind, member, read)                                                           \
    case CUPTI_ACTIVITY_KIND_##record_kind:                                                                            \
        activity.kind = KPROF_ACTIVITY_##activity_kind;                                                                \
        read((const void *)record, &activity.member);                                                                  \
        bytes = sizeof(type);                                                                                          \
        break;

/* Take one record, and return its size; 0: kprof does not know this kind. */
static size_t take_record(const CUpti_Activity *record)
{
    kprof_activity activity = {0};
    size_t bytes = 0;
    switch (record->kind) {
        READ(CONCURRENT_KERNEL, CUpti_ActivityKernel10, KERNEL, kernel, read_kernel)
        READ(MEMCPY, CUpti_ActivityMemcpy6, COPY, copy, read_copy)
        READ(MEMCPY2, CUpti_ActivityMemcpyPtoP4, COPY, copy, read_peer_copy)
        READ(MEMSET, CUpti_ActivityMemset4, SET, set, read_set)
        READ(OVERHEAD, CUpti_ActivityOverhead3, OVERHEAD, overhead, read_overhead)
        READ(GRAPH_TRACE, CUpti_ActivityGraphTrace2, GRAPH, graph, read_graph)
        READ(EXTERNAL_CORRELATION, CUpti_ActivityExternalCorrelation, EXTERNAL, external, read_external)
        READ(UNIFIED_MEMORY_COUNTER, CUpti_ActivityUnifiedMemoryCounter3, MANAGED, managed, read_managed)
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        take_api((const void *)record);
        return sizeof(CUpti_ActivityAPI);
    default:
        return 0;
    }
    if (!is_own(&activity, record))
        activities.sink.take(&activity);
    return bytes;
}

/* Returns how many records kprof cannot read: those of unknown kinds, and the rest of the buffer as one. */
static uint64_t read_records(uint8_t *buffer, size_t valid)
{
    CUpti_Activity *record = NULL;
    CUptiResult result = valid > 0 ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
    uint64_t unknown = 0;
    const uint8_t *rest = buffer;
    while (result == CUPTI_SUCCESS) {
        result = activities.cupti->cuptiActivityGetNextRecord(buffer, valid, &record);
        const size_t bytes = result == CUPTI_SUCCESS ? take_record(record) : 0;
        unknown += result == CUPTI_SUCCESS && bytes == 0;
        rest = bytes > 0 ? (const uint8_t *)record + bytes : rest;
    }
    const uint8_t *end = buffer + valid;
    const size_t left = rest < end ? (size_t)(end - rest) : 0; /* records of an older CUPTI may be shorter */
    if (result == CUPTI_ERROR_MAX_LIMIT_REACHED || !KPROF_ANY(i, left, rest[i] != 0))
        return unknown;
    if (!activities.is_broken)
        kprof_log(KPROF_LOG_WARNING,
                  "the trace lacks activities: CUPTI cannot read the last %zu bytes of a buffer of its records (error "
                  "%d)",
                  left, (int)result);
    activities.is_broken = true;
    return unknown + 1;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are CUPTI's */
static void CUPTIAPI read_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    size_t dropped = 0;
    (void)context;
    (void)stream;
    (void)size;
    if (!buffer || pthread_mutex_lock(&activities.reading) != 0) /* a signal handler has interrupted a reader */
        return;
    const uint64_t unknown = read_records(buffer, valid);
    activities.last_name = NULL; /* its module may be unloaded */
    if (activities.cupti->cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) != CUPTI_SUCCESS)
        dropped = 0;
    activities.sink.end(dropped, unknown);
    pthread_mutex_unlock(&activities.reading);
    take_back(buffer, valid);
}

/* CUPTI's clock need not be that of the host. */
static bool compare_clocks(void)
{
    uint64_t cupti_ns = 0;
    const int64_t before_ns = kprof_unix_ns();
    const CUptiResult result = activities.cupti->cuptiGetTimestamp(&cupti_ns);
    const int64_t after_ns = kprof_unix_ns();
    activities.offset_ns = before_ns + (after_ns - before_ns) / 2 - (int64_t)cupti_ns;
    return result == CUPTI_SUCCESS;
}

static kprof_status refused(const char *what, CUptiResult result)
{
    const char *why = NULL;
    if (activities.cupti->cuptiGetResultString(result, &why) != CUPTI_SUCCESS || !why)
        why = "an unknown error";
    return kprof_fail(KPROF_UNSUPPORTED, "CUPTI does not record %s: %s; does another tool trace this process?", what,
                      why);
}

/* Kernels are the first kind, and graphs the last. */
static size_t count_kinds(void)
{
    const kprof_activity_scope scope = activities.scope;
    return scope == KPROF_ACTIVITIES_OF_KERNELS ? 1 : scope == KPROF_ACTIVITIES_OF_GRAPHS ? KIND_COUNT : KIND_COUNT - 1;
}

static kprof_status enable_kinds(void)
{
    for (size_t i = 0; i < count_kinds(); i++) {
        const CUptiResult result = activities.cupti->cuptiActivityEnable(kinds[i].kind);
        if (result != CUPTI_SUCCESS && !kinds[i].optional)
            return refused(kinds[i].kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE ? "graphs" : "activities", result);
        if (result != CUPTI_SUCCESS)
            kprof_log(KPROF_LOG_DEBUG, "CUPTI does not record activities of kind %d (error %d)", (int)kinds[i].kind,
                      (int)result);
    }
    if (activities.scope != KPROF_ACTIVITIES_OF_KERNELS)
        kprof_call_records_choose(activities.cupti);
    return KPROF_OK;
}

kprof_status kprof_activities_start(const kprof_activity_sink *sink, kprof_activity_scope scope)
{
    kprof_status status = kprof_cupti_load(&activities.cupti);
    if (status != KPROF_OK)
        return status;
    activities.sink = *sink;
    activities.scope = scope;
    activities.fill_bytes = LEAST_BYTES;
    activities.rate.begun_ns = kprof_monotonic_ns();
    memset(activities.call_names, 0, sizeof activities.call_names);
    memset(activities.layer_names, 0, sizeof activities.layer_names);
    if (!compare_clocks())
        return kprof_fail(KPROF_UNSUPPORTED, "CUPTI does not tell its time");
    (void)activities.cupti->cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    const CUptiResult result = activities.cupti->cuptiActivityRegisterCallbacks(give_buffer, read_buffer);
    if (result != CUPTI_SUCCESS)
        return refused("activities", result);
    status = enable_kinds();
    if (status != KPROF_OK)
        return status;
    (void)activities.cupti->cuptiActivityFlushPeriod(FLUSH_PERIOD_MS);
    atomic_store(&activities.runs, true);
    return KPROF_OK;
}

/* The device and the scope of a configuration matter only to CUDA before 7.0. */
kprof_status kprof_activities_follow_managed(void)
{
    enum {
        FIRST = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
        COUNT = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT - FIRST
    };
    CUpti_ActivityUnifiedMemoryCounterConfig configs[COUNT] = {0};
    if (!atomic_load(&activities.runs))
        return KPROF_OK;
    for (int i = 0; i < COUNT; i++) {
        configs[i].kind = (CUpti_ActivityUnifiedMemoryCounterKind)(FIRST + i);
        configs[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES;
        configs[i].enable = 1;
    }
    CUptiResult result = activities.cupti->cuptiActivityConfigureUnifiedMemoryCounter(configs, COUNT);
    KPROF_THEN(result, activities.cupti->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
    return result == CUPTI_SUCCESS ? KPROF_OK : refused("how unified memory moves", result);
}

/* Tell of calls that wait, even in the middle of a call of the runtime: CUPTI has given all that it has. */
static void tell_waiting(void)
{
    kprof_call_activity calls[KPROF_CALL_RECORDS_WAITING];
    if (pthread_mutex_lock(&activities.reading) != 0)
        return;
    const size_t count = kprof_call_records_rest(calls);
    for (size_t i = 0; i < count; i++)
        take_call(&calls[i]);
    pthread_mutex_unlock(&activities.reading);
}

static size_t flush(uint32_t flags)
{
    if (!atomic_load(&activities.runs))
        return 0;
    (void)activities.cupti->cuptiActivityFlushAll(flags);
    tell_waiting();
    if (pthread_mutex_lock(&activities.buffers) != 0) /* a signal handler has interrupted the thread that has it */
        return 0;
    const size_t kept = activities.out_count;
    pthread_mutex_unlock(&activities.buffers);
    return kept;
}

size_t kprof_activities_flush(void)
{
    return flush(0);
}

void kprof_activities_note_context(void *context, bool ends)
{
    context_list *list = &contexts.list;
    if (pthread_mutex_lock(&contexts.mutex) != 0)
        return;
    const size_t at = KPROF_FIND(i, list->count, list->items[i] == context);
    if (ends && at < list->count)
        list->items[at] = list->items[--list->count];
    else if (!ends && list->count < MOST_CONTEXTS)
        list->items[list->count++] = context;
    else
        list->is_cut = true;
    pthread_mutex_unlock(&contexts.mutex);
}

static bool is_fatal(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

/* Nothing runs any more in a context that is in error, and each call there has that error. */
static bool is_in_error(const kprof_driver_api *driver, CUcontext context)
{
    size_t free_bytes, total_bytes;
    CUresult result = driver->cuCtxPushCurrent_(context);
    if (result == CUDA_SUCCESS) {
        result = driver->cuMemGetInfo_(&free_bytes, &total_bytes);
        (void)driver->cuCtxPopCurrent_(&context);
    }
    return is_fatal(result);
}

static bool have_all_failed(void)
{
    const kprof_driver_api *driver;
    if (kprof_driver_load(&driver) != KPROF_OK || pthread_mutex_lock(&contexts.mutex) != 0)
        return false;
    KPROF_RELAX(driver);
    const context_list list = contexts.list; /* the driver may wait for a thread that notes a context */
    pthread_mutex_unlock(&contexts.mutex);
    return list.count > 0 && !list.is_cut && !KPROF_ANY(i, list.count, !is_in_error(driver, list.items[i]));
}

/* A forced flush might not return while a kernel runs. */
size_t kprof_activities_flush_failed(void)
{
    return flush(have_all_failed() ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

void kprof_activities_leave_out(void *context, void *stream)
{
    const kprof_cupti_api *cupti = activities.cupti;
    own_stream own;
    if (!atomic_load(&activities.runs) || cupti->cuptiGetContextId(context, &own.context) != CUPTI_SUCCESS ||
        cupti->cuptiGetStreamIdEx(context, stream, 0, &own.stream) != CUPTI_SUCCESS ||
        pthread_mutex_lock(&activities.reading) != 0)
        return;
    activities.own[activities.own_count++ % MOST_OWN_STREAMS] = own;
    pthread_mutex_unlock(&activities.reading);
}

void kprof_activities_pause(bool pauses)
{
    const kprof_cupti_api *cupti = activities.cupti;
    if (!atomic_load(&activities.runs))
        return;
    for (size_t i = 0; i < count_kinds(); i++)
        if (kinds[i].pauses)
            (void)(pauses ? cupti->cuptiActivityDisable(kinds[i].kind) : cupti->cuptiActivityEnable(kinds[i].kind));
}

bool kprof_activities_save(void)
{
    return atomic_load(&activities.runs) && activities.scope != KPROF_ACTIVITIES_OF_KERNELS &&
           kprof_call_records_save();
}

int64_t kprof_activities_now_ns(void)
{
    uint64_t cupti_ns = 0;
    const bool runs = atomic_load(&activities.runs);
    return runs && activities.cupti->cuptiGetTimestamp(&cupti_ns) == CUPTI_SUCCESS ? to_unix(cupti_ns) : 0;
}

void kprof_activities_note_memory(const kprof_memory_activity *memory, bool allocates, const char *kind)
{
    kprof_activity activity = {.kind = KPROF_ACTIVITY_MEMORY, .memory = *memory};
    if (!kprof_activities_want_memory())
        return;
    activity.memory.time_ns = kprof_activities_now_ns();
    activity.memory.operation = name(allocates ? "allocation" : "release");
    activity.memory.memory = name(kind);
    activities.sink.take(&activity);
}

bool kprof_activities_want_memory(void)
{
    return atomic_load_explicit(&activities.runs, memory_order_relaxed) &&
           activities.scope != KPROF_ACTIVITIES_OF_KERNELS;
}
