// How a grid fills the GPU, how its threads stay together, and how long it runs.
#include "findings.h"

static const unsigned BLOCK = 256, BLOCKS_PER_SM = 8; // 64 warps per SM: one wave

__global__ void grid_smaller_than_gpu(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// One wave and a tenth: nine tenths of the GPU are idle in the second.
__global__ void partial_wave(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// Two waves and no more, of blocks of whole warps.
__global__ void whole_waves(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// 100 threads a block: the fourth warp has four threads.
__global__ void block_of_partial_warps(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// A block per SM. The first works twenty times as long as the others.
__global__ void sm_imbalance(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, blockIdx.x == 0 ? 20 * rounds : rounds);
}

__global__ void sm_balance(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// The lanes of a warp leave the loop one after the other: half of them are active on average.
__global__ void divergent_loop(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds * (threadIdx.x % 32 + 1));
}

// The same numbers of rounds, each by a whole warp.
__global__ void uniform_loop(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds * (threadIdx.x / 32 + 1));
}

// Over before anything can be measured well.
__global__ void empty_kernel(void) {}

__global__ void tiny_kernel(unsigned *out)
{
    out[threadIdx.x] = threadIdx.x;
}

static void run_shapes(const Device &device)
{
    const unsigned wave = device.sms * BLOCKS_PER_SM, rounds = 4096;
    unsigned *out = device.out;
    grid_smaller_than_gpu<<<device.sms / 2, BLOCK>>>(FACTOR, 4 * rounds, out);
    check_launch("grid_smaller_than_gpu", [&] { return holds_chains(out, device.sms / 2 * BLOCK, BLOCK, 4 * rounds); });
    partial_wave<<<wave + wave / 10, BLOCK>>>(FACTOR, rounds, out);
    check_launch("partial_wave", [&] { return holds_chains(out, (wave + wave / 10) * BLOCK, BLOCK, rounds); });
    whole_waves<<<2 * wave, BLOCK>>>(FACTOR, rounds, out);
    check_launch("whole_waves", [&] { return holds_chains(out, 2 * wave * BLOCK, BLOCK, rounds); });
    block_of_partial_warps<<<device.sms * 16, 100>>>(FACTOR, rounds, out);
    check_launch("block_of_partial_warps", [&] { return holds_chains(out, device.sms * 1600, 100, rounds); });
}

static void run_paths(const Device &device)
{
    const unsigned sms = device.sms;
    unsigned *out = device.out;
    sm_imbalance<<<sms, BLOCK>>>(FACTOR, 1024, out);
    check_launch("sm_imbalance", [&] {
        return holds_chains(out, BLOCK, BLOCK, 20 * 1024) && holds_chains(out + BLOCK, (sms - 1) * BLOCK, BLOCK, 1024);
    });
    sm_balance<<<sms, BLOCK>>>(FACTOR, 20 * 1024, out);
    check_launch("sm_balance", [&] { return holds_chains(out, sms * BLOCK, BLOCK, 20 * 1024); });
    divergent_loop<<<sms * BLOCKS_PER_SM, BLOCK>>>(FACTOR, 128, out);
    check_launch("divergent_loop", [&] {
        return holds(out, BLOCK, [](size_t i) { return chain((unsigned)i, FACTOR, 128 * ((unsigned)i % 32 + 1)); });
    });
    uniform_loop<<<sms * BLOCKS_PER_SM, BLOCK>>>(FACTOR, 1024, out);
    check_launch("uniform_loop", [&] {
        return holds(out, BLOCK, [](size_t i) { return chain((unsigned)i, FACTOR, 1024 * ((unsigned)i / 32 + 1)); });
    });
}

void run_grids(const Device &device)
{
    run_shapes(device);
    run_paths(device);
    empty_kernel<<<1, 32>>>();
    check_launch("empty_kernel", [] { return true; });
    tiny_kernel<<<1, 64>>>(device.out);
    check_launch("tiny_kernel", [&] { return holds(device.out, 64, [](size_t i) { return (unsigned)i; }); });
}
