// Variables of the module that kernels change: no allocation of the program, so whoever saves memory must find them.
//
// Usage: globals MODE...
//   device, constant, managed
#include "exact.h"

__device__ unsigned total[4];
static __device__ unsigned large[COUNT];
__constant__ unsigned factors[2];
__managed__ unsigned shared_total;
__managed__ unsigned shared_values[COUNT];

// A variable of the function lives as long as the module.
__global__ void countCalls(unsigned *seen)
{
    static __device__ unsigned calls;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        calls++;
        *seen = *seen * 31 + calls;
        total[1] += calls;
    }
}

__global__ void addGlobals(unsigned *x, unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    large[i] = large[i] * 3 + addend;
    x[i] += large[i];
    if (threadIdx.x == 0)
        atomicAdd(&total[0], addend);
}

__global__ void applyConstants(unsigned *x)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * factors[0] + factors[1];
}

__global__ void addManaged(unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    shared_values[i] = shared_values[i] * 3 + addend;
    if (threadIdx.x == 0)
        atomicAdd(&shared_total, addend);
}

static void run_device(void)
{
    const unsigned rounds = 12;
    Model model;
    std::vector<unsigned> large_want(COUNT, 0), total_want(4, 0);
    unsigned *x = copy_to_device(model.x), *seen = copy_to_device(std::vector<unsigned>(1, 0)), seen_want = 0;
    for (unsigned n = 1; n <= rounds; n++) {
        addGlobals<<<GRID, BLOCK>>>(x, n);
        launched();
        countCalls<<<2, 32>>>(seen);
        launched();
        for (unsigned i = 0; i < COUNT; i++) {
            large_want[i] = large_want[i] * 3 + n;
            model.x[i] += large_want[i];
        }
        total_want[0] += n * GRID;
        total_want[1] += n;
        seen_want = seen_want * 31 + n;
        if (n % 6 != 0)
            continue;
        unsigned host[4];
        CHECK(cudaMemcpyFromSymbol(host, total, sizeof host));
        show("total", host, total_want);
        total_want[2] = host[2] = n;
        CHECK(cudaMemcpyToSymbol(total, host, sizeof host));
    }
    unsigned *address;
    CHECK(cudaGetSymbolAddress((void **)&address, large));
    show_device("large", address, large_want);
    show_device("seen", seen, {seen_want});
    show_device("x", x, model.x);
}

static void run_constant(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 12; n++) {
        if (n % 3 == 1) {
            const unsigned values[2] = {2 * n + 1, n};
            CHECK(cudaMemcpyToSymbol(factors, values, sizeof values));
        }
        applyConstants<<<GRID, BLOCK>>>(x);
        launched();
        const unsigned last = (n - 1) / 3 * 3 + 1;
        model.step(2 * last + 1, last);
    }
    show_device("x", x, model.x);
}

static void run_managed(void)
{
    std::vector<unsigned> want(COUNT, 0);
    unsigned total_want = 0;
    for (unsigned n = 1; n <= 12; n++) {
        addManaged<<<GRID, BLOCK>>>(n);
        launched();
        total_want += n * GRID;
        for (unsigned &value : want)
            value = value * 3 + n;
        if (n % 4 != 0)
            continue;
        CHECK(cudaDeviceSynchronize());
        show("managed total", &shared_total, {total_want});
        show("managed values", shared_values, want);
        shared_total = total_want = n;
        shared_values[n] = want[n] = 7;
    }
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"device", run_device}, {"constant", run_constant}, {"managed", run_managed}};
    return run_modes(argc, argv, modes);
}
