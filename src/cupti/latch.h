/* Holds later work of a stream back until the host lets it go. What is behind it begins a few microseconds later. */
#pragma once

#include "core/status.h"

typedef struct kprof_latch kprof_latch;

/* Make one in the current context, which frees it as it ends. NOT_COLLECTED where the driver has no memory for it. */
kprof_status kprof_latch_open(kprof_latch **out) KPROF_MUST_CHECK;
/* Hold back what is queued in a stream from now on. UNSUPPORTED where a stream of the device cannot wait so: it goes
 * on.
 */
kprof_status kprof_latch_hold(kprof_latch *latch, void *stream) KPROF_MUST_CHECK;
/* Let it go. Any thread may do so, also twice, with or without a context. */
void kprof_latch_let_go(kprof_latch *latch);
/* Free what is ours. NULL is allowed. */
void kprof_latch_close(kprof_latch *latch);
