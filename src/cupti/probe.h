/* Answers what the command line asks about the machine before it starts the application. Tests link a simulated probe
 * instead. */
#pragma once

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct kprof_probe_device {
    char name[128];        /* "NVIDIA H200" */
    char chip[32];         /* "GH100"; "" when CUPTI does not know the device */
    uint64_t memory_bytes; /* of the device; 0: the driver does not tell */
} kprof_probe_device;

typedef struct kprof_probe {
    kprof_probe_device *devices; /* [device_count], CUDA ordinals as the application will see them */
    size_t device_count;
} kprof_probe;

/* Look at the GPUs without leaving a CUDA context behind. NO_GPU when there is no driver or no device, with a message
 * that says which; NO_PERMISSION when counters are kept from this user, with the way to grant it and the value of
 * RmProfilingAdminOnly. */
kprof_status kprof_probe_devices(kprof_probe *out) KPROF_MUST_CHECK;
void kprof_probe_free(kprof_probe *probe);
