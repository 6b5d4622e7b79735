// x = a * x + b in place: a kernel that a replay changes for good unless memory is restored before every pass. The
// result must be that of exactly one execution per launch.
//
// Usage: inplace [launches]
#include "check.h"

__global__ void scaleInPlace(float *x, float a, float b)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = fmaf(a, x[i], b);
}

int main(int argc, char **argv)
{
    const size_t count = (size_t)1 << 24;
    const unsigned block = 256;
    const long launches = argument(argc, argv, 1, 3);
    require(launches >= 1 && launches <= 8, "1 to 8 launches (whole numbers must stay exact in a float)");
    std::vector<float> host(count);
    for (size_t i = 0; i < count; i++)
        host[i] = (float)(i % 1024);
    float *device = copy_to_device(host);
    for (long i = 0; i < launches; i++)
        scaleInPlace<<<(unsigned)(count / block), block>>>(device, 3.0f, 1.0f);
    CHECK(cudaGetLastError());
    std::vector<float> result = copy_to_host(device, count);
    for (size_t i = 0; i < count; i++) {
        float want = host[i];
        for (long n = 0; n < launches; n++)
            want = 3.0f * want + 1.0f;
        require(result[i] == want, "each launch changed x exactly once");
    }
    print_checksum("x", result.data(), count * sizeof(float));
    expect("scaleInPlace", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", (double)count, COUNT_TOLERANCE);
    expect("scaleInPlace", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", (double)count / 8, COUNT_TOLERANCE);
    expect("scaleInPlace", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", (double)count / 8, COUNT_TOLERANCE);
    expect("scaleInPlace", "dram__bytes_read.sum", (double)count * sizeof(float), DRAM_TOLERANCE);
    CHECK(cudaFree(device));
    return 0;
}
