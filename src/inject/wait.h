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

/* Has the work that was waited for in vain still not ended? */
bool kprof_wait_goes_on(const void *context);
/* Wait until all work of a context is done. NOT_COLLECTED after ten seconds; after one second if the application has
 * used what makes work wait for the host (host functions, waits for a value in memory) or if an earlier such wait was
 * in vain. Time since an earlier call that waited for the same work counts. INTERNAL when the context is in error,
 * NO_MEMORY when there is no thread to wait in. Needs the gate. */
kprof_status kprof_wait_for_context(void *context) KPROF_MUST_CHECK;
/* Wait like kprof_wait_for_context, but never for more than one second. */
kprof_status kprof_wait_with_limit(void *context) KPROF_MUST_CHECK;
/* Does this result mean that the context has nothing more to do? One in error has not. */
static inline bool kprof_wait_is_idle(kprof_status status)
{
    return status == KPROF_OK || status == KPROF_INTERNAL;
}
/* Let a thread that still waits for the context finish, for a second at most, before the context ends. */
void kprof_wait_forget(void *context);

#endif
