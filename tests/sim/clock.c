/* Stands in for the C library's clock_gettime. */
#include "clock.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t ahead_s, back_ms;

void sim_clock_advance_s(int seconds)
{
    atomic_fetch_add(&ahead_s, seconds);
}

void sim_clock_set_back_ms(int ms)
{
    atomic_store(&back_ms, ms);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_MONOTONIC)
        time->tv_sec += atomic_load(&ahead_s);
    if (clock == CLOCK_REALTIME) {
        int64_t ns = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec - atomic_load(&back_ms) * 1000000;
        *time = (struct timespec){ns / 1000000000, ns % 1000000000};
    }
    return result;
}
