// Kernels that launch kernels. Built with relocatable device code.
//
// Usage: device_side MODE...
//   launch   children that follow the parent
//   streams  children of children beside the parent, in streams that wait for events
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

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"launch", run_launch}, {"streams", run_streams}};
    return run_modes(argc, argv, modes);
}
