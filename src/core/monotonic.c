/* Reads CLOCK_MONOTONIC. Waits of older C libraries go by CLOCK_REALTIME, so deadlines use that clock. */
#include "core/monotonic.h"

#define SECOND_NS 1000000000

int64_t kprof_monotonic_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

double kprof_monotonic_lap_ms(int64_t *start_ns)
{
    int64_t now_ns = kprof_monotonic_ns();
    double ms = (double)(now_ns - *start_ns) * 1e-6;
    *start_ns = now_ns;
    return ms;
}

struct timespec kprof_deadline_after_ns(int64_t ns)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    int64_t until_ns = (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec + ns;
    return (struct timespec){until_ns / SECOND_NS, until_ns % SECOND_NS};
}
