/* Computes the metrics of a launch that need no counters: the launch__* and device__attribute_* metrics and theoretical
 * occupancy. */
#ifndef KPROF_REPORT_LAUNCH_METRICS_H
#define KPROF_REPORT_LAUNCH_METRICS_H

#include "spool/record.h"

typedef struct kprof_launch_facts {
    const kprof_launch_record *launch;
    const kprof_kernel_record *kernel;
    const kprof_device_record *device;
} kprof_launch_facts;

/* How many blocks of the launch an SM can hold at once, and what allows no more. Blocks are NaN where the device record
 * does not tell. Source: CUDA Programming Guide, "Compute Capabilities" table; cuda_occupancy.h of the CUDA toolkit. */
typedef struct kprof_occupancy {
    double warps_per_block;
    double registers_per_thread_allocated; /* with the rounding of the allocation, per warp */
    double smem_per_block_bytes;           /* static, dynamic and the system's */
    double smem_per_block_allocated_bytes;
    double limit_blocks, limit_registers, limit_smem, limit_warps; /* blocks per SM */
    double blocks_per_sm; /* the driver's answer where the launch record has it, else the least of the limits */
    double warps_per_sm, warps_pct;
    double waves; /* blocks of the grid over blocks that the device holds at once */
} kprof_occupancy;
kprof_occupancy kprof_occupancy_compute(const kprof_launch_facts *facts);

typedef struct kprof_launch_value {
    const char *name; /* one of kprof_launch_metrics[] */
    double value;     /* NaN: not known */
} kprof_launch_value;
#define KPROF_LAUNCH_VALUE_MAX 96
/* All values, always the same names in the same order; returns how many. */
size_t kprof_launch_values(const kprof_launch_facts *facts, kprof_launch_value out[KPROF_LAUNCH_VALUE_MAX]);

#endif
