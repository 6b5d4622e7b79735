/* Stands in for the C library's clock_gettime, and for core/deadline.c. Where KPROF_SIM_SLOWNESS is set, the monotonic
 * clock runs so many times slower: a limit of 2 s is one of 40 s then, which no load of the machine comes near. Waits
 * end by the machine's own clocks. */
#include "clock.h"

#include "core/deadline.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS_NS     INT64_C(1000000)
#define SECOND_NS INT64_C(1000000000)

static _Atomic int64_t ahead_ms, back_ms, slowness;

void sim_clock_advance_s(int seconds)
{
    sim_clock_advance_ms(1000 * (int64_t)seconds);
}

void sim_clock_advance_ms(int64_t ms)
{
    atomic_fetch_add(&ahead_ms, ms);
}

void sim_clock_set_back_ms(int ms)
{
    atomic_store(&back_ms, ms);
}

static __thread bool was_asked;

bool sim_clock_was_asked(void)
{
    bool was = was_asked;
    was_asked = false;
    return was;
}

static int64_t find_slowness(void)
{
    if (atomic_load(&slowness) == 0) {
        const char *text = getenv("KPROF_SIM_SLOWNESS");
        atomic_store(&slowness, text && atoi(text) > 0 ? atoi(text) : 1);
    }
    return atomic_load(&slowness);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    int64_t ns = (int64_t)time->tv_sec * SECOND_NS + time->tv_nsec;
    if (clock == CLOCK_MONOTONIC)
        ns = ns / find_slowness() + atomic_load(&ahead_ms) * MS_NS;
    *time = (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
    return result;
}

static struct timespec find_after_ns(clockid_t clock, int64_t ns)
{
    struct timespec time;
    was_asked = true;
    (void)syscall(SYS_clock_gettime, clock, &time);
    ns += (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec - atomic_load(&back_ms) * MS_NS;
    return (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
}

struct timespec kprof_deadline_after_ns(int64_t ns)
{
    return find_after_ns(CLOCK_MONOTONIC, ns);
}

struct timespec kprof_deadline_of_day_after_ns(int64_t ns)
{
    return find_after_ns(CLOCK_REALTIME, ns);
}
