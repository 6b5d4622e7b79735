/* The planner of a build without the CUDA toolkit, which knows no chip that there could be a plan for. */
#include "planner/planner.h"

kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    (void)host;
    (void)wish;
    *out = (kprof_planned){0};
    return KPROF_UNSUPPORTED;
}

void kprof_planned_free(kprof_planned *planned)
{
    *planned = (kprof_planned){0};
}
