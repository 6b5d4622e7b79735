// Two kernels write memory that was allocated as compressible: one the same value all over, the other mostly noise,
// which L2 tries to compress in vain. The rate of noise alone is 0, as where no memory is compressible.
//
// Usage: compression [launches]; exits with 77 where the GPU cannot compress.
#include "check.h"

#include <cuda.h>

static const size_t BYTES = (size_t)64 << 20;
static const unsigned BLOCK = 256;

#define CHECK_DRIVER(call) require((call) == CUDA_SUCCESS, #call)

__global__ void write_alike(uint4 *to, unsigned value)
{
    to[(size_t)blockIdx.x * BLOCK + threadIdx.x] = make_uint4(value, value, value, value);
}

static __device__ unsigned mix(unsigned x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

__global__ void write_noise(uint4 *to, unsigned seed)
{
    const unsigned at = blockIdx.x * BLOCK + threadIdx.x, first = mix(4 * at + seed);
    if (blockIdx.x % 16 == 0)
        to[at] = make_uint4(seed, seed, seed, seed);
    else
        to[at] = make_uint4(first, mix(first + 1), mix(first + 2), mix(first + 3));
}

static CUdeviceptr allocate_compressible(void)
{
    CUmemAllocationProp properties = {};
    CUmemAccessDesc access = {};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_DRIVER(cuMemCreate(&handle, BYTES, &properties, 0));
    CHECK_DRIVER(cuMemGetAllocationPropertiesFromHandle(&properties, handle));
    require(properties.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC, "the memory is compressible");
    CHECK_DRIVER(cuMemAddressReserve(&address, BYTES, 0, 0, 0));
    CHECK_DRIVER(cuMemMap(address, BYTES, 0, handle, 0));
    CHECK_DRIVER(cuMemSetAccess(address, BYTES, &access, 1));
    CHECK_DRIVER(cuMemRelease(handle));
    return address;
}

int main(int argc, char **argv)
{
    const long launches = argument(argc, argv, 1, 1);
    int can_compress = 0;
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(nullptr));
    CHECK_DRIVER(cuDeviceGetAttribute(&can_compress, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0));
    if (!can_compress)
        return 77;
    const CUdeviceptr address = allocate_compressible();
    uint4 *memory = (uint4 *)address;
    for (long i = 0; i < launches; i++) {
        write_alike<<<BYTES / sizeof(uint4) / BLOCK, BLOCK>>>(memory, 7);
        write_noise<<<BYTES / sizeof(uint4) / BLOCK, BLOCK>>>(memory, 7);
    }
    CHECK(cudaGetLastError());
    const std::vector<uint4> last = copy_to_host(memory, BYTES / sizeof(uint4));
    print_checksum("noise", last.data(), BYTES);
    CHECK(cudaDeviceSynchronize());
    CHECK_DRIVER(cuMemUnmap(address, BYTES));
    CHECK_DRIVER(cuMemAddressFree(address, BYTES));
    return 0;
}
