// One kernel adds up memory of the host that is mapped to the GPU, another adds up memory of the device: the first
// one's misses of L2 go over the link to the host.
//
// Usage: host_memory [launches]
#include "check.h"

#include <algorithm>

static const size_t COUNT = (size_t)1 << 20;
static const unsigned BLOCK = 256;
static const unsigned BLOCKS = 8 * 132; // a whole wave of an H200: neither the grid nor occupancy is what limits

static __device__ void add_up(const unsigned *from, unsigned *sum, size_t count)
{
    unsigned mine = 0;
    for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (size_t)gridDim.x * BLOCK)
        mine += from[i];
    atomicAdd(sum, mine);
}

__global__ void host_memory_sum(const unsigned *from, unsigned *sum, size_t count)
{
    add_up(from, sum, count);
}

__global__ void device_memory_sum(const unsigned *from, unsigned *sum, size_t count)
{
    add_up(from, sum, count);
}

int main(int argc, char **argv)
{
    const long launches = argument(argc, argv, 1, 60);
    unsigned *pinned, *mapped;
    std::vector<unsigned> ones(COUNT, 1), sums(2, 0);
    CHECK(cudaHostAlloc(&pinned, COUNT * sizeof *pinned, cudaHostAllocMapped));
    std::fill_n(pinned, COUNT, 1u);
    CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0));
    unsigned *device = copy_to_device(ones), *sum = copy_to_device(sums);
    for (long i = 0; i < launches; i++)
        host_memory_sum<<<BLOCKS, BLOCK>>>(mapped, sum, COUNT);
    for (long i = 0; i < launches; i++)
        device_memory_sum<<<BLOCKS, BLOCK>>>(device, sum + 1, COUNT);
    CHECK(cudaGetLastError());
    sums = copy_to_host(sum, 2);
    require(sums[0] == (unsigned)(launches * COUNT) && sums[1] == sums[0], "both kernels added all up");
    print_checksum("sums", sums.data(), 2 * sizeof(unsigned));
    CHECK(cudaFree(device));
    CHECK(cudaFree(sum));
    CHECK(cudaFreeHost(pinned));
    return 0;
}
