/* The clock that durations are taken with, and deadlines. */
#ifndef KPROF_CORE_MONOTONIC_H
#define KPROF_CORE_MONOTONIC_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment in the past; not changed by setting the time of day. */
int64_t kprof_monotonic_ns(void);
/* Milliseconds since *start_ns, which is moved on to now. */
double kprof_monotonic_lap_ms(int64_t *start_ns);
/* The moment so many nanoseconds from now, as pthread_cond_timedwait wants it. */
struct timespec kprof_deadline_after_ns(int64_t ns);

#endif
