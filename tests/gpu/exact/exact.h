// What the programs of tests/gpu/exact share. Each is a kind of memory, launch or ending that a profiler must not
// disturb: it checks its own results, and prints checksums of all that it leaves in device memory and of all that the
// host read on the way, so that a run under kprof can be compared with a plain one. The number of launches goes to
// standard error.
#pragma once

#include "../programs/check.h"

#include <cuda.h>

#include <atomic>
#include <csignal>
#include <execinfo.h>
#include <string>
#include <unistd.h>

#define CHECK_DRIVER(call) check_driver((call), #call, __FILE__, __LINE__)

static const unsigned COUNT = 1 << 16, BLOCK = 256, GRID = COUNT / BLOCK;
static const int SKIPPED = 77;

static inline void check_driver(CUresult result, const char *call, const char *file, int line)
{
    const char *text = "unknown error";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorString(result, &text);
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, text);
    exit(1);
}

static inline void skip(const char *why)
{
    fprintf(stderr, "skipped: %s\n", why);
    exit(SKIPPED);
}

__global__ void affine(unsigned *x, unsigned factor, unsigned addend)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * factor + addend;
}

static __device__ inline unsigned long long gpu_time_ns(void)
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

// Launches so far that a profiler has to report: those of the host, outside of stream capture, that were accepted.
static std::atomic<long> launch_count;
// Launches that a profiler may report besides: refused ones, and nodes of graphs.
static std::atomic<long> launch_extra;

static inline void launched(void)
{
    CHECK(cudaGetLastError());
    launch_count++;
}

// For the harness: a profiler has to report `least` launches of this process, and may report `most`.
static inline void report_launches(long least, long most)
{
    fprintf(stderr, "launches %ld %ld\n", least, most);
}

static inline void step(unsigned *x, unsigned factor, unsigned addend, cudaStream_t stream = 0)
{
    affine<<<GRID, BLOCK, 0, stream>>>(x, factor, addend);
    launched();
}

// The same steps on the host.
struct Model {
    std::vector<unsigned> x;

    explicit Model(size_t count = COUNT) : x(count)
    {
        for (size_t i = 0; i < count; i++)
            x[i] = (unsigned)i;
    }
    void step(unsigned factor, unsigned addend)
    {
        for (unsigned &value : x)
            value = value * factor + addend;
    }
};

// Compare what the host holds with the model, and print its checksum.
static inline void show(const char *label, const unsigned *host, const std::vector<unsigned> &want)
{
    print_checksum(label, host, want.size() * sizeof(unsigned));
    if (memcmp(host, want.data(), want.size() * sizeof(unsigned)) == 0)
        return;
    fflush(stdout);
    for (size_t i = 0; i < want.size(); i++)
        if (host[i] != want[i]) {
            fprintf(stderr, "%s[%zu] is %u, expected %u\n", label, i, host[i], want[i]);
            break;
        }
    exit(2);
}

static inline void show_device(const char *label, const unsigned *device, const std::vector<unsigned> &want)
{
    show(label, copy_to_host(device, want.size()).data(), want);
}

// The path of a file beside the program.
static inline std::string neighbour(const char *name)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    require(length > 0, "/proc/self/exe can be read");
    path[length] = '\0';
    return std::string(path, strrchr(path, '/') + 1) + name;
}

static inline std::string read_neighbour(const char *name)
{
    const std::string file = neighbour(name);
    FILE *stream = fopen(file.c_str(), "rb");
    require(stream != NULL, file.c_str());
    std::string text;
    char block[4096];
    for (size_t got; (got = fread(block, 1, sizeof block, stream)) > 0;)
        text.append(block, got);
    fclose(stream);
    return text;
}

// A module that is loaded at run time: the kernel moduleStep, which does what affine does and adds to module_total.
struct LoadedModule {
    CUmodule module;
    CUfunction step;
    CUdeviceptr total;
};

static inline LoadedModule load_module(const std::string &image)
{
    LoadedModule it;
    size_t bytes;
    CHECK_DRIVER(cuModuleLoadData(&it.module, image.c_str()));
    CHECK_DRIVER(cuModuleGetFunction(&it.step, it.module, "moduleStep"));
    CHECK_DRIVER(cuModuleGetGlobal(&it.total, &bytes, it.module, "module_total"));
    return it;
}

static inline void step_loaded(CUfunction function, CUdeviceptr x, unsigned factor, unsigned addend,
                               unsigned count = COUNT)
{
    const unsigned block = count < BLOCK ? count : BLOCK;
    void *parameters[] = {&x, &factor, &addend};
    CHECK_DRIVER(cuLaunchKernel(function, count / block, 1, 1, block, 1, 1, 0, NULL, parameters, NULL));
    launch_count++;
}

// Whoever crashed: the program, the driver or a profiler in the process. Then the signal does what it does.
static void show_backtrace(int signal)
{
    void *frames[48];
    backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
    raise(signal);
}

static inline void show_crashes(void)
{
    struct sigaction action = {};
    void *frame;
    backtrace(&frame, 1); // loads what it needs
    action.sa_handler = show_backtrace;
    action.sa_flags = SA_RESETHAND;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        sigaction(signal, &action, NULL);
}

struct Mode {
    const char *name;
    void (*run)(void);
};

// Run the modes that the arguments name, one after the other; each prints what it finds.
template <size_t N> static int run_modes(int argc, char **argv, const Mode (&modes)[N])
{
    int done = 0;
    show_crashes();
    for (int i = 1; i < argc; i++)
        for (const Mode &mode : modes) {
            if (strcmp(argv[i], mode.name) != 0)
                continue;
            printf("mode %s\n", mode.name);
            fflush(stdout); // kernels may print next, and not through this buffer
            mode.run();
            CHECK(cudaDeviceSynchronize());
            done++;
        }
    if (done == 0 || done != argc - 1) {
        fprintf(stderr, "usage: %s MODE..., modes:", argv[0]);
        for (const Mode &mode : modes)
            fprintf(stderr, " %s", mode.name);
        fprintf(stderr, "\n");
        return 1;
    }
    report_launches(launch_count, launch_count + launch_extra);
    return 0;
}
