// Kernels with one fault each, in code as programs have it, and their twins (KERNEL_ok) without. Comments mark lines
// for planted.py: with FAULT those that one of some findings has to name, for a kernel, with SOURCE those that give a
// value that is waited for, and with CALLER those that call a function with the fault.
#include "planted.h"

__global__ void init_floats(float *to, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = (float)((i * 2654435761u) >> 20) / 4096.0f;
}

__global__ void init_ints(int *to, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = (int)((i * 2654435761u) >> 8);
}

int main()
{
    Data d;
    for (float **p : {&d.a, &d.b, &d.c, &d.d}) {
        CHECK(cudaMalloc(p, (size_t)2 * N * sizeof(float)));
        init_floats<<<1024, 256>>>(*p, 2 * N);
    }
    for (int **p : {&d.i, &d.j}) {
        CHECK(cudaMalloc(p, (size_t)N * sizeof(int)));
        init_ints<<<1024, 256>>>(*p, N);
    }
    CHECK(cudaDeviceSynchronize());
    run_memory(d);
    run_shared(d);
    run_control(d);
    run_more(d);
    puts("planted: done");
}
