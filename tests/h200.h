/* The record of an H200, for tests that need a device. */
#pragma once

#include "spool/record.h"

static inline kprof_device_record h200_record(void)
{
    return (kprof_device_record){
        .name = "NVIDIA H200",
        .chip = "GH100",
        .uuid = "0123456789abcdef0123456789abcdef",
        .cc_major = 9,
        .sm_count = 132,
        .sm_clock_max_khz = 1980000,
        .memory_clock_max_khz = 3201000,
        .memory_bytes = UINT64_C(150754820096),
        .l2_bytes = 62914560,
        .memory_bus_bits = 6144,
        .driver_version = 13000,
        .cupti_version = 130001,
        .max_threads_per_sm = 2048,
        .max_blocks_per_sm = 32,
        .max_registers_per_sm = 65536,
        .max_registers_per_block = 65536,
        .max_smem_per_sm_bytes = 233472,
        .max_smem_per_block_bytes = 49152,
        .max_smem_per_block_optin_bytes = 232448,
        .reserved_smem_per_block_bytes = 1024,
        .warp_size = 32,
    };
}
