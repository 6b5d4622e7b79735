/* Which driver calls are launches, and which leave the device's memory and state alone. */
#ifndef KPROF_CUPTI_CALLS_H
#define KPROF_CUPTI_CALLS_H

#include "cupti/target.h"

#include <cupti.h>

/* `parameters`: those of the call, before it is made. */
kprof_call_kind kprof_call_classify(CUpti_CallbackId id, const void *parameters);

/* kprof_sharing bits of a call that succeeded: whom it gives memory to that the GPU reaches, too. All of them for a
 * call that this CUPTI does not list. */
unsigned kprof_call_sharing(CUpti_CallbackId id, const void *parameters);
/* Does the call, which succeeded, hand out the address of a module's variable? Its size is 0 when the application did
 * not ask for it. */
bool kprof_call_variable(CUpti_CallbackId id, const void *parameters, uint64_t *address, size_t *size_bytes);
/* The module or library that the call is about: the one that is unloaded, or that has the variable; NULL: none. */
const void *kprof_call_module(CUpti_CallbackId id, const void *parameters);

typedef enum kprof_transfer_kind {
    KPROF_TRANSFER_SET,
    KPROF_TRANSFER_COPY, /* between addresses of which the driver finds out what they are */
    KPROF_TRANSFER_IN,   /* from the host */
    KPROF_TRANSFER_OUT,  /* to the host */
} kprof_transfer_kind;

/* A transfer's arguments. */
typedef struct kprof_transfer {
    kprof_transfer_kind kind;
    bool waits;                      /* the call returns when it is done */
    CUdeviceptr destination, source; /* source: of a copy; the host's side is 0 */
    unsigned value;                  /* of a set */
    size_t element_bytes;            /* of a set: 1, 2 or 4 */
    size_t pitch_bytes;              /* of a set with several rows */
    size_t width, height;            /* elements, or bytes of a copy; rows */
    CUstream stream;                 /* as any thread may use it */
} kprof_transfer;

/* False when the call is none. */
bool kprof_call_transfer(CUpti_CallbackId id, const void *parameters, kprof_transfer *out);

/* How much a call is about to allocate, about; 0 where that is not known. */
size_t kprof_allocation_bytes(CUpti_CallbackId id, const void *parameters);
/* Stream of a call that allocates in a stream's order, as any thread may use it; NULL for others. */
CUstream kprof_allocation_stream(CUpti_CallbackId id, const void *parameters);
/* Is the stream being captured, or can the driver not tell? */
bool kprof_stream_is_captured(CUstream stream);
/* Stream of a launch, of a kernel or a graph, as the application passed it. */
CUstream kprof_launch_stream(CUpti_CallbackId id, const void *parameters);
/* Does the call use the per-thread default stream for stream 0? */
bool kprof_call_per_thread_stream(CUpti_CallbackId id);
/* The kernel's handle: a CUfunction, or a CUkernel in its place. */
CUfunction kprof_launch_function(CUpti_CallbackId id, const void *parameters);
/* Grid, block, cluster, dynamic shared memory and the cooperative flag. */
void kprof_launch_shape(CUpti_CallbackId id, const void *parameters, kprof_launch_record *out);
/* The launch configuration that the application gave, for the calls that take one; else NULL. */
const CUlaunchConfig *kprof_launch_given_config(CUpti_CallbackId id, const void *parameters);
/* Where a launch's arguments are: `kernelParams` and `extra` as the application gave them, either may be NULL. False
 * for the driver's oldest entry points, which take them from state. */
bool kprof_launch_arguments(CUpti_CallbackId id, const void *parameters, void ***kernel_parameters, void ***extra);
/* The launch as a CUlaunchConfig, without attributes but the cluster's; `attribute` is its storage. */
CUlaunchConfig kprof_launch_config(const kprof_launch_record *shape, CUlaunchAttribute *attribute);

#endif
