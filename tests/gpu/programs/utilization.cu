// Programs whose use of the GPU over time is known: tests/gpu/utilization.py holds samples to it.
//
// Usage: utilization pulses | copies | peers | busy | launches
//   pulses    60 times all SMs are busy for 50 ms and idle for 50 ms, in NVTX ranges "on" and "off"; ten of them are
//             between cudaProfilerStart and cudaProfilerStop
//   copies    40 copies of 256 MiB from and to pinned memory
//   peers     40 copies of 256 MiB from the first GPU to the second; none where these cannot reach each other
//   busy      100,000 kernels of 20 us; prints the seconds that they take
//   launches  300,000 kernels that do nothing, likewise
#include "check.h"
#include "spin.h"

#include <chrono>
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
#include <thread>

static const unsigned PULSES = 60, PULSE_MS = 50, FIRST_CHOSEN = 30, CHOSEN = 10, COPIES = 40;
static const size_t COPY_BYTES = (size_t)256 << 20;

static void sleep_ms(unsigned ms)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

static void run_pulses(unsigned sms)
{
    for (unsigned i = 0; i < PULSES; i++) {
        if (i == FIRST_CHOSEN)
            CHECK(cudaProfilerStart());
        if (i == FIRST_CHOSEN + CHOSEN)
            CHECK(cudaProfilerStop());
        nvtxRangePushA("on");
        spin<<<2 * sms, 32>>>(1000000ull * PULSE_MS);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        nvtxRangePop();
        nvtxRangePushA("off");
        sleep_ms(PULSE_MS);
        nvtxRangePop();
    }
    printf("kernels %u\nchosen %u\n", PULSES, CHOSEN);
}

static void run_copies(unsigned sms)
{
    void *pinned, *device;
    CHECK(cudaMallocHost(&pinned, COPY_BYTES));
    CHECK(cudaMalloc(&device, COPY_BYTES));
    spin<<<sms, 32>>>(1000000000ull); // until samples run
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (unsigned i = 0; i < COPIES; i++)
        CHECK(cudaMemcpy(device, pinned, COPY_BYTES, cudaMemcpyHostToDevice));
    for (unsigned i = 0; i < COPIES; i++)
        CHECK(cudaMemcpy(pinned, device, COPY_BYTES, cudaMemcpyDeviceToHost));
    printf("bytes %.0f\n", (double)COPY_BYTES * COPIES);
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(device));
}

static void spin_on(int device, unsigned long long ns)
{
    CHECK(cudaSetDevice(device));
    spin<<<1, 32>>>(ns);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

// Links are idle at first, as in programs that begin with other work.
static void run_peers()
{
    void *memory[2];
    int reaches = 0, devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices > 1)
        CHECK(cudaDeviceGetP2PAttribute(&reaches, cudaDevP2PAttrNativeAtomicSupported, 0, 1));
    printf("bytes %.0f\n", reaches ? (double)COPY_BYTES * COPIES : 0);
    for (int i = 0; i < 2 && reaches; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaDeviceEnablePeerAccess(1 - i, 0));
        CHECK(cudaMalloc(&memory[i], COPY_BYTES));
        spin_on(i, 1500000000ull); // until samples run
    }
    for (unsigned i = 0; i < COPIES && reaches; i++) {
        CHECK(cudaMemcpyPeer(memory[1], 1, memory[0], 0, COPY_BYTES));
        CHECK(cudaDeviceSynchronize());
        sleep_ms(10);
    }
}

// Time launches, after a second in which samples begin.
static void run_launches(unsigned count, unsigned blocks, unsigned long long ns)
{
    spin<<<blocks, 32>>>(1000000000ull);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < count; i++)
        if (ns > 0)
            spin<<<blocks, 32>>>(ns);
        else
            nothing<<<1, 1>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    printf("seconds %.4f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int sms = 0;
    CHECK(cudaFree(0));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    if (strcmp(what, "pulses") == 0)
        run_pulses(sms);
    else if (strcmp(what, "copies") == 0)
        run_copies(sms);
    else if (strcmp(what, "peers") == 0)
        run_peers();
    else if (strcmp(what, "busy") == 0)
        run_launches(100000, sms, 20000);
    else if (strcmp(what, "launches") == 0)
        run_launches(300000, 1, 0);
    else
        return 2;
    sleep_ms(300); // what follows is no work
    return 0;
}
