// Sum of 2^24 unsigned integers: a tree in shared memory per block, then one atomic addition per block to one word. The
// result accumulates over launches, so a replay that runs an atomic twice shows in it.
//
// Usage: reduction [launches]
#include "sweep.h"

static const unsigned BLOCK = 256, GRID = 4096;

__global__ void reduceSum(const unsigned *in, size_t count, unsigned *sum)
{
    __shared__ unsigned partial[BLOCK];
    unsigned own = 0;
    for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (size_t)GRID * BLOCK)
        own += in[i];
    partial[threadIdx.x] = own;
    __syncthreads();
    for (unsigned step = BLOCK / 2; step > 0; step /= 2) {
        if (threadIdx.x < step)
            partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(sum, partial[0]);
}

int main(int argc, char **argv)
{
    const size_t count = (size_t)1 << 24;
    const long launches = argument(argc, argv, 1, 3);
    std::vector<unsigned> host(count);
    unsigned want = 0;
    for (size_t i = 0; i < count; i++) {
        host[i] = (unsigned)(i * 2654435761u);
        want += host[i];
    }
    unsigned *device = copy_to_device(host);
    unsigned *sum = copy_to_device(std::vector<unsigned>(1, 0));
    for (long i = 0; i < launches; i++) {
        sweep_caches();
        reduceSum<<<GRID, BLOCK>>>(device, count, sum);
    }
    CHECK(cudaGetLastError());
    const unsigned got = copy_to_host(sum, 1)[0];
    require(got == want * (unsigned)launches, "the sum holds each launch once");
    printf("sum %u\n", got);
    expect("reduceSum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", (double)count / 8, COUNT_TOLERANCE);
    expect("reduceSum", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", GRID, COUNT_TOLERANCE);
    expect("reduceSum", "smsp__inst_executed_op_global_red_pred_on_any.sum", GRID, COUNT_TOLERANCE);
    // Requests, not instructions: the unrolled loop issues loads that are predicated off at its end.
    expect("reduceSum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", (double)count / 32, COUNT_TOLERANCE);
    expect("reduceSum", "dram__bytes_read.sum", (double)count * sizeof(unsigned), DRAM_TOLERANCE);
    CHECK(cudaFree(device));
    CHECK(cudaFree(sum));
    return 0;
}
