// Chains of fused multiply-adds in FP64, FP32, FP16 and packed FP16, written as volatile PTX so that the compiler
// neither drops nor adds one: 8 chains of ITERATIONS links per thread.
//
// Usage: fma [launches]
#include "check.h"

static const unsigned GRID = 1056, BLOCK = 256, CHAINS = 8, ITERATIONS = 1024;

static __device__ void link_chain(double &x, double a, double b)
{
    asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(a), "d"(b));
}

static __device__ void link_chain(float &x, float a, float b)
{
    asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b));
}

static __device__ void link_chain(unsigned short &x, unsigned short a, unsigned short b)
{
    asm volatile("fma.rn.f16 %0, %0, %1, %2;" : "+h"(x) : "h"(a), "h"(b));
}

static __device__ void link_chain(unsigned &x, unsigned a, unsigned b)
{
    asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
}

template <typename T> static __device__ void run_chains(const T *in, T *out)
{
    const size_t thread = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    const T a = in[CHAINS], b = in[CHAINS + 1];
    T x[CHAINS];
#pragma unroll
    for (unsigned chain = 0; chain < CHAINS; chain++)
        x[chain] = in[chain];
#pragma unroll 1
    for (unsigned i = 0; i < ITERATIONS; i++) {
#pragma unroll
        for (unsigned chain = 0; chain < CHAINS; chain++)
            link_chain(x[chain], a, b);
    }
#pragma unroll
    for (unsigned chain = 0; chain < CHAINS; chain++)
        out[thread * CHAINS + chain] = x[chain];
}

// clang-format off
__global__ void fmaDouble(const double *in, double *out) { run_chains(in, out); }
__global__ void fmaFloat(const float *in, float *out) { run_chains(in, out); }
__global__ void fmaHalf(const unsigned short *in, unsigned short *out) { run_chains(in, out); }
__global__ void fmaHalf2(const unsigned *in, unsigned *out) { run_chains(in, out); }
// clang-format on

// `input`: the starts of the chains, then factor and addend. Factor 1 and addend 0 leave the starts as they are.
template <typename T>
static void run(void (*kernel)(const T *, T *), const char *name, std::vector<T> input, long launches)
{
    const size_t outputs = (size_t)GRID * BLOCK * CHAINS;
    T *in = copy_to_device(input), *out;
    CHECK(cudaMalloc(&out, outputs * sizeof(T)));
    for (long i = 0; i < launches; i++)
        kernel<<<GRID, BLOCK>>>(in, out);
    CHECK(cudaGetLastError());
    std::vector<T> result = copy_to_host(out, outputs);
    for (size_t i = 0; i < outputs; i++)
        require(result[i] == input[i % CHAINS], name);
    print_checksum(name, result.data(), outputs * sizeof(T));
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
}

// `links`: links of a chain that one instruction works on.
static void print_counts(const char *kernel, char type, double flops_per_fma, unsigned links)
{
    const double fmas = (double)GRID * BLOCK * CHAINS * ITERATIONS / links;
    char name[256];
    snprintf(name, sizeof name, "smsp__sass_thread_inst_executed_op_%cfma_pred_on.sum", type);
    expect(kernel, name, fmas, COUNT_TOLERANCE);
    snprintf(name, sizeof name,
             "%g*smsp__sass_thread_inst_executed_op_%cadd_pred_on.sum+%g*smsp__sass_thread_inst_executed_op_%cmul_pred_"
             "on.sum"
             "+%g*smsp__sass_thread_inst_executed_op_%cfma_pred_on.sum",
             flops_per_fma / 2, type, flops_per_fma / 2, type, flops_per_fma, type);
    expect(kernel, name, flops_per_fma * fmas, COUNT_TOLERANCE);
}

int main(int argc, char **argv)
{
    const long launches = argument(argc, argv, 1, 3);
    const unsigned short half_one = 0x3c00, half_two = 0x4000;
    const unsigned half2_one = 0x3c003c00, half2_two = 0x40004000;
    run<double>(fmaDouble, "fmaDouble", {1, 2, 3, 4, 5, 6, 7, 8, 1, 0}, launches);
    run<float>(fmaFloat, "fmaFloat", {1, 2, 3, 4, 5, 6, 7, 8, 1, 0}, launches);
    run<unsigned short>(fmaHalf, "fmaHalf",
                        {half_one, half_two, half_one, half_two, half_one, half_two, half_one, half_two, half_one, 0},
                        launches);
    run<unsigned>(
        fmaHalf2, "fmaHalf2",
        {half2_one, half2_two, half2_one, half2_two, half2_one, half2_two, half2_one, half2_two, half2_one, 0},
        launches);
    print_counts("fmaDouble", 'd', 2, 1);
    print_counts("fmaFloat", 'f', 2, 1);
    // The assembler packs two independent FP16 chains into one instruction (seen with CUDA 13.0 for sm_90): 4 FLOP.
    print_counts("fmaHalf", 'h', 4, 2);
    print_counts("fmaHalf2", 'h', 4, 1);
    return 0;
}
