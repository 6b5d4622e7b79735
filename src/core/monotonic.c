/* CLOCK_MONOTONIC in numbers. */
#include "core/monotonic.h"

#include <time.h>

int64_t kprof_monotonic_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

double kprof_monotonic_lap_ms(int64_t *start_ns)
{
    int64_t now_ns = kprof_monotonic_ns();
    double ms = (double)(now_ns - *start_ns) * 1e-6;
    *start_ns = now_ns;
    return ms;
}
