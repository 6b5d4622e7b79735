#include "planted.h"

// 12 A transpose through a tile without the pad.
__global__ void transpose_tile(const float *in, float *out, int side)
{
    __shared__ float tile[32][32];
    const int x = blockIdx.x * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        tile[threadIdx.y + k][threadIdx.x] = in[(long)(blockIdx.y * 32 + threadIdx.y + k) * side + x];
    __syncthreads();
    const int to = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8) {
        const float value = tile[threadIdx.x][threadIdx.y + k]; // FAULT SharedBankConflicts transpose_tile
        out[(long)(blockIdx.x * 32 + threadIdx.y + k) * side + to] = value;
    }
}

__global__ void transpose_tile_ok(const float *in, float *out, int side)
{
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        tile[threadIdx.y + k][threadIdx.x] = in[(long)(blockIdx.y * 32 + threadIdx.y + k) * side + x];
    __syncthreads();
    const int to = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8) {
        const float value = tile[threadIdx.x][threadIdx.y + k];
        out[(long)(blockIdx.x * 32 + threadIdx.y + k) * side + to] = value;
    }
}

// 13 Batched GEMM of 64 x 64 matrices in tiles of 32, one of them stored transposed without a pad.
__global__ void gemm_batched(const float *a, const float *b, float *c)
{
    __shared__ float left[32][32];
    __shared__ float right[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    a += (long)blockIdx.z * 4096, b += (long)blockIdx.z * 4096, c += (long)blockIdx.z * 4096;
    float sum = 0;
    for (int t = 0; t < 2; t++) {
        left[y][x] = a[(blockIdx.y * 32 + y) * 64 + t * 32 + x];
        right[y][x] = b[(blockIdx.x * 32 + y) * 64 + t * 32 + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const float l = left[y][k];
            const float r = right[x][k]; // FAULT SharedBankConflicts gemm_batched
            sum += l * r;
        }
        __syncthreads();
    }
    c[(blockIdx.y * 32 + y) * 64 + blockIdx.x * 32 + x] = sum;
}

__global__ void gemm_batched_ok(const float *a, const float *b, float *c)
{
    __shared__ float left[32][32];
    __shared__ float right[32][33];
    const int x = threadIdx.x, y = threadIdx.y;
    a += (long)blockIdx.z * 4096, b += (long)blockIdx.z * 4096, c += (long)blockIdx.z * 4096;
    float sum = 0;
    for (int t = 0; t < 2; t++) {
        left[y][x] = a[(blockIdx.y * 32 + y) * 64 + t * 32 + x];
        right[y][x] = b[(blockIdx.x * 32 + y) * 64 + t * 32 + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const float l = left[y][k];
            const float r = right[x][k];
            sum += l * r;
        }
        __syncthreads();
    }
    c[(blockIdx.y * 32 + y) * 64 + blockIdx.x * 32 + x] = sum;
}

// 14 A histogram in shared memory whose keys are nearly all the same; the twin has bins for each lane.
__global__ void histogram_shared(const int *keys, int *bins, int n)
{
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int key = keys[i] & 3;
        atomicAdd(own + key, i & 7); // FAULT SharedBankConflicts histogram_shared
    }
    __syncthreads();
    bins[blockIdx.x * 256 + threadIdx.x] = own[threadIdx.x];
}

__global__ void histogram_shared_ok(const int *keys, int *bins, int n)
{
    __shared__ int own[4 * 256];
    for (int k = 0; k < 4; k++)
        own[k * 256 + threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int key = keys[i] & 3;
        own[key * 256 + threadIdx.x] += i & 7;
    }
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 4; k++)
        sum += own[k * 256 + threadIdx.x];
    bins[blockIdx.x * 256 + threadIdx.x] = sum;
}

// 15 A barrier in each step of a loop, where one warp of eight has most of the work.
__global__ void barrier_imbalance(const float *in, float *out, int steps)
{
    __shared__ float stage[256];
    float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int s = 0; s < steps; s++) {
        const int rounds = threadIdx.x / 32 == s % 8 ? 200 : 4;
        for (int r = 0; r < rounds; r++)
            sum = sum * 0.999f + 0.5f;
        stage[threadIdx.x] = sum;
        __syncthreads(); // FAULT WarpStall barrier_imbalance
        sum += stage[(threadIdx.x + 32) % 256];
        __syncthreads(); // FAULT WarpStall barrier_imbalance
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void barrier_imbalance_ok(const float *in, float *out, int steps)
{
    __shared__ float stage[256];
    float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int s = 0; s < steps; s++) {
        for (int r = 0; r < 200; r++)
            sum = sum * 0.999f + 0.5f;
        stage[threadIdx.x] = sum;
        __syncthreads();
        sum += stage[(threadIdx.x + 32) % 256];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// 16 N-body: bodies in shared memory as records of 32 bytes that each lane reads at its own place.
struct Body { float x, y, z, mass, vx, vy, vz, age; };

__global__ void nbody_records(const Body *bodies, float *force, int tiles)
{
    __shared__ Body tile[128];
    const Body own = bodies[blockIdx.x * blockDim.x + threadIdx.x];
    float fx = 0;
    for (int t = 0; t < tiles; t++) {
        tile[threadIdx.x] = bodies[t * 128 + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 128; k++) {
            const Body *other = tile + ((k + threadIdx.x) & 127);
            const float dx = other->x - own.x; // FAULT SharedBankConflicts nbody_records
            fx += dx * rsqrtf(dx * dx + 0.01f);
        }
        __syncthreads();
    }
    force[blockIdx.x * blockDim.x + threadIdx.x] = fx;
}

__global__ void nbody_records_ok(const float *xs, float *force, int tiles)
{
    __shared__ float tile[128];
    const float own = xs[blockIdx.x * blockDim.x + threadIdx.x];
    float fx = 0;
    for (int t = 0; t < tiles; t++) {
        tile[threadIdx.x] = xs[t * 128 + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 128; k++) {
            const float dx = tile[(k + threadIdx.x) & 127] - own;
            fx += dx * rsqrtf(dx * dx + 0.01f);
        }
        __syncthreads();
    }
    force[blockIdx.x * blockDim.x + threadIdx.x] = fx;
}

void run_shared(const Data &d)
{
    RUN(transpose_tile, dim3(128, 128), dim3(32, 8), d.a, d.b, 4096);
    RUN(transpose_tile_ok, dim3(128, 128), dim3(32, 8), d.a, d.b, 4096);
    RUN(gemm_batched, dim3(2, 2, 1024), dim3(32, 32), d.a, d.b, d.c);
    RUN(gemm_batched_ok, dim3(2, 2, 1024), dim3(32, 32), d.a, d.b, d.c);
    RUN(histogram_shared, 132 * 4, 256, d.i, d.j, N / 2);
    RUN(histogram_shared_ok, 132 * 4, 256, d.i, d.j, N / 2);
    RUN(barrier_imbalance, 132 * 4, 256, d.a, d.b, 64);
    RUN(barrier_imbalance_ok, 132 * 4, 256, d.a, d.b, 64);
    RUN(nbody_records, 132 * 4, 128, (Body *)d.a, d.b, 16);
    RUN(nbody_records_ok, 132 * 4, 128, d.a, d.b, 64);
}
