/* The machine as the engine sees it: one table of functions, which it is given when it starts. There are two: CUDA and
 * CUPTI, in src/inject/entry.c, and the simulated machine of tests/sim. Tests take a copy of the latter in which single
 * functions fail. Each is a function that is declared in one of the headers included here, which says what it does and
 * who frees what; types that are incomplete there are the implementation's own. */
#pragma once

#include "cupti/activities.h"
#include "cupti/codes.h"
#include "cupti/counting.h"
#include "cupti/device.h"
#include "cupti/flush.h"
#include "cupti/instructions.h"
#include "cupti/marks.h"
#include "cupti/operation.h"
#include "cupti/output.h"
#include "cupti/pc_samples.h"
#include "cupti/pm_sampling.h"
#include "cupti/profiler.h"
#include "cupti/snapshot.h"
#include "cupti/target.h"
#include "cupti/unseen.h"
#include "cupti/writers.h"

/* clang-format off */
#define KPROF_DEVICE_FUNCTIONS(X)                                                                                      \
    X(target_start) X(target_follow) X(target_current_device) X(target_device) X(target_shape) X(target_launch)        \
    X(target_kernel) X(target_note_variables) X(target_graph) X(target_name_graph) X(target_side_effect)               \
    X(target_only_prints) X(target_awaits) X(target_capturing) X(target_launch_captured) X(target_runs_elsewhere)      \
    X(target_load_beside) X(target_function) X(target_sharing) X(target_has_space) X(target_add_free)                  \
    X(target_pool_keeps) X(target_holds_pools) X(target_let_go_of_pools) X(target_stream_blocks)                       \
    X(target_reaches_pageable) X(target_managed_obstacle) X(target_host_obstacle) X(target_set_own)                    \
    X(target_enter_context) X(target_leave_context) X(target_synchronize)                                              \
    X(marks_set) X(marks_look) X(marks_forget)                                                                         \
    X(operation_copy) X(operation_keep_host) X(operation_returned) X(operation_run) X(operation_prepare_counted)       \
    X(operation_run_counted) X(operation_is_saved) X(operation_kernels) X(operation_output_bytes)                      \
    X(transfer_is_hosts) X(transfer_await_start)                                                                       \
    X(operation_sees_host) X(operation_leads_to_host) X(operation_free)                                                \
    X(snapshot_open) X(snapshot_take) X(snapshot_cover) X(snapshot_keep_freed) X(snapshot_leave_host)                  \
    X(snapshot_watch) X(snapshot_stop_following) X(snapshot_has_changed) X(snapshot_follow) X(snapshot_has_followed)   \
    X(snapshot_record_end) X(snapshot_restore_start) X(snapshot_restore_end) X(snapshot_drop) X(snapshot_release)      \
    X(snapshot_held_bytes) X(snapshot_close) X(snapshot_stream)                                                        \
    X(flush_open) X(flush_run) X(flush_behind) X(flush_prepare_to_empty) X(flush_empty) X(flush_shortfall)             \
    X(flush_close)                                                                                                     \
    X(profiler_prepare) X(profiler_preload) X(profiler_open) X(profiler_capacity) X(profiler_begin)                    \
    X(profiler_goes_on) X(profiler_skip_pass) X(profiler_run_out) X(profiler_next_pass) X(profiler_start)              \
    X(profiler_stop) X(profiler_push) X(profiler_pop) X(profiler_decode) X(profiler_image) X(profiler_release)         \
    X(profiler_close)                                                                                                  \
    X(reader_open) X(reader_read) X(reader_close)                                                                      \
    X(writers_devices)                                                                                                 \
    X(output_watch) X(output_seen) X(output_is_seen) X(output_drop)                                                    \
    X(instructions_open) X(instructions_enable) X(instructions_read) X(instructions_disable) X(instructions_close)     \
    X(pc_samples_open) X(pc_samples_arm) X(pc_samples_disarm) X(pc_samples_start) X(pc_samples_stop)                   \
    X(pc_samples_read) X(pc_samples_close)                                                                             \
    X(pm_sampling_open) X(pm_sampling_enable) X(pm_sampling_disable) X(pm_sampling_configure) X(pm_sampling_start)     \
    X(pm_sampling_stop) X(pm_sampling_read) X(pm_sampling_read_launch) X(pm_sampling_close)                            \
    X(codes_keep) X(codes_find) X(codes_drop)                                                                          \
    X(counting_keep)                                                                                                   \
    X(activities_start) X(activities_follow_managed) X(activities_pause) X(activities_flush) X(activities_save)        \
    X(activities_now_ns)                                                                                               \
    X(unseen_await)
/* clang-format on */

#define KPROF_DEVICE_MEMBER(name) __typeof__(&kprof_##name) name;

typedef struct kprof_device_ops {
    KPROF_DEVICE_FUNCTIONS(KPROF_DEVICE_MEMBER)
} kprof_device_ops;
