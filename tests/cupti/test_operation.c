/* Transfers that are kept to be repeated: which, and how they are done again, by a driver that writes down what it is
 * asked. What came from the host comes from the device then, and what went to the host is compared; in a range that
 * counts all, both are copied between the device and page-locked memory. */
#include "cupti/allocations.h"
#include "cupti/calls.h"
#include "cupti/device.h"
#include "cupti/driver.h"
#include "cupti/graphs.h"
#include "cupti/managed.h"
#include "cupti/operation.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

static char own_context, other_context, own_stream, other_stream, captured_stream, replay_stream, other_lane;
static kprof_lane wanted_lane;
static kprof_snapshot *const snapshot = (kprof_snapshot *)(void *)&replay_stream;
static char done[256]; /* what the driver did, in its order */
static CUresult copy_result, wait_result;
static bool no_space, nothing_locked, differs; /* differs: memory from what is kept of it */

/* Addresses by what is there. */
enum { DEVICE = 0x10000, POOL = 0x20000, FOREIGN = 0x30000, PEER = 0x40000, HOST = 0x50000, MANAGED = 0x60000 };
enum {
    PLACE = 0x10000,
    KEPT = 0x90000,
    LOCKED = 0xa0000,
    SCRATCH = 0xb0000,
    LARGE = 0x10000000,
    LARGE_BYTES = 0x40000000
};

/* The host's own memory it knows where it is pinned. */
static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    unsigned place = (unsigned)address & ~0xffffu;
    if (place < DEVICE || place > MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned *)out = place == HOST || place == MANAGED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    else
        *(unsigned *)out = place == MANAGED;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_current(CUcontext *context)
{
    *context = (CUcontext)(void *)&own_context;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_context(CUstream stream, CUcontext *context)
{
    *context = (CUcontext)(void *)((void *)stream == &other_stream ? &other_context : &own_context);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = (void *)stream == &captured_stream ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static unsigned events, queries, relaxed, busy_for; /* busy_for: so many queries */
static CUresult record_result, query_result;        /* query_result: at last */
static const void *recorded_on;

static CUresult CUDAAPI create_event(CUevent *out, unsigned flags)
{
    assert_int_equal(flags, CU_EVENT_DISABLE_TIMING);
    *out = (CUevent)(void *)&own_stream;
    events++;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI destroy_event(CUevent event)
{
    events--;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI record_event(CUevent event, CUstream stream)
{
    recorded_on = stream;
    return record_result;
}

/* Global capture modes of other threads forbid it. */
static CUresult CUDAAPI query_event(CUevent event)
{
    assert_true(relaxed);
    return ++queries <= busy_for ? CUDA_ERROR_NOT_READY : query_result;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    relaxed = *mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return CUDA_SUCCESS;
}

/* Its name in what is written down. */
static const char *name_of(CUstream stream)
{
    return (void *)stream == &own_stream      ? "own"
           : (void *)stream == &replay_stream ? "replay"
           : (void *)stream == &other_lane    ? "lane"
                                              : "default";
}

static void write_down(const char *format, ...)
{
    va_list arguments;
    size_t length = strlen(done);
    va_start(arguments, format);
    vsnprintf(done + length, sizeof done - length, format, arguments);
    va_end(arguments);
}

static CUresult CUDAAPI copy(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    write_down("copy %llx %llx %zu %s;", to, from, size, name_of(stream));
    return copy_result;
}

#define SET(name, type)                                                                                                \
    static CUresult CUDAAPI name(CUdeviceptr to, type value, size_t count, CUstream stream)                            \
    {                                                                                                                  \
        write_down(#name " %llx %u %zu %s;", to, (unsigned)value, count, name_of(stream));                             \
        return copy_result;                                                                                            \
    }
SET(set8, unsigned char)
SET(set16, unsigned short)
SET(set32, unsigned)

#define SET_ROWS(name, type)                                                                                           \
    static CUresult CUDAAPI name(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,                \
                                 CUstream stream)                                                                      \
    {                                                                                                                  \
        write_down(#name " %llx+%zu %u %zu %zu %s;", to, pitch, (unsigned)value, width, height, name_of(stream));      \
        return copy_result;                                                                                            \
    }
SET_ROWS(rows8, unsigned char)   /* NOLINT(readability-function-size): as the driver has it */
SET_ROWS(rows16, unsigned short) /* NOLINT(readability-function-size): as the driver has it */
SET_ROWS(rows32, unsigned)       /* NOLINT(readability-function-size): as the driver has it */

static CUresult CUDAAPI copy_in(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    write_down("bring %llx %p %zu %s;", to, from, size, name_of(stream));
    return copy_result;
}

static CUresult CUDAAPI copy_out(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    write_down("take %p %llx %zu %s;", to, from, size, name_of(stream));
    return copy_result;
}

static CUresult CUDAAPI wait_for(CUstream stream)
{
    write_down("wait %s;", name_of(stream));
    return wait_result;
}

static CUresult CUDAAPI copy_rows(const CUDA_MEMCPY2D *p, CUstream stream)
{
    bool in = p->srcMemoryType == CU_MEMORYTYPE_HOST, out = p->dstMemoryType == CU_MEMORYTYPE_HOST;
    assert_true(in || p->srcMemoryType == CU_MEMORYTYPE_DEVICE);
    assert_true(!in || !out);
    assert_true(out || p->dstMemoryType == CU_MEMORYTYPE_DEVICE);
    assert_true(p->srcXInBytes == 0 && p->srcY == 0 && p->dstXInBytes == 0 && p->dstY == 0);
    write_down("%srows %llx+%zu %llx+%zu %zu %zu %s;",
               in    ? "bring "
               : out ? "take "
                     : "",
               out ? (CUdeviceptr)(uintptr_t)p->dstHost : p->dstDevice, p->dstPitch,
               in ? (CUdeviceptr)(uintptr_t)p->srcHost : p->srcDevice, p->srcPitch, p->WidthInBytes, p->Height,
               name_of(stream));
    return copy_result;
}

/* In place of the driver's, of CUPTI's, and of what is saved. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuPointerGetAttribute_ = get_attribute,
                                         .cuStreamGetCtx_ = get_context,
                                         .cuCtxGetCurrent_ = get_current,
                                         .cuStreamIsCapturing_ = is_capturing,
                                         .cuStreamSynchronize_ = wait_for,
                                         .cuEventCreate_ = create_event,
                                         .cuEventDestroy_ = destroy_event,
                                         .cuEventRecord_ = record_event,
                                         .cuEventQuery_ = query_event,
                                         .cuThreadExchangeStreamCaptureMode_ = exchange_mode,
                                         .cuMemsetD8Async_ = set8,
                                         .cuMemsetD16Async_ = set16,
                                         .cuMemsetD32Async_ = set32,
                                         .cuMemsetD2D8Async_ = rows8,
                                         .cuMemsetD2D16Async_ = rows16,
                                         .cuMemsetD2D32Async_ = rows32,
                                         .cuMemcpyDtoDAsync_ = copy,
                                         .cuMemcpyHtoDAsync_ = copy_in,
                                         .cuMemcpyDtoHAsync_ = copy_out,
                                         .cuMemcpy2DAsync_ = copy_rows};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    return "error of the test";
}

bool kprof_graphs_visit(const kprof_call *launch, kprof_graph_visitor *visit, void *user)
{
    fail_msg("%s is no graph", launch->name);
    return false;
}

static bool reaches_pageable;

bool kprof_target_reaches_pageable(void)
{
    return reaches_pageable;
}

const void *kprof_snapshot_peek(kprof_snapshot *of, uint64_t address, size_t size_bytes)
{
    assert_ptr_equal(of, snapshot);
    return NULL;
}

void *kprof_snapshot_stream(const kprof_snapshot *of)
{
    assert_ptr_equal(of, snapshot);
    return &replay_stream;
}

void *kprof_snapshot_lane(kprof_snapshot *of, kprof_lane lane)
{
    assert_ptr_equal(of, snapshot);
    assert_true(lane.number == wanted_lane.number && (lane.waits_for == 0 || lane.waits_for == wanted_lane.waits_for));
    return lane.number == 0 ? &replay_stream : lane.number == 1 ? &other_lane : NULL;
}

static bool lies_in(uint64_t address, size_t size_bytes, uint64_t start, size_t length)
{
    return address >= start && address + size_bytes <= start + length;
}

bool kprof_snapshot_holds(const kprof_snapshot *of, uint64_t address, size_t size_bytes)
{
    assert_ptr_equal(of, snapshot);
    return lies_in(address, size_bytes, DEVICE, PLACE) || lies_in(address, size_bytes, POOL, PLACE) ||
           lies_in(address, size_bytes, LARGE, LARGE_BYTES);
}

uint64_t kprof_snapshot_space(kprof_snapshot *of, size_t width, size_t height)
{
    assert_ptr_equal(of, snapshot);
    write_down("space %zu", width);
    if (height > 1)
        write_down(" %zu", height);
    write_down(";");
    return no_space ? 0 : KEPT;
}

uint64_t kprof_snapshot_locked_space(kprof_snapshot *of, size_t size_bytes, bool is_scratch)
{
    assert_ptr_equal(of, snapshot);
    write_down("lock %zu;", size_bytes);
    return nothing_locked ? 0 : is_scratch ? SCRATCH : LOCKED;
}

static void write_rows(const char *what, const kprof_rows *rows)
{
    unsigned long long to = rows->to, from = rows->from;
    if (rows->height == 1)
        write_down("%s %llx %llx %zu", what, to, from, rows->width);
    else
        write_down("%s %llx+%zu %llx+%zu %zu %zu", what, to, rows->to_pitch_bytes, from, rows->from_pitch_bytes,
                   rows->width, rows->height);
}

kprof_status kprof_snapshot_copy(kprof_snapshot *of, const kprof_rows *rows)
{
    assert_ptr_equal(of, snapshot);
    write_rows("copy", rows);
    write_down(" replay;");
    return copy_result == CUDA_SUCCESS ? KPROF_OK : KPROF_INTERNAL;
}

static kprof_span touched[2];
static size_t touched_count, kept_count, put_count;
static unsigned kept_kernels = 1; /* that put it there again */
static bool touched_known;
static kprof_status keep_result;
static char kept_memory;
static uint64_t wanted_host; /* is saved, and kept, too */

bool kprof_managed_list_touched(kprof_span **out, size_t *count)
{
    *out = touched_known ? calloc(touched_count + 1, sizeof **out) : NULL;
    *count = touched_known ? touched_count : 0;
    for (size_t i = 0; *out && i < touched_count; i++)
        (*out)[i] = touched[i];
    return touched_known;
}

kprof_status kprof_snapshot_keep(kprof_snapshot *of, const kprof_span *spans, size_t count, kprof_kept_memory **out)
{
    assert_int_equal(count, touched_count + (wanted_host != 0));
    assert_memory_equal(spans, touched, touched_count * sizeof *spans);
    assert_true(!wanted_host || spans[count - 1].address == wanted_host);
    *out = keep_result == KPROF_OK ? (kprof_kept_memory *)(void *)&kept_memory : NULL;
    kept_count += keep_result == KPROF_OK;
    return keep_result;
}

kprof_status kprof_snapshot_keep_all(kprof_snapshot *of, kprof_kept_memory **out)
{
    assert_ptr_equal(of, snapshot);
    *out = keep_result == KPROF_OK ? (kprof_kept_memory *)(void *)&kept_memory : NULL;
    kept_count += keep_result == KPROF_OK;
    kept_kernels = 2;
    return keep_result;
}

unsigned kprof_kept_memory_kernels(const kprof_kept_memory *kept)
{
    assert_ptr_equal(kept, &kept_memory);
    return kept_kernels;
}

bool kprof_snapshot_has_host(const kprof_snapshot *of)
{
    return wanted_host != 0;
}

kprof_status kprof_snapshot_put(kprof_snapshot *of, const kprof_kept_memory *kept)
{
    assert_ptr_equal(kept, &kept_memory);
    put_count++;
    return KPROF_OK;
}

void kprof_kept_memory_free(kprof_kept_memory *kept)
{
    kept_count -= kept != NULL;
}

kprof_status kprof_snapshot_set(kprof_snapshot *of, const kprof_set *set)
{
    assert_ptr_equal(of, snapshot);
    write_down("set%u %llx %zu %u %zu %zu;", 8 * set->element_bytes, (unsigned long long)set->to, set->pitch_bytes,
               set->value, set->width, set->height);
    return KPROF_OK;
}

kprof_status kprof_snapshot_compare(kprof_snapshot *of, const kprof_rows *rows, bool *same)
{
    assert_ptr_equal(of, snapshot);
    write_rows("compare", rows);
    write_down(";");
    *same = !differs;
    return KPROF_OK;
}

static int set_up(void **state)
{
    copy_result = wait_result = CUDA_SUCCESS;
    no_space = differs = false;
    done[0] = '\0';
    return 0;
}

static kprof_operation *keep_in(kprof_snapshot *in, CUpti_CallbackId id, const void *parameters)
{
    kprof_decoded_call decoded;
    kprof_call call = {.context = &own_context, .callback_id = id, .parameters = &decoded};
    call.kind = kprof_call_decode(id, parameters, &decoded);
    assert_int_equal(call.kind, KPROF_CALL_TRANSFER);
    call.stream = decoded.stream;
    return kprof_operation_copy(&call, in);
}

static kprof_operation *keep(CUpti_CallbackId id, const void *parameters)
{
    return keep_in(snapshot, id, parameters);
}

/* The steps for the call itself, and for its repetition; "" when it cannot be repeated. */
static const char *repeat(CUpti_CallbackId id, const void *parameters)
{
    done[0] = '\0';
    kprof_operation *operation = keep(id, parameters);
    if (!operation)
        return "";
    assert_int_equal(kprof_operation_returned(operation), KPROF_OK);
    write_down("repeated: ");
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_OK);
    kprof_operation_free(operation);
    return done;
}

static const char *repeat_copy(CUdeviceptr to, CUdeviceptr from, void *stream)
{
    cuMemcpyAsync_params p = {.dst = to, .src = from, .ByteCount = 64, .hStream = stream};
    return repeat(ID(cuMemcpyAsync), &p);
}

TEST(test_sets)
{
    cuMemsetD8_v2_params p8 = {.dstDevice = DEVICE + 1, .uc = 200, .N = 5};
    assert_string_equal(repeat(ID(cuMemsetD8_v2), &p8), "repeated: set8 10001 0 200 5 1;");
    cuMemsetD16Async_params p16 = {.dstDevice = DEVICE, .us = 60000, .N = 6, .hStream = (void *)&own_stream};
    assert_string_equal(repeat(ID(cuMemsetD16Async), &p16), "repeated: set16 10000 0 60000 6 1;");
    cuMemsetD32Async_params p32 = {.dstDevice = DEVICE, .ui = 4000000000u, .N = 7, .hStream = (void *)&own_stream};
    assert_string_equal(repeat(ID(cuMemsetD32Async_ptsz), &p32), "repeated: set32 10000 0 4000000000 7 1;");
    cuStreamWriteValue32_v2_params w4 = {.addr = DEVICE, .value = 5};
    assert_string_equal(repeat(ID(cuStreamWriteValue32_v2), &w4), "repeated: set32 10000 0 5 1 1;");
    cuStreamWriteValue64_params w8 = {.addr = DEVICE + 8, .value = UINT64_C(0x300000007)};
    assert_string_equal(repeat(ID(cuStreamWriteValue64), &w8), "repeated: set32 10008 0 7 1 1;set32 1000c 0 3 1 1;");
    cuMemsetD2D8_v2_params r8 = {.dstDevice = DEVICE, .dstPitch = 512, .uc = 1, .Width = 9, .Height = 3};
    assert_string_equal(repeat(ID(cuMemsetD2D8_v2), &r8), "repeated: set8 10000 512 1 9 3;");
    cuMemsetD2D16_v2_params r16 = {.dstDevice = DEVICE, .dstPitch = 512, .us = 2, .Width = 9, .Height = 3};
    assert_string_equal(repeat(ID(cuMemsetD2D16_v2), &r16), "repeated: set16 10000 512 2 9 3;");
    cuMemsetD2D32_v2_params r32 = {.dstDevice = DEVICE, .dstPitch = 512, .ui = 3, .Width = 9, .Height = 3};
    assert_string_equal(repeat(ID(cuMemsetD2D32_v2_ptds), &r32), "repeated: set32 10000 512 3 9 3;");
}

/* A set of several rows is repeated with as many rows. */
TEST(test_sets_of_rows)
{
    CUstream stream = (CUstream)(void *)&own_stream;
    cuMemsetD2D8Async_params r8 = {DEVICE, 512, 1, 9, 3, stream};
    assert_string_equal(repeat(ID(cuMemsetD2D8Async), &r8), "repeated: set8 10000 512 1 9 3;");
    cuMemsetD2D16Async_params r16 = {DEVICE, 512, 2, 9, 3, stream};
    assert_string_equal(repeat(ID(cuMemsetD2D16Async), &r16), "repeated: set16 10000 512 2 9 3;");
    cuMemsetD2D32Async_params r32 = {DEVICE, 512, 3, 9, 3, stream};
    assert_string_equal(repeat(ID(cuMemsetD2D32Async_ptsz), &r32), "repeated: set32 10000 512 3 9 3;");
    r32.Height = 1;
    assert_string_equal(repeat(ID(cuMemsetD2D32Async), &r32), "repeated: set32 10000 512 3 9 1;");
}

/* The same in a range that would count kprof's own kernels. */
static const char *repeat_counted(CUpti_CallbackId id, const void *parameters, kprof_status wanted)
{
    kprof_operation *operation = keep(id, parameters);
    assert_non_null(operation);
    assert_int_equal(kprof_operation_returned(operation), KPROF_OK);
    done[0] = '\0';
    kprof_status status = kprof_operation_prepare_counted(operation, snapshot, wanted_lane.number);
    KPROF_THEN(status, kprof_operation_run_counted(operation, snapshot, wanted_lane));
    assert_int_equal(status, wanted);
    kprof_operation_free(operation);
    return done;
}

TEST(test_by_the_driver)
{
    CUstream stream = (CUstream)(void *)&own_stream;
    cuMemsetD8_v2_params p8 = {.dstDevice = DEVICE + 1, .uc = 200, .N = 5};
    cuMemsetD16Async_params p16 = {.dstDevice = DEVICE, .us = 60000, .N = 6, .hStream = stream};
    cuMemsetD32Async_params p32 = {.dstDevice = DEVICE, .ui = 4000000000u, .N = 7, .hStream = stream};
    cuMemsetD2D8Async_params r8 = {DEVICE, 512, 1, 9, 3, stream};
    cuMemsetD2D16Async_params r16 = {DEVICE, 512, 2, 9, 3, stream};
    cuMemsetD2D32Async_params r32 = {DEVICE, 512, 3, 9, 3, stream};
    cuMemcpyDtoD_v2_params p = {.dstDevice = DEVICE, .srcDevice = POOL, .ByteCount = 64};
    cuMemsetD8_v2_params none = {.dstDevice = DEVICE};
    cuStreamWriteValue64_v2_params w8 = {.addr = DEVICE, .value = UINT64_C(0x300000007)};
    const struct {
        CUpti_CallbackId id;
        const void *parameters;
        const char *wanted;
    } calls[] = {{ID(cuStreamWriteValue64_v2), &w8, "set32 10000 7 1 replay;set32 10004 3 1 replay;"},
                 {ID(cuMemsetD8_v2), &p8, "set8 10001 200 5 replay;"},
                 {ID(cuMemsetD16Async), &p16, "set16 10000 60000 6 replay;"},
                 {ID(cuMemsetD32Async), &p32, "set32 10000 4000000000 7 replay;"},
                 {ID(cuMemsetD2D8Async), &r8, "rows8 10000+512 1 9 3 replay;"},
                 {ID(cuMemsetD2D16Async), &r16, "rows16 10000+512 2 9 3 replay;"},
                 {ID(cuMemsetD2D32Async), &r32, "rows32 10000+512 3 9 3 replay;"},
                 {ID(cuMemsetD8_v2), &none, ""}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_string_equal(repeat_counted(calls[i].id, calls[i].parameters, KPROF_OK), calls[i].wanted);
    assert_non_null(strstr(repeat_counted(ID(cuMemcpyDtoD_v2), &p, KPROF_OK), "copy 10000 "));
    copy_result = CUDA_ERROR_INVALID_VALUE;
    (void)repeat_counted(ID(cuMemcpyDtoD_v2), &p, KPROF_NOT_COLLECTED);
    copy_result = CUDA_SUCCESS;
}

/* Rows of 13 bytes, 100 apart at the source and 500 at the destination. */
static CUDA_MEMCPY2D rows_between(CUdeviceptr to, CUdeviceptr from)
{
    return (CUDA_MEMCPY2D){.srcXInBytes = 1,
                           .srcY = 2,
                           .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = from,
                           .srcPitch = 100,
                           .dstXInBytes = 3,
                           .dstY = 1,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = to,
                           .dstPitch = 500,
                           .WidthInBytes = 13,
                           .Height = 6};
}

/* The driver would copy within the device by a kernel. */
TEST(test_by_the_driver_from_and_to_the_host)
{
    char host[1000];
    CUstream stream = (CUstream)(void *)&own_stream;
    cuMemcpyHtoDAsync_v2_params in = {DEVICE, host, 64, stream};
    cuMemcpyDtoHAsync_v2_params out = {host, DEVICE, 64, stream};
    CUDA_MEMCPY2D in_rows = rows_between(DEVICE, HOST), out_rows = rows_between(HOST, POOL);
    cuMemcpy2DAsync_v2_params in_2d = {&in_rows, stream}, out_2d = {&out_rows, stream};
    assert_string_equal(repeat_counted(ID(cuMemcpyHtoDAsync_v2), &in, KPROF_OK),
                        "lock 64;take 0xa0000 90000 64 replay;bring 10000 0xa0000 64 replay;");
    assert_string_equal(repeat_counted(ID(cuMemcpyDtoHAsync_v2), &out, KPROF_OK),
                        "lock 64;take 0xb0000 10000 64 replay;");
    assert_string_equal(repeat_counted(ID(cuMemcpy2DAsync_v2), &in_2d, KPROF_OK),
                        "lock 78;take 0xa0000 90000 78 replay;bring rows 101f7+500 a0000+13 13 6 replay;");
    assert_string_equal(repeat_counted(ID(cuMemcpy2DAsync_v2), &out_2d, KPROF_OK),
                        "lock 78;take rows b0000+13 200c9+100 13 6 replay;");
    wanted_lane = (kprof_lane){1, 1};
    assert_string_equal(repeat_counted(ID(cuMemcpyHtoDAsync_v2), &in, KPROF_OK),
                        "lock 64;take 0xa0000 90000 64 replay;bring 10000 0xa0000 64 lane;");
    wanted_lane = (kprof_lane){2, 0};
    assert_string_equal(repeat_counted(ID(cuMemcpyDtoHAsync_v2), &out, KPROF_NOT_COLLECTED), "");
    wanted_lane = (kprof_lane){0};
    nothing_locked = true;
    assert_string_equal(repeat_counted(ID(cuMemcpyHtoDAsync_v2), &in, KPROF_NOT_COLLECTED), "lock 64;");
    nothing_locked = false;
    in.ByteCount = 0;
    assert_string_equal(repeat_counted(ID(cuMemcpyHtoDAsync_v2), &in, KPROF_OK), "");
}

/* A call that sets or copies nothing is not repeated: the driver may refuse an empty one in another form. */
TEST(test_nothing_to_do)
{
    cuMemsetD8_v2_params none = {.dstDevice = DEVICE};
    cuMemsetD2D8_v2_params no_rows = {.dstDevice = DEVICE, .dstPitch = 512, .Width = 9};
    cuMemcpyDtoD_v2_params no_copy = {.dstDevice = DEVICE, .srcDevice = POOL};
    const struct {
        CUpti_CallbackId id;
        const void *parameters;
    } calls[] = {{ID(cuMemsetD8_v2), &none}, {ID(cuMemsetD2D8_v2), &no_rows}, {ID(cuMemcpyDtoD_v2), &no_copy}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        kprof_operation *operation = keep(calls[i].id, calls[i].parameters);
        assert_non_null(operation);
        kprof_operation_free(operation);
        assert_string_equal(repeat(calls[i].id, calls[i].parameters), "repeated: ");
    }
}

TEST(test_refused)
{
    cuMemcpyDtoD_v2_params p = {.dstDevice = DEVICE, .srcDevice = POOL, .ByteCount = 64};
    kprof_operation *operation = keep(ID(cuMemcpyDtoD_v2), &p);
    assert_non_null(operation);
    copy_result = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_INTERNAL);
    copy_result = CUDA_SUCCESS;
    kprof_operation_free(operation);
}

TEST(test_copies)
{
    assert_string_equal(repeat_copy(DEVICE, POOL, NULL), "repeated: copy 10000 20000 64 replay;");
    assert_string_equal(repeat_copy(POOL, DEVICE, &own_stream), "repeated: copy 20000 10000 64 replay;");
}

/* Data from the host is there when the call returns, or later in its stream: it is kept right after. */
TEST(test_copies_from_the_host)
{
    char host;
    cuMemcpyHtoDAsync_v2_params async = {DEVICE, &host, 64, (CUstream)(void *)&own_stream};
    assert_string_equal(repeat(ID(cuMemcpyHtoDAsync_v2), &async),
                        "space 64;copy 90000 10000 64 own;repeated: copy 10000 90000 64 replay;");
    cuMemcpyHtoD_v2_params sync = {DEVICE, &host, 64};
    assert_string_equal(repeat(ID(cuMemcpyHtoD_v2), &sync),
                        "space 64;copy 90000 10000 64 default;wait default;repeated: copy 10000 90000 64 replay;");
    sync.ByteCount = 0;
    assert_string_equal(repeat(ID(cuMemcpyHtoD_v2), &sync), "repeated: ");
    sync = (cuMemcpyHtoD_v2_params){PEER, &host, 64};
    assert_string_equal(repeat(ID(cuMemcpyHtoD_v2), &sync), "");
}

/* Data that goes to the host is kept before: when the call returns, other streams may have changed it. */
TEST(test_copies_to_the_host)
{
    char host;
    cuMemcpyDtoHAsync_v2_params async = {&host, DEVICE, 64, (CUstream)(void *)&own_stream};
    assert_string_equal(repeat(ID(cuMemcpyDtoHAsync_v2), &async),
                        "space 64;copy 90000 10000 64 own;repeated: compare 90000 10000 64;");
    cuMemcpyDtoH_v2_params sync = {&host, DEVICE, 64};
    assert_string_equal(repeat(ID(cuMemcpyDtoH_v2), &sync),
                        "space 64;copy 90000 10000 64 default;repeated: compare 90000 10000 64;");
    sync.ByteCount = 0;
    assert_string_equal(repeat(ID(cuMemcpyDtoH_v2), &sync), "repeated: ");
    sync = (cuMemcpyDtoH_v2_params){&host, PEER, 64};
    assert_string_equal(repeat(ID(cuMemcpyDtoH_v2), &sync), "");
}

static int64_t perhaps_ns = -1;

/* What came of the wait for the work before the copy. */
static kprof_awaited await(CUpti_CallbackId id, const void *parameters)
{
    kprof_decoded_call decoded;
    assert_int_equal(kprof_call_decode(id, parameters, &decoded), KPROF_CALL_TRANSFER);
    recorded_on = NULL;
    queries = 0;
    const kprof_call call = {.parameters = &decoded, .stream = decoded.stream};
    kprof_awaited result = kprof_transfer_await_start(&call, perhaps_ns);
    assert_true(events == 0 && !relaxed);
    assert_true(!recorded_on || recorded_on == decoded.stream);
    assert_int_equal(result == KPROF_AWAITED, queries > busy_for);
    return result;
}

TEST(test_work_before_a_copy_that_waits)
{
    enum { LARGE_IN = (64 << 10) + 1 };
    char host;
    CUstream stream = (CUstream)(void *)&own_stream;
    const cuMemcpyDtoHAsync_v2_params out = {&host, DEVICE, 64, stream}, nothing = {&host, DEVICE, 0, stream};
    const cuMemcpyDtoHAsync_v2_params to_pinned = {(void *)(uintptr_t)HOST, DEVICE, 64, stream};
    const cuMemcpyHtoDAsync_v2_params in = {DEVICE, &host, 64, stream}, staged_in = {DEVICE, &host, LARGE_IN, stream};
    const cuMemcpyHtoDAsync_v2_params pinned_in = {DEVICE, (void *)(uintptr_t)HOST, LARGE_IN, stream};
    const cuMemcpyAsync_params any = {(CUdeviceptr)(uintptr_t)&host, DEVICE, 64, stream};
    const cuMemcpyAsync_params within_host = {HOST, (CUdeviceptr)(uintptr_t)&host, 64, stream};
    const cuMemcpy_ptds_params at_once = {HOST, DEVICE, 64}, within = {POOL, DEVICE, 64};
    const cuMemsetD8Async_params set = {DEVICE, 1, 64, stream};
    const cuMemcpyHtoD_v2_params in_at_once = {DEVICE, &host, 64}, large_in = {DEVICE, &host, LARGE_IN};
    const cuMemcpy_params any_in_at_once = {DEVICE, (CUdeviceptr)(uintptr_t)&host, 64};
    busy_for = 3;
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpyDtoHAsync_v2), &out));
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpyAsync), &any));
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpy_ptds), &at_once));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpy_ptds), &within));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpyDtoHAsync_v2), &to_pinned));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpyDtoHAsync_v2), &nothing));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpyHtoDAsync_v2), &in));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpyHtoDAsync_v2), &pinned_in));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpyHtoDAsync_v2), &staged_in));
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpyHtoD_v2), &large_in));
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpyAsync), &within_host));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpyHtoD_v2), &in_at_once)); /* a small one goes into the queue */
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpy), &any_in_at_once));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemsetD8Async), &set));
    perhaps_ns = 1000000; /* kprof itself waits for the copy then */
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpyHtoD_v2), &in_at_once));
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpy), &any_in_at_once));
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpyHtoDAsync_v2), &staged_in));
    assert_int_equal(KPROF_NOT_AWAITED, await(ID(cuMemcpyHtoDAsync_v2), &in));
    query_result = CUDA_ERROR_ILLEGAL_ADDRESS; /* the copy itself will tell */
    assert_int_equal(KPROF_AWAITED, await(ID(cuMemcpyDtoHAsync_v2), &out));
    query_result = CUDA_SUCCESS;
    record_result = CUDA_ERROR_INVALID_HANDLE; /* a stream of another context */
    assert_int_equal(KPROF_AWAIT_TIMED_OUT, await(ID(cuMemcpyDtoHAsync_v2), &out));
    record_result = CUDA_SUCCESS;
    busy_for = UINT_MAX; /* the driver may have copied to memory of its own, and return before it ends */
    assert_int_equal(KPROF_AWAIT_TIMED_OUT, await(ID(cuMemcpyHtoDAsync_v2), &staged_in));
    reaches_pageable = true;
    assert_int_equal(KPROF_AWAIT_TIMED_OUT, await(ID(cuMemcpyDtoHAsync_v2), &out));
    reaches_pageable = false;
}

/* Pinned memory CUDA knows, other memory of the host it does not. */
TEST(test_copies_that_do_not_tell_the_host)
{
    static const CUdeviceptr host[] = {HOST, 0x70000, 0x7f0000001234};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
        assert_string_equal(repeat_copy(DEVICE, host[i], &own_stream),
                            "space 64;copy 90000 10000 64 own;repeated: copy 10000 90000 64 replay;");
        assert_string_equal(repeat_copy(host[i], DEVICE, &own_stream),
                            "space 64;copy 90000 10000 64 own;repeated: compare 90000 10000 64;");
    }
    assert_string_equal(repeat_copy(HOST, HOST, &own_stream), "");
}

static const char *repeat_rows(const CUDA_MEMCPY2D *rows)
{
    cuMemcpy2DAsync_v2_params p = {rows, (CUstream)(void *)&own_stream};
    return repeat(ID(cuMemcpy2DAsync_v2), &p);
}

/* The bytes between the rows are neither kept nor written. */
TEST(test_copies_of_rows)
{
    CUDA_MEMCPY2D rows = rows_between(DEVICE, POOL);
    cuMemcpy2D_v2_params sync = {&rows};
    assert_string_equal(repeat_rows(&rows), "repeated: copy 101f7+500 200c9+100 13 6 replay;");
    rows = rows_between(DEVICE, HOST);
    assert_string_equal(repeat_rows(&rows), "space 13 6;rows 90000+13 101f7+500 13 6 own;"
                                            "repeated: copy 101f7+500 90000+13 13 6 replay;");
    assert_string_equal(repeat(ID(cuMemcpy2D_v2), &sync), "space 13 6;rows 90000+13 101f7+500 13 6 default;"
                                                          "wait default;"
                                                          "repeated: copy 101f7+500 90000+13 13 6 replay;");
    rows = rows_between(HOST, POOL);
    assert_string_equal(repeat_rows(&rows), "space 13 6;rows 90000+13 200c9+100 13 6 own;"
                                            "repeated: compare 90000+13 200c9+100 13 6;");
    rows.Height = 1;
    assert_string_equal(repeat_rows(&rows), "space 13;copy 90000 200c9 13 own;repeated: compare 90000 200c9 13;");
    rows.Height = 0;
    assert_string_equal(repeat_rows(&rows), "repeated: ");
    rows.Height = 6;
    rows.WidthInBytes = 0;
    assert_string_equal(repeat_rows(&rows), "repeated: ");
}

/* Copies of memory that the call says to be the host's, pinned, pageable or managed. */
TEST(test_copies_of_rows_of_the_host)
{
    char host[1000];
    CUDA_MEMCPY2D in = rows_between(DEVICE, FOREIGN), out = rows_between(FOREIGN, POOL);
    in.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = out.dstHost = host;
    in.dstMemoryType = out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    assert_string_equal(repeat_rows(&in), "space 13 6;rows 90000+13 101f7+500 13 6 own;"
                                          "repeated: copy 101f7+500 90000+13 13 6 replay;");
    assert_string_equal(repeat_rows(&out), "space 13 6;rows 90000+13 200c9+100 13 6 own;"
                                           "repeated: compare 90000+13 200c9+100 13 6;");
    cuMemcpy2D_v2_params p = {&out};
    kprof_operation *operation = keep(ID(cuMemcpy2D_v2), &p);
    assert_int_equal(kprof_operation_output_bytes(operation), 13 * 6);
    kprof_operation_free(operation);
    in.srcHost = out.dstHost = (void *)(uintptr_t)MANAGED; /* no snapshot holds it */
    assert_string_equal(repeat_rows(&in), "");
    assert_string_equal(repeat_rows(&out), "");
    in.dstMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = in.dstHost = host;
    assert_string_equal(repeat_rows(&in), "");
}

/* All rows must be there, and the last one is as long as the others. */
TEST(test_copies_of_rows_that_leave_the_memory)
{
    const size_t most_to = 503 + 5 * 500 + 13, most_from = 201 + 5 * 100 + 13;
    CUDA_MEMCPY2D rows = rows_between(DEVICE + PLACE - most_to, POOL + PLACE - most_from);
    assert_string_not_equal(repeat_rows(&rows), "");
    rows.dstDevice++;
    assert_string_equal(repeat_rows(&rows), "");
    rows.srcDevice++;
    rows.dstDevice = HOST;
    assert_string_equal(repeat_rows(&rows), "");
    rows = rows_between(DEVICE + PLACE - most_to + 1, HOST);
    assert_string_equal(repeat_rows(&rows), "");
}

/* The steps for a node of a graph before the launch, behind it, and when it is repeated. */
static const char *repeat_node(const kprof_transfer *node, unsigned traits)
{
    kprof_decoded_call decoded = {.stream = (CUstream)(void *)&own_stream, .transfer = *node};
    decoded.transfer.stream = decoded.stream;
    kprof_call call = {.kind = KPROF_CALL_TRANSFER,
                       .context = &own_context,
                       .stream = decoded.stream,
                       .node_traits = KPROF_NODE | traits,
                       .parameters = &decoded};
    done[0] = '\0';
    kprof_operation *operation = kprof_operation_copy(&call, snapshot);
    if (!operation)
        return "";
    write_down("launch;");
    assert_int_equal(kprof_operation_returned(operation), KPROF_OK);
    write_down("repeated: ");
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_OK);
    assert_int_equal(kprof_operation_kernels(operation), traits & KPROF_NODE_HIDES_OUTPUT ? 0 : 1);
    kprof_operation_free(operation);
    return done;
}

/* A copy from the host is kept before the graph is launched, and one to the host when it has ended. */
TEST(test_nodes_of_graphs)
{
    char host[128], expected[256];
    kprof_transfer in = {KPROF_TRANSFER_IN, .destination = DEVICE, .source = HOST, .width = 64, .height = 1};
    assert_string_equal(repeat_node(&in, 0), "space 64;bring 90000 0x50000 64 own;launch;"
                                             "repeated: copy 10000 90000 64 replay;");
    in.source = (CUdeviceptr)(uintptr_t)host;
    snprintf(expected, sizeof expected, "space 64;bring 90000 %p 64 own;launch;repeated: copy 10000 90000 64 replay;",
             (void *)host);
    assert_string_equal(repeat_node(&in, KPROF_NODE_READS_PAGEABLE), expected);
    kprof_transfer out = {KPROF_TRANSFER_OUT, .destination = HOST, .source = POOL, .width = 64, .height = 1};
    assert_string_equal(repeat_node(&out, KPROF_NODE_IS_TOLD),
                        "space 64;launch;copy 90000 20000 64 own;repeated: compare 90000 20000 64;");
    assert_string_equal(repeat_node(&out, KPROF_NODE_HIDES_OUTPUT), "launch;repeated: ");
    kprof_transfer rows = {KPROF_TRANSFER_IN, .destination = DEVICE,     .source = HOST, .pitch_bytes = 128,
                           .width = 64,       .source_pitch_bytes = 256, .height = 3};
    assert_string_equal(repeat_node(&rows, 0), "space 64 3;bring rows 90000+64 50000+256 64 3 own;launch;"
                                               "repeated: copy 10000+128 90000+64 64 3 replay;");
}

/* Nor does a copy between devices become one from the host, when its memory is gone. */
TEST(test_nodes_that_are_not_repeated)
{
    kprof_transfer in = {KPROF_TRANSFER_IN, .destination = PEER, .source = HOST, .width = 64, .height = 1};
    assert_string_equal(repeat_node(&in, 0), "");
    in.destination = DEVICE;
    in.source = 64; /* nothing is there */
    assert_string_equal(repeat_node(&in, KPROF_NODE_READS_PAGEABLE), "");
    in.source = HOST;
    copy_result = CUDA_ERROR_INVALID_VALUE;
    assert_string_equal(repeat_node(&in, 0), "");
    copy_result = CUDA_SUCCESS;
    no_space = true;
    assert_string_equal(repeat_node(&in, 0), "");
    no_space = false;
    kprof_transfer out = {KPROF_TRANSFER_OUT, .destination = HOST, .source = PEER, .width = 64, .height = 1};
    assert_string_equal(repeat_node(&out, 0), "");
    out.source = POOL;
    out.destination = DEVICE; /* what was unknown when the graph was made, and is memory of the device now */
    assert_string_equal(repeat_node(&out, 0), "");
    assert_string_equal(repeat_node(&out, KPROF_NODE_HIDES_OUTPUT), "");
    in.source = POOL;
    assert_string_equal(repeat_node(&in, 0), "");
    kprof_transfer copy_node = {KPROF_TRANSFER_COPY, .destination = DEVICE, .source = HOST, .width = 64, .height = 1};
    assert_string_equal(repeat_node(&copy_node, 0), "");
}

TEST(test_a_copy_to_the_host_of_something_else)
{
    char host;
    cuMemcpyDtoH_v2_params p = {&host, DEVICE, 64};
    kprof_operation *operation = keep(ID(cuMemcpyDtoH_v2), &p);
    assert_non_null(operation);
    assert_int_equal(kprof_operation_returned(operation), KPROF_OK);
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_OK);
    differs = true;
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_NOT_COLLECTED);
    kprof_operation_free(operation);
}

TEST(test_no_space_to_keep_them)
{
    char host;
    cuMemcpyHtoD_v2_params in = {LARGE, &host, 256 << 20};
    cuMemcpyDtoH_v2_params out = {&host, LARGE, 256 << 20};
    assert_string_not_equal(repeat(ID(cuMemcpyHtoD_v2), &in), "");
    assert_string_not_equal(repeat(ID(cuMemcpyDtoH_v2), &out), "");
    in.ByteCount++;
    out.ByteCount++;
    assert_string_equal(repeat(ID(cuMemcpyHtoD_v2), &in), "");
    assert_string_equal(repeat(ID(cuMemcpyDtoH_v2), &out), "");
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = LARGE,
                          .srcPitch = 512 << 10,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = &host,
                          .dstPitch = 512 << 10,
                          .WidthInBytes = 256 << 10,
                          .Height = 1024};
    assert_string_not_equal(repeat_rows(&rows), "");
    rows.WidthInBytes++;
    assert_string_equal(repeat_rows(&rows), "");
    rows.srcPitch = 64;
    rows.WidthInBytes = 1;
    rows.Height = 1 << 20;
    assert_string_not_equal(repeat_rows(&rows), "");
    rows.Height++;
    assert_string_equal(repeat_rows(&rows), "");
    in.ByteCount = out.ByteCount = 64;
    no_space = true;
    assert_string_equal(repeat(ID(cuMemcpyHtoD_v2), &in), "");
    assert_string_equal(repeat(ID(cuMemcpyDtoH_v2), &out), "");
}

TEST(test_copies_that_cannot_be_kept)
{
    char host;
    cuMemcpyHtoD_v2_params in = {DEVICE, &host, 64};
    cuMemcpyDtoH_v2_params out = {&host, DEVICE, 64};
    kprof_operation *operation = keep(ID(cuMemcpyHtoD_v2), &in);
    assert_non_null(operation);
    wait_result = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(kprof_operation_returned(operation), KPROF_INTERNAL);
    copy_result = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(kprof_operation_returned(operation), KPROF_INTERNAL);
    kprof_operation_free(operation);
    assert_null(keep(ID(cuMemcpyDtoH_v2), &out));
}

/* No snapshot holds it. */
TEST(test_memory_of_others)
{
    static const CUdeviceptr others[] = {FOREIGN, PEER, MANAGED};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_string_equal(repeat_copy(DEVICE, others[i], NULL), "");
        assert_string_equal(repeat_copy(others[i], DEVICE, NULL), "");
    }
    static const CUdeviceptr places[] = {FOREIGN, PEER, HOST, MANAGED, 0, 0x70000, DEVICE + PLACE - 4};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        cuMemsetD8_v2_params set = {.dstDevice = places[i], .N = 5};
        assert_string_equal(repeat(ID(cuMemsetD8_v2), &set), "");
    }
    assert_string_equal(repeat_copy(POOL + PLACE - 63, DEVICE, NULL), "");
    assert_string_equal(repeat_copy(DEVICE, POOL + PLACE - 63, NULL), "");
}

/* While it stays on the host it is like pinned memory. */
TEST(test_managed_memory_that_stays)
{
    const CUdeviceptr own[][2] = {{DEVICE, HOST}, {HOST, DEVICE}},
                      managed[][2] = {{DEVICE, MANAGED}, {MANAGED, DEVICE}};
    char expected[sizeof done], place[16], *at;
    kprof_allocations_let_managed_stay(true);
    for (size_t i = 0; i < 2; i++) {
        snprintf(expected, sizeof expected, "%s", repeat_copy(own[i][0], own[i][1], NULL));
        snprintf(place, sizeof place, "%x", (unsigned)HOST);
        assert_string_not_equal(expected, "");
        while ((at = strstr(expected, place)))
            at[0] = '6';
        assert_string_equal(repeat_copy(managed[i][0], managed[i][1], NULL), expected);
    }
    kprof_allocations_let_managed_stay(false);
}

/* Their last row counts, too, and the size of an element. */
TEST(test_rows_that_leave_the_memory)
{
    cuMemsetD2D32_v2_params p = {.dstDevice = POOL, .dstPitch = PLACE / 4, .ui = 3, .Width = PLACE / 16, .Height = 4};
    assert_string_not_equal(repeat(ID(cuMemsetD2D32_v2), &p), "");
    p.Width++;
    assert_string_equal(repeat(ID(cuMemsetD2D32_v2), &p), "");
    p.Width = 1;
    p.Height = 5;
    assert_string_equal(repeat(ID(cuMemsetD2D32_v2), &p), "");
}

/* No batch is open. */
TEST(test_nothing_saved)
{
    cuMemsetD8_v2_params p = {.dstDevice = DEVICE, .N = 5};
    assert_null(keep_in(NULL, ID(cuMemsetD8_v2), &p));
}

TEST(test_streams_of_others)
{
    assert_string_equal(repeat_copy(DEVICE, POOL, &other_stream), "");
    assert_string_equal(repeat_copy(DEVICE, POOL, &captured_stream), "");
}

/* A replay writes it by one kernel, and compares nothing. */
TEST(test_what_the_host_did)
{
    kprof_operation *operation;
    touched_known = true;
    touched_count = 0;
    assert_int_equal(kprof_operation_keep_host(snapshot, &operation), KPROF_OK);
    assert_null(operation); /* nothing */
    touched[0] = (kprof_span){MANAGED, 4096};
    touched[1] = (kprof_span){MANAGED + 8192, 100};
    touched_count = 2;
    keep_result = KPROF_OK;
    assert_int_equal(kprof_operation_keep_host(snapshot, &operation), KPROF_OK);
    assert_int_equal(kept_count, 1);
    assert_int_equal(kprof_operation_kernels(operation), 1);
    assert_int_equal(kprof_operation_output_bytes(operation), 0);
    assert_true(kprof_operation_is_saved(operation, snapshot));
    assert_int_equal(kprof_operation_returned(operation), KPROF_OK);
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_OK);
    assert_int_equal(put_count, 1);
    assert_string_equal(done, "");
    kprof_operation_free(operation);
    assert_int_equal(kept_count, 0);
    wanted_host = HOST; /* all of it, where it is saved */
    kprof_memory_change change = {.kind = KPROF_MEMORY_OF_HOST, .address = wanted_host, .size_bytes = 64};
    kprof_allocations_note(&change, &own_context);
    assert_int_equal(kprof_operation_keep_host(snapshot, &operation), KPROF_OK);
    kprof_operation_free(operation);
    change.kind = KPROF_MEMORY_FREED;
    kprof_allocations_note(&change, &own_context);
    change = (kprof_memory_change){
        .kind = KPROF_MEMORY_OF_HOST, .address = wanted_host, .size_bytes = ((size_t)64 << 20) + 1}; /* too much */
    kprof_allocations_note(&change, &own_context);
    assert_int_equal(kprof_operation_keep_host(snapshot, &operation), KPROF_UNSUPPORTED);
    assert_null(operation);
    change.kind = KPROF_MEMORY_FREED;
    kprof_allocations_note(&change, &own_context);
    wanted_host = 0;
}

TEST(test_what_the_host_did_cannot_be_kept)
{
    kprof_operation *operation;
    touched_known = false;
    assert_int_equal(kprof_operation_keep_host(snapshot, &operation), KPROF_UNSUPPORTED);
    assert_null(operation);
    touched_known = true;
    touched_count = 1;
    keep_result = KPROF_NO_MEMORY;
    assert_int_equal(kprof_operation_keep_host(snapshot, &operation), KPROF_NO_MEMORY);
    assert_null(operation);
}

TEST(test_all_memory)
{
    kprof_operation *operation;
    keep_result = KPROF_OK;
    const unsigned puts = put_count;
    assert_int_equal(kprof_operation_keep_all(snapshot, &operation), KPROF_OK);
    assert_int_equal(kept_count, 1);
    assert_int_equal(kprof_operation_kernels(operation), 2);
    assert_int_equal(kprof_operation_output_bytes(operation), 0);
    assert_true(kprof_operation_is_saved(operation, snapshot));
    assert_int_equal(kprof_operation_returned(operation), KPROF_OK);
    assert_int_equal(kprof_operation_run(operation, snapshot), KPROF_OK);
    assert_int_equal(put_count, puts + 1);
    kprof_operation_free(operation);
    assert_int_equal(kept_count, 0);
    keep_result = KPROF_NO_MEMORY;
    assert_int_equal(kprof_operation_keep_all(snapshot, &operation), KPROF_NO_MEMORY);
    assert_null(operation);
}

AROUND_EACH(set_up, NULL)
