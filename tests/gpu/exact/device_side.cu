// Kernels that launch kernels. Built with relocatable device code.
//
// Usage: device_side MODE...
//   launch
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

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"launch", run_launch}};
    return run_modes(argc, argv, modes);
}
