// Memory that two processes, or two GPUs, share.
//
// Usage: shared_devices MODE...
//   ipc, peer, copies
#include "exact.h"

#include <sys/wait.h>

static int to_child[2], to_parent[2];

static void send(int pipe, const void *data, size_t bytes)
{
    require(write(pipe, data, bytes) == (ssize_t)bytes, "the other process is there");
}

// False when the other end has gone.
static bool receive(int pipe, void *data, size_t bytes)
{
    return read(pipe, data, bytes) == (ssize_t)bytes;
}

// Changes the parent's memory each time it is told to. Its first reply says whether it could open it.
static void run_child(void)
{
    cudaIpcMemHandle_t handle;
    unsigned *x, turn;
    if (!receive(to_child[0], &handle, sizeof handle))
        _exit(0);
    const cudaError_t opened = cudaIpcOpenMemHandle((void **)&x, handle, cudaIpcMemLazyEnablePeerAccess);
    send(to_parent[1], &opened, sizeof opened);
    while (opened == cudaSuccess && receive(to_child[0], &turn, sizeof turn) && turn > 0) {
        step(x, 5, turn);
        step(x, 7, turn);
        CHECK(cudaDeviceSynchronize());
        send(to_parent[1], &turn, sizeof turn);
    }
    if (opened == cudaSuccess)
        CHECK(cudaIpcCloseMemHandle(x));
    report_launches(launch_count, launch_count);
    exit(0);
}

static void offer(const unsigned *x)
{
    cudaIpcMemHandle_t handle;
    cudaError_t opened;
    if (cudaIpcGetMemHandle(&handle, (void *)x) != cudaSuccess)
        skip("no memory can be shared between processes here");
    send(to_child[1], &handle, sizeof handle);
    require(receive(to_parent[0], &opened, sizeof opened), "the child answers");
    if (opened != cudaSuccess)
        skip("no memory of another process can be opened here");
}

static void run_ipc(void)
{
    require(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipes");
    const pid_t child = fork(); // before CUDA
    require(child >= 0, "fork");
    if (child == 0) {
        close(to_child[1]);
        run_child();
    }
    close(to_child[0]);
    Model model;
    unsigned *x = copy_to_device(model.x);
    CHECK(cudaDeviceSynchronize());
    offer(x);
    for (unsigned turn = 1; turn <= 4; turn++) {
        unsigned reply;
        step(x, 3, turn);
        CHECK(cudaDeviceSynchronize());
        send(to_child[1], &turn, sizeof turn);
        require(receive(to_parent[0], &reply, sizeof reply) && reply == turn, "the child did its turn");
        model.step(3, turn);
        model.step(5, turn);
        model.step(7, turn);
        if (turn % 2 == 0)
            show_device("shared", x, model.x);
    }
    const unsigned end = 0;
    int status;
    send(to_child[1], &end, sizeof end);
    require(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "the child succeeded");
}

static bool can_reach(int from, int to)
{
    int possible = 0;
    CHECK(cudaDeviceCanAccessPeer(&possible, from, to));
    return possible != 0;
}

static void enable_peers(void)
{
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 2 || !can_reach(0, 1) || !can_reach(1, 0))
        skip("no two GPUs that reach each other");
    for (int device = 0; device < 2; device++) {
        CHECK(cudaSetDevice(device));
        CHECK(cudaDeviceEnablePeerAccess(1 - device, 0));
    }
}

// Kernels of each GPU change the other's memory; the GPUs copy to each other in between.
static void run_peer(void)
{
    enable_peers();
    Model models[2];
    unsigned *x[2];
    for (int device = 0; device < 2; device++) {
        CHECK(cudaSetDevice(device));
        x[device] = copy_to_device(models[device].x);
        CHECK(cudaDeviceSynchronize());
    }
    for (unsigned n = 1; n <= 4; n++)
        for (int device = 0; device < 2; device++) {
            CHECK(cudaSetDevice(device));
            step(x[1 - device], 3, n);
            step(x[device], 5, n);
            models[1 - device].step(3, n);
            models[device].step(5, n);
            CHECK(cudaDeviceSynchronize());
            if (n == 2 && device == 1) {
                CHECK(cudaMemcpyPeer(x[0], 0, x[1], 1, COUNT / 2 * sizeof(unsigned)));
                memcpy(models[0].x.data(), models[1].x.data(), COUNT / 2 * sizeof(unsigned));
                CHECK(cudaDeviceSynchronize());
            }
        }
    show_device("first", x[0], models[0].x);
    show_device("second", x[1], models[1].x);
}

__global__ void occupy(unsigned long long duration_ns)
{
    const unsigned long long start = gpu_time_ns();
    while (gpu_time_ns() - start < duration_ns)
        ;
}

// A GPU copies into the other's memory, later than the other's next kernels begin, which use other memory.
static void run_copies(void)
{
    int devices = 0;
    Model models[2], received;
    unsigned *x[2], *y;
    cudaStream_t stream;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 2)
        skip("no two GPUs");
    for (int device = 0; device < 2; device++) {
        CHECK(cudaSetDevice(device));
        x[device] = copy_to_device(models[device].x);
        if (device == 0)
            y = copy_to_device(received.x);
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); // of GPU 1
    for (unsigned n = 1; n <= 4; n++) {
        CHECK(cudaSetDevice(1));
        step(x[1], 3, n);
        models[1].step(3, n);
        CHECK(cudaDeviceSynchronize());
        occupy<<<1, 1, 0, stream>>>(20000000ull);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyPeerAsync(y, 0, x[1], 1, COUNT * sizeof(unsigned), stream));
        received = models[1];
        CHECK(cudaSetDevice(0));
        for (unsigned i = 0; i < 3; i++) {
            step(x[0], 5, i);
            models[0].step(5, i);
        }
        CHECK(cudaStreamSynchronize(stream));
        show_device("received", y, received.x);
    }
    show_device("first", x[0], models[0].x);
    show_device("second", x[1], models[1].x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"ipc", run_ipc}, {"peer", run_peer}, {"copies", run_copies}};
    return run_modes(argc, argv, modes);
}
