// Faults that the sums of a kernel hide.
#include "planted.h"

// 25 Six good loads and one that takes three times the sectors: a fifth of all.
__global__ void one_of_seven(const float *a, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = a[i] + a[i + n] + a[i + 2 * n];
    sum += a[i + 3 * n] + a[i + 4 * n] + a[i + 5 * n];
    sum += a[6 * n + 3 * i]; // FAULT UncoalescedGlobal one_of_seven
    out[i] = sum;
}

__global__ void one_of_seven_ok(const float *a, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = a[i] + a[i + n] + a[i + 2 * n];
    sum += a[i + 3 * n] + a[i + 4 * n] + a[i + 5 * n];
    sum += a[6 * n + i];
    out[i] = sum;
}

// 26 Seven of eight threads leave at once, so that warps go on with four threads.
__global__ void few_threads_left(const float *in, float *out, int steps)
{
    if (threadIdx.x % 8) // FAULT ThreadDivergence few_threads_left
        return;
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll 4
    for (int s = 0; s < steps; s++) // FAULT ThreadDivergence few_threads_left
        x = x * 0.75f + 0.25f;      // FAULT ThreadDivergence few_threads_left
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void few_threads_left_ok(const float *in, float *out, int steps)
{
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll 4
    for (int s = 0; s < steps; s++)
        x = x * 0.75f + 0.25f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

// 27 Two of the warps of a block do all the work, and the others wait for them.
__global__ void two_warps_work(const float *in, float *out, int steps)
{
    __shared__ float part[256];
    float x = in[blockIdx.x * 256 + threadIdx.x];
    for (int s = 0; s < steps; s++) {
        if (threadIdx.x < 64) {
#pragma unroll 1
            for (int k = 0; k < 64; k++)
                x = x * 0.75f + 0.25f;
        }
        part[threadIdx.x] = x;
        __syncthreads(); // FAULT WarpStall two_warps_work
        x += part[threadIdx.x ^ 64];
        __syncthreads(); // FAULT WarpStall two_warps_work
    }
    out[blockIdx.x * 256 + threadIdx.x] = x;
}

__global__ void two_warps_work_ok(const float *in, float *out, int steps)
{
    float x = in[blockIdx.x * 256 + threadIdx.x];
    for (int s = 0; s < steps; s++) {
#pragma unroll 1
        for (int k = 0; k < 16; k++)
            x = x * 0.75f + 0.25f;
        x += __shfl_xor_sync(~0u, x, 1);
    }
    out[blockIdx.x * 256 + threadIdx.x] = x;
}

void run_more(const Data &d)
{
    RUN(one_of_seven, N / 16 / 256, 256, d.a, d.b, N / 16);
    RUN(one_of_seven_ok, N / 16 / 256, 256, d.a, d.b, N / 16);
    RUN(few_threads_left, 132 * 8, 256, d.a, d.b, 2048);
    RUN(few_threads_left_ok, 132 * 8, 256, d.a, d.b, 2048);
    RUN(two_warps_work, 132 * 4, 256, d.a, d.b, 64);
    RUN(two_warps_work_ok, 132 * 4, 256, d.a, d.b, 64);
}
