// Green contexts, which share the memory of the primary one, and launches that record events.
//
// Usage: contexts MODE...
//   green, green-stream, completion
#include "exact.h"

#include <thread>

struct Green {
    CUgreenCtx green;
    CUcontext context, primary;
};

static Green make_green(void)
{
    Green it;
    CUdevResource all, part, rest;
    CUdevResourceDesc description;
    unsigned groups = 1;
    CHECK(cudaDeviceSynchronize()); // what was copied may still be on its way
    CHECK_DRIVER(cuCtxGetCurrent(&it.primary));
    CHECK_DRIVER(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CHECK_DRIVER(cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 16));
    CHECK_DRIVER(cuDevResourceGenerateDesc(&description, &part, 1));
    CHECK_DRIVER(cuGreenCtxCreate(&it.green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CHECK_DRIVER(cuCtxFromGreenCtx(&it.context, it.green));
    return it;
}

// Memory of the primary context, changed in the green one, and the other way round.
static void run_green(void)
{
    Model first, second;
    unsigned *x = copy_to_device(first.x), *y;
    const Green it = make_green();
    CHECK_DRIVER(cuCtxSetCurrent(it.context));
    CHECK_DRIVER(cuMemAlloc((CUdeviceptr *)&y, COUNT * sizeof(unsigned)));
    CHECK_DRIVER(cuMemcpyHtoD((CUdeviceptr)y, second.x.data(), COUNT * sizeof(unsigned)));
    for (unsigned round = 0; round < 2; round++) {
        CHECK_DRIVER(cuCtxSetCurrent(round ? it.primary : it.context));
        for (unsigned n = 1; n <= 6; n++) {
            step(x, 3, n);
            first.step(3, n);
            step(y, 5, n);
            second.step(5, n);
        }
        CHECK(cudaDeviceSynchronize());
        show_device("x", x, first.x);
        show_device("y", y, second.x);
    }
}

// The primary context is current, and the stream is the green one's.
static void run_green_stream(void)
{
    Model model;
    CUstream stream;
    unsigned *x = copy_to_device(model.x);
    const Green it = make_green();
    CHECK_DRIVER(cuGreenCtxStreamCreate(&stream, it.green, CU_STREAM_NON_BLOCKING, 0));
    for (unsigned n = 1; n <= 6; n++) {
        step(x, 3, n, stream);
        model.step(3, n);
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, model.x);
}

// An event that has happened must not become one that has not, as long as nothing records it again.
static void run_completion(void)
{
    Model model;
    cudaStream_t stream;
    cudaEvent_t events[2];
    unsigned *x = copy_to_device(model.x), returned = 0;
    std::atomic<bool> done{false};
    CHECK(cudaStreamCreate(&stream));
    for (cudaEvent_t &event : events)
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (unsigned n = 1; n <= 4; n++) {
        cudaLaunchAttribute attribute = {};
        if (n % 2 == 0) {
            attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
            attribute.val.launchCompletionEvent.event = events[0];
        } else {
            attribute.id = cudaLaunchAttributeProgrammaticEvent;
            attribute.val.programmaticEvent.event = events[1];
            attribute.val.programmaticEvent.triggerAtBlockStart = 1;
        }
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(GRID);
        config.blockDim = dim3(BLOCK);
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = 1;
        CHECK(cudaLaunchKernelEx(&config, affine, x, 3u, n));
        launched();
        model.step(3, n);
    }
    CHECK(cudaStreamSynchronize(stream));
    for (cudaEvent_t event : events)
        CHECK(cudaEventSynchronize(event)); // which may be seen after the stream has ended
    std::thread poller([&] {
        while (!done)
            for (cudaEvent_t event : events)
                returned += cudaEventQuery(event) != cudaSuccess;
    });
    show_device("x", x, model.x); // which closes the batch
    usleep(500000);
    done = true;
    poller.join();
    show("events that went back", &returned, {0});
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {
        {"green", run_green}, {"green-stream", run_green_stream}, {"completion", run_completion}};
    return run_modes(argc, argv, modes);
}
