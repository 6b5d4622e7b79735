/* The activities of a trace, and the fields of each: what ran on the GPU, when, and which call asked for it. A field is
 * one row here. The rows make the structs, the bytes in the spool (spool/activities.c) and the tables of the report
 * (report/store/trace_ingest.c).
 *
 * KPROF_ACTIVITY_MAP lists the kinds as X(number, KIND, kind): the table of the report is trace_<kind>. A list of
 * fields takes a macro F(type, name). All fields are int64_t. Types: NUMBER; OPTIONAL, where -1 is not known, NULL in
 * the report; NAME, the number of a text that was named before, where 0 is none, NULL in the report; STACK, the same of
 * a call stack of the process. Times are in ns since 1970. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Each activity of a GPU has these. `correlation` is CUPTI's number of the call that asked for it. */
#define KPROF_ON_GPU_FIELDS(F)                                                                                         \
    F(OPTIONAL, start_ns)                                                                                              \
    F(OPTIONAL, end_ns)                                                                                                \
    F(NUMBER, device)                                                                                                  \
    F(NUMBER, context)                                                                                                 \
    F(NUMBER, stream)                                                                                                  \
    F(NUMBER, correlation)                                                                                             \
    F(OPTIONAL, graph)                                                                                                 \
    F(OPTIONAL, graph_node)

#define KPROF_KERNEL_ACTIVITY_FIELDS(F)                                                                                \
    KPROF_ON_GPU_FIELDS(F)                                                                                             \
    F(NAME, name) /* mangled */                                                                                        \
    F(NUMBER, grid_x)                                                                                                  \
    F(NUMBER, grid_y)                                                                                                  \
    F(NUMBER, grid_z)                                                                                                  \
    F(NUMBER, block_x)                                                                                                 \
    F(NUMBER, block_y)                                                                                                 \
    F(NUMBER, block_z)                                                                                                 \
    F(NUMBER, registers_per_thread)                                                                                    \
    F(NUMBER, static_smem_bytes)                                                                                       \
    F(NUMBER, dynamic_smem_bytes)                                                                                      \
    F(NUMBER, local_bytes_per_thread)

/* `operation` is "Host-to-Device" and the like; memory is "Pageable", "Pinned", "Device", "Array" or "Managed". */
#define KPROF_COPY_ACTIVITY_FIELDS(F)                                                                                  \
    KPROF_ON_GPU_FIELDS(F)                                                                                             \
    F(NAME, operation)                                                                                                 \
    F(NAME, source_memory)                                                                                             \
    F(NAME, target_memory)                                                                                             \
    F(OPTIONAL, source_device)                                                                                         \
    F(OPTIONAL, target_device)                                                                                         \
    F(NUMBER, bytes)                                                                                                   \
    F(NUMBER, is_async)

#define KPROF_SET_ACTIVITY_FIELDS(F)                                                                                   \
    KPROF_ON_GPU_FIELDS(F)                                                                                             \
    F(NAME, memory)                                                                                                    \
    F(NUMBER, bytes)

/* A call of CUDA; layer is "runtime" or "driver", result that of the call. */
#define KPROF_CALL_ACTIVITY_FIELDS(F)                                                                                  \
    F(NUMBER, start_ns)                                                                                                \
    F(NUMBER, end_ns)                                                                                                  \
    F(NUMBER, thread)                                                                                                  \
    F(NUMBER, correlation)                                                                                             \
    F(NAME, name)                                                                                                      \
    F(NAME, layer)                                                                                                     \
    F(NUMBER, result)

/* `operation` is "allocation" or "release". */
#define KPROF_MEMORY_ACTIVITY_FIELDS(F)                                                                                \
    F(NUMBER, time_ns)                                                                                                 \
    F(NUMBER, device)                                                                                                  \
    F(NUMBER, context)                                                                                                 \
    F(OPTIONAL, stream)                                                                                                \
    F(NUMBER, correlation)                                                                                             \
    F(NAME, operation)                                                                                                 \
    F(NAME, memory)                                                                                                    \
    F(NUMBER, address)                                                                                                 \
    F(NUMBER, bytes)

/* An NVTX range; style is "PushPop", "StartEnd" or, of a mark, which has no end, "Marker". */
#define KPROF_RANGE_ACTIVITY_FIELDS(F)                                                                                 \
    F(NUMBER, start_ns)                                                                                                \
    F(OPTIONAL, end_ns)                                                                                                \
    F(NUMBER, thread)                                                                                                  \
    F(NUMBER, end_thread)                                                                                              \
    F(NAME, name)                                                                                                      \
    F(NAME, domain)                                                                                                    \
    F(NAME, style)

/* Time that CUPTI or the driver took for themselves; or kprof, where launches are measured, too: as it measured in a
 * call of the application's, and as its passes counted what the application launched, without records of that; or
 * between two of the times that a trace is limited to. */
#define KPROF_TRACE_OWN      "kprof: measuring launches"
#define KPROF_TRACE_COUNTED  "kprof: counting, without records"
#define KPROF_TRACE_LEFT_OUT "kprof: left out, as the trace is limited"
#define KPROF_OVERHEAD_ACTIVITY_FIELDS(F)                                                                              \
    F(NUMBER, start_ns)                                                                                                \
    F(NUMBER, end_ns)                                                                                                  \
    F(OPTIONAL, thread)                                                                                                \
    F(OPTIONAL, correlation)                                                                                           \
    F(NAME, name)

/* A CUDA graph as a whole. */
#define KPROF_GRAPH_ACTIVITY_FIELDS(F)                                                                                 \
    F(OPTIONAL, start_ns)                                                                                              \
    F(OPTIONAL, end_ns)                                                                                                \
    F(NUMBER, device)                                                                                                  \
    F(NUMBER, context)                                                                                                 \
    F(NUMBER, stream)                                                                                                  \
    F(NUMBER, correlation)                                                                                             \
    F(NUMBER, graph)

/* A number that somebody else has given to the calls of a piece of work. */
#define KPROF_EXTERNAL_ACTIVITY_FIELDS(F)                                                                              \
    F(NUMBER, correlation)                                                                                             \
    F(NUMBER, external_kind)                                                                                           \
    F(NUMBER, external_id)

/* A counter's average over the whole GPU from the start to the end, times a million, from kprof trace --pm-sampling;
 * name is the metric. */
#define KPROF_SAMPLE_ACTIVITY_FIELDS(F)                                                                                \
    F(NUMBER, start_ns)                                                                                                \
    F(NUMBER, end_ns)                                                                                                  \
    F(NUMBER, device)                                                                                                  \
    F(NAME, name)                                                                                                      \
    F(OPTIONAL, value_millionths)

/* Memory that the host and GPUs share: a part of it moved (operation "Host-to-Device", "Device-to-Host" or
 * "Device-to-Device"), or a page was missing ("CPU page fault", "GPU page fault") or was wanted by several
 * ("thrashing", "throttling", "remote map"). Bytes are those of the part, faults those of a GPU for one page, and
 * instruction is the address of the one of the host that wanted the page. Devices: -1 is the host, or not known. */
#define KPROF_MANAGED_ACTIVITY_FIELDS(F)                                                                               \
    F(NUMBER, start_ns)                                                                                                \
    F(OPTIONAL, end_ns)                                                                                                \
    F(NAME, operation)                                                                                                 \
    F(NUMBER, address)                                                                                                 \
    F(OPTIONAL, bytes)                                                                                                 \
    F(OPTIONAL, faults)                                                                                                \
    F(OPTIONAL, instruction)                                                                                           \
    F(OPTIONAL, source_device)                                                                                         \
    F(OPTIONAL, target_device)

/* The call stack of a call, with --call-stack. */
#define KPROF_CALLER_ACTIVITY_FIELDS(F)                                                                                \
    F(NUMBER, correlation)                                                                                             \
    F(STACK, stack)

#define KPROF_ACTIVITY_MAP(X)                                                                                          \
    X(1, KERNEL, kernel)                                                                                               \
    X(2, COPY, copy)                                                                                                   \
    X(3, SET, set)                                                                                                     \
    X(4, CALL, call)                                                                                                   \
    X(5, MEMORY, memory)                                                                                               \
    X(6, RANGE, range)                                                                                                 \
    X(7, OVERHEAD, overhead)                                                                                           \
    X(8, GRAPH, graph)                                                                                                 \
    X(9, EXTERNAL, external)                                                                                           \
    X(10, SAMPLE, sample)                                                                                              \
    X(11, MANAGED, managed)                                                                                            \
    X(12, CALLER, caller)

#define KPROF_ACTIVITY_MEMBER(type, name) int64_t name;
#define KPROF_ACTIVITY_STRUCT(number, KIND, kind)                                                                      \
    typedef struct kprof_##kind##_activity {                                                                           \
        KPROF_##KIND##_ACTIVITY_FIELDS(KPROF_ACTIVITY_MEMBER)                                                          \
    } kprof_##kind##_activity;
KPROF_ACTIVITY_MAP(KPROF_ACTIVITY_STRUCT)

#define KPROF_ACTIVITY_NUMBER(number, KIND, kind) KPROF_ACTIVITY_##KIND = (number),
typedef enum kprof_activity_kind {
    KPROF_ACTIVITY_MAP(KPROF_ACTIVITY_NUMBER) KPROF_ACTIVITY_KINDS /* one more than the last */
} kprof_activity_kind;

#define KPROF_ACTIVITY_OF_KIND(number, KIND, kind) kprof_##kind##_activity kind;
#define KPROF_ACTIVITY_FIELDS_MAX                  19
typedef struct kprof_activity {
    kprof_activity_kind kind;
    union {
        KPROF_ACTIVITY_MAP(KPROF_ACTIVITY_OF_KIND)
        int64_t fields[KPROF_ACTIVITY_FIELDS_MAX];
    };
} kprof_activity;
_Static_assert(sizeof(kprof_kernel_activity) == KPROF_ACTIVITY_FIELDS_MAX * sizeof(int64_t),
               "a kernel has the most fields");

/* How many fields a kind has; 0: there is no such kind. */
static inline size_t kprof_activity_field_count(unsigned kind)
{
#define KPROF_ACTIVITY_SIZE(number, KIND, kind) [number] = sizeof(kprof_##kind##_activity) / sizeof(int64_t),
    static const size_t counts[KPROF_ACTIVITY_KINDS] = {KPROF_ACTIVITY_MAP(KPROF_ACTIVITY_SIZE)};
    return kind < KPROF_ACTIVITY_KINDS ? counts[kind] : 0;
}
