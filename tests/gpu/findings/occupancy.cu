// How many warps an SM holds, and what keeps it from holding more.
#include "findings.h"

// COUNT values that are all in use at once.
template <int COUNT> static __host__ __device__ unsigned many_values(unsigned first, unsigned factor, unsigned rounds)
{
    unsigned x[COUNT], total = 0;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        x[k] = first + k;
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            x[k] = x[k] * factor + x[(k + COUNT / 2) % COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        total ^= x[k];
    return total;
}

// About 110 registers a thread: two blocks of 256 threads fit.
__global__ void __launch_bounds__(256) occupancy_registers(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = many_values<96>(threadIdx.x, factor, rounds);
}

// The same with 40 registers a thread: the other values are in local memory.
__global__ void __maxnreg__(40) local_spills(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = many_values<96>(threadIdx.x, factor, rounds);
}

// Few enough values for 32 registers a thread: all 64 warps fit, and nothing is spilled.
__global__ void __launch_bounds__(256) occupancy_full(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = many_values<16>(threadIdx.x, factor, rounds);
}

static __device__ void through_shared(unsigned factor, unsigned rounds, unsigned *out)
{
    extern __shared__ unsigned tile[];
    tile[threadIdx.x] = chain(threadIdx.x, factor, rounds);
    out[thread_index()] = tile[threadIdx.x];
}

// 100 KB of shared memory a block: two blocks of 128 threads fit.
__global__ void occupancy_shared_memory(unsigned factor, unsigned rounds, unsigned *out)
{
    through_shared(factor, rounds, out);
}

// 512 bytes a block.
__global__ void little_shared_memory(unsigned factor, unsigned rounds, unsigned *out)
{
    through_shared(factor, rounds, out);
}

// Blocks of one warp: an SM holds 32 of them.
__global__ void occupancy_small_blocks(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// Blocks of 24 warps: two fit, and 16 places for warps stay empty.
__global__ void occupancy_block_size(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// All 16 barriers of each block of two warps.
__global__ void occupancy_barriers(unsigned factor, unsigned rounds, unsigned *out)
{
    unsigned x = threadIdx.x;
    x = chain(x, factor, rounds);
#define BARRIER(n) asm volatile("bar.sync " #n ", 64;" ::: "memory");
    BARRIER(0)
    BARRIER(1)
    BARRIER(2) BARRIER(3) BARRIER(4) BARRIER(5) BARRIER(6) BARRIER(7) BARRIER(8) BARRIER(9) BARRIER(10) BARRIER(11)
        BARRIER(12) BARRIER(13) BARRIER(14) BARRIER(15) out[thread_index()] = x;
}

// One warp of each block works twenty times as long as the others, whose places stay empty until it ends.
__global__ void achieved_below_theoretical(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, threadIdx.x < 32 ? 20 * rounds : rounds);
}

// All warps work equally long.
__global__ void achieved_as_theoretical(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

static void run_registers(const Device &device)
{
    const unsigned sms = device.sms;
    unsigned *out = device.out;
    occupancy_registers<<<sms * 2, 256>>>(FACTOR, 128, out);
    check_launch("occupancy_registers",
                 [&] { return holds(out, 256, [](size_t i) { return many_values<96>((unsigned)i, FACTOR, 128); }); });
    local_spills<<<sms * 2, 256>>>(FACTOR, 128, out);
    check_launch("local_spills",
                 [&] { return holds(out, 256, [](size_t i) { return many_values<96>((unsigned)i, FACTOR, 128); }); });
    occupancy_full<<<sms * 8, 256>>>(FACTOR, 256, out);
    check_launch("occupancy_full",
                 [&] { return holds(out, 256, [](size_t i) { return many_values<16>((unsigned)i, FACTOR, 256); }); });
}

void run_occupancy(const Device &device)
{
    const unsigned sms = device.sms, rounds = 4096;
    const int large = 100 << 10;
    unsigned *out = device.out;
    run_registers(device);
    CHECK(cudaFuncSetAttribute(occupancy_shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, large));
    occupancy_shared_memory<<<sms * 4, 128, large>>>(FACTOR, rounds, out);
    check_launch("occupancy_shared_memory", [&] { return holds_chains(out, sms * 4 * 128, 128, rounds); });
    little_shared_memory<<<sms * 16, 128, 512>>>(FACTOR, rounds, out);
    check_launch("little_shared_memory", [&] { return holds_chains(out, sms * 16 * 128, 128, rounds); });
    occupancy_small_blocks<<<sms * 64, 32>>>(FACTOR, rounds, out);
    check_launch("occupancy_small_blocks", [&] { return holds_chains(out, sms * 64 * 32, 32, rounds); });
    occupancy_block_size<<<sms * 2, 768>>>(FACTOR, rounds, out);
    check_launch("occupancy_block_size", [&] { return holds_chains(out, sms * 2 * 768, 768, rounds); });
    occupancy_barriers<<<sms * 32, 64>>>(FACTOR, rounds, out);
    check_launch("occupancy_barriers", [&] { return holds_chains(out, sms * 32 * 64, 64, rounds); });
    achieved_below_theoretical<<<sms * 8, 256>>>(FACTOR, 1024, out);
    check_launch("achieved_below_theoretical", [&] {
        return holds(out, 256, [](size_t i) { return chain((unsigned)i, FACTOR, i < 32 ? 20 * 1024 : 1024); });
    });
    achieved_as_theoretical<<<sms * 8, 256>>>(FACTOR, rounds, out);
    check_launch("achieved_as_theoretical", [&] { return holds_chains(out, sms * 8 * 256, 256, rounds); });
}
