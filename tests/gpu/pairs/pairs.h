// What the themes of `pairs` share: buffers, and how a pair is launched, timed and compared.
#ifndef KPROF_TESTS_GPU_PAIRS_H
#define KPROF_TESTS_GPU_PAIRS_H

#include "../programs/check.h"

#include <functional>
#include <string>

static const size_t IN_WORDS = (size_t)128 << 20, OUT_WORDS = (size_t)64 << 20; // far more than the L2 cache holds
static const unsigned FACTOR = 1664525, BLOCK = 256;

// `in` holds its own indices: in[i] == i. A kernel may write anything into `out`.
struct Device {
    unsigned *in, *out;
    unsigned sms;
    long launches; // timed ones of each kernel; 0: a profiler looks, and each kernel is launched as seldom as it can
    std::string chosen; // one pair, or empty: all
};

enum class Compare { WORDS, FLOATS, TOTAL }; // equal words; floats within a thousandth; equal sums of words

struct Pair {
    const char *name;
    size_t words; // of `out` that both kernels write
    std::function<void()> slow, mended;
    Compare compare = Compare::WORDS;
    unsigned warm_up = 2;
    unsigned profiled = 1; // launches where a profiler looks
    int fill = 0xff;       // each byte of `out` before the first launch
    unsigned rest_s = 0;   // before the mended kernel is timed
};

void run_pair(const Device &device, const Pair &pair);

void run_memory(const Device &device);
void run_numbers(const Device &device);
void run_launches(const Device &device);
void run_clock(const Device &device);

static __host__ __device__ inline unsigned chain(unsigned x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = x * FACTOR + i;
    return x;
}

static __device__ inline size_t thread_index(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline size_t thread_count(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

#endif
