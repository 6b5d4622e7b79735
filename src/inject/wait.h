/* Waits for the GPU's work, and lets no call of the application wait for long: that work may wait for the application
 * itself. A call is held for at most a tenth of a second while no work on the GPU ends. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

/* A call that ends the process may wait this long. */
#define KPROF_HOLD_AT_END_NS INT64_C(1000000000)

/* Call this when a call of the application begins. While no work ends, the calling thread may wait for `limit_ns` in
 * all from now on; before, for KPROF_HOLD_NS. */
void kprof_wait_allow(int64_t limit_ns);
/* Return how much longer it may wait. */
int64_t kprof_wait_rest_ns(void);
/* The same, but for no longer than a call may be held: at the end of a process a thread has more. */
int64_t kprof_wait_limit_ns(void);
/* Return how much longer waiting for the context is worth it: hardly any longer if a wait has timed out, and the work
 * that it was for goes on. */
int64_t kprof_wait_worth_ns(const void *context);
/* Note that the thread has waited this long for another thread or process while no work ended. */
void kprof_wait_note(int64_t waited_ns);
/* Wait until all work of a context is done. NOT_COLLECTED when no work ended for as long as the thread may wait. After
 * a timeout only look, until some of the work ends. INTERNAL when the context is in error, NO_MEMORY when there is no
 * thread to wait in. Needs the gate. */
kprof_status kprof_wait_for_context(void *context) KPROF_MUST_CHECK;
/* The same, but for `limit_ns` at most. 0 only looks: it does not wait. */
kprof_status kprof_wait_at_most(void *context, int64_t limit_ns) KPROF_MUST_CHECK;
/* A wait has timed out: is the work that it was for still going on? */
bool kprof_wait_goes_on(const void *context);
/* Does this result mean that the context has nothing more to do? A context in error has not. */
static inline bool kprof_wait_is_idle(kprof_status status)
{
    return status == KPROF_OK || status == KPROF_INTERNAL;
}
/* Let a thread that still waits for the context finish, for a second at most, before the context ends. */
void kprof_wait_forget(void *context);
