/* Transfers that are kept to be repeated: which, and how they are done again, by a driver that writes down
 * what it is asked. */
#include "cupti/calls.h"
#include "cupti/driver.h"
#include "cupti/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

enum { OWN_DEVICE = 3, OTHER_DEVICE = 0 };

static char own_context, other_context, own_stream, other_stream, captured_stream;
static char done[128]; /* the last thing that the driver did */
static CUresult copy_result;

/* Addresses by what is there. */
enum { DEVICE = 0x10000, POOL = 0x20000, FOREIGN = 0x30000, PEER = 0x40000, HOST = 0x50000, MANAGED = 0x60000 };

static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    unsigned place = (unsigned)address & ~0xffffu;
    if (place < DEVICE || place > MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT)
        *(void **)out = place == FOREIGN ? &other_context : place == POOL ? NULL : &own_context;
    else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned *)out = place == HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    else if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(unsigned *)out = place == MANAGED;
    else
        *(int *)out = place == PEER ? OTHER_DEVICE : OWN_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_device(CUdevice *device)
{
    *device = OWN_DEVICE;
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

static CUresult CUDAAPI set8(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    snprintf(done, sizeof done, "set8 %llx %u %zu %d", to, value, count, (void *)stream == &own_stream);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set16(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    snprintf(done, sizeof done, "set16 %llx %u %zu %d", to, value, count, (void *)stream == &own_stream);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set32(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    snprintf(done, sizeof done, "set32 %llx %u %zu %d", to, value, count, (void *)stream == &own_stream);
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI set_rows8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                  CUstream stream)
{
    snprintf(done, sizeof done, "rows8 %llx %zu %u %zu %zu %d", to, pitch, value, width, height,
             (void *)stream == &own_stream);
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI set_rows16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                   CUstream stream)
{
    snprintf(done, sizeof done, "rows16 %llx %zu %u %zu %zu %d", to, pitch, value, width, height,
             (void *)stream == &own_stream);
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI set_rows32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                                   CUstream stream)
{
    snprintf(done, sizeof done, "rows32 %llx %zu %u %zu %zu %d", to, pitch, value, width, height,
             (void *)stream == &own_stream);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI copy(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    snprintf(done, sizeof done, "copy %llx %llx %zu %d", to, from, size, (void *)stream == &own_stream);
    return copy_result;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuPointerGetAttribute_ = get_attribute,
                                         .cuCtxGetDevice_ = get_device,
                                         .cuStreamGetCtx_ = get_context,
                                         .cuStreamIsCapturing_ = is_capturing,
                                         .cuMemsetD8Async_ = set8,
                                         .cuMemsetD16Async_ = set16,
                                         .cuMemsetD32Async_ = set32,
                                         .cuMemsetD2D8Async_ = set_rows8,
                                         .cuMemsetD2D16Async_ = set_rows16,
                                         .cuMemsetD2D32Async_ = set_rows32,
                                         .cuMemcpyDtoDAsync_ = copy};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    (void)result;
    return "error of the test";
}

void *kprof_target_stream(const kprof_call *call)
{
    (void)call;
    return NULL;
}

static kprof_operation *keep(CUpti_CallbackId id, const void *parameters)
{
    kprof_call call = {
        .kind = KPROF_CALL_TRANSFER, .context = &own_context, .callback_id = id, .parameters = parameters};
    return kprof_operation_copy(&call);
}

/* What is done when the call is repeated; "" when it cannot be. */
static const char *repeat(CUpti_CallbackId id, const void *parameters)
{
    done[0] = '\0';
    kprof_operation *operation = keep(id, parameters);
    if (operation)
        assert_int_equal(kprof_operation_run(operation), KPROF_OK);
    kprof_operation_free(operation);
    return done;
}

static const char *repeat_copy(CUdeviceptr to, CUdeviceptr from, void *stream)
{
    cuMemcpyAsync_params p = {.dst = to, .src = from, .ByteCount = 64, .hStream = stream};
    return repeat(ID(cuMemcpyAsync), &p);
}

static void test_sets(void **state)
{
    (void)state;
    cuMemsetD8_v2_params p8 = {.dstDevice = DEVICE + 1, .uc = 200, .N = 5};
    assert_string_equal(repeat(ID(cuMemsetD8_v2), &p8), "set8 10001 200 5 0");
    cuMemsetD16Async_params p16 = {.dstDevice = DEVICE, .us = 60000, .N = 6, .hStream = (void *)&own_stream};
    assert_string_equal(repeat(ID(cuMemsetD16Async), &p16), "set16 10000 60000 6 1");
    cuMemsetD32Async_params p32 = {.dstDevice = DEVICE, .ui = 4000000000u, .N = 7, .hStream = (void *)&own_stream};
    assert_string_equal(repeat(ID(cuMemsetD32Async_ptsz), &p32), "set32 10000 4000000000 7 1");
    cuMemsetD2D8_v2_params r8 = {.dstDevice = DEVICE, .dstPitch = 512, .uc = 1, .Width = 9, .Height = 3};
    assert_string_equal(repeat(ID(cuMemsetD2D8_v2), &r8), "rows8 10000 512 1 9 3 0");
    cuMemsetD2D16_v2_params r16 = {.dstDevice = DEVICE, .dstPitch = 512, .us = 2, .Width = 9, .Height = 3};
    assert_string_equal(repeat(ID(cuMemsetD2D16_v2), &r16), "rows16 10000 512 2 9 3 0");
    cuMemsetD2D32_v2_params r32 = {.dstDevice = DEVICE, .dstPitch = 512, .ui = 3, .Width = 9, .Height = 3};
    assert_string_equal(repeat(ID(cuMemsetD2D32_v2_ptds), &r32), "rows32 10000 512 3 9 3 0");
}

/* In the stream that they were made in, and as many rows as there were. */
static void test_sets_of_rows(void **state)
{
    (void)state;
    CUstream stream = (CUstream)(void *)&own_stream;
    cuMemsetD2D8Async_params r8 = {DEVICE, 512, 1, 9, 3, stream};
    assert_string_equal(repeat(ID(cuMemsetD2D8Async), &r8), "rows8 10000 512 1 9 3 1");
    cuMemsetD2D16Async_params r16 = {DEVICE, 512, 2, 9, 3, stream};
    assert_string_equal(repeat(ID(cuMemsetD2D16Async), &r16), "rows16 10000 512 2 9 3 1");
    cuMemsetD2D32Async_params r32 = {DEVICE, 512, 3, 9, 3, stream};
    assert_string_equal(repeat(ID(cuMemsetD2D32Async_ptsz), &r32), "rows32 10000 512 3 9 3 1");
    r32.Height = 1;
    assert_string_equal(repeat(ID(cuMemsetD2D32Async), &r32), "set32 10000 3 9 1");
}

/* What sets or copies nothing needs no call, and an empty one may be refused in another form. */
static void test_nothing_to_do(void **state)
{
    (void)state;
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
        assert_string_equal(repeat(calls[i].id, calls[i].parameters), "");
    }
}

static void test_refused(void **state)
{
    (void)state;
    cuMemcpyDtoD_v2_params p = {.dstDevice = DEVICE, .srcDevice = POOL, .ByteCount = 64};
    kprof_operation *operation = keep(ID(cuMemcpyDtoD_v2), &p);
    assert_non_null(operation);
    copy_result = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(kprof_operation_run(operation), KPROF_INTERNAL);
    copy_result = CUDA_SUCCESS;
    kprof_operation_free(operation);
}

static void test_copies(void **state)
{
    (void)state;
    assert_string_equal(repeat_copy(DEVICE, POOL, NULL), "copy 10000 20000 64 0");
    assert_string_equal(repeat_copy(POOL, DEVICE, &own_stream), "copy 20000 10000 64 1");
}

static void test_memory_of_others(void **state)
{
    (void)state;
    static const CUdeviceptr others[] = {FOREIGN, PEER, HOST, MANAGED, 0, 0x70000};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cuMemsetD8_v2_params set = {.dstDevice = others[i], .N = 5};
        assert_string_equal(repeat_copy(DEVICE, others[i], NULL), "");
        assert_string_equal(repeat_copy(others[i], DEVICE, NULL), "");
        assert_string_equal(repeat(ID(cuMemsetD8_v2), &set), "");
    }
}

static void test_streams_of_others(void **state)
{
    (void)state;
    assert_string_equal(repeat_copy(DEVICE, POOL, &other_stream), "");
    assert_string_equal(repeat_copy(DEVICE, POOL, &captured_stream), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_sets_of_rows),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory_of_others),
        cmocka_unit_test(test_streams_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
