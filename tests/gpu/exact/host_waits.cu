// Work that waits for what the host does after it has launched it. A profiler that waits for such a launch within the
// launch's call waits for ever: the host cannot go on to release it. A thread of the program comes to the rescue after
// four seconds, and the output tells.
//
// Usage: host_waits MODE...
//   spin, spin-hidden, stream-value, host-function, event, device-flag, copy, copy-in, copy-in-device, copy-function,
//   freed
#include "exact.h"

#include <chrono>
#include <functional>
#include <thread>

static const std::chrono::milliseconds TICK(20), PATIENCE(4000);

static std::atomic<bool> done, rescued;

static void wait_ms(std::chrono::milliseconds time)
{
    std::this_thread::sleep_for(time);
}

static void rescue(volatile unsigned *flag)
{
    for (auto waited = TICK; waited < PATIENCE && !done; waited += TICK)
        wait_ms(TICK);
    if (done)
        return;
    rescued = true;
    *flag = 1;
}

// Runs `submit`, sets the flag that its work waits for, and waits for that work.
template <typename Submit> static void release_after(const char *label, volatile unsigned *flag, Submit submit)
{
    done = rescued = false;
    std::thread watchdog(rescue, flag);
    submit();
    *flag = 1;
    CHECK(cudaDeviceSynchronize());
    done = true;
    watchdog.join();
    printf("%s %s\n", label, rescued ? "had to be rescued" : "ok");
    fflush(stdout);
}

static unsigned *allocate_flag(void)
{
    unsigned *flag;
    CHECK(cudaHostAlloc(&flag, 64, cudaHostAllocMapped));
    *flag = 0;
    return flag;
}

// Gives up after three seconds.
__global__ void spin(const volatile unsigned *flag, unsigned *x, unsigned addend)
{
    const unsigned long long start = gpu_time_ns();
    while (*flag == 0 && gpu_time_ns() - start < 3000000000ull)
        ;
    *x = *x * 3 + *flag * addend;
}

// The arguments do not show that the kernel reads host memory.
__global__ void spinHidden(const volatile unsigned *const *flag, unsigned *x, unsigned addend)
{
    const unsigned long long start = gpu_time_ns();
    while (**flag == 0 && gpu_time_ns() - start < 3000000000ull)
        ;
    *x = *x * 3 + **flag * addend;
}

static void spin_rounds(bool hidden)
{
    volatile unsigned *flag = allocate_flag();
    const volatile unsigned **pointer = copy_to_device(std::vector<const volatile unsigned *>(1, flag));
    unsigned *x = copy_to_device(std::vector<unsigned>(1, 1)), want = 1;
    for (unsigned n = 0; n < 3; n++) {
        *flag = n == 0; // the first ends at once: the kernel is loaded before one has to wait
        release_after(hidden ? "spin hidden" : "spin", flag, [=] {
            if (hidden)
                spinHidden<<<1, 1>>>(pointer, x, n + 2);
            else
                spin<<<1, 1>>>(flag, x, n + 2);
            launched();
        });
        want = want * 3 + n + 2;
    }
    show_device("x", x, {want});
    show("flag", (const unsigned *)flag, {1});
}

static void run_spin(void)
{
    spin_rounds(false);
}

static void run_spin_hidden(void)
{
    spin_rounds(true);
}

// The stream waits for a value in host memory before the kernels.
static void run_stream_value(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = allocate_flag();
    cudaStream_t stream;
    CUdeviceptr address;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_DRIVER(cuMemHostGetDevicePointer(&address, flag, 0));
    CHECK(cudaDeviceSynchronize()); // these streams would not wait for the copy to the device
    step(x, 3, 1, stream);
    model.step(3, 1);
    CHECK(cudaDeviceSynchronize());
    for (unsigned n = 0; n < 3; n++) {
        *flag = 0;
        release_after("stream value", flag, [=] {
            step(x, 3, n, stream);
            CHECK_DRIVER(cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_GEQ));
            step(x, 5, n, stream);
            step(x, 7, n, stream);
        });
        model.step(3, n);
        model.step(5, n);
        model.step(7, n);
    }
    show_device("x", x, model.x);
}

static void CUDART_CB wait_in_stream(void *flag)
{
    while (*(const volatile unsigned *)flag == 0)
        wait_ms(TICK / 20);
}

// A host function in the stream waits for what the launching thread does afterwards.
static void run_host_function(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), flag = 0, *where = &flag;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize()); // these streams would not wait for the copy to the device
    step(x, 3, 1, stream);
    model.step(3, 1);
    CHECK(cudaDeviceSynchronize());
    release_after("host function", where, [=] {
        CHECK(cudaLaunchHostFunc(stream, wait_in_stream, where));
        step(x, 5, 1, stream);
        step(x, 7, 1, stream);
    });
    model.step(5, 1);
    model.step(7, 1);
    show_device("x", x, model.x);
}

// One stream waits for the host; the launches are in another, which need not wait.
static void run_event(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), flag = 0, *where = &flag;
    cudaStream_t blocked, stream;
    cudaEvent_t event;
    CHECK(cudaStreamCreateWithFlags(&blocked, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize()); // these streams would not wait for the copy to the device
    step(x, 3, 1, stream);
    model.step(3, 1);
    CHECK(cudaDeviceSynchronize());
    release_after("event", where, [=] {
        CHECK(cudaLaunchHostFunc(blocked, wait_in_stream, where));
        CHECK(cudaEventRecord(event, blocked));
        step(x, 5, 1, stream);
        CHECK(cudaStreamSynchronize(stream)); // the host looks before it releases the other stream
        CHECK(cudaStreamWaitEvent(stream, event, 0));
        step(x, 7, 1, stream);
    });
    model.step(5, 1);
    model.step(7, 1);
    show_device("x", x, model.x);
}

// Gives up after twenty seconds.
__global__ void poll(const volatile unsigned *flag, unsigned *y, unsigned addend)
{
    const unsigned long long start = gpu_time_ns();
    while (*flag == 0 && gpu_time_ns() - start < 20000000000ull)
        ;
    *y = *y * 3 + *flag * addend;
}

// A kernel, itself not to be measured, waits for what is put into device memory after the next launches.
static void run_device_flag(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = copy_to_device(std::vector<unsigned>(1, 0));
    unsigned *y = copy_to_device(std::vector<unsigned>(1, 1)), want = 1;
    cudaStream_t blocked, stream, releasing;
    cudaFuncAttributes attributes;
    for (cudaStream_t *it : {&blocked, &stream, &releasing})
        CHECK(cudaStreamCreateWithFlags(it, cudaStreamNonBlocking));
    CHECK(cudaFuncGetAttributes(&attributes, poll)); // is loaded
    CHECK(cudaDeviceSynchronize());                  // these streams would not wait for the copies to the device
    for (unsigned n = 1; n <= 2; n++) {
        step(x, 3, n, stream);
        poll<<<1, 1, 0, blocked>>>(flag, y, 4); // not to be measured, nor counted
        CHECK(cudaGetLastError());
        step(x, 5, n, stream);
        CHECK(cudaMemsetAsync(flag, 1, sizeof *flag, releasing));
        CHECK(cudaDeviceSynchronize());
        step(x, 7, n, stream);
        CHECK(cudaMemsetAsync(flag, 0, sizeof *flag, stream));
        CHECK(cudaDeviceSynchronize());
        model.step(3, n);
        model.step(5, n);
        model.step(7, n);
        want = want * 3 + 0x01010101 * 4;
    }
    show_device("x", x, model.x);
    show_device("y", y, {want});
}

// The host waits in a copy for a kernel, which waits for what another thread is about to do.
static void run_copy(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = copy_to_device(std::vector<unsigned>(1, 0));
    unsigned *y = copy_to_device(std::vector<unsigned>(1, 1)), want = 1;
    std::vector<unsigned> seen, expected;
    cudaStream_t blocked, releasing;
    cudaFuncAttributes attributes;
    for (cudaStream_t *it : {&blocked, &releasing})
        CHECK(cudaStreamCreateWithFlags(it, cudaStreamNonBlocking));
    CHECK(cudaFuncGetAttributes(&attributes, poll)); // is loaded
    CHECK(cudaDeviceSynchronize());                  // these streams would not wait for the copies to the device
    for (unsigned n = 1; n <= 2; n++) {
        unsigned value = 0;
        step(x, 3, n, blocked);
        poll<<<1, 1, 0, blocked>>>(flag, y, 4); // not to be measured, nor counted
        CHECK(cudaGetLastError());
        std::thread other([=] {
            wait_ms(10 * TICK);
            CHECK(cudaMemsetAsync(flag, 1, sizeof *flag, releasing));
        });
        CHECK(
            cudaMemcpyAsync(&value, y, sizeof value, cudaMemcpyDeviceToHost, blocked)); // to pageable memory: it waits
        other.join();
        step(x, 5, n, blocked);
        CHECK(cudaMemsetAsync(flag, 0, sizeof *flag, blocked));
        CHECK(cudaDeviceSynchronize());
        model.step(3, n);
        model.step(5, n);
        want = want * 3 + 0x01010101 * 4;
        seen.push_back(value);
        expected.push_back(want);
    }
    show("seen", seen.data(), expected);
    show_device("x", x, model.x);
}

// 256 KiB go through the driver's own memory, and the host goes on, while a kernel before them waits for it.
static const size_t SMALL = 65536;

static void run_copy_in(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = allocate_flag(), want = 1;
    unsigned *y = copy_to_device(std::vector<unsigned>(1, 1)), *z = copy_to_device(std::vector<unsigned>(SMALL, 0));
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, spin)); // is loaded
    for (unsigned n = 1; n <= 2; n++) {
        step(x, 3, n, 0);
        model.step(3, n);
        CHECK(cudaDeviceSynchronize());
        *(volatile unsigned *)flag = 0;
        release_after("copy in", flag, [=] {
            spin<<<1, 1>>>(flag, y, n); // not to be measured, nor counted
            const std::vector<unsigned> source(SMALL, n);
            CHECK(cudaMemcpyAsync(z, source.data(), SMALL * sizeof n, cudaMemcpyHostToDevice));
        });
        want = want * 3 + n;
    }
    show_device("y", y, {want});
    show_device("z", z, std::vector<unsigned>(SMALL, 2));
    show_device("x", x, model.x);
}

// A word goes into the GPU's queue, and the kernel waits for what this thread puts into device memory behind the copy.
static void run_copy_in_device(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = copy_to_device(std::vector<unsigned>(1, 0));
    unsigned *y = copy_to_device(std::vector<unsigned>(1, 1)), *z = copy_to_device(std::vector<unsigned>(1, 0));
    unsigned want = 1;
    cudaStream_t releasing;
    cudaFuncAttributes attributes;
    CHECK(cudaStreamCreateWithFlags(&releasing, cudaStreamNonBlocking));
    CHECK(cudaFuncGetAttributes(&attributes, poll)); // is loaded
    for (unsigned n = 1; n <= 2; n++) {
        step(x, 3, n, 0);
        poll<<<1, 1>>>(flag, y, 4); // not to be measured, nor counted
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(z, &n, sizeof n, cudaMemcpyHostToDevice));
        CHECK(cudaMemsetAsync(flag, 1, sizeof *flag, releasing));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemset(flag, 0, sizeof *flag));
        CHECK(cudaDeviceSynchronize());
        model.step(3, n);
        want = want * 3 + 0x01010101 * 4;
    }
    show_device("y", y, {want});
    show_device("z", z, {2});
    show_device("x", x, model.x);
}

__global__ void raise_flag(volatile unsigned *flag)
{
    *flag = 1;
}

// What another thread does in another stream ends the kernel, as the host itself did before: copies, a set, a write to
// memory in the stream's order, and a kernel.
static void run_freed(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *flag = allocate_flag(), *one = copy_to_device(std::vector<unsigned>(1, 1));
    unsigned *y = copy_to_device(std::vector<unsigned>(1, 1)), *to, want = 1, host = 1;
    cudaStream_t blocked, freeing;
    for (cudaStream_t *it : {&blocked, &freeing})
        CHECK(cudaStreamCreateWithFlags(it, cudaStreamNonBlocking));
    CHECK(cudaHostGetDevicePointer(&to, flag, 0));
    const std::function<void(void)> ways[] = {
        [=] { *(volatile unsigned *)flag = 1; },
        [=] { CHECK(cudaMemcpyAsync(to, one, sizeof *to, cudaMemcpyDefault, freeing)); },
        [=] { CHECK(cudaMemcpyAsync(to, &host, sizeof *to, cudaMemcpyDefault, freeing)); },
        [=] { CHECK(cudaMemsetAsync(to, 1, sizeof *to, freeing)); },
        [=] { CHECK_DRIVER(cuStreamWriteValue32(freeing, (CUdeviceptr)to, 1, 0)); },
        [=] { raise_flag<<<1, 1, 0, freeing>>>(to), launched(); },
    };
    raise_flag<<<1, 1>>>(to), launched(); // is loaded
    CHECK(cudaDeviceSynchronize());
    unsigned n = 0;
    for (const auto &way : ways) {
        *(volatile unsigned *)flag = 0;
        spin<<<1, 1, 0, blocked>>>(to, y, ++n);
        launched();
        step(x, 3, n, blocked);
        step(x, 5, n, blocked);
        std::thread other([=] {
            wait_ms(10 * TICK);
            way();
        });
        CHECK(cudaStreamSynchronize(blocked));
        other.join();
        CHECK(cudaDeviceSynchronize());
        model.step(3, n);
        model.step(5, n);
        want = want * 3 + *(volatile unsigned *)flag * n;
        unsigned got;
        CHECK(cudaMemcpy(&got, y, sizeof got, cudaMemcpyDeviceToHost));
        printf("freed in way %u %s\n", n, got == want ? "ok" : "too late");
    }
    show_device("y", y, {want});
    show_device("x", x, model.x);
}

// The host waits in a copy for a function of its own, which waits for another thread behind a call of that.
static void run_copy_function(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *y = copy_to_device(std::vector<unsigned>(1, 1)), flag = 0, *where = &flag;
    std::vector<unsigned> seen(2), want;
    unsigned *into = seen.data();
    cudaStream_t stream, releasing;
    for (cudaStream_t *it : {&stream, &releasing})
        CHECK(cudaStreamCreateWithFlags(it, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize()); // these streams would not wait for the copies to the device
    for (unsigned n = 1; n <= 2; n++, into++) {
        step(x, 3, n, stream);
        CHECK(cudaDeviceSynchronize());
        flag = 0;
        release_after("copy behind a function", where, [=] {
            step(x, 5, n, stream);
            CHECK(cudaLaunchHostFunc(stream, wait_in_stream, where));
            std::thread other([=] {
                wait_ms(10 * TICK);
                CHECK(cudaMemsetAsync(y, 0, sizeof *y, releasing));
                *(volatile unsigned *)where = 1;
            });
            CHECK(cudaMemcpyAsync(into, x, sizeof *x, cudaMemcpyDeviceToHost, stream)); // to pageable memory: it waits
            other.join();
        });
        model.step(3, n);
        model.step(5, n);
        want.push_back(model.x[0]);
    }
    show("seen", seen.data(), want);
    show_device("x", x, model.x);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"spin", run_spin},
                                 {"spin-hidden", run_spin_hidden},
                                 {"stream-value", run_stream_value},
                                 {"host-function", run_host_function},
                                 {"event", run_event},
                                 {"device-flag", run_device_flag},
                                 {"copy", run_copy},
                                 {"copy-in", run_copy_in},
                                 {"copy-in-device", run_copy_in_device},
                                 {"copy-function", run_copy_function},
                                 {"freed", run_freed}};
    CHECK(cudaFree(0));
    return run_modes(argc, argv, modes);
}
