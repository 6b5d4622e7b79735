// Pairs that differ in how they reach memory.
#include "pairs.h"

#include <numeric>

static const unsigned FIELDS = 8, TILE = 32, SIDE = 4096, CHUNK_WORDS = 4096, PASSES = 8;

// One field of an array of structures of 32 bytes; mended: of a structure of arrays.
__global__ void coalescing_slow(const unsigned *in, size_t count, unsigned *out)
{
    for (size_t i = thread_index(); i < count; i += thread_count())
        out[i] = in[i * FIELDS] / FIELDS * 3;
}

__global__ void coalescing_mended(const unsigned *in, size_t count, unsigned *out)
{
    for (size_t i = thread_index(); i < count; i += thread_count())
        out[i] = in[i] * 3;
}

// A transposition through shared memory, whose columns are all in one bank; mended: by one more word in a row.
template <unsigned WIDTH> static __device__ void transpose(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[TILE][WIDTH];
    const unsigned x = blockIdx.x * TILE, y = blockIdx.y * TILE;
    for (unsigned row = threadIdx.y; row < TILE; row += blockDim.y)
        tile[row][threadIdx.x] = in[(size_t)(y + row) * SIDE + x + threadIdx.x];
    __syncthreads();
    for (unsigned row = threadIdx.y; row < TILE; row += blockDim.y)
        out[(size_t)(x + row) * SIDE + y + threadIdx.x] = tile[threadIdx.x][row];
}

__global__ void conflicts_slow(const unsigned *in, unsigned *out)
{
    transpose<TILE>(in, out);
}

__global__ void conflicts_mended(const unsigned *in, unsigned *out)
{
    transpose<TILE + 1>(in, out);
}

// Each thread adds its value to the sum; mended: each block.
__global__ void atomics_slow(float *sum)
{
    atomicAdd(sum, (float)(threadIdx.x % 4));
}

__global__ void atomics_mended(float *sum)
{
    __shared__ float sums[32];
    float value = (float)(threadIdx.x % 4);
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(~0u, value, distance);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = value;
    __syncthreads();
    for (unsigned i = 1; threadIdx.x == 0 && i < blockDim.x / 32; i++)
        value += sums[i];
    if (threadIdx.x == 0)
        atomicAdd(sum, value);
}

// Adds up memory of the host; mended: a copy of it in memory of the device.
static __device__ void add_up(const unsigned *in, size_t count, unsigned *out)
{
    unsigned total = 0;
    for (size_t i = thread_index(); i < count; i += thread_count())
        total += in[i];
    out[thread_index()] = total;
}

__global__ void host_slow(const unsigned *in, size_t count, unsigned *out)
{
    add_up(in, count, out);
}

__global__ void host_mended(const unsigned *in, size_t count, unsigned *out)
{
    add_up(in, count, out);
}

// Goes eight times over an array that no cache holds; mended: eight times over each part that L1 holds.
__global__ void blocking_slow(const unsigned *in, size_t count, unsigned *out)
{
    unsigned total = 0;
    for (unsigned pass = 0; pass < PASSES; pass++)
#pragma unroll 4
        for (size_t i = thread_index(); i < count; i += thread_count())
            total = total + in[i ^ pass] * (pass + 1);
    out[thread_index()] = total;
}

__global__ void blocking_mended(const unsigned *in, size_t count, unsigned *out)
{
    unsigned total = 0;
    for (size_t chunk = (size_t)blockIdx.x * CHUNK_WORDS; chunk < count; chunk += (size_t)gridDim.x * CHUNK_WORDS)
        for (unsigned pass = 0; pass < PASSES; pass++)
#pragma unroll 4
            for (unsigned i = threadIdx.x; i < CHUNK_WORDS; i += BLOCK)
                total = total + in[(chunk + i) ^ pass] * (pass + 1);
    out[thread_index()] = total;
}

// A byte with each thread; mended: 16 bytes.
__global__ void vectors_slow(const unsigned char *in, size_t count, unsigned char *out)
{
    for (size_t i = thread_index(); i < count; i += thread_count())
        out[i] = (unsigned char)~in[i];
}

__global__ void vectors_mended(const uint4 *in, size_t count, uint4 *out)
{
    for (size_t i = thread_index(); i < count / sizeof *in; i += thread_count()) {
        const uint4 value = in[i];
        out[i] = make_uint4(~value.x, ~value.y, ~value.z, ~value.w);
    }
}

static void run_host(const Device &device)
{
    const size_t count = (size_t)2 << 20;
    const unsigned grid = device.sms * 8;
    unsigned *pinned, *mapped;
    if (!device.chosen.empty() && device.chosen != "host")
        return; // no pinned memory beside other pairs, which a profiler could not repeat then
    CHECK(cudaHostAlloc(&pinned, count * sizeof *pinned, cudaHostAllocMapped));
    std::iota(pinned, pinned + count, 0u);
    CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0));
    Pair pair = {"host", (size_t)grid * BLOCK, [&] { host_slow<<<grid, BLOCK>>>(mapped, count, device.out); },
                 [&] { host_mended<<<grid, BLOCK>>>(device.in, count, device.out); }};
    pair.profiled = 100; // no replay may touch memory of the host: values come from samples of several launches
    run_pair(device, pair);
    CHECK(cudaFreeHost(pinned));
}

void run_memory(const Device &device)
{
    const unsigned grid = device.sms * 8, *in = device.in;
    const size_t records = IN_WORDS / FIELDS, bytes = OUT_WORDS;
    const dim3 tiles(SIDE / TILE, SIDE / TILE), threads(TILE, 8);
    unsigned *out = device.out;
    float *sum = (float *)out;
    run_pair(device, {"coalescing", records, [&] { coalescing_slow<<<grid, BLOCK>>>(in, records, out); },
                      [&] { coalescing_mended<<<grid, BLOCK>>>(in, records, out); }});
    run_pair(device, {"conflicts", (size_t)SIDE * SIDE, [&] { conflicts_slow<<<tiles, threads>>>(in, out); },
                      [&] { conflicts_mended<<<tiles, threads>>>(in, out); }});
    Pair atomics = {"atomics", 1, [&] { atomics_slow<<<4096, BLOCK>>>(sum); },
                    [&] { atomics_mended<<<4096, BLOCK>>>(sum); }};
    atomics.fill = 0;
    run_pair(device, atomics);
    run_pair(device, {"blocking", (size_t)grid * BLOCK, [&] { blocking_slow<<<grid, BLOCK>>>(in, IN_WORDS, out); },
                      [&] { blocking_mended<<<grid, BLOCK>>>(in, IN_WORDS, out); }, Compare::TOTAL});
    run_pair(device, {"vectors", bytes / sizeof(unsigned),
                      [&] { vectors_slow<<<grid, BLOCK>>>((const unsigned char *)in, bytes, (unsigned char *)out); },
                      [&] { vectors_mended<<<grid, BLOCK>>>((const uint4 *)in, bytes, (uint4 *)out); }});
    run_host(device);
}
