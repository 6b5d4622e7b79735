/* Arithmetic intensity, the roof above it and the distance to that roof. */
#include "report/store/roofline.h"

#include <math.h>

static bool is_measured(kprof_roofline_input in)
{
    return isfinite(in.work) && isfinite(in.work_peak) && isfinite(in.traffic) && isfinite(in.traffic_peak) &&
           in.work >= 0 && in.traffic >= 0 && in.work_peak > 0 && in.traffic_peak > 0;
}

kprof_roofline_point kprof_roofline_locate(kprof_roofline_input in)
{
    kprof_roofline_point point = {NAN, NAN, NAN, NAN, NAN, false, false, false};
    if (!is_measured(in))
        return point;
    point.measured = true;
    point.has_work = in.work > 0;
    point.ridge = in.work_peak / in.traffic_peak;
    if (in.traffic > 0)
        point.intensity = in.work / in.traffic;
    else if (point.has_work)
        point.intensity = INFINITY;
    if (!point.has_work)
        return point;
    point.memory_bound = point.intensity < point.ridge;
    point.attainable = point.memory_bound ? point.intensity * in.traffic_peak : in.work_peak;
    point.pct = 100 * in.work / point.attainable;
    point.headroom = point.attainable / in.work;
    return point;
}
