/* The clock that durations are taken with, and deadlines. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Return the nanoseconds since some moment in the past. Setting the time of day does not change them. */
int64_t kprof_monotonic_ns(void);
/* Return the milliseconds since *start_ns, and set *start_ns to now. */
double kprof_monotonic_lap_ms(int64_t *start_ns);
/* Return the moment this many nanoseconds from now, as pthread_cond_timedwait wants it. */
struct timespec kprof_deadline_after_ns(int64_t ns);
