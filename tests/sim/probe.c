/* A machine for tests: one GH100, or what KPROF_SIM_PROBE says ("no-gpu", "no-permission"). Stands in for
 * src/cupti/probe.c. */
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
    if (fault && strcmp(fault, "no-permission") == 0)
        return kprof_fail(KPROF_NO_PERMISSION, "RmProfilingAdminOnly is 1 (simulated)");
    out->devices = calloc(1, sizeof *out->devices);
    if (!out->devices)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    out->device_count = 1;
    snprintf(out->devices[0].name, sizeof out->devices[0].name, "Simulated H200");
    snprintf(out->devices[0].chip, sizeof out->devices[0].chip, "GH100");
    return KPROF_OK;
}

void kprof_probe_free(kprof_probe *probe)
{
    free(probe->devices);
    *probe = (kprof_probe){0};
}
