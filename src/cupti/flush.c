/* A copy within the device, larger than L2, whose source is real memory and whose destination is one small row, mapped
 * many times in a row: nearly all lines that it brings into L2 are clean. */
#include "cupti/flush.h"

#include "core/log.h"
#include "cupti/compile.h"
#include "cupti/driver.h"
#include "cupti/resources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The source is this large, in percent of L2. With less, some of the application's dirty lines stayed on GH100. */
#define SOURCE_PCT 110
/* The copy leaves this much dirty. Each row is a mapping, which takes 30 us to make. */
#define ROW_BYTES ((size_t)256 << 10)
/* Copy engines work on slices side by side: the copy takes 0.06 ms, and 0.1 ms in one slice or in slices of 64 rows. */
#define SLICE_ROWS 8
/* ncu 2025.3 leaves 2,400 KiB of GH100's L2 dirty, a twentieth: during a kernel that writes nothing, DRAM still writes
 * as much. kprof copies onto the first part of this many rows of the source from the rows behind them. */
#define DIRTY_ROWS      10
#define DIRTY_PART      20
#define DIRTY_ROW_BYTES ((size_t)240 << 10)
#define DEVICE_FILE     "/dev/nvidiactl"

/* Its code is never run. The driver empties the caches of instructions and constants after it has loaded code. */
static const char ptx[] =
    ".version 6.5\n.target sm_75\n.address_size 64\n.visible .entry kprof_nothing()\n{\nret;\n}\n";

struct kprof_flush {
    const kprof_driver_api *driver;
    CUdeviceptr source; /* [rows] of ROW_BYTES */
    CUdeviceptr window; /* [rows] of granule_bytes, all the same memory */
    size_t slices, rows, granule_bytes, mapped_rows;
    CUevent event;              /* of the work that flushes wait for */
    bool waits;                 /* there is some */
    kprof_resources *resources; /* NULL: L2 is flushed by copying */
    void *code;                 /* compiled from `ptx`; NULL: caches of instructions are left alone */
    bool prepared;              /* to empty */
    char shortfall[400];        /* "" where emptying does all that it is to do */
};

static CUresult map_window(kprof_flush *flush, const CUmemAllocationProp *property)
{
    const kprof_driver_api *driver = flush->driver;
    CUmemGenericAllocationHandle memory;
    size_t window_bytes = flush->rows * flush->granule_bytes;
    CUresult result = driver->cuMemCreate_(&memory, flush->granule_bytes, property, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuMemAddressReserve_(&flush->window, window_bytes, 0, 0, 0);
    while (flush->mapped_rows < flush->rows && result == CUDA_SUCCESS) {
        CUdeviceptr row = flush->window + flush->mapped_rows * flush->granule_bytes;
        result = driver->cuMemMap_(row, flush->granule_bytes, 0, memory, 0);
        flush->mapped_rows += result == CUDA_SUCCESS;
    }
    (void)driver->cuMemRelease_(memory); /* the mappings keep it */
    CUmemAccessDesc access = {.location = property->location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return result == CUDA_SUCCESS ? driver->cuMemSetAccess_(flush->window, window_bytes, &access, 1) : result;
}

static CUresult prepare(kprof_flush *flush)
{
    const kprof_driver_api *driver = flush->driver;
    CUdevice device;
    int l2_bytes = 0;
    CUresult result = driver->cuCtxGetDevice_(&device);
    KPROF_THEN(result, driver->cuDeviceGetAttribute_(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device));
    if (result != CUDA_SUCCESS)
        return result;
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    flush->slices = (size_t)l2_bytes / 100 * SOURCE_PCT / (SLICE_ROWS * ROW_BYTES) + 1;
    flush->rows = flush->slices * SLICE_ROWS;
    result = driver->cuMemGetAllocationGranularity_(&flush->granule_bytes, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    KPROF_THEN(result, driver->cuEventCreate_(&flush->event, CU_EVENT_DISABLE_TIMING));
    KPROF_THEN(result, driver->cuMemAlloc_(&flush->source, flush->rows * ROW_BYTES));
    KPROF_THEN(result, driver->cuMemsetD8_(flush->source, 0, flush->rows * ROW_BYTES));
    return result == CUDA_SUCCESS ? map_window(flush, &property) : result;
}

/* Undo what was made before the rest failed. */
static void undo(const kprof_flush *flush)
{
    const kprof_driver_api *driver = flush->driver;
    if (flush->mapped_rows > 0)
        (void)driver->cuMemUnmap_(flush->window, flush->mapped_rows * flush->granule_bytes);
    if (flush->window)
        (void)driver->cuMemAddressFree_(flush->window, flush->rows * flush->granule_bytes);
    if (flush->source)
        (void)driver->cuMemFree_(flush->source);
    if (flush->event)
        (void)driver->cuEventDestroy_(flush->event);
}

static CUresult find_place(const kprof_driver_api *driver, kprof_bus_place *out)
{
    static const CUdevice_attribute attributes[] = {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                                    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID};
    CUdevice device;
    int values[3];
    CUresult result = driver->cuCtxGetDevice_(&device);
    for (size_t i = 0; i < 3 && result == CUDA_SUCCESS; i++)
        result = driver->cuDeviceGetAttribute_(&values[i], attributes[i], device);
    if (result == CUDA_SUCCESS)
        *out = (kprof_bus_place){(uint32_t)values[0], (uint32_t)values[1], (uint32_t)values[2]};
    return result;
}

static void note_shortfall(kprof_flush *flush, const char *what, const char *why)
{
    size_t length = strlen(flush->shortfall);
    snprintf(flush->shortfall + length, sizeof flush->shortfall - length, "%s%s: %s", length > 0 ? "; " : "", what,
             why);
}

static void copy_from_now_on(kprof_flush *flush, const char *why)
{
    kprof_resources_close(flush->resources);
    flush->resources = NULL;
    note_shortfall(flush, "L2 was flushed by copying, not emptied", why);
}

static void leave_code_from_now_on(kprof_flush *flush, CUresult result)
{
    free(flush->code);
    flush->code = NULL;
    note_shortfall(flush, "caches of instructions were not emptied", kprof_driver_error(result));
}

void kprof_flush_prepare_to_empty(kprof_flush *flush)
{
    kprof_bus_place place;
    if (flush->prepared)
        return;
    flush->prepared = true;
    const char *reason = "the GPU's place is not known";
    if (find_place(flush->driver, &place) == CUDA_SUCCESS)
        flush->resources = kprof_resources_open(DEVICE_FILE, &place, &reason);
    if (!flush->resources)
        copy_from_now_on(flush, reason);
    CUresult result = kprof_compile(flush->driver, ptx, &flush->code);
    if (result != CUDA_SUCCESS)
        leave_code_from_now_on(flush, result);
}

kprof_status kprof_flush_open(kprof_flush **out)
{
    *out = NULL;
    kprof_flush *flush = calloc(1, sizeof *flush);
    if (!flush)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to flush caches with");
    kprof_status status = kprof_driver_load(&flush->driver);
    CUresult result = status == KPROF_OK ? prepare(flush) : CUDA_SUCCESS;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        status = kprof_fail(KPROF_NO_MEMORY, "the device has no space for the %zu bytes that flush its caches",
                            flush->rows * ROW_BYTES);
    else if (result != CUDA_SUCCESS)
        status = kprof_fail(KPROF_UNSUPPORTED, "the caches cannot be flushed: %s", kprof_driver_error(result));
    if (status != KPROF_OK) {
        if (result != CUDA_SUCCESS)
            undo(flush);
        free(flush);
        return status;
    }
    *out = flush;
    return KPROF_OK;
}

kprof_status kprof_flush_behind(kprof_flush *flush, void *stream)
{
    CUresult result = flush->driver->cuEventRecord_(flush->event, stream);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "flushing the caches: %s", kprof_driver_error(result));
    flush->waits = true;
    return KPROF_OK;
}

static kprof_status copy_rows(const kprof_flush *flush, CUDA_MEMCPY3D *copy, void *stream)
{
    copy->srcMemoryType = copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy->srcPitch = ROW_BYTES;
    copy->srcHeight = copy->dstHeight = copy->Height;
    CUresult result = flush->driver->cuMemcpy3DAsync_(copy, stream);
    return result == CUDA_SUCCESS ? KPROF_OK
                                  : kprof_fail(KPROF_INTERNAL, "flushing the caches: %s", kprof_driver_error(result));
}

kprof_status kprof_flush_run(kprof_flush *flush, void *stream)
{
    CUDA_MEMCPY3D copy = {
        .srcDevice = flush->source,
        .dstDevice = flush->window,
        .dstPitch = flush->granule_bytes,
        .WidthInBytes = ROW_BYTES,
        .Height = SLICE_ROWS,
        .Depth = flush->slices,
    };
    CUresult result = flush->waits ? flush->driver->cuStreamWaitEvent_(stream, flush->event, 0) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "flushing the caches: %s", kprof_driver_error(result));
    return copy_rows(flush, &copy, stream);
}

static kprof_status leave_dirty_lines(const kprof_flush *flush, void *stream)
{
    const size_t part = flush->rows / DIRTY_PART, rows = part < DIRTY_ROWS ? part : DIRTY_ROWS;
    CUDA_MEMCPY3D copy = {
        .srcDevice = flush->source + rows * ROW_BYTES,
        .dstDevice = flush->source,
        .dstPitch = ROW_BYTES,
        .WidthInBytes = DIRTY_ROW_BYTES,
        .Height = rows,
        .Depth = 1,
    };
    return rows > 0 ? copy_rows(flush, &copy, stream) : KPROF_OK;
}

static void empty_code_caches(kprof_flush *flush)
{
    CUmodule module;
    if (!flush->code)
        return;
    CUresult result = flush->driver->cuModuleLoadData_(&module, flush->code);
    KPROF_THEN(result, flush->driver->cuModuleUnload_(module));
    if (result != CUDA_SUCCESS)
        leave_code_from_now_on(flush, result);
}

kprof_status kprof_flush_empty(kprof_flush *flush, void *stream)
{
    kprof_status status = flush->resources ? KPROF_OK : kprof_flush_run(flush, stream);
    CUresult result = flush->driver->cuStreamSynchronize_(stream);
    if (status != KPROF_OK || result != CUDA_SUCCESS)
        return status != KPROF_OK ? status : kprof_fail(KPROF_INTERNAL, "flushing: %s", kprof_driver_error(result));
    if (flush->resources && !kprof_resources_empty_l2(flush->resources)) {
        copy_from_now_on(flush, "the driver's kernel module refuses it");
        return kprof_flush_empty(flush, stream);
    }
    empty_code_caches(flush);
    return flush->resources ? leave_dirty_lines(flush, stream) : KPROF_OK;
}

const char *kprof_flush_shortfall(const kprof_flush *flush)
{
    return flush->shortfall[0] ? flush->shortfall : NULL;
}

void kprof_flush_close(kprof_flush *flush)
{
    if (!flush)
        return;
    kprof_resources_close(flush->resources);
    free(flush->code);
    free(flush);
}
