/* How caches are flushed: by a copy larger than L2 that begins when the work before it has ended; and what is left on
 * the device where that cannot be made ready. The driver counts what it has handed out. */
#include "cupti/driver.h"
#include "cupti/flush.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MEBIBYTE ((size_t)1 << 20)
#define L2_BYTES (50 * MEBIBYTE)
#define GRANULE  (2 * MEBIBYTE)

enum { SOURCE = 1 << 30 };
static const CUdeviceptr window = (CUdeviceptr)1 << 40;

static char stream, before, event;
static unsigned call, fails_at; /* 0: none fails */
static CUresult error;
static size_t source_bytes, clean_bytes, window_bytes, mapped_bytes, accessible_bytes;
static int handles, events;
static const void *recorded_on, *waiting; /* streams */
static unsigned copies;
static CUDA_MEMCPY3D copied;

static CUresult next(void)
{
    return ++call == fails_at ? error : CUDA_SUCCESS;
}

static CUresult CUDAAPI get_device(CUdevice *device)
{
    *device = 3;
    return next();
}

static CUresult CUDAAPI device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    assert_int_equal(attribute, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    assert_int_equal(device, 3);
    *value = (int)L2_BYTES;
    return next();
}

static CUresult CUDAAPI get_granularity(size_t *out, const CUmemAllocationProp *property,
                                        CUmemAllocationGranularity_flags flags)
{
    (void)flags;
    assert_int_equal(property->location.id, 3);
    *out = GRANULE;
    return next();
}

static CUresult CUDAAPI create_event(CUevent *out, unsigned flags)
{
    (void)flags;
    CUresult result = next();
    if (result == CUDA_SUCCESS) {
        *out = (CUevent)(void *)&event;
        events++;
    }
    return result;
}

static CUresult CUDAAPI destroy_event(CUevent gone)
{
    assert_ptr_equal(gone, &event);
    events--;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI allocate(CUdeviceptr *out, size_t size)
{
    CUresult result = next();
    if (result == CUDA_SUCCESS) {
        *out = SOURCE;
        source_bytes = size;
    }
    return result;
}

static CUresult CUDAAPI free_memory(CUdeviceptr address)
{
    assert_int_equal(address, SOURCE);
    source_bytes = 0;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_memory(CUdeviceptr address, unsigned char value, size_t size)
{
    (void)value;
    assert_int_equal(address, SOURCE);
    clean_bytes = size;
    return next();
}

static CUresult CUDAAPI create(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *property,
                               unsigned long long flags)
{
    (void)flags;
    assert_int_equal(size, GRANULE);
    assert_int_equal(property->location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    CUresult result = next();
    handles += result == CUDA_SUCCESS;
    *out = 7;
    return result;
}

static CUresult CUDAAPI release(CUmemGenericAllocationHandle handle)
{
    assert_int_equal(handle, 7);
    handles--;
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI reserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr address,
                                unsigned long long flags)
{
    (void)alignment;
    (void)address;
    (void)flags;
    CUresult result = next();
    if (result == CUDA_SUCCESS) {
        *out = window;
        window_bytes = size;
    }
    return result;
}

static CUresult CUDAAPI free_reserved(CUdeviceptr address, size_t size)
{
    assert_true(address == window && size == window_bytes && mapped_bytes == 0);
    window_bytes = 0;
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI map(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                            unsigned long long flags)
{
    (void)flags;
    assert_true(handles == 1 && handle == 7 && offset == 0);
    assert_true(address == window + mapped_bytes && mapped_bytes + size <= window_bytes);
    CUresult result = next();
    mapped_bytes += result == CUDA_SUCCESS ? size : 0;
    return result;
}

static CUresult CUDAAPI unmap(CUdeviceptr address, size_t size)
{
    assert_true(address == window && size == mapped_bytes);
    mapped_bytes = 0;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)
{
    assert_true(address == window && count == 1 && access->location.id == 3);
    assert_int_equal(access->flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    accessible_bytes = size;
    return next();
}

static CUresult CUDAAPI record(CUevent of, CUstream on)
{
    assert_ptr_equal(of, &event);
    recorded_on = on;
    return next();
}

static CUresult CUDAAPI wait_event(CUstream on, CUevent of, unsigned flags)
{
    (void)flags;
    assert_ptr_equal(of, &event);
    assert_non_null(recorded_on); /* else there is nothing to wait for */
    waiting = on;
    return next();
}

static CUresult CUDAAPI copy(const CUDA_MEMCPY3D *how, CUstream on)
{
    assert_ptr_equal(on, &stream);
    copies++;
    copied = *how;
    return next();
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuCtxGetDevice_ = get_device,
                                         .cuDeviceGetAttribute_ = device_attribute,
                                         .cuMemGetAllocationGranularity_ = get_granularity,
                                         .cuEventCreate_ = create_event,
                                         .cuEventDestroy_ = destroy_event,
                                         .cuMemAlloc_ = allocate,
                                         .cuMemFree_ = free_memory,
                                         .cuMemsetD8_ = set_memory,
                                         .cuMemCreate_ = create,
                                         .cuMemRelease_ = release,
                                         .cuMemAddressReserve_ = reserve,
                                         .cuMemAddressFree_ = free_reserved,
                                         .cuMemMap_ = map,
                                         .cuMemUnmap_ = unmap,
                                         .cuMemSetAccess_ = set_access,
                                         .cuEventRecord_ = record,
                                         .cuStreamWaitEvent_ = wait_event,
                                         .cuMemcpy3DAsync_ = copy};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    (void)result;
    return "error of the test";
}

static int set_up(void **state)
{
    (void)state;
    call = fails_at = 0;
    error = CUDA_ERROR_UNKNOWN;
    source_bytes = clean_bytes = window_bytes = mapped_bytes = accessible_bytes = 0;
    handles = events = 0;
    recorded_on = waiting = NULL;
    copies = 0;
    return 0;
}

static kprof_flush *make_ready(void)
{
    kprof_flush *flush = NULL;
    assert_int_equal(kprof_flush_open(&flush), KPROF_OK);
    assert_non_null(flush);
    return flush;
}

/* Its source fills L2 with lines that nobody has written since; all of it and of the window is there. */
static void test_copy(void **state)
{
    (void)state;
    kprof_flush *flush = make_ready();
    assert_true(source_bytes > L2_BYTES && clean_bytes == source_bytes);
    assert_true(mapped_bytes == window_bytes && accessible_bytes == window_bytes);
    assert_int_equal(handles, 0); /* the mappings keep the memory */
    assert_int_equal(kprof_flush_run(flush, &stream, &stream), KPROF_OK);
    size_t rows = copied.Height * copied.Depth;
    assert_int_equal(copies, 1);
    assert_true(copied.srcDevice == SOURCE && copied.dstDevice == window);
    assert_true(copied.srcMemoryType == CU_MEMORYTYPE_DEVICE && copied.dstMemoryType == CU_MEMORYTYPE_DEVICE);
    assert_int_equal(copied.WidthInBytes * rows, source_bytes);
    assert_true(copied.srcPitch == copied.WidthInBytes && copied.srcHeight == copied.Height);
    assert_true(copied.dstPitch == GRANULE && copied.dstHeight == copied.Height);
    assert_int_equal(copied.dstPitch * rows, window_bytes);
    kprof_flush_close(flush);
}

static void test_waits_for_the_work_before(void **state)
{
    (void)state;
    kprof_flush *flush = make_ready();
    assert_int_equal(kprof_flush_run(flush, &stream, &stream), KPROF_OK);
    assert_null(recorded_on); /* a stream is in order */
    assert_int_equal(kprof_flush_run(flush, &stream, &before), KPROF_OK);
    assert_ptr_equal(recorded_on, &before);
    assert_ptr_equal(waiting, &stream);
    kprof_flush_close(flush);
}

static void test_run_fails(void **state)
{
    (void)state;
    enum { STEPS = 3 }; /* record, wait, copy */
    kprof_flush *flush = make_ready();
    for (unsigned i = 1; i <= STEPS; i++) {
        copies = 0;
        fails_at = call + i;
        assert_int_equal(kprof_flush_run(flush, &stream, &before), KPROF_INTERNAL);
        assert_int_equal(copies, i == STEPS);
    }
    kprof_flush_close(flush);
}

/* Whatever fails, nothing is left on the device. */
static void assert_undone(kprof_status expected)
{
    kprof_flush *flush = make_ready();
    unsigned calls = call;
    kprof_flush_close(flush);
    for (unsigned i = 1; i <= calls; i++) {
        CUresult as_before = error;
        (void)set_up(NULL);
        error = as_before;
        fails_at = i;
        assert_int_equal(kprof_flush_open(&flush), expected);
        assert_null(flush);
        assert_int_equal(call, i); /* what comes after is not tried */
        assert_true(source_bytes == 0 && window_bytes == 0 && mapped_bytes == 0);
        assert_true(handles == 0 && events == 0);
    }
}

static void test_not_possible(void **state)
{
    (void)state;
    assert_undone(KPROF_UNSUPPORTED);
}

static void test_no_space(void **state)
{
    (void)state;
    error = CUDA_ERROR_OUT_OF_MEMORY;
    assert_undone(KPROF_NO_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_copy, set_up),      cmocka_unit_test_setup(test_waits_for_the_work_before, set_up),
        cmocka_unit_test_setup(test_run_fails, set_up), cmocka_unit_test_setup(test_not_possible, set_up),
        cmocka_unit_test_setup(test_no_space, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
