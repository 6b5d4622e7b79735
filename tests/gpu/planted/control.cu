#include "planted.h"
#include "fetch.h"

// 17 A divergent branch in the middle of a loop, both sides of which are loops: few branches of all diverge.

__global__ void divergent_middle(const float *in, float *out, int steps)
{
    float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int s = 0; s < steps; s++) {
        float part = sum + s;
#pragma unroll 1
        for (int r = 0; r < 8; r++)
            part = part * 0.5f + 1.0f;
        if ((threadIdx.x ^ s) & 1) { // FAULT BranchDivergence|ThreadDivergence divergent_middle
#pragma unroll 1
            for (int r = 0; r < 24; r++)
                part = part * part * 0.001f + 0.5f;
        } else {
#pragma unroll 1
            for (int r = 0; r < 24; r++)
                part = part * 0.9f - 0.25f;
        }
        sum += part;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void divergent_middle_ok(const float *in, float *out, int steps)
{
    float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int s = 0; s < steps; s++) {
        float part = sum + s;
#pragma unroll 1
        for (int r = 0; r < 8; r++)
            part = part * 0.5f + 1.0f;
        if ((threadIdx.x / 32 ^ s) & 1) {
#pragma unroll 1
            for (int r = 0; r < 24; r++)
                part = part * part * 0.001f + 0.5f;
        } else {
#pragma unroll 1
            for (int r = 0; r < 24; r++)
                part = part * 0.9f - 0.25f;
        }
        sum += part;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// 18 A reduction whose active threads lie far apart.
__global__ void reduce_interleaved(const float *in, float *out)
{
    __shared__ float part[256];
    part[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        if (threadIdx.x % (2 * s) == 0) { // FAULT BranchDivergence|ThreadDivergence reduce_interleaved
            float x = part[threadIdx.x];
#pragma unroll 1
            for (int k = 0; k < 8; k++)
                x = x * 0.5f + part[threadIdx.x + s] * 0.25f;
            part[threadIdx.x] = x;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = part[0];
}

__global__ void reduce_interleaved_ok(const float *in, float *out)
{
    __shared__ float part[256];
    part[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (int s = 128; s >= 32; s /= 2) {
        if (threadIdx.x < s) {
            float x = part[threadIdx.x];
#pragma unroll 1
            for (int k = 0; k < 8; k++)
                x = x * 0.5f + part[threadIdx.x + s] * 0.25f;
            part[threadIdx.x] = x;
        }
        __syncthreads();
    }
    if (threadIdx.x < 32)
        out[blockIdx.x * 32 + threadIdx.x] = part[threadIdx.x];
}

// 19 A local array that a variable indexes: a sort of a few elements of each thread.
__global__ void insertion_sort(const float *in, float *out)
{
    const long base = (long)blockIdx.x * blockDim.x * 24;
    float own[24];
#pragma unroll
    for (int k = 0; k < 24; k++)
        own[k] = in[base + k * blockDim.x + threadIdx.x];
    for (int k = 1; k < 24; k++) {
        const float key = own[k]; // FAULT LocalSpills insertion_sort
        int at = k;
        while (at > 0 && own[at - 1] > key) { // FAULT LocalSpills insertion_sort
            own[at] = own[at - 1];            // FAULT LocalSpills insertion_sort
            at--;
        }
        own[at] = key; // FAULT LocalSpills insertion_sort
    }
#pragma unroll
    for (int k = 0; k < 24; k++)
        out[base + k * blockDim.x + threadIdx.x] = own[k];
}

__global__ void insertion_sort_ok(const float *in, float *out)
{
    const long base = (long)blockIdx.x * blockDim.x * 24;
    float own[24];
#pragma unroll
    for (int k = 0; k < 24; k++)
        own[k] = in[base + k * blockDim.x + threadIdx.x];
#pragma unroll
    for (int round = 0; round < 24; round++) {
#pragma unroll
        for (int k = round & 1; k + 1 < 24; k += 2) {
            const float low = fminf(own[k], own[k + 1]), high = fmaxf(own[k], own[k + 1]);
            own[k] = low, own[k + 1] = high;
        }
    }
#pragma unroll
    for (int k = 0; k < 24; k++)
        out[base + k * blockDim.x + threadIdx.x] = own[k];
}

// 20 Registers spilled by a bound that is too tight.

__global__ void __launch_bounds__(256, 4) tight_bounds(const float *in, float *out, int steps)
{
    float own[96];
#pragma unroll
    for (int k = 0; k < 96; k++)
        own[k] = in[(k * 256 + threadIdx.x) & 0xffff]; // FAULT LocalSpills tight_bounds
#pragma unroll 1
    for (int s = 0; s < steps; s++) {
#pragma unroll
        for (int k = 0; k < 96; k++)
            own[k] = own[k] * 0.5f + own[(k + 37) % 96]; // FAULT LocalSpills tight_bounds
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 96; k++)
        sum += own[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(256, 1) tight_bounds_ok(const float *in, float *out, int steps)
{
    float own[96];
#pragma unroll
    for (int k = 0; k < 96; k++)
        own[k] = in[(k * 256 + threadIdx.x) & 0xffff];
#pragma unroll 1
    for (int s = 0; s < steps; s++) {
#pragma unroll
        for (int k = 0; k < 96; k++)
            own[k] = own[k] * 0.5f + own[(k + 37) % 96];
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 96; k++)
        sum += own[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// 21 FP64 by accident: a constant without its f.
__global__ void double_constant(const float *in, float *out, int steps)
{
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll 4
    for (int s = 0; s < steps; s++) {
        x = x * 1.0009765625f + 0.25f;
        x = x * 0.99 + 0.1; // FAULT DoubleByAccident double_constant
        x = fminf(x, 1000.0f);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void double_constant_ok(const float *in, float *out, int steps)
{
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll 4
    for (int s = 0; s < steps; s++) {
        x = x * 1.0009765625f + 0.25f;
        x = x * 0.99f + 0.1f;
        x = fminf(x, 1000.0f);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

// 22 A load whose value is used many lines on, and still too early; the twin loads the value of the next step first.
static __device__ __forceinline__ float polynomial(float x)
{
#pragma unroll
    for (int k = 0; k < 24; k++)
        x = x * 0.625f + 0.5f;
    return x;
}

__global__ void late_load(const float *in, float *out, int steps)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int s = 0; s < steps; s++) {
        const float value = __ldcg(in + (at & (N - 1))); // SOURCE late_load
        const float other = sum * 0.5f;
        at += 132 * 256 * 4 + (s & 1);
        const float part = other * other + 1.0f;
        const float mixed = part - other;
        sum = polynomial(mixed + value); // FAULT WaitedFor late_load
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void late_load_ok(const float *in, float *out, int steps)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0, next[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        next[k] = __ldcg(in + ((at + k * 132 * 256 * 4) & (N - 1)));
#pragma unroll 1
    for (int s = 0; s < steps; s += 4) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float value = next[k];
            at += 132 * 256 * 4;
            next[k] = __ldcg(in + ((at + 3 * 132 * 256 * 4) & (N - 1)));
            sum = polynomial(polynomial(polynomial(polynomial(sum + value))));
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// 23 A list of neighbours: the address of a load comes from the load before, in a header's function.
__global__ void chase_neighbours(const int *next, int *out, int steps)
{
    int at = (blockIdx.x * blockDim.x + threadIdx.x) & 0xffff;
    int sum = 0;
    for (int s = 0; s < steps; s++) {
        at = follow(next, at) & 0xffff; // FAULT WaitedFor chase_neighbours
        sum += at ^ s;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void chase_neighbours_ok(const int *next, int *out, int steps)
{
    int at = next[(blockIdx.x * blockDim.x + threadIdx.x) & 0xffff] & 0xffff;
    int sum = 0;
    for (int s = 0; s < steps; s++) {
        at = (at * 1664525 + 1013904223) & 0xffff;
        sum += at ^ s;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// 24 A warp shuffle tree behind a special function: warps wait for MUFU through a short scoreboard.
__global__ void table_in_shared(const int *in, int *out, int steps)
{
    __shared__ int table[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x)
        table[k] = in[k] & 1023;
    __syncthreads();
    int at = threadIdx.x;
    for (int s = 0; s < steps; s++) {
        const int entry = table[at]; // SOURCE table_in_shared
        at = (entry + 33 * s) & 1023; // FAULT WaitedFor table_in_shared
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void table_in_shared_ok(const int *in, int *out, int steps)
{
    __shared__ int table[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x)
        table[k] = in[k] & 1023;
    __syncthreads();
    int at = table[threadIdx.x];
    for (int s = 0; s < steps; s++)
        at = (at * 5 + 33 * s) & 1023;
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

void run_control(const Data &d)
{
    RUN(divergent_middle, 132 * 4, 256, d.a, d.b, 64);
    RUN(divergent_middle_ok, 132 * 4, 256, d.a, d.b, 64);
    RUN(reduce_interleaved, N / 1024, 256, d.a, d.b);
    RUN(reduce_interleaved_ok, N / 1024, 256, d.a, d.b);
    RUN(insertion_sort, 132 * 8, 128, d.a, d.b);
    RUN(insertion_sort_ok, 132 * 32, 128, d.a, d.b);
    RUN(tight_bounds, 132 * 8, 256, d.a, d.b, 32);
    RUN(tight_bounds_ok, 132 * 8, 256, d.a, d.b, 128);
    RUN(double_constant, 132 * 8, 256, d.a, d.b, 256);
    RUN(double_constant_ok, 132 * 8, 256, d.a, d.b, 2048);
    RUN(late_load, 132, 128, d.a, d.b, 256);
    RUN(late_load_ok, 132, 128, d.a, d.b, 256);
    RUN(chase_neighbours, 132, 128, d.i, d.j, 256);
    RUN(chase_neighbours_ok, 132 * 4, 128, d.i, d.j, 8192);
    RUN(table_in_shared, 132 * 4, 128, d.i, d.j, 2048);
    RUN(table_in_shared_ok, 132 * 4, 128, d.i, d.j, 8192);
}
