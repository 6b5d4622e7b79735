// Programs whose GPU waits for the host, for another stream or for another process, or that end without a word. Each
// prints a checksum of what it computed, and how many of its kernels gave up waiting.
//
// Usage: waits MODE
//   handshake  two kernels in two streams wait for each other
//   held       a kernel holds its stream until the host has queued what is behind it
//   fed        a kernel runs until the host tells it to stop, and answers the host meanwhile
//   ranks      kernels of two processes wait for each other in memory that these share
//   pools      memory of two pools, freed in stream order
//   workers    two forked workers, which their parent ends by SIGTERM
//   forked     40 forked workers with a launch each
//   killed     200 launches, one each 20 ms, and SIGKILL
//   slow       kernels that take longer than a call may be held, beside one that reaches memory of the host
//   written    40 launches with a value written between them in the order of the stream
#include "check.h"

#include <cuda.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned BLOCK = 128;

struct Vector {
    float *data;
    unsigned count;
};

__device__ static unsigned long long nanoseconds(void)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Wait until the word has the value; note in `given_up` if that takes longer than eight seconds.
__device__ static void await(const volatile int *word, int value, int *given_up)
{
    const unsigned long long end = nanoseconds() + 8000000000ull;
    while (*word < value && nanoseconds() < end) {
    }
    if (*word < value)
        *given_up = 1;
    __threadfence_system();
}

__global__ void set(Vector v, float value)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < v.count)
        v.data[i] = value + i % 31;
}

__global__ void add(Vector to, Vector from, float factor)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < to.count)
        to.data[i] += factor * from.data[i];
}

// Take turns with the kernel that has the words the other way round.
__global__ void take_turns(volatile int *own, const volatile int *other, Vector v, int turns, bool begins,
                           int *given_up)
{
    for (int turn = 0; turn < turns; turn++) {
        if (threadIdx.x == 0 && !(begins && turn == 0))
            await(other, *own + !begins, given_up);
        __syncthreads();
        v.data[threadIdx.x] = v.data[threadIdx.x] * 0.75f + (begins ? 1 : 2);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            *own = *own + 1;
        __syncthreads();
    }
}

__global__ void hold(const volatile int *flag, int value, int *given_up)
{
    await(flag, value, given_up);
}

struct Counter {
    volatile int asked, answered, last;
};

// Add up the numbers that the host asks for, until the last one.
__global__ void serve(Counter *counter, float *sum, int *given_up)
{
    for (int number = 1; number <= counter->last && !*given_up; number++) {
        await(&counter->asked, number, given_up);
        *sum += number;
        __threadfence_system();
        counter->answered = number;
    }
}

__global__ void meet(volatile int *flags, int rank, int value, float *sums, int *given_up)
{
    flags[rank] = value;
    __threadfence_system();
    await(&flags[1 - rank], value, given_up);
    sums[rank] += value;
}

static unsigned grid(const Vector &v)
{
    return (v.count + BLOCK - 1) / BLOCK;
}

static Vector make(unsigned count, float value)
{
    Vector v = {nullptr, count};
    CHECK(cudaMalloc(&v.data, count * sizeof(float)));
    set<<<grid(v), BLOCK>>>(v, value);
    return v;
}

template <typename T> static T *make_zeroed(size_t count)
{
    T *made;
    CHECK(cudaMalloc(&made, count * sizeof(T)));
    CHECK(cudaMemset(made, 0, count * sizeof(T)));
    return made;
}

static void show(const char *mode, const float *data, size_t count, const int *given_up)
{
    const std::vector<float> host = copy_to_host(data, count);
    print_checksum(mode, host.data(), count * sizeof(float));
    printf("gave up %d\n", copy_to_host(given_up, 1)[0]);
}

// 12 launches after the first.
static void run_handshake(void)
{
    int *words = make_zeroed<int>(64), *given_up = make_zeroed<int>(1);
    Vector v = make(BLOCK, 1);
    cudaStream_t streams[2];
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    for (int round = 0; round < 4; round++) {
        take_turns<<<1, BLOCK, 0, streams[0]>>>(words, words + 32, v, 3, true, given_up);
        take_turns<<<1, BLOCK, 0, streams[1]>>>(words + 32, words, v, 3, false, given_up);
        CHECK(cudaDeviceSynchronize());
        set<<<1, BLOCK, 0, streams[1]>>>({v.data, BLOCK / 2}, round);
        CHECK(cudaDeviceSynchronize());
    }
    show("handshake", v.data, v.count, given_up);
}

// 26 launches, four that wait.
static void run_held(void)
{
    int *given_up = make_zeroed<int>(1);
    volatile int *flag;
    CHECK(cudaMallocHost((void **)&flag, sizeof *flag));
    *flag = 0;
    Vector to = make(1 << 20, 1), from = make(1 << 20, 2);
    CHECK(cudaDeviceSynchronize());
    for (int round = 1; round <= 4; round++) {
        hold<<<1, 1>>>(flag, round, given_up);
        for (int i = 0; i < 5; i++)
            add<<<grid(to), BLOCK>>>(to, from, 0.25f);
        *flag = round;
        CHECK(cudaDeviceSynchronize());
    }
    show("held", to.data, to.count, given_up);
}

// Six launches, three that run until they are told.
static void run_fed(void)
{
    int *given_up = make_zeroed<int>(1);
    float *sum = make_zeroed<float>(1);
    Counter *counter;
    CHECK(cudaMallocHost((void **)&counter, sizeof *counter));
    for (int round = 0; round < 3; round++) {
        counter->asked = counter->answered = 0;
        counter->last = 20;
        serve<<<1, 1>>>(counter, sum, given_up);
        CHECK(cudaGetLastError());
        for (int number = 1; number <= 20; number++) {
            counter->asked = number;
            while (counter->answered < number && cudaStreamQuery(nullptr) == cudaErrorNotReady)
                usleep(200);
        }
        CHECK(cudaDeviceSynchronize());
        add<<<1, 1>>>({sum, 1}, {sum, 1}, 0.5f);
    }
    show("fed", sum, 1, given_up);
}

static int *share_flags(int rank, const int *pipes)
{
    cudaIpcMemHandle_t handle;
    int *flags;
    if (rank == 0) {
        flags = make_zeroed<int>(4);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaIpcGetMemHandle(&handle, flags));
        require(write(pipes[1], &handle, sizeof handle) == sizeof handle, "the other process hears");
    } else {
        require(read(pipes[0], &handle, sizeof handle) == sizeof handle, "the other process tells");
        CHECK(cudaIpcOpenMemHandle((void **)&flags, handle, cudaIpcMemLazyEnablePeerAccess));
    }
    return flags;
}

// 10 launches of each.
static void run_ranks(void)
{
    int pipes[2], status = 0;
    require(pipe(pipes) == 0, "a pipe");
    const pid_t child = fork();
    const int rank = child == 0;
    int *flags = share_flags(rank, pipes), *given_up = make_zeroed<int>(1);
    float *sums = (float *)(flags + 2);
    for (int value = 1; value <= 10; value++) {
        meet<<<1, 1>>>(flags, rank, value, sums, given_up);
        CHECK(cudaDeviceSynchronize());
    }
    if (rank == 1) {
        const int gave_up = copy_to_host(given_up, 1)[0];
        CHECK(cudaIpcCloseMemHandle(flags));
        exit(gave_up);
    }
    waitpid(child, &status, 0);
    show("ranks", sums, 2, given_up);
    printf("the other process ended with %d\n", status);
}

static Vector make_in(cudaMemPool_t pool, unsigned count, cudaStream_t stream)
{
    Vector v = {nullptr, count};
    CHECK(cudaMallocFromPoolAsync((void **)&v.data, count * sizeof(float), pool, stream));
    set<<<grid(v), BLOCK, 0, stream>>>(v, count % 7);
    return v;
}

// 121 launches.
static void run_pools(void)
{
    cudaMemPoolProps properties = {};
    cudaMemPool_t pools[2];
    cudaStream_t streams[2];
    cudaEvent_t done;
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPoolCreate(&pools[0], &properties));
    CHECK(cudaDeviceGetDefaultMemPool(&pools[1], 0));
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    Vector sum = make(1 << 18, 0);
    int *given_up = make_zeroed<int>(1);
    CHECK(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 30; i++) {
        cudaStream_t stream = streams[i % 2];
        Vector a = make_in(pools[0], sum.count - i % 5 * 1000, stream), b = make_in(pools[1], a.count, stream);
        add<<<grid(a), BLOCK, 0, stream>>>(a, b, 0.5f);
        add<<<grid(a), BLOCK, 0, stream>>>({sum.data, a.count}, a, 0.125f);
        CHECK(cudaFreeAsync(a.data, stream));
        CHECK(cudaFreeAsync(b.data, stream));
        CHECK(cudaEventRecord(done, stream));
        CHECK(cudaStreamWaitEvent(streams[1 - i % 2], done, 0));
        if (i % 10 == 9) {
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaMemPoolTrimTo(pools[0], 0));
        }
    }
    CHECK(cudaDeviceSynchronize());
    show("pools", sum.data, sum.count, given_up);
}

// `additions` + 2 launches; tells through the pipe that they have ended.
static void work(int number, int additions, int told)
{
    Vector to = make(1 << 16, number), from = make(1 << 16, 1);
    for (int i = 0; i < additions; i++)
        add<<<grid(to), BLOCK>>>(to, from, 0.5f);
    const float first = copy_to_host(to.data, 1)[0];
    require(write(told, &first, sizeof first) == sizeof first, "the parent hears");
}

// The children, at most eight at a time, run `additions` + 2 launches; where they do not exit, the parent ends them.
static void run_children(int children, int additions, bool exits)
{
    double sum = 0;
    int pipes[2], status, failed = 0, left = 0;
    require(pipe(pipes) == 0, "a pipe");
    for (int i = 0; i < children; i++) {
        const pid_t child = fork();
        if (child == 0) {
            work(i, additions, pipes[1]);
            while (!exits)
                pause();
            exit(0);
        }
        float first = 0;
        require(read(pipes[0], &first, sizeof first) == sizeof first, "a worker tells");
        sum += first;
        left++;
        if (!exits)
            kill(child, SIGTERM);
        for (; left > 0 && (left == 8 || i + 1 == children); left--) {
            require(wait(&status) > 0, "a worker ends");
            failed += exits ? status != 0 : !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM;
        }
    }
    printf("sum %g failed %d\n", sum, failed);
}

static void run_workers(void)
{
    run_children(2, 4, false);
}

static void run_forked(void)
{
    run_children(40, 0, true);
}

// 200 launches.
static void run_killed(void)
{
    Vector to = make(1 << 16, 1);
    for (int i = 1; i < 200; i++) {
        usleep(20000);
        add<<<grid(to), BLOCK>>>(to, to, 0.5f);
        CHECK(cudaDeviceSynchronize());
    }
    printf("first %g\n", copy_to_host(to.data, 1)[0]);
    fflush(stdout);
    raise(SIGKILL);
}

// It ends by itself.
__global__ void take_long(Vector v, unsigned long long ns)
{
    const unsigned long long end = nanoseconds() + ns;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < v.count)
        v.data[i] = v.data[i] * 0.5f + 1;
    while (nanoseconds() < end) {
    }
}

// Its arguments do not show that it reaches memory of the host.
__global__ void reach(float **where)
{
    **where += 1;
}

// To destroy a stream closes the batch, so that what reaches the host is apart from what takes long.
static void end_batch(void)
{
    cudaStream_t stream;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamDestroy(stream));
}

// 5 launches that reach memory of the host, and 10 of 0.15 s.
static void run_slow(void)
{
    Vector v = make(1 << 10, 1);
    float *pinned, **where;
    CHECK(cudaMallocHost(&pinned, sizeof *pinned));
    CHECK(cudaMalloc(&where, sizeof *where));
    CHECK(cudaMemcpy(where, &pinned, sizeof pinned, cudaMemcpyHostToDevice));
    *pinned = 0;
    for (int i = 0; i < 5; i++) {
        reach<<<1, 1>>>(where);
        CHECK(cudaGetLastError());
        end_batch();
        for (int j = 0; j < 2; j++)
            take_long<<<grid(v), BLOCK>>>(v, 150000000);
        CHECK(cudaGetLastError());
        end_batch();
    }
    printf("reached %g, first %g\n", *pinned, copy_to_host(v.data, 1)[0]);
}

__global__ void add_written(float *sum, const unsigned *written)
{
    *sum = *sum * 0.5f + *written;
}

static void run_written(void)
{
    float *sum;
    unsigned *written;
    CHECK(cudaMalloc(&sum, sizeof *sum));
    CHECK(cudaMalloc(&written, sizeof *written));
    CHECK(cudaMemset(sum, 0, sizeof *sum));
    for (unsigned i = 0; i < 40; i++) {
        require(cuStreamWriteValue32(nullptr, (CUdeviceptr)written, i, 0) == CUDA_SUCCESS, "a value is written");
        add_written<<<1, 1>>>(sum, written);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    printf("sum %g\n", copy_to_host(sum, 1)[0]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"handshake", run_handshake}, {"held", run_held},       {"fed", run_fed},       {"ranks", run_ranks},
                 {"pools", run_pools},         {"workers", run_workers}, {"forked", run_forked}, {"killed", run_killed},
                 {"slow", run_slow},           {"written", run_written}};
    for (const auto &mode : modes) {
        if (argc != 2 || strcmp(argv[1], mode.name) != 0)
            continue;
        mode.run();
        return 0;
    }
    fprintf(stderr, "usage: waits MODE\n");
    return 1;
}
