/* Blocks signals in a thread that must not run a handler of the application, or that writes, and lists those that end a
 * program. All are inline since the preloaded library (inject/exec.c) needs nothing but libc. */
#pragma once

#include "core/strbuf.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

/* Block all signals but those that tell of a fault of the thread; `before` takes the mask until now, or is NULL. */
static inline void kprof_handlers_block(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
}

/* Between begin and end a write that fails raises no signal, and errno tells why: SIGPIPE and SIGXFSZ would end the
 * program that kprof is in. The thread's mask, and what waits for it, are as before then. Async-signal-safe. */
typedef struct kprof_write_guard {
    sigset_t raised; /* by a write, if not by somebody before */
    sigset_t before;
} kprof_write_guard;

static inline void kprof_write_guard_begin(kprof_write_guard *guard)
{
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    sigset_t pending, both;
    sigemptyset(&guard->raised);
    sigemptyset(&both);
    sigpending(&pending);
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        sigaddset(&both, numbers[i]);
        if (!sigismember(&pending, numbers[i]))
            sigaddset(&guard->raised, numbers[i]);
    }
    pthread_sigmask(SIG_BLOCK, &both, &guard->before);
}

static inline void kprof_write_guard_end(const kprof_write_guard *guard)
{
    static const struct timespec at_once = {0};
    const int saved_errno = errno;
    while (sigtimedwait(&guard->raised, NULL, &at_once) > 0)
        continue;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    errno = saved_errno;
}

/* The signals that are sent to end a program, or would: batch systems send USR1, USR2 and XCPU, timers of a shell ALRM.
 * kprof ignores SIGPIPE, and a SIGSEGV is its own fault. */
static inline void kprof_signals_that_end(sigset_t *out)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGUSR1, SIGUSR2,  SIGALRM,
                                  SIGXCPU, SIGPROF, SIGVTALRM, SIGIO,   SIGPWR,  SIGSTKFLT};
    sigemptyset(out);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        sigaddset(out, numbers[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        sigaddset(out, number);
}
