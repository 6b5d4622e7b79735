/* The memory of a context as it was before a launch, to be put back before each further pass. */
#ifndef KPROF_CUPTI_SNAPSHOT_H
#define KPROF_CUPTI_SNAPSHOT_H

#include "core/status.h"

typedef struct kprof_snapshot kprof_snapshot;

/* Save the memory that kernels of the context can change: what libcheckpoint covers (device, pool, virtual, managed,
 * pinned and array memory) and the module variables that variables.h knows. What does not fit on the device goes to
 * host memory. The context must be current and idle. UNSUPPORTED, with a logged reason, when not everything can be
 * saved; NO_MEMORY when there is no room on the host either. */
kprof_status kprof_snapshot_take(void *context, kprof_snapshot **out) KPROF_MUST_CHECK;
/* Save the module variables too that became known since; nothing of their modules may have run since the snapshot was
 * taken. */
kprof_status kprof_snapshot_cover(kprof_snapshot *snapshot) KPROF_MUST_CHECK;
/* Seconds that saving took where a part of it had to go to host memory; 0 where all of it fitted on the device. */
double kprof_snapshot_host_save_s(const kprof_snapshot *snapshot);
/* Put it back; the context must be idle. */
kprof_status kprof_snapshot_restore(kprof_snapshot *snapshot) KPROF_MUST_CHECK;
void kprof_snapshot_free(kprof_snapshot *snapshot);

#endif
