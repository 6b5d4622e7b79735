// NVTX ranges that come once: of launches alone, with a wait, with sets and copies, with a graph, in two streams, and
// with copies from the host and to it alone; and three of one long kernel in each of two streams that block, which are
// side by side in "beside" and one after the other in "ordered", and in "default", where an event is recorded in the
// default stream between them. The number of blocks of a launch is its number, so that a profiler's results tell which
// one it is; tests/gpu/nvtx.py knows the launches of each range.
//
// Usage: ranges
#include "check.h"

#include <nvtx3/nvToolsExt.h>

static const unsigned BLOCK = 64, LAUNCHES = 17, LONG_STEPS = 1 << 20;
static const size_t BYTES = 1 << 20, FEW_BYTES = 1000, ROW_BYTES = 512, ROWS = 1 << 10;

__global__ void mark(unsigned *x)
{
    atomicAdd(&x[gridDim.x], threadIdx.x == 0);
}

__global__ void work_long(float *x, unsigned steps)
{
    float sum = threadIdx.x;
    for (unsigned i = 0; i < steps; i++)
        sum = sum * 0.5f + 1;
    if (sum == -1)
        *x = sum;
}

static unsigned *counts;

static void launch(unsigned number, cudaStream_t stream = 0)
{
    mark<<<number, BLOCK, 0, stream>>>(counts);
    CHECK(cudaGetLastError());
}

static void run_plain(void)
{
    nvtxRangePushA("plain");
    launch(2);
    launch(3);
    launch(4);
    nvtxRangePop();
    nvtxRangePushA("wait");
    launch(5);
    CHECK(cudaDeviceSynchronize());
    launch(6);
    nvtxRangePop();
}

static void run_copies(unsigned char *a, unsigned char *b, std::vector<unsigned char> &host)
{
    nvtxRangePushA("copies");
    launch(7);
    CHECK(cudaMemset(a, 1, BYTES));
    CHECK(cudaMemcpy(b, a, BYTES, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(a, host.data(), BYTES, cudaMemcpyHostToDevice));
    launch(8);
    CHECK(cudaMemcpy(host.data(), b, BYTES, cudaMemcpyDeviceToHost));
    launch(9);
    nvtxRangePop();
}

static void run_graph(cudaGraphExec_t graph, cudaStream_t stream)
{
    nvtxRangePushA("graph");
    CHECK(cudaGraphLaunch(graph, stream));
    launch(12, stream);
    nvtxRangePop();
}

static void run_streams(const cudaStream_t *streams)
{
    nvtxRangePushA("streams");
    launch(13, streams[0]);
    launch(14, streams[1]);
    nvtxRangePop();
}

// From pinned and from pageable memory, many bytes, few, and rows, of which the host gets all.
static void run_input(unsigned char *a, std::vector<unsigned char> &host, cudaStream_t stream)
{
    unsigned char *pinned, *to;
    const std::vector<unsigned char> few(FEW_BYTES, 3);
    CHECK(cudaMallocHost(&pinned, 4 * BYTES));
    CHECK(cudaMalloc(&to, 4 * BYTES));
    memset(pinned, 5, 4 * BYTES);
    nvtxRangePushA("input");
    launch(15, stream);
    CHECK(cudaMemcpyAsync(to, pinned, 4 * BYTES, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(a, host.data(), BYTES, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(to, few.data(), FEW_BYTES, cudaMemcpyHostToDevice, stream));
    launch(16, stream);
    CHECK(cudaMemcpy2DAsync(to + BYTES, 2 * ROW_BYTES, host.data(), ROW_BYTES, ROW_BYTES, ROWS, cudaMemcpyHostToDevice,
                            stream));
    CHECK(cudaMemcpyAsync(pinned, to, 2 * BYTES, cudaMemcpyDeviceToHost, stream));
    launch(17, stream);
    CHECK(cudaStreamSynchronize(stream));
    nvtxRangePop();
    for (size_t i = 0; i < 4 * BYTES; i++) {
        const bool is_row = i >= BYTES && i < 2 * BYTES && (i - BYTES) % (2 * ROW_BYTES) < ROW_BYTES;
        require(pinned[i] == (i < FEW_BYTES ? 3 : is_row ? host[0] : 5), "the host gets what it gave");
    }
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(to));
}

static void run_beside(float *x, const cudaStream_t *streams)
{
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    nvtxRangePushA("beside");
    work_long<<<18, BLOCK, 0, streams[0]>>>(x, LONG_STEPS);
    work_long<<<19, BLOCK, 0, streams[1]>>>(x, LONG_STEPS);
    nvtxRangePop();
    CHECK(cudaDeviceSynchronize());
    nvtxRangePushA("ordered");
    work_long<<<20, BLOCK, 0, streams[0]>>>(x, LONG_STEPS);
    CHECK(cudaEventRecord(event, streams[0]));
    CHECK(cudaStreamWaitEvent(streams[1], event, 0));
    work_long<<<21, BLOCK, 0, streams[1]>>>(x, LONG_STEPS);
    nvtxRangePop();
    CHECK(cudaDeviceSynchronize());
    nvtxRangePushA("default");
    work_long<<<22, BLOCK, 0, streams[0]>>>(x, LONG_STEPS);
    CHECK(cudaEventRecord(event, cudaStreamLegacy));
    work_long<<<23, BLOCK, 0, streams[1]>>>(x, LONG_STEPS);
    nvtxRangePop();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventDestroy(event));
}

static cudaGraphExec_t make_graph(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch(10, stream);
    launch(11, stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

int main(void)
{
    unsigned char *a, *b;
    cudaStream_t streams[2];
    std::vector<unsigned char> host(BYTES, 7);
    CHECK(cudaMalloc(&counts, (LAUNCHES + 1) * sizeof *counts));
    CHECK(cudaMalloc(&a, BYTES));
    CHECK(cudaMalloc(&b, BYTES));
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemset(counts, 0, (LAUNCHES + 1) * sizeof *counts));
    const cudaGraphExec_t graph = make_graph(streams[0]);
    launch(1);
    CHECK(cudaDeviceSynchronize());
    run_plain();
    run_copies(a, b, host);
    run_graph(graph, streams[0]);
    run_streams(streams);
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned char> sevens(BYTES, 7);
    run_input(a, sevens, streams[0]);
    run_beside(reinterpret_cast<float *>(b), streams);
    const std::vector<unsigned> result = copy_to_host(counts, LAUNCHES + 1);
    for (unsigned i = 1; i <= LAUNCHES; i++)
        require(result[i] == i, "each launch ran once");
    const std::vector<unsigned char> left = copy_to_host(a, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        require(left[i] == 7 && host[i] == 1, "copies are those of the program");
    print_checksum("launches", result.data(), result.size() * sizeof result[0]);
    return 0;
}
