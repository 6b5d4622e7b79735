// A CUDA graph of three kernels, two of them side by side, launched again and again with a plain launch before each. A
// profiler may measure the graph's kernels one by one or the graph as a whole, but nothing may run twice.
//
// Usage: graphs KIND [ROUNDS]
//   kernels  nothing but kernels
//   child    the same, as a child graph
//   mixed    a memset before them and a copy within the device after them
//   update   what a kernel is given changes before each launch
//   host     a function of the host is called after them
//   copies   a copy from pinned memory before them and one to pageable memory after them, of which a function of the
//   host
//            then makes what the next launch copies
#include "check.h"

static const unsigned COUNT = 1 << 20, BLOCK = 256;

// Powers of two keep the results exact in any order of evaluation.
__global__ void scale(float *x, float factor, float addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * factor + addend;
}

__global__ void shift(float *y, float addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    y[i] += addend;
}

__global__ void join(float *x, const float *y)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * 0.5f + y[i];
}

static unsigned host_calls;

struct Graph {
    bool sets, updates, calls_host, copies, is_child;
    float *x, *y, *z, addend = 1;
    float *input; // pinned
    std::vector<float> output;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t scaling;
};

static void CUDART_CB call_host(void *user)
{
    Graph &g = *static_cast<Graph *>(user);
    host_calls++;
    for (unsigned i = 0; g.copies && i < COUNT; i++) {
        g.input[i] = g.output[i] * 0.25f;
        g.output[i] = 0;
    }
}

static cudaGraphNode_t add_kernel(Graph &g, const void *kernel, void **arguments, std::vector<cudaGraphNode_t> after)
{
    cudaGraphNode_t node;
    cudaKernelNodeParams parameters = {};
    parameters.func = const_cast<void *>(kernel);
    parameters.gridDim = dim3(COUNT / BLOCK);
    parameters.blockDim = dim3(BLOCK);
    parameters.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&node, g.graph, after.data(), after.size(), &parameters));
    return node;
}

static void put_into_parent(Graph &g)
{
    cudaGraph_t parent;
    cudaGraphNode_t node;
    CHECK(cudaGraphCreate(&parent, 0));
    CHECK(cudaGraphAddChildGraphNode(&node, parent, NULL, 0, g.graph));
    CHECK(cudaGraphDestroy(g.graph));
    g.graph = parent;
}

static void build(Graph &g)
{
    float factor = 2, one = 1;
    void *scale_arguments[] = {&g.x, &factor, &g.addend}, *shift_arguments[] = {&g.y, &one};
    void *join_arguments[] = {&g.x, &g.y};
    std::vector<cudaGraphNode_t> first;
    cudaGraphNode_t node;
    CHECK(cudaGraphCreate(&g.graph, 0));
    if (g.sets) {
        cudaMemsetParams fill = {};
        fill.dst = g.y;
        fill.elementSize = sizeof(float);
        fill.width = COUNT;
        fill.height = 1;
        CHECK(cudaGraphAddMemsetNode(&node, g.graph, NULL, 0, &fill));
        first.push_back(node);
    }
    if (g.copies) {
        CHECK(cudaGraphAddMemcpyNode1D(&node, g.graph, NULL, 0, g.y, g.input, COUNT * sizeof(float),
                                       cudaMemcpyHostToDevice));
        first.push_back(node);
    }
    g.scaling = add_kernel(g, (const void *)scale, scale_arguments, first);
    cudaGraphNode_t shifting = add_kernel(g, (const void *)shift, shift_arguments, first);
    cudaGraphNode_t joining = add_kernel(g, (const void *)join, join_arguments, {g.scaling, shifting});
    if (g.sets)
        CHECK(cudaGraphAddMemcpyNode1D(&node, g.graph, &joining, 1, g.z, g.x, COUNT * sizeof(float),
                                       cudaMemcpyDeviceToDevice));
    node = joining;
    if (g.copies)
        CHECK(cudaGraphAddMemcpyNode1D(&node, g.graph, &joining, 1, g.output.data(), g.x, COUNT * sizeof(float),
                                       cudaMemcpyDeviceToHost));
    cudaHostNodeParams call = {call_host, &g};
    cudaGraphNode_t before = node;
    if (g.calls_host)
        CHECK(cudaGraphAddHostNode(&node, g.graph, &before, 1, &call));
    if (g.is_child)
        put_into_parent(g);
    CHECK(cudaGraphInstantiate(&g.executable, g.graph, 0));
}

static void update(Graph &g)
{
    float factor = 2;
    void *arguments[] = {&g.x, &factor, &g.addend};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)scale;
    parameters.gridDim = dim3(COUNT / BLOCK);
    parameters.blockDim = dim3(BLOCK);
    parameters.kernelParams = arguments;
    g.addend += 1;
    CHECK(cudaGraphExecKernelNodeSetParams(g.executable, g.scaling, &parameters));
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "kernels";
    const long rounds = argument(argc, argv, 2, 4);
    Graph g;
    g.sets = strcmp(kind, "mixed") == 0;
    g.updates = strcmp(kind, "update") == 0;
    g.is_child = strcmp(kind, "child") == 0;
    g.copies = strcmp(kind, "copies") == 0;
    g.calls_host = g.copies || strcmp(kind, "host") == 0;
    g.input = NULL; // the process has no pinned memory unless it must
    if (g.copies) {
        g.output.resize(COUNT);
        CHECK(cudaMallocHost(&g.input, COUNT * sizeof(float)));
        memset(g.input, 0, COUNT * sizeof(float));
    }
    g.x = copy_to_device(std::vector<float>(COUNT, 1));
    g.y = copy_to_device(std::vector<float>(COUNT, 0));
    g.z = copy_to_device(std::vector<float>(COUNT, 0));
    build(g);
    float x = 1, y = 0;
    for (long i = 0; i < rounds; i++) {
        scale<<<COUNT / BLOCK, BLOCK>>>(g.x, 0.5f, 1);
        CHECK(cudaGraphLaunch(g.executable, 0));
        y = (g.sets ? 0 : g.copies && i > 0 ? x * 0.25f : y) + 1;
        x = ((x * 0.5f + 1) * 2 + g.addend) * 0.5f + y;
        if (g.updates)
            update(g);
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<float> result = copy_to_host(g.x, COUNT), copied = copy_to_host(g.z, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        require(result[i] == x && copied[i] == (g.sets ? x : 0), "each node ran once per launch of the graph");
    require(host_calls == (g.calls_host ? rounds : 0), "the host's function was called once per launch of the graph");
    print_checksum("x", result.data(), COUNT * sizeof(float));
    printf("host calls: %u\n", host_calls);
    CHECK(cudaGraphExecDestroy(g.executable));
    CHECK(cudaGraphDestroy(g.graph));
    CHECK(cudaFreeHost(g.input));
    CHECK(cudaFree(g.x));
    CHECK(cudaFree(g.y));
    CHECK(cudaFree(g.z));
    return 0;
}
