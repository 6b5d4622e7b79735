/* Cold caches before a launch: what it finds in L2 must not depend on what kprof did before it. */
#pragma once

#include "core/status.h"

typedef struct kprof_flush kprof_flush;

/* Memory for flushing the caches of the current context's device. NO_MEMORY when the device has no space; UNSUPPORTED
 * when it has no virtual memory management. */
kprof_status kprof_flush_open(kprof_flush **out) KPROF_MUST_CHECK;
/* Prepare what kprof_flush_empty needs, with the driver's compiler. Later calls do nothing. */
void kprof_flush_prepare_to_empty(kprof_flush *flush);
/* Fill L2 with clean lines of our own, as part of a stream of the context, which must be current: dirty lines would be
 * written back during the next launch and counted as its traffic. Takes no kernel, so that an open pass does not count
 * it as a launch. Does not wait. */
kprof_status kprof_flush_run(kprof_flush *flush, void *stream) KPROF_MUST_CHECK;
/* Have later flushes wait for the work that the stream has now, as they would disturb it. The stream may be gone by
 * then. */
kprof_status kprof_flush_behind(kprof_flush *flush, void *stream) KPROF_MUST_CHECK;
/* Once that is prepared, do as ncu does: write back and empty L2, empty the caches of instructions and constants, and
 * leave 2.4 MB of dirty lines in L2, which DRAM writes during the next launch. Waits for the stream first, and takes
 * 0.45 ms on an H200. Where the driver does not allow that, L2 is flushed as above; _shortfall tells. */
kprof_status kprof_flush_empty(kprof_flush *flush, void *stream) KPROF_MUST_CHECK;
/* Return what _empty does not do, and why: "L2 was flushed by copying, not emptied: ..."; NULL if it does all. The text
 * is valid until the next call of _empty. */
const char *kprof_flush_shortfall(const kprof_flush *flush);
/* Free the host's part; the device's goes with the context. */
void kprof_flush_close(kprof_flush *flush);
