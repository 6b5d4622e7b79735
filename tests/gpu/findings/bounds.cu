// What limits a launch: DRAM, arithmetic, both or neither, and which pipe.
#include "findings.h"

#include <cmath>

static const unsigned BLOCK = 256, BLOCKS_PER_SM = 8, CHAINS = 8; // 64 warps per SM

__global__ void dram_bound_sum(const uint4 *in, size_t count, unsigned passes, unsigned *out)
{
    unsigned total = 0;
    for (unsigned pass = 0; pass < passes; pass++)
#pragma unroll 4
        for (size_t i = thread_index(); i < count; i += thread_count()) {
            const uint4 value = __ldcg(in + i);
            total += value.x + value.y + value.z + value.w;
        }
    out[thread_index()] = total;
}

// Each word takes part in 20 multiply-adds, about as many as the SMs do in the time that DRAM takes to read it.
__global__ void compute_and_memory(const uint4 *in, size_t count, float factor, float *out)
{
    float total[4] = {};
#pragma unroll 2
    for (size_t i = thread_index(); i < count; i += thread_count()) {
        const uint4 value = in[i];
        const float x[4] = {__uint_as_float(value.x & 1), __uint_as_float(value.y & 1), __uint_as_float(value.z & 1),
                            __uint_as_float(value.w & 1)};
#pragma unroll
        for (unsigned step = 0; step < 20; step++)
#pragma unroll
            for (unsigned k = 0; k < 4; k++)
                total[k] = fmaf(total[k], factor, x[k] + 0.5f);
    }
    out[thread_index()] = total[0] + total[1] + total[2] + total[3];
}

static __device__ float fused_chains(float factor, unsigned rounds)
{
    float x[CHAINS];
#pragma unroll
    for (unsigned k = 0; k < CHAINS; k++)
        x[k] = (float)(threadIdx.x + k);
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < CHAINS; k++)
            x[k] = fmaf(x[k], factor, 0.5f);
    float total = 0;
#pragma unroll
    for (unsigned k = 0; k < CHAINS; k++)
        total += x[k];
    return total;
}

__global__ void compute_bound_fma(float factor, unsigned rounds, float *out)
{
    out[thread_index()] = fused_chains(factor, rounds);
}

// Rotations and exclusive-ors.
__global__ void pipe_alu(unsigned rounds, unsigned *out)
{
    unsigned x[4] = {threadIdx.x, threadIdx.x + 1, threadIdx.x + 2, threadIdx.x + 3};
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            x[k] = __funnelshift_l(x[k], x[k], 5) ^ i;
    out[thread_index()] = x[0] ^ x[1] ^ x[2] ^ x[3];
}

static unsigned rotated(unsigned x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = (x << 5 | x >> 27) ^ i;
    return x;
}

// 2^x by the unit for transcendental functions. x = 2^-x has one solution, 0.641186, and each step comes nearer to it.
__global__ void pipe_xu(unsigned rounds, float *out)
{
    float x[4] = {0.1f, 0.2f, 0.3f, 0.4f};
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            asm volatile("{.reg .f32 n; neg.ftz.f32 n, %0; ex2.approx.ftz.f32 %0, n;}" : "+f"(x[k]));
    out[thread_index()] = (x[0] + x[1] + x[2] + x[3]) / 4;
}

__global__ void pipe_fp64(double factor, unsigned rounds, double *out)
{
    double x[4] = {(double)threadIdx.x, threadIdx.x + 1.0, threadIdx.x + 2.0, threadIdx.x + 3.0};
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            x[k] = fma(x[k], factor, 0.5);
    out[thread_index()] = x[0] + x[1] + x[2] + x[3];
}

// mma.sync m16n8k16 on matrices of ones: each adds 16 to every sum.
__global__ void pipe_tensor(unsigned ones, unsigned rounds, float *out)
{
    float sums[4][4] = {};
#pragma unroll 1
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
                         "{%0,%1,%2,%3};"
                         : "+f"(sums[k][0]), "+f"(sums[k][1]), "+f"(sums[k][2]), "+f"(sums[k][3])
                         : "r"(ones));
    float total = 0;
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
        total += sums[k][0] + sums[k][1] + sums[k][2] + sums[k][3];
    out[thread_index()] = total;
}

// Of each 16 instructions, 8 go to the FMA pipe, 4 to the ALU, 3 to the FP64 pipe and 1 to the XU.
__global__ void pipes_balanced(float factor, unsigned rounds, float *out)
{
    float x[8], y = 0.1f;
    unsigned n[4] = {threadIdx.x, threadIdx.x + 1, threadIdx.x + 2, threadIdx.x + 3};
    double z[3] = {1, 2, 3};
#pragma unroll
    for (unsigned k = 0; k < 8; k++)
        x[k] = (float)(threadIdx.x + k);
#pragma unroll 2
    for (unsigned i = 0; i < rounds; i++) {
#pragma unroll
        for (unsigned k = 0; k < 8; k++)
            x[k] = fmaf(x[k], factor, 0.5f);
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            n[k] = __funnelshift_l(n[k], n[k], 5);
#pragma unroll
        for (unsigned k = 0; k < 3; k++)
            z[k] = fma(z[k], (double)factor, 0.5);
        asm volatile("{.reg .f32 n; neg.ftz.f32 n, %0; ex2.approx.ftz.f32 %0, n;}" : "+f"(y));
    }
    // Use every chain, and add nothing: the rotations come round to small numbers, the others stay above 0.
    const bool never = (n[0] ^ n[1] ^ n[2] ^ n[3]) > 0xffff || y < 0 || z[0] + z[1] + z[2] < 0;
    out[thread_index()] = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7] + (never ? 1.0f : 0.0f);
}

template <typename T> static T fused(T x, T factor, T addend, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = std::fma(x, factor, addend);
    return x;
}

static float fused_total(unsigned thread, unsigned rounds)
{
    float total = 0;
    for (unsigned k = 0; k < CHAINS; k++)
        total += fused<float>((float)(thread + k), 0.999f, 0.5f, rounds);
    return total;
}

template <typename T, typename Expected> static bool first_block_holds(const unsigned *out, Expected expected)
{
    const std::vector<T> host = copy_to_host((const T *)out, BLOCK);
    for (unsigned i = 0; i < BLOCK; i++)
        if (!expected(i, host[i]))
            return false;
    return true;
}

static void run_pipes(const Device &device)
{
    const unsigned grid = device.sms * BLOCKS_PER_SM;
    unsigned *out = device.out;
    pipe_alu<<<grid, BLOCK>>>(1024, out);
    check_launch("pipe_alu", [&] {
        return first_block_holds<unsigned>(out, [](unsigned i, unsigned value) {
            return value == (rotated(i, 1024) ^ rotated(i + 1, 1024) ^ rotated(i + 2, 1024) ^ rotated(i + 3, 1024));
        });
    });
    pipe_xu<<<grid, BLOCK>>>(512, (float *)out);
    check_launch("pipe_xu", [&] {
        return first_block_holds<float>(out, [](unsigned, float value) { return fabsf(value - 0.641186f) < 1e-4f; });
    });
    pipe_fp64<<<grid, BLOCK>>>(0.999, 2048, (double *)out);
    check_launch("pipe_fp64", [&] {
        return first_block_holds<double>(out, [](unsigned i, double value) {
            double total = 0;
            for (unsigned k = 0; k < 4; k++)
                total += fused<double>(i + k, 0.999, 0.5, 2048);
            return value == total;
        });
    });
    pipe_tensor<<<grid, BLOCK>>>(0x3c003c00, 512, (float *)out);
    check_launch("pipe_tensor", [&] {
        return first_block_holds<float>(out, [](unsigned, float value) { return value == 16.0f * 512 * 16; });
    });
    pipes_balanced<<<grid, BLOCK>>>(0.999f, 512, (float *)out);
    check_launch("pipes_balanced", [&] {
        return first_block_holds<float>(out, [](unsigned i, float value) { return value == fused_total(i, 512); });
    });
}

void run_bounds(const Device &device)
{
    const unsigned grid = device.sms * BLOCKS_PER_SM;
    unsigned *out = device.out;
    dram_bound_sum<<<grid, BLOCK>>>((const uint4 *)device.in, IN_WORDS / 4, 2, out);
    check_launch("dram_bound_sum", [&] { return adds_up(out, (size_t)grid * BLOCK, 2 * series(IN_WORDS, 1)); });
    compute_and_memory<<<grid, BLOCK>>>((const uint4 *)device.in, IN_WORDS / 4, 0.5f, (float *)out);
    check_launch("compute_and_memory", [&] { // each of the four sums comes near to 0.5 / (1 - 0.5)
        return first_block_holds<float>(out, [](unsigned, float value) { return fabsf(value - 4.0f) < 1e-4f; });
    });
    compute_bound_fma<<<grid, BLOCK>>>(0.999f, 2048, (float *)out);
    check_launch("compute_bound_fma", [&] {
        return first_block_holds<float>(out, [](unsigned i, float value) { return value == fused_total(i, 2048); });
    });
    run_pipes(device);
}
