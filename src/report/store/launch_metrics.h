/* Computes the metrics of a launch that need no counters: launch__*, device__attribute_* and theoretical occupancy. */
#pragma once

#include "spool/record.h"

typedef struct kprof_launch_facts {
    const kprof_launch_record *launch;
    const kprof_kernel_record *kernel;
    const kprof_device_record *device;
    double blocks_by_barriers; /* limit that holds whatever else is varied; 0: no limit */
} kprof_launch_facts;

/* How many blocks of the launch fit on an SM at once, and what limits them. Blocks are NaN when the device record does
 * not say. Source: CUDA Programming Guide, "Compute Capabilities" table; cuda_occupancy.h of the CUDA toolkit. */
typedef struct kprof_occupancy {
    double warps_per_block;
    double registers_per_thread_allocated; /* with the rounding of the allocation, per warp */
    double smem_per_block_bytes;           /* static, dynamic and the system's */
    double smem_per_block_allocated_bytes;
    double limit_blocks, limit_registers, limit_smem, limit_warps; /* blocks per SM */
    /* By barriers, which the kernel's code tells. If the driver's answer is below all other limits, barriers must be
     * the limit; NaN where neither is known. Seen on GH100, where 4 blocks with 16 barriers each fit. */
    double limit_barriers;
    double blocks_per_sm; /* the driver's answer where the launch record has it, else the least of the limits */
    double warps_per_sm, warps_pct;
    double waves; /* blocks of the grid over blocks that the device holds at once */
} kprof_occupancy;
kprof_occupancy kprof_occupancy_compute(const kprof_launch_facts *facts);

/* Theoretical occupancy as one property of a launch changes and the others stay. */
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

/* Compute how occupancy depends on the block size, on registers per thread and on shared memory (static and dynamic),
 * with the largest carve-out for shared memory. Returns how many curves were computed: 0 when too little is known. */
#define KPROF_WHAT_IFS_MAX 3
size_t kprof_what_if_compute(const kprof_launch_facts *facts, kprof_what_if out[KPROF_WHAT_IFS_MAX]);

typedef struct kprof_launch_value {
    const char *name; /* one of kprof_launch_metrics[] */
    double value;     /* NaN: not known */
} kprof_launch_value;
#define KPROF_LAUNCH_VALUE_MAX (96 + KPROF_DEVICE_ATTRIBUTE_COUNT)
/* All values, always the same names in the same order; returns how many. */
size_t kprof_launch_values(const kprof_launch_facts *facts, kprof_launch_value out[KPROF_LAUNCH_VALUE_MAX]);
