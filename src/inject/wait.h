/* Waits for the GPU's work with a limit, since that work may wait for the application itself. */
#ifndef KPROF_INJECT_WAIT_H
#define KPROF_INJECT_WAIT_H

#include "core/status.h"

/* Wait until all work of a context is done, ten seconds at most: NOT_COLLECTED then. Where the application has used
 * what makes work wait for the host (host functions, waits for a value in memory, memory that the host writes), or
 * where an earlier such wait was in vain, one second at most. INTERNAL when the context is in error. With the gate
 * held. */
kprof_status kprof_wait_for_context(void *context) KPROF_MUST_CHECK;
/* The same, one second at most in any case. */
kprof_status kprof_wait_with_limit(void *context) KPROF_MUST_CHECK;
/* The context is about to end: have the thread that waits for it, which may be left from an earlier call, done with it
 * first, if it is within a second. */
void kprof_wait_forget(const void *context);

#endif
