// Pairs that differ in how the launch fills the GPU.
#include "pairs.h"

static const unsigned STEPS = 64, TAIL_BLOCK = 1024, PARTS = 16, LANES = 32;
static const int LARGE_BYTES = 100 << 10, SMALL_BYTES = 512;

// A chain of loads for each thread. 100 KB of shared memory leave room for two blocks in an SM; mended: 512 bytes.
static __device__ void follow(const unsigned *in, unsigned *out)
{
    extern __shared__ unsigned tile[];
    unsigned at = (unsigned)thread_index();
    for (unsigned i = 0; i < STEPS; i++)
        at = (in[at] + 65567) & ((4u << 20) - 1); // 16 MiB: in L2
    tile[threadIdx.x] = at;
    out[thread_index()] = tile[threadIdx.x];
}

__global__ void occupancy_slow(const unsigned *in, unsigned *out)
{
    follow(in, out);
}

__global__ void occupancy_mended(const unsigned *in, unsigned *out)
{
    follow(in, out);
}

// A tenth more blocks than the GPU holds at once, of PARTS parts each; mended: a block for each part.
__global__ void tail_slow(unsigned rounds, unsigned *out)
{
    for (unsigned part = 0; part < PARTS; part++) {
        const size_t i = ((size_t)blockIdx.x * PARTS + part) * TAIL_BLOCK + threadIdx.x;
        out[i] = chain((unsigned)i, rounds);
    }
}

__global__ void tail_mended(unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain((unsigned)thread_index(), rounds);
}

// The lanes of a warp work for 1 to 32 units; mended: all lanes of a warp, and most blocks, work equally long.
__global__ void divergence_slow(unsigned rounds, unsigned *out)
{
    const unsigned i = (unsigned)thread_index();
    out[i] = chain(i, rounds * (i % LANES + 1));
}

__global__ void divergence_mended(unsigned rounds, unsigned *out)
{
    const unsigned each = (unsigned)thread_count() / LANES, thread = (unsigned)thread_index();
    const unsigned i = thread % each * LANES + (LANES - 1 - thread / each); // the longest first
    out[i] = chain(i, rounds * (i % LANES + 1));
}

// 32 blocks; mended: as many as the GPU holds.
static __device__ void fill(unsigned count, unsigned rounds, unsigned *out)
{
    for (unsigned i = (unsigned)thread_index(); i < count; i += (unsigned)thread_count())
        out[i] = chain(i, rounds);
}

__global__ void launch_slow(unsigned count, unsigned rounds, unsigned *out)
{
    fill(count, rounds, out);
}

__global__ void launch_mended(unsigned count, unsigned rounds, unsigned *out)
{
    fill(count, rounds, out);
}

void run_launches(const Device &device)
{
    const unsigned wave = device.sms * 2, blocks = wave + wave / 10, full = device.sms * 8, *in = device.in;
    const size_t threads = (size_t)device.sms * 32 * 128, spread = (size_t)full * 4 * BLOCK;
    unsigned *out = device.out;
    CHECK(cudaFuncSetAttribute(occupancy_slow, cudaFuncAttributeMaxDynamicSharedMemorySize, LARGE_BYTES));
    run_pair(device, {"occupancy", threads, [&] { occupancy_slow<<<device.sms * 32, 128, LARGE_BYTES>>>(in, out); },
                      [&] { occupancy_mended<<<device.sms * 32, 128, SMALL_BYTES>>>(in, out); }});
    run_pair(device, {"tail", (size_t)blocks * PARTS * TAIL_BLOCK, [&] { tail_slow<<<blocks, TAIL_BLOCK>>>(256, out); },
                      [&] { tail_mended<<<blocks * PARTS, TAIL_BLOCK>>>(256, out); }});
    run_pair(device, {"divergence", spread, [&] { divergence_slow<<<full * 4, BLOCK>>>(64, out); },
                      [&] { divergence_mended<<<full * 4, BLOCK>>>(64, out); }});
    run_pair(device, {"launch", (size_t)full * BLOCK, [&] { launch_slow<<<32, BLOCK>>>(full * BLOCK, 1024, out); },
                      [&] { launch_mended<<<full, BLOCK>>>(full * BLOCK, 1024, out); }});
}
