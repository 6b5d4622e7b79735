// Arrays of several levels and layers, which surfaces reach, and arrays that memory is mapped to.
//
// Usage: arrays MODE...
//   mipmapped, layered, sparse, deferred
#include "exact.h"

static const unsigned WIDTH = 256, HEIGHT = COUNT / WIDTH, LAYERS = 3;

__global__ void changeLayers(cudaSurfaceObject_t surface, unsigned factor, unsigned addend)
{
    unsigned value;
    const int x = (int)(threadIdx.x * sizeof value), y = (int)blockIdx.x, layer = (int)blockIdx.y;
    surf2DLayeredread(&value, surface, x, y, layer);
    surf2DLayeredwrite(value * factor + addend + (unsigned)layer, surface, x, y, layer);
}

__global__ void changePlane(cudaSurfaceObject_t surface, unsigned factor, unsigned addend)
{
    unsigned value;
    surf2Dread(&value, surface, (int)(threadIdx.x * sizeof value), (int)blockIdx.x);
    surf2Dwrite(value * factor + addend, surface, (int)(threadIdx.x * sizeof value), (int)blockIdx.x);
}

static cudaSurfaceObject_t surface_of(cudaArray_t array)
{
    cudaSurfaceObject_t surface;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
}

static void change_planes(const char *label, cudaArray_t array, unsigned width, unsigned height)
{
    Model model(width * height);
    const size_t pitch = width * sizeof(unsigned);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, model.x.data(), pitch, pitch, height, cudaMemcpyHostToDevice));
    const cudaSurfaceObject_t surface = surface_of(array);
    for (unsigned n = 1; n <= 6; n++) {
        changePlane<<<height, width>>>(surface, 3, n);
        launched();
        model.step(3, n);
    }
    std::vector<unsigned> host(width * height);
    CHECK(cudaMemcpy2DFromArray(host.data(), pitch, array, 0, 0, pitch, height, cudaMemcpyDeviceToHost));
    show(label, host.data(), model.x);
    CHECK(cudaDestroySurfaceObject(surface));
}

static void run_mipmapped(void)
{
    cudaMipmappedArray_t mipmapped;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    CHECK(
        cudaMallocMipmappedArray(&mipmapped, &format, make_cudaExtent(WIDTH, HEIGHT, 0), 3, cudaArraySurfaceLoadStore));
    for (unsigned level = 0; level < 3; level++) {
        cudaArray_t array;
        CHECK(cudaGetMipmappedArrayLevel(&array, mipmapped, level));
        change_planes("level", array, WIDTH >> level, HEIGHT >> level);
    }
    CHECK(cudaFreeMipmappedArray(mipmapped));
}

static void run_layered(void)
{
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    std::vector<unsigned> want(COUNT * LAYERS), host(COUNT * LAYERS);
    for (size_t i = 0; i < want.size(); i++)
        want[i] = (unsigned)i;
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(WIDTH, HEIGHT, LAYERS),
                            cudaArrayLayered | cudaArraySurfaceLoadStore));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(want.data(), WIDTH * sizeof(unsigned), WIDTH, HEIGHT);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(WIDTH, HEIGHT, LAYERS);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    const cudaSurfaceObject_t surface = surface_of(array);
    for (unsigned n = 1; n <= 6; n++) {
        changeLayers<<<dim3(HEIGHT, LAYERS), WIDTH>>>(surface, 3, n);
        launched();
        for (size_t i = 0; i < want.size(); i++)
            want[i] = want[i] * 3 + n + (unsigned)(i / COUNT);
    }
    copy = {};
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(host.data(), WIDTH * sizeof(unsigned), WIDTH, HEIGHT);
    copy.extent = make_cudaExtent(WIDTH, HEIGHT, LAYERS);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    show("layers", host.data(), want);
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(array));
}

// Arrays to which memory is mapped that has no address.
static void run_mapped_array(unsigned flags)
{
    CUarray array;
    CUmemGenericAllocationHandle memory;
    CUDA_ARRAY3D_DESCRIPTOR description = {};
    description.Width = 1024;
    description.Height = 1024;
    description.Format = CU_AD_FORMAT_UNSIGNED_INT32;
    description.NumChannels = 1;
    description.Flags = flags | CUDA_ARRAY3D_SURFACE_LDST;
    int supported = 0;
    CHECK(cudaFree(0));
    CHECK_DRIVER(cuDeviceGetAttribute(&supported,
                                      flags & CUDA_ARRAY3D_SPARSE
                                          ? CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED
                                          : CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
                                      0));
    if (!supported || cuArray3DCreate(&array, &description) != CUDA_SUCCESS)
        skip("no such arrays here");
    CUmemAllocationProp property = {};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    property.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    CUarrayMapInfo map = {};
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = array;
    map.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    map.deviceBitMask = 1;
    size_t size = 4 << 20;
    if (flags & CUDA_ARRAY3D_SPARSE) {
        map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
        map.subresource.sparseLevel.extentWidth = 1024;
        map.subresource.sparseLevel.extentHeight = 1024;
        map.subresource.sparseLevel.extentDepth = 1;
    } else {
        CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
        CHECK_DRIVER(cuArrayGetMemoryRequirements(&needs, array, 0));
        size = needs.size;
        property.allocFlags.usage = 0;
    }
    size_t granule;
    CHECK_DRIVER(cuMemGetAllocationGranularity(&granule, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    size = (size + granule - 1) / granule * granule;
    CHECK_DRIVER(cuMemCreate(&memory, size, &property, 0));
    map.memHandle.memHandle = memory;
    if (cuMemMapArrayAsync(&map, 1, 0) != CUDA_SUCCESS)
        skip("such memory cannot be mapped to an array here");
    CHECK(cudaDeviceSynchronize());
    change_planes("mapped array", (cudaArray_t)array, 1024, 1024);
}

static void run_sparse(void)
{
    run_mapped_array(CUDA_ARRAY3D_SPARSE);
}

static void run_deferred(void)
{
    run_mapped_array(CUDA_ARRAY3D_DEFERRED_MAPPING);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {
        {"mipmapped", run_mipmapped}, {"layered", run_layered}, {"sparse", run_sparse}, {"deferred", run_deferred}};
    return run_modes(argc, argv, modes);
}
