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

/* A transfer's arguments. */
typedef struct kprof_transfer {
    CUdeviceptr destination, source; /* source: of a copy */
    unsigned value;                  /* of a set */
    size_t element_bytes;            /* of a set: 1, 2 or 4; 0: this is a copy */
    size_t pitch_bytes;              /* of a set with several rows */
    size_t width, height;            /* elements, or bytes of a copy; rows */
    CUstream stream;                 /* as any thread may use it */
} kprof_transfer;

/* False when the call is none. */
bool kprof_call_transfer(CUpti_CallbackId id, const void *parameters, kprof_transfer *out);

/* Stream of a launch, as the application passed it. */
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
