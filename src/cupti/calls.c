/* Reads driver calls: their kind, and a launch's arguments from each of the driver's launch entry points. */
#include "cupti/calls.h"

#define CASE(name) case CUPTI_DRIVER_TRACE_CBID_##name

kprof_call_kind kprof_call_classify(CUpti_CallbackId id)
{
    switch (id) {
        CASE(cuLaunch)
            : CASE(cuLaunchGrid)
            : CASE(cuLaunchGridAsync)
            : CASE(cuLaunchKernel)
            : CASE(cuLaunchKernel_ptsz)
            : CASE(cuLaunchKernelEx)
            : CASE(cuLaunchKernelEx_ptsz)
            : CASE(cuLaunchCooperativeKernel) : CASE(cuLaunchCooperativeKernel_ptsz) : return KPROF_CALL_LAUNCH;
        CASE(cuGraphLaunch)
            : CASE(cuGraphLaunch_ptsz) : CASE(cuLaunchCooperativeKernelMultiDevice) : return KPROF_CALL_GRAPH_LAUNCH;
        CASE(cuCtxSynchronize)
            : CASE(cuStreamSynchronize)
            : CASE(cuStreamSynchronize_ptsz)
            : CASE(cuStreamQuery)
            : CASE(cuStreamQuery_ptsz)
            : CASE(cuEventSynchronize)
            : CASE(cuEventQuery)
            : CASE(cuEventElapsedTime)
            : CASE(cuEventElapsedTime_v2)
            : CASE(cuCtxGetCurrent)
            : CASE(cuCtxSetCurrent)
            : CASE(cuCtxGetDevice)
            : CASE(cuDeviceGet)
            : CASE(cuDeviceGetAttribute) : CASE(cuGetProcAddress) : CASE(cuGetProcAddress_v2) : return KPROF_CALL_WAIT;
    default:
        return KPROF_CALL_OTHER;
    }
}

bool kprof_call_per_thread_stream(CUpti_CallbackId id)
{
    switch (id) {
        CASE(cuLaunchKernel_ptsz) : CASE(cuLaunchKernelEx_ptsz) : CASE(cuLaunchCooperativeKernel_ptsz) : return true;
    default:
        return false;
    }
}

CUstream kprof_launch_stream(CUpti_CallbackId id, const void *parameters)
{
    switch (id) {
        CASE(cuLaunchKernel) : CASE(cuLaunchKernel_ptsz) : return ((const cuLaunchKernel_params *)parameters)->hStream;
        CASE(cuLaunchKernelEx)
            : CASE(cuLaunchKernelEx_ptsz) : return ((const cuLaunchKernelEx_params *)parameters)->config->hStream;
        CASE(cuLaunchCooperativeKernel)
            : CASE(cuLaunchCooperativeKernel_ptsz)
            : return ((const cuLaunchCooperativeKernel_params *)parameters)->hStream;
        CASE(cuLaunchGridAsync) : return ((const cuLaunchGridAsync_params *)parameters)->hStream;
    default:
        return NULL;
    }
}

CUfunction kprof_launch_function(CUpti_CallbackId id, const void *parameters)
{
    switch (id) {
        CASE(cuLaunchKernel) : CASE(cuLaunchKernel_ptsz) : return ((const cuLaunchKernel_params *)parameters)->f;
        CASE(cuLaunchKernelEx) : CASE(cuLaunchKernelEx_ptsz) : return ((const cuLaunchKernelEx_params *)parameters)->f;
        CASE(cuLaunchCooperativeKernel)
            : CASE(cuLaunchCooperativeKernel_ptsz) : return ((const cuLaunchCooperativeKernel_params *)parameters)->f;
        CASE(cuLaunch) : return ((const cuLaunch_params *)parameters)->f;
        CASE(cuLaunchGrid) : return ((const cuLaunchGrid_params *)parameters)->f;
        CASE(cuLaunchGridAsync) : return ((const cuLaunchGridAsync_params *)parameters)->f;
    default:
        return NULL;
    }
}

static void set3(uint32_t out[3], uint32_t x, uint32_t y, uint32_t z)
{
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

static void read_config(const CUlaunchConfig *config, kprof_launch_record *out)
{
    set3(out->grid, config->gridDimX, config->gridDimY, config->gridDimZ);
    set3(out->block, config->blockDimX, config->blockDimY, config->blockDimZ);
    out->dynamic_smem_bytes = config->sharedMemBytes;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            set3(out->cluster, a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
        else if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            out->cooperative = a->value.cooperative != 0;
    }
}

void kprof_launch_shape(CUpti_CallbackId id, const void *parameters, kprof_launch_record *out)
{
    switch (id) {
        CASE(cuLaunchKernel) : CASE(cuLaunchKernel_ptsz) :
        {
            const cuLaunchKernel_params *p = parameters;
            set3(out->grid, p->gridDimX, p->gridDimY, p->gridDimZ);
            set3(out->block, p->blockDimX, p->blockDimY, p->blockDimZ);
            out->dynamic_smem_bytes = p->sharedMemBytes;
            break;
        }
        CASE(cuLaunchCooperativeKernel) : CASE(cuLaunchCooperativeKernel_ptsz) :
        {
            const cuLaunchCooperativeKernel_params *p = parameters;
            set3(out->grid, p->gridDimX, p->gridDimY, p->gridDimZ);
            set3(out->block, p->blockDimX, p->blockDimY, p->blockDimZ);
            out->dynamic_smem_bytes = p->sharedMemBytes;
            out->cooperative = 1;
            break;
        }
        CASE(cuLaunchKernelEx)
            : CASE(cuLaunchKernelEx_ptsz) : read_config(((const cuLaunchKernelEx_params *)parameters)->config, out);
        break;
        CASE(cuLaunch) : set3(out->grid, 1, 1, 1);
        break;
        CASE(cuLaunchGrid) :
        {
            const cuLaunchGrid_params *p = parameters;
            set3(out->grid, (uint32_t)p->grid_width, (uint32_t)p->grid_height, 1);
            break;
        }
        CASE(cuLaunchGridAsync) :
        {
            const cuLaunchGridAsync_params *p = parameters;
            set3(out->grid, (uint32_t)p->grid_width, (uint32_t)p->grid_height, 1);
            break;
        }
    default:
        break;
    }
}

const CUlaunchConfig *kprof_launch_given_config(CUpti_CallbackId id, const void *parameters)
{
    switch (id) {
        CASE(cuLaunchKernelEx)
            : CASE(cuLaunchKernelEx_ptsz) : return ((const cuLaunchKernelEx_params *)parameters)->config;
    default:
        return NULL;
    }
}

bool kprof_launch_arguments(CUpti_CallbackId id, const void *parameters, void ***kernel_parameters, void ***extra)
{
    *extra = NULL;
    switch (id) {
        CASE(cuLaunchKernel)
            : CASE(cuLaunchKernel_ptsz)
            : *kernel_parameters = ((const cuLaunchKernel_params *)parameters)->kernelParams;
        *extra = ((const cuLaunchKernel_params *)parameters)->extra;
        return true;
        CASE(cuLaunchKernelEx)
            : CASE(cuLaunchKernelEx_ptsz)
            : *kernel_parameters = ((const cuLaunchKernelEx_params *)parameters)->kernelParams;
        *extra = ((const cuLaunchKernelEx_params *)parameters)->extra;
        return true;
        CASE(cuLaunchCooperativeKernel)
            : CASE(cuLaunchCooperativeKernel_ptsz)
            : *kernel_parameters = ((const cuLaunchCooperativeKernel_params *)parameters)->kernelParams;
        return true;
    default:
        return false;
    }
}

CUlaunchConfig kprof_launch_config(const kprof_launch_record *shape, CUlaunchAttribute *attribute)
{
    CUlaunchConfig config = {
        .gridDimX = shape->grid[0],
        .gridDimY = shape->grid[1],
        .gridDimZ = shape->grid[2],
        .blockDimX = shape->block[0],
        .blockDimY = shape->block[1],
        .blockDimZ = shape->block[2],
        .sharedMemBytes = shape->dynamic_smem_bytes,
        .attrs = attribute,
        .numAttrs = 1,
    };
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = shape->cluster[0];
    attribute->value.clusterDim.y = shape->cluster[1];
    attribute->value.clusterDim.z = shape->cluster[2];
    return config;
}
