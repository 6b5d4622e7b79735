/* The clock that durations are taken with. */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdint.h>

/* Return the nanoseconds since some moment in the past. Setting the time of day does not change them. */
int64_t kprof_monotonic_ns(void);
/* Return the nanoseconds since 1970, by the time of day. */
int64_t kprof_unix_ns(void);
/* Return the milliseconds since *start_ns, and set *start_ns to now. */
double kprof_monotonic_lap_ms(int64_t *start_ns);
/* Poll one descriptor for so long, however often signals interrupt that. Returns as poll does. */
int kprof_monotonic_poll(struct pollfd *wait, int64_t limit_ms);
/* Make a condition whose waits end by that clock, as kprof_deadline_after_ns has it. */
void kprof_monotonic_condition(pthread_cond_t *out);
