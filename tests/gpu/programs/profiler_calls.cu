// Launches of three kernels, some between calls of cudaProfilerStart and cudaProfilerStop, some in an NVTX range. The
// number of blocks of a launch is its number, so that a profiler's results tell which one it is; tests/gpu/ncu_lines.py
// knows which launches each command line chooses.
//
// Usage: profiler_calls none|runtime|driver|thread|early
//   none     makes no such calls
//   driver   makes those of the driver
//   thread   makes those of the runtime in threads that have made no other call
//   early    makes the first as the program's first call, and no other
#include "check.h"

#include <cuda.h>
#include <cuda_profiler_api.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <thread>

static const unsigned BLOCK = 64, LAUNCHES = 8;

__global__ void warmup(unsigned *x)
{
    atomicAdd(&x[gridDim.x], threadIdx.x == 0);
}

__global__ void add(unsigned *x)
{
    atomicAdd(&x[gridDim.x], threadIdx.x == 0);
}

__global__ void scale(unsigned *x)
{
    atomicAdd(&x[gridDim.x], threadIdx.x == 0);
}

static const char *mode;

static void call_driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*function)(void) = library ? (CUresult(*)(void))dlsym(library, name) : NULL;
    if (!function || function() != CUDA_SUCCESS) {
        fprintf(stderr, "%s failed\n", name);
        exit(1);
    }
}

static void profile(bool starts)
{
    if (strcmp(mode, "runtime") == 0)
        CHECK(starts ? cudaProfilerStart() : cudaProfilerStop());
    else if (strcmp(mode, "driver") == 0)
        call_driver(starts ? "cuProfilerStart" : "cuProfilerStop");
    else if (strcmp(mode, "thread") == 0)
        std::thread([starts] { CHECK(starts ? cudaProfilerStart() : cudaProfilerStop()); }).join();
}

int main(int argc, char **argv)
{
    unsigned *counts, seen[LAUNCHES + 1];
    mode = argc > 1 ? argv[1] : "none";
    if (strcmp(mode, "early") == 0)
        CHECK(cudaProfilerStart());
    CHECK(cudaMalloc(&counts, sizeof seen));
    CHECK(cudaMemset(counts, 0, sizeof seen));
    warmup<<<1, BLOCK>>>(counts);
    add<<<2, BLOCK>>>(counts);
    profile(true);
    add<<<3, BLOCK>>>(counts);
    nvtxRangePushA("step");
    scale<<<4, BLOCK>>>(counts);
    add<<<5, BLOCK>>>(counts);
    nvtxRangePop();
    profile(false);
    add<<<6, BLOCK>>>(counts);
    profile(true);
    scale<<<7, BLOCK>>>(counts);
    profile(false);
    add<<<8, BLOCK>>>(counts);
    CHECK(cudaMemcpy(seen, counts, sizeof seen, cudaMemcpyDeviceToHost));
    for (unsigned i = 1; i <= LAUNCHES; i++) {
        if (seen[i] != i) {
            printf("launch %u: %u\n", i, seen[i]);
            return 1;
        }
    }
    printf("OK %u launches\n", LAUNCHES);
    return 0;
}
