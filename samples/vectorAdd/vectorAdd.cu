// c = a + b over 2^24 floats: the smallest program worth profiling. It checks its own result and prints the counts that
// arithmetic gives for the kernel, so that a profiler's values can be compared with them.
//
// Usage: vectorAdd [launches]
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "vectorAdd: %s: %s\n", #call, cudaGetErrorString(error));                                  \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

__global__ void vectorAdd(const float *a, const float *b, float *c)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] + b[i];
}

// One line per known count: kernel, expression over metric names, value, relative tolerance.
static void print_counts(double elements, double threads_per_block)
{
    const char *kernel = "vectorAdd";
    printf("expect %s launch__grid_size %.0f 0\n", kernel, elements / threads_per_block);
    printf("expect %s launch__block_size %.0f 0\n", kernel, threads_per_block);
    // One addition per thread.
    printf("expect %s smsp__sass_thread_inst_executed_op_fadd_pred_on.sum %.0f 0.001\n", kernel, elements);
    // One warp instruction per 32 elements and array.
    printf("expect %s smsp__inst_executed_op_global_ld.sum %.0f 0.001\n", kernel, 2 * elements / 32);
    printf("expect %s smsp__inst_executed_op_global_st.sum %.0f 0.001\n", kernel, elements / 32);
    // Sectors of 32 bytes: 8 floats each.
    printf("expect %s l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum %.0f 0.001\n", kernel, 2 * elements / 8);
    printf("expect %s l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum %.0f 0.001\n", kernel, elements / 8);
    // a and b come from DRAM once. Writes are not listed: part of c is still in the L2 cache when the kernel ends.
    printf("expect %s dram__bytes_read.sum %.0f 0.03\n", kernel, 2 * elements * sizeof(float));
}

int main(int argc, char **argv)
{
    const size_t count = (size_t)1 << 24, bytes = count * sizeof(float);
    const unsigned block = 256;
    const int launches = argc > 1 ? atoi(argv[1]) : 1;
    std::vector<float> a(count), b(count), c(count);
    for (size_t i = 0; i < count; i++) {
        a[i] = (float)(i % 1000);
        b[i] = (float)(i % 777) * 0.5f;
    }
    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_c, bytes));
    CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
    for (int i = 0; i < launches; i++)
        vectorAdd<<<(unsigned)(count / block), block>>>(device_a, device_b, device_c);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        if (c[i] != a[i] + b[i]) {
            fprintf(stderr, "vectorAdd: wrong result at %zu: %g + %g gave %g\n", i, a[i], b[i], c[i]);
            return 1;
        }
    }
    printf("vectorAdd: %zu sums are right\n", count);
    print_counts((double)count, block);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    return 0;
}
