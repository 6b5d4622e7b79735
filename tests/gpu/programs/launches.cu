// Launches many kernels and times them on the host: `work` takes about 60 us on an H200 (2^24 additions in place),
// `tiny` next to nothing. Tiny kernels come first, in bursts that fit the launch queue, so that their figure is the
// host's cost of a launch. The first `work` is launched before the clock starts: a profiler sets itself up there. Each
// further `work` may be followed by a tiny one, and the timed part ends when the result is on the host, the memory is
// freed and a stream is destroyed: kprof repeats what it has before that call, so that the time is in it.
//
// Usage: launches WORK [GB] [TINY] [TINY_BETWEEN] [PINNED]
//   WORK          timed launches of `work`
//   GB            device memory to allocate and write besides its own 128 MiB
//   TINY          launches of `tiny` before any `work`
//   TINY_BETWEEN  launches of `tiny` after each `work`
//   PINNED        bytes of host memory to pin, which no kernel uses
// Prints tiny_ns_per_launch and work_ns_per_launch, to standard error since they differ from run to run.
#include "check.h"

#include <time.h>

static const size_t COUNT = (size_t)1 << 24;
static const unsigned BLOCK = 256;
static const long BURST = 500;

__global__ void work(const float *a, float *x)
{
    const size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    x[i] += a[i];
}

__global__ void tiny(unsigned *counter)
{
    *counter += 1;
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

// The host's time for `count` launches, without the waits between the bursts.
static double launch_tiny(long count, unsigned *counter)
{
    double elapsed = 0;
    for (long done = 0; done < count;) {
        const long burst = count - done < BURST ? count - done : BURST;
        const double start = now_ns();
        for (long i = 0; i < burst; i++)
            tiny<<<1, 1>>>(counter);
        elapsed += now_ns() - start;
        CHECK(cudaDeviceSynchronize());
        done += burst;
    }
    return elapsed;
}

static void occupy(long gigabytes, std::vector<void *> &blocks)
{
    for (long i = 0; i < gigabytes; i++) {
        void *block;
        CHECK(cudaMalloc(&block, 1000000000));
        CHECK(cudaMemset(block, 1, 1000000000));
        blocks.push_back(block);
    }
    CHECK(cudaDeviceSynchronize());
}

// kprof closes its batch before a stream is destroyed.
static void close_batch()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
    const long works = argument(argc, argv, 1, 3), gigabytes = argument(argc, argv, 2, 0);
    const long tinies = argument(argc, argv, 3, 0), tinies_between = argument(argc, argv, 4, 0);
    const long pinned_bytes = argument(argc, argv, 5, 0);
    float *a = copy_to_device(std::vector<float>(COUNT, 1.0f)), *x = copy_to_device(std::vector<float>(COUNT, 0.0f));
    unsigned *counter = copy_to_device(std::vector<unsigned>(1, 0));
    std::vector<void *> blocks;
    occupy(gigabytes, blocks);
    void *pinned = NULL;
    if (pinned_bytes > 0)
        CHECK(cudaMallocHost(&pinned, (size_t)pinned_bytes));

    tiny<<<1, 1>>>(counter);
    CHECK(cudaDeviceSynchronize());
    const double tiny_ns = launch_tiny(tinies, counter);

    work<<<(unsigned)(COUNT / BLOCK), BLOCK>>>(a, x);
    CHECK(cudaGetLastError());
    copy_to_host(x, COUNT);
    close_batch();
    const double start = now_ns();
    for (long i = 0; i < works; i++) {
        work<<<(unsigned)(COUNT / BLOCK), BLOCK>>>(a, x);
        for (long n = 0; n < tinies_between; n++)
            tiny<<<1, 1>>>(counter);
    }
    std::vector<float> result = copy_to_host(x, COUNT);
    CHECK(cudaFree(x));
    close_batch();
    const double work_ns = now_ns() - start;

    for (float value : result)
        require(value == (float)(works + 1), "every work was done once");
    require(copy_to_host(counter, 1)[0] == (unsigned)(1 + tinies + works * tinies_between), "every tiny was done once");
    print_checksum("x", result.data(), COUNT * sizeof(float));
    if (tinies > 0)
        fprintf(stderr, "tiny_ns_per_launch %.1f\n", tiny_ns / tinies);
    if (works > 0)
        fprintf(stderr, "work_ns_per_launch %.1f\n", work_ns / works);
    for (void *block : blocks)
        CHECK(cudaFree(block));
    CHECK(cudaFree(a));
    CHECK(cudaFree(counter));
    CHECK(cudaFreeHost(pinned));
    return 0;
}
