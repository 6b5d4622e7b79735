// What the kernels of `planted` share: the buffers, and how one is launched.
#ifndef KPROF_TESTS_GPU_PLANTED_H
#define KPROF_TESTS_GPU_PLANTED_H

#include "../programs/check.h"

static const int N = 1 << 24;

// 2 * N floats each, and N integers each.
struct Data {
    float *a, *b, *c, *d;
    int *i, *j;
};

void run_memory(const Data &d);
void run_shared(const Data &d);
void run_control(const Data &d);
void run_more(const Data &d);

#define RUN(kernel, grid, block, ...)                                                                                  \
    do {                                                                                                               \
        kernel<<<grid, block>>>(__VA_ARGS__);                                                                          \
        CHECK(cudaGetLastError());                                                                                     \
        CHECK(cudaDeviceSynchronize());                                                                                \
    } while (0)

#endif
