// Long series of kernels in place: what a batch is made of. The host polls in between, or copies results back.
//
// Usage: series MODE...
//   quiet, polls, copies, idle, pinned
#include "exact.h"

#include <chrono>
#include <thread>

static const unsigned LAUNCHES = 150;

static void run_quiet(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 0; n < LAUNCHES; n++) {
        step(x, 3, 1);
        model.step(3, 1);
    }
    show_device("x", x, model.x);
}

static void poll_stream(cudaStream_t stream)
{
    cudaError_t status;
    while ((status = cudaStreamQuery(stream)) == cudaErrorNotReady)
        (void)cudaGetLastError(); // which remembers even this answer
    CHECK(status);
}

static void run_polls(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    cudaStream_t stream;
    cudaEvent_t event;
    float milliseconds;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event, stream));
    for (unsigned n = 0; n < LAUNCHES; n++) {
        step(x, 3, 1, stream);
        model.step(3, 1);
        if (n % 30 == 10)
            poll_stream(stream);
        if (n % 30 != 20)
            continue;
        cudaEvent_t later;
        CHECK(cudaEventCreate(&later));
        CHECK(cudaEventRecord(later, stream));
        CHECK(cudaEventSynchronize(later));
        CHECK(cudaEventElapsedTime(&milliseconds, event, later));
        require(milliseconds >= 0, "time passes");
        CHECK(cudaEventDestroy(later));
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, model.x);
}

// The host reads the copy after polling an event: between the two there is no call that waits.
static void run_copies(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *host;
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMallocHost(&host, COUNT * sizeof *host));
    for (unsigned n = 0; n < 60; n++) {
        step(x, 3, 1, stream);
        model.step(3, 1);
        if (n % 20 != 19)
            continue;
        CHECK(cudaMemcpyAsync(host, x, COUNT * sizeof *host, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaEventRecord(event, stream));
        while (cudaEventQuery(event) == cudaErrorNotReady)
            (void)cudaGetLastError();
        show("copied", host, model.x);
    }
}

// The host pauses without a call, for about as long as it takes until it counts as idle.
static void run_idle(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 8; n++) {
        step(x, 3, n);
        step(x, 5, n);
        model.step(3, n);
        model.step(5, n);
        std::this_thread::sleep_for(std::chrono::milliseconds(210 + 10 * n));
    }
    show_device("x", x, model.x);
}

__global__ void publish(volatile unsigned *box, const unsigned *x, unsigned n)
{
    box[1] = x[n];
    __threadfence_system();
    box[0] = n;
}

// The host learns from pinned memory alone that a kernel has run: no CUDA call tells it so.
static void run_pinned(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    volatile unsigned *box;
    CHECK(cudaHostAlloc((void **)&box, 64, cudaHostAllocMapped));
    box[0] = 0;
    for (unsigned n = 1; n <= 8; n++) {
        step(x, 3, n);
        publish<<<1, 1>>>(box, x, n);
        launched();
        model.step(3, n);
        while (box[0] != n)
            ;
        const unsigned seen = box[1];
        show("published", &seen, {model.x[n]});
    }
    show_device("x", x, model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {
        {"quiet", run_quiet}, {"polls", run_polls}, {"copies", run_copies}, {"idle", run_idle}, {"pinned", run_pinned}};
    return run_modes(argc, argv, modes);
}
