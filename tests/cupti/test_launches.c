/* Launches that are kept to be repeated: the kernel gets what it got at first, whatever the application has done with
 * its memory since; and which arguments count as the host's memory. The driver keeps what it is told to launch. */
#include "cupti/calls.h"
#include "cupti/device.h"
#include "cupti/driver.h"
#include "cupti/graphs.h"
#include "cupti/managed.h"
#include "cupti/operation.h"
#include "test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

enum { ARGUMENTS = 3, ATTRIBUTES = 4 };

/* The arguments of the test's kernel, as they lie in its buffer. */
typedef struct arguments {
    uint32_t count;
    uint64_t address;
    unsigned char odd[3];
} arguments;

static const size_t offsets[ARGUMENTS] = {offsetof(arguments, count), offsetof(arguments, address),
                                          offsetof(arguments, odd)};
static const size_t sizes[ARGUMENTS] = {4, 8, 3};

/* Addresses that the driver knows. */
static const uint64_t on_host = 0x7f0000050000, on_device = 0x7f0000060000;

static uint64_t device_words[3]; /* what is there */
static bool is_readable;

static char own_context, other_context;
static char own_stream, other_stream, lost_stream, replay_stream;
static kprof_snapshot *const snapshot = (kprof_snapshot *)(void *)&replay_stream;
static char function, handle; /* handle: a CUkernel in place of a function */
static void *stream;          /* that the application launches into */
static CUresult launch_result;
static const kprof_call *nodes; /* [node_count] of the graph that is launched */
static size_t node_count;
static bool pageable; /* the GPU reaches all memory of the process */

static struct {
    unsigned launches;
    const void *graph;
    void *graph_stream;
    CUlaunchConfig config;
    CUlaunchAttribute attributes[ATTRIBUTES];
    const void *function;
    bool has_arguments;
    arguments arguments;
} launched;

static CUresult tell_parameter(size_t index, size_t *offset, size_t *size)
{
    if (index >= ARGUMENTS)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = offsets[index];
    *size = sizes[index];
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI function_parameter(CUfunction of, size_t index, size_t *offset, size_t *size)
{
    return (void *)of == &function ? tell_parameter(index, offset, size) : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult CUDAAPI kernel_parameter(CUkernel of, size_t index, size_t *offset, size_t *size)
{
    return (void *)of == &handle ? tell_parameter(index, offset, size) : CUDA_ERROR_INVALID_HANDLE;
}

/* Attributes of a CUfunction, or else of a CUkernel; each launch sees what they are then. */
enum { SMEM_LIMIT, CLUSTER_LIMIT, CARVEOUT, SCHEDULING, LIMITS };
static int limits[LIMITS], limits_at_launch[LIMITS];
static bool limits_of_kernel;

static int *find_limit(CUfunction_attribute attribute)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return &limits[CLUSTER_LIMIT];
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return &limits[CARVEOUT];
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return &limits[SCHEDULING];
    default:
        assert_int_equal(attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        return &limits[SMEM_LIMIT];
    }
}

static CUresult CUDAAPI get_function_limit(int *value, CUfunction_attribute attribute, CUfunction of)
{
    *value = *find_limit(attribute);
    return limits_of_kernel ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static CUresult CUDAAPI set_function_limit(CUfunction of, CUfunction_attribute attribute, int value)
{
    if (limits_of_kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *find_limit(attribute) = value;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_kernel_limit(int *value, CUfunction_attribute attribute, CUkernel of, CUdevice device)
{
    assert_int_equal(device, 1);
    *value = *find_limit(attribute);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_kernel_limit(CUfunction_attribute attribute, int value, CUkernel of, CUdevice device)
{
    assert_int_equal(device, 1);
    *find_limit(attribute) = value;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_device(CUdevice *device)
{
    *device = 1;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI launch(const CUlaunchConfig *config, CUfunction of, void **parameters, void **extra)
{
    assert_null(parameters);
    memset(&launched, 0, sizeof launched);
    launched.launches = 1;
    launched.config = *config;
    launched.function = of;
    memcpy(limits_at_launch, limits, sizeof limits);
    assert_true(config->numAttrs <= ATTRIBUTES);
    for (unsigned i = 0; i < config->numAttrs; i++)
        launched.attributes[i] = config->attrs[i];
    launched.has_arguments = extra != NULL;
    if (extra) {
        assert_true(extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER && extra[2] == CU_LAUNCH_PARAM_BUFFER_SIZE);
        assert_true(extra[4] == CU_LAUNCH_PARAM_END);
        assert_in_range(*(const size_t *)extra[3], 1, sizeof launched.arguments);
        memcpy(&launched.arguments, extra[1], *(const size_t *)extra[3]);
    }
    return launch_result;
}

static CUresult CUDAAPI launch_graph(CUgraphExec graph, CUstream into)
{
    memset(&launched, 0, sizeof launched);
    launched.launches = 1;
    launched.graph = graph;
    launched.graph_stream = into;
    return launch_result;
}

static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
        const uint64_t place[] = {on_device, sizeof device_words};
        memcpy(out, &place[attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE], sizeof *place);
        return CUDA_SUCCESS;
    }
    if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || (address != on_host && address != on_device))
        return CUDA_ERROR_INVALID_VALUE;
    *(unsigned *)out = address == on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_context(CUstream of, CUcontext *context)
{
    *context = (CUcontext)(void *)((void *)of == &other_stream ? &other_context : &own_context);
    return (void *)of == &lost_stream ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/* Which lines of L2 are kept for launches of the stream that has a policy. */
static CUstream stream_with_policy;
static const size_t policy_bytes = 4096;

static CUresult CUDAAPI get_stream_attribute(CUstream of, CUstreamAttrID id, CUstreamAttrValue *value)
{
    assert_int_equal(id, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
    memset(value, 0, sizeof *value);
    if (of == (CUstream)(void *)&lost_stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (of == stream_with_policy)
        value->accessPolicyWindow.num_bytes = policy_bytes;
    return CUDA_SUCCESS;
}

/* In place of the driver's, and of CUPTI's. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuCtxGetDevice_ = get_device,
                                         .cuFuncGetAttribute_ = get_function_limit,
                                         .cuFuncSetAttribute_ = set_function_limit,
                                         .cuKernelGetAttribute_ = get_kernel_limit,
                                         .cuKernelSetAttribute_ = set_kernel_limit,
                                         .cuFuncGetParamInfo_ = function_parameter,
                                         .cuKernelGetParamInfo_ = kernel_parameter,
                                         .cuGraphLaunch_ = launch_graph,
                                         .cuLaunchKernelEx_ = launch,
                                         .cuPointerGetAttribute_ = get_attribute,
                                         .cuStreamGetAttribute_ = get_stream_attribute,
                                         .cuStreamGetCtx_ = get_context};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    return "error of the test";
}

bool kprof_graphs_visit(const kprof_call *of, kprof_graph_visitor *visit, void *user)
{
    assert_int_equal(of->kind, KPROF_CALL_GRAPH_LAUNCH);
    for (size_t i = 0; i < node_count; i++)
        if (!visit(&nodes[i], user))
            return false;
    return true;
}

bool kprof_target_reaches_pageable(void)
{
    return pageable;
}

const void *kprof_snapshot_peek(kprof_snapshot *of, uint64_t address, size_t size_bytes)
{
    assert_ptr_equal(of, snapshot);
    assert_true(address == on_device && size_bytes == sizeof device_words);
    return is_readable ? device_words : NULL;
}

void *kprof_snapshot_stream(const kprof_snapshot *of)
{
    assert_ptr_equal(of, snapshot);
    return &replay_stream;
}

bool kprof_snapshot_holds(const kprof_snapshot *of, uint64_t address, size_t size_bytes)
{
    if (node_count > 0)
        return address >= on_device && address + size_bytes <= on_device + 0x1000;
    fail_msg("%p has to do with a launch: %zu bytes at %llx", (const void *)of, size_bytes,
             (unsigned long long)address);
    return false;
}

uint64_t kprof_snapshot_space(kprof_snapshot *of, size_t width, size_t height)
{
    fail_msg("%p has to do with a launch: %zu bytes", (void *)of, width * height);
    return 0;
}

void *kprof_snapshot_lane(kprof_snapshot *of, kprof_lane lane)
{
    fail_msg("%p has to do with a launch: lane %u", (void *)of, lane.number);
    return NULL;
}

uint64_t kprof_snapshot_locked_space(kprof_snapshot *of, size_t size_bytes, bool is_scratch)
{
    fail_msg("%p has to do with a launch: %zu bytes, %d", (void *)of, size_bytes, is_scratch);
    return 0;
}

kprof_status kprof_snapshot_copy(kprof_snapshot *of, const kprof_rows *rows)
{
    return KPROF_INTERNAL;
}

kprof_status kprof_snapshot_keep(kprof_snapshot *of, const kprof_span *spans, size_t count, kprof_kept_memory **out)
{
    (void)of, (void)spans, (void)count;
    *out = NULL;
    return KPROF_UNSUPPORTED;
}

kprof_status kprof_snapshot_keep_all(kprof_snapshot *of, kprof_kept_memory **out)
{
    *out = NULL;
    return KPROF_UNSUPPORTED;
}

unsigned kprof_kept_memory_kernels(const kprof_kept_memory *kept)
{
    return 0;
}

bool kprof_snapshot_has_host(const kprof_snapshot *of)
{
    return false;
}

kprof_status kprof_snapshot_put(kprof_snapshot *of, const kprof_kept_memory *kept)
{
    (void)of, (void)kept;
    return KPROF_UNSUPPORTED;
}

void kprof_kept_memory_free(kprof_kept_memory *kept)
{
    assert_null(kept);
}

bool kprof_managed_list_touched(kprof_span **out, size_t *count)
{
    (void)out, (void)count;
    return false;
}

kprof_status kprof_snapshot_set(kprof_snapshot *of, const kprof_set *set)
{
    return KPROF_INTERNAL;
}

kprof_status kprof_snapshot_compare(kprof_snapshot *of, const kprof_rows *rows, bool *same)
{
    *same = !kprof_snapshot_holds(of, rows->from, rows->width);
    return KPROF_OK;
}

static int set_up(void **state)
{
    memset(&launched, 0, sizeof launched);
    launch_result = CUDA_SUCCESS;
    pageable = false;
    node_count = 0;
    stream = &own_stream;
    stream_with_policy = (CUstream)(void *)&other_stream;
    return 0;
}

static kprof_operation *keep_of(void *of, CUpti_CallbackId id, const void *parameters)
{
    kprof_decoded_call decoded;
    kprof_call call = {.kind = kprof_call_decode(id, parameters, &decoded),
                       .context = &own_context,
                       .stream = stream,
                       .function = of,
                       .kernel_name = "kernel",
                       .callback_id = id,
                       .parameters = &decoded};
    return kprof_operation_copy(&call, NULL);
}

static kprof_operation *keep(CUpti_CallbackId id, const void *parameters)
{
    return keep_of(&function, id, parameters);
}

static void repeat(kprof_operation *operation)
{
    assert_non_null(operation);
    assert_int_equal(kprof_operation_returned(operation), KPROF_OK);
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_OK);
    assert_int_equal(launched.launches, 1);
    kprof_operation_free(operation);
}

static void assert_arguments(const arguments *expected)
{
    assert_true(launched.has_arguments);
    assert_int_equal(launched.arguments.count, expected->count);
    assert_int_equal(launched.arguments.address, expected->address);
    assert_memory_equal(launched.arguments.odd, expected->odd, sizeof expected->odd);
}

/* By a kernel's function, or its handle: either tells where the arguments belong. */
static void assert_kept(void *of)
{
    const arguments given = {7, 0x123456789abcdef0, {1, 2, 3}};
    arguments own = given;
    void *list[] = {&own.count, &own.address, own.odd};
    cuLaunchKernel_params p = {.gridDimX = 2,
                               .gridDimY = 3,
                               .gridDimZ = 4,
                               .blockDimX = 32,
                               .blockDimY = 5,
                               .blockDimZ = 6,
                               .sharedMemBytes = 1024,
                               .kernelParams = list};
    kprof_operation *operation = keep_of(of, ID(cuLaunchKernel), &p);
    memset(&own, 0xff, sizeof own);
    memset(&p, 0xff, sizeof p);
    repeat(operation);
    assert_arguments(&given);
    const CUlaunchConfig *c = &launched.config;
    assert_ptr_equal(launched.function, of);
    assert_true(c->gridDimX == 2 && c->gridDimY == 3 && c->gridDimZ == 4);
    assert_true(c->blockDimX == 32 && c->blockDimY == 5 && c->blockDimZ == 6);
    assert_true(c->sharedMemBytes == 1024 && c->numAttrs == 0 && (void *)c->hStream == &replay_stream);
}

TEST(test_arguments)
{
    assert_kept(&function);
    assert_kept(&handle);
}

static kprof_operation *keep_policy(CUpti_CallbackId id, CUstream of, CUlaunchConfig *config)
{
    uint32_t count = 1;
    uint64_t address = 2;
    unsigned char odd[3] = {3};
    void *list[] = {&count, &address, odd};
    stream_with_policy = of == CU_STREAM_PER_THREAD ? of : (CUstream)(void *)&own_stream;
    cuLaunchKernel_params p = {.gridDimX = 1, .hStream = of == CU_STREAM_PER_THREAD ? NULL : of, .kernelParams = list};
    cuLaunchKernelEx_params ex = {.config = config, .kernelParams = list};
    return keep(id, config ? (const void *)&ex : (const void *)&p);
}

/* The stream of replays has no policy for the lines of L2: what the application's stream has goes with the launch. */
TEST(test_policy_of_the_stream)
{
    CUstream own = (CUstream)(void *)&own_stream;
    repeat(keep_policy(ID(cuLaunchKernel), own, NULL));
    assert_int_equal(launched.config.numAttrs, 1);
    assert_int_equal(launched.attributes[0].id, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
    assert_int_equal(launched.attributes[0].value.accessPolicyWindow.num_bytes, policy_bytes);
    repeat(keep_policy(ID(cuLaunchKernel_ptsz), CU_STREAM_PER_THREAD, NULL));
    assert_int_equal(launched.config.numAttrs, 1);
    repeat(keep_policy(ID(cuLaunchKernel), (CUstream)(void *)&other_stream, NULL)); /* it has none */
    assert_int_equal(launched.config.numAttrs, 0);

    CUlaunchAttribute attributes[] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY},
                                      {.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW}};
    CUlaunchConfig config = {.gridDimX = 1, .hStream = own, .attrs = attributes, .numAttrs = 1};
    repeat(keep_policy(ID(cuLaunchKernelEx), own, &config));
    assert_int_equal(launched.config.numAttrs, 2);
    assert_int_equal(launched.attributes[1].value.accessPolicyWindow.num_bytes, policy_bytes);
    config.numAttrs = 2; /* the launch has its own */
    repeat(keep_policy(ID(cuLaunchKernelEx), own, &config));
    assert_int_equal(launched.config.numAttrs, 2);
    assert_int_equal(launched.attributes[1].value.accessPolicyWindow.num_bytes, 0);
}

TEST(test_packed_arguments)
{
    const arguments given = {7, 0x123456789abcdef0, {1, 2, 3}};
    arguments own = given;
    size_t size = sizeof own;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, &own, CU_LAUNCH_PARAM_END};
    cuLaunchKernel_params p = {.extra = extra};
    kprof_operation *operation = keep(ID(cuLaunchKernel), &p);
    memset(&own, 0xff, sizeof own);
    size = 0;
    repeat(operation);
    assert_arguments(&given);
}

TEST(test_no_arguments)
{
    size_t size = 0;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &size, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    cuLaunchKernel_params p = {.gridDimX = 2};
    repeat(keep(ID(cuLaunchKernel), &p));
    assert_false(launched.has_arguments);
    p.extra = extra;
    repeat(keep(ID(cuLaunchKernel), &p));
    assert_false(launched.has_arguments);
}

/* A newer driver may define more, and the oldest calls have their arguments set by others before. The driver may refuse
 * a launch for another reason than that an argument is nowhere. */
TEST(test_arguments_that_cannot_be_copied)
{
    char value;
    void *extra[] = {(void *)(uintptr_t)0x77, &value, CU_LAUNCH_PARAM_END};
    void *no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &value, CU_LAUNCH_PARAM_BUFFER_SIZE, NULL, CU_LAUNCH_PARAM_END};
    void *nowhere[ARGUMENTS] = {0};
    cuLaunchKernel_params p = {.kernelParams = nowhere};
    assert_null(keep(ID(cuLaunchKernel), &p));
    p = (cuLaunchKernel_params){.extra = no_size};
    assert_null(keep(ID(cuLaunchKernel), &p));
    p = (cuLaunchKernel_params){.extra = extra};
    cuLaunchGrid_params grid = {.grid_width = 1, .grid_height = 1};
    assert_null(keep(ID(cuLaunchKernel), &p));
    assert_null(keep(ID(cuLaunchGrid), &grid));
}

/* A launch by a CUkernel runs in the context of its stream, whose memory a snapshot of the current one lacks. */
TEST(test_streams_of_others)
{
    cuLaunchKernel_params p = {.gridDimX = 2};
    void *const strange[] = {&other_stream, &lost_stream};
    void *const own[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, &own_stream};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        stream = strange[i];
        assert_null(keep_of(&handle, ID(cuLaunchKernel), &p));
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        stream = own[i];
        repeat(keep_of(&handle, ID(cuLaunchKernel), &p));
        assert_ptr_equal(launched.config.hStream, &replay_stream);
    }
}

TEST(test_attributes)
{
    CUlaunchAttribute own[2] = {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}},
                                {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -3}};
    CUlaunchConfig config = {.gridDimX = 8, .blockDimX = 64, .attrs = own, .numAttrs = 2};
    cuLaunchKernelEx_params p = {.config = &config};
    kprof_operation *operation = keep(ID(cuLaunchKernelEx_ptsz), &p);
    memset(own, 0, sizeof own);
    memset(&config, 0, sizeof config);
    repeat(operation);
    assert_int_equal(launched.config.gridDimX, 8);
    assert_int_equal(launched.config.blockDimX, 64);
    assert_int_equal(launched.config.numAttrs, 2);
    assert_int_equal(launched.attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    assert_int_equal(launched.attributes[0].value.clusterDim.x, 2);
    assert_int_equal(launched.attributes[1].id, CU_LAUNCH_ATTRIBUTE_PRIORITY);
    assert_int_equal(launched.attributes[1].value.priority, -3);
}

/* The application may have lowered a limit since: it is raised for the replay alone. */
TEST(test_limits)
{
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 4, 1}};
    CUlaunchConfig config = {
        .gridDimX = 16, .blockDimX = 64, .sharedMemBytes = 65536, .attrs = &cluster, .numAttrs = 1};
    cuLaunchKernelEx_params p = {.config = &config};
    for (unsigned of_kernel = 0; of_kernel < 2; of_kernel++) {
        limits_of_kernel = of_kernel;
        limits[SMEM_LIMIT] = 49152;
        limits[CLUSTER_LIMIT] = 0;
        repeat(keep(ID(cuLaunchKernelEx), &p));
        assert_int_equal(limits_at_launch[SMEM_LIMIT], 65536);
        assert_int_equal(limits_at_launch[CLUSTER_LIMIT], 1);
        assert_int_equal(limits[SMEM_LIMIT], 49152);
        assert_int_equal(limits[CLUSTER_LIMIT], 0);
    }
    limits_of_kernel = false;
    limits[SMEM_LIMIT] = 100000;
    repeat(keep(ID(cuLaunchKernelEx), &p));
    assert_int_equal(limits_at_launch[SMEM_LIMIT], 100000); /* it is enough as it is */
    config.sharedMemBytes = 1000;
    config.numAttrs = 0;
    limits[SMEM_LIMIT] = 0;
    repeat(keep(ID(cuLaunchKernelEx), &p));
    assert_int_equal(limits_at_launch[SMEM_LIMIT], 0);
}

/* Launches before the application set something for the first time have what a function has by itself. */
TEST(test_settings)
{
    cuLaunchKernel_params p = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32};
    for (unsigned of_kernel = 0; of_kernel < 2; of_kernel++) {
        limits_of_kernel = of_kernel;
        limits[CARVEOUT] = CU_SHAREDMEM_CARVEOUT_DEFAULT;
        limits[SCHEDULING] = 0;
        kprof_operation *before = keep(ID(cuLaunchKernel), &p);
        limits[CARVEOUT] = 100;
        limits[SCHEDULING] = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
        kprof_operations_note_setting();
        kprof_operation *between = keep(ID(cuLaunchKernel), &p);
        limits[CARVEOUT] = 0;
        repeat(before);
        assert_int_equal(limits_at_launch[CARVEOUT], CU_SHAREDMEM_CARVEOUT_DEFAULT);
        assert_int_equal(limits_at_launch[SCHEDULING], 0);
        assert_int_equal(limits[CARVEOUT], 0);
        assert_int_equal(limits[SCHEDULING], CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
        repeat(between);
        assert_int_equal(limits_at_launch[CARVEOUT], 100);
        assert_int_equal(limits_at_launch[SCHEDULING], CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
        assert_int_equal(limits[CARVEOUT], 0);
    }
    limits_of_kernel = false;
}

/* An event that has happened must not become one that has not. */
TEST(test_attributes_that_record_events)
{
    CUlaunchAttribute own[ATTRIBUTES] = {{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT},
                                         {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION},
                                         {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT},
                                         {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}};
    static const CUlaunchAttributeID repeated[ATTRIBUTES] = {CU_LAUNCH_ATTRIBUTE_IGNORE,
                                                             CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                             CU_LAUNCH_ATTRIBUTE_IGNORE, CU_LAUNCH_ATTRIBUTE_PRIORITY};
    CUlaunchConfig config = {.gridDimX = 8, .attrs = own, .numAttrs = ATTRIBUTES};
    cuLaunchKernelEx_params p = {.config = &config};
    repeat(keep(ID(cuLaunchKernelEx), &p));
    assert_int_equal(launched.config.numAttrs, ATTRIBUTES);
    for (size_t i = 0; i < ATTRIBUTES; i++)
        assert_int_equal(launched.attributes[i].id, repeated[i]);
}

/* The driver refuses it then, and it goes from the batch. Until then its copy has no shape, and no attributes. */
TEST(test_no_configuration)
{
    CUlaunchConfig config = {.numAttrs = 3};
    cuLaunchKernelEx_params p[] = {{.config = NULL}, {.config = &config}};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        launched.launches = 0;
        repeat(keep(ID(cuLaunchKernelEx), &p[i]));
        assert_int_equal(launched.config.gridDimX, 0);
        assert_int_equal(launched.config.numAttrs, 0);
    }
}

/* Its blocks wait for each other: without the attribute the driver may not run them all at a time. */
TEST(test_cooperative)
{
    cuLaunchCooperativeKernel_params p = {.gridDimX = 8, .blockDimX = 64};
    repeat(keep(ID(cuLaunchCooperativeKernel), &p));
    assert_int_equal(launched.config.gridDimX, 8);
    assert_int_equal(launched.config.numAttrs, 1);
    assert_int_equal(launched.attributes[0].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    assert_int_equal(launched.attributes[0].value.cooperative, 1);
}

TEST(test_refused)
{
    cuLaunchKernel_params p = {.gridDimX = 2};
    kprof_operation *operation = keep(ID(cuLaunchKernel), &p);
    assert_non_null(operation);
    launch_result = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_INTERNAL);
    kprof_operation_free(operation);
}

/* As two arguments of eight bytes, one after the other. */
static kprof_operation *keep_two(uint64_t first, uint64_t second)
{
    uint64_t own[2] = {first, second};
    size_t size = sizeof own;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, own, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    cuLaunchKernel_params p = {.extra = extra};
    kprof_operation *operation = keep(ID(cuLaunchKernel), &p);
    assert_non_null(operation);
    return operation;
}

static bool sees_host(uint64_t first, uint64_t second)
{
    kprof_operation *operation = keep_two(first, second);
    bool sees = kprof_operation_sees_host(operation);
    kprof_operation_free(operation);
    return sees;
}

TEST(test_host_memory_that_cuda_knows)
{
    assert_true(sees_host(on_host, on_device));
    assert_true(sees_host(on_device, on_host));
    assert_false(sees_host(on_device, on_device));
}

static bool leads_to_host(uint64_t first, uint64_t second)
{
    kprof_operation *operation = keep_two(first, second);
    bool leads = kprof_operation_leads_to_host(operation, snapshot);
    kprof_operation_free(operation);
    return leads;
}

TEST(test_host_memory_that_memory_of_the_device_names)
{
    is_readable = true;
    assert_false(leads_to_host(on_device, 7));
    device_words[2] = on_host;
    assert_true(leads_to_host(7, on_device));
    assert_false(leads_to_host(7, on_host)); /* nothing is read there */
    device_words[2] = on_device;
    assert_false(leads_to_host(on_device, on_device));
    is_readable = false;
    assert_true(leads_to_host(on_device, 7));
}

/* The GPU reaches all that the process has mapped. */
TEST(test_host_memory_of_the_process)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(munmap(pages + page, page), 0);
    uint64_t mapped = (uintptr_t)pages + 8, unmapped = (uintptr_t)pages + page + 8;
    assert_false(sees_host(mapped, 0));
    pageable = true;
    assert_true(sees_host(0, mapped));
    assert_false(sees_host(unmapped, on_device));
    assert_false(sees_host(65535, UINT64_MAX)); /* no addresses */
    assert_false(sees_host(mapped | UINT64_C(1) << 60, mapped & 0xffff));
    assert_int_equal(munmap(pages, page), 0);
}

/* Graphs as a whole */

static kprof_operation *keep_graph(const kprof_call *of, size_t count)
{
    cuGraphLaunch_params p = {.hGraph = (CUgraphExec)(void *)&function};
    kprof_decoded_call decoded;
    kprof_call call = {.kind = kprof_call_decode(ID(cuGraphLaunch), &p, &decoded),
                       .context = &own_context,
                       .stream = stream,
                       .function = &function,
                       .kernel_name = "CUDAGraph",
                       .callback_id = ID(cuGraphLaunch),
                       .parameters = &decoded};
    nodes = of;
    node_count = count;
    return kprof_operation_copy(&call, NULL);
}

/* The call that does what a node of the graph does. */
static kprof_call decode_node(CUpti_CallbackId id, const void *parameters, kprof_decoded_call *decoded)
{
    kprof_call call = {.kind = kprof_call_decode(id, parameters, decoded), .callback_id = id, .parameters = decoded};
    if (call.kind == KPROF_CALL_LAUNCH)
        call.function = decoded->launch.function;
    return call;
}

TEST(test_graph)
{
    unsigned char odd[3] = {0};
    uint32_t number = 0;
    uint64_t first = on_device, second = on_host;
    void *lists[2][ARGUMENTS] = {{&number, &first, odd}, {&number, &second, odd}};
    cuLaunchKernel_params p[2] = {{.f = (CUfunction)(void *)&function, .kernelParams = lists[0]},
                                  {.f = (CUfunction)(void *)&handle, .kernelParams = lists[1]}};
    kprof_decoded_call decoded[2];
    const kprof_call kernels[] = {decode_node(ID(cuLaunchKernel), &p[0], &decoded[0]),
                                  decode_node(ID(cuLaunchKernel), &p[1], &decoded[1])};
    kprof_operation *operation = keep_graph(kernels, 1);
    assert_non_null(operation);
    assert_false(kprof_operation_sees_host(operation));
    assert_int_equal(kprof_operation_output_bytes(operation), 0);
    kprof_operation_free(operation);
    operation = keep_graph(kernels, 2);
    assert_non_null(operation);
    assert_true(kprof_operation_sees_host(operation)); /* the second kernel does */
    assert_true(kprof_operation_is_saved(operation, snapshot));
    repeat(operation);
    assert_ptr_equal(launched.graph, &function);
    assert_ptr_equal(launched.graph_stream, &replay_stream);
}

TEST(test_graph_that_cannot_be_repeated)
{
    char value;
    void *extra[] = {(void *)(uintptr_t)0x77, &value, CU_LAUNCH_PARAM_END};
    cuLaunchKernel_params p = {.extra = extra};
    kprof_decoded_call decoded;
    const kprof_call kernel = decode_node(ID(cuLaunchKernel), &p, &decoded);
    assert_null(keep_graph(&kernel, 1));
    stream = &other_stream;
    assert_null(keep_graph(NULL, 0));
    stream = &own_stream;
    launch_result = CUDA_ERROR_UNKNOWN;
    kprof_operation *operation = keep_graph(NULL, 0);
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_INTERNAL);
    kprof_operation_free(operation);
}

static bool is_saved(CUdeviceptr to, CUdeviceptr from)
{
    cuMemsetD2D32Async_params set = {.dstDevice = to, .dstPitch = 0x100, .Width = 0x10, .Height = 4};
    cuMemcpyDtoDAsync_v2_params copy = {.dstDevice = to, .srcDevice = from, .ByteCount = 0x800};
    kprof_decoded_call decoded[2];
    const kprof_call transfers[] = {decode_node(ID(cuMemsetD2D32Async), &set, &decoded[0]),
                                    decode_node(ID(cuMemcpyDtoDAsync_v2), &copy, &decoded[1])};
    kprof_operation *operation = keep_graph(transfers, from ? 2 : 1);
    assert_non_null(operation);
    bool saved = kprof_operation_is_saved(operation, snapshot);
    kprof_operation_free(operation);
    return saved;
}

TEST(test_graph_that_sets_and_copies)
{
    assert_true(is_saved(on_device, 0));
    assert_true(is_saved(on_device + 0x1000 - 0x340, 0)); /* four rows, the last one is shorter */
    assert_false(is_saved(on_device + 0x1000 - 0x33f, 0));
    assert_true(is_saved(on_device, on_device + 0x800));
    assert_false(is_saved(on_device, on_device + 0x801));
    assert_false(is_saved(on_device + 0x801, on_device));
}

AROUND_EACH(set_up, NULL)
