// Kernels that print, allocate, assert, do things in an order of their own, look at the clock, or run long.
//
// Usage: device_calls MODE...
//   printf, malloc, assert, float-atomics, tickets, clock, long, longer
#include "exact.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>

__global__ void sayNumber(unsigned *x, unsigned n)
{
    *x = *x * 3 + n;
    printf("kernel %u: %u\n", n, *x);
}

static void run_printf(void)
{
    unsigned *x = copy_to_device(std::vector<unsigned>(1, 1)), want = 1;
    for (unsigned n = 1; n <= 9; n++) {
        sayNumber<<<1, 1>>>(x, n);
        launched();
        want = want * 3 + n;
        if (n % 3 != 0)
            continue;
        fflush(stdout);
        CHECK(cudaDeviceSynchronize());
        printf("host after kernel %u\n", n);
        fflush(stdout);
    }
    show_device("x", x, {want});
}

static const unsigned BLOCKS = 64, WORDS = 16384;

__global__ void allocate(unsigned **blocks)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    blocks[i] = (unsigned *)malloc(WORDS * sizeof(unsigned));
    for (unsigned word = 0; blocks[i] && word < WORDS; word++)
        blocks[i][word] = i + word;
}

__global__ void change(unsigned **blocks, unsigned factor)
{
    unsigned *block = blocks[blockIdx.x * blockDim.x + threadIdx.x];
    for (unsigned word = 0; block && word < WORDS; word++)
        block[word] = block[word] * factor + word;
}

__global__ void collect(unsigned **blocks, unsigned *sums)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[i] = 0;
    for (unsigned word = 0; blocks[i] && word < WORDS; word++)
        sums[i] = sums[i] * 31 + blocks[i][word];
}

__global__ void release(unsigned **blocks)
{
    free(blocks[blockIdx.x * blockDim.x + threadIdx.x]);
}

static std::vector<unsigned> expected_sums(unsigned changes)
{
    std::vector<unsigned> sums(BLOCKS);
    for (unsigned i = 0; i < BLOCKS; i++)
        for (unsigned word = 0; word < WORDS; word++) {
            unsigned value = i + word;
            for (unsigned n = 0; n < changes; n++)
                value = value * (n + 2) + word;
            sums[i] = sums[i] * 31 + value;
        }
    return sums;
}

// The heap of the device, 8 MiB, lives from kernel to kernel; it holds two rounds at most, unless all is freed.
static void run_malloc(void)
{
    unsigned **blocks, *sums;
    CHECK(cudaMalloc(&blocks, BLOCKS * sizeof *blocks));
    CHECK(cudaMalloc(&sums, BLOCKS * sizeof *sums));
    for (unsigned round = 0; round < 3; round++) {
        allocate<<<2, BLOCKS / 2>>>(blocks);
        launched();
        for (unsigned n = 0; n <= round; n++) {
            change<<<2, BLOCKS / 2>>>(blocks, n + 2);
            launched();
        }
        collect<<<2, BLOCKS / 2>>>(blocks, sums);
        launched();
        release<<<2, BLOCKS / 2>>>(blocks);
        launched();
        show_device("sums", sums, expected_sums(round + 1));
    }
}

__global__ void failAssertion(const unsigned *x)
{
    assert(x[0] == 12345);
}

static void run_assert(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 5; n++) {
        step(x, 3, n);
        model.step(3, n);
    }
    show_device("x", x, model.x);
    const long before = launch_count;
    step(x, 3, 1);
    failAssertion<<<1, 1>>>(x);
    const cudaError_t launch = cudaGetLastError(), wait = cudaDeviceSynchronize();
    printf("first error: %s\n", cudaGetErrorName(launch != cudaSuccess ? launch : wait));
    fflush(stdout);
    report_launches(before, before + 2);
    exit(4);
}

__global__ void addFloats(float *sums, unsigned n)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    atomicAdd(&sums[i % 7], 1.0f / (float)(i % 1000 + n));
}

// The order of the additions is not promised, so neither is the last digit.
static void run_float_atomics(void)
{
    double want[7] = {};
    float *sums = copy_to_device(std::vector<float>(7, 0.0f));
    for (unsigned n = 1; n <= 10; n++) {
        addFloats<<<GRID, BLOCK>>>(sums, n);
        launched();
        for (unsigned i = 0; i < COUNT; i++)
            want[i % 7] += 1.0 / (i % 1000 + n);
    }
    const std::vector<float> got = copy_to_host(sums, 7);
    for (unsigned i = 0; i < 7; i++)
        require(fabs(got[i] - want[i]) <= 1e-3 * want[i], "the sums of floats are right");
    printf("float atomics ok\n");
}

__global__ void takeTickets(unsigned *count, unsigned *slots)
{
    slots[atomicAdd(count, 1) % COUNT] = blockIdx.x * BLOCK + threadIdx.x;
}

__global__ void useTickets(const unsigned *slots, unsigned *x, unsigned n)
{
    const unsigned holder = slots[blockIdx.x * BLOCK + threadIdx.x];
    x[holder] = x[holder] * 3 + n;
}

// Who gets which place differs from run to run, but each gets one, and what follows does not depend on which.
static void run_tickets(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *count = copy_to_device(std::vector<unsigned>(1, 0));
    unsigned *slots = copy_to_device(std::vector<unsigned>(COUNT, 0));
    for (unsigned n = 1; n <= 8; n++) {
        takeTickets<<<GRID, BLOCK>>>(count, slots);
        launched();
        useTickets<<<GRID, BLOCK>>>(slots, x, n);
        launched();
        model.step(3, n);
    }
    std::vector<unsigned> holders = copy_to_host(slots, COUNT);
    std::sort(holders.begin(), holders.end());
    show("holders", holders.data(), Model().x);
    show_device("count", count, {8 * COUNT});
    show_device("x", x, model.x);
}

__global__ void lookAtClock(unsigned long long *seen, unsigned n)
{
    seen[n] = gpu_time_ns();
}

static void run_clock(void)
{
    const unsigned launches = 12;
    unsigned long long *seen = copy_to_device(std::vector<unsigned long long>(launches, 0));
    for (unsigned n = 0; n < launches; n++) {
        lookAtClock<<<1, 1>>>(seen, n);
        launched();
    }
    const std::vector<unsigned long long> times = copy_to_host(seen, launches);
    require(times[0] > 0 && std::is_sorted(times.begin(), times.end()), "the clock goes on from kernel to kernel");
    printf("clock ok\n");
}

__global__ void takeLong(unsigned *x, unsigned long long time_ns)
{
    const unsigned long long start = gpu_time_ns();
    while (gpu_time_ns() - start < time_ns)
        ;
    x[threadIdx.x] = x[threadIdx.x] * 3 + 1;
}

// One kernel of seconds between short ones.
static void run_long(void)
{
    Model model(BLOCK);
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 0; n < 3; n++) {
        takeLong<<<1, BLOCK>>>(x, n == 1 ? 2200000000ull : 1000ull);
        launched();
        model.step(3, 1);
    }
    show_device("x", x, model.x);
}

// Long when it starts a fifth of a second after it was launched, short before: a repetition takes far longer than the
// first run.
__global__ void takeLonger(unsigned *x, unsigned long long launched_ns)
{
    const unsigned long long start = gpu_time_ns();
    while (start - launched_ns > 200000000ull && gpu_time_ns() - start < 800000000ull)
        ;
    x[threadIdx.x] = x[threadIdx.x] * 3 + 1;
}

static long long host_time_ns(void)
{
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// By how much the GPU's clock is ahead of the host's. The first look loads the kernel. A profiler that measured the
// looks would come between the clocks, so these launches are not among those to report.
static long long gpu_ahead_ns(void)
{
    unsigned long long *seen = copy_to_device(std::vector<unsigned long long>(1, 0));
    long long ahead_ns = 0;
    for (unsigned n = 0; n < 2; n++) {
        lookAtClock<<<1, 1>>>(seen, 0);
        CHECK(cudaGetLastError());
        const long long gpu_ns = copy_to_host(seen, 1)[0];
        ahead_ns = gpu_ns - host_time_ns();
    }
    return ahead_ns;
}

// A profiler has to give up repeating these, which then still have to take effect once each. The launch before them has
// it ready in time.
static void run_longer(void)
{
    Model model(BLOCK);
    unsigned *x = copy_to_device(model.x);
    const long long ahead_ns = gpu_ahead_ns();
    affine<<<1, BLOCK>>>(x, 3, 1);
    launched();
    model.step(3, 1);
    CHECK(cudaDeviceSynchronize());
    for (unsigned n = 0; n < 16; n++) {
        takeLonger<<<1, BLOCK>>>(x, host_time_ns() + ahead_ns);
        launched();
        model.step(3, 1);
    }
    show_device("x", x, model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {
        {"printf", run_printf},   {"malloc", run_malloc}, {"assert", run_assert}, {"float-atomics", run_float_atomics},
        {"tickets", run_tickets}, {"clock", run_clock},   {"long", run_long},     {"longer", run_longer}};
    return run_modes(argc, argv, modes);
}
