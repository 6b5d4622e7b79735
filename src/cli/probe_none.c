/* The probe of a build without the CUDA toolkit: there is nothing to profile with. */
#include "core/log.h"
#include "cupti/probe.h"

kprof_status kprof_probe_devices(kprof_probe *out)
{
    *out = (kprof_probe){0};
    return kprof_fail(KPROF_UNSUPPORTED, "this kprof was built without the CUDA toolkit: it prints reports, but cannot "
                                         "profile; build it where CUDA 13 is installed");
}

kprof_status kprof_probe_ask_versions(kprof_probe_versions *out)
{
    *out = (kprof_probe_versions){0};
    return kprof_fail(KPROF_UNSUPPORTED, "this kprof was built without the CUDA toolkit");
}

kprof_probe_obstacle kprof_probe_find_obstacle(size_t device)
{
    (void)device;
    return KPROF_PROBE_NO_OBSTACLE;
}

void kprof_probe_free(kprof_probe *probe)
{
    *probe = (kprof_probe){0};
}
