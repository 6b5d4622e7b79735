/* Waits for the GPU's work with a limit, since that work may wait for the application itself. */
#ifndef KPROF_INJECT_WAIT_H
#define KPROF_INJECT_WAIT_H

#include "core/status.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct kprof_waits {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct kprof_waiter *waiters;
    int long_limit_s; /* the ten seconds; tests shorten them */
    bool in_vain;     /* a wait for a context was; with the gate */
} kprof_waits;

/* Wait until all work of a context is done, ten seconds at most: NOT_COLLECTED then. Where the application has used
 * what makes work wait for the host (host functions, waits for a value in memory), or where an earlier such wait was in
 * vain, one second at most. Work that is waited for since an earlier call counts from there. INTERNAL when the context
 * is in error, NO_MEMORY when there is no thread to wait in. With the gate held. */
kprof_status kprof_wait_for_context(void *context) KPROF_MUST_CHECK;
/* Wait like kprof_wait_for_context, but never for more than one second. */
kprof_status kprof_wait_with_limit(void *context) KPROF_MUST_CHECK;
/* Has the context nothing more to do, by what one of these returned? One in error has not. */
static inline bool kprof_wait_is_idle(kprof_status status)
{
    return status == KPROF_OK || status == KPROF_INTERNAL;
}
/* The context is about to end: have the thread that waits for it, which may be left from an earlier call, done with it
 * first, if it is within a second. */
void kprof_wait_forget(void *context);

#endif
