// Fills L2 with clean lines of memory that nobody else uses, where KPROF_TEST_SWEEP asks for it, so that the next
// kernel finds the same caches in every run, whatever a profiler does about them.
#pragma once

#include "check.h"

static __global__ void sweepMemory(const unsigned *in, size_t count, unsigned *out)
{
    unsigned own = 0;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        own |= in[i];
    if (own)
        *out = own;
}

static inline void sweep_caches()
{
    static const size_t bytes = (size_t)256 << 20;
    static unsigned *memory = NULL;
    if (!getenv("KPROF_TEST_SWEEP"))
        return;
    if (!memory) {
        CHECK(cudaMalloc(&memory, bytes));
        CHECK(cudaMemset(memory, 0, bytes));
    }
    sweepMemory<<<1024, 256>>>(memory, bytes / sizeof *memory, memory);
}
