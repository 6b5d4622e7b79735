/* The moments at which waits end, in a file of their own, since the simulated machine has other ones. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Return the moment this many nanoseconds from now, on CLOCK_MONOTONIC: where somebody sets the time of day back, a
 * wait that goes by it lasts longer by as much. */
struct timespec kprof_deadline_after_ns(int64_t ns);
/* The same by the time of day: waits for a mutex or a thread have no other clock in older C libraries. */
struct timespec kprof_deadline_of_day_after_ns(int64_t ns);
