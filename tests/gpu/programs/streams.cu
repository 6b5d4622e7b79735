// Concurrent launches whose order matters: four streams that pass one buffer on through events, or eight host threads
// that launch on one context, each on its own buffer.
//
// Usage: streams chain | threads
#include "check.h"

#include <thread>

static const unsigned COUNT = 1 << 18, BLOCK = 256, STREAMS = 4, THREADS = 8, ROUNDS = 3;

__global__ void affine(unsigned *x, unsigned factor, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * factor + addend;
}

static void require_all(const std::vector<unsigned> &values, unsigned want)
{
    for (unsigned value : values)
        require(value == want, "launches ran once each and in order");
}

// Stream s waits for stream s - 1: the result depends on the order.
static void run_chain(void)
{
    unsigned *x = copy_to_device(std::vector<unsigned>(COUNT, 1));
    cudaStream_t streams[STREAMS];
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    unsigned want = 1;
    for (unsigned i = 0; i < STREAMS * ROUNDS; i++) {
        cudaStream_t stream = streams[i % STREAMS];
        if (i > 0)
            CHECK(cudaStreamWaitEvent(stream, done, 0));
        affine<<<COUNT / BLOCK, BLOCK, 0, stream>>>(x, i + 2, i);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(done, stream));
        want = want * (i + 2) + i;
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> result = copy_to_host(x, COUNT);
    require_all(result, want);
    print_checksum("chain", result.data(), COUNT * sizeof(unsigned));
    for (cudaStream_t stream : streams)
        CHECK(cudaStreamDestroy(stream));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaFree(x));
}

static void run_one_thread(unsigned index, unsigned *x)
{
    cudaStream_t stream;
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (unsigned i = 0; i < ROUNDS; i++) {
        affine<<<COUNT / BLOCK, BLOCK, 0, stream>>>(x, index + 2, i);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
}

static void run_threads(void)
{
    unsigned *buffers[THREADS];
    std::vector<std::thread> threads;
    for (unsigned *&buffer : buffers)
        buffer = copy_to_device(std::vector<unsigned>(COUNT, 1));
    for (unsigned index = 0; index < THREADS; index++)
        threads.emplace_back(run_one_thread, index, buffers[index]);
    for (std::thread &thread : threads)
        thread.join();
    for (unsigned index = 0; index < THREADS; index++) {
        unsigned want = 1;
        for (unsigned i = 0; i < ROUNDS; i++)
            want = want * (index + 2) + i;
        std::vector<unsigned> result = copy_to_host(buffers[index], COUNT);
        require_all(result, want);
        print_checksum("thread", result.data(), COUNT * sizeof(unsigned));
        CHECK(cudaFree(buffers[index]));
    }
}

int main(int argc, char **argv)
{
    require(argc == 2, "usage: streams chain | threads");
    if (!strcmp(argv[1], "chain"))
        run_chain();
    else
        run_threads();
    return 0;
}
