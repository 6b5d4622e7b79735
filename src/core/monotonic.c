/* Reads CLOCK_MONOTONIC, and the time of day. */
#include "core/monotonic.h"

#include <errno.h>
#include <time.h>

#define SECOND_NS      1000000000
#define MILLISECOND_NS 1000000

static int64_t read_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

int64_t kprof_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t kprof_unix_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

double kprof_monotonic_lap_ms(int64_t *start_ns)
{
    int64_t now_ns = kprof_monotonic_ns();
    double ms = (double)(now_ns - *start_ns) * 1e-6;
    *start_ns = now_ns;
    return ms;
}

int kprof_monotonic_poll(struct pollfd *wait, int64_t limit_ms)
{
    const int64_t until_ns = kprof_monotonic_ns() + limit_ms * MILLISECOND_NS;
    int ready;
    while ((ready = poll(wait, 1, (int)limit_ms)) < 0 && errno == EINTR) {
        const int64_t left_ns = until_ns - kprof_monotonic_ns();
        limit_ms = left_ns > 0 ? (left_ns + MILLISECOND_NS - 1) / MILLISECOND_NS : 0;
    }
    return ready;
}

void kprof_monotonic_condition(pthread_cond_t *out)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(out, &attributes);
    pthread_condattr_destroy(&attributes);
}
