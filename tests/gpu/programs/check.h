// What the test programs share: error checks, result checks, and the lines that the harness reads. Standard output of a
// program depends on nothing but its arguments, so that runs with and without a profiler can be compared byte by byte.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call) check_cuda((call), #call, __FILE__, __LINE__)

static inline void check_cuda(cudaError_t error, const char *call, const char *file, int line)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
    exit(1);
}

// Memory that the host shares with the GPU, where it is asked for: a profiler then has to prove that kernels do not
// touch it.
static const bool has_pinned_memory = [] {
    void *pinned;
    if (!getenv("KPROF_TEST_PINNED"))
        return false;
    CHECK(cudaMallocHost(&pinned, 1 << 20));
    return true;
}();

static inline void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "check failed: %s\n", what);
    exit(2);
}

// A count known by arithmetic for each launch of `kernel`; an expected 0 has an absolute tolerance.
static inline void expect(const char *kernel, const char *expression, double value, double tolerance)
{
    printf("expect %s %s %.0f %g\n", kernel, expression, value, tolerance);
}

static const double COUNT_TOLERANCE = 0.001, DRAM_TOLERANCE = 0.03;

// FNV-1a over 32-bit words.
static inline void print_checksum(const char *label, const void *data, size_t bytes)
{
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i + sizeof(uint32_t) <= bytes; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, (const char *)data + i, sizeof word);
        hash = (hash ^ word) * 1099511628211ull;
    }
    printf("checksum %s %016llx\n", label, (unsigned long long)hash);
}

template <typename T> static inline std::vector<T> copy_to_host(const T *device, size_t count)
{
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

template <typename T> static inline T *copy_to_device(const std::vector<T> &host)
{
    T *device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

// The n-th argument as a number, or `fallback`.
static inline long argument(int argc, char **argv, int index, long fallback)
{
    return argc > index ? atol(argv[index]) : fallback;
}
