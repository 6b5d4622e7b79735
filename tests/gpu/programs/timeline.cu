// Programs whose timeline is known: kernels that run for a given time, gaps in which the host sleeps, copies of known
// sizes. Each prints what a trace has to show, a name and a number a line; times are in microseconds, and what the GPU
// or the host can make longer is a lower bound.
//
// Usage: timeline gaps | overlap | copies | launches | steps | managed
#include "check.h"
#include "spin.h"

#include <chrono>
#include <thread>

static const unsigned ROUNDS = 20;

static void tell(const char *name, double number)
{
    printf("%s %.3f\n", name, number);
}

static void sleep_us(unsigned us)
{
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// The host sleeps for 5 ms after each kernel of 1 ms: idle for 5 of 6 ms, by code of the host.
static void run_gaps()
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        spin<<<1, 1>>>(1000000);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        sleep_us(5000);
    }
    tell("kernels", ROUNDS);
    tell("kernel_us", 1000.0 * ROUNDS);
    tell("host_us", 5000.0 * (ROUNDS - 1));
}

// A copy of 64 MiB from pinned memory beside a kernel of 20 ms in another stream, which is longer: all of it overlaps.
static void run_overlap()
{
    const size_t bytes = 64 << 20;
    void *pinned, *device;
    cudaStream_t compute, copies;
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    for (unsigned i = 0; i < ROUNDS; i++) {
        spin<<<1, 1, 0, compute>>>(20000000);
        CHECK(cudaGetLastError());
        sleep_us(2000); // until the kernel runs
        CHECK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, copies));
        CHECK(cudaDeviceSynchronize());
    }
    tell("copies", ROUNDS);
    tell("copied_bytes", (double)bytes * ROUNDS);
    tell("overlap_pct", 100);
    CHECK(cudaStreamDestroy(compute));
    CHECK(cudaStreamDestroy(copies));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(device));
}

// Copies from pageable and to pinned memory, and 100 small ones in a row.
static void run_copies()
{
    const size_t bytes = 16 << 20;
    std::vector<char> pageable(bytes, 1);
    void *pinned, *device;
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&device, bytes));
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(cudaMemcpy(device, pageable.data(), bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(pinned, device, bytes, cudaMemcpyDeviceToHost));
    }
    for (unsigned i = 0; i < 100; i++)
        CHECK(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    tell("pageable_bytes", (double)bytes * ROUNDS);
    tell("pinned_bytes", (double)bytes * ROUNDS);
    tell("small", 100);
    tell("set_bytes", (double)bytes);
    tell("allocated_bytes", (double)bytes);
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(device));
}

// Empty kernels one after the other: the GPU waits for launches.
static void run_launches()
{
    for (unsigned i = 0; i < 10000; i++)
        nothing<<<1, 1>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    tell("kernels", 10000);
}

// Twenty kernels of 100 us are asked for at once: the queue is nearly as deep as that.
static void run_steps()
{
    for (unsigned i = 0; i < ROUNDS; i++)
        spin<<<1, 1>>>(100000);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    tell("kernels", ROUNDS);
    tell("kernel_us", 100.0 * ROUNDS);
    tell("depth", ROUNDS - 3);
}

__global__ void touch(char *bytes, size_t count)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count)
        bytes[i]++;
}

// The host writes 8 MiB of managed memory, a kernel changes all of it, and the host reads it: all moves there and back.
static void run_managed()
{
    const size_t bytes = 8 << 20;
    char *shared;
    CHECK(cudaMallocManaged(&shared, bytes));
    memset(shared, 1, bytes);
    touch<<<bytes / 256, 256>>>(shared, bytes);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    size_t sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += shared[i];
    tell("kernels", 1);
    tell("sum", (double)sum);
    tell("managed_bytes", (double)bytes);
    CHECK(cudaFree(shared));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    CHECK(cudaFree(0));
    if (strcmp(what, "gaps") == 0)
        run_gaps();
    else if (strcmp(what, "overlap") == 0)
        run_overlap();
    else if (strcmp(what, "copies") == 0)
        run_copies();
    else if (strcmp(what, "launches") == 0)
        run_launches();
    else if (strcmp(what, "steps") == 0)
        run_steps();
    else if (strcmp(what, "managed") == 0)
        run_managed();
    else
        return 2;
    CHECK(cudaDeviceReset());
    return 0;
}
