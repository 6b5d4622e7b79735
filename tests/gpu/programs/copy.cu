// A copy of 4 GiB, many times the size of any L2 cache: DRAM reads and writes are known to a few percent, since at most
// the L2's worth of written lines is left behind or found.
//
// Usage: copy [launches] [MiB]
#include "check.h"

__global__ void fillPattern(uint4 *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = make_uint4(i, i * 3, i * 5, i * 7);
}

__global__ void copyBuffer(const uint4 *in, uint4 *out)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

__global__ void countDifferences(const uint4 *in, const uint4 *out, unsigned *differences)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint4 a = in[i], b = out[i];
    if (a.x != b.x || a.y != b.y || a.z != b.z || a.w != b.w)
        atomicAdd(differences, 1);
}

int main(int argc, char **argv)
{
    const long launches = argument(argc, argv, 1, 3);
    const size_t bytes = (size_t)argument(argc, argv, 2, 4096) << 20;
    const unsigned block = 256, grid = (unsigned)(bytes / sizeof(uint4) / block);
    uint4 *in, *out;
    CHECK(cudaMalloc(&in, bytes));
    CHECK(cudaMalloc(&out, bytes));
    unsigned *differences = copy_to_device(std::vector<unsigned>(1, 0));
    fillPattern<<<grid, block>>>(in);
    for (long i = 0; i < launches; i++)
        copyBuffer<<<grid, block>>>(in, out);
    countDifferences<<<grid, block>>>(in, out, differences);
    CHECK(cudaGetLastError());
    const unsigned wrong = copy_to_host(differences, 1)[0];
    require(wrong == 0, "the copy equals the original");
    printf("copyBuffer: %zu bytes are right\n", bytes);
    expect("copyBuffer", "dram__bytes_read.sum", (double)bytes, DRAM_TOLERANCE);
    expect("copyBuffer", "dram__bytes_write.sum", (double)bytes, DRAM_TOLERANCE);
    expect("copyBuffer", "dram__bytes_read.sum+dram__bytes_write.sum", 2 * (double)bytes, DRAM_TOLERANCE);
    expect("copyBuffer", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", (double)bytes / 32, COUNT_TOLERANCE);
    expect("copyBuffer", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", (double)bytes / 32, COUNT_TOLERANCE);
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return 0;
}
