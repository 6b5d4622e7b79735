// Launches that ask for other amounts of shared memory and other blocks than the launch before, so that the driver
// divides L1 anew, or leaves it as it was. The number of blocks of a launch is its number, from 1.
//
// Usage: carveouts
// Prints a line for each launch: number, threads of a block, bytes of shared memory.
#include "check.h"

static const unsigned LAUNCHES = 60;
static const unsigned BYTES[] = {1024, 0, 1024, 16384, 1024, 0, 0, 49152, 1024, 2048, 0, 100000, 1024};
static const unsigned THREADS[] = {32, 32, 256, 256, 1024};

__global__ void touch(unsigned *out, unsigned words)
{
    extern __shared__ unsigned shared[];
    if (threadIdx.x < words)
        shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words > 0 ? shared[threadIdx.x % words] : threadIdx.x;
}

int main(void)
{
    unsigned *out;
    CHECK(cudaMalloc(&out, 1024 * sizeof *out));
    CHECK(cudaFuncSetAttribute(touch, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    for (unsigned i = 0; i < LAUNCHES; i++) {
        const unsigned bytes = BYTES[i % (sizeof BYTES / sizeof *BYTES)];
        const unsigned threads = THREADS[i % (sizeof THREADS / sizeof *THREADS)];
        printf("launch %u %u %u\n", i + 1, threads, bytes);
        touch<<<i + 1, threads, bytes>>>(out, bytes / sizeof *out);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(out));
    return 0;
}
