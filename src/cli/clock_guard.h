/* The process that locks the GPUs' clocks and unlocks them when kprof has ended, however it ended. */
#ifndef KPROF_CLI_CLOCK_GUARD_H
#define KPROF_CLI_CLOCK_GUARD_H

#include "cli/clocks.h"
#include "core/status.h"

#include <sys/types.h>

typedef struct kprof_clock_guard {
    pid_t pid;                  /* 0: there is none */
    int channel;                /* to it; kprof's end closes with kprof */
    kprof_clock_request locked; /* device_count is 0 while nothing is */
} kprof_clock_guard;

/* Fork the guard. Call this while kprof has one thread, and before libraries of the driver are loaded into it. */
kprof_status kprof_clock_guard_fork(kprof_clock_guard *out) KPROF_MUST_CHECK;
/* Have it lock clocks. Errors as of kprof_clocks_lock; nothing is locked then. */
kprof_status kprof_clock_guard_lock(kprof_clock_guard *guard, const kprof_clock_request *request) KPROF_MUST_CHECK;
/* Have it unlock what is locked, and wait for its end. INTERNAL, with the command to do it by hand, when that fails.
 * Does nothing without a guard, so it may be called twice. */
kprof_status kprof_clock_guard_release(kprof_clock_guard *guard) KPROF_MUST_CHECK;

#endif
