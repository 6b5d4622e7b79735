// Kernels that launch kernels, and graphs whose kernels decide what runs next. Built with relocatable device code.
//
// Usage: device_side MODE...
//   launch   children that follow the parent
//   streams  children of children beside the parent, in streams that wait for events
//   conditional  graphs with nodes that run if, or as long as, a kernel of theirs says so
#include "exact.h"

__global__ void child(unsigned *x, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * 3 + addend;
}

// Children that follow the parent, one after the other.
__global__ void parent(unsigned *x, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] += 1;
    if (i == 0) {
        child<<<GRID, BLOCK, 0, cudaStreamTailLaunch>>>(x, addend);
        child<<<GRID, BLOCK, 0, cudaStreamTailLaunch>>>(x, addend + 1);
    }
}

static void run_launch(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 6; n++) {
        parent<<<GRID, BLOCK>>>(x, n);
        launched();
        launch_extra += 2;
        step(x, 5, n);
        model.step(1, 1);
        model.step(3, n);
        model.step(3, n + 1);
        model.step(5, n);
    }
    show_device("x", x, model.x);
}

__global__ void leaf(unsigned *x, unsigned factor)
{
    x[blockIdx.x * BLOCK + threadIdx.x] *= factor;
}

// Ends after its own children, so that what waits for it finds their work done.
__global__ void middle(unsigned *x, unsigned n)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        leaf<<<GRID, BLOCK, 0, cudaStreamTailLaunch>>>(x, n);
}

__global__ void tree(unsigned *x, unsigned *y, unsigned n)
{
    if (threadIdx.x > 0 || blockIdx.x > 0)
        return;
    cudaStream_t first, second;
    cudaEvent_t done;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    middle<<<1, 32, 0, first>>>(x, 2 * n + 1);
    cudaEventRecord(done, first);
    cudaStreamWaitEvent(second, done, 0);
    child<<<GRID, BLOCK, 0, second>>>(x, n);
    child<<<GRID, BLOCK, 0, cudaStreamFireAndForget>>>(y, n);
    cudaEventDestroy(done);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}

static void run_streams(void)
{
    Model x_model, y_model;
    unsigned *x = copy_to_device(x_model.x);
    unsigned *y = copy_to_device(y_model.x);
    for (unsigned n = 1; n <= 6; n++) {
        tree<<<GRID, BLOCK>>>(x, y, n);
        launched();
        launch_extra += 4;
        step(x, 5, n);
        x_model.step(2 * n + 1, 0);
        x_model.step(3, n);
        x_model.step(5, n);
        y_model.step(3, n);
    }
    show_device("x", x, x_model.x);
    show_device("y", y, y_model.x);
}

#if CUDART_VERSION >= 12040
// The node runs in each second launch of the graph, or three times in each.
__global__ void decide(cudaGraphConditionalHandle handle, unsigned *state, bool repeats)
{
    state[0]++;
    state[1] = 3;
    cudaGraphSetConditional(handle, repeats || state[0] % 2 == 0);
}

__global__ void decideAgain(cudaGraphConditionalHandle handle, unsigned *state)
{
    cudaGraphSetConditional(handle, --state[1] > 0);
}

// Add a kernel behind a node, if that is there; the new node.
static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *behind, const void *kernel,
                                  void **parameters, unsigned count = 1)
{
    cudaKernelNodeParams launch = {};
    cudaGraphNode_t node;
    const unsigned block = count < BLOCK ? count : BLOCK;
    launch.func = (void *)kernel;
    launch.gridDim = dim3(count / block);
    launch.blockDim = dim3(block);
    launch.kernelParams = parameters;
    CHECK(cudaGraphAddKernelNode(&node, graph, behind, behind ? 1 : 0, &launch));
    return node;
}

static cudaGraph_t add_body(cudaGraph_t graph, cudaGraphNode_t behind, cudaGraphConditionalHandle handle, bool repeats)
{
    cudaGraphNodeParams conditional = {};
    cudaGraphNode_t node;
    conditional.type = cudaGraphNodeTypeConditional;
    conditional.conditional.handle = handle;
    conditional.conditional.type = repeats ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
    conditional.conditional.size = 1;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddNode(&node, graph, &behind, NULL, 1, &conditional));
#else
    CHECK(cudaGraphAddNode(&node, graph, &behind, 1, &conditional));
#endif
    return conditional.conditional.phGraph_out[0];
}

static cudaGraphExec_t make_conditional(unsigned *x, unsigned *state, bool repeats)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphConditionalHandle handle;
    unsigned addend = 1;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
    void *of_decide[] = {&handle, &state, &repeats}, *of_child[] = {&x, &addend}, *of_again[] = {&handle, &state};
    const cudaGraphNode_t first = add_kernel(graph, NULL, (const void *)decide, of_decide);
    cudaGraph_t body = add_body(graph, first, handle, repeats);
    const cudaGraphNode_t last = add_kernel(body, NULL, (const void *)child, of_child, COUNT);
    if (repeats)
        add_kernel(body, &last, (const void *)decideAgain, of_again);
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return executable;
}

static void run_conditional(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *state;
    CHECK(cudaMalloc(&state, 4 * sizeof *state));
    CHECK(cudaMemset(state, 0, 4 * sizeof *state));
    cudaGraphExec_t once = make_conditional(x, state, false), thrice = make_conditional(x, state + 2, true);
    for (unsigned n = 1; n <= 6; n++) {
        CHECK(cudaGraphLaunch(once, 0));
        step(x, 5, n);
        CHECK(cudaGraphLaunch(thrice, 0));
        launch_extra += 9;
        step(x, 7, n);
        if (n % 2 == 0)
            model.step(3, 1);
        model.step(5, n);
        for (int i = 0; i < 3; i++)
            model.step(3, 1);
        model.step(7, n);
    }
    show_device("x", x, model.x);
}
#else
static void run_conditional(void)
{
    skip("this CUDA's graphs have no conditional nodes");
}
#endif

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"launch", run_launch}, {"streams", run_streams}, {"conditional", run_conditional}};
    return run_modes(argc, argv, modes);
}
