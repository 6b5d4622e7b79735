// The less common ways to launch a kernel: parameters packed into one buffer (`extra`), cuLaunchKernelEx with a
// cluster, a cooperative launch, and dynamic shared memory beyond 48 KiB.
//
// Usage: driver_api
#include "check.h"

#include <cooperative_groups.h>
#include <cuda.h>

static const unsigned COUNT = 1 << 20, BLOCK = 256;

#define CHECK_DRIVER(call) check_driver((call), #call)

static void check_driver(CUresult result, const char *call)
{
    const char *text = "unknown error";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorString(result, &text);
    fprintf(stderr, "%s: %s\n", call, text);
    exit(1);
}

__global__ void addExtra(unsigned *x, unsigned value, unsigned char odd_sized)
{
    x[blockIdx.x * BLOCK + threadIdx.x] += value + odd_sized;
}

__global__ void addCluster(unsigned *x, unsigned value)
{
    namespace cg = cooperative_groups;
    __shared__ unsigned rank;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        rank = cluster.block_rank();
    cluster.sync();
    // What the neighbour in the cluster holds: its rank.
    const unsigned neighbour = *cluster.map_shared_rank(&rank, (cluster.block_rank() + 1) % cluster.num_blocks());
    cluster.sync();
    x[blockIdx.x * BLOCK + threadIdx.x] += value + neighbour;
}

__global__ void addCooperative(unsigned *x, unsigned *total)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (threadIdx.x == 0)
        atomicAdd(total, 1);
    cooperative_groups::this_grid().sync();
    x[i] += *total;
}

__global__ void addLargeShared(unsigned *x, unsigned words)
{
    extern __shared__ unsigned buffer[];
    for (unsigned i = threadIdx.x; i < words; i += BLOCK)
        buffer[i] = i;
    __syncthreads();
    x[blockIdx.x * BLOCK + threadIdx.x] += buffer[words - 1 - threadIdx.x];
}

static CUfunction driver_function(const void *symbol)
{
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, symbol));
    return (CUfunction)function;
}

static void launch_extra(unsigned *x)
{
    struct {
        unsigned *x;
        unsigned value;
        unsigned char odd_sized;
    } parameters = {x, 5, 2};
    size_t size = offsetof(decltype(parameters), odd_sized) + 1;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CHECK_DRIVER(cuLaunchKernel(driver_function((const void *)addExtra), COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL,
                                NULL, extra));
}

static void launch_cluster(unsigned *x)
{
    unsigned value = 10;
    void *parameters[] = {&x, &value};
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = 4;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    CUlaunchConfig config = {};
    config.gridDimX = COUNT / BLOCK;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = BLOCK;
    config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK_DRIVER(cuLaunchKernelEx(&config, driver_function((const void *)addCluster), parameters, NULL));
    // The attributes are the caller's: a profiler may keep only a copy.
    memset(&attribute, 0xff, sizeof attribute);
}

static void launch_cooperative(unsigned *x, unsigned *total)
{
    void *parameters[] = {&x, &total};
    CHECK(cudaLaunchCooperativeKernel((const void *)addCooperative, dim3(64), dim3(BLOCK), parameters, 0, NULL));
    CHECK_DRIVER(cuLaunchCooperativeKernel(driver_function((const void *)addCooperative), 64, 1, 1, BLOCK, 1, 1, 0,
                                           NULL, parameters));
}

static void launch_large_shared(unsigned *x)
{
    const int bytes = 96 * 1024;
    CHECK(cudaFuncSetAttribute(addLargeShared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    addLargeShared<<<COUNT / BLOCK, BLOCK, bytes>>>(x, bytes / sizeof(unsigned));
    CHECK(cudaGetLastError());
}

// Each kernel is launched once, addCooperative twice.
static unsigned expected_value(unsigned i)
{
    const unsigned block = i / BLOCK, thread = i % BLOCK;
    unsigned value = 5 + 2;
    value += 10 + (block % 4 + 1) % 4;
    if (block < 64)
        value += 64 + 128;
    return value + (96 * 1024 / 4 - 1 - thread);
}

int main(void)
{
    unsigned *x = copy_to_device(std::vector<unsigned>(COUNT, 0)), *total = copy_to_device(std::vector<unsigned>(1, 0));
    launch_extra(x);
    launch_cluster(x);
    launch_cooperative(x, total);
    launch_large_shared(x);
    std::vector<unsigned> result = copy_to_host(x, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        require(result[i] == expected_value(i), "every kind of launch ran once");
    print_checksum("x", result.data(), COUNT * sizeof(unsigned));
    expect("addExtra", "launch__grid_size", COUNT / BLOCK, 0);
    expect("addCluster", "launch__block_size", BLOCK, 0);
    expect("addCooperative", "launch__grid_size", 64, 0);
    expect("addLargeShared", "launch__grid_size", COUNT / BLOCK, 0);
    CHECK(cudaFree(x));
    CHECK(cudaFree(total));
    return 0;
}
