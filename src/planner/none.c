/* The planner of a build without the CUDA toolkit, which knows no chip that there could be a plan for. */
#include "planner/planner.h"
#include "planner/timeline.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    *out = (kprof_planned){0};
    return KPROF_UNSUPPORTED;
}

void kprof_planned_free(kprof_planned *planned)
{
    *planned = (kprof_planned){0};
}

kprof_status kprof_timeline_make(kprof_host *host, const kprof_strlist *names, size_t most, kprof_timeline_plan *out)
{
    *out = (kprof_timeline_plan){0};
    return KPROF_UNSUPPORTED;
}

void kprof_timeline_free(kprof_timeline_plan *plan)
{
    *plan = (kprof_timeline_plan){0};
}

size_t kprof_timeline_metric_count(const kprof_timeline_plan *plan)
{
    return 0;
}
