/* The names that describe a launch without any counter: what the driver and the launch call know, under the names that
 * ncu's users know them by. The report computes the values. */
#include "metricset/metricset.h"

#include <string.h>

const kprof_launch_metric kprof_launch_metrics[] = {
    {"device__attribute_clock_rate", "khz", "highest SM clock"},
    {"device__attribute_compute_capability_major", "", "compute capability, major number"},
    {"device__attribute_compute_capability_minor", "", "compute capability, minor number"},
    {"device__attribute_global_memory_bus_width", "bit", "width of the memory bus"},
    {"device__attribute_l2_cache_size", "byte", "size of the L2 cache"},
    {"device__attribute_max_blocks_per_multiprocessor", "block", "most blocks that can be resident on an SM"},
    {"device__attribute_max_registers_per_block", "register", "most 32-bit registers that a block can have"},
    {"device__attribute_max_registers_per_multiprocessor", "register", "32-bit registers of an SM"},
    {"device__attribute_max_shared_memory_per_block", "byte/block", "most shared memory of a block without opting in"},
    {"device__attribute_max_shared_memory_per_block_optin", "byte/block", "most shared memory of a block that opts in"},
    {"device__attribute_max_shared_memory_per_multiprocessor", "byte", "shared memory of an SM"},
    {"device__attribute_max_threads_per_multiprocessor", "thread", "most threads that can be resident on an SM"},
    {"device__attribute_max_warps_per_multiprocessor", "warp", "most warps that can be resident on an SM"},
    {"device__attribute_memory_clock_rate", "khz", "highest memory clock"},
    {"device__attribute_multiprocessor_count", "", "number of SMs"},
    {"device__attribute_reserved_shared_memory_per_block", "byte/block",
     "shared memory of a block that the system keeps"},
    {"device__attribute_total_memory", "byte", "device memory"},
    {"device__attribute_warp_size", "thread", "threads in a warp"},
    {"launch__binary_version", "", "architecture that the kernel's machine code was made for (90 is 9.0)"},
    {"launch__block_dim_x", "", "threads of a block in x"},
    {"launch__block_dim_y", "", "threads of a block in y"},
    {"launch__block_dim_z", "", "threads of a block in z"},
    {"launch__block_size", "", "threads of a block"},
    {"launch__cluster_dim_x", "", "blocks of a cluster in x; 0: launched without clusters"},
    {"launch__cluster_dim_y", "", "blocks of a cluster in y; 0: launched without clusters"},
    {"launch__cluster_dim_z", "", "blocks of a cluster in z; 0: launched without clusters"},
    {"launch__cluster_max_active", "cluster", "clusters of this shape that fit on the device at once"},
    {"launch__cluster_size", "", "blocks of a cluster; 0: launched without clusters"},
    {"launch__constant_mem_size", "byte", "constant memory that the kernel's own variables take"},
    {"launch__context_id", "", "CUPTI's number of the context"},
    {"launch__cooperative", "", "1 for a cooperative launch"},
    {"launch__device_id", "", "CUDA's number of the device in the process"},
    {"launch__grid_dim_x", "", "blocks of the grid in x"},
    {"launch__grid_dim_y", "", "blocks of the grid in y"},
    {"launch__grid_dim_z", "", "blocks of the grid in z"},
    {"launch__grid_size", "", "blocks of the grid"},
    {"launch__local_mem_per_thread", "byte/thread", "local memory of a thread: spilled registers and its own arrays"},
    {"launch__max_threads_per_block", "thread/block", "most threads per block that the kernel can be launched with"},
    {"launch__occupancy_blocks_per_multiprocessor", "block", "blocks resident on an SM as the driver computes them"},
    {"launch__occupancy_limit_blocks", "block", "blocks resident on an SM as its number of block slots allows"},
    {"launch__occupancy_limit_registers", "block", "blocks resident on an SM as its registers allow"},
    {"launch__occupancy_limit_shared_mem", "block", "blocks resident on an SM as its shared memory allows"},
    {"launch__occupancy_limit_warps", "block", "blocks resident on an SM as its number of warp slots allows"},
    {"launch__ptx_version", "", "architecture of the PTX that the kernel was made from (90 is 9.0)"},
    {"launch__registers_per_thread", "register/thread", "32-bit registers of a thread"},
    {"launch__registers_per_thread_allocated", "register/thread",
     "32-bit registers of a thread with the rounding of "
     "the allocation"},
    {"launch__shared_mem_config_size", "byte", "shared memory that the SM was configured for"},
    {"launch__shared_mem_per_block", "byte/block", "shared memory of a block: static, dynamic and the system's"},
    {"launch__shared_mem_per_block_allocated", "byte/block",
     "shared memory of a block with the rounding of the "
     "allocation"},
    {"launch__shared_mem_per_block_driver", "byte/block", "shared memory of a block that the system keeps"},
    {"launch__shared_mem_per_block_dynamic", "byte/block", "shared memory of a block asked for by the launch"},
    {"launch__shared_mem_per_block_static", "byte/block", "shared memory of a block declared in the kernel"},
    {"launch__sm_count", "SM", "SMs of the device"},
    {"launch__stream_id", "", "CUPTI's number of the stream"},
    {"launch__thread_count", "thread", "threads of the whole grid"},
    {"launch__warps_per_block", "warp/block", "warps of a block"},
    {"launch__waves_per_multiprocessor", "",
     "times that the grid fills the device: blocks over SMs and resident blocks"},
    {"sm__maximum_warps_avg_per_active_cycle", "warp", "theoretical occupancy: warps resident on an SM"},
    {"sm__maximum_warps_per_active_cycle_pct", "%", "theoretical occupancy: warps resident on an SM of those possible"},
    {NULL, NULL, NULL},
};

const kprof_launch_metric *kprof_launch_metric_find(const char *name)
{
    for (const kprof_launch_metric *metric = kprof_launch_metrics; metric->name; metric++) {
        if (strcmp(metric->name, name) == 0)
            return metric;
    }
    return NULL;
}
