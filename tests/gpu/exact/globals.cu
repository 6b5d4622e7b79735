// Variables of the module that kernels change: no allocation of the program, so whoever saves memory must find them.
//
// Usage: globals MODE...
//   device, constant, foreign, constant-foreign, passed, managed, managed-passed
#include "exact.h"

__device__ unsigned total[4];
static __device__ unsigned large[COUNT];
__constant__ unsigned factors[2];

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

// New constants come from the host and from device memory.
static void run_constant(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *source = copy_to_device(std::vector<unsigned>({9, 4}));
    for (unsigned n = 1; n <= 12; n++) {
        const unsigned values[2] = {2 * n + 1, n};
        if (n % 6 == 1)
            CHECK(cudaMemcpyToSymbol(factors, values, sizeof values));
        else if (n % 6 == 4)
            CHECK(cudaMemcpyToSymbolAsync(factors, source, sizeof values, 0, cudaMemcpyDeviceToDevice, 0));
        applyConstants<<<GRID, BLOCK>>>(x);
        launched();
        const unsigned last = (n - 1) / 6 * 6 + 1;
        if (n < last + 3)
            model.step(2 * last + 1, last);
        else
            model.step(9, 4);
    }
    show_device("x", x, model.x);
}

// The kernel of another module, which knows nothing of these variables, changes them through their addresses.
static void run_foreign(void)
{
    const LoadedModule loaded = load_module(read_neighbour("exact-module.ptx"));
    Model model;
    unsigned *x = copy_to_device(model.x), *address, module_total, module_want = 5;
    std::vector<unsigned> want(COUNT);
    CHECK(cudaGetSymbolAddress((void **)&address, large));
    CHECK(cudaMemcpy(want.data(), address, COUNT * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned n = 1; n <= 9; n++) {
        step_loaded(loaded.step, (CUdeviceptr)address, 5, n);
        if (n % 3 != 0) {
            addGlobals<<<GRID, BLOCK>>>(x, n);
            launched();
        }
        module_want += n;
        for (unsigned i = 0; i < COUNT; i++) {
            want[i] = want[i] * 5 + n;
            if (n % 3 == 0)
                continue;
            want[i] = want[i] * 3 + n;
            model.x[i] += want[i];
        }
    }
    show_device("large", address, want);
    show_device("x", x, model.x);
    CHECK_DRIVER(cuMemcpyDtoH(&module_total, loaded.total, sizeof module_total));
    show("module total", &module_total, {module_want});
}

__device__ unsigned passed[COUNT];
__device__ unsigned char marks[64][2]; // as programs have them by the dozen

__global__ void passOn(unsigned **address, unsigned char **mark)
{
    *address = passed;
    *mark = marks[63];
}

// Device code alone knows the address of these variables and leaves it in memory, where the host finds it.
static void run_passed(void)
{
    const LoadedModule loaded = load_module(read_neighbour("exact-module.ptx"));
    unsigned **place = copy_to_device(std::vector<unsigned *>(1, nullptr));
    unsigned char **mark = copy_to_device(std::vector<unsigned char *>(1, nullptr));
    passOn<<<1, 1>>>(place, mark); // not to be measured, nor counted
    CHECK(cudaGetLastError());
    unsigned *address = copy_to_host(place, 1)[0];
    std::vector<unsigned> want(COUNT, 0);
    for (unsigned n = 1; n <= 9; n++) {
        step_loaded(loaded.step, (CUdeviceptr)address, 5, n);
        for (unsigned &value : want)
            value = value * 5 + n;
    }
    show_device("passed", address, want);
    require(copy_to_host(copy_to_host(mark, 1)[0], 1)[0] == 0, "nothing else is there");
}

static bool can_write_constants(const LoadedModule &loaded, CUdeviceptr address, unsigned *x)
{
    const unsigned before[2] = {1, 0};
    CHECK(cudaMemcpyToSymbol(factors, before, sizeof before));
    step_loaded(loaded.step, address, 2, 3, 2); // 1, 0 becomes 5, 3
    if (cudaDeviceSynchronize() != cudaSuccess)
        return false;
    applyConstants<<<GRID, BLOCK>>>(x);
    launched();
    return copy_to_host(x, 2) == std::vector<unsigned>({0 * 5 + 3, 1 * 5 + 3});
}

// The same with constants, where the GPU lets a kernel write them.
static void run_constant_foreign(void)
{
    const LoadedModule loaded = load_module(read_neighbour("exact-module.ptx"));
    Model model;
    unsigned *x = copy_to_device(model.x), want[2] = {5, 3};
    void *address;
    CHECK(cudaGetSymbolAddress(&address, factors));
    if (!can_write_constants(loaded, (CUdeviceptr)address, x))
        skip("kernels cannot write constants here");
    model.step(5, 3);
    for (unsigned n = 1; n <= 6; n++) {
        step_loaded(loaded.step, (CUdeviceptr)address, 2, n, 2);
        applyConstants<<<GRID, BLOCK>>>(x);
        launched();
        for (unsigned &value : want)
            value = value * 2 + n;
        model.step(want[0], want[1]);
    }
    show_device("x", x, model.x);
}

static const char *const managed_ptx = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 managed_total;
.visible .entry addManaged(.param .u32 addend)
{
    .reg .u32 %r<3>;
    ld.param.u32 %r1, [addend];
    ld.global.u32 %r2, [managed_total];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [managed_total], %r2;
    ret;
}
.visible .entry tellManaged(.param .u64 place)
{
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [place];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u64 %rd3, managed_total;
    cvta.global.u64 %rd3, %rd3;
    st.global.u64 [%rd2], %rd3;
    ret;
})";

static CUfunction managed_function(CUmodule module, const char *name)
{
    CUfunction function;
    CHECK_DRIVER(cuModuleGetFunction(&function, module, name));
    return function;
}

static void launch_one(CUfunction function, void *argument)
{
    void *parameters[] = {argument};
    CHECK_DRIVER(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    launch_count++;
}

// What the host writes to a managed variable between launches.
static void add_and_write(CUfunction add, volatile unsigned *value)
{
    unsigned want = 0;
    for (unsigned n = 1; n <= 8; n++) {
        launch_one(add, &n);
        CHECK(cudaDeviceSynchronize());
        *value += 100;
        want += n + 100;
    }
    const unsigned got = *value;
    show("managed total", &got, {want});
}

// Its address comes from the driver as that of any variable does.
static void run_managed(void)
{
    CUmodule module;
    CUdeviceptr address;
    size_t bytes;
    CHECK_DRIVER(cuModuleLoadData(&module, managed_ptx));
    CHECK_DRIVER(cuModuleGetGlobal(&address, &bytes, module, "managed_total"));
    add_and_write(managed_function(module, "addManaged"), (volatile unsigned *)address);
}

// A kernel alone tells its address.
static void run_managed_passed(void)
{
    CUmodule module;
    unsigned **place = copy_to_device(std::vector<unsigned *>(1, nullptr));
    CHECK_DRIVER(cuModuleLoadData(&module, managed_ptx));
    launch_one(managed_function(module, "tellManaged"), &place);
    add_and_write(managed_function(module, "addManaged"), copy_to_host(place, 1)[0]);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"device", run_device},
                                 {"constant", run_constant},
                                 {"foreign", run_foreign},
                                 {"passed", run_passed},
                                 {"constant-foreign", run_constant_foreign},
                                 {"managed", run_managed},
                                 {"managed-passed", run_managed_passed}};
    CHECK(cudaFree(0)); // a context for the driver's calls
    return run_modes(argc, argv, modes);
}
