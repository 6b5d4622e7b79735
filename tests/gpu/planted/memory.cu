#include "planted.h"
#include "fetch.h"

// 1 AoS: one field of a record of 32 bytes, beside five arrays that are read well.
struct Particle { float x, y, z, vx, vy, vz, mass, charge; };

__global__ void aos_energy(const Particle *p, const float *vx, const float *vy, const float *vz, float *energy, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float ux = vx[i];
    const float uy = vy[i];
    const float uz = vz[i];
    const float m = p[i].mass; // FAULT UncoalescedGlobal aos_energy
    energy[i] = 0.5f * m * (ux * ux + uy * uy + uz * uz);
}

__global__ void aos_energy_ok(const float *mass, const float *vx, const float *vy, const float *vz, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float ux = vx[i];
    const float uy = vy[i];
    const float uz = vz[i];
    const float m = mass[i];
    out[i] = 0.5f * m * (ux * ux + uy * uy + uz * uz);
}

// 2 A transpose that writes down columns.
__global__ void transpose_naive(const float *in, float *out, int side)
{
    const int x = blockIdx.x * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8) {
        const int y = blockIdx.y * 32 + threadIdx.y + k;
        const float value = in[(long)y * side + x];
        out[(long)x * side + y] = value; // FAULT UncoalescedGlobal transpose_naive
    }
}

__global__ void transpose_naive_ok(const float *in, float *out, int side)
{
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        tile[threadIdx.y + k][threadIdx.x] = in[(long)(blockIdx.y * 32 + threadIdx.y + k) * side + x];
    __syncthreads();
    const int to = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        out[(long)(blockIdx.x * 32 + threadIdx.y + k) * side + to] = tile[threadIdx.x][threadIdx.y + k];
}

// 3 A 7-point stencil whose coefficients lie 8 floats apart: one bad load among seven good ones.
__global__ void stencil_coefficients(const float *in, const float *coefficient, float *out, int nx, int ny, int nz)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    for (int z = 1; z < nz - 1; z++) {
        const long at = ((long)z * ny + y) * nx + x;
        float sum = in[at - 1] + in[at + 1];
        sum += in[at - nx] + in[at + nx];
        sum += in[at - (long)nx * ny] + in[at + (long)nx * ny];
        const float w = coefficient[(at & 0x1fffff) * 8]; // FAULT UncoalescedGlobal stencil_coefficients
        out[at] = w * sum - in[at];
    }
}

__global__ void stencil_coefficients_ok(const float *in, const float *coefficient, float *out, int nx, int ny, int nz)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    for (int z = 1; z < nz - 1; z++) {
        const long at = ((long)z * ny + y) * nx + x;
        float sum = in[at - 1] + in[at + 1];
        sum += in[at - nx] + in[at + nx];
        sum += in[at - (long)nx * ny] + in[at + (long)nx * ny];
        const float w = coefficient[at & 0x1fffff];
        out[at] = w * sum - in[at];
    }
}

// 4 Softmax, a row to a thread instead of a row to a warp: the maximum, the sum and the result are all uncoalesced.
__global__ void softmax_rows(const float *in, float *out, int rows, int columns)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    const float *from = in + (long)row * columns;
    float most = -1e30f, sum = 0;
    for (int k = 0; k < columns; k++)
        most = fmaxf(most, from[k]); // FAULT UncoalescedGlobal softmax_rows
    for (int k = 0; k < columns; k++)
        sum += __expf(from[k] - most); // FAULT UncoalescedGlobal softmax_rows
    for (int k = 0; k < columns; k++)
        out[(long)row * columns + k] = __expf(from[k] - most) / sum; // FAULT UncoalescedGlobal softmax_rows
}

__global__ void softmax_rows_ok(const float *in, float *out, int rows, int columns)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    const float *from = in + (long)row * columns;
    float most = -1e30f, sum = 0;
    for (int k = lane; k < columns; k += 32)
        most = fmaxf(most, from[k]);
    for (int s = 16; s; s /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, s));
    for (int k = lane; k < columns; k += 32)
        sum += __expf(from[k] - most);
    for (int s = 16; s; s /= 2)
        sum += __shfl_xor_sync(~0u, sum, s);
    for (int k = lane; k < columns; k += 32)
        out[(long)row * columns + k] = __expf(from[k] - most) / sum;
}

// 5 Sparse matrix times vector, a row of 64 entries to a thread; the twin has a warp to a row.
__global__ void spmv_scalar(const int *column, const float *value, const float *x, float *y, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int k = row * 64; k < row * 64 + 64; k++) {
        const int at = (column[k] & 1) + (k & 0x3fe); // FAULT UncoalescedGlobal spmv_scalar
        sum += value[k] * x[at];          // FAULT UncoalescedGlobal spmv_scalar
    }
    y[row] = sum;
}

__global__ void spmv_scalar_ok(const int *column, const float *value, const float *x, float *y, int rows)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float sum = 0;
    for (int k = row * 64 + lane; k < row * 64 + 64; k += 32) {
        const int at = (column[k] & 1) + (k & 0x3fe);
        sum += value[k] * x[at];
    }
    for (int s = 16; s; s /= 2)
        sum += __shfl_xor_sync(~0u, sum, s);
    if (lane == 0)
        y[row] = sum;
}

// 6 A scatter as of one pass of a radix sort, without sorting the block first.
__global__ void radix_scatter(const int *keys, int *sorted, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int key = keys[i];
    const int digit = i & 255;
    const int rank = i >> 8;
    sorted[digit * (n >> 8) + rank] = key; // FAULT UncoalescedGlobal radix_scatter
}

__global__ void radix_scatter_ok(const int *keys, int *sorted, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int key = keys[i];
    const int digit = i / (n >> 8);
    const int rank = i % (n >> 8);
    sorted[digit * (n >> 8) + rank] = key;
}

// 7 Through a template, two functions deep, in a header.
__global__ void walk_columns(const float *in, float *out, int n)
{
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += fetch_scaled<float, 16>(in, i, 1.5f); // CALLER walk_columns
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void walk_columns_ok(const float *in, float *out, int n)
{
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += fetch_scaled<float, 1>(in, i, 1.5f);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// 8 Pixels of 3 floats, which a thread reads one by one; the twin reads whole float4.
__global__ void luminance_float3(const float *rgb, float *grey, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float3 pixel = {rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]}; // FAULT UncoalescedGlobal luminance_float3
    grey[i] = 0.3f * pixel.x + 0.6f * pixel.y + 0.1f * pixel.z;
}

__global__ void luminance_float3_ok(const float4 *rgb, float *grey, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float4 pixel = rgb[i];
    grey[i] = 0.3f * pixel.x + 0.6f * pixel.y + 0.1f * pixel.z;
}

// 9 One of eight arrays is read with every second element: small beside the others, and still the one bad line.
__global__ void eight_arrays(const float *a, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = a[i];
    sum += a[i + n];
    sum += a[i + 2 * n];
    sum += a[i + 3 * n];
    sum += a[i + 4 * n];
    sum += a[i + 5 * n];
    sum += a[6 * n + 4 * i]; // FAULT UncoalescedGlobal|PartialSectors eight_arrays
    out[i] = sum;
}

__global__ void eight_arrays_ok(const float *a, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = a[i];
    sum += a[i + n];
    sum += a[i + 2 * n];
    sum += a[i + 3 * n];
    sum += a[i + 4 * n];
    sum += a[i + 5 * n];
    sum += a[i + 6 * n];
    out[i] = sum;
}

// 10 A histogram of few bins by global atomics; the twin counts in shared memory first.
__global__ void histogram_global(const int *keys, int *bins, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int bin = keys[i] & 15;
        atomicAdd(bins + bin, 1); // FAULT Atomics histogram_global
    }
}

__global__ void histogram_global_ok(const int *keys, int *bins, int n)
{
    __shared__ int own[16 * 256];
    for (int k = 0; k < 16; k++)
        own[k * 256 + threadIdx.x] = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        own[(keys[i] & 15) * 256 + threadIdx.x]++;
    __syncthreads();
    if (threadIdx.x < 16) {
        int sum = 0;
        for (int k = 0; k < 256; k++)
            sum += own[threadIdx.x * 256 + (k + threadIdx.x) % 256];
        atomicAdd(bins + threadIdx.x, sum);
    }
}

// 11 A dot product that takes a ticket for each warp's sum by compare and swap; the twin adds up blocks.
__device__ void add_by_swap(float *sum, float value)
{
    int *word = (int *)sum, old = *word, seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, __float_as_int(value + __int_as_float(seen))); // FAULT Atomics dot_by_swap
    } while (seen != old);
}

__global__ void dot_by_swap(const float *a, const float *b, float *sums, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float value = a[i] * b[i];
    for (int s = 16; s; s /= 2)
        value += __shfl_xor_sync(~0u, value, s);
    if (threadIdx.x % 32 == 0)
        add_by_swap(sums + (blockIdx.x & 63), value); // CALLER dot_by_swap
}

__global__ void dot_by_swap_ok(const float *a, const float *b, float *sums, int n)
{
    float value = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value += a[i] * b[i];
    for (int s = 16; s; s /= 2)
        value += __shfl_xor_sync(~0u, value, s);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sums + (blockIdx.x & 63), value);
}

void run_memory(const Data &d)
{
    const int block = 256, few = 1 << 22;
    RUN(aos_energy, few / block, block, (Particle *)d.a, d.b, d.c, d.d, d.b + N / 2, few);
    RUN(aos_energy_ok, few / block, block, d.a, d.b, d.c, d.d, d.b + N / 2, few);
    RUN(transpose_naive, dim3(64, 64), dim3(32, 8), d.a, d.b, 2048);
    RUN(transpose_naive_ok, dim3(64, 64), dim3(32, 8), d.a, d.b, 2048);
    RUN(stencil_coefficients, dim3(256 / 32, 256 / 8), dim3(32, 8), d.a, d.b, d.c, 256, 256, 64);
    RUN(stencil_coefficients_ok, dim3(256 / 32, 256 / 8), dim3(32, 8), d.a, d.b, d.c, 256, 256, 64);
    RUN(softmax_rows, 16384 / 128, 128, d.a, d.b, 16384, 256);
    RUN(softmax_rows_ok, 16384 / 8, block, d.a, d.b, 16384, 256);
    RUN(spmv_scalar, 65536 / block, block, d.i, d.a, d.b, d.c, 65536);
    RUN(spmv_scalar_ok, 65536 / 8, block, d.i, d.a, d.b, d.c, 65536);
    RUN(radix_scatter, few / block, block, d.i, d.j, few);
    RUN(radix_scatter_ok, few / block, block, d.i, d.j, few);
    RUN(walk_columns, 132 * 8, block, d.a, d.b, N / 16);
    RUN(walk_columns_ok, 132 * 8, block, d.a, d.b, N);
    RUN(luminance_float3, few / block, block, d.a, d.b, few);
    RUN(luminance_float3_ok, few / block, block, (float4 *)d.a, d.b, few);
    RUN(eight_arrays, (N / 16) / block, block, d.a, d.b, N / 16);
    RUN(eight_arrays_ok, (N / 16) / block, block, d.a, d.b, N / 16);
    RUN(histogram_global, 132 * 4, block, d.i, d.j, N / 8);
    RUN(histogram_global_ok, 132 * 4, block, d.i, d.j, N / 8);
    RUN(dot_by_swap, (N / 32) / block, block, d.a, d.b, d.c, N / 32);
    RUN(dot_by_swap_ok, 132 * 4, block, d.a, d.b, d.c, N);
}
