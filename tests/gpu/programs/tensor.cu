// Matrix multiply-accumulate on the tensor cores: mma.sync m16n8k16, FP16 inputs, FP32 sums. Each is one instruction of
// a warp and 16 * 8 * 16 * 2 operations.
//
// Usage: tensor [launches]
#include "check.h"

static const unsigned GRID = 1056, BLOCK = 128, CHAINS = 4, ITERATIONS = 1024;

static __device__ void multiply_accumulate(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// `value`: two packed halves that fill both matrices.
__global__ void tensorMma(unsigned value, float *out)
{
    const unsigned a[4] = {value, value, value, value}, b[2] = {value, value};
    float sums[CHAINS][4] = {};
#pragma unroll 1
    for (unsigned i = 0; i < ITERATIONS; i++) {
#pragma unroll
        for (unsigned chain = 0; chain < CHAINS; chain++)
            multiply_accumulate(sums[chain], a, b);
    }
    float total = 0;
#pragma unroll
    for (unsigned chain = 0; chain < CHAINS; chain++)
        total += sums[chain][0] + sums[chain][1] + sums[chain][2] + sums[chain][3];
    out[(size_t)blockIdx.x * BLOCK + threadIdx.x] = total;
}

int main(int argc, char **argv)
{
    const long launches = argument(argc, argv, 1, 3);
    const size_t threads = (size_t)GRID * BLOCK;
    const double instructions = (double)threads / 32 * CHAINS * ITERATIONS;
    float *out;
    CHECK(cudaMalloc(&out, threads * sizeof(float)));
    for (long i = 0; i < launches; i++)
        tensorMma<<<GRID, BLOCK>>>(0x3c003c00, out);
    CHECK(cudaGetLastError());
    // All ones: each multiply-accumulate adds 16 to each of a thread's 4 sums per chain.
    for (float value : copy_to_host(out, threads))
        require(value == 16.0f * ITERATIONS * CHAINS * 4, "sums of the tensor cores");
    printf("tensorMma: %zu sums are right\n", threads);
    expect("tensorMma", "sm__inst_executed_pipe_tensor_op_hmma.sum", instructions, COUNT_TOLERANCE);
    expect("tensorMma", "sm__ops_path_tensor_src_fp16.sum", instructions * 16 * 8 * 16 * 2, COUNT_TOLERANCE);
    CHECK(cudaFree(out));
    return 0;
}
