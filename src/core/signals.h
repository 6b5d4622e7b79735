/* Blocks signals in a thread that must not run a handler of the application. It is inline since the preloaded
 * library (inject/exec.c) needs nothing but libc. */
#pragma once

#include "core/strbuf.h"

#include <signal.h>
#include <stddef.h>

/* Block all signals but those that tell of a fault of the thread; `before` takes the mask until now, or is NULL. */
static inline void kprof_signals_block(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
}
