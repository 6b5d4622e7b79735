// Launches in NVTX ranges: nested ones, a domain, wide and registered names, ranges that are started, and a second
// thread. The number of blocks of a launch is its number, so that a profiler's results tell which one it is;
// tests/gpu/nvtx.py knows the ranges of each.
//
// Usage: nvtx
#include "check.h"

#include <nvtx3/nvToolsExt.h>

#include <thread>

static const unsigned BLOCK = 64, LAUNCHES = 13;

__global__ void mark(unsigned *x)
{
    atomicAdd(&x[gridDim.x], threadIdx.x == 0);
}

static unsigned *counts;

static void launch(unsigned number)
{
    mark<<<number, BLOCK>>>(counts);
    CHECK(cudaGetLastError());
}

static nvtxEventAttributes_t make_event(void)
{
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    return event;
}

static void run_worker(void)
{
    CHECK(cudaSetDevice(0));
    launch(9);
    nvtxRangePushA("worker");
    launch(10);
    nvtxRangePop();
}

static void run_nested(nvtxDomainHandle_t net)
{
    nvtxEventAttributes_t event = make_event();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(net, "conv");
    launch(2);
    nvtxRangePushA("inner");
    launch(3);
    nvtxDomainRangePushEx(net, &event);
    launch(4);
    nvtxDomainRangePop(net);
    nvtxRangePop();
    nvtxRangePushW(L"wide");
    launch(5);
    nvtxRangePushA("inner");
    launch(6);
    nvtxRangePop();
    nvtxRangePop();
}

static void run_started(nvtxDomainHandle_t net)
{
    nvtxEventAttributes_t event = make_event();
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "phase";
    const nvtxRangeId_t epoch = nvtxRangeStartA("epoch");
    launch(7);
    const nvtxRangeId_t phase = nvtxDomainRangeStartEx(net, &event);
    launch(8);
    nvtxRangeEnd(epoch);
    std::thread(run_worker).join();
    nvtxDomainRangeEnd(net, phase);
    nvtxMarkA("no range");
}

int main(void)
{
    nvtxRangePushA("before CUDA");
    nvtxRangePop();
    CHECK(cudaMalloc(&counts, (LAUNCHES + 1) * sizeof *counts));
    CHECK(cudaMemset(counts, 0, (LAUNCHES + 1) * sizeof *counts));
    const nvtxDomainHandle_t net = nvtxDomainCreateA("net");
    launch(1);
    nvtxRangePushA("outer");
    run_nested(net);
    run_started(net);
    nvtxRangePop();
    nvtxRangePushA("a/b[0], c");
    launch(11);
    nvtxRangePop();
    nvtxRangePushA("inner");
    launch(12);
    nvtxRangePop();
    launch(13);
    CHECK(cudaDeviceSynchronize());
    const std::vector<unsigned> result = copy_to_host(counts, LAUNCHES + 1);
    for (unsigned i = 1; i <= LAUNCHES; i++)
        require(result[i] == i, "each launch ran once");
    print_checksum("launches", result.data(), result.size() * sizeof result[0]);
    CHECK(cudaFree(counts));
    return 0;
}
