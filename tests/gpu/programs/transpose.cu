// Transpose of a 4096 x 4096 matrix through shared memory, twice: with a tile whose columns all fall into one bank
// (each load of a warp takes 32 turns) and with a padded tile (each takes one).
//
// Usage: transpose [launches]
#include "check.h"

static const unsigned TILE = 32, SIZE = 4096;

template <unsigned PITCH> __device__ void transpose_tile(const float *in, float *out, float (*tile)[PITCH])
{
    size_t column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[row * SIZE + column];
    __syncthreads();
    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
    out[row * SIZE + column] = tile[threadIdx.x][threadIdx.y];
}

__global__ void transposeConflicts(const float *in, float *out)
{
    __shared__ float tile[TILE][TILE];
    transpose_tile<TILE>(in, out, tile);
}

__global__ void transposePadded(const float *in, float *out)
{
    __shared__ float tile[TILE][TILE + 1];
    transpose_tile<TILE + 1>(in, out, tile);
}

static void require_transposed(const std::vector<float> &in, const float *device, const char *what)
{
    std::vector<float> out = copy_to_host(device, in.size());
    for (size_t row = 0; row < SIZE; row++)
        for (size_t column = 0; column < SIZE; column++)
            require(out[column * SIZE + row] == in[row * SIZE + column], what);
    print_checksum(what, out.data(), out.size() * sizeof(float));
}

static void print_counts(const char *kernel, double turns_per_load)
{
    const double elements = (double)SIZE * SIZE, warps = elements / 32;
    expect(kernel, "smsp__inst_executed_op_shared_ld.sum", warps, COUNT_TOLERANCE);
    expect(kernel, "smsp__inst_executed_op_shared_st.sum", warps, COUNT_TOLERANCE);
    expect(kernel, "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", warps * turns_per_load,
           COUNT_TOLERANCE);
    expect(kernel, "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum", warps, COUNT_TOLERANCE);
    expect(kernel, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", elements / 8, COUNT_TOLERANCE);
    expect(kernel, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", elements / 8, COUNT_TOLERANCE);
}

int main(int argc, char **argv)
{
    const long launches = argument(argc, argv, 1, 3);
    std::vector<float> host((size_t)SIZE * SIZE);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = (float)i;
    float *in = copy_to_device(host), *out;
    CHECK(cudaMalloc(&out, host.size() * sizeof(float)));
    const dim3 grid(SIZE / TILE, SIZE / TILE), block(TILE, TILE);
    for (long i = 0; i < launches; i++)
        transposeConflicts<<<grid, block>>>(in, out);
    require_transposed(host, out, "conflicts");
    CHECK(cudaMemset(out, 0, host.size() * sizeof(float)));
    for (long i = 0; i < launches; i++)
        transposePadded<<<grid, block>>>(in, out);
    require_transposed(host, out, "padded");
    print_counts("transposeConflicts", 32);
    print_counts("transposePadded", 1);
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return 0;
}
