/* One record of every type, with every field set to something that shows when it is lost or swapped. */
#ifndef KPROF_TESTS_SPOOL_SAMPLES_H
#define KPROF_TESTS_SPOOL_SAMPLES_H

#include "spool/record.h"

#include <math.h>

static const char *const sample_names[] = {"dram__bytes.sum", "", "sm__cycles_active.avg"};
static const double sample_values[] = {1.5, NAN, -0.0, INFINITY, 1e300};
static const char *const sample_witnesses[] = {"sm__inst_executed.sum", "gpu__time_active.sum"};
static const double sample_spreads[] = {3.25, NAN};

static const char *const sample_instruction_names[] = {"smsp__sass_inst_executed", "smsp__sass_sectors_mem_global"};
static const double sample_times[] = {0, 1000, 50, 1, 1000, 1000, 25, 0.5}; /* two samples */
static const double sample_rows[] = {0, 4096, 1, 16, 4096, 0};              /* two instructions */

static const kprof_record samples[] = {
    {.type = KPROF_RECORD_PROCESS, .process = {11, 12, -13, "host", "/usr/bin/app", "app --flag \"a b\""}},
    {.type = KPROF_RECORD_DEVICE,
     .device = {.device = 1,
                .name = "NVIDIA H200",
                .chip = "GH100",
                .uuid = "00112233445566778899aabbccddeeff",
                .cc_major = 9,
                .cc_minor = 2,
                .sm_count = 132,
                .sm_clock_max_khz = 1980000,
                .memory_clock_max_khz = 3201000,
                .memory_bytes = 1ull << 37,
                .l2_bytes = 62914560,
                .memory_bus_bits = 6016,
                .driver_version = 13000,
                .cupti_version = 130000,
                .max_threads_per_sm = 2048,
                .max_blocks_per_sm = 32,
                .max_registers_per_sm = 65536,
                .max_registers_per_block = 65535,
                .max_smem_per_sm_bytes = 233472,
                .max_smem_per_block_bytes = 49152,
                .max_smem_per_block_optin_bytes = 232448,
                .reserved_smem_per_block_bytes = 1024,
                .warp_size = 32,
                .attribute_count = 5,
                .attributes = sample_values}},
    {.type = KPROF_RECORD_METRICS, .metrics = {"GH100", 9, 3, sample_names, 2, sample_witnesses}},
    {.type = KPROF_RECORD_KERNEL, .kernel = {1, 2, "_Z9vectorAddPKfS0_Pfi", 16, 17, 18, 19, 1024, 90, 91}},
    {.type = KPROF_RECORD_LAUNCH,
     .launch = {.launch = 1ull << 33,
                .kernel = 1,
                .device = 2,
                .context = 3,
                .stream = 1ull << 34,
                .thread = 5,
                .grid = {6, 7, 8},
                .block = {9, 10, 11},
                .cluster = {12, 13, 14},
                .dynamic_smem_bytes = 15,
                .configured_smem_bytes = 16,
                .cooperative = 1,
                .max_blocks_per_sm = 18,
                .max_active_clusters = 19,
                .graph_node = 1ull << 36,
                .stack = 24,
                .stack_origin = KPROF_STACK_OF_CAPTURE,
                .start_unix_ns = 20,
                .profile_ns = -21,
                .range_lead_ns = 22,
                .mode = KPROF_REPLAY_BATCH,
                .pass_count = 23,
                .reason = "because",
                .nvtx = "step/forward/; epoch",
                .value_count = 5,
                .values = sample_values,
                .witness_count = 2,
                .witness_spreads_pct = sample_spreads}},
    {.type = KPROF_RECORD_LAUNCH, .launch = {.mode = KPROF_REPLAY_NONE, .reason = ""}},
    {.type = KPROF_RECORD_SEEN, .seen = {3, 1ull << 35}},
    {.type = KPROF_RECORD_PROGRESS, .progress = {1, 2, 3, 6, 4, 5}},
    {.type = KPROF_RECORD_MESSAGE, .message = {KPROF_LOG_WARNING, KPROF_NO_PERMISSION, "text"}},
    {.type = KPROF_RECORD_CODE, .code = {0xfedcba98, 1ull << 37, "4711-fedcba98.cubin"}},
    {.type = KPROF_RECORD_INSTRUCTIONS,
     .instructions = {.launch = 1ull << 33,
                      .crc = 0xfedcba98,
                      .function = "_Z9vectorAddPKfS0_Pfi",
                      .sampled = 1,
                      .period_cycles = 1ull << 38,
                      .dropped = 1ull << 39,
                      .reason = "",
                      .name_count = 2,
                      .names = sample_instruction_names,
                      .value_count = 6,
                      .values = sample_rows}},
    {.type = KPROF_RECORD_INSTRUCTIONS, .instructions = {.function = "", .reason = "no samples"}},
    {.type = KPROF_RECORD_TIMELINE,
     .timeline = {.launch = 1ull << 33,
                  .pass = 30,
                  .interval_ns = 1ull << 42,
                  .reason = "cut",
                  .name_count = 2,
                  .names = sample_instruction_names,
                  .value_count = 8,
                  .values = sample_times}},
    {.type = KPROF_RECORD_TIMELINE, .timeline = {.reason = "not repeated"}},
    {.type = KPROF_RECORD_FRAME, .frame = {25, 1, "step", "/home/me/train.py", 1ull << 40}},
    {.type = KPROF_RECORD_STACK, .stack = {26, 1, "no Python", 2, sample_spreads}},
    {.type = KPROF_RECORD_TRACE, .trace = {-30}},
    {.type = KPROF_RECORD_NAME, .name = {1, 1, "_Z9vectorAddPKfS0_Pfi"}},
    {.type = KPROF_RECORD_ACTIVITIES, .activities = {2, 5, "\1\0\3\1\2"}},
    {.type = KPROF_RECORD_TRACED, .traced = {1ll << 41, 28, 29, "lost"}},
    {.type = KPROF_RECORD_ARMED, .armed = {27, 28}},
    {.type = KPROF_RECORD_CENSUS,
     .census = {27, 1, 2, {28, 29, 30}, {31, 32, 33}, 34, 1ull << 41, 1ull << 42, 35, 1ull << 43}},
    {.type = KPROF_RECORD_END, .end = {100, 50, 49}},
};

#define SAMPLE_COUNT (sizeof samples / sizeof *samples)

#endif
