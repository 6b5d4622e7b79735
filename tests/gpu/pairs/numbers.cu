// Pairs that differ in how they compute: registers, precision, fused operations, tensor cores.
#include "pairs.h"

#include <cuda_fp16.h>
#include <mma.h>

static const unsigned CHAINS = 4, SIDE = 1024, TILE = 16; // of the matrices
static const int VALUES = 96;

// 96 values that are all in use at once.
static __device__ unsigned many_values(unsigned first, unsigned rounds)
{
    unsigned x[VALUES], total = 0;
#pragma unroll
    for (int k = 0; k < VALUES; k++)
        x[k] = first + k;
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (int k = 0; k < VALUES; k++)
            x[k] = x[k] * FACTOR + x[(k + VALUES / 2) % VALUES];
#pragma unroll
    for (int k = 0; k < VALUES; k++)
        total ^= x[k];
    return total;
}

// 40 registers a thread, the other values are in local memory; mended: as many as it needs.
__global__ void __maxnreg__(40) spills_slow(unsigned rounds, unsigned *out)
{
    out[thread_index()] = many_values(threadIdx.x, rounds);
}

__global__ void __launch_bounds__(256) spills_mended(unsigned rounds, unsigned *out)
{
    out[thread_index()] = many_values(threadIdx.x, rounds);
}

// Constants without an `f`: each float becomes a double and a float again.
__global__ void double_slow(unsigned rounds, float *out)
{
    float x = (float)threadIdx.x;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
        x = x * 0.99 + 0.5;
    out[thread_index()] = x;
}

__global__ void double_mended(unsigned rounds, float *out)
{
    float x = (float)threadIdx.x;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
        x = x * 0.99f + 0.5f;
    out[thread_index()] = x;
}

// Multiplications and additions that the compiler must not join.
__global__ void fusion_slow(float factor, unsigned rounds, float *out)
{
    float x[CHAINS];
#pragma unroll
    for (unsigned k = 0; k < CHAINS; k++)
        x[k] = (float)(threadIdx.x + k);
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < CHAINS; k++)
            x[k] = __fadd_rn(__fmul_rn(x[k], factor), 0.5f);
    out[thread_index()] = x[0] + x[1] + x[2] + x[3];
}

__global__ void fusion_mended(float factor, unsigned rounds, float *out)
{
    float x[CHAINS];
#pragma unroll
    for (unsigned k = 0; k < CHAINS; k++)
        x[k] = (float)(threadIdx.x + k);
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < CHAINS; k++)
            x[k] = fmaf(x[k], factor, 0.5f);
    out[thread_index()] = x[0] + x[1] + x[2] + x[3];
}

// c = a * b in half precision, through tiles in shared memory.
__global__ void tensor_slow(const half *a, const half *b, float *c)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const unsigned x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0;
    for (unsigned k = 0; k < SIDE; k += TILE) {
        left[y][x] = __half2float(a[row * SIDE + k + x]);
        right[y][x] = __half2float(b[(k + y) * SIDE + column]);
        __syncthreads();
#pragma unroll
        for (unsigned i = 0; i < TILE; i++)
            sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[row * SIDE + column] = sum;
}

// The same by tensor cores: a tile for each warp.
__global__ void tensor_mended(const half *a, const half *b, float *c)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum;
    const unsigned row = blockIdx.y * TILE, column = (blockIdx.x * blockDim.y + threadIdx.y) * TILE;
    wmma::fill_fragment(sum, 0.0f);
    for (unsigned k = 0; k < SIDE; k += TILE) {
        wmma::load_matrix_sync(left, a + row * SIDE + k, SIDE);
        wmma::load_matrix_sync(right, b + k * SIDE + column, SIDE);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * SIDE + column, sum, SIDE, wmma::mem_row_major);
}

// Small whole numbers, so that every sum is exact.
static void run_tensor(const Device &device)
{
    std::vector<half> a((size_t)SIDE * SIDE), b(a.size());
    for (unsigned row = 0; row < SIDE; row++)
        for (unsigned column = 0; column < SIDE; column++) {
            a[(size_t)row * SIDE + column] = __float2half((float)((row * 3 + column) % 4));
            b[(size_t)row * SIDE + column] = __float2half((float)((row + column * 5) % 3));
        }
    half *left = copy_to_device(a), *right = copy_to_device(b);
    float *out = (float *)device.out;
    const dim3 tiles(SIDE / TILE, SIDE / TILE), threads(TILE, TILE), warps(SIDE / TILE / 4, SIDE / TILE);
    run_pair(device, {"tensor", a.size(), [&] { tensor_slow<<<tiles, threads>>>(left, right, out); },
                      [&] { tensor_mended<<<warps, dim3(32, 4)>>>(left, right, out); }});
    CHECK(cudaFree(left));
    CHECK(cudaFree(right));
}

void run_numbers(const Device &device)
{
    const unsigned grid = device.sms * 8;
    const size_t threads = (size_t)grid * BLOCK;
    unsigned *out = device.out;
    float *floats = (float *)out;
    run_pair(device, {"spills", threads, [&] { spills_slow<<<grid, BLOCK>>>(128, out); },
                      [&] { spills_mended<<<grid, BLOCK>>>(128, out); }});
    run_pair(device, {"double", threads, [&] { double_slow<<<grid, BLOCK>>>(2048, floats); },
                      [&] { double_mended<<<grid, BLOCK>>>(2048, floats); }, Compare::FLOATS});
    run_pair(device, {"fusion", threads, [&] { fusion_slow<<<grid, BLOCK>>>(0.99f, 4096, floats); },
                      [&] { fusion_mended<<<grid, BLOCK>>>(0.99f, 4096, floats); }, Compare::FLOATS});
    run_tensor(device);
}
