/* The interfaces of host.h and planner.h in a build without the CUDA toolkit: nobody gets a host. What takes one is
 * here only so that programs link. */
#include "planner/planner.h"

#include "core/log.h"

static kprof_status unsupported(void)
{
    return kprof_fail(KPROF_UNSUPPORTED,
                      "this build of kprof has no CUDA support: it reads reports but does not know the "
                      "metrics of any chip; build it where the CUDA 13 toolkit is installed");
}

kprof_status kprof_host_open(const char *chip, const kprof_availability *availability, kprof_host **out)
{
    (void)chip;
    (void)availability;
    *out = NULL;
    return unsupported();
}

void kprof_host_close(kprof_host *host)
{
    (void)host;
}

#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wattribute-alias"
#define UNSUPPORTED(name) extern __typeof__(name) name __attribute__((alias("unsupported")))
UNSUPPORTED(kprof_host_chips);
UNSUPPORTED(kprof_host_chip);
UNSUPPORTED(kprof_host_base_metrics);
UNSUPPORTED(kprof_host_submetrics);
UNSUPPORTED(kprof_host_breakdown);
UNSUPPORTED(kprof_host_metric_info);
UNSUPPORTED(kprof_host_has_metric);
UNSUPPORTED(kprof_host_check);
UNSUPPORTED(kprof_host_can_collect);
UNSUPPORTED(kprof_host_evaluate);
UNSUPPORTED(kprof_limits_stand_ins);
UNSUPPORTED(kprof_planner_make);
