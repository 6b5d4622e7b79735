/* How caches are flushed: by a copy larger than L2 that begins when the work before it has ended; and what is left on
 * the device where that cannot be made ready. The driver counts what it has handed out. */
#include "cupti/driver.h"
#include "cupti/flush.h"
#include "cupti/resources.h"
#include "test.h"

#include <string.h>

#define MEBIBYTE ((size_t)1 << 20)
#define L2_BYTES (50 * MEBIBYTE)
#define SMALL_L2 (4 * MEBIBYTE)
#define GRANULE  (2 * MEBIBYTE)

enum { SOURCE = 1 << 30 };
static const CUdeviceptr window = (CUdeviceptr)1 << 40;

static char stream, before, event;
static unsigned call, fails_at; /* 0: none fails */
static CUresult error;
static size_t source_bytes, clean_bytes, window_bytes, mapped_bytes, accessible_bytes;
static int handles, events;
static const void *recorded_on, *waiting; /* streams */
static unsigned copies, dirtied;          /* to the window, and within the source */
static CUDA_MEMCPY3D copied;
static size_t l2_bytes;
static const void *synchronized;
static bool has_resources, refuses, cannot_compile;
static unsigned opened, closed, emptied, compiled, links, loaded, modules;

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
    assert_int_equal(device, 3);
    *value = attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE   ? (int)l2_bytes
             : attribute == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID ? 1
             : attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID    ? 0x1b
                                                              : 2;
    return next();
}

static CUresult CUDAAPI get_granularity(size_t *out, const CUmemAllocationProp *property,
                                        CUmemAllocationGranularity_flags flags)
{
    assert_int_equal(property->location.id, 3);
    *out = GRANULE;
    return next();
}

static CUresult CUDAAPI create_event(CUevent *out, unsigned flags)
{
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
    assert_int_equal(address, SOURCE);
    clean_bytes = size;
    return next();
}

static CUresult CUDAAPI create(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *property,
                               unsigned long long flags)
{
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
    assert_ptr_equal(of, &event);
    assert_non_null(recorded_on); /* else there is nothing to wait for */
    waiting = on;
    return next();
}

static CUresult CUDAAPI copy(const CUDA_MEMCPY3D *how, CUstream on)
{
    assert_ptr_equal(on, &stream);
    copied = *how;
    if (how->dstDevice != SOURCE) {
        copies++;
        return next();
    }
    assert_int_equal(emptied, dirtied + 1); /* else it would be written back */
    CUresult result = next();
    dirtied += result == CUDA_SUCCESS;
    return result;
}

static CUresult CUDAAPI synchronize(CUstream on)
{
    synchronized = on;
    return next();
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI create_link(unsigned count, CUjit_option *options, void **values, CUlinkState *out)
{
    assert_int_equal(count, 0);
    *out = (CUlinkState)(void *)&stream;
    links++;
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI add_data(CUlinkState link, CUjitInputType type, void *data, size_t size, const char *name,
                                 unsigned count, CUjit_option *options, void **values)
{
    assert_int_equal(count, 0);
    assert_int_equal(type, CU_JIT_INPUT_PTX);
    assert_int_equal(strlen(data) + 1, size);
    return cannot_compile ? CUDA_ERROR_JIT_COMPILER_NOT_FOUND : CUDA_SUCCESS;
}

static CUresult CUDAAPI complete_link(CUlinkState link, void **out, size_t *size)
{
    static char code[] = "code";
    compiled++;
    *out = code;
    *size = sizeof code;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI destroy_link(CUlinkState link)
{
    links--;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI load(CUmodule *out, const void *image)
{
    assert_string_equal(image, "code");
    CUresult result = next();
    *out = (CUmodule)(void *)&event;
    loaded += result == CUDA_SUCCESS;
    modules += result == CUDA_SUCCESS;
    return result;
}

static CUresult CUDAAPI unload(CUmodule gone)
{
    assert_ptr_equal(gone, &event);
    modules--;
    return next();
}

kprof_resources *kprof_resources_open(const char *path, const kprof_bus_place *place, const char **reason)
{
    assert_string_equal(path, "/dev/nvidiactl");
    assert_true(place->domain == 1 && place->bus == 0x1b && place->slot == 2);
    *reason = "there are none in this test";
    opened++;
    return has_resources ? (kprof_resources *)(void *)&event : NULL;
}

bool kprof_resources_empty_l2(kprof_resources *resources)
{
    assert_ptr_equal(resources, &event);
    assert_ptr_equal(synchronized, &stream); /* L2 is emptied at once, whatever the stream is at */
    emptied += !refuses;
    return !refuses;
}

void kprof_resources_close(kprof_resources *resources)
{
    closed += resources != NULL;
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
                                         .cuMemcpy3DAsync_ = copy,
                                         .cuStreamSynchronize_ = synchronize,
                                         .cuLinkCreate_ = create_link,
                                         .cuLinkAddData_ = add_data,
                                         .cuLinkComplete_ = complete_link,
                                         .cuLinkDestroy_ = destroy_link,
                                         .cuModuleLoadData_ = load,
                                         .cuModuleUnload_ = unload};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    return "error of the test";
}

static int set_up(void **state)
{
    call = fails_at = 0;
    error = CUDA_ERROR_UNKNOWN;
    source_bytes = clean_bytes = window_bytes = mapped_bytes = accessible_bytes = 0;
    handles = events = 0;
    recorded_on = waiting = NULL;
    copies = dirtied = 0;
    l2_bytes = L2_BYTES;
    synchronized = NULL;
    has_resources = true;
    refuses = cannot_compile = false;
    opened = closed = emptied = compiled = links = loaded = modules = 0;
    return 0;
}

static kprof_flush *make_ready(bool empties)
{
    kprof_flush *flush = NULL;
    assert_int_equal(kprof_flush_open(&flush), KPROF_OK);
    assert_non_null(flush);
    if (empties)
        kprof_flush_prepare_to_empty(flush);
    return flush;
}

/* Its source fills L2 with lines that nobody has written since; all of it and of the window is there. */
TEST(test_copy)
{
    kprof_flush *flush = make_ready(false);
    assert_true(source_bytes > L2_BYTES && clean_bytes == source_bytes);
    assert_true(mapped_bytes == window_bytes && accessible_bytes == window_bytes);
    assert_int_equal(handles, 0); /* the mappings keep the memory */
    assert_int_equal(kprof_flush_run(flush, &stream), KPROF_OK);
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

TEST(test_waits_for_the_work_before)
{
    kprof_flush *flush = make_ready(false);
    assert_int_equal(kprof_flush_run(flush, &stream), KPROF_OK);
    assert_null(waiting);
    assert_int_equal(kprof_flush_behind(flush, &before), KPROF_OK);
    assert_ptr_equal(recorded_on, &before);
    recorded_on = &event; /* the stream is destroyed */
    assert_int_equal(kprof_flush_run(flush, &stream), KPROF_OK);
    assert_ptr_equal(recorded_on, &event);
    assert_ptr_equal(waiting, &stream);
    kprof_flush_close(flush);
}

TEST(test_run_fails)
{
    enum { STEPS = 2 }; /* wait, copy */
    kprof_flush *flush = make_ready(false);
    fails_at = call + 1;
    assert_int_equal(kprof_flush_behind(flush, &before), KPROF_INTERNAL);
    assert_int_equal(kprof_flush_behind(flush, &before), KPROF_OK);
    for (unsigned i = 1; i <= STEPS; i++) {
        copies = 0;
        fails_at = call + i;
        assert_int_equal(kprof_flush_run(flush, &stream), KPROF_INTERNAL);
        assert_int_equal(copies, i == STEPS);
    }
    kprof_flush_close(flush);
}

/* The driver empties L2 behind the work of the stream, and loads code once more. */
TEST(test_empty)
{
    kprof_flush *flush = make_ready(true);
    for (unsigned i = 1; i <= 3; i++) {
        synchronized = NULL;
        assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
        assert_true(emptied == i && loaded == i && dirtied == i);
    }
    kprof_flush_prepare_to_empty(flush); /* once more does nothing */
    assert_null(kprof_flush_shortfall(flush));
    assert_true(copies == 0 && opened == 1 && compiled == 1 && links == 0 && modules == 0);
    kprof_flush_close(flush);
    assert_int_equal(closed, 1);
}

/* As many lines as ncu leaves dirty in L2, of memory that nothing else reads. */
TEST(test_leaves_dirty_lines)
{
    kprof_flush *flush = make_ready(true);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_int_equal(copied.WidthInBytes * copied.Height * copied.Depth, 2400 << 10);
    assert_true(copied.WidthInBytes < copied.srcPitch && copied.srcPitch == copied.dstPitch);
    assert_true(copied.srcDevice >= copied.dstDevice + copied.dstPitch * copied.Height);
    assert_true(copied.srcDevice + copied.srcPitch * copied.Height <= SOURCE + source_bytes);
    fails_at = call + 4; /* behind the stream's end, and loading and unloading code */
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_INTERNAL);
    assert_true(dirtied == 1 && emptied == 2);
    kprof_flush_close(flush);
}

TEST(test_leaves_few_dirty_lines_in_a_small_cache)
{
    l2_bytes = SMALL_L2;
    kprof_flush *flush = make_ready(true);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_int_equal(dirtied, 1);
    assert_true(copied.WidthInBytes * copied.Height <= SMALL_L2 / 16);
    kprof_flush_close(flush);
}

/* Where the driver does not empty L2, it is flushed by copying, and only that. */
TEST(test_cannot_empty)
{
    has_resources = false;
    cannot_compile = true;
    kprof_flush *flush = make_ready(true);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_true(copies == 2 && emptied == 0 && dirtied == 0 && opened == 1 && loaded == 0 && links == 0);
    assert_string_equal(kprof_flush_shortfall(flush),
                        "L2 was flushed by copying, not emptied: there are none in this test; "
                        "caches of instructions were not emptied: error of the test");
    kprof_flush_close(flush);
}

TEST(test_refused_later)
{
    kprof_flush *flush = make_ready(true);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    refuses = true;
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_true(copies == 1 && emptied == 1 && loaded == 2);
    assert_string_equal(kprof_flush_shortfall(flush),
                        "L2 was flushed by copying, not emptied: the driver's kernel module refuses it");
    refuses = false;
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_true(copies == 2 && emptied == 1 && dirtied == 1 && opened == 1 && closed == 1);
    kprof_flush_close(flush);
}

TEST(test_code_cannot_be_loaded)
{
    kprof_flush *flush = make_ready(true);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    fails_at = call + 2; /* behind the stream's end */
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    assert_true(emptied == 3 && loaded == 1);
    assert_string_equal(kprof_flush_shortfall(flush), "caches of instructions were not emptied: error of the test");
    kprof_flush_close(flush);
}

TEST(test_stream_fails)
{
    kprof_flush *flush = make_ready(true);
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_OK);
    fails_at = call + 1;
    assert_int_equal(kprof_flush_empty(flush, &stream), KPROF_INTERNAL);
    assert_int_equal(emptied, 1);
    kprof_flush_close(flush);
}

/* Whatever fails, nothing is left on the device. */
static void assert_undone(kprof_status expected)
{
    kprof_flush *flush = make_ready(false);
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

TEST(test_not_possible)
{
    assert_undone(KPROF_UNSUPPORTED);
}

TEST(test_no_space)
{
    error = CUDA_ERROR_OUT_OF_MEMORY;
    assert_undone(KPROF_NO_MEMORY);
}

AROUND_EACH(set_up, NULL)
