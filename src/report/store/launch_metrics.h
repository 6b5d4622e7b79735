/* Computes the metrics of a launch that need no counters: the launch__* and device__attribute_* metrics and theoretical
 * occupancy. */
#ifndef KPROF_REPORT_LAUNCH_METRICS_H
#define KPROF_REPORT_LAUNCH_METRICS_H

#include "spool/record.h"

typedef struct kprof_launch_facts {
    const kprof_launch_record *launch;
    const kprof_kernel_record *kernel;
    const kprof_device_record *device;
    double blocks_by_barriers; /* an SM holds no more, whatever else is varied; 0: any number */
} kprof_launch_facts;

/* How many blocks of the launch an SM can hold at once, and what allows no more. Blocks are NaN where the device record
 * does not tell. Source: CUDA Programming Guide, "Compute Capabilities" table; cuda_occupancy.h of the CUDA toolkit. */
typedef struct kprof_occupancy {
    double warps_per_block;
    double registers_per_thread_allocated; /* with the rounding of the allocation, per warp */
    double smem_per_block_bytes;           /* static, dynamic and the system's */
    double smem_per_block_allocated_bytes;
    double limit_blocks, limit_registers, limit_smem, limit_warps; /* blocks per SM */
    /* By barriers: no attribute tells how many a kernel has. It is the driver's answer where that is below all other
     * limits, else NaN: seen on GH100, where 4 blocks with 16 barriers each fit. */
    double limit_barriers;
    double blocks_per_sm; /* the driver's answer where the launch record has it, else the least of the limits */
    double warps_per_sm, warps_pct;
    double waves; /* blocks of the grid over blocks that the device holds at once */
} kprof_occupancy;
kprof_occupancy kprof_occupancy_compute(const kprof_launch_facts *facts);

/* Theoretical occupancy for each value of one property of a launch, the others as they are. */
typedef struct kprof_what_if_step {
    uint32_t from, to; /* values of the property with the same occupancy */
    double warps_pct;  /* 0: such a block cannot run */
} kprof_what_if_step;
#define KPROF_WHAT_IF_STEPS_MAX 64
typedef struct kprof_what_if {
    const char *id, *label, *unit;
    uint32_t now; /* the launch's own value */
    kprof_what_if_step steps[KPROF_WHAT_IF_STEPS_MAX];
    size_t step_count;
} kprof_what_if;

/* Compute the occupancy over the size of a block, over its registers per thread and over its shared memory (static and
 * dynamic). The largest carve-out for shared memory is assumed. Returns how many were filled in: 0 where the records do
 * not tell. */
#define KPROF_WHAT_IFS_MAX 3
size_t kprof_what_if_compute(const kprof_launch_facts *facts, kprof_what_if out[KPROF_WHAT_IFS_MAX]);

typedef struct kprof_launch_value {
    const char *name; /* one of kprof_launch_metrics[] */
    double value;     /* NaN: not known */
} kprof_launch_value;
#define KPROF_LAUNCH_VALUE_MAX 96
/* All values, always the same names in the same order; returns how many. */
size_t kprof_launch_values(const kprof_launch_facts *facts, kprof_launch_value out[KPROF_LAUNCH_VALUE_MAX]);

#endif
