// Work whose order is kept by streams, events, threads and contexts. Built twice: as streams, and as
// streams-per-thread, where stream 0 is each thread's own.
//
// Usage: streams MODE...
//   events, callbacks, values, values-listed, late-values, host-values, threads, contexts, default
#include "exact.h"

#include <thread>

static const unsigned STREAMS = 4, THREADS = 8, ROUNDS = 3;

// After the program's copies to the device, which these streams would not wait for.
static void make_streams(cudaStream_t (&streams)[STREAMS])
{
    CHECK(cudaDeviceSynchronize());
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

__global__ void addArrays(unsigned *x, const unsigned *a, const unsigned *b)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    x[i] = x[i] * 3 + a[i] + b[i];
}

static void add_arrays(cudaStream_t stream, unsigned *x, const unsigned *a, const unsigned *b)
{
    addArrays<<<GRID, BLOCK, 0, stream>>>(x, a, b);
    launched();
}

static void wait_for(cudaStream_t waiting, cudaStream_t stream, cudaEvent_t event)
{
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaStreamWaitEvent(waiting, event, 0));
}

// A diamond in each round: one stream feeds two, which feed the fourth, which feeds the first of the next round.
static void run_events(void)
{
    cudaStream_t streams[STREAMS];
    cudaEvent_t events[STREAMS + 1];
    Model models[STREAMS];
    unsigned *x[STREAMS];
    for (cudaEvent_t &event : events)
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (unsigned i = 0; i < STREAMS; i++)
        x[i] = copy_to_device(models[i].x);
    make_streams(streams);
    for (unsigned n = 1; n <= 4; n++) {
        step(x[0], 3, n, streams[0]);
        wait_for(streams[1], streams[0], events[0]);
        wait_for(streams[2], streams[0], events[1]);
        add_arrays(streams[1], x[1], x[0], x[0]);
        add_arrays(streams[2], x[2], x[0], x[3]);
        wait_for(streams[3], streams[1], events[2]);
        wait_for(streams[3], streams[2], events[3]);
        add_arrays(streams[3], x[3], x[1], x[2]);
        wait_for(streams[0], streams[3], events[4]);
        models[0].step(3, n);
        for (unsigned i = 0; i < COUNT; i++) {
            models[1].x[i] = models[1].x[i] * 3 + 2 * models[0].x[i];
            models[2].x[i] = models[2].x[i] * 3 + models[0].x[i] + models[3].x[i];
            models[3].x[i] = models[3].x[i] * 3 + models[1].x[i] + models[2].x[i];
        }
    }
    CHECK(cudaEventSynchronize(events[4]));
    for (unsigned i = 0; i < STREAMS; i++)
        show_device("events", x[i], models[i].x);
}

static unsigned seen_count, *seen_source;
static std::vector<unsigned> seen;

static void CUDART_CB look(void *)
{
    seen.push_back(seen_source[1]);
    seen_source[0] = 10 * ++seen_count; // the next kernel reads it
}

__global__ void exchange(unsigned *mailbox)
{
    mailbox[1] = mailbox[1] * 3 + mailbox[0];
}

// Host functions in the stream read what the kernel before them wrote, and write what the next one reads.
static void run_callbacks(void)
{
    unsigned *device, value = 1;
    std::vector<unsigned> want;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaHostAlloc(&seen_source, 64, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&device, seen_source, 0));
    seen_source[0] = 0;
    seen_source[1] = value;
    for (unsigned n = 0; n < 8; n++) {
        exchange<<<1, 1, 0, stream>>>(device);
        launched();
        CHECK(cudaLaunchHostFunc(stream, look, NULL));
        value = value * 3 + 10 * n;
        want.push_back(value);
    }
    CHECK(cudaStreamSynchronize(stream));
    require(seen.size() == want.size(), "each host function ran once");
    show("callbacks", seen.data(), want);
    show("mailbox", seen_source, {80, value});
}

static void write_value(cudaStream_t stream, unsigned *flag, unsigned value, bool listed)
{
    CUstreamBatchMemOpParams write = {};
    write.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = (CUdeviceptr)flag;
    write.writeValue.value = value;
    CHECK_DRIVER(listed ? cuStreamBatchMemOp(stream, 1, &write, 0)
                        : cuStreamWriteValue32(stream, (CUdeviceptr)flag, value, 0));
}

static void wait_for_value(cudaStream_t stream, unsigned *flag, unsigned value, bool listed)
{
    CUstreamBatchMemOpParams waits[2] = {};
    for (CUstreamBatchMemOpParams &wait : waits) {
        wait.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        wait.waitValue.address = (CUdeviceptr)flag;
        wait.waitValue.value = value;
        wait.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    }
    CHECK_DRIVER(listed ? cuStreamBatchMemOp(stream, 2, waits, 0)
                        : cuStreamWaitValue32(stream, (CUdeviceptr)flag, value, CU_STREAM_WAIT_VALUE_EQ));
}

// Streams that wait for values in memory instead of events. `listed`: by calls that take several operations.
static void hand_over(bool listed)
{
    int supported = 0;
    cudaStream_t streams[STREAMS];
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = copy_to_device(std::vector<unsigned>(1, 0));
    CHECK_DRIVER(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
    if (!supported)
        skip("no stream memory operations here");
    make_streams(streams);
    for (unsigned n = 1; n <= 8; n++) {
        step(x, 3, n, streams[(n - 1) % 2]);
        write_value(streams[(n - 1) % 2], flag, n, listed);
        wait_for_value(streams[n % 2], flag, n, listed);
        model.step(3, n);
    }
    CHECK(cudaDeviceSynchronize());
    show_device("values", x, model.x);
    show_device("flag", flag, {8});
}

static void run_values(void)
{
    hand_over(false);
}

static void run_values_listed(void)
{
    hand_over(true);
}

// The same, but one stream waits for what the other one does only afterwards.
static void run_late_values(void)
{
    int supported = 0;
    cudaStream_t streams[STREAMS];
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = copy_to_device(std::vector<unsigned>(1, 0));
    const CUdeviceptr at = (CUdeviceptr)flag;
    CHECK_DRIVER(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
    if (!supported)
        skip("no stream memory operations here");
    make_streams(streams);
    for (unsigned n = 1; n <= 8; n++) {
        step(x, 2, n, streams[0]);
        CHECK(cudaDeviceSynchronize()); // the kernel is loaded before one has to wait
        CHECK_DRIVER(cuStreamWaitValue32(streams[1], at, 2 * n - 1, CU_STREAM_WAIT_VALUE_GEQ));
        step(x, 5, n, streams[1]);
        CHECK_DRIVER(cuStreamWriteValue32(streams[1], at, 2 * n, 0));
        step(x, 3, n, streams[0]);
        CHECK_DRIVER(cuStreamWriteValue32(streams[0], at, 2 * n - 1, 0));
        CHECK_DRIVER(cuStreamWaitValue32(streams[0], at, 2 * n, CU_STREAM_WAIT_VALUE_GEQ));
        model.step(2, n);
        model.step(3, n);
        model.step(5, n);
    }
    CHECK(cudaDeviceSynchronize());
    show_device("late values", x, model.x);
    show_device("flag", flag, {16});
}

// Each round begins with a wait for what the host writes once it has queued the rest.
static void run_host_values(void)
{
    cudaStream_t streams[STREAMS];
    Model model;
    unsigned *x = copy_to_device(model.x), *flag;
    CUdeviceptr at;
    CHECK(cudaHostAlloc((void **)&flag, 4096, cudaHostAllocMapped));
    CHECK_DRIVER(cuMemHostGetDevicePointer(&at, flag, 0));
    *flag = 0;
    make_streams(streams);
    step(x, 2, 0, streams[0]);
    model.step(2, 0);
    CHECK(cudaDeviceSynchronize()); // the kernel is loaded before one has to wait
    for (unsigned n = 1; n <= 8; n++) {
        CHECK_DRIVER(cuStreamWaitValue32(streams[0], at, n, CU_STREAM_WAIT_VALUE_GEQ));
        for (unsigned i = 3; i < 6; i++) {
            step(x, i, n, streams[0]);
            model.step(i, n);
        }
        *(volatile unsigned *)flag = n;
        CHECK(cudaDeviceSynchronize());
    }
    show_device("host values", x, model.x);
    CHECK(cudaFreeHost(flag));
}

__global__ void countBlocks(unsigned *counter)
{
    if (threadIdx.x == 0)
        atomicAdd(counter, 1);
}

static void launch_from_thread(unsigned index, unsigned *x, unsigned *counter)
{
    cudaStream_t stream;
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (unsigned n = 0; n < ROUNDS; n++) {
        step(x, index + 2, n, stream);
        countBlocks<<<GRID, BLOCK, 0, stream>>>(counter);
        launched();
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
}

static void run_threads(void)
{
    Model models[THREADS];
    unsigned *x[THREADS], *counter = copy_to_device(std::vector<unsigned>(1, 0));
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < THREADS; i++)
        x[i] = copy_to_device(models[i].x);
    CHECK(cudaDeviceSynchronize());
    for (unsigned i = 0; i < THREADS; i++)
        threads.emplace_back(launch_from_thread, i, x[i], counter);
    for (std::thread &thread : threads)
        thread.join();
    for (unsigned i = 0; i < THREADS; i++) {
        for (unsigned n = 0; n < ROUNDS; n++)
            models[i].step(i + 2, n);
        show_device("thread", x[i], models[i].x);
    }
    show_device("blocks", counter, {THREADS * ROUNDS * GRID});
}

struct Context {
    CUcontext context;
    LoadedModule loaded;
    CUdeviceptr x;
    Model model;
};

static void make_context(Context &it, const std::string &image)
{
#if CUDA_VERSION >= 13000
    CHECK_DRIVER(cuCtxCreate(&it.context, NULL, 0, 0));
#else
    CHECK_DRIVER(cuCtxCreate(&it.context, 0, 0));
#endif
    it.loaded = load_module(image);
    CHECK_DRIVER(cuMemAlloc(&it.x, COUNT * sizeof(unsigned)));
    CHECK_DRIVER(cuMemcpyHtoD(it.x, it.model.x.data(), COUNT * sizeof(unsigned)));
}

static void step_context(Context &it, unsigned factor, unsigned addend)
{
    CHECK_DRIVER(cuCtxSetCurrent(it.context));
    step_loaded(it.loaded.step, it.x, factor, addend);
    it.model.step(factor, addend);
}

// Two contexts in turn, without waiting in between.
static void run_contexts(void)
{
    static Context contexts[2];
    const std::string image = read_neighbour("exact-module.ptx");
    CHECK_DRIVER(cuInit(0));
    for (Context &it : contexts)
        make_context(it, image);
    for (unsigned n = 1; n <= 12; n++)
        step_context(contexts[n / 2 % 2], 3, n);
    for (Context &it : contexts) {
        std::vector<unsigned> host(COUNT);
        CHECK_DRIVER(cuCtxSetCurrent(it.context));
        CHECK_DRIVER(cuMemcpyDtoH(host.data(), it.x, COUNT * sizeof(unsigned)));
        show("context", host.data(), it.model.x);
    }
    CHECK_DRIVER(cuCtxDestroy(contexts[0].context));
    step_context(contexts[1], 5, 1);
    CHECK_DRIVER(cuCtxDestroy(contexts[1].context));
    CHECK_DRIVER(cuCtxSetCurrent(NULL));
}

static void launch_default(unsigned *x, unsigned index)
{
    CHECK(cudaSetDevice(0));
    for (unsigned n = 0; n < 4; n++)
        step(x, index + 2, n);
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(0));
}

// Stream 0 by its three names. A legacy stream waits for all others, the streams of threads only for themselves.
static void run_default(void)
{
    Model model, models[2];
    cudaStream_t blocking;
    unsigned *x = copy_to_device(model.x), *others[2] = {copy_to_device(models[0].x), copy_to_device(models[1].x)};
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaDeviceSynchronize());
    for (unsigned n = 1; n <= 4; n++) {
        step(x, 3, n, blocking);
        step(x, 5, n, cudaStreamLegacy);
        step(x, 7, n, blocking);
        CHECK(cudaStreamSynchronize(blocking));
        step(x, 9, n, cudaStreamPerThread);
        CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        for (unsigned factor = 3; factor <= 9; factor += 2)
            model.step(factor, n);
    }
    std::thread first(launch_default, others[0], 0), second(launch_default, others[1], 1);
    first.join();
    second.join();
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned n = 0; n < 4; n++)
            models[i].step(i + 2, n);
        show_device("thread", others[i], models[i].x);
    }
    show_device("x", x, model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"events", run_events},
                                 {"callbacks", run_callbacks},
                                 {"values", run_values},
                                 {"values-listed", run_values_listed},
                                 {"late-values", run_late_values},
                                 {"host-values", run_host_values},
                                 {"threads", run_threads},
                                 {"contexts", run_contexts},
                                 {"default", run_default}};
    return run_modes(argc, argv, modes);
}
