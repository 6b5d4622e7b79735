/* The records that the injection library writes and the command line reads: plain structs, no ownership of their own.
 * When read, pointers point into the reader's buffer and are valid until the next record. */
#ifndef KPROF_SPOOL_RECORD_H
#define KPROF_SPOOL_RECORD_H

#include "core/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum kprof_record_type {
    KPROF_RECORD_PROCESS = 1, /* first record of every spool */
    KPROF_RECORD_DEVICE,
    KPROF_RECORD_METRICS,
    KPROF_RECORD_KERNEL,
    KPROF_RECORD_LAUNCH,
    KPROF_RECORD_SEEN,
    KPROF_RECORD_PROGRESS,
    KPROF_RECORD_MESSAGE,
    KPROF_RECORD_END,
} kprof_record_type;

typedef struct kprof_process_record {
    int64_t pid, parent_pid;
    int64_t start_unix_ns;
    const char *host, *executable; /* executable: absolute path */
    const char *command_line;      /* arguments joined by single spaces */
} kprof_process_record;

typedef struct kprof_device_record {
    uint32_t device;  /* CUDA ordinal in this process */
    const char *name; /* "NVIDIA H200" */
    const char *chip; /* "GH100" */
    const char *uuid; /* 32 lower-case hex digits */
    uint32_t cc_major, cc_minor;
    uint32_t sm_count;
    uint64_t sm_clock_max_khz, memory_clock_max_khz;
    uint64_t memory_bytes, l2_bytes;
    uint32_t memory_bus_bits;
    uint32_t driver_version, cupti_version; /* as the APIs give them: 13000; CUPTI's API version number */
    uint32_t max_threads_per_sm, max_blocks_per_sm, max_registers_per_sm, max_registers_per_block;
    uint32_t max_smem_per_sm_bytes, max_smem_per_block_bytes, max_smem_per_block_optin_bytes,
        reserved_smem_per_block_bytes;
    uint32_t warp_size;
} kprof_device_record;

/* The names of the values that a launch record carries, per chip, and of the witnesses that tell whether its passes
 * agree.
 */
typedef struct kprof_metrics_record {
    const char *chip;
    uint32_t pass_count;
    uint32_t count;
    const char *const *names; /* [count] */
    uint32_t witness_count;
    const char *const *witnesses; /* [witness_count] */
} kprof_metrics_record;

typedef struct kprof_kernel_record {
    uint32_t kernel; /* numbered from 1 in this process */
    const char *mangled;
    uint32_t registers_per_thread;
    uint32_t static_smem_bytes, local_bytes_per_thread, constant_bytes, max_threads_per_block;
    uint32_t binary_version, ptx_version; /* 90, 90 */
} kprof_kernel_record;

typedef enum kprof_replay_mode {
    KPROF_REPLAY_NONE,      /* not measured; `reason` says why */
    KPROF_REPLAY_MULTIPLEX, /* measured in one of the passes, in its own run; the other passes are of other launches */
    KPROF_REPLAY_BATCH,     /* measured in all passes, replayed with the launches of its batch */
} kprof_replay_mode;

typedef struct kprof_launch_record {
    uint64_t launch; /* position among all kernel launches of this process, from 0: native order */
    uint32_t kernel;
    uint32_t device, context;
    uint64_t stream;                        /* CUPTI's stream id */
    int64_t thread;                         /* kernel thread id of the caller */
    uint32_t grid[3], block[3], cluster[3]; /* cluster 0,0,0: none; grid and block 0,0,0: a graph as a whole */
    uint32_t dynamic_smem_bytes;
    uint32_t configured_smem_bytes; /* carve-out of the SM's L1; 0: not known */
    uint32_t cooperative;           /* 1 for a cooperative launch */
    uint32_t max_blocks_per_sm;     /* cuOccupancyMaxActiveBlocksPerMultiprocessor; 0: not known */
    uint32_t max_active_clusters;   /* cuOccupancyMaxActiveClusters; 0: not a cluster launch or not known */
    uint64_t graph_node;            /* CUPTI's number of the node, of a kernel in a graph; 0: it is in none */
    int64_t start_unix_ns;          /* host clock when the application made the call */
    int64_t profile_ns;             /* host time that profiling this launch took */
    kprof_replay_mode mode;
    uint32_t pass_count;
    const char *reason;                /* why values are missing or another mode was used; "" when all is well */
    uint32_t value_count;              /* 0, or the count of the chip's metrics record */
    const double *values;              /* [value_count], in that order; NaN: not measured */
    uint32_t witness_count;            /* 0, or that of the metrics record */
    const double *witness_spreads_pct; /* [witness_count]: (highest - lowest) / mean over passes; NaN: not measured */
} kprof_launch_record;

/* Is it the launch of a graph as a whole? A kernel has threads; the kernel of a graph has neither registers nor memory.
 */
static inline bool kprof_launch_is_graph(const kprof_launch_record *launch)
{
    return launch->block[0] == 0;
}

/* How often a kernel was launched, profiled or not; the latest record for a kernel holds. */
typedef struct kprof_seen_record {
    uint32_t kernel;
    uint64_t launches;
} kprof_seen_record;

typedef struct kprof_progress_record {
    uint32_t kernel;
    uint64_t launch;
    uint64_t profiled;         /* launches finished so far in this process */
    uint64_t open;             /* chosen launches at least that ran and whose records are still to come */
    uint32_t pass, pass_count; /* pass under way, from 1 */
} kprof_progress_record;

typedef struct kprof_message_record {
    kprof_log_level level;
    kprof_status status; /* KPROF_OK for plain information; else what went wrong */
    const char *text;
} kprof_message_record;

/* The process ended in an orderly way; a spool without it was cut short. */
typedef struct kprof_end_record {
    uint64_t launches, matched, profiled; /* all launches, those the filter took, those measured */
} kprof_end_record;

typedef struct kprof_record {
    kprof_record_type type;
    union {
        kprof_process_record process;
        kprof_device_record device;
        kprof_metrics_record metrics;
        kprof_kernel_record kernel;
        kprof_launch_record launch;
        kprof_seen_record seen;
        kprof_progress_record progress;
        kprof_message_record message;
        kprof_end_record end;
    };
} kprof_record;

#endif
