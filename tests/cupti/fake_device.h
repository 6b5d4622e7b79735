/* A driver whose device memory is the host's and whose kernels are those of blocks.cu, in C. What is submitted runs at
 * once, or waits while the device is busy. */
#pragma once

#include "core/memory.h"
#include "cupti/activities.h"
#include "cupti/driver.h"

#include "sim/clock.h"
#include "test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_QUEUE 16

/* As blocks.cu has it. */
typedef struct fake_block {
    uint64_t address, backing, pattern[2];
    uint32_t bytes, state;
} fake_block;

enum { FAKE_UNIFORM = 1, FAKE_CHANGED = 2, FAKE_LOST = 4, FAKE_BLOCK_BYTES = 65536 };
enum { FAKE_PUT_BACK_IN_GROUPS = 2, FAKE_GROUP = 256 };
enum { FAKE_SCAN, FAKE_KEEP, FAKE_COMPARE, FAKE_FOLLOW, FAKE_COPY, FAKE_SET, FAKE_KERNELS };

const char *kprof_driver_error(CUresult result)
{
    return "error of the test";
}

/* Nothing is recorded. */
void kprof_activities_leave_out(void *context, void *stream) {}

typedef struct fake_launch {
    int kernel;
    fake_block *blocks;
    unsigned count, repair;
    unsigned char *groups;
} fake_launch;

typedef struct fake_device {
    bool busy;         /* of the application's work that its stream waits for: nothing runs */
    bool waits;        /* the stream waits for an event of the application's */
    size_t free_bytes; /* of the device, as it tells */
    size_t host_bytes; /* that the machine has left; 0: nobody knows */
    size_t taken_bytes;
    unsigned chunks;
    CUresult alloc_result, info_result, launch_result, module_result, query_result, read_result, write_result;
    unsigned launches[FAKE_KERNELS], blocks[FAKE_KERNELS]; /* blocks: of those launches */
    CUstreamCaptureMode mode;
    bool streams, events, modules; /* there are any */
    unsigned lanes, waited;        /* further streams, and how often one waited */
    const void *recorded;          /* the last stream with an event */
    void *pinned;                  /* the first: to where copies do not wait */
    unsigned pinned_count;
    CUresult stream_result; /* of making one */
    unsigned follows;       /* in the application's stream launches of kprof's are behind work that goes on: */
    fake_launch following[FAKE_QUEUE];
    fake_launch queue[FAKE_QUEUE];
    unsigned queued;
} fake_device;

static fake_device fake;
static const char *const fake_names[FAKE_KERNELS] = {"kprof_scan",   "kprof_keep", "kprof_compare",
                                                     "kprof_follow", "kprof_copy", "kprof_set"};
static char fake_functions[FAKE_KERNELS], fake_stream, fake_lanes[8], fake_event, fake_module;
static char fake_app_stream; /* one of the application's, which it has kprof's own work in */

size_t kprof_memory_available_bytes(const char *root)
{
    assert_string_equal(root, "");
    return fake.host_bytes;
}

static inline void fake_reset(void)
{
    fake = (fake_device){.free_bytes = (size_t)40 << 30, .mode = CU_STREAM_CAPTURE_MODE_GLOBAL};
}

/* Kernels */

static inline bool fake_in_words(const fake_block *b)
{
    return ((b->address | b->backing | b->bytes) & 15) == 0;
}

static inline void *fake_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline void fake_scan(fake_block *b)
{
    const uint64_t *words = fake_at(b->address);
    bool same = fake_in_words(b);
    b->pattern[0] = same ? words[0] : 0;
    b->pattern[1] = same ? words[1] : 0;
    for (size_t i = 0; same && i < b->bytes / 8; i++)
        same = words[i] == b->pattern[i % 2];
    b->state = same ? FAKE_UNIFORM : 0;
}

static inline void fake_keep(fake_block *b)
{
    if (b->backing)
        memcpy(fake_at(b->backing), fake_at(b->address), b->bytes);
}

static inline void fake_compare(fake_block *b, unsigned repair, unsigned char *group)
{
    unsigned char *here = fake_at(b->address);
    const unsigned char *kept = b->backing ? fake_at(b->backing) : NULL;
    if (!kept && !fake_in_words(b))
        return;
    for (size_t i = 0; i < b->bytes; i++) {
        unsigned char before = kept ? kept[i] : ((const unsigned char *)b->pattern)[i % 16];
        if (here[i] == before)
            continue;
        b->state |= FAKE_CHANGED;
        if (group)
            *group = 1;
        if (repair)
            here[i] = before;
    }
}

/* What has changed becomes what is kept. Where nothing is, it is lost. */
static inline void fake_follow(fake_block *b)
{
    const uint64_t *words = fake_at(b->address);
    if (b->backing)
        memcpy(fake_at(b->backing), fake_at(b->address), b->bytes);
    for (size_t i = 0; !b->backing && fake_in_words(b) && i < b->bytes / 8; i++)
        if (words[i] != b->pattern[i % 2])
            b->state |= FAKE_LOST;
}

static inline void fake_run(const fake_launch *launch)
{
    for (unsigned i = 0; i < launch->count; i++) {
        if (launch->kernel == FAKE_SCAN)
            fake_scan(&launch->blocks[i]);
        else if (launch->kernel == FAKE_KEEP)
            fake_keep(&launch->blocks[i]);
        else if (launch->kernel == FAKE_FOLLOW)
            fake_follow(&launch->blocks[i]);
        else if (launch->repair != FAKE_PUT_BACK_IN_GROUPS || launch->groups[i / FAKE_GROUP])
            fake_compare(&launch->blocks[i], launch->repair, launch->groups ? &launch->groups[i / FAKE_GROUP] : NULL);
    }
}

static inline bool fake_is_held(void)
{
    return fake.busy && fake.waits;
}

static inline void fake_drain(void)
{
    for (unsigned i = 0; i < fake.queued; i++)
        fake_run(&fake.queue[i]);
    fake.queued = 0;
    fake.waits = false;
}

/* The work that kprof follows has ended. */
static inline void fake_end_followed(void)
{
    for (unsigned i = 0; i < fake.follows; i++)
        fake_run(&fake.following[i]);
    fake.follows = 0;
}

/* The driver */

static CUresult CUDAAPI fake_get_device(CUdevice *device)
{
    *device = 3;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    assert_int_equal(attribute, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    assert_int_equal(device, 3);
    *value = 2;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_load_module(CUmodule *module, const void *image)
{
    for (int i = 0; i < FAKE_KERNELS; i++)
        assert_non_null(strstr(image, fake_names[i]));
    fake.modules = fake.module_result == CUDA_SUCCESS;
    *module = fake.modules ? (CUmodule)(void *)&fake_module : NULL;
    return fake.module_result;
}

static CUresult CUDAAPI fake_unload_module(CUmodule module)
{
    assert_ptr_equal(module, &fake_module);
    fake.modules = false;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_get_function(CUfunction *function, CUmodule module, const char *name)
{
    assert_ptr_equal(module, &fake_module);
    int i = 0;
    while (strcmp(fake_names[i], name) != 0)
        i++;
    *function = (CUfunction)(void *)&fake_functions[i];
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_create_event(CUevent *event, unsigned flags)
{
    assert_int_equal(flags, CU_EVENT_DISABLE_TIMING);
    fake.events = true;
    *event = (CUevent)(void *)&fake_event;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_destroy_event(CUevent event)
{
    assert_ptr_equal(event, &fake_event);
    fake.events = false;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_create_stream(CUstream *stream, unsigned flags)
{
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    const bool is_first = !fake.streams;
    fake.streams = fake.streams || fake.stream_result == CUDA_SUCCESS;
    *stream = fake.stream_result != CUDA_SUCCESS ? NULL
              : is_first                         ? (CUstream)(void *)&fake_stream
                                                 : (CUstream)(void *)&fake_lanes[fake.lanes++];
    return fake.stream_result;
}

static CUresult CUDAAPI fake_destroy_stream(CUstream stream)
{
    if ((void *)stream == &fake_stream)
        fake.streams = false;
    else
        fake.lanes--;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_record(CUevent event, CUstream stream)
{
    assert_ptr_equal(event, &fake_event);
    assert_true((void *)stream != &fake_stream || fake.lanes > 0);
    fake.recorded = stream;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_wait_event(CUstream stream, CUevent event, unsigned flags)
{
    assert_ptr_equal(event, &fake_event);
    assert_ptr_not_equal(stream, fake.recorded);
    fake.waits = true;
    fake.waited++;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_query_event(CUevent event)
{
    assert_ptr_equal(event, &fake_event);
    return fake.follows > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* A caller that asked while the device was busy has waited for a second since. */
static CUresult CUDAAPI fake_query(CUstream stream)
{
    assert_ptr_equal(stream, &fake_stream);
    if (fake.query_result != CUDA_SUCCESS)
        return fake.query_result;
    if (fake_is_held()) {
        sim_clock_advance_s(1);
        return CUDA_ERROR_NOT_READY;
    }
    fake_drain();
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_alloc_host(void **out, size_t size)
{
    *out = malloc(size);
    fake.pinned = fake.pinned ? fake.pinned : *out;
    fake.pinned_count += *out != NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult CUDAAPI fake_free_host(void *host)
{
    assert_true(fake.pinned_count-- > 0);
    free(host);
    fake.pinned = host == fake.pinned ? NULL : fake.pinned;
    return CUDA_SUCCESS;
}

/* Copies of pageable host memory wait without a limit. */
static CUresult CUDAAPI fake_read(void *host, CUdeviceptr device, size_t size, CUstream stream)
{
    assert_ptr_equal(stream, &fake_stream);
    if (host == fake.pinned && fake_is_held())
        return CUDA_SUCCESS;
    assert_false(fake_is_held());
    fake_drain();
    if (fake.read_result == CUDA_SUCCESS)
        memcpy(host, fake_at(device), size);
    return fake.read_result;
}

static CUresult CUDAAPI fake_write(CUdeviceptr device, const void *host, size_t size, CUstream stream)
{
    assert_ptr_equal(stream, &fake_stream);
    assert_false(fake_is_held());
    fake_drain();
    if (fake.write_result == CUDA_SUCCESS)
        memcpy(fake_at(device), host, size);
    return fake.write_result;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
/* A copy or a set runs at once. */
static inline void fake_transfer(int kernel, void **arguments)
{
    unsigned char *to = fake_at(*(const uint64_t *)arguments[0]);
    size_t pitch = *(const size_t *)arguments[1], width = *(const size_t *)arguments[4];
    size_t height = *(const size_t *)arguments[5];
    if (kernel == FAKE_COPY) {
        const unsigned char *from = fake_at(*(const uint64_t *)arguments[2]);
        for (size_t row = 0; row < height; row++)
            memcpy(to + row * pitch, from + row * *(const size_t *)arguments[3], width);
        return;
    }
    unsigned bytes = *(const unsigned *)arguments[3];
    for (size_t i = 0; i < width * height; i++)
        memcpy(to + i / width * pitch + i % width * bytes, arguments[2], bytes); /* the low bytes come first */
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI fake_launch_kernel(CUfunction function, unsigned grid, unsigned grid_y, unsigned grid_z,
                                           unsigned threads, unsigned block_y, unsigned block_z, unsigned shared,
                                           CUstream stream, void **arguments, void **extra)
{
    int kernel = (int)((char *)(void *)function - fake_functions);
    if (kernel >= FAKE_COPY) {
        fake.launches[kernel]++;
        if (fake.launch_result == CUDA_SUCCESS)
            fake_transfer(kernel, arguments);
        return fake.launch_result;
    }
    const bool follows = stream == (CUstream)(void *)&fake_app_stream;
    fake_launch launch = {kernel, fake_at(*(const CUdeviceptr *)arguments[0]), *(const unsigned *)arguments[1],
                          *(const unsigned *)arguments[2],
                          kernel == FAKE_COMPARE ? fake_at(*(const CUdeviceptr *)arguments[3]) : NULL};
    assert_true(follows ? kernel == FAKE_FOLLOW || (kernel == FAKE_COMPARE && launch.repair == 0)
                        : kernel != FAKE_FOLLOW);
    assert_true(grid >= 1 && grid_y == 1 && grid_z == 1 && threads == 256 && block_y == 1 && block_z == 1);
    assert_true(shared == 0 && !extra && launch.count >= grid);
    assert_true(follows || stream == (CUstream)(void *)&fake_stream);
    assert_non_null(launch.blocks); /* else the application's context would be in error */
    if (fake.launch_result != CUDA_SUCCESS)
        return fake.launch_result;
    fake.launches[kernel]++;
    fake.blocks[kernel] += launch.count;
    if (follows) {
        assert_true(fake.follows < FAKE_QUEUE);
        fake.following[fake.follows++] = launch;
        return CUDA_SUCCESS;
    }
    assert_true(fake.queued < FAKE_QUEUE);
    fake.queue[fake.queued++] = launch;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_alloc(CUdeviceptr *out, size_t size)
{
    size_t *header = aligned_alloc(256, (size + 511) / 256 * 256);
    assert_non_null(header);
    *out = (CUdeviceptr)(uintptr_t)((char *)header + 256);
    if (fake.alloc_result != CUDA_SUCCESS) {
        free(header);
        return fake.alloc_result;
    }
    *header = size;
    fake.taken_bytes += size;
    fake.free_bytes -= size;
    fake.chunks++;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_free(CUdeviceptr address)
{
    size_t *header = fake_at(address - 256);
    fake.taken_bytes -= *header;
    fake.free_bytes += *header;
    fake.chunks--;
    free(header);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI fake_get_info(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = fake.free_bytes;
    *total_bytes = (size_t)64 << 30;
    return fake.info_result;
}

static CUresult CUDAAPI fake_exchange_mode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = fake.mode;
    fake.mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static inline kprof_driver_api fake_api(void)
{
    return (kprof_driver_api){.cuCtxGetDevice_ = fake_get_device,
                              .cuDeviceGetAttribute_ = fake_device_attribute,
                              .cuModuleLoadData_ = fake_load_module,
                              .cuModuleUnload_ = fake_unload_module,
                              .cuModuleGetFunction_ = fake_get_function,
                              .cuEventCreate_ = fake_create_event,
                              .cuEventDestroy_ = fake_destroy_event,
                              .cuEventQuery_ = fake_query_event,
                              .cuEventRecord_ = fake_record,
                              .cuStreamCreate_ = fake_create_stream,
                              .cuStreamDestroy_ = fake_destroy_stream,
                              .cuStreamWaitEvent_ = fake_wait_event,
                              .cuStreamQuery_ = fake_query,
                              .cuMemAllocHost_ = fake_alloc_host,
                              .cuMemFreeHost_ = fake_free_host,
                              .cuMemcpyDtoHAsync_ = fake_read,
                              .cuMemcpyHtoDAsync_ = fake_write,
                              .cuLaunchKernel_ = fake_launch_kernel,
                              .cuMemAlloc_ = fake_alloc,
                              .cuMemFree_ = fake_free,
                              .cuMemGetInfo_ = fake_get_info,
                              .cuThreadExchangeStreamCaptureMode_ = fake_exchange_mode};
}
