/* Adds to the present time. */
#include "core/deadline.h"

#define SECOND_NS 1000000000

static struct timespec find_after_ns(clockid_t clock, int64_t ns)
{
    struct timespec time;
    clock_gettime(clock, &time);
    const int64_t until_ns = (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec + ns;
    return (struct timespec){until_ns / SECOND_NS, until_ns % SECOND_NS};
}

struct timespec kprof_deadline_after_ns(int64_t ns)
{
    return find_after_ns(CLOCK_MONOTONIC, ns);
}

struct timespec kprof_deadline_of_day_after_ns(int64_t ns)
{
    return find_after_ns(CLOCK_REALTIME, ns);
}
