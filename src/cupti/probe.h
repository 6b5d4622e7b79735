/* Answers what the command line asks about the machine before it starts the application. Tests simulate it. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kprof_probe_device {
    char name[128];        /* "NVIDIA H200" */
    char chip[32];         /* "GH100"; "" when CUPTI does not know the device */
    uint64_t memory_bytes; /* of the device; 0: the driver does not tell */
    bool is_linked;        /* with another one that the application will see, by NVLink */
} kprof_probe_device;

typedef struct kprof_probe {
    kprof_probe_device *devices; /* [device_count], CUDA ordinals as the application will see them */
    size_t device_count;
} kprof_probe;

/* Look at the GPUs without leaving a CUDA context behind. NO_GPU when there is no driver or no device, with a message
 * that says which; NO_PERMISSION when counters are kept from this user, with the way to grant it and the value of
 * RmProfilingAdminOnly: the devices are there then, too. Free with kprof_probe_free in any case. */
kprof_status kprof_probe_devices(kprof_probe *out) KPROF_MUST_CHECK;
void kprof_probe_free(kprof_probe *probe);

/* Versions of CUDA, as the libraries tell them; 0: not known. */
typedef struct kprof_probe_versions {
    uint32_t cupti;  /* 130001 is 13.0.1 */
    uint32_t driver; /* the newest that it is for: 13000 is 13.0 */
} kprof_probe_versions;

/* Why CUPTI measures nothing on a GPU, as it is set up. */
typedef enum kprof_probe_obstacle {
    KPROF_PROBE_NO_OBSTACLE, /* or CUPTI does not tell */
    KPROF_PROBE_CONFIDENTIAL,
    KPROF_PROBE_VGPU,          /* a virtual GPU that cannot */
    KPROF_PROBE_VGPU_DISABLED, /* or may not */
    KPROF_PROBE_SLI,
    KPROF_PROBE_MINING,
    KPROF_PROBE_WSL
} kprof_probe_obstacle;

/* Load CUPTI, and ask it and the driver, where there is one. UNSUPPORTED, with a message that says where it was looked
 * for, when there is no CUPTI that kprof can use. */
kprof_status kprof_probe_ask_versions(kprof_probe_versions *out) KPROF_MUST_CHECK;
/* Ask CUPTI about a device that kprof_probe_devices has found. */
kprof_probe_obstacle kprof_probe_find_obstacle(size_t device);
