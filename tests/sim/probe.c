/* A machine for tests: one GH100, or what KPROF_SIM_PROBE says ("two-gpus", "linked-gpus", "old-gpu", "no-gpu",
 * "no-permission", "confidential": the second of two GPUs is set up so, "no-cupti", "new-cupti").
 * Stands in for src/cupti/probe.c. No machine has a GPU at these addresses. */
#include "cupti/probe.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kprof_status kprof_probe_devices(kprof_probe *out)
{
    const char *fault = getenv("KPROF_SIM_PROBE");
    *out = (kprof_probe){0};
    if (fault && strcmp(fault, "no-gpu") == 0)
        return kprof_fail(KPROF_NO_GPU, "no CUDA driver (simulated)");
    const bool are_linked = fault && strcmp(fault, "linked-gpus") == 0;
    size_t count =
        are_linked || (fault && (strcmp(fault, "two-gpus") == 0 || strcmp(fault, "confidential") == 0)) ? 2 : 1;
    out->devices = calloc(count, sizeof *out->devices);
    if (!out->devices)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    out->device_count = count;
    for (size_t i = 0; i < count; i++) {
        kprof_probe_device *device = &out->devices[i];
        snprintf(device->name, sizeof device->name, "Simulated H200");
        snprintf(device->chip, sizeof device->chip, fault && strcmp(fault, "old-gpu") == 0 ? "GV100" : "GH100");
        device->is_linked = are_linked;
        device->memory_bytes = UINT64_C(80) << 30; /* not what prices are reckoned with where no GPU is */
    }
    if (fault && strcmp(fault, "no-permission") == 0)
        return kprof_fail(KPROF_NO_PERMISSION, "RmProfilingAdminOnly is 1 (simulated)");
    return KPROF_OK;
}

kprof_status kprof_probe_ask_versions(kprof_probe_versions *out)
{
    const char *fault = getenv("KPROF_SIM_PROBE");
    *out = (kprof_probe_versions){130001, 13000};
    if (fault && strcmp(fault, "no-cupti") == 0)
        return kprof_fail(KPROF_UNSUPPORTED, "libcupti.so.13 is not found (simulated)");
    if (fault && strcmp(fault, "new-cupti") == 0)
        out->cupti = 130200;
    return KPROF_OK;
}

kprof_probe_obstacle kprof_probe_find_obstacle(size_t device)
{
    const char *fault = getenv("KPROF_SIM_PROBE");
    return device == 1 && fault && strcmp(fault, "confidential") == 0 ? KPROF_PROBE_CONFIDENTIAL
                                                                      : KPROF_PROBE_NO_OBSTACLE;
}

void kprof_probe_free(kprof_probe *probe)
{
    free(probe->devices);
    *probe = (kprof_probe){0};
}
