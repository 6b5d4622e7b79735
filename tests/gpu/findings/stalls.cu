// What warps wait for. Most kernels here do nothing else, so that one stall reason holds most of their cycles.
#include "findings.h"

#include <cmath>

static const unsigned LINE_WORDS = 32, BLOCK = 128; // of 128 bytes; one warp per scheduler

// Each load tells the address of the next one: in[i] == i, and `zero` keeps the compiler from knowing.
static __device__ unsigned follow(const unsigned *in, unsigned at, unsigned step, unsigned mask, unsigned rounds)
{
    unsigned total = 0;
    for (unsigned i = 0; i < rounds; i++) {
        const unsigned value = __ldcg(in + at);
        total += value;
        at = (value + step) & mask;
    }
    return total;
}

static unsigned followed(unsigned at, unsigned step, unsigned mask, unsigned rounds)
{
    unsigned total = 0;
    for (unsigned i = 0; i < rounds; i++) {
        total += at;
        at = (at + step) & mask;
    }
    return total;
}

// One warp per SM, each load from DRAM: neither memory nor arithmetic is busy.
__global__ void latency_bound_chase(const unsigned *in, unsigned step, unsigned mask, unsigned rounds, unsigned *out)
{
    out[thread_index()] = follow(in, (unsigned)thread_index(), step, mask, rounds);
}

// As many warps as fit, each with one load under way: long scoreboard.
__global__ void dependent_loads(const unsigned *in, unsigned step, unsigned mask, unsigned rounds, unsigned *out)
{
    out[thread_index()] = follow(in, (unsigned)thread_index(), step, mask, rounds);
}

// Each load from shared memory tells the address of the next one: short scoreboard.
__global__ void dependent_shared_loads(unsigned step, unsigned rounds, unsigned *out)
{
    __shared__ unsigned next[4096];
    for (unsigned i = threadIdx.x; i < 4096; i += BLOCK)
        next[i] = (i + step) % 4096;
    __syncthreads();
    unsigned at = threadIdx.x;
#pragma unroll 8
    for (unsigned i = 0; i < rounds; i++)
        at = next[at];
    out[thread_index()] = at;
}

// One warp of eight works, the others wait for it: barrier.
__global__ void barrier_waits(unsigned factor, unsigned rounds, unsigned *out)
{
    unsigned x = threadIdx.x;
    for (unsigned i = 0; i < rounds; i++) {
        if (threadIdx.x < 32)
            x = chain(x, factor, 256);
        __syncthreads();
    }
    out[thread_index()] = x;
}

// The same work of every warp, and no barrier.
__global__ void no_barriers(unsigned factor, unsigned rounds, unsigned *out)
{
    unsigned x = threadIdx.x;
    for (unsigned i = 0; i < rounds; i++)
        x = chain(x, factor, 256);
    out[thread_index()] = x;
}

// Each store is followed by a fence of the device: membar.
__global__ void fence_each_store(unsigned rounds, volatile unsigned *out)
{
    for (unsigned i = 0; i <= rounds; i++) {
        out[thread_index()] = i;
        __threadfence();
    }
}

__global__ void fence_once(unsigned rounds, volatile unsigned *out)
{
    for (unsigned i = 0; i <= rounds; i++)
        out[thread_index()] = i;
    __threadfence();
}

// More stores to shared memory than its queue takes, none of which is waited for: MIO throttle.
__global__ void shared_store_flood(unsigned rounds, unsigned *out)
{
    __shared__ volatile unsigned tile[8 * 256];
    for (unsigned i = 0; i <= rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 8; k++)
            tile[k * 256 + threadIdx.x] = i;
    out[thread_index()] = tile[7 * 256 + threadIdx.x];
}

// Stores whose lanes are 32 bytes apart, none of which is waited for: local/global throttle.
__global__ void global_store_flood(unsigned rounds, volatile unsigned *out)
{
    for (unsigned i = 0; i <= rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 8; k++)
            out[thread_index() * 8 + k] = i;
}

// The same number of stores, lanes side by side.
__global__ void global_stores(unsigned rounds, volatile unsigned *out)
{
    for (unsigned i = 0; i <= rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 8; k++)
            out[thread_index() + k * thread_count()] = i;
}

// More fetches than the queue of the texture unit takes: TEX throttle.
__global__ void texture_flood(cudaTextureObject_t texture, unsigned rounds, unsigned *out)
{
    unsigned total = 0;
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 16; k++)
            total += tex1Dfetch<unsigned>(texture, (int)((threadIdx.x + i + k * 256) & 4095));
    out[thread_index()] = total;
}

// One warp per scheduler, each instruction needs the result of the one before: wait, and empty issue slots.
__global__ void dependent_chain(unsigned factor, unsigned rounds, unsigned *out)
{
    out[thread_index()] = chain(threadIdx.x, factor, rounds);
}

// Four branches for each step, which depend on the step before: branch resolving. All threads take the same.
__global__ void many_branches(unsigned first, unsigned rounds, unsigned *out)
{
    unsigned x = first, steps = 0;
#pragma unroll 1
    for (unsigned i = 0; i < rounds; i++) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        asm volatile("xor.b32 %0, %0, " #n ";" : "+r"(steps));                                                         \
        x += 2 * n + 1;                                                                                                \
        break;
        switch (x % 16) {
            CASE(0)
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
            CASE(6)
            CASE(7)
            CASE(8)
            CASE(9)
            CASE(10)
            CASE(11)
            CASE(12)
            CASE(13)
            CASE(14)
            CASE(15)
        }
    }
    out[thread_index()] = x ^ steps;
}

static unsigned jumped(unsigned x, unsigned rounds)
{
    unsigned steps = 0;
    for (unsigned i = 0; i < rounds; i++) {
        const unsigned n = x % 16;
        steps ^= n;
        x += 2 * n + 1;
    }
    return x ^ steps;
}

// 4,096 instructions, which no loop makes shorter; 64 KiB of code.
template <int N> static __device__ __noinline__ void straight_code(float (&x)[4], float factor)
{
    float a = x[0], b = x[1], c = x[2], d = x[3];
#define STEP                                                                                                           \
    asm volatile("fma.rn.f32 %0, %0, %4, %5; fma.rn.f32 %1, %1, %4, %5; fma.rn.f32 %2, %2, %4, %5; "                   \
                 "fma.rn.f32 %3, %3, %4, %5;"                                                                          \
                 : "+f"(a), "+f"(b), "+f"(c), "+f"(d)                                                                  \
                 : "f"(factor), "f"(N * 0.25f));
#define STEPS_4    STEP STEP STEP STEP
#define STEPS_16   STEPS_4 STEPS_4 STEPS_4 STEPS_4
#define STEPS_64   STEPS_16 STEPS_16 STEPS_16 STEPS_16
#define STEPS_256  STEPS_64 STEPS_64 STEPS_64 STEPS_64
#define STEPS_1024 STEPS_256 STEPS_256 STEPS_256 STEPS_256
    STEPS_1024;
    x[0] = a, x[1] = b, x[2] = c, x[3] = d;
}

// Each warp of a block runs through another part of 256 KiB of code: no instruction.
__global__ void huge_code(float factor, unsigned rounds, float *out)
{
    float x[4] = {threadIdx.x + 0.0f, threadIdx.x + 1.0f, threadIdx.x + 2.0f, threadIdx.x + 3.0f};
    for (unsigned i = 0; i < rounds; i++)
        switch ((threadIdx.x / 32 + i) % 4) {
        case 0:
            straight_code<1>(x, factor);
            break;
        case 1:
            straight_code<2>(x, factor);
            break;
        case 2:
            straight_code<3>(x, factor);
            break;
        default:
            straight_code<4>(x, factor);
            break;
        }
    out[thread_index()] = x[0] + x[1] + x[2] + x[3];
}

// The same arithmetic in a loop.
__global__ void small_code(float factor, unsigned rounds, float *out)
{
    float x[4] = {threadIdx.x + 0.0f, threadIdx.x + 1.0f, threadIdx.x + 2.0f, threadIdx.x + 3.0f};
    for (unsigned i = 0; i < rounds; i++) {
        const float addend = (float)((threadIdx.x / 32 + i) % 4 + 1) * 0.25f;
#pragma unroll 8
        for (unsigned step = 0; step < 1024; step++)
#pragma unroll
            for (unsigned k = 0; k < 4; k++)
                x[k] = fmaf(x[k], factor, addend);
    }
    out[thread_index()] = x[0] + x[1] + x[2] + x[3];
}

static float straight(unsigned thread, unsigned rounds)
{
    float total = 0;
    for (unsigned k = 0; k < 4; k++) {
        float x = (float)(thread + k);
        for (unsigned i = 0; i < rounds; i++)
            for (unsigned step = 0; step < 1024; step++)
                x = fmaf(x, 0.999f, (float)((thread / 32 + i) % 4 + 1) * 0.25f);
        total += x;
    }
    return total;
}

__constant__ unsigned constants[16384];

// A constant of another cache line for each instruction: immediate constant cache miss.
__global__ void constant_stream(unsigned rounds, unsigned *out)
{
    unsigned x = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 512; k++)
            x = x * constants[k * LINE_WORDS] + threadIdx.x;
    out[thread_index()] = x;
}

// The same with constants of four cache lines.
__global__ void constant_reuse(unsigned rounds, unsigned *out)
{
    unsigned x = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < rounds; i++)
#pragma unroll
        for (unsigned k = 0; k < 512; k++)
            x = x * constants[k % (4 * LINE_WORDS)] + threadIdx.x;
    out[thread_index()] = x;
}

// Every lane asks for another constant: one request takes 32 turns.
__global__ void constant_divergent_index(unsigned rounds, unsigned *out)
{
    unsigned total = 0;
    for (unsigned i = 0; i < rounds; i++)
        total += constants[(threadIdx.x * 67 + i) % 16384];
    out[thread_index()] = total;
}

__global__ void constant_uniform_index(unsigned rounds, unsigned *out)
{
    unsigned total = 0;
    for (unsigned i = 0; i < rounds; i++)
        total += constants[(threadIdx.x / 32 * 67 + i) % 16384];
    out[thread_index()] = total;
}

// Sleeping.
__global__ void sleeping_wait(unsigned rounds, unsigned *out)
{
    for (unsigned i = 0; i < rounds; i++)
        __nanosleep(500);
    out[thread_index()] = rounds;
}

// Threads that store to eight places far apart and end: drain.
__global__ void store_then_exit(unsigned *out)
{
#pragma unroll
    for (unsigned k = 0; k < 8; k++)
        out[(threadIdx.x % 32 * 8 + k) * (thread_count() / 32) + thread_index() / 32] = k;
}

static void run_memory_waits(const Device &device)
{
    const unsigned sms = device.sms, mask = IN_WORDS - 1, step = (1u << 20) + 8192 + LINE_WORDS;
    unsigned *out = device.out;
    latency_bound_chase<<<sms, 32>>>(device.in, step, mask, 200, out);
    check_launch("latency_bound_chase", [&] {
        return holds(out, sms * 32, [&](size_t i) { return followed((unsigned)i, step, mask, 200); });
    });
    dependent_loads<<<sms * 8, 256>>>(device.in, step, mask, 96, out);
    check_launch("dependent_loads", [&] {
        return holds(out, sms * 2048, [&](size_t i) { return followed((unsigned)i, step, mask, 96); });
    });
    dependent_shared_loads<<<sms, BLOCK>>>(33, 8191, out);
    check_launch("dependent_shared_loads", [&] {
        return holds(out, sms * BLOCK, [](size_t i) { return (unsigned)(i % BLOCK + 33 * 8191) % 4096; });
    });
    shared_store_flood<<<sms * 8, 256>>>(512, out);
    check_launch("shared_store_flood", [&] { return holds(out, sms * 2048, [](size_t) { return 512u; }); });
    global_store_flood<<<sms * 4, 256>>>(8, out);
    check_launch("global_store_flood", [&] { return holds(out, sms * 8192, [](size_t) { return 8u; }); });
    global_stores<<<sms * 4, 256>>>(9, out);
    check_launch("global_stores", [&] { return holds(out, sms * 8192, [](size_t) { return 9u; }); });
    store_then_exit<<<sms * 64, 256>>>(out);
    check_launch("store_then_exit", [&] {
        const size_t warps = sms * 64 * 8;
        return holds(out, warps * 256, [&](size_t i) { return (unsigned)(i / warps % 8); });
    });
}

static void run_texture(const Device &device)
{
    cudaTextureObject_t texture;
    cudaResourceDesc resource = {};
    cudaTextureDesc description = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device.in;
    resource.res.linear.desc = cudaCreateChannelDesc<unsigned>();
    resource.res.linear.sizeInBytes = 4096 * sizeof(unsigned);
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    texture_flood<<<device.sms * 8, 256>>>(texture, 64, device.out);
    check_launch("texture_flood", [&] {
        return holds(device.out, 256, [](size_t thread) {
            unsigned total = 0;
            for (unsigned i = 0; i < 64; i++)
                for (unsigned k = 0; k < 16; k++)
                    total += (unsigned)(thread + i + k * 256) & 4095;
            return total;
        });
    });
    CHECK(cudaDestroyTextureObject(texture));
}

static void run_constants(const Device &device)
{
    const unsigned sms = device.sms;
    unsigned *out = device.out;
    std::vector<unsigned> host(16384);
    for (unsigned i = 0; i < 16384; i++)
        host[i] = i * 8 + 5;
    CHECK(cudaMemcpyToSymbol(constants, host.data(), host.size() * sizeof(unsigned)));
    const auto product = [&](unsigned thread, unsigned rounds, unsigned stride, unsigned period) {
        unsigned x = thread;
        for (unsigned i = 0; i < rounds; i++)
            for (unsigned k = 0; k < 512; k++)
                x = x * host[k % period * stride] + thread;
        return x;
    };
    constant_stream<<<sms, BLOCK>>>(4, out);
    check_launch("constant_stream",
                 [&] { return holds(out, BLOCK, [&](size_t i) { return product((unsigned)i, 4, LINE_WORDS, 512); }); });
    constant_reuse<<<sms, BLOCK>>>(64, out);
    check_launch("constant_reuse", [&] {
        return holds(out, BLOCK, [&](size_t i) { return product((unsigned)i, 64, 1, 4 * LINE_WORDS); });
    });
    const auto sum = [&](size_t first, unsigned rounds) {
        unsigned total = 0;
        for (unsigned i = 0; i < rounds; i++)
            total += host[(first * 67 + i) % 16384];
        return total;
    };
    constant_divergent_index<<<sms * 2, 256>>>(256, out);
    check_launch("constant_divergent_index", [&] { return holds(out, 256, [&](size_t i) { return sum(i, 256); }); });
    constant_uniform_index<<<sms * 2, 256>>>(4096, out);
    check_launch("constant_uniform_index",
                 [&] { return holds(out, 256, [&](size_t i) { return sum(i / 32, 4096); }); });
}

static void run_code(const Device &device)
{
    const unsigned sms = device.sms;
    unsigned *out = device.out;
    const auto right = [&](unsigned rounds) {
        const std::vector<float> sums = copy_to_host((const float *)out, BLOCK);
        for (unsigned i = 0; i < BLOCK; i++)
            if (sums[i] != straight(i, rounds))
                return false;
        return true;
    };
    many_branches<<<sms * 2, BLOCK>>>(1, 4096, out);
    check_launch("many_branches", [&] { return holds(out, sms * 2 * BLOCK, [](size_t) { return jumped(1, 4096); }); });
    huge_code<<<sms, BLOCK>>>(0.999f, 8, (float *)out);
    check_launch("huge_code", [&] { return right(8); });
    small_code<<<sms, BLOCK>>>(0.999f, 8, (float *)out);
    check_launch("small_code", [&] { return right(8); });
}

void run_stalls(const Device &device)
{
    const unsigned sms = device.sms;
    unsigned *out = device.out;
    run_memory_waits(device);
    run_texture(device);
    run_constants(device);
    run_code(device);
    barrier_waits<<<sms, 256>>>(FACTOR, 100, out);
    check_launch("barrier_waits", [&] {
        return holds(out, 256, [](size_t i) {
            unsigned x = (unsigned)i;
            for (unsigned round = 0; round < 100 && i < 32; round++)
                x = chain(x, FACTOR, 256);
            return x;
        });
    });
    no_barriers<<<sms, 256>>>(FACTOR, 100, out);
    check_launch("no_barriers", [&] {
        return holds(out, 256, [](size_t i) {
            unsigned x = (unsigned)i;
            for (unsigned round = 0; round < 100; round++)
                x = chain(x, FACTOR, 256);
            return x;
        });
    });
    fence_each_store<<<sms, BLOCK>>>(128, out);
    check_launch("fence_each_store", [&] { return holds(out, sms * BLOCK, [](size_t) { return 128u; }); });
    fence_once<<<sms, BLOCK>>>(4096, out);
    check_launch("fence_once", [&] { return holds(out, sms * BLOCK, [](size_t) { return 4096u; }); });
    dependent_chain<<<sms, BLOCK>>>(FACTOR, 32768, out);
    check_launch("dependent_chain", [&] { return holds_chains(out, sms * BLOCK, BLOCK, 32768); });
    sleeping_wait<<<sms, BLOCK>>>(200, out);
    check_launch("sleeping_wait", [&] { return holds(out, sms * BLOCK, [](size_t) { return 200u; }); });
}
