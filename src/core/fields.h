/* The fields of the records that the injection library writes to the spool and the command line stores in the report.
 * A field is one row here, and nowhere else. The rows make the structs (spool/record.h), the bytes of the spool
 * (spool/format.c), and the columns of the report with the code that reads them (report/store/rows.c). They also make
 * the metrics that need no counters (metricset/launch_table.c, report/store/launch_metrics.c) and the driver's queries
 * (src/cupti).
 *
 * A list takes three macros:
 *   FIELD(kind, member, column, since, attribute, metric...): a field of the spool's record and of the report's table.
 *     `since` is the first version of the report's schema with the column, `attribute` the end of the driver's name.
 *   SPOOL(kind, member, metric...): a field of the spool's record only.
 *   REPORT(kind, column, since): a column that the command line fills in.
 *
 * Kinds: U32, U64, I64, TEXT, SHAPE (three U32, for x, y and z), MODE, LEVEL and STATUS (enums); in the report only,
 * UNIQUE (a TEXT), REF (the row of another table, whose name the column begins with), FLAG and OPTIONAL (an I64; -1:
 * not known, which is NULL in the report). NAMES, WITNESSES, VALUES, SPREADS and BYTES are arrays; the row before each
 * is its U32 count.
 *
 * Metrics: "VALUE, name, unit, help" is the field's number and KNOWN one that is not known where it is 0. A graph as a
 * whole has neither; it has PLACE, and what its device has. "DIMENSIONS, name, unit, before, after" makes three of a
 * SHAPE, with x, y or z in the help. A launch has a metric ON_REQUEST where somebody asks for it, and
 * a range one that is OF_RANGES. */
#pragma once

#include "core/attributes.h"

/* A field that is added or removed makes another version of both, and one of SPOOL of the first. */
#define KPROF_SPOOL_VERSION  18
#define KPROF_SCHEMA_VERSION 13

/* The one metric of a launch that is measured. */
#define KPROF_RANGE_LEAD "launch__range_lead_time"
/* The one of a range that is measured as one. */
#define KPROF_RANGE_LAUNCHES "launch__range_launches"

#define KPROF_PROCESS_FIELDS(FIELD, SPOOL, REPORT)                                                                     \
    FIELD(I64, pid, pid, 1, NONE, NONE)                                                                                \
    FIELD(I64, parent_pid, parent_pid, 1, NONE, NONE)                                                                  \
    FIELD(I64, start_unix_ns, start_unix_ns, 1, NONE, NONE)                                                            \
    FIELD(TEXT, host, host, 1, NONE, NONE)                                                                             \
    REPORT(TEXT, name, 1)                                                                                              \
    FIELD(TEXT, executable, executable, 1, NONE, NONE)     /* absolute path */                                         \
    FIELD(TEXT, command_line, command_line, 1, NONE, NONE) /* words as a shell takes them */                           \
    REPORT(OPTIONAL, wait_status, 1)                                                                                   \
    REPORT(OPTIONAL, launches, 1)                                                                                      \
    REPORT(OPTIONAL, matched, 1)                                                                                       \
    REPORT(OPTIONAL, profiled, 1)                                                                                      \
    REPORT(FLAG, ended, 1)

#define KPROF_DEVICE_FIELDS(FIELD, SPOOL, REPORT)                                                                      \
    FIELD(U32, device, ordinal, 1, NONE, NONE) /* CUDA's number in this process */                                     \
    FIELD(TEXT, name, name, 1, NONE, NONE)     /* "NVIDIA H200" */                                                     \
    FIELD(TEXT, chip, chip, 1, NONE, NONE)     /* "GH100" */                                                           \
    FIELD(TEXT, uuid, uuid, 1, NONE, NONE)     /* 32 lower-case hex digits */                                          \
    FIELD(U32, cc_major, cc_major, 1, COMPUTE_CAPABILITY_MAJOR, KNOWN, "device__attribute_compute_capability_major",   \
          "", "compute capability, major number")                                                                      \
    FIELD(U32, cc_minor, cc_minor, 1, COMPUTE_CAPABILITY_MINOR, VALUE, "device__attribute_compute_capability_minor",   \
          "", "compute capability, minor number")                                                                      \
    FIELD(U32, sm_count, sm_count, 1, MULTIPROCESSOR_COUNT, KNOWN, "device__attribute_multiprocessor_count", "",       \
          "number of SMs")                                                                                             \
    FIELD(U64, sm_clock_max_khz, sm_clock_max_khz, 1, CLOCK_RATE, KNOWN, "device__attribute_clock_rate", "khz",        \
          "highest SM clock")                                                                                          \
    FIELD(U64, memory_clock_max_khz, memory_clock_max_khz, 1, MEMORY_CLOCK_RATE, KNOWN,                                \
          "device__attribute_memory_clock_rate", "khz", "highest memory clock")                                        \
    FIELD(U64, memory_bytes, memory_bytes, 1, NONE, KNOWN, "device__attribute_total_memory", "byte", "device memory")  \
    FIELD(U64, l2_bytes, l2_bytes, 1, L2_CACHE_SIZE, KNOWN, "device__attribute_l2_cache_size", "byte",                 \
          "size of the L2 cache")                                                                                      \
    FIELD(U32, memory_bus_bits, memory_bus_bits, 1, GLOBAL_MEMORY_BUS_WIDTH, KNOWN,                                    \
          "device__attribute_global_memory_bus_width", "bit", "width of the memory bus")                               \
    FIELD(U32, driver_version, driver_version, 1, NONE, NONE) /* 13000 for 13.0 */                                     \
    FIELD(U32, cupti_version, cupti_version, 1, NONE, NONE)   /* CUPTI's API version number */                         \
    FIELD(U32, max_threads_per_sm, max_threads_per_sm, 1, MAX_THREADS_PER_MULTIPROCESSOR, KNOWN,                       \
          "device__attribute_max_threads_per_multiprocessor", "thread", "most threads that can be resident on an SM")  \
    FIELD(U32, max_blocks_per_sm, max_blocks_per_sm, 1, MAX_BLOCKS_PER_MULTIPROCESSOR, KNOWN,                          \
          "device__attribute_max_blocks_per_multiprocessor", "block", "most blocks that can be resident on an SM")     \
    FIELD(U32, max_registers_per_sm, max_registers_per_sm, 1, MAX_REGISTERS_PER_MULTIPROCESSOR, KNOWN,                 \
          "device__attribute_max_registers_per_multiprocessor", "register", "32-bit registers of an SM")               \
    FIELD(U32, max_registers_per_block, max_registers_per_block, 1, MAX_REGISTERS_PER_BLOCK, KNOWN,                    \
          "device__attribute_max_registers_per_block", "register", "most 32-bit registers that a block can have")      \
    FIELD(U32, max_smem_per_sm_bytes, max_smem_per_sm_bytes, 1, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, KNOWN,           \
          "device__attribute_max_shared_memory_per_multiprocessor", "byte", "shared memory of an SM")                  \
    FIELD(U32, max_smem_per_block_bytes, max_smem_per_block_bytes, 1, MAX_SHARED_MEMORY_PER_BLOCK, KNOWN,              \
          "device__attribute_max_shared_memory_per_block", "byte/block",                                               \
          "most shared memory of a block without opting in")                                                           \
    FIELD(U32, max_smem_per_block_optin_bytes, max_smem_per_block_optin_bytes, 1, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,   \
          KNOWN, "device__attribute_max_shared_memory_per_block_optin", "byte/block",                                  \
          "most shared memory of a block that opts in")                                                                \
    FIELD(U32, reserved_smem_per_block_bytes, reserved_smem_per_block_bytes, 1, RESERVED_SHARED_MEMORY_PER_BLOCK,      \
          VALUE, "device__attribute_reserved_shared_memory_per_block", "byte/block",                                   \
          "shared memory of a block that the system keeps")                                                            \
    FIELD(U32, warp_size, warp_size, 1, WARP_SIZE, KNOWN, "device__attribute_warp_size", "thread",                     \
          "threads in a warp")                                                                                         \
    SPOOL(U32, attribute_count, NONE) /* 0, or KPROF_DEVICE_ATTRIBUTE_COUNT */                                         \
    SPOOL(VALUES, attributes, NONE)   /* in the order of core/attributes.h; NaN: the driver does not tell */

/* A name with its attributes: modules may hold kernels of one name but different code. */
#define KPROF_KERNEL_FIELDS(FIELD, SPOOL, REPORT)                                                                      \
    SPOOL(U32, kernel, NONE)          /* numbered from 1 in this process */                                            \
    SPOOL(U32, device_launches, NONE) /* 0: not known, 1: its code launches no kernel, 2: it launches kernels */       \
    SPOOL(U32, barriers, NONE)        /* that a block takes, plus 1; 0: not known */                                   \
    FIELD(TEXT, mangled, mangled, 1, NONE, NONE)                                                                       \
    REPORT(TEXT, demangled, 1)                                                                                         \
    REPORT(TEXT, function, 1) /* without namespaces, template arguments and parameters */                              \
    FIELD(U32, registers_per_thread, registers_per_thread_compiled, 1, NUM_REGS, KNOWN,                                \
          "launch__registers_per_thread_compiled", "register/thread",                                                  \
          "32-bit registers of a thread as the compiler counted them")                                                 \
    FIELD(U32, static_smem_bytes, static_smem_bytes, 1, SHARED_SIZE_BYTES, VALUE,                                      \
          "launch__shared_mem_per_block_static", "byte/block", "shared memory of a block declared in the kernel")      \
    FIELD(U32, local_bytes_per_thread, local_bytes_per_thread, 1, LOCAL_SIZE_BYTES, VALUE,                             \
          "launch__local_mem_per_thread", "byte/thread",                                                               \
          "local memory of a thread: spilled registers and its own arrays")                                            \
    FIELD(U32, constant_bytes, constant_bytes, 1, CONST_SIZE_BYTES, VALUE, "launch__constant_mem_size", "byte",        \
          "constant memory that the kernel's own variables take")                                                      \
    FIELD(U32, max_threads_per_block, max_threads_per_block, 1, MAX_THREADS_PER_BLOCK, KNOWN,                          \
          "launch__max_threads_per_block", "thread/block",                                                             \
          "most threads per block that the kernel can be launched with")                                               \
    FIELD(U32, binary_version, binary_version, 1, BINARY_VERSION, KNOWN, "launch__binary_version", "",                 \
          "architecture that the kernel's machine code was made for (90 is 9.0)")                                      \
    FIELD(U32, ptx_version, ptx_version, 1, PTX_VERSION, KNOWN, "launch__ptx_version", "",                             \
          "architecture of the PTX that the kernel was made from (90 is 9.0)")

#define KPROF_LAUNCH_FIELDS(FIELD, SPOOL, REPORT)                                                                      \
    REPORT(REF, process_id, 1)                                                                                         \
    REPORT(REF, kernel_id, 1)                                                                                          \
    REPORT(REF, device_id, 1)                                                                                          \
    FIELD(U64, launch, position, 1, NONE, NONE) /* among all launches of this process, from 0: native order */         \
    SPOOL(U32, kernel, NONE)                                                                                           \
    SPOOL(U32, device, PLACE, "launch__device_id", "", "CUDA's number of the device in the process")                   \
    FIELD(U32, context, context, 1, NONE, PLACE, "launch__context_id", "", "CUPTI's number of the context")            \
    FIELD(U64, stream, stream, 1, NONE, PLACE, "launch__stream_id", "", "CUPTI's number of the stream")                \
    FIELD(I64, thread, thread, 1, NONE, NONE) /* the kernel's id of the calling thread */                              \
    FIELD(SHAPE, grid, grid, 1, NONE, DIMENSIONS, "launch__grid_dim", "", "blocks of the grid in ",                    \
          "") /* 0,0,0: a graph as a whole, as in block */                                                             \
    FIELD(SHAPE, block, block, 1, NONE, DIMENSIONS, "launch__block_dim", "", "threads of a block in ", "")             \
    FIELD(SHAPE, cluster, cluster, 1, NONE, DIMENSIONS, "launch__cluster_dim", "", "blocks of a cluster in ",          \
          "; 0: launched without clusters")                                                                            \
    FIELD(U32, dynamic_smem_bytes, dynamic_smem_bytes, 1, NONE, VALUE, "launch__shared_mem_per_block_dynamic",         \
          "byte/block", "shared memory of a block asked for by the launch")                                            \
    FIELD(U32, configured_smem_bytes, configured_smem_bytes, 1, NONE, KNOWN, "launch__shared_mem_config_size", "byte", \
          "shared memory that the SM was configured for") /* of its L1 */                                              \
    FIELD(U32, cooperative, cooperative, 1, NONE, VALUE, "launch__cooperative", "", "1 for a cooperative launch")      \
    FIELD(U32, max_blocks_per_sm, max_blocks_per_sm, 1, NONE, KNOWN, "launch__occupancy_blocks_per_multiprocessor",    \
          "block", "blocks resident on an SM as the driver computes them")                                             \
    FIELD(U32, max_active_clusters, max_active_clusters, 1, NONE, NONE) /* 0: not a cluster launch, or not known */    \
    SPOOL(U64, graph_node, NONE)   /* CUPTI's number of a kernel's node; 0: it is in no graph. A table of its own */   \
    SPOOL(TEXT, nvtx, NONE)        /* open NVTX ranges, as core/nvtx.h writes them. A table of its own */              \
    SPOOL(U32, stack, NONE)        /* of the stack record; 0: none. Tables of its own, as the next */                  \
    SPOOL(U32, stack_origin, NONE) /* the call whose stack it is: KPROF_STACK_OF_* */                                  \
    FIELD(I64, start_unix_ns, start_unix_ns, 1, NONE, NONE) /* when the application made the call */                   \
    FIELD(I64, profile_ns, profile_ns, 1, NONE, NONE)       /* host time that profiling this launch took */            \
    SPOOL(U64, range_lead_ns, VALUE, KPROF_RANGE_LEAD, "ns",                                                           \
          "time of the range before its kernel, which the values of elapsed time leave out") /* 0: nothing left out */ \
    SPOOL(U64, range_launches, OF_RANGES, KPROF_RANGE_LAUNCHES, "",                                                    \
          "launches of the process while the range went on, each graph being one") /* 0: it is no range */             \
    SPOOL(U64, device_memory_bytes, NONE)                                          /* of all devices; 0: not known */  \
    SPOOL(MODE, mode, NONE)                                                                                            \
    REPORT(TEXT, replay_mode, 1)                                                                                       \
    FIELD(U32, pass_count, passes, 1, NONE, NONE)                                                                      \
    FIELD(TEXT, reason, reason, 1, NONE, NONE) /* why values are missing or another mode was used; "": all is well */  \
    REPORT(I64, measured, 1)                                                                                           \
    SPOOL(U32, value_count, NONE)             /* 0, or the count of the chip's metrics record */                       \
    SPOOL(VALUES, values, NONE)               /* in that order; NaN: not measured */                                   \
    SPOOL(U32, witness_count, NONE)           /* 0, or that of the metrics record */                                   \
    SPOOL(SPREADS, witness_spreads_pct, NONE) /* (highest - lowest) / mean over passes; NaN: not measured */

/* The names of the values that a launch record carries, per chip, and of the witnesses of whether its passes agree. */
#define KPROF_METRICS_FIELDS(FIELD, SPOOL, REPORT)                                                                     \
    SPOOL(TEXT, chip, NONE)                                                                                            \
    SPOOL(U32, pass_count, NONE)                                                                                       \
    SPOOL(U32, count, NONE)                                                                                            \
    SPOOL(NAMES, names, NONE)                                                                                          \
    SPOOL(U32, witness_count, NONE)                                                                                    \
    SPOOL(WITNESSES, witnesses, NONE)

/* How often a kernel was launched, profiled or not; the latest record for a kernel holds. */
#define KPROF_SEEN_FIELDS(FIELD, SPOOL, REPORT)                                                                        \
    SPOOL(U32, kernel, NONE)                                                                                           \
    SPOOL(U64, launches, NONE)

#define KPROF_PROGRESS_FIELDS(FIELD, SPOOL, REPORT)                                                                    \
    SPOOL(U32, kernel, NONE)                                                                                           \
    SPOOL(U64, launch, NONE)                                                                                           \
    SPOOL(U64, profiled, NONE)   /* launches finished so far in this process */                                        \
    SPOOL(U64, open, NONE)       /* chosen launches at least that ran and whose records are still to come */           \
    SPOOL(U32, pass, NONE)       /* under way, from 1 */                                                               \
    SPOOL(U32, pass_count, NONE) /* 0: all launches that --launch-count asks for are reported */

#define KPROF_MESSAGE_FIELDS(FIELD, SPOOL, REPORT)                                                                     \
    REPORT(REF, process_id, 1)                                                                                         \
    SPOOL(LEVEL, level, NONE)                                                                                          \
    REPORT(TEXT, level, 1)                                                                                             \
    SPOOL(STATUS, status, NONE) /* KPROF_OK for plain information; else what went wrong */                             \
    REPORT(TEXT, status, 1)                                                                                            \
    FIELD(TEXT, text, text, 1, NONE, NONE)

/* The process ended in an orderly way; a spool without it was cut short. */
#define KPROF_END_FIELDS(FIELD, SPOOL, REPORT)                                                                         \
    SPOOL(U64, launches, NONE) /* all launches */                                                                      \
    SPOOL(U64, matched, NONE)  /* those that the filter took */                                                        \
    SPOOL(U64, profiled, NONE) /* those measured */

/* A cubin whose functions were measured by instruction, before the first record that names it. */
#define KPROF_CODE_FIELDS(FIELD, SPOOL, REPORT)                                                                        \
    SPOOL(U64, crc, NONE) /* CUPTI's checksum of it */                                                                 \
    SPOOL(U64, bytes, NONE)                                                                                            \
    SPOOL(TEXT, file, NONE) /* its name in the session directory; "": it could not be written there */

/* Counters or samples of the instructions of one function in a launch, whose record comes before. A launch
 * that was measured so has a record for each function and kind; one without a function says why there is nothing. */
#define KPROF_INSTRUCTIONS_FIELDS(FIELD, SPOOL, REPORT)                                                                \
    SPOOL(U64, launch, NONE)                                                                                           \
    SPOOL(U64, crc, NONE)           /* of the code record; 0: not known */                                             \
    SPOOL(TEXT, function, NONE)     /* mangled */                                                                      \
    SPOOL(U32, sampled, NONE)       /* 1: samples, 0: counters */                                                      \
    SPOOL(U64, period_cycles, NONE) /* of samples: cycles of an SM between two */                                      \
    SPOOL(U64, dropped, NONE)       /* samples that were lost */                                                       \
    SPOOL(TEXT, reason, NONE)       /* why there is nothing; "": all is well */                                        \
    SPOOL(U32, name_count, NONE)                                                                                       \
    SPOOL(NAMES, names, NONE)                                                                                          \
    SPOOL(U32, value_count, NONE)                                                                                      \
    SPOOL(VALUES, values, NONE) /* rows of an offset in bytes and a value for each name; rows of zeros are left out */

/* The samples of one pass over the time of a launch, whose record comes before; without names, why there are none. */
#define KPROF_TIMELINE_FIELDS(FIELD, SPOOL, REPORT)                                                                    \
    SPOOL(U64, launch, NONE)                                                                                           \
    SPOOL(U32, pass, NONE)        /* from 0 */                                                                         \
    SPOOL(U64, interval_ns, NONE) /* between samples, as asked for */                                                  \
    SPOOL(TEXT, reason, NONE)     /* why samples are missing; "": all is well */                                       \
    SPOOL(U32, name_count, NONE)                                                                                       \
    SPOOL(NAMES, names, NONE) /* the first one tells whether the GPU is at work */                                     \
    SPOOL(U32, value_count, NONE)                                                                                      \
    SPOOL(VALUES, values,                                                                                              \
          NONE) /* rows: begin and duration in ns, from the first sample on, and a value for each name */

/* A frame of call stacks, before the first stack that has it. */
#define KPROF_FRAME_FIELDS(FIELD, SPOOL, REPORT)                                                                       \
    SPOOL(U32, frame, NONE)     /* numbered from 1 in this process */                                                  \
    SPOOL(U32, is_native, NONE) /* 1: native code, 0: Python */                                                        \
    SPOOL(TEXT, function, NONE) /* "": not known */                                                                    \
    SPOOL(TEXT, file, NONE)     /* of native code the module; "": not known */                                         \
    SPOOL(U64, place, NONE)     /* the line, 0: not known; of native code the offset in the module */

/* A call stack, before the first launch that has it. */
#define KPROF_STACK_FIELDS(FIELD, SPOOL, REPORT)                                                                       \
    SPOOL(U32, stack, NONE)   /* numbered from 1 in this process */                                                    \
    SPOOL(U32, is_cut, NONE)  /* 1: there are more frames outside of these */                                          \
    SPOOL(TEXT, reason, NONE) /* why there are no frames of Python; "": all is well */                                 \
    SPOOL(U32, frame_count, NONE)                                                                                      \
    SPOOL(VALUES, frames, NONE) /* their numbers: Python's, the innermost first, and the native ones likewise */

/* A trace begins in this process. */
#define KPROF_TRACE_FIELDS(FIELD, SPOOL, REPORT) SPOOL(I64, start_unix_ns, NONE)

/* A text that activities name. */
#define KPROF_NAME_FIELDS(FIELD, SPOOL, REPORT)                                                                        \
    SPOOL(U32, name, NONE)    /* numbered from 1 in this process */                                                    \
    SPOOL(U32, mangled, NONE) /* 1: the mangled name of a kernel */                                                    \
    SPOOL(TEXT, text, NONE)

/* Activities, as spool/activities.h packs them, behind the names that they have. */
#define KPROF_ACTIVITIES_FIELDS(FIELD, SPOOL, REPORT)                                                                  \
    SPOOL(U32, count, NONE) /* of activities */                                                                        \
    SPOOL(U32, byte_count, NONE)                                                                                       \
    SPOOL(BYTES, bytes, NONE)

/* How the trace stands; the latest record holds. */
#define KPROF_TRACED_FIELDS(FIELD, SPOOL, REPORT)                                                                      \
    SPOOL(I64, end_unix_ns, NONE) /* -1: it goes on */                                                                 \
    SPOOL(U64, dropped, NONE)     /* activities that were lost */                                                      \
    SPOOL(U64, unknown, NONE)     /* records of CUPTI that kprof does not read */                                      \
    SPOOL(TEXT, reason, NONE)     /* why some may be missing; "": all is well */

/* kprof ctl has armed the process: launches after this were asked for with a plan, the number of its configuration. */
#define KPROF_ARMED_FIELDS(FIELD, SPOOL, REPORT)                                                                       \
    SPOOL(U32, turn, NONE) /* of kprof ctl, from 1; 0: the process was never armed so */                               \
    SPOOL(U32, plan, NONE) /* 0: the run's own */

/* With --census: launches of a kernel with the same grid, block and dynamic shared memory on a device, and how long
 * they ran. The latest record for a row holds. */
#define KPROF_CENSUS_FIELDS(FIELD, SPOOL, REPORT)                                                                      \
    REPORT(REF, process_id, 9)                                                                                         \
    REPORT(REF, kernel_id, 9)                                                                                          \
    REPORT(REF, device_id, 9)                                                                                          \
    SPOOL(U32, row, NONE) /* numbered from 1 in this process */                                                        \
    SPOOL(U32, kernel, NONE)                                                                                           \
    SPOOL(U32, device, NONE)                                                                                           \
    FIELD(SHAPE, grid, grid, 9, NONE, NONE) /* 0,0,0: of further shapes, as in block */                                \
    FIELD(SHAPE, block, block, 9, NONE, NONE)                                                                          \
    FIELD(U32, dynamic_smem_bytes, dynamic_smem_bytes, 9, NONE, NONE)                                                  \
    FIELD(U64, launches, launches, 9, NONE, NONE) /* that were timed */                                                \
    FIELD(U64, total_ns, total_ns, 9, NONE, NONE)                                                                      \
    FIELD(U64, shortest_ns, shortest_ns, 9, NONE, NONE)                                                                \
    FIELD(U64, longest_ns, longest_ns, 9, NONE, NONE)

/* The records of the spool and their types. The first of every spool is that of the process. */
#define KPROF_RECORD_MAP(X)                                                                                            \
    X(1, PROCESS, process)                                                                                             \
    X(2, DEVICE, device)                                                                                               \
    X(3, METRICS, metrics)                                                                                             \
    X(4, KERNEL, kernel)                                                                                               \
    X(5, LAUNCH, launch)                                                                                               \
    X(6, SEEN, seen)                                                                                                   \
    X(7, PROGRESS, progress)                                                                                           \
    X(8, MESSAGE, message)                                                                                             \
    X(9, END, end)                                                                                                     \
    X(10, CODE, code)                                                                                                  \
    X(11, INSTRUCTIONS, instructions)                                                                                  \
    X(12, FRAME, frame)                                                                                                \
    X(13, STACK, stack)                                                                                                \
    X(14, TRACE, trace)                                                                                                \
    X(15, NAME, name)                                                                                                  \
    X(16, ACTIVITIES, activities)                                                                                      \
    X(17, TRACED, traced)                                                                                              \
    X(18, ARMED, armed)                                                                                                \
    X(19, CENSUS, census)                                                                                              \
    X(20, TIMELINE, timeline)

/* Tables of the report that no record is in. */
#define KPROF_METRIC_FIELDS(FIELD, SPOOL, REPORT)                                                                      \
    REPORT(UNIQUE, name, 1)                                                                                            \
    REPORT(TEXT, unit, 1)                                                                                              \
    REPORT(TEXT, description, 1)                                                                                       \
    REPORT(TEXT, kind, 1) /* "hardware", "launch", "derived", "witness" or "instruction" */

/* Metrics that were asked for but not collected, to keep within --max-passes or --budget. */
#define KPROF_LEFT_OUT_FIELDS(FIELD, SPOOL, REPORT)                                                                    \
    REPORT(TEXT, chip, 2)                                                                                              \
    REPORT(TEXT, name, 2)

/* The metric of a row, by a macro of its first word. */
#define KPROF_METRIC_OF(way, ...) way(__VA_ARGS__)

/* Metrics that are computed from several fields: the formula, in names of report/store/launch_metrics.c, the metric. */
#define KPROF_COMPUTED_METRICS(X)                                                                                      \
    X(known(device->max_threads_per_sm) / known(device->warp_size), PLACE,                                             \
      "device__attribute_max_warps_per_multiprocessor", "warp", "most warps that can be resident on an SM")            \
    X(known(device->sm_count), PLACE, "launch__sm_count", "SM", "SMs of the device")                                   \
    X(product(launch->block), VALUE, "launch__block_size", "", "threads of a block")                                   \
    X(product(launch->cluster) > 0 ? known(launch->max_active_clusters) : 0, VALUE, "launch__cluster_max_active",      \
      "cluster", "clusters of this shape that fit on the device at once")                                              \
    X(product(launch->cluster), VALUE, "launch__cluster_size", "",                                                     \
      "blocks of a cluster; 0: launched without clusters")                                                             \
    X(product(launch->grid), VALUE, "launch__grid_size", "", "blocks of the grid")                                     \
    X(occupancy.limit_barriers, VALUE, "launch__occupancy_limit_barriers", "block",                                    \
      "blocks resident on an SM as its barriers allow; not known where kprof has not seen the kernel's code")          \
    X(occupancy.limit_blocks, VALUE, "launch__occupancy_limit_blocks", "block",                                        \
      "blocks resident on an SM as its number of block slots allows")                                                  \
    X(occupancy.limit_registers, VALUE, "launch__occupancy_limit_registers", "block",                                  \
      "blocks resident on an SM as its registers allow")                                                               \
    X(occupancy.limit_smem, VALUE, "launch__occupancy_limit_shared_mem", "block",                                      \
      "blocks resident on an SM as its shared memory allows")                                                          \
    X(occupancy.limit_warps, VALUE, "launch__occupancy_limit_warps", "block",                                          \
      "blocks resident on an SM as its number of warp slots allows")                                                   \
    X(registers_per_thread(facts), KNOWN, "launch__registers_per_thread", "register/thread",                           \
      "32-bit registers that the GPU gives a thread: those that the compiler counted, but 16 at least on compute "     \
      "capability 9.0")                                                                                                \
    X(facts->kernel->device_launches ? facts->kernel->device_launches - 1.0 : NAN, ON_REQUEST, "launch__uses_cdp", "", \
      "1 for a kernel whose code launches kernels, 0 for one whose code does not")                                     \
    X(known((double)launch->device_memory_bytes), ON_REQUEST, "launch__device_memory_allocated", "byte",               \
      "memory of devices that the process has allocated, or has in variables of its modules")                          \
    X(occupancy.registers_per_thread_allocated, KNOWN, "launch__registers_per_thread_allocated", "register/thread",    \
      "32-bit registers that an SM sets aside for a thread: those that it is given, rounded up for each warp")         \
    X(occupancy.smem_per_block_bytes, VALUE, "launch__shared_mem_per_block", "byte/block",                             \
      "shared memory of a block: static, dynamic and the system's")                                                    \
    X(occupancy.smem_per_block_allocated_bytes, VALUE, "launch__shared_mem_per_block_allocated", "byte/block",         \
      "shared memory of a block with the rounding of the allocation")                                                  \
    X(device->reserved_smem_per_block_bytes, VALUE, "launch__shared_mem_per_block_driver", "byte/block",               \
      "shared memory of a block that the system keeps")                                                                \
    X(product(launch->grid) * product(launch->block), VALUE, "launch__thread_count", "thread",                         \
      "threads of the whole grid")                                                                                     \
    X(occupancy.warps_per_block, VALUE, "launch__warps_per_block", "warp/block", "warps of a block")                   \
    X(occupancy.waves, VALUE, "launch__waves_per_multiprocessor", "",                                                  \
      "times that the grid fills the device: blocks over SMs and resident blocks")                                     \
    X(occupancy.warps_per_sm, VALUE, "sm__maximum_warps_avg_per_active_cycle", "warp",                                 \
      "theoretical occupancy: warps resident on an SM")                                                                \
    X(occupancy.warps_pct, VALUE, "sm__maximum_warps_per_active_cycle_pct", "%",                                       \
      "theoretical occupancy: warps resident on an SM of those possible")                                              \
    X(occupancy.warps_per_sm / 4, ON_REQUEST, "smsp__maximum_warps_avg_per_active_cycle", "warp",                      \
      "theoretical occupancy: warps resident for each of the four schedulers of an SM")
