// Code that comes and goes while kernels run: modules and libraries loaded and unloaded, each with a variable of its
// own, and kernels that the runtime loads at their first launch.
//
// Usage: modules MODE...
//   ptx, cubin, candidates, library, lazy, plugin
#include "exact.h"

#include <dlfcn.h>

template <unsigned N> __device__ unsigned calls;

template <unsigned N> __global__ void lazyStep(unsigned *x)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * (2 * N + 3) + N;
    if (i == 0)
        x[0] += ++calls<N>;
}

static const unsigned LAUNCHES = 3, ROUNDS = 4;

// Three launches of the loaded kernel, and the module's variable afterwards.
static void run_loaded(CUfunction function, CUdeviceptr total, unsigned *x, Model &model)
{
    unsigned want = 5, got;
    for (unsigned n = 1; n <= LAUNCHES; n++) {
        step_loaded(function, (CUdeviceptr)x, 2 * n + 1, n);
        model.step(2 * n + 1, n);
        want += n;
    }
    CHECK_DRIVER(cuMemcpyDtoH(&got, total, sizeof got));
    show("module total", &got, {want});
}

// Each round unloads without a copy in between that would wait.
static void run_module(const char *file)
{
    const std::string image = read_neighbour(file);
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const LoadedModule loaded = load_module(image);
        run_loaded(loaded.step, loaded.total, x, model);
        step_loaded(loaded.step, (CUdeviceptr)x, 5, round);
        model.step(5, round);
        CHECK_DRIVER(cuModuleUnload(loaded.module));
    }
    show_device("x", x, model.x);
}

static void run_ptx(void)
{
    run_module("exact-module.ptx");
}

static void run_cubin(void)
{
    run_module("exact-module.cubin");
}

__global__ void linger(unsigned long long ns)
{
    const unsigned long long start = gpu_time_ns();
    while (gpu_time_ns() - start < ns)
        continue;
}

// The driver unloads no module that belongs to a library.
static void show_refusal(const std::string &image)
{
    CUlibrary library;
    CUmodule module;
    CHECK_DRIVER(cuLibraryLoadData(&library, image.c_str(), NULL, NULL, 0, NULL, NULL, 0));
    CHECK_DRIVER(cuLibraryGetModule(&module, library));
    printf("unloading a library's module: error %d\n", (int)cuModuleUnload(module));
    CHECK_DRIVER(cuLibraryUnload(library));
}

// As an autotuner does: each candidate is a module that is launched a few times and unloaded. The one before it goes
// later, and memory tells in the end what was in the variable of each.
static void run_candidates(void)
{
    static const unsigned CANDIDATES = 40;
    const std::string image = read_neighbour("exact-module.cubin");
    Model model;
    unsigned *x = copy_to_device(model.x);
    unsigned *totals = copy_to_device(std::vector<unsigned>(CANDIDATES));
    std::vector<unsigned> want(CANDIDATES, 5);
    CUmodule before = NULL;
    for (unsigned i = 0; i < CANDIDATES; i++) {
        const LoadedModule loaded = load_module(image);
        for (unsigned n = 1; n <= LAUNCHES; n++) {
            step_loaded(loaded.step, (CUdeviceptr)x, 2 * n + 1, i + n);
            model.step(2 * n + 1, i + n);
            want[i] += i + n;
        }
        CHECK_DRIVER(cuMemcpyDtoD((CUdeviceptr)(totals + i), loaded.total, sizeof *totals));
        if (before)
            CHECK_DRIVER(cuModuleUnload(before));
        before = loaded.module;
    }
    linger<<<1, 1>>>(20000000);
    launched();
    CHECK_DRIVER(cuModuleUnload(before));
    fprintf(stderr, "a module is unloaded %s the GPU's work\n", cuStreamQuery(NULL) ? "beside" : "behind");
    show_refusal(image);
    show_device("totals", totals, want);
    show_device("x", x, model.x);
}

static void run_library(void)
{
    const std::string image = read_neighbour("exact-module.ptx");
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUlibrary library;
        CUkernel kernel;
        CUdeviceptr total;
        size_t bytes;
        CHECK_DRIVER(cuLibraryLoadData(&library, image.c_str(), NULL, NULL, 0, NULL, NULL, 0));
        CHECK_DRIVER(cuLibraryGetKernel(&kernel, library, "moduleStep"));
        CHECK_DRIVER(cuLibraryGetGlobal(&total, &bytes, library, "module_total"));
        run_loaded((CUfunction)kernel, total, x, model);
        step(x, 3, round);
        model.step(3, round);
        CHECK_DRIVER(cuLibraryUnload(library));
    }
    show_device("x", x, model.x);
}

template <unsigned N> static void launch_lazy(unsigned *x, Model &model, unsigned call)
{
    lazyStep<N><<<GRID, BLOCK>>>(x);
    launched();
    model.step(2 * N + 3, N);
    model.x[0] += call;
}

static void run_lazy(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned call = 1; call <= 2; call++) {
        launch_lazy<0>(x, model, call);
        launch_lazy<1>(x, model, call);
        launch_lazy<2>(x, model, call);
        launch_lazy<3>(x, model, call);
        launch_lazy<4>(x, model, call);
    }
    unsigned last;
    CHECK(cudaMemcpyFromSymbol(&last, calls<4>, sizeof last));
    show("calls", &last, {2});
    show_device("x", x, model.x);
}

template <typename Function> static Function find_in(void *library, const char *name)
{
    Function found = (Function)dlsym(library, name);
    require(found != NULL, name);
    return found;
}

// A shared library with kernels and a variable of its own, loaded and unloaded as a plugin is.
static void run_plugin(void)
{
    const std::string path = neighbour("exact-plugin.so");
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned round = 0; round < ROUNDS; round++) {
        void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        require(library != NULL, dlerror());
        auto plugin_step = find_in<void (*)(unsigned *, unsigned, unsigned)>(library, "plugin_step");
        auto plugin_total = find_in<unsigned (*)(void)>(library, "plugin_total");
        unsigned want = 7;
        for (unsigned n = 1; n <= LAUNCHES; n++) {
            plugin_step(x, 3, n);
            launched();
            step(x, 5, n);
            model.step(3, n);
            model.step(5, n);
            want += n;
        }
        const unsigned total = plugin_total();
        show("plugin total", &total, {want});
        plugin_step(x, 7, round);
        launched();
        model.step(7, round);
        require(dlclose(library) == 0, "the plugin can be unloaded");
    }
    show_device("x", x, model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"ptx", run_ptx},         {"cubin", run_cubin}, {"candidates", run_candidates},
                                 {"library", run_library}, {"lazy", run_lazy},   {"plugin", run_plugin}};
    CHECK(cudaFree(0));
    return run_modes(argc, argv, modes);
}
