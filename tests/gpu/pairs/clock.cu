// A pair that differs in the clock only: matrix instructions on numbers that change every bit take the GPU to its power
// limit, and the same instructions on zeros do not. Beside them a fifth of the threads reads DRAM, as a product of
// large matrices does, since matrix instructions alone hardly slow an H200. A launch takes 40 ms; after some the clock
// falls.
#include "pairs.h"

static const unsigned MULTIPLIERS = 256, READERS = 64, THREADS = MULTIPLIERS + READERS;
static const unsigned TILE_BYTES = 32768; // of the left matrices, and of the right ones
static const size_t READ_WORDS = (size_t)64 << 20;

// What a kernel multiplies and reads.
struct Work {
    unsigned mask, rounds, reads;
    const uint4 *in; // of READ_WORDS
};

#define FOUR(n)       "+f"(sum[n]), "+f"(sum[n + 1]), "+f"(sum[n + 2]), "+f"(sum[n + 3])
#define SIXTEEN(n)    FOUR(n), FOUR(n + 4), FOUR(n + 8), FOUR(n + 12)
#define SIXTY_FOUR(n) SIXTEEN(n), SIXTEEN(n + 16), SIXTEEN(n + 32), SIXTEEN(n + 48)

// sum += left * right, of 64 x 16 and 16 x 128 halves in shared memory.
static __device__ void multiply(float (&sum)[64], uint64_t left, uint64_t right)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;"
                 : SIXTY_FOUR(0)
                 : "l"(left), "l"(right));
}

// The place of a tile for wgmma: rows of 8 x 16 bytes one after the other.
static __device__ uint64_t descriptor(const void *tile)
{
    const uint64_t at = (uint64_t)__cvta_generic_to_shared(tile), leading = 128, stride = 256;
    return (at & 0x3ffff) >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32;
}

static __host__ __device__ unsigned scrambled(unsigned x)
{
    x = (x ^ x >> 16) * 0x7feb352d;
    x = (x ^ x >> 15) * 0x846ca68b;
    return x ^ x >> 16;
}

// Adds products and their negatives by turns. The numbers lie between 1 and 2, or -1 and -2, in steps of 1/256: sums
// are exact, and end as 0.
static __device__ unsigned multiply_all(unsigned rounds, const unsigned short *left, const unsigned short *right)
{
    float sum[64] = {};
    for (unsigned i = 0; i < rounds; i++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            multiply(sum, descriptor(left + k * 1024), descriptor(right + k * 2048));
            multiply(sum, descriptor(left + TILE_BYTES / 4 + k * 1024), descriptor(right + k * 2048));
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    float total = 0;
#pragma unroll
    for (unsigned k = 0; k < 64; k++)
        total += sum[k] * sum[k];
    return total != 0;
}

// Reads sixteen vectors in each round, and other ones in the next.
static __device__ unsigned read_all(unsigned rounds, const uint4 *in)
{
    const unsigned step = gridDim.x * READERS, count = READ_WORDS / 4;
    unsigned at = blockIdx.x * READERS + threadIdx.x - MULTIPLIERS, odd = 0;
    for (unsigned i = 0; i < rounds; i++) {
        uint4 values[16];
#pragma unroll
        for (unsigned k = 0; k < 16; k++) {
            values[k] = __ldcs(&in[at]);
            at = at + step < count ? at + step : at + step - count;
        }
#pragma unroll
        for (unsigned k = 0; k < 16; k++)
            odd |= (values[k].x ^ values[k].y ^ values[k].z ^ values[k].w) & 1;
    }
    return odd;
}

static __device__ void heat(const Work &work, unsigned *out)
{
    extern __shared__ __align__(1024) unsigned short halves[];
    unsigned short *left = halves, *right = halves + TILE_BYTES / 2;
    const unsigned half_tile = TILE_BYTES / 4; // the first half of the left ones, and their negatives
    for (unsigned i = threadIdx.x; i < TILE_BYTES / 2; i += THREADS) {
        const unsigned bits = scrambled(i % half_tile + 1) & work.mask, more = scrambled(i + 77777) & work.mask;
        const unsigned short number = work.mask ? (unsigned short)(0x3c00 | (bits & 0x83fc)) : 0;
        left[i] = i < half_tile ? number : work.mask ? number ^ 0x8000 : 0;
        right[i] = work.mask ? (unsigned short)(0x3c00 | (more & 0x83fc)) : 0;
    }
    __syncthreads();
    asm volatile("fence.proxy.async;" ::: "memory");
    out[thread_index()] =
        threadIdx.x < MULTIPLIERS ? multiply_all(work.rounds, left, right) : read_all(work.reads, work.in);
}

__global__ void __launch_bounds__(THREADS) clock_slow(Work work, unsigned *out)
{
    heat(work, out);
}

__global__ void __launch_bounds__(THREADS) clock_mended(Work work, unsigned *out)
{
    heat(work, out);
}

// Numbers of which each bit changes from one to the next, but for the lowest, which is 0.
static uint4 *scrambled_numbers(void)
{
    std::vector<unsigned> numbers(READ_WORDS);
    for (size_t i = 0; i < READ_WORDS; i++)
        numbers[i] = scrambled((unsigned)i) & ~1u;
    return (uint4 *)copy_to_device(numbers);
}

void run_clock(const Device &device)
{
    const unsigned grid = device.sms * 2, rounds = 300000 / 8, reads = 20000;
    const int bytes = 2 * TILE_BYTES;
    unsigned *out = device.out;
    uint4 *zeros;
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    if (properties.major != 9 || (!device.chosen.empty() && device.chosen != "clock"))
        return; // its instructions exist in this generation only
    CHECK(cudaMalloc(&zeros, READ_WORDS * sizeof(unsigned)));
    CHECK(cudaMemset(zeros, 0, READ_WORDS * sizeof(unsigned)));
    const Work slow = {~0u, rounds, reads, scrambled_numbers()}, mended = {0, rounds, reads, zeros};
    CHECK(cudaFuncSetAttribute(clock_slow, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK(cudaFuncSetAttribute(clock_mended, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    Pair pair = {"clock", (size_t)grid * THREADS, [&] { clock_slow<<<grid, THREADS, bytes>>>(slow, out); },
                 [&] { clock_mended<<<grid, THREADS, bytes>>>(mended, out); }};
    pair.warm_up = 20;
    pair.rest_s = 3;                                // the clock rises again
    pair.profiled = device.chosen.empty() ? 1 : 21; // by itself it is recorded after as many launches
    run_pair(device, pair);
    CHECK(cudaFree((void *)slow.in));
    CHECK(cudaFree(zeros));
}
