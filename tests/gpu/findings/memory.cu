// How kernels reach memory: coalescing, caches, bank conflicts, atomics, and which slices and channels answer.
#include "findings.h"

#include <cuda_pipeline.h>

static const unsigned BLOCK = 256, BLOCKS_PER_SM = 8;
static const unsigned SECTOR_WORDS = 8;

static __device__ unsigned sum_of(const unsigned *in, size_t count, size_t stride)
{
    unsigned total = 0;
#pragma unroll 4
    for (size_t i = thread_index(); i < count; i += thread_count())
        total += in[i * stride];
    return total;
}

__global__ void coalesced_read(const unsigned *in, size_t count, unsigned *out)
{
    out[thread_index()] = sum_of(in, count, 1);
}

// One word of each sector: a request of a warp takes 32 sectors instead of 4.
__global__ void uncoalesced_read(const unsigned *in, size_t count, unsigned *out)
{
    out[thread_index()] = sum_of(in, count, SECTOR_WORDS);
}

// Rows that begin in the middle of a sector: a request of a warp takes 5 sectors instead of 4.
__global__ void misaligned_read(const unsigned *in, size_t count, unsigned *out)
{
    out[thread_index()] = sum_of(in + SECTOR_WORDS / 2, count, 1);
}

// One byte of each word: a request of a warp takes 4 sectors, as it would for whole words, and uses 8 bytes of each.
__global__ void partial_sectors_read(const unsigned char *in, size_t count, unsigned *out)
{
    unsigned total = 0;
#pragma unroll 4
    for (size_t i = thread_index(); i < count; i += thread_count())
        total += in[i * sizeof(unsigned)];
    out[thread_index()] = total;
}

// Whole sectors by LDGSTS, which the bytes used of each sector leave out.
__global__ void asynchronous_copy(const unsigned *in, size_t count, unsigned *out)
{
    __shared__ unsigned words[BLOCK];
    unsigned total = 0;
    for (size_t i = thread_index(); i < count; i += thread_count()) {
        __pipeline_memcpy_async(words + threadIdx.x, in + i, sizeof *in);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        total += words[threadIdx.x];
    }
    out[thread_index()] = total;
}

__global__ void coalesced_write(size_t count, unsigned *out)
{
    for (size_t i = thread_index(); i < count; i += thread_count())
        out[i] = (unsigned)i;
}

// One word of each sector: L2 holds partial sectors.
__global__ void uncoalesced_write(size_t count, unsigned *out)
{
    for (size_t i = thread_index(); i < count; i += thread_count())
        out[i * SECTOR_WORDS] = (unsigned)i;
}

// Each block reads 4 MiB, no word twice: L1 never has it, L2 does, because all blocks read the same.
__global__ void l1_misses(const unsigned *in, unsigned rounds, unsigned *out)
{
    unsigned total = 0;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
        total += in[i * BLOCK + threadIdx.x];
    out[thread_index()] = total;
}

// Each block reads as much, of the same 32 KiB.
__global__ void l1_hits(const unsigned *in, unsigned rounds, unsigned *out)
{
    unsigned total = 0;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
        total += in[(i * BLOCK + threadIdx.x) % 8192];
    out[thread_index()] = total;
}

static __device__ unsigned sum_of_passes(const unsigned *in, size_t count, unsigned passes)
{
    unsigned total = 0;
    for (unsigned pass = 0; pass < passes; pass++)
#pragma unroll 4
        for (size_t i = thread_index(); i < count; i += thread_count())
            total += __ldcg(in + i);
    return total;
}

// Reads 256 MiB twice, far more than L2 holds.
__global__ void l2_misses(const unsigned *in, size_t count, unsigned passes, unsigned *out)
{
    out[thread_index()] = sum_of_passes(in, count, passes);
}

// Reads 8 MiB 64 times.
__global__ void l2_hits(const unsigned *in, size_t count, unsigned passes, unsigned *out)
{
    out[thread_index()] = sum_of_passes(in, count, passes);
}

static __device__ unsigned walk_shared(unsigned stride, unsigned rounds)
{
    __shared__ volatile unsigned tile[4096];
    for (unsigned i = threadIdx.x; i < 4096; i += BLOCK)
        tile[i] = i;
    __syncthreads();
    unsigned total = 0;
    const unsigned at = threadIdx.x * stride;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
        total += tile[(at + i) % 4096];
    return total;
}

static unsigned walked(unsigned at, unsigned rounds)
{
    unsigned total = 0;
    for (unsigned i = 0; i < rounds; i++)
        total += (at + i) % 4096;
    return total;
}

// All lanes read the same bank: 32 turns for each request.
__global__ void shared_bank_conflicts(unsigned rounds, unsigned *out)
{
    out[thread_index()] = walk_shared(32, rounds);
}

__global__ void shared_without_conflicts(unsigned rounds, unsigned *out)
{
    out[thread_index()] = walk_shared(1, rounds);
}

// All threads add to one word: one slice of L2 does all the work.
__global__ void atomic_one_address(float *sum)
{
    atomicAdd(sum, (float)(threadIdx.x % 4));
}

// Each word is added to by 16 threads, which are in different warps.
__global__ void atomic_spread(unsigned mask, float *sums)
{
    for (unsigned i = 0; i < 16; i++)
        atomicAdd(sums + (((unsigned)thread_index() + i * BLOCK) & mask), (float)(threadIdx.x % 4));
}

// A sector of each 4 KiB: shows how well addresses spread over the channels of DRAM.
__global__ void page_stride_read(const unsigned *in, size_t count, size_t stride, unsigned *out)
{
    out[thread_index()] = sum_of(in, count, stride);
}

// Takes 16 lines out of L2 and reads them again: they lie in few channels of DRAM, the others are idle.
__global__ void dram_few_channels(unsigned *lines, unsigned rounds, unsigned *out)
{
    unsigned *line = lines + threadIdx.x / 32 * 32, loads = 0, total = 0;
    for (unsigned i = 0; i < rounds; i++) {
        if (threadIdx.x % 32 == 0)
            asm volatile("discard.global.L2 [%0], 128;" ::"l"(line) : "memory");
        __syncthreads();
        unsigned word;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(line + threadIdx.x % 32) : "memory");
        loads++;
        total += word;
        __syncthreads();
    }
    out[thread_index()] = loads;
    out[thread_index() + thread_count()] = total; // undefined, and not looked at
}

static void run_coalescing(const Device &device)
{
    const unsigned grid = device.sms * BLOCKS_PER_SM;
    const size_t threads = (size_t)grid * BLOCK, half = IN_WORDS / 2, few = OUT_WORDS / SECTOR_WORDS;
    unsigned *out = device.out;
    coalesced_read<<<grid, BLOCK>>>(device.in, half, out);
    check_launch("coalesced_read", [&] { return adds_up(out, threads, series(half, 1)); });
    uncoalesced_read<<<grid, BLOCK>>>(device.in, IN_WORDS / SECTOR_WORDS, out);
    check_launch("uncoalesced_read",
                 [&] { return adds_up(out, threads, series(IN_WORDS / SECTOR_WORDS, SECTOR_WORDS)); });
    misaligned_read<<<grid, BLOCK>>>(device.in, half, out);
    check_launch("misaligned_read",
                 [&] { return adds_up(out, threads, series(half, 1) + (unsigned)(half * (SECTOR_WORDS / 2))); });
    partial_sectors_read<<<grid, BLOCK>>>((const unsigned char *)device.in, half, out);
    check_launch("partial_sectors_read",
                 [&] { return adds_up(out, threads, (unsigned)(half / 256) * series(256, 1)); });
    asynchronous_copy<<<grid, BLOCK>>>(device.in, half, out);
    check_launch("asynchronous_copy", [&] { return adds_up(out, threads, series(half, 1)); });
    coalesced_write<<<grid, BLOCK>>>(OUT_WORDS, out);
    check_launch("coalesced_write", [&] { return holds(out, OUT_WORDS, [](size_t i) { return (unsigned)i; }); });
    uncoalesced_write<<<grid, BLOCK>>>(few, out);
    check_launch("uncoalesced_write", [&] {
        return holds(out, OUT_WORDS, [](size_t i) { return (unsigned)(i % SECTOR_WORDS ? i : i / SECTOR_WORDS); });
    });
}

static void run_caches(const Device &device)
{
    const unsigned grid = device.sms * BLOCKS_PER_SM, rounds = 4096, period = 8192 / BLOCK;
    const size_t threads = (size_t)grid * BLOCK, half = IN_WORDS / 2, small = (size_t)2 << 20;
    unsigned *out = device.out;
    l1_misses<<<device.sms, BLOCK>>>(device.in, rounds, out);
    check_launch("l1_misses", [&] {
        return holds(out, device.sms * BLOCK,
                     [&](size_t i) { return series(rounds, BLOCK) + rounds * (unsigned)(i % BLOCK); });
    });
    l1_hits<<<device.sms, BLOCK>>>(device.in, rounds, out);
    check_launch("l1_hits", [&] {
        return holds(out, device.sms * BLOCK, [&](size_t i) {
            return rounds / period * series(period, BLOCK) + rounds * (unsigned)(i % BLOCK);
        });
    });
    l2_misses<<<grid, BLOCK>>>(device.in, half, 2, out);
    check_launch("l2_misses", [&] { return adds_up(out, threads, 2 * series(half, 1)); });
    l2_hits<<<grid, BLOCK>>>(device.in, small, 64, out);
    check_launch("l2_hits", [&] { return adds_up(out, threads, 64 * series(small, 1)); });
    page_stride_read<<<grid, BLOCK>>>(device.in, IN_WORDS / 1024, 1024, out);
    check_launch("page_stride_read", [&] { return adds_up(out, threads, series(IN_WORDS / 1024, 1024)); });
}

static void run_shared(const Device &device)
{
    unsigned *out = device.out;
    shared_bank_conflicts<<<device.sms * 4, BLOCK>>>(128, out);
    check_launch("shared_bank_conflicts", [&] {
        return holds(out, device.sms * 4 * BLOCK, [](size_t i) { return walked(i % BLOCK * 32, 128); });
    });
    shared_without_conflicts<<<device.sms * 4, BLOCK>>>(4096, out);
    check_launch("shared_without_conflicts",
                 [&] { return holds(out, BLOCK, [](size_t i) { return walked((unsigned)i, 4096); }); });
}

static void run_atomics(const Device &device)
{
    const unsigned grid = 1024;
    const size_t threads = (size_t)grid * BLOCK;
    float *sums = (float *)device.out;
    CHECK(cudaMemset(sums, 0, threads * sizeof(float)));
    atomic_one_address<<<grid, BLOCK>>>(sums);
    check_launch("atomic_one_address", [&] { return copy_to_host(sums, 1)[0] == threads / 4 * 6; });
    CHECK(cudaMemset(sums, 0, threads * sizeof(float)));
    atomic_spread<<<grid, BLOCK>>>(grid * BLOCK - 1, sums);
    check_launch("atomic_spread", [&] {
        const std::vector<float> host = copy_to_host(sums, threads);
        for (size_t i = 0; i < threads; i++)
            if (host[i] != 16 * (i % 4))
                return false;
        return true;
    });
}

static void run_places(const Device &device)
{
    unsigned *lines;
    CHECK(cudaMalloc(&lines, 512 * sizeof *lines));
    CHECK(cudaMemset(lines, 0, 512 * sizeof *lines));
    dram_few_channels<<<1, 512>>>(lines, 128, device.out);
    check_launch("dram_few_channels", [&] { return holds(device.out, 512, [](size_t) { return 128u; }); });
    CHECK(cudaFree(lines));
}

void run_memory(const Device &device)
{
    run_coalescing(device);
    run_caches(device);
    run_shared(device);
    run_atomics(device);
    run_places(device);
}
