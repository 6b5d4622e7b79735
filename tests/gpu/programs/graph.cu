// One kernel launched directly, captured into a CUDA graph as two nodes, and run through the graph three times. A
// profiler may decline the graph, but must neither break the capture nor run a node twice.
//
// Usage: graph
#include "check.h"

static const unsigned COUNT = 1 << 20, BLOCK = 256, ROUNDS = 3;

__global__ void affine(unsigned *x, unsigned factor, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * factor + addend;
}

int main(void)
{
    unsigned *x = copy_to_device(std::vector<unsigned>(COUNT, 1)), want = 1 * 3 + 1;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    affine<<<COUNT / BLOCK, BLOCK, 0, stream>>>(x, 3, 1);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    affine<<<COUNT / BLOCK, BLOCK, 0, stream>>>(x, 5, 2);
    affine<<<COUNT / BLOCK, BLOCK, 0, stream>>>(x, 7, 3);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(cudaGraphLaunch(executable, stream));
        want = (want * 5 + 2) * 7 + 3;
    }
    CHECK(cudaStreamSynchronize(stream));
    std::vector<unsigned> result = copy_to_host(x, COUNT);
    for (unsigned value : result)
        require(value == want, "each node ran once per launch of the graph");
    print_checksum("x", result.data(), COUNT * sizeof(unsigned));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(x));
    return 0;
}
