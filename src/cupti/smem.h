/* Computes how much of an SM's L1 the driver sets aside as shared memory for a launch. No call of the driver tells. */
#pragma once

#include <stdint.h>

typedef struct kprof_smem_request {
    uint32_t cc_major, cc_minor;
    uint32_t threads_per_block;
    uint32_t smem_per_block_bytes;          /* static and dynamic, without the system's part */
    uint32_t reserved_smem_per_block_bytes; /* the system's part */
    uint32_t max_blocks_per_sm;             /* occupancy of this launch with the largest carve-out */
    int carveout_pct;                       /* the kernel's preferred carve-out; -1: the driver chooses */
} kprof_smem_request;

/* Return the carve-out in bytes; 0 for a chip that the rule was not tried on. Source: the rule fits 204 launches on
 * GH100 under driver 580 that differ in threads, registers and shared memory (tests/fixtures/h200-smem-config.csv), and
 * 18 with a preferred carve-out. */
uint32_t kprof_smem_configured_bytes(const kprof_smem_request *request);
