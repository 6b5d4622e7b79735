/* Waits for the GPU's work with a limit, where that work may wait for the application itself. */
#ifndef KPROF_INJECT_WAIT_H
#define KPROF_INJECT_WAIT_H

#include "core/status.h"

/* Wait until all work of a context is done, which must be current. Where the application has used what makes work wait
 * for the host (host functions, waits for a value in memory, memory that the host writes), at most one second:
 * NOT_COLLECTED then. INTERNAL when the context is in error. With the gate held. */
kprof_status kprof_wait_for_context(void *context) KPROF_MUST_CHECK;
/* The same, with the limit in any case. */
kprof_status kprof_wait_with_limit(void *context) KPROF_MUST_CHECK;

#endif
