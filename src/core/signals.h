/* Blocks signals in a thread that must not run a handler of the application, and lists those that end a program. Both
 * are inline since the preloaded library (inject/exec.c) needs nothing but libc. */
#pragma once

#include "core/strbuf.h"

#include <signal.h>
#include <stddef.h>

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
