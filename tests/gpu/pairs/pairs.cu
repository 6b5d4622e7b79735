// Pairs of kernels that compute the same: a slow one with one performance problem, and one where that is mended. Their
// names end in _slow and _mended.
//
// Usage: pairs [launches [pair]]
// Launches each kernel `launches` times (5) after a warm-up, and prints `time PAIR slow|mended MICROSECONDS`, the
// fastest. With 0 launches it prints no times and launches each kernel as seldom as a profiler needs it to. Exits 2
// when the kernels of a pair differ.
#include "pairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unistd.h>

static unsigned pairs_run = 0;

static float fastest_ms(const std::function<void()> &launch, unsigned warm_up, long launches)
{
    cudaEvent_t start, end;
    float fastest = INFINITY;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    for (long i = -(long)warm_up; i < launches; i++) {
        float ms;
        CHECK(cudaEventRecord(start));
        launch();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&ms, start, end));
        if (i >= 0)
            fastest = std::min(fastest, ms);
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    return fastest;
}

static std::vector<unsigned> results_of(const Device &device, const Pair &pair, const char *which)
{
    const std::function<void()> &launch = which[0] == 's' ? pair.slow : pair.mended;
    CHECK(cudaMemset(device.out, pair.fill, pair.words * sizeof(unsigned)));
    CHECK(cudaDeviceSynchronize());
    if (device.launches > 0 && which[0] == 'm')
        sleep(pair.rest_s);
    if (device.launches > 0)
        printf("time %s %s %.2f\n", pair.name, which, 1000 * fastest_ms(launch, pair.warm_up, device.launches));
    else
        for (unsigned i = 0; i < pair.profiled; i++)
            launch();
    CHECK(cudaGetLastError());
    return copy_to_host(device.out, pair.words);
}

static bool are_equal(const std::vector<unsigned> &a, const std::vector<unsigned> &b, Compare compare)
{
    if (compare == Compare::WORDS)
        return a == b;
    if (compare == Compare::TOTAL)
        return std::accumulate(a.begin(), a.end(), 0u) == std::accumulate(b.begin(), b.end(), 0u);
    for (size_t i = 0; i < a.size(); i++) {
        float x, y;
        memcpy(&x, &a[i], sizeof x);
        memcpy(&y, &b[i], sizeof y);
        if (!(fabsf(x - y) <= 1e-3f * fabsf(x)))
            return false;
    }
    return true;
}

void run_pair(const Device &device, const Pair &pair)
{
    if (!device.chosen.empty() && device.chosen != pair.name)
        return;
    const std::vector<unsigned> slow = results_of(device, pair, "slow"), mended = results_of(device, pair, "mended");
    printf("%s: %s\n", pair.name, are_equal(slow, mended, pair.compare) ? "the same" : "DIFFERENT");
    require(are_equal(slow, mended, pair.compare), pair.name);
    pairs_run++;
}

int main(int argc, char **argv)
{
    Device device;
    int sms;
    std::vector<unsigned> indices(IN_WORDS);
    std::iota(indices.begin(), indices.end(), 0u);
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    device.sms = (unsigned)sms;
    device.in = copy_to_device(indices);
    device.launches = argument(argc, argv, 1, 5);
    device.chosen = argc > 2 ? argv[2] : "";
    CHECK(cudaMalloc(&device.out, OUT_WORDS * sizeof(unsigned)));
    run_memory(device);
    run_numbers(device);
    run_launches(device);
    run_clock(device); // last: it makes the GPU hot
    CHECK(cudaFree(device.in));
    CHECK(cudaFree(device.out));
    require(pairs_run > 0, "a pair of that name");
    return 0;
}
