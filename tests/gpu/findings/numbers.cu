// What the numbers are: double where float would do, multiplications and additions that could be one, and matrices of
// half precision with and without the tensor cores.
#include "findings.h"

#include <cmath>
#include <cuda_fp16.h>
#include <mma.h>

static const unsigned BLOCK = 256, BLOCKS_PER_SM = 8, CHAINS = 4;
static const unsigned SIDE = 1024, TILE = 16; // of the matrices

// Constants without an `f`: each float becomes a double and a float again.
__global__ void double_by_accident(unsigned rounds, float *out)
{
    float x = (float)threadIdx.x;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
        x = x * 0.999 + 0.5;
    out[thread_index()] = x;
}

__global__ void single_precision(unsigned rounds, float *out)
{
    float x = (float)threadIdx.x;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
        x = x * 0.999f + 0.5f;
    out[thread_index()] = x;
}

// Multiplications and additions that the compiler must not join.
__global__ void non_fused(float factor, unsigned rounds, float *out)
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

__global__ void fused(float factor, unsigned rounds, float *out)
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

// c = a * b, rows one after the other, through tiles in shared memory.
__global__ void matmul_half_without_tensor_cores(const half *a, const half *b, float *c)
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
__global__ void matmul_half_with_tensor_cores(const half *a, const half *b, float *c)
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

// Multiplications and additions of pairs of halves. -x + 3 comes back to x every second time: no sum is rounded.
__global__ void half_precision(half2 factor, half2 addend, unsigned rounds, float *out)
{
    half2 x[CHAINS];
#pragma unroll
    for (unsigned k = 0; k < CHAINS; k++)
        x[k] = __floats2half2_rn((float)threadIdx.x, (float)k);
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < CHAINS; k++)
            x[k] = __hfma2(x[k], factor, addend);
    float total = 0;
#pragma unroll
    for (unsigned k = 0; k < CHAINS; k++)
        total += __low2float(x[k]) + __high2float(x[k]);
    out[thread_index()] = total;
}

template <typename Expected> static bool first_block_holds(const float *out, Expected expected)
{
    const std::vector<float> host = copy_to_host(out, BLOCK);
    for (unsigned i = 0; i < BLOCK; i++)
        if (host[i] != expected(i))
            return false;
    return true;
}

template <typename Step> static float repeated(unsigned thread, unsigned chains, unsigned rounds, Step step)
{
    float total = 0;
    for (unsigned k = 0; k < chains; k++) {
        float x = (float)(thread + k);
        for (unsigned i = 0; i < rounds; i++)
            x = step(x);
        total += x;
    }
    return total;
}

static void run_chains(const Device &device)
{
    const unsigned grid = device.sms * BLOCKS_PER_SM;
    float *out = (float *)device.out;
    const auto once = [](float x) { return fmaf(x, 0.999f, 0.5f); };
    double_by_accident<<<grid, BLOCK>>>(512, out);
    check_launch("double_by_accident", [&] {
        const auto step = [](float x) { return (float)std::fma((double)x, 0.999, 0.5); };
        return first_block_holds(out, [&](unsigned i) { return repeated(i, 1, 512, step); });
    });
    single_precision<<<grid, BLOCK>>>(8192, out);
    check_launch("single_precision",
                 [&] { return first_block_holds(out, [&](unsigned i) { return repeated(i, 1, 8192, once); }); });
    non_fused<<<grid, BLOCK>>>(0.999f, 2048, out);
    check_launch("non_fused", [&] {
        const auto step = [](float x) {
            const volatile float product = x * 0.999f;
            return product + 0.5f;
        };
        return first_block_holds(out, [&](unsigned i) { return repeated(i, CHAINS, 2048, step); });
    });
    fused<<<grid, BLOCK>>>(0.999f, 2048, out);
    check_launch("fused",
                 [&] { return first_block_holds(out, [&](unsigned i) { return repeated(i, CHAINS, 2048, once); }); });
    half_precision<<<grid, BLOCK>>>(__float2half2_rn(-1), __float2half2_rn(3), 2048, out);
    check_launch("half_precision", [&] {
        return first_block_holds(out, [](unsigned i) { return (float)(CHAINS * i + CHAINS * (CHAINS - 1) / 2); });
    });
}

// Small whole numbers, so that every sum is exact.
static bool holds_product(const float *c)
{
    const std::vector<float> host = copy_to_host(c, (size_t)SIDE * SIDE);
    for (unsigned n = 0; n < 4096; n++) {
        const unsigned row = n * 37 % SIDE, column = n * 101 % SIDE;
        unsigned sum = 0;
        for (unsigned k = 0; k < SIDE; k++)
            sum += (row * 3 + k) % 4 * ((k + column * 5) % 3);
        if (host[(size_t)row * SIDE + column] != (float)sum)
            return false;
    }
    return true;
}

static void run_matrices(const Device &device)
{
    std::vector<half> a((size_t)SIDE * SIDE), b(a.size());
    for (unsigned row = 0; row < SIDE; row++)
        for (unsigned column = 0; column < SIDE; column++) {
            a[(size_t)row * SIDE + column] = __float2half((float)((row * 3 + column) % 4));
            b[(size_t)row * SIDE + column] = __float2half((float)((row + column * 5) % 3));
        }
    half *left = copy_to_device(a), *right = copy_to_device(b);
    float *out = (float *)device.out;
    const dim3 tiles(SIDE / TILE, SIDE / TILE), warps(SIDE / TILE / 4, SIDE / TILE);
    matmul_half_without_tensor_cores<<<tiles, dim3(TILE, TILE)>>>(left, right, out);
    check_launch("matmul_half_without_tensor_cores", [&] { return holds_product(out); });
    CHECK(cudaMemset(out, 0, a.size() * sizeof *out));
    matmul_half_with_tensor_cores<<<warps, dim3(32, 4)>>>(left, right, out);
    check_launch("matmul_half_with_tensor_cores", [&] { return holds_product(out); });
    CHECK(cudaFree(left));
    CHECK(cudaFree(right));
}

void run_numbers(const Device &device)
{
    run_chains(device);
    run_matrices(device);
}
