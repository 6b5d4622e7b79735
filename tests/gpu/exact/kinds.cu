// Kinds of launches, and launches beside a stream capture.
//
// Usage: kinds MODE...
//   cooperative, cluster, dependent, arguments, shared, carveout, capture, capture-other, capture-lost, captures,
//   graph, refused, unselected
#include "exact.h"

#include <algorithm>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void sumGrid(unsigned *x, unsigned *partial)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        partial[blockIdx.x] = x[i] + 1;
    cg::this_grid().sync();
    unsigned sum = 0;
    for (unsigned block = 0; block < gridDim.x; block++)
        sum += partial[block];
    x[i] = x[i] * 3 + sum;
}

static void run_cooperative(void)
{
    const unsigned grid = 64;
    Model model(grid * BLOCK);
    unsigned *x = copy_to_device(model.x), *partial = copy_to_device(std::vector<unsigned>(grid, 0));
    for (unsigned n = 0; n < 6; n++) {
        void *parameters[] = {&x, &partial};
        CHECK(cudaLaunchCooperativeKernel((const void *)sumGrid, dim3(grid), dim3(BLOCK), parameters, 0, NULL));
        launched();
        unsigned sum = 0;
        for (unsigned block = 0; block < grid; block++)
            sum += model.x[block * BLOCK] + 1;
        model.step(3, sum);
    }
    show_device("x", x, model.x);
}

__global__ void addNeighbour(unsigned *x)
{
    __shared__ unsigned values[BLOCK];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    values[threadIdx.x] = x[i];
    cluster.sync();
    const unsigned *others = cluster.map_shared_rank(values, (cluster.block_rank() + 1) % cluster.num_blocks());
    x[i] = x[i] * 3 + others[BLOCK - 1 - threadIdx.x];
    cluster.sync();
}

static void model_cluster(Model &model, unsigned size)
{
    const std::vector<unsigned> before = model.x;
    for (unsigned i = 0; i < COUNT; i++) {
        const unsigned block = i / BLOCK, neighbour = block / size * size + (block % size + 1) % size;
        model.x[i] = before[i] * 3 + before[neighbour * BLOCK + BLOCK - 1 - i % BLOCK];
    }
}

static cudaLaunchConfig_t launch_config(cudaLaunchAttribute *attribute, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(GRID);
    config.blockDim = dim3(BLOCK);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

static void run_cluster(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 0; n < 6; n++) {
        const unsigned size = 2u << n % 3;
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = size;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        const cudaLaunchConfig_t config = launch_config(&attribute, 0);
        CHECK(cudaLaunchKernelEx(&config, addNeighbour, x));
        launched();
        memset(&attribute, 0xff, sizeof attribute);
        model_cluster(model, size);
    }
    show_device("x", x, model.x);
}

__global__ void dependentStep(unsigned *x, unsigned factor, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
    x[i] = x[i] * factor + addend;
}

static void run_dependent(void)
{
    Model model;
    cudaStream_t stream;
    unsigned *x = copy_to_device(model.x);
    CHECK(cudaStreamCreate(&stream));
    for (unsigned n = 1; n <= 10; n++) {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        const cudaLaunchConfig_t config = launch_config(&attribute, stream);
        CHECK(cudaLaunchKernelEx(&config, dependentStep, x, 3u, n));
        launched();
        model.step(3, n);
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, model.x);
}

struct Many {
    unsigned values[900]; // nearly all that fits in the parameters of a launch
};

__global__ void addMany(unsigned *x, Many many, unsigned n)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * 3 + many.values[(i + n) % 900];
}

// The host reuses the memory of its arguments as soon as the launch has returned.
static void run_arguments(void)
{
    Model model;
    static Many many;
    unsigned *x = copy_to_device(model.x), n = 0;
    void *parameters[] = {&x, &many, &n};
    for (unsigned round = 1; round <= 6; round++) {
        n = round;
        for (unsigned i = 0; i < 900; i++)
            many.values[i] = round * 1000 + i;
        for (unsigned i = 0; i < COUNT; i++)
            model.x[i] = model.x[i] * 3 + many.values[(i + n) % 900];
        CHECK(cudaLaunchKernel((const void *)addMany, dim3(GRID), dim3(BLOCK), parameters, 0, NULL));
        launched();
        memset(&many, 0xff, sizeof many);
        n = 0;
    }
    show_device("x", x, model.x);
}

// Neighbours change places within `span` words of dynamic shared memory.
__global__ void reverseShared(unsigned *x, unsigned span)
{
    extern __shared__ unsigned words[];
    for (unsigned i = threadIdx.x; i < span; i += BLOCK)
        words[i] = x[blockIdx.x * span + i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < span; i += BLOCK)
        x[blockIdx.x * span + i] = words[span - 1 - i] * 3 + i;
}

// Dynamic shared memory of different sizes, the larger ones by permission that is given between launches.
static void run_shared(void)
{
    const unsigned spans[] = {1024, 8192, 16384, 32768};
    Model model;
    unsigned *x = copy_to_device(model.x);
    int most = 0;
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    for (unsigned n = 0; n < 8; n++) {
        const unsigned span = spans[n % 4], bytes = span * sizeof(unsigned);
        if (bytes > (unsigned)most)
            continue;
        CHECK(cudaFuncSetAttribute(reverseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
        for (unsigned twice = 0; twice < 2; twice++) {
            reverseShared<<<COUNT / span, BLOCK, bytes>>>(x, span);
            launched();
            const std::vector<unsigned> old = model.x;
            for (unsigned i = 0; i < COUNT; i++)
                model.x[i] = old[i / span * span + span - 1 - i % span] * 3 + i % span;
        }
    }
    show_device("x", x, model.x);
}

static cudaGraphExec_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return executable;
}

// Graphs between plain launches, and a capture while plain launches may still run.
static void run_capture(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    for (unsigned n = 1; n <= 3; n++) {
        step(x, 3, n, stream);
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        for (unsigned node = 0; node < 3; node++)
            affine<<<GRID, BLOCK, 0, stream>>>(x, 5, node);
        cudaGraphExec_t executable = end_capture(stream);
        step(x, 7, n, stream);
        CHECK(cudaGraphLaunch(executable, stream));
        step(x, 9, n, stream);
        CHECK(cudaGraphLaunch(executable, stream));
        model.step(3, n);
        model.step(7, n);
        for (unsigned launch = 0; launch < 2; launch++) {
            for (unsigned node = 0; node < 3; node++)
                model.step(5, node);
            if (launch == 0)
                model.step(9, n);
        }
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaGraphExecDestroy(executable));
        launch_extra += 3 + 2 * 3;
    }
    show_device("x", x, model.x);
}

// Plain launches on one stream while another is being captured.
static void run_capture_other(void)
{
    Model model, captured;
    unsigned *x = copy_to_device(model.x), *y = copy_to_device(captured.x);
    cudaStream_t stream, capturing;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    step(x, 3, 1, stream);
    step(y, 3, 1, capturing);
    CHECK(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeRelaxed));
    for (unsigned n = 0; n < 4; n++) {
        affine<<<GRID, BLOCK, 0, capturing>>>(y, 5, n);
        step(x, 7, n, stream);
    }
    cudaGraphExec_t executable = end_capture(capturing);
    step(x, 9, 1, stream);
    CHECK(cudaGraphLaunch(executable, capturing));
    CHECK(cudaDeviceSynchronize());
    model.step(3, 1);
    captured.step(3, 1);
    for (unsigned n = 0; n < 4; n++) {
        model.step(7, n);
        captured.step(5, n);
    }
    model.step(9, 1);
    launch_extra += 4 + 4;
    show_device("x", x, model.x);
    show_device("y", y, captured.x);
}

// A stream is destroyed while it is captured, where the driver allows that.
static void run_capture_lost(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 6; n++) {
        cudaStream_t stream;
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        affine<<<GRID, BLOCK, 0, stream>>>(x, 5, n);
        if (cudaStreamDestroy(stream) != cudaSuccess) {
            cudaGraph_t graph;
            (void)cudaGetLastError();
            CHECK(cudaStreamEndCapture(stream, &graph));
            CHECK(cudaGraphDestroy(graph));
            CHECK(cudaStreamDestroy(stream));
        }
        step(x, 3, n, NULL);
        model.step(3, n);
    }
    show_device("x", x, model.x);
}

// The share of L1 that is shared memory changes between launches.
static void run_carveout(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 9; n++) {
        const int carveouts[] = {cudaSharedmemCarveoutDefault, cudaSharedmemCarveoutMaxShared,
                                 cudaSharedmemCarveoutMaxL1};
        CHECK(cudaFuncSetAttribute(affine, cudaFuncAttributePreferredSharedMemoryCarveout, carveouts[n % 3]));
        step(x, 3, n, NULL);
        model.step(3, n);
    }
    show_device("x", x, model.x);
}

// A graph that is captured anew and changed at each step. In the last steps something runs beside the capture.
static void run_captures(void)
{
    Model model, other;
    unsigned *x = copy_to_device(model.x), *y = copy_to_device(other.x), value;
    std::vector<unsigned> seen, expected;
    cudaStream_t stream, beside;
    cudaGraph_t graph;
    cudaGraphExec_t executable = NULL;
    cudaGraphExecUpdateResultInfo result;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    for (unsigned n = 1; n <= 12; n++) {
        step(x, 3, n, stream);
        step(y, 3, n, beside);
        CHECK(cudaStreamBeginCapture(stream, n % 2 ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeRelaxed));
        for (unsigned node = 0; node < 3; node++)
            affine<<<GRID, BLOCK, 0, stream>>>(x, 5, n + node);
        if (n > 9)
            step(y, 7, n, beside);
        CHECK(cudaStreamEndCapture(stream, &graph));
        if (executable)
            CHECK(cudaGraphExecUpdate(executable, graph, &result));
        else
            CHECK(cudaGraphInstantiate(&executable, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        step(x, 7, n, stream);
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaMemcpyAsync(&value, x + n, sizeof value, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        seen.push_back(value);
        launch_extra += 2 * 3;

        model.step(3, n);
        model.step(7, n);
        for (unsigned node = 0; node < 3; node++)
            model.step(5, n + node);
        expected.push_back(model.x[n]);
        other.step(3, n);
        if (n > 9)
            other.step(7, n);
    }
    CHECK(cudaDeviceSynchronize());
    show("seen", seen.data(), expected);
    show_device("x", x, model.x);
    show_device("y", y, other.x);
}

// What the nodes of the graph below read: the driver copies the values of arguments.
static cudaKernelNodeParams node_parameters(void **arguments)
{
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)affine;
    parameters.gridDim = dim3(GRID);
    parameters.blockDim = dim3(BLOCK);
    parameters.kernelParams = arguments;
    return parameters;
}

// A graph made by hand, of a memset, two kernels and a copy, changed between its launches.
static void run_graph(void)
{
    Model x_model, y_model;
    unsigned *x = copy_to_device(x_model.x), *y = copy_to_device(y_model.x), factor = 5, addend = 1;
    void *arguments[] = {&x, &factor, &addend};
    cudaKernelNodeParams parameters = node_parameters(arguments);
    cudaMemsetParams fill = {};
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t filling, first, second, copying;
    fill.dst = x;
    fill.value = 3;
    fill.elementSize = sizeof(unsigned);
    fill.width = 1000;
    fill.height = 1;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemsetNode(&filling, graph, NULL, 0, &fill));
    CHECK(cudaGraphAddKernelNode(&first, graph, &filling, 1, &parameters));
    CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &parameters));
    CHECK(cudaGraphAddMemcpyNode1D(&copying, graph, &second, 1, y, x, COUNT / 2 * sizeof(unsigned),
                                   cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (unsigned n = 1; n <= 3; n++) {
        step(x, 3, n);
        x_model.step(3, n);
        step(y, 7, n);
        y_model.step(7, n);
        CHECK(cudaGraphLaunch(executable, 0));
        for (unsigned i = 0; i < fill.width; i++)
            x_model.x[i] = fill.value;
        x_model.step(5, 1);
        x_model.step(5, addend);
        std::copy_n(x_model.x.begin(), COUNT / 2, y_model.x.begin());
        addend = n + 1;
        CHECK(cudaGraphExecKernelNodeSetParams(executable, second, &parameters));
    }
    launch_extra += 2 * 3;
    show_device("x", x, x_model.x);
    show_device("y", y, y_model.x);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
}

// Launches that the driver refuses: nothing runs, and the series goes on.
static void run_refused(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 9; n++) {
        step(x, 3, n);
        model.step(3, n);
        if (n % 3 != 0)
            continue;
        affine<<<GRID, n == 3 ? 4096 : BLOCK, n == 6 ? 1 << 20 : 0>>>(x, 5, n);
        printf("refused: %s\n", cudaGetErrorName(cudaGetLastError()));
        if (n == 9)
            model.step(5, n); // with nothing wrong
    }
    show_device("x", x, model.x);
    launch_count++;
    launch_extra += 2;
}

__global__ void unselectedStep(unsigned *x, unsigned factor, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * factor + addend;
}

// For a profiler that is told to select `affine`.
static void run_unselected(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 10; n++) {
        for (unsigned i = 0; i < n % 3; i++) {
            unselectedStep<<<GRID, BLOCK>>>(x, 5, i);
            CHECK(cudaGetLastError());
            model.step(5, i);
        }
        step(x, 3, n);
        model.step(3, n);
    }
    unselectedStep<<<GRID, BLOCK>>>(x, 7, 1);
    model.step(7, 1);
    show_device("x", x, model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"cooperative", run_cooperative},
                                 {"cluster", run_cluster},
                                 {"dependent", run_dependent},
                                 {"arguments", run_arguments},
                                 {"shared", run_shared},
                                 {"capture", run_capture},
                                 {"capture-other", run_capture_other},
                                 {"graph", run_graph},
                                 {"refused", run_refused},
                                 {"captures", run_captures},
                                 {"unselected", run_unselected},
                                 {"capture-lost", run_capture_lost},
                                 {"carveout", run_carveout}};
    return run_modes(argc, argv, modes);
}
