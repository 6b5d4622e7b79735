// Transposes a square matrix of floats through a tile in shared memory, before and after a mend: with a row of 32
// floats all threads of a warp that read a column of the tile meet in one bank, with one float more they do not. Checks
// its own result.
//
// nvcc -arch=sm_90 -lineinfo -DTILE_ROW=32 -o before transpose.cu
// nvcc -arch=sm_90 -lineinfo -DTILE_ROW=33 -o after transpose.cu
//
// Usage: before [launches]
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef TILE_ROW
#define TILE_ROW 32
#endif

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "transpose: %s: %s\n", #call, cudaGetErrorString(error));                                  \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

__global__ void transpose(const float *in, float *out, unsigned side)
{
    __shared__ float tile[32][TILE_ROW];
    unsigned column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (unsigned i = 0; i < 32; i += 8)
        tile[threadIdx.y + i][threadIdx.x] = in[(size_t)(row + i) * side + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (unsigned i = 0; i < 32; i += 8)
        out[(size_t)(row + i) * side + column] = tile[threadIdx.x][threadIdx.y + i];
}

int main(int argc, char **argv)
{
    const unsigned side = 4096;
    const size_t count = (size_t)side * side, bytes = count * sizeof(float);
    const int launches = argc > 1 ? atoi(argv[1]) : 1;
    std::vector<float> in(count), out(count);
    for (size_t i = 0; i < count; i++)
        in[i] = (float)(i % 1000003);
    float *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, bytes));
    CHECK(cudaMalloc(&device_out, bytes));
    CHECK(cudaMemcpy(device_in, in.data(), bytes, cudaMemcpyHostToDevice));
    for (int i = 0; i < launches; i++)
        transpose<<<dim3(side / 32, side / 32), dim3(32, 8)>>>(device_in, device_out, side);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        if (out[i] != in[i % side * side + i / side]) {
            fprintf(stderr, "transpose: element %zu is %g\n", i, (double)out[i]);
            return 1;
        }
    }
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    printf("transpose: %d launches are right\n", launches);
}
