// Every kind of memory that a kernel can change, allocated, moved, rewritten and freed between launches.
//
// Usage: memory MODE...
//   malloc, frees, pool, pool-destroyed, pool-threads, vmm, growth, managed, managed-beside, managed-advice,
//   managed-graph, mapped, registered, pageable, array, copies, large-copies, rows, memset, transfers, alias,
//   graph-memory
#include "exact.h"

#include <algorithm>
#include <thread>
#include <unistd.h>

static const size_t BYTES = COUNT * sizeof(unsigned);

static void run_malloc(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 6; n++) {
        unsigned *other;
        step(x, 3, n);
        model.step(3, n);
        CHECK(cudaMalloc(&other, BYTES));
        CHECK(cudaMemcpy(other, x, BYTES, cudaMemcpyDeviceToDevice));
        step(other, 5, n);
        model.step(5, n);
        CHECK(cudaFree(x)); // with the last kernel perhaps still running
        x = other;
    }
    show_device("x", x, model.x);
}

static size_t free_bytes(void)
{
    size_t free_now, total;
    CHECK(cudaMemGetInfo(&free_now, &total));
    return free_now;
}

// Other programs use the GPU beside the plain run, and may have its memory for a while.
static unsigned *allocate(size_t bytes, bool alone)
{
    unsigned *memory = NULL;
    cudaError_t result = cudaMalloc(&memory, bytes);
    for (unsigned tries = 0; result == cudaErrorMemoryAllocation && !alone && tries < 300; tries++) {
        usleep(100000);
        (void)cudaGetLastError();
        result = cudaMalloc(&memory, bytes);
    }
    CHECK(result);
    return memory;
}

// Memory of any size that lives for two launches, so that a program which frees all of it never runs out.
static void run_frees(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    const bool alone = getenv("KPROF_SESSION_DIR") != NULL;
    const size_t most = free_bytes() / 5 * 3;
    const size_t sizes[] = {BYTES, BYTES + 4, 3 << 20, (size_t)3 << 30, most, most, BYTES, most};
    size_t before = 0;
    CHECK(cudaFree(NULL));
    for (unsigned n = 1; n <= 16; n++) {
        unsigned *other = allocate(sizes[n % 8], alone);
        CHECK(cudaMemcpyAsync(other, x, BYTES, cudaMemcpyDeviceToDevice));
        step(other, 5, n);
        CHECK(cudaMemcpyAsync(x, other, BYTES, cudaMemcpyDeviceToDevice));
        step(x, 3, n);
        model.step(5, n);
        model.step(3, n);
        CHECK(cudaFree(other));
        if (n == 1) // tools have what they need now
            before = free_bytes();
        require(!alone || free_bytes() + ((size_t)1 << 30) > before, "what was freed is free");
    }
    show_device("x", x, model.x);
}

static void run_pool(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    cudaStream_t stream;
    cudaMemPool_t pool;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    for (unsigned n = 1; n <= 6; n++) {
        unsigned *block;
        CHECK(cudaMallocAsync((void **)&block, BYTES, stream));
        CHECK(cudaMemcpyAsync(block, x, BYTES, cudaMemcpyDeviceToDevice, stream));
        step(block, 3, n, stream);
        step(block, 7, n, stream);
        CHECK(cudaMemcpyAsync(x, block, BYTES, cudaMemcpyDeviceToDevice, stream));
        CHECK(cudaFreeAsync(block, stream)); // the next round gets the same memory
        model.step(3, n);
        model.step(7, n);
        if (n == 3) {
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaMemPoolTrimTo(pool, 0));
        }
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, model.x);
}

// A pool that is destroyed goes with its last allocation, which kernels still use.
static void run_pool_destroyed(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    cudaMemPoolProps properties = {};
    cudaStream_t stream;
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaStreamCreate(&stream));
    for (unsigned n = 1; n <= 4; n++) {
        cudaMemPool_t pool, used, own;
        unsigned *block, *other;
        CHECK(cudaMemPoolCreate(&pool, &properties));
        if (n == 4)
            CHECK(cudaDeviceSetMemPool(0, pool));
        CHECK(cudaMallocFromPoolAsync((void **)&block, BYTES, pool, stream));
        CHECK(cudaMallocFromPoolAsync((void **)&other, BYTES, pool, stream));
        CHECK(cudaMemcpyAsync(block, x, BYTES, cudaMemcpyDeviceToDevice, stream));
        if (n % 2 == 0)
            step(block, 3, n, stream); // the pool is destroyed while launches wait for their replays
        if (n > 2)
            CHECK(cudaFreeAsync(other, stream));
        CHECK(cudaMemPoolDestroy(pool));
        CHECK(cudaDeviceGetMemPool(&used, 0));
        CHECK(cudaDeviceGetDefaultMemPool(&own, 0));
        printf("pool %u: the device uses %s\n", n, used == own ? "its own" : "another");
        if (n % 2 != 0)
            step(block, 3, n, stream);
        step(block, 7, n, stream);
        CHECK(cudaMemcpyAsync(x, block, BYTES, cudaMemcpyDeviceToDevice, stream));
        if (n <= 2)
            CHECK(cudaFreeAsync(other, stream));
        CHECK(cudaFreeAsync(block, stream));
        model.step(3, n);
        model.step(7, n);
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, model.x);
}

// One thread allocates and launches, and another frees what its launches have used.
static void run_pool_threads(void)
{
    static const unsigned ROUNDS = 12;
    static std::atomic<unsigned> used;
    static unsigned *blocks[ROUNDS];
    Model model;
    unsigned *x = copy_to_device(model.x);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    used = 0;
    std::thread frees([stream] {
        for (unsigned n = 0; n < ROUNDS; n++) {
            while (used <= n)
                usleep(100);
            CHECK(cudaFreeAsync(blocks[n], stream));
        }
    });
    for (unsigned n = 0; n < ROUNDS; n++) {
        CHECK(cudaMallocAsync((void **)&blocks[n], BYTES, stream));
        CHECK(cudaMemcpyAsync(blocks[n], x, BYTES, cudaMemcpyDeviceToDevice, stream));
        step(blocks[n], 3, n, stream);
        CHECK(cudaMemcpyAsync(x, blocks[n], BYTES, cudaMemcpyDeviceToDevice, stream));
        used++;
        model.step(3, n);
    }
    frees.join();
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, model.x);
}

static CUmemAllocationProp vmm_properties(void)
{
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
}

static void vmm_map(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_DRIVER(cuMemMap(address, size, 0, handle, 0));
    CHECK_DRIVER(cuMemSetAccess(address, size, &access, 1));
}

// Two blocks take turns at one address; each must keep what was written while it was mapped.
static void run_vmm(void)
{
    const CUmemAllocationProp properties = vmm_properties();
    size_t size;
    CUdeviceptr address;
    CUmemGenericAllocationHandle handles[2];
    Model models[2];
    CHECK_DRIVER(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    require(size >= BYTES, "a granule holds the array");
    CHECK_DRIVER(cuMemAddressReserve(&address, size, 0, 0, 0));
    for (unsigned n = 0; n < 8; n++) {
        const unsigned which = n % 2;
        if (n < 2)
            CHECK_DRIVER(cuMemCreate(&handles[which], size, &properties, 0));
        vmm_map(address, size, handles[which]);
        if (n < 2)
            CHECK_DRIVER(cuMemcpyHtoD(address, models[which].x.data(), BYTES));
        step((unsigned *)address, 3, n);
        step((unsigned *)address, 5, n);
        models[which].step(3, n);
        models[which].step(5, n);
        if (n >= 6)
            show_device("vmm", (const unsigned *)address, models[which].x);
        CHECK(cudaDeviceSynchronize());
        CHECK_DRIVER(cuMemUnmap(address, size));
    }
    CHECK_DRIVER(cuMemRelease(handles[0]));
    CHECK_DRIVER(cuMemRelease(handles[1]));
    CHECK_DRIVER(cuMemAddressFree(address, size));
}

// An array grows at its end, as PyTorch's expandable segments do, while launches use what is there.
static void run_growth(void)
{
    static const unsigned GRANULES = 6;
    const CUmemAllocationProp properties = vmm_properties();
    size_t size;
    CUdeviceptr address;
    CUmemGenericAllocationHandle handles[GRANULES];
    Model models[GRANULES];
    CHECK_DRIVER(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    require(size >= BYTES, "a granule holds the array");
    CHECK_DRIVER(cuMemAddressReserve(&address, GRANULES * size, 0, 0, 0));
    for (unsigned n = 0; n < GRANULES; n++) {
        CHECK_DRIVER(cuMemCreate(&handles[n], size, &properties, 0));
        vmm_map(address + n * size, size, handles[n]);
        CHECK_DRIVER(cuMemcpyHtoD(address + n * size, models[n].x.data(), BYTES));
        for (unsigned i = 0; i <= n; i++) {
            step((unsigned *)(address + i * size), 3, n);
            models[i].step(3, n);
        }
    }
    for (unsigned n = 0; n < GRANULES; n++)
        show_device("growth", (const unsigned *)(address + n * size), models[n].x);
    for (unsigned n = 0; n < GRANULES; n++) {
        CHECK_DRIVER(cuMemUnmap(address + n * size, size));
        CHECK_DRIVER(cuMemRelease(handles[n]));
    }
    CHECK_DRIVER(cuMemAddressFree(address, GRANULES * size));
}

// One block at two addresses, through which kernels change it by turns.
static void run_alias(void)
{
    const CUmemAllocationProp properties = vmm_properties();
    size_t size;
    CUdeviceptr addresses[2];
    CUmemGenericAllocationHandle handle;
    Model model;
    CHECK_DRIVER(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    require(size >= BYTES, "a granule holds the array");
    CHECK_DRIVER(cuMemCreate(&handle, size, &properties, 0));
    for (CUdeviceptr &address : addresses) {
        CHECK_DRIVER(cuMemAddressReserve(&address, size, 0, 0, 0));
        vmm_map(address, size, handle);
    }
    CHECK_DRIVER(cuMemcpyHtoD(addresses[0], model.x.data(), BYTES));
    for (unsigned n = 1; n <= 12; n++) {
        step((unsigned *)addresses[n % 2], 3, n);
        model.step(3, n);
        if (n == 8)
            show_device("alias", (const unsigned *)addresses[0], model.x);
    }
    show_device("alias", (const unsigned *)addresses[1], model.x);
    CHECK(cudaDeviceSynchronize());
    for (CUdeviceptr address : addresses) {
        CHECK_DRIVER(cuMemUnmap(address, size));
        CHECK_DRIVER(cuMemAddressFree(address, size));
    }
    CHECK_DRIVER(cuMemRelease(handle));
}

// Memory that a graph allocates, and that lives on after it for plain kernels.
static void run_graph_memory(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    unsigned *x;
    Model model;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMallocAsync((void **)&x, BYTES, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaMemcpyAsync(x, model.x.data(), BYTES, cudaMemcpyHostToDevice, stream));
    for (unsigned n = 1; n <= 12; n++) {
        step(x, 3, n, stream);
        model.step(3, n);
        if (n != 8)
            continue;
        CHECK(cudaStreamSynchronize(stream));
        show_device("graph memory", x, model.x);
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("graph memory", x, model.x);
    CHECK(cudaFreeAsync(x, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
}

// The host reads and changes what kernels change, while nothing runs.
static void alternate(const char *label, unsigned *host, unsigned *device)
{
    Model model;
    memcpy(host, model.x.data(), BYTES);
    for (unsigned n = 1; n <= 6; n++) {
        step(device, 3, n);
        model.step(3, n);
        if (n % 2 != 0)
            continue;
        CHECK(cudaDeviceSynchronize());
        show(label, host, model.x);
        for (unsigned i = n; i < COUNT; i += 97)
            host[i] = model.x[i] = n * i;
    }
    CHECK(cudaDeviceSynchronize());
    show(label, host, model.x);
}

static void run_managed(void)
{
    unsigned *x;
    CHECK(cudaMallocManaged(&x, BYTES));
    alternate("managed", x, x);
    CHECK(cudaFree(x));
}

__global__ void addAll(const unsigned *x, unsigned *sum)
{
    atomicAdd(sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
}

// The host writes one part of it while a kernel may be changing the other, and waits for nothing in between.
static void run_managed_beside(void)
{
    unsigned *x, *sums;
    Model model, sum_model(1);
    CHECK(cudaMallocManaged(&x, 2 * BYTES));
    CHECK(cudaMallocManaged(&sums, sizeof *sums));
    memcpy(x, model.x.data(), BYTES);
    *sums = 0;
    for (unsigned n = 1; n <= 12; n++) {
        step(x, 3, n);
        model.step(3, n);
        unsigned added = 0;
        for (unsigned i = 0; i < COUNT; i++)
            added += x[COUNT + i] = n * i;
        addAll<<<GRID, BLOCK>>>(x + COUNT, sums);
        launched();
        sum_model.x[0] += added;
        CHECK(cudaDeviceSynchronize());
    }
    show("managed beside", x, model.x);
    show("managed sums", sums, sum_model.x);
    CHECK(cudaFree(sums));
    CHECK(cudaFree(x));
}

static cudaMemLocation location_of(cudaMemLocationType type, int id)
{
    cudaMemLocation location = {};
    location.type = type;
    location.id = id;
    return location;
}

// Wherever the driver is told to keep it, and in another stream than it is attached to.
static void run_managed_advice(void)
{
    const cudaMemLocation host = location_of(cudaMemLocationTypeHost, 0),
                          device = location_of(cudaMemLocationTypeDevice, 0);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    for (unsigned round = 0; round < 5; round++) {
        unsigned *x;
        CHECK(cudaMallocManaged(&x, BYTES, round == 3 ? cudaMemAttachHost : cudaMemAttachGlobal));
        if (round == 0)
            CHECK(cudaMemAdvise(x, BYTES, cudaMemAdviseSetReadMostly, device));
        if (round == 1)
            CHECK(cudaMemAdvise(x, BYTES, cudaMemAdviseSetPreferredLocation, host));
        if (round == 1)
            CHECK(cudaMemAdvise(x, BYTES, cudaMemAdviseSetAccessedBy, device));
        if (round == 2)
            CHECK(cudaMemPrefetchAsync(x, BYTES, device, 0, 0));
        if (round == 4)
            CHECK(cudaStreamAttachMemAsync(stream, x, 0, cudaMemAttachSingle));
        CHECK(cudaDeviceSynchronize());
        alternate("managed advice", x, x);
        CHECK(cudaFree(x));
    }
    CHECK(cudaStreamDestroy(stream));
}

// It moves to and fro between what kernels change and what the host writes, in the order of streams. The host may write
// while it still moves.
static void run_managed_prefetch(void)
{
    const cudaMemLocation host = location_of(cudaMemLocationTypeHost, 0),
                          device = location_of(cudaMemLocationTypeDevice, 0);
    unsigned *x;
    Model model;
    cudaStream_t beside;
    CHECK(cudaMallocManaged(&x, BYTES));
    CHECK(cudaStreamCreate(&beside));
    memcpy(x, model.x.data(), BYTES);
    for (unsigned n = 1; n <= 8; n++) {
        CHECK(cudaMemPrefetchAsync(x, BYTES, device, 0, n % 3 == 0 ? beside : 0));
        for (unsigned i = n; i < COUNT; i += 89)
            x[i] = model.x[i] = n * i + 5;
        if (n % 2 == 0)
            CHECK(cudaMemPrefetchAsync(x, BYTES / 2, device, 0, 0));
        step(x, 3, n);
        model.step(3, n);
        if (n % 4 == 1)
            CHECK(cudaMemPrefetchAsync(x, BYTES, host, 0, 0));
        CHECK(cudaDeviceSynchronize());
        if (n % 2 == 0)
            show("managed prefetch", x, model.x);
    }
    CHECK(cudaFree(x));
    CHECK(cudaStreamDestroy(beside));
}

// Kernels of a graph change it, and the host between its launches.
static void run_managed_graph(void)
{
    unsigned *x;
    Model model;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaMallocManaged(&x, BYTES));
    memcpy(x, model.x.data(), BYTES);
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (unsigned n = 1; n <= 3; n++)
        affine<<<GRID, BLOCK, 0, stream>>>(x, 3, n);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (unsigned launch = 0; launch < 4; launch++) {
        CHECK(cudaGraphLaunch(executable, stream));
        launch_extra += 3;
        for (unsigned n = 1; n <= 3; n++)
            model.step(3, n);
        CHECK(cudaStreamSynchronize(stream));
        x[launch] = model.x[launch] = launch;
    }
    show("managed graph", x, model.x);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(x));
}

static void run_mapped(void)
{
    const unsigned kinds[] = {cudaHostAllocMapped, cudaHostAllocMapped | cudaHostAllocPortable};
    for (unsigned flags : kinds) {
        unsigned *host, *device;
        CHECK(cudaHostAlloc(&host, BYTES, flags));
        CHECK(cudaHostGetDevicePointer(&device, host, 0));
        alternate("mapped", host, device);
        CHECK(cudaFreeHost(host));
    }
}

static void run_registered(void)
{
    for (unsigned round = 0; round < 2; round++) {
        unsigned *host = (unsigned *)aligned_alloc(65536, BYTES), *device;
        require(host != NULL, "memory for the host");
        CHECK(cudaHostRegister(host, BYTES, cudaHostRegisterMapped));
        CHECK(cudaHostGetDevicePointer(&device, host, 0));
        alternate("registered", host, device);
        CHECK(cudaHostUnregister(host));
        host[0] = 1;
        free(host);
    }
}

// Memory of the system's own, which CUDA was told nothing of.
static void run_pageable(void)
{
    int possible = 0;
    CHECK(cudaDeviceGetAttribute(&possible, cudaDevAttrPageableMemoryAccess, 0));
    if (!possible)
        skip("kernels cannot reach pageable memory here");
    std::vector<unsigned> host(COUNT);
    alternate("pageable", host.data(), host.data());
}

static const unsigned WIDTH = 256, HEIGHT = COUNT / WIDTH;

__global__ void changeSurface(cudaSurfaceObject_t surface, unsigned factor, unsigned addend)
{
    unsigned value;
    surf2Dread(&value, surface, (int)(threadIdx.x * sizeof value), (int)blockIdx.x);
    surf2Dwrite(value * factor + addend, surface, (int)(threadIdx.x * sizeof value), (int)blockIdx.x);
}

__global__ void addTexture(cudaTextureObject_t texture, unsigned *x)
{
    x[blockIdx.x * WIDTH + threadIdx.x] += tex2D<unsigned>(texture, (float)threadIdx.x, (float)blockIdx.x);
}

static void make_views(cudaArray_t array, cudaSurfaceObject_t *surface, cudaTextureObject_t *texture)
{
    cudaResourceDesc resource = {};
    cudaTextureDesc description = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    description.readMode = cudaReadModeElementType;
    CHECK(cudaCreateSurfaceObject(surface, &resource));
    CHECK(cudaCreateTextureObject(texture, &resource, &description, NULL));
}

static void run_array(void)
{
    Model model, sums;
    unsigned *x = copy_to_device(sums.x);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    cudaArray_t array;
    cudaSurfaceObject_t surface;
    cudaTextureObject_t texture;
    const size_t pitch = WIDTH * sizeof(unsigned);
    CHECK(cudaMallocArray(&array, &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, model.x.data(), pitch, pitch, HEIGHT, cudaMemcpyHostToDevice));
    make_views(array, &surface, &texture);
    for (unsigned n = 1; n <= 6; n++) {
        changeSurface<<<HEIGHT, WIDTH>>>(surface, 3, n);
        launched();
        addTexture<<<HEIGHT, WIDTH>>>(texture, x);
        launched();
        model.step(3, n);
        for (unsigned i = 0; i < COUNT; i++)
            sums.x[i] += model.x[i];
    }
    std::vector<unsigned> host(COUNT);
    CHECK(cudaMemcpy2DFromArray(host.data(), pitch, array, 0, 0, pitch, HEIGHT, cudaMemcpyDeviceToHost));
    show("array", host.data(), model.x);
    show_device("sums", x, sums.x);
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
}

// New input between launches, from pageable and from pinned memory; the host changes its buffer when it may.
static void run_copies(void)
{
    Model model;
    std::vector<unsigned> pageable(COUNT);
    unsigned *x = copy_to_device(model.x), *pinned;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocHost(&pinned, BYTES));
    for (unsigned n = 1; n <= 12; n++) {
        unsigned *source = n % 2 ? pageable.data() : pinned;
        for (unsigned i = 0; i < COUNT / 2; i++)
            model.x[i] = source[i] = n * 1000 + i;
        CHECK(cudaMemcpyAsync(x, source, BYTES / 2, cudaMemcpyHostToDevice, stream));
        step(x, 3, n, stream);
        model.step(3, n);
        if (n % 4 == 0) {
            CHECK(cudaMemcpyAsync(pinned, x, BYTES, cudaMemcpyDeviceToHost, stream));
            CHECK(cudaStreamSynchronize(stream));
            show("copied back", pinned, model.x);
        } else if (n % 2 == 0) {
            CHECK(cudaStreamSynchronize(stream)); // the pinned buffer is the copy's until then
        }
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, model.x);
    CHECK(cudaFreeHost(pinned));
}

struct Rows {
    size_t to_pitch, from_pitch, width, height;
};

static void copy_rows(unsigned *to, size_t to_byte, const unsigned *from, size_t from_byte, const Rows &rows)
{
    for (size_t row = 0; row < rows.height; row++)
        memcpy((char *)to + to_byte + row * rows.to_pitch, (const char *)from + from_byte + row * rows.from_pitch,
               rows.width);
}

static void copy_layer(unsigned *to, const unsigned *from, const Rows &rows, cudaStream_t stream)
{
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr((void *)from, rows.from_pitch, rows.from_pitch, rows.height);
    copy.dstPtr = make_cudaPitchedPtr(to, rows.to_pitch, rows.to_pitch, rows.height);
    copy.extent = make_cudaExtent(rows.width, rows.height, 1);
    copy.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&copy, stream));
}

// Rows of any width and pitch go from the host, within the device and to the host. What is between the rows stays.
static void run_rows(void)
{
    static const Rows shapes[] = {{100, 13, 13, 40}, {1024, 2048, 512, 64}, {517, 333, 200, 39}, {4, 12, 1, 1000}};
    Model x_model, y_model, back_model;
    std::vector<unsigned> pageable(COUNT), back(back_model.x);
    unsigned *x = copy_to_device(x_model.x), *y = copy_to_device(y_model.x), *pinned;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocHost(&pinned, BYTES));
    for (unsigned n = 1; n <= 24; n++) {
        const Rows &rows = shapes[n % 4];
        unsigned *source = n % 2 ? pageable.data() : pinned;
        for (unsigned i = 0; i < COUNT; i++)
            source[i] = n * 1000 + i;
        if (n % 3 == 0)
            CHECK(cudaMemcpy2D((char *)x + 5, rows.to_pitch, (char *)source + 3, rows.from_pitch, rows.width,
                               rows.height, cudaMemcpyHostToDevice));
        else
            CHECK(cudaMemcpy2DAsync((char *)x + 5, rows.to_pitch, (char *)source + 3, rows.from_pitch, rows.width,
                                    rows.height, n % 2 ? cudaMemcpyDefault : cudaMemcpyHostToDevice, stream));
        copy_rows(x_model.x.data(), 5, source, 3, rows);
        step(x, 3, n, stream);
        x_model.step(3, n);
        CHECK(cudaMemcpy2DAsync((char *)y + 64, rows.to_pitch, (char *)x + 16, rows.from_pitch, rows.width, rows.height,
                                cudaMemcpyDeviceToDevice, stream));
        copy_rows(y_model.x.data(), 64, x_model.x.data(), 16, rows);
        copy_layer(y + COUNT / 2, x, rows, stream);
        copy_rows(y_model.x.data(), BYTES / 2, x_model.x.data(), 0, rows);
        step(y, 5, n, stream);
        y_model.step(5, n);
        CHECK(cudaStreamSynchronize(stream)); // the pinned buffer is the copy's until then
        if (n % 4 == 0) {
            memcpy(pinned, back_model.x.data(), BYTES);
            CHECK(cudaMemcpy2DAsync((char *)pinned + 1, rows.to_pitch, (char *)y + 7, rows.from_pitch, rows.width,
                                    rows.height, cudaMemcpyDeviceToHost, stream));
            CHECK(cudaStreamSynchronize(stream));
            copy_rows(back_model.x.data(), 1, y_model.x.data(), 7, rows);
            show("rows copied back", pinned, back_model.x);
            back = back_model.x;
        } else if (n % 5 == 0) {
            CHECK(cudaMemcpy2D((char *)back.data() + 2, rows.to_pitch, (char *)x + 9, rows.from_pitch, rows.width,
                               rows.height, cudaMemcpyDeviceToHost));
            copy_rows(back_model.x.data(), 2, x_model.x.data(), 9, rows);
            show("rows copied back", back.data(), back_model.x);
        }
    }
    CHECK(cudaStreamSynchronize(stream));
    show_device("x", x, x_model.x);
    show_device("y", y, y_model.x);
    CHECK(cudaFreeHost(pinned));
}

// The host reads all of 4 MiB after each launch, and what the next launch does depends on it.
static void run_large_copies(void)
{
    Model model(16 * COUNT);
    std::vector<unsigned> back(model.x.size());
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= 12; n++) {
        const unsigned factor = back[n] | 1;
        affine<<<16 * GRID, BLOCK>>>(x, factor, n);
        launched();
        model.step(factor, n);
        CHECK(cudaMemcpy(back.data(), x, 16 * BYTES, cudaMemcpyDeviceToHost));
        show("copied back", back.data(), model.x);
    }
}

static void run_memset(void)
{
    Model model, copy;
    unsigned *x = copy_to_device(model.x), *y = copy_to_device(copy.x);
    for (unsigned n = 1; n <= 12; n++) {
        CHECK(cudaMemsetAsync(x + n * 100, (int)n, 400));
        std::fill_n(model.x.begin() + n * 100, 100, n * 0x01010101u);
        step(x, 3, n);
        model.step(3, n);
        if (n % 3 == 0) {
            CHECK(cudaMemcpyAsync(y, x, BYTES / 2, cudaMemcpyDeviceToDevice));
            std::copy_n(model.x.begin(), COUNT / 2, copy.x.begin());
        }
        step(y, 5, n);
        copy.step(5, n);
    }
    show_device("x", x, model.x);
    show_device("y", y, copy.x);
}

__device__ unsigned table[COUNT];

__global__ void addTable(unsigned *x)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] += table[i];
    table[i] += 1;
}

static void wait_for(cudaStream_t waiting, cudaEvent_t event, cudaStream_t stream)
{
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaStreamWaitEvent(waiting, event, 0));
}

// Memory is set and copied on two streams by turns, in all widths, by rows and into a module variable, between kernels
// that read and change it; a call in between is refused.
static void run_transfers(void)
{
    const size_t pitch = 512, rows = 64;
    Model x_model, y_model, table_model;
    unsigned *x = copy_to_device(x_model.x), *y = copy_to_device(y_model.x);
    cudaStream_t one, two;
    cudaEvent_t event;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaDeviceSynchronize());
    for (unsigned n = 1; n <= 8; n++) {
        CHECK_DRIVER(cuMemsetD32Async((CUdeviceptr)x, n * 7, COUNT / 4, one));
        std::fill_n(x_model.x.begin(), COUNT / 4, n * 7);
        CHECK_DRIVER(cuMemsetD16Async((CUdeviceptr)(x + COUNT / 2), (unsigned short)n, 2 * n, one));
        std::fill_n(x_model.x.begin() + COUNT / 2, n, n * 0x10001u);
        wait_for(two, event, one);
        step(x, 3, n, two);
        x_model.step(3, n);
        CHECK(cudaMemcpyToSymbolAsync(table, x, BYTES, 0, cudaMemcpyDeviceToDevice, two));
        table_model.x = x_model.x;
        wait_for(one, event, two);
        CHECK(cudaMemset2DAsync(y, pitch, (int)n, 16, rows, one));
        for (unsigned row = 0; row < rows; row++)
            std::fill_n(y_model.x.begin() + row * pitch / 4, 4, n * 0x01010101u);
        require(cudaMemsetAsync((void *)16, 1, 8, one) == cudaErrorInvalidValue, "memory that is not there is refused");
        (void)cudaGetLastError();
        (void)cuMemsetD8Async((CUdeviceptr)x, 9, 0, one); // nothing, whatever the driver says to it
        (void)cuMemsetD2D32Async((CUdeviceptr)x, pitch, 9, 4, 0, one);
        (void)cuMemcpyDtoDAsync((CUdeviceptr)x, (CUdeviceptr)y, 0, one);
        addTable<<<GRID, BLOCK, 0, one>>>(y);
        launched();
        for (unsigned i = 0; i < COUNT; i++)
            y_model.x[i] += table_model.x[i]++;
        CHECK(cudaMemcpyAsync(x + COUNT / 2, y, BYTES / 2, cudaMemcpyDeviceToDevice, one));
        std::copy_n(y_model.x.begin(), COUNT / 2, x_model.x.begin() + COUNT / 2);
        wait_for(two, event, one);
        addTable<<<GRID, BLOCK, 0, two>>>(x);
        launched();
        for (unsigned i = 0; i < COUNT; i++)
            x_model.x[i] += table_model.x[i]++;
        wait_for(one, event, two);
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemset(x, 5, 4000)); // in the default stream
    std::fill_n(x_model.x.begin(), 1000, 0x05050505u);
    step(x, 7, 1);
    x_model.step(7, 1);
    unsigned *address;
    CHECK(cudaGetSymbolAddress((void **)&address, table));
    show_device("x", x, x_model.x);
    show_device("y", y, y_model.x);
    show_device("table", address, table_model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"malloc", run_malloc},
                                 {"frees", run_frees},
                                 {"pool", run_pool},
                                 {"pool-destroyed", run_pool_destroyed},
                                 {"pool-threads", run_pool_threads},
                                 {"vmm", run_vmm},
                                 {"growth", run_growth},
                                 {"managed", run_managed},
                                 {"mapped", run_mapped},
                                 {"registered", run_registered},
                                 {"pageable", run_pageable},
                                 {"array", run_array},
                                 {"copies", run_copies},
                                 {"rows", run_rows},
                                 {"large-copies", run_large_copies},
                                 {"memset", run_memset},
                                 {"transfers", run_transfers},
                                 {"alias", run_alias},
                                 {"graph-memory", run_graph_memory},
                                 {"managed-beside", run_managed_beside},
                                 {"managed-advice", run_managed_advice},
                                 {"managed-prefetch", run_managed_prefetch},
                                 {"managed-graph", run_managed_graph}};
    CHECK(cudaFree(0));
    return run_modes(argc, argv, modes);
}
