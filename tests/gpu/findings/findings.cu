// Kernels with one performance problem each, and twins without it. README.md lists them by finding.
//
// Usage: findings
// Prints `KERNEL: right` for each; exits 2 when a result is wrong.
#include "findings.h"

#include <numeric>

int main(void)
{
    Device device;
    int sms;
    std::vector<unsigned> indices(IN_WORDS);
    std::iota(indices.begin(), indices.end(), 0u);
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    device.sms = (unsigned)sms;
    device.in = copy_to_device(indices);
    CHECK(cudaMalloc(&device.out, OUT_WORDS * sizeof(unsigned)));
    run_bounds(device);
    run_stalls(device);
    run_occupancy(device);
    run_grids(device);
    run_memory(device);
    run_numbers(device);
    CHECK(cudaFree(device.in));
    CHECK(cudaFree(device.out));
    require(failures == 0, "results of kernels");
    return 0;
}
