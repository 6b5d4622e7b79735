/* The records that the injection library writes and the command line reads, as core/fields.h lists their members: plain
 * structs that own nothing. When read, pointers point into the reader's buffer, until the next record. */
#pragma once

#include "core/fields.h"
#include "core/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A note of a launch that was measured in a range which the host pushes. Figures: docs/data/range-gap.csv. */
#define KPROF_BEGINS_EARLY                                                                                             \
    "the range begins before the kernel, by 2 to 18 us on an H200, so the time is too long and shares of elapsed "     \
    "time are too small"

/* The same of a range that was repeated as a whole. */
#define KPROF_TIME_OF_REPLAY                                                                                           \
    "the time is that of the repeated work: it begins 2 to 18 us before the first kernel on an H200, and has no "      \
    "pauses of the host between launches"

typedef enum kprof_replay_mode {
    KPROF_REPLAY_NONE,      /* not measured; `reason` says why */
    KPROF_REPLAY_MULTIPLEX, /* measured in one of the passes, in its own run; the other passes are of other launches */
    KPROF_REPLAY_BATCH,     /* measured in all passes, replayed with the launches of its batch */
    KPROF_REPLAY_RANGE,     /* a range of the application: likewise, replayed as a whole */
} kprof_replay_mode;

/* Why a multiplexed launch lacks counters or samples of its instructions, where others are to have them. */
#define KPROF_IN_ANOTHER                                                                                               \
    "multiplexed: instructions are counted in one launch of a kernel and shape and sampled in another, and too few "   \
    "came"

/* The call whose stack a launch has. */
enum {
    KPROF_STACK_OF_LAUNCH,
    KPROF_STACK_OF_GRAPH,   /* the launch of the graph that the kernel is in */
    KPROF_STACK_OF_CAPTURE, /* the launch that was captured into the graph, or the call that made its node */
    KPROF_STACK_OF_FORWARD  /* the operator of PyTorch whose backward pass the launch is in */
};

/* The C types of the kinds of fields. */
typedef uint32_t kprof_type_U32, kprof_type_SHAPE[3];
typedef uint64_t kprof_type_U64;
typedef int64_t kprof_type_I64, kprof_type_REF, kprof_type_OPTIONAL;
typedef bool kprof_type_FLAG;
typedef const char *kprof_type_TEXT, *kprof_type_UNIQUE;
typedef kprof_replay_mode kprof_type_MODE;
typedef kprof_log_level kprof_type_LEVEL;
typedef kprof_status kprof_type_STATUS;
typedef const char *const *kprof_type_NAMES, *const *kprof_type_WITNESSES;
typedef const double *kprof_type_VALUES, *kprof_type_SPREADS;
typedef const void *kprof_type_BYTES;

#define KPROF_MEMBER(kind, member, ...) kprof_type_##kind member;
#define KPROF_NO_MEMBER(...)

/* kprof_process_record, kprof_device_record and so on */
#define KPROF_RECORD_STRUCT(number, NAME, name)                                                                        \
    typedef struct kprof_##name##_record {                                                                             \
        KPROF_##NAME##_FIELDS(KPROF_MEMBER, KPROF_MEMBER, KPROF_NO_MEMBER)                                             \
    } kprof_##name##_record;
KPROF_RECORD_MAP(KPROF_RECORD_STRUCT)

/* KPROF_RECORD_PROCESS and so on */
#define KPROF_RECORD_TYPE(number, NAME, name) KPROF_RECORD_##NAME = (number),
typedef enum kprof_record_type { KPROF_RECORD_MAP(KPROF_RECORD_TYPE) } kprof_record_type;

#define KPROF_RECORD_OF_TYPE(number, NAME, name) kprof_##name##_record name;
typedef struct kprof_record {
    kprof_record_type type;
    union {
        KPROF_RECORD_MAP(KPROF_RECORD_OF_TYPE)
    };
} kprof_record;

/* Is it the launch of a whole graph? A kernel has threads; the kernel of a graph has neither registers nor memory. */
static inline bool kprof_launch_is_graph(const kprof_launch_record *launch)
{
    return launch->block[0] == 0;
}
