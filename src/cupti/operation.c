/* Copies of launches and transfers. The driver tells the offset and size of each parameter; attributes are copied as
 * they are, but for those that record events. */
#include "cupti/operation.h"

#include "core/log.h"
#include "cupti/calls.h"
#include "cupti/driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_PARAMETERS 1024
#define ADDRESS_BITS   57 /* of the host, at most; 48 on most Arm machines, 47 on most others */

struct kprof_operation {
    CUfunction function; /* NULL: this is a transfer */
    kprof_transfer transfer;
    CUlaunchConfig config; /* attrs: `attributes` */
    CUlaunchAttribute *attributes;
    unsigned char *buffer; /* [buffer_size]: parameters at their offsets, as the kernel sees them */
    size_t buffer_size;
};

static void fill_config(kprof_operation *operation, const kprof_launch_record *shape)
{
    operation->config = (CUlaunchConfig){
        .gridDimX = shape->grid[0],
        .gridDimY = shape->grid[1],
        .gridDimZ = shape->grid[2],
        .blockDimX = shape->block[0],
        .blockDimY = shape->block[1],
        .blockDimZ = shape->block[2],
        .sharedMemBytes = shape->dynamic_smem_bytes,
    };
}

/* Events are not recorded again: who saw that one had happened would see that it has not. */
static void leave_out_events(CUlaunchAttribute *attributes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            attributes[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            attributes[i] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_IGNORE};
}

static bool copy_attributes(kprof_operation *operation, const kprof_call *call, bool cooperative)
{
    const CUlaunchConfig *config = kprof_launch_given_config(call->callback_id, call->parameters);
    unsigned given = config && config->attrs ? config->numAttrs : 0, count = config ? given : cooperative;
    operation->attributes = calloc(count + 1u, sizeof *operation->attributes);
    if (!operation->attributes)
        return false;
    if (given > 0)
        memcpy(operation->attributes, config->attrs, given * sizeof *operation->attributes);
    leave_out_events(operation->attributes, given);
    if (!config && cooperative) {
        operation->attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        operation->attributes[0].value.cooperative = 1;
    }
    operation->config.attrs = operation->attributes;
    operation->config.numAttrs = count;
    return true;
}

static CUresult parameter_info(const kprof_driver_api *driver, const kprof_operation *operation, size_t index,
                               size_t where[2])
{
    CUresult result = driver->cuFuncGetParamInfo_(operation->function, index, &where[0], &where[1]);
    return result == CUDA_SUCCESS
               ? result
               : driver->cuKernelGetParamInfo_((CUkernel)operation->function, index, &where[0], &where[1]);
}

static bool grow_buffer(kprof_operation *operation, size_t size)
{
    unsigned char *grown = realloc(operation->buffer, size);
    if (!grown)
        return false;
    memset(grown + operation->buffer_size, 0, size - operation->buffer_size);
    operation->buffer = grown;
    operation->buffer_size = size;
    return true;
}

static bool copy_parameters(const kprof_driver_api *driver, kprof_operation *operation, void **parameters)
{
    size_t where[2];
    for (size_t i = 0; i < MAX_PARAMETERS; i++) {
        if (parameter_info(driver, operation, i, where) != CUDA_SUCCESS)
            return true; /* one past the last */
        size_t end = where[0] + where[1];
        if (end > operation->buffer_size && !grow_buffer(operation, end))
            return false;
        memcpy(operation->buffer + where[0], parameters[i], where[1]);
    }
    return false;
}

/* `extra`: name and value by turns; the buffer and its size are all that CUDA defines. */
static bool copy_extra(kprof_operation *operation, void **extra)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(const size_t *)extra[1];
        else
            return false;
    }
    if (!buffer || size == 0)
        return true;
    if (!grow_buffer(operation, size))
        return false;
    memcpy(operation->buffer, buffer, size);
    return true;
}

static bool has_attribute(const kprof_driver_api *driver, CUpointer_attribute attribute, CUdeviceptr address,
                          unsigned wanted)
{
    unsigned value = ~wanted;
    return driver->cuPointerGetAttribute_(&value, attribute, address) == CUDA_SUCCESS && value == wanted;
}

/* Memory of the context's device that a snapshot of the context holds, and no other context's; that of pools has none.
 */
static bool is_own_memory(const kprof_driver_api *driver, CUcontext context, CUdeviceptr address)
{
    CUcontext owner = NULL;
    CUdevice device = -1;
    return driver->cuCtxGetDevice_(&device) == CUDA_SUCCESS &&
           driver->cuPointerGetAttribute_(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address) == CUDA_SUCCESS &&
           (!owner || owner == context) &&
           has_attribute(driver, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, CU_MEMORYTYPE_DEVICE) &&
           has_attribute(driver, CU_POINTER_ATTRIBUTE_IS_MANAGED, address, 0) &&
           has_attribute(driver, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, (unsigned)device);
}

/* A copy, or a launch by a CUkernel, may go to a stream of another context: nothing waits for it here, and what such a
 * launch changes is in no snapshot of this one. */
static bool is_own_stream(const kprof_driver_api *driver, CUcontext context, CUstream stream)
{
    CUcontext owner = context;
    bool is_default = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
    return (is_default || driver->cuStreamGetCtx_(stream, &owner) == CUDA_SUCCESS) && owner == context;
}

static bool is_captured(const kprof_driver_api *driver, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver->cuStreamIsCapturing_(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool copy_transfer(kprof_operation *operation, CUcontext context, const kprof_transfer *transfer)
{
    const kprof_driver_api *driver;
    operation->transfer = *transfer;
    return kprof_driver_load(&driver) == KPROF_OK && is_own_stream(driver, context, transfer->stream) &&
           !is_captured(driver, transfer->stream) && is_own_memory(driver, context, transfer->destination) &&
           (transfer->element_bytes > 0 || is_own_memory(driver, context, transfer->source));
}

static bool copy_launch(kprof_operation *operation, const kprof_call *call)
{
    const kprof_driver_api *driver;
    kprof_launch_record shape = {0};
    void **parameters, **extra;
    if (kprof_driver_load(&driver) != KPROF_OK ||
        !kprof_launch_arguments(call->callback_id, call->parameters, &parameters, &extra))
        return false;
    kprof_launch_shape(call->callback_id, call->parameters, &shape);
    operation->function = call->function;
    fill_config(operation, &shape);
    operation->config.hStream = kprof_target_stream(call);
    if (!is_own_stream(driver, call->context, operation->config.hStream))
        return false;
    if (!copy_attributes(operation, call, shape.cooperative))
        return false;
    if (parameters)
        return copy_parameters(driver, operation, parameters);
    return !extra || copy_extra(operation, extra);
}

kprof_operation *kprof_operation_copy(const kprof_call *call)
{
    kprof_transfer transfer;
    kprof_operation *operation = calloc(1, sizeof *operation);
    bool moves =
        call->kind == KPROF_CALL_TRANSFER && kprof_call_transfer(call->callback_id, call->parameters, &transfer);
    if (operation && (moves ? copy_transfer(operation, call->context, &transfer) : copy_launch(operation, call)))
        return operation;
    kprof_operation_free(operation);
    if (!moves)
        kprof_log(KPROF_LOG_DEBUG, "%s cannot be repeated: its arguments, or its stream", call->kernel_name);
    return NULL;
}

static CUresult launch(const kprof_driver_api *driver, const kprof_operation *operation)
{
    size_t size = operation->buffer_size;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, operation->buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return driver->cuLaunchKernelEx_(&operation->config, operation->function, NULL, size > 0 ? extra : NULL);
}

static CUresult set_row(const kprof_driver_api *driver, const kprof_transfer *t)
{
    if (t->element_bytes == 1)
        return driver->cuMemsetD8Async_(t->destination, (unsigned char)t->value, t->width, t->stream);
    if (t->element_bytes == 2)
        return driver->cuMemsetD16Async_(t->destination, (unsigned short)t->value, t->width, t->stream);
    return driver->cuMemsetD32Async_(t->destination, t->value, t->width, t->stream);
}

static CUresult set_rows(const kprof_driver_api *driver, const kprof_transfer *t)
{
    if (t->element_bytes == 1)
        return driver->cuMemsetD2D8Async_(t->destination, t->pitch_bytes, (unsigned char)t->value, t->width, t->height,
                                          t->stream);
    if (t->element_bytes == 2)
        return driver->cuMemsetD2D16Async_(t->destination, t->pitch_bytes, (unsigned short)t->value, t->width,
                                           t->height, t->stream);
    return driver->cuMemsetD2D32Async_(t->destination, t->pitch_bytes, t->value, t->width, t->height, t->stream);
}

static CUresult transfer(const kprof_driver_api *driver, const kprof_transfer *t)
{
    if (t->width == 0 || t->height == 0)
        return CUDA_SUCCESS;
    if (t->element_bytes == 0)
        return driver->cuMemcpyDtoDAsync_(t->destination, t->source, t->width, t->stream);
    return t->height == 1 ? set_row(driver, t) : set_rows(driver, t);
}

kprof_status kprof_operation_run(const kprof_operation *operation)
{
    const kprof_driver_api *driver;
    kprof_status status = kprof_driver_load(&driver);
    if (status != KPROF_OK)
        return status;
    CUresult result = operation->function ? launch(driver, operation) : transfer(driver, &operation->transfer);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "repeating a launch or a transfer: %s", kprof_driver_error(result));
    return KPROF_OK;
}

void kprof_operation_free(kprof_operation *operation)
{
    if (!operation)
        return;
    free(operation->attributes);
    free(operation->buffer);
    free(operation);
}

static bool reaches_pageable_memory(const kprof_driver_api *driver)
{
    CUdevice device;
    int reaches = 1;
    return driver->cuCtxGetDevice_(&device) != CUDA_SUCCESS ||
           driver->cuDeviceGetAttribute_(&reaches, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) !=
               CUDA_SUCCESS ||
           reaches;
}

/* CUDA's own answer for memory that it knows; else, where the GPU reaches all of the process' memory, whether something
 * is mapped there. */
static bool is_host_address(const kprof_driver_api *driver, bool pageable, uint64_t value)
{
    static long page;
    unsigned char resident;
    unsigned type = 0;
    if (value < 65536 || value >> ADDRESS_BITS != 0)
        return false;
    if (driver->cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)value) == CUDA_SUCCESS)
        return type == CU_MEMORYTYPE_HOST;
    if (!pageable)
        return false;
    if (page == 0)
        page = sysconf(_SC_PAGESIZE);
    return mincore((void *)(uintptr_t)(value & ~((uint64_t)page - 1)), 1, &resident) == 0;
}

bool kprof_operation_sees_host(const kprof_operation *operation)
{
    const kprof_driver_api *driver;
    if (kprof_driver_load(&driver) != KPROF_OK)
        return true;
    bool pageable = reaches_pageable_memory(driver);
    for (size_t at = 0; at + sizeof(uint64_t) <= operation->buffer_size; at += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, operation->buffer + at, sizeof value);
        if (is_host_address(driver, pageable, value))
            return true;
    }
    return false;
}
