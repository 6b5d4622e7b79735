/* Finds out what driver calls do. It reads their parameters once as a call enters, and once more as it leaves. */
#pragma once

#include "cupti/allocations.h"
#include "cupti/driver_call.h"
#include "cupti/redirect.h"
#include "spool/record.h"

#include <cupti.h>

/* Tells what a call that succeeded has changed, but for graphs. It is read from the parameters as the call leaves. */
typedef struct kprof_call_result {
    unsigned sharing; /* kprof_sharing bits */
    kprof_memory_change memory;
    const void *module; /* the module or library that the call unloads, or that has the variable; NULL: none */
    const void *loaded; /* a module that the call loaded; NULL: none */
    bool has_variable;  /* a variable's address was handed out, and the following are set */
    uint64_t variable;
    size_t variable_bytes; /* 0: the application did not ask for it */
} kprof_call_result;

void kprof_call_decode_result(CUpti_CallbackId id, const void *parameters, kprof_call_result *out);

/* For kprof_call_decode_result. */
void kprof_call_memory_change(CUpti_CallbackId id, const void *parameters, kprof_memory_change *out);
/* For kprof_call_decode_result: return kprof_sharing bits, which say with whom a call that succeeded shares memory of
 * the GPU. All of them for a call that this CUPTI does not list. */
unsigned kprof_call_sharing(CUpti_CallbackId id, const void *parameters);

typedef enum kprof_transfer_kind {
    KPROF_TRANSFER_SET,
    KPROF_TRANSFER_COPY, /* between addresses; the driver finds out what they are */
    KPROF_TRANSFER_IN,   /* from the host */
    KPROF_TRANSFER_OUT,  /* to the host */
} kprof_transfer_kind;

/* A transfer's arguments. */
typedef struct kprof_transfer {
    kprof_transfer_kind kind;
    bool waits;                      /* the call returns when it is done */
    CUdeviceptr destination, source; /* source: of a copy */
    uint64_t value;                  /* of a set */
    size_t element_bytes;            /* of a set: 1, 2 or 4; of a set of one element also 8 */
    size_t pitch_bytes;              /* of several rows, at the destination */
    size_t source_pitch_bytes;       /* of a copy of several rows */
    size_t width, height;            /* elements, or bytes of a copy; rows */
    CUstream stream;                 /* as any thread may use it */
} kprof_transfer;

/* For kprof_call_decode; false when the call is none. */
bool kprof_call_transfer(CUpti_CallbackId id, const void *parameters, kprof_transfer *out);
/* Read a copy of one layer; false when it is none of plain memory. */
bool kprof_transfer_of_layers(const CUDA_MEMCPY3D *layers, kprof_transfer *out);
/* From the first byte of the first row to the last one of the last row, of a transfer with any. */
size_t kprof_transfer_destination_bytes(const kprof_transfer *t);
size_t kprof_transfer_source_bytes(const kprof_transfer *t);
/* Is a copy from the host or to it small enough to be kept? It has 256 MiB and 1,048,576 rows at most. */
bool kprof_transfer_may_be_kept(const kprof_transfer *t);

/* How many operations of cuStreamBatchMemOp do what. Barriers and flushes are none. */
typedef struct kprof_value_operations {
    unsigned waits, writes, others; /* others: this kprof does not know them */
    unsigned last_write;            /* the index of the last write */
} kprof_value_operations;

kprof_value_operations kprof_call_value_operations(const CUstreamBatchMemOpParams *list, unsigned count);

/* The launch of a kernel or a graph. */
typedef struct kprof_given_launch {
    CUfunction function; /* or a CUkernel in its place */
    CUgraphExec graph;
    bool is_graph;             /* of one graph, on one device; else `graph` is NULL, and for any graph what follows */
    bool has_arguments;        /* else they are in the driver's state: it is one of its oldest entry points */
    bool per_thread;           /* stream 0 is the thread's default one */
    CUstream stream;           /* as the application passed it */
    void **arguments, **extra; /* `kernelParams` and `extra` as the application gave them; either may be NULL */
    const CUlaunchConfig *config; /* as the application gave it, for the calls that take one; else NULL */
    uint32_t grid[3], block[3], cluster[3], dynamic_smem_bytes, cooperative;
} kprof_given_launch;

/* A driver call, read from its parameters: what kprof_call's `parameters` points to. */
typedef struct kprof_decoded_call {
    CUstream stream; /* kprof_call's */
    union {
        kprof_given_launch launch; /* of KPROF_CALL_LAUNCH and KPROF_CALL_GRAPH_LAUNCH */
        kprof_transfer transfer;   /* of KPROF_CALL_TRANSFER */
        size_t *free_bytes;        /* of KPROF_CALL_MEMORY_INFO: where the free memory is written; may be NULL */
        kprof_argument freed;      /* of KPROF_CALL_FREE and KPROF_CALL_UNLOAD */
        CUdeviceptr freed_to_pool; /* of KPROF_CALL_POOL_FREE */
        size_t allocation_bytes;   /* of others: about how much the call will allocate; 0 where that is not known */
    };
} kprof_decoded_call;

/* Decode a call before it is made, and return its kind. `out` is set for launches, transfers and what may allocate. */
kprof_call_kind kprof_call_decode(CUpti_CallbackId id, const void *parameters, kprof_decoded_call *out);
/* The same for a call of a kind that is known already, as it leaves. */
void kprof_call_decode_known(kprof_call_kind kind, CUpti_CallbackId id, const void *parameters,
                             kprof_decoded_call *out);
/* May kprof go without seeing these calls while it measures nothing? They change nothing that it keeps lists of. */
bool kprof_call_may_go_unseen(CUpti_CallbackId id);
/* Does the call launch one kernel? */
bool kprof_call_launches(CUpti_CallbackId id);
/* May kprof always ignore the call, which neither changes nor awaits anything? Programs make many of these.
 * `sees_order`: somebody wants to know which streams wait for others. */
bool kprof_call_is_ignored(CUpti_CallbackId id, bool sees_order);
/* Does _decode set anything for a call of this kind? */
bool kprof_call_is_decoded(kprof_call_kind kind);

/* The shape that a launch configuration has. */
void kprof_launch_read_config(const CUlaunchConfig *config, kprof_given_launch *out);
/* For the same: return about how much a call will allocate; 0 where that is not known. */
size_t kprof_allocation_bytes(CUpti_CallbackId id, const void *parameters);
/* Stream of a call that allocates in a stream's order, as any thread may use it; NULL for others. */
CUstream kprof_allocation_stream(CUpti_CallbackId id, const void *parameters);
/* Does the call change how the launches of a function run from now on, and not only what they may ask for? */
bool kprof_call_changes_setting(CUpti_CallbackId id, const void *parameters);
/* Is the stream being captured, or can the driver not tell? */
bool kprof_stream_is_captured(CUstream stream);
/* Is the stream the context's? A copy, or a launch by a CUkernel, may go to a stream of another context than the
 * current one: then nothing in the current one waits for it, and neither counters nor snapshot cover it. */
bool kprof_stream_is_of(const void *context, CUstream stream);
/* The launch as a CUlaunchConfig, without attributes but the cluster's; `attribute` is its storage. */
CUlaunchConfig kprof_launch_config(const kprof_launch_record *shape, CUlaunchAttribute *attribute);
