// What a replay could get wrong that no other program here tries: addresses of functions in memory, mappings that may
// only be read, events that two processes share, kernels that run until a point in time, kernels whose local memory
// takes a large part of the device, and launches of what is no kernel.
//
// Usage: corners MODE...
//   pointers, read-only, ipc-event, until, local, no-kernel
#include "exact.h"

#include <sys/wait.h>

typedef unsigned (*change)(unsigned x, unsigned n);

static __device__ __noinline__ unsigned grow(unsigned x, unsigned n)
{
    return x * 3 + n;
}

static __device__ __noinline__ unsigned turn(unsigned x, unsigned n)
{
    return (x << 5 | x >> 27) ^ n;
}

static __device__ change table[2];

__global__ void fillTable(void)
{
    table[0] = grow;
    table[1] = turn;
}

__global__ void callTable(unsigned *x, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = table[(i + n) % 2](x[i], n);
}

static std::vector<char> read_table(void)
{
    std::vector<char> bytes(sizeof table);
    CHECK(cudaMemcpyFromSymbol(bytes.data(), table, bytes.size()));
    return bytes;
}

// Code that a profiler patches may lie elsewhere, so that a replay stores other addresses.
static void run_pointers(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    std::vector<char> first;
    for (unsigned n = 1; n <= 6; n++) {
        fillTable<<<1, 1>>>();
        launched();
        callTable<<<GRID, BLOCK>>>(x, n);
        launched();
        for (unsigned i = 0; i < COUNT; i++) {
            const unsigned old = model.x[i];
            model.x[i] = (i + n) % 2 == 0 ? old * 3 + n : (old << 5 | old >> 27) ^ n;
        }
        if (n == 1)
            first = read_table();
    }
    require(read_table() == first, "functions stay where they are");
    show_device("x", x, model.x);
}

static CUdeviceptr map_with(CUmemGenericAllocationHandle handle, size_t size, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {};
    CUdeviceptr address;
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = flags;
    CHECK_DRIVER(cuMemAddressReserve(&address, size, 0, 0, 0));
    CHECK_DRIVER(cuMemMap(address, size, 0, handle, 0));
    CHECK_DRIVER(cuMemSetAccess(address, size, &access, 1));
    return address;
}

__global__ void addFrom(unsigned *x, const unsigned *y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += y[i];
}

// Kernels write one block by one address, and read it by another that they may not write.
static void run_read_only(void)
{
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t size;
    CUmemGenericAllocationHandle handle;
    Model sum, block;
    unsigned *x = copy_to_device(sum.x); // starts CUDA, too
    CHECK_DRIVER(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    require(size >= COUNT * sizeof(unsigned), "a granule holds the array");
    CHECK_DRIVER(cuMemCreate(&handle, size, &properties, 0));
    unsigned *written = (unsigned *)map_with(handle, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    const unsigned *read = (const unsigned *)map_with(handle, size, CU_MEM_ACCESS_FLAGS_PROT_READ);
    CHECK(cudaMemcpy(written, block.x.data(), COUNT * sizeof(unsigned), cudaMemcpyHostToDevice));
    for (unsigned n = 1; n <= 6; n++) {
        step(written, 3, n);
        addFrom<<<GRID, BLOCK>>>(x, read);
        launched();
        block.step(3, n);
        for (unsigned i = 0; i < COUNT; i++)
            sum.x[i] += block.x[i];
    }
    show_device("block", read, block.x);
    show_device("sum", x, sum.x);
}

static int to_child[2], to_parent[2];

template <typename T> static bool send(int pipe, const T &data)
{
    return write(pipe, &data, sizeof data) == (ssize_t)sizeof data;
}

template <typename T> static bool receive(int pipe, T *data)
{
    return read(pipe, data, sizeof *data) == (ssize_t)sizeof *data;
}

// Work of its own, which waits for the parent's event.
static void run_event_child(void)
{
    cudaIpcEventHandle_t handle;
    cudaEvent_t event;
    unsigned n;
    if (!receive(to_child[0], &handle))
        _exit(0);
    const cudaError_t opened = cudaIpcOpenEventHandle(&event, handle);
    require(send(to_parent[1], opened), "the parent is there");
    Model model;
    unsigned *x = opened == cudaSuccess ? copy_to_device(model.x) : NULL;
    while (opened == cudaSuccess && receive(to_child[0], &n) && n > 0) {
        CHECK(cudaStreamWaitEvent(0, event, 0));
        step(x, 5, n);
        model.step(5, n);
        CHECK(cudaDeviceSynchronize());
        require(send(to_parent[1], n), "the parent is there");
    }
    if (x)
        require(copy_to_host(x, COUNT) == model.x, "the child's memory is right");
    report_launches(launch_count, launch_count);
    exit(0);
}

static void run_ipc_event(void)
{
    require(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipes");
    const pid_t child = fork(); // before CUDA
    require(child >= 0, "fork");
    if (child == 0) {
        close(to_child[1]);
        run_event_child();
    }
    close(to_child[0]);
    cudaIpcEventHandle_t handle;
    cudaEvent_t event;
    cudaError_t opened;
    Model model;
    unsigned *x = copy_to_device(model.x), reply = 0;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    if (cudaIpcGetEventHandle(&handle, event) != cudaSuccess)
        skip("no event can be shared between processes here");
    require(send(to_child[1], handle) && receive(to_parent[0], &opened), "the child answers");
    if (opened != cudaSuccess)
        skip("no event of another process can be opened here");
    for (unsigned n = 1; n <= 4; n++) {
        step(x, 3, n); // the batch is open while the event is recorded, and while the child waits for it
        CHECK(cudaEventRecord(event));
        step(x, 7, n);
        require(send(to_child[1], n) && receive(to_parent[0], &reply) && reply == n, "the child did its turn");
        step(x, 9, n);
        model.step(3, n);
        model.step(7, n);
        model.step(9, n);
    }
    show_device("x", x, model.x);
    int status;
    require(send(to_child[1], 0u) && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                WEXITSTATUS(status) == 0,
            "the child succeeded");
}

__global__ void tellTime(unsigned long long *out)
{
    *out = gpu_time_ns();
}

__global__ void stepUntil(unsigned *x, unsigned n, unsigned long long until_ns)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    while (gpu_time_ns() < until_ns)
        ;
    x[i] = x[i] * 3 + n;
}

// A replay starts after that time: the kernel computes the same in less.
static void run_until(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    unsigned long long *time, now_ns;
    CHECK(cudaMalloc(&time, sizeof *time));
    for (unsigned n = 1; n <= 4; n++) {
        tellTime<<<1, 1>>>(time);
        launched();
        CHECK(cudaMemcpy(&now_ns, time, sizeof now_ns, cudaMemcpyDeviceToHost));
        stepUntil<<<GRID, BLOCK>>>(x, n, now_ns + 5000000);
        launched();
        step(x, 5, n);
        model.step(3, n);
        model.step(5, n);
    }
    show_device("x", x, model.x);
}

static const size_t GIBIBYTE = (size_t)1 << 30;
static const unsigned DEEP_WORDS = 16 << 10; // of local memory, for each thread

__global__ void deep(unsigned *x, unsigned n)
{
    volatile unsigned local[DEEP_WORDS];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned k = 0; k < 64; k++)
        local[(x[i] + k * 257) % DEEP_WORDS] = x[i] + k;
    x[i] = local[(x[i] + n * 257) % DEEP_WORDS];
}

__global__ void scramble(unsigned *memory, size_t words)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x)
        memory[i] = (unsigned)(i * 2654435761u);
}

// The program takes nearly half of the device. A copy of that leaves less than the deep kernel's local memory takes,
// which the driver allocates within the launch.
static void run_local(void)
{
    size_t free_bytes, total_bytes;
    unsigned *much;
    cudaFuncAttributes attributes;
    Model model;
    unsigned *x = copy_to_device(model.x);
    CHECK(cudaFuncGetAttributes(&attributes, deep));
    require(attributes.localSizeBytes >= DEEP_WORDS * sizeof(unsigned), "the kernel has much local memory");
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (free_bytes < 40 * GIBIBYTE)
        skip("less than 40 GiB are free");
    const size_t bytes = (free_bytes - 7 * GIBIBYTE) / 2;
    CHECK(cudaMalloc(&much, bytes));
    scramble<<<4096, 256>>>(much, bytes / sizeof *much);
    launch_extra++;
    CHECK(cudaGetLastError());
    for (unsigned n = 1; n <= 3; n++) {
        step(x, 3, n);
        step(x, 5, n);
        model.step(3, n);
        model.step(5, n);
        deep<<<GRID, BLOCK>>>(x, n);
        CHECK(cudaGetLastError());
        for (unsigned &value : model.x)
            value = value + n;
    }
    show_device("x", x, model.x);
    CHECK(cudaFree(much));
}

static void be_no_kernel(void) {}

// The runtime hands the driver what it does not know, and the driver refuses that: no name stands where a kernel has
// its own.
static void run_no_kernel(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), number = 1;
    void *parameters[] = {&x, &number, &number};
    for (unsigned n = 1; n <= 3; n++) {
        step(x, 3, n);
        const cudaError_t launched = cudaLaunchKernel((const void *)be_no_kernel, GRID, BLOCK, parameters, 0, 0);
        printf("launched: %s, %s\n", cudaGetErrorName(launched), cudaGetErrorName(cudaGetLastError()));
        const CUresult result = cuLaunchKernel(NULL, GRID, 1, 1, BLOCK, 1, 1, 0, NULL, parameters, NULL);
        printf("launched by the driver: %d\n", (int)result);
        launch_extra += 2;
        step(x, 5, n);
        model.step(3, n);
        model.step(5, n);
    }
    show_device("x", x, model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"pointers", run_pointers},   {"read-only", run_read_only},
                                 {"ipc-event", run_ipc_event}, {"until", run_until},
                                 {"local", run_local},         {"no-kernel", run_no_kernel}};
    return run_modes(argc, argv, modes);
}
