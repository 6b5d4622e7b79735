/* Cold caches before a pass: what the launch finds in L2 must not depend on the restore before it. */
#ifndef KPROF_CUPTI_FLUSH_H
#define KPROF_CUPTI_FLUSH_H

#include "core/status.h"

typedef struct kprof_flush kprof_flush;

/* Memory and kernel for flushing in the current context. NO_MEMORY when the device has no room. */
kprof_status kprof_flush_open(kprof_flush **out) KPROF_MUST_CHECK;
/* Fill L2 with clean lines of our own: dirty ones would be written back during the launch and counted as its traffic.
 * Waits until it is done. */
kprof_status kprof_flush_run(kprof_flush *flush) KPROF_MUST_CHECK;
/* Free the host's part; the device's goes with the context. */
void kprof_flush_close(kprof_flush *flush);

#endif
