// The shared library that modules.cu loads and unloads: a kernel and a variable with a CUDA runtime of their own.
#include <cuda_runtime.h>

#include <cstdlib>

static const unsigned COUNT = 1 << 16, BLOCK = 256;

__device__ unsigned total = 7;

__global__ void pluginStep(unsigned *x, unsigned factor, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * factor + addend;
    if (i == 0)
        total += addend;
}

extern "C" void plugin_step(unsigned *x, unsigned factor, unsigned addend)
{
    pluginStep<<<COUNT / BLOCK, BLOCK>>>(x, factor, addend);
    if (cudaGetLastError() != cudaSuccess)
        exit(1);
}

extern "C" unsigned plugin_total(void)
{
    unsigned got;
    if (cudaMemcpyFromSymbol(&got, total, sizeof got) != cudaSuccess)
        exit(1);
    return got;
}
