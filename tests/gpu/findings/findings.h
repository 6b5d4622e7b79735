// What the themes of `findings` share: the buffers, a chain of dependent arithmetic whose result the host knows, and
// the check of a launch. Results depend on the index of a thread in its block only, so that the host computes few of
// them.
#ifndef KPROF_TESTS_GPU_FINDINGS_H
#define KPROF_TESTS_GPU_FINDINGS_H

#include "../programs/check.h"

static const size_t IN_WORDS = (size_t)128 << 20, OUT_WORDS = (size_t)64 << 20; // far more than the L2 cache holds
static const unsigned FACTOR = 1664525;

// `in` holds its own indices: in[i] == i. A kernel may write anything into `out`.
struct Device {
    unsigned *in, *out;
    unsigned sms;
};

void run_bounds(const Device &device);
void run_stalls(const Device &device);
void run_occupancy(const Device &device);
void run_grids(const Device &device);
void run_memory(const Device &device);
void run_numbers(const Device &device);

// Launches whose results were wrong.
inline unsigned failures = 0;

// Wait for the launch before, and tell whether right() holds of its results.
template <typename Check> static inline void check_launch(const char *kernel, Check right)
{
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const bool passed = right();
    failures += passed ? 0 : 1;
    printf("%s: %s\n", kernel, passed ? "right" : "WRONG");
}

// Each of `count` words of `out` equals expected(index).
template <typename Expected> static inline bool holds(const unsigned *out, size_t count, Expected expected)
{
    const std::vector<unsigned> host = copy_to_host(out, count);
    for (size_t i = 0; i < count; i++)
        if (host[i] != expected(i))
            return false;
    return true;
}

// `count` words of `out` add up to `total`, modulo 2^32.
static inline bool adds_up(const unsigned *out, size_t count, unsigned total)
{
    for (unsigned word : copy_to_host(out, count))
        total -= word;
    return total == 0;
}

// The sum of 0, stride, 2 * stride, ... of `count` terms, modulo 2^32.
static inline unsigned series(uint64_t count, uint64_t stride)
{
    return (unsigned)(count * (count - 1) / 2 * stride);
}

static __host__ __device__ unsigned chain(unsigned x, unsigned factor, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = x * factor + i;
    return x;
}

// What chain() gives for each thread of a block of `block`, repeated over `count` words.
static inline bool holds_chains(const unsigned *out, size_t count, unsigned block, unsigned rounds)
{
    std::vector<unsigned> expected(block);
    for (unsigned i = 0; i < block; i++)
        expected[i] = chain(i, FACTOR, rounds);
    return holds(out, count, [&](size_t i) { return expected[i % block]; });
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
