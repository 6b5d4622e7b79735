/* The interfaces of host.h and planner.h in a build without the CUDA toolkit: every call says so. */
#include "planner/planner.h"

#include "core/log.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

static kprof_status unsupported(void)
{
    return kprof_fail(KPROF_UNSUPPORTED,
                      "this build of kprof has no CUDA support: it reads reports but does not know the "
                      "metrics of any chip; build it where the CUDA 13 toolkit is installed");
}

/* clang-format off: one line each */
#define UNSUPPORTED(call)                                                                                              \
    kprof_status call                                                                                                  \
    {                                                                                                                  \
        return unsupported();                                                                                          \
    }
#define NOTHING(call)                                                                                                  \
    void call {}
#define NO(call)                                                                                                       \
    bool call                                                                                                          \
    {                                                                                                                  \
        return false;                                                                                                  \
    }

UNSUPPORTED(kprof_host_chips(kprof_strlist *out))
NOTHING(kprof_host_close(kprof_host *host))
UNSUPPORTED(kprof_host_base_metrics(kprof_host *host, kprof_metric_type type, kprof_strlist *out))
UNSUPPORTED(kprof_host_submetrics(kprof_host *host, const char *base, kprof_strlist *out))
UNSUPPORTED(kprof_host_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out))
NO(kprof_host_has_metric(kprof_host *host, const char *name))
UNSUPPORTED(kprof_host_check(kprof_host *host, const kprof_strlist *names))
NO(kprof_host_can_collect(kprof_host *host, const char *name))
UNSUPPORTED(kprof_host_evaluate(kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                                double *values))
UNSUPPORTED(kprof_limits_stand_ins(kprof_host *host, const char *left_out, const kprof_strlist *kept,
                                   kprof_strlist *out))
/* clang-format on */

const char *kprof_host_chip(const kprof_host *host)
{
    return "";
}

kprof_status kprof_host_open(const char *chip, const kprof_availability *availability, kprof_host **out)
{
    *out = NULL;
    return unsupported();
}

kprof_status kprof_host_metric_info(kprof_host *host, const char *name, kprof_metric_info *out)
{
    *out = (kprof_metric_info){0};
    return unsupported();
}

kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    *out = (kprof_planned){0};
    return unsupported();
}
