/* Asks the driver's kernel module where CUDA has no call. NVIDIA's open kernel modules declare the calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A GPU's place on the bus, which names it for CUDA and for the kernel module alike. */
typedef struct kprof_bus_place {
    uint32_t domain, bus, slot;
} kprof_bus_place;

typedef struct kprof_resources kprof_resources;

/* `path`: of the kernel module's device file. NULL, with the reason, where the module does not know these calls or does
 * not allow them. Free with kprof_resources_close. */
kprof_resources *kprof_resources_open(const char *path, const kprof_bus_place *place, const char **reason);
/* Write back what L2 of the GPU holds, and empty it, at once, whatever streams do. False where that is not allowed. */
bool kprof_resources_empty_l2(kprof_resources *resources);
void kprof_resources_close(kprof_resources *resources);
