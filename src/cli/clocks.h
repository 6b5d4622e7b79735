/* Locks the graphics clocks of GPUs through NVML, and undoes that. Machine-wide: whoever uses these GPUs is concerned.
 * Only the driver's own library is needed, neither CUDA nor its headers. */
#ifndef KPROF_CLI_CLOCKS_H
#define KPROF_CLI_CLOCKS_H

#include "core/status.h"
#include "cupti/probe.h"

#define KPROF_CLOCK_DEVICES_MAX 64

typedef enum kprof_clock_control {
    KPROF_CLOCKS_ALONE, /* nothing is locked, NVML is not even loaded */
    KPROF_CLOCKS_BASE,  /* at the base clock, which NVML calls TDP: what a GPU can hold under any load */
    KPROF_CLOCKS_BOOST, /* at the highest clock; power and temperature may still lower it */
} kprof_clock_control;

/* Names the clocks to lock. It is plain bytes, so that another process can receive it. */
typedef struct kprof_clock_request {
    kprof_clock_control control;
    uint32_t device_count; /* at most KPROF_CLOCK_DEVICES_MAX */
    char devices[KPROF_CLOCK_DEVICES_MAX][KPROF_PCI_ADDRESS_SIZE];
} kprof_clock_request;

typedef struct kprof_clocks kprof_clocks;

/* Lock the clocks of all devices, or of none: when one fails, those before it are unlocked again. NO_PERMISSION for any
 * user but root. UNSUPPORTED without NVML, for a GPU whose clock cannot be locked and for one that is divided into MIG
 * instances. NO_GPU when NVML finds no driver. On failure *out is NULL; else kprof_clocks_unlock ends it. */
kprof_status kprof_clocks_lock(const kprof_clock_request *request, kprof_clocks **out) KPROF_MUST_CHECK;
/* Give the clocks back to the driver and free `clocks`, which may be NULL. NVML cannot tell what was locked before, so
 * that is not put back. INTERNAL when a clock stays locked; the message has the command that unlocks it. */
kprof_status kprof_clocks_unlock(kprof_clocks *clocks) KPROF_MUST_CHECK;

/* The command for doing it by hand, with %s for the PCI address. */
#define KPROF_CLOCKS_UNLOCK_COMMAND "nvidia-smi --reset-gpu-clocks -i %s"

#endif
