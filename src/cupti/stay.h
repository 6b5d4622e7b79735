/* Managed memory that stays on the host while a batch is open. Kernels reach it over the bus there, where the proof
 * counts it like pinned memory: launches that it clears need none saved or put back, whoever uses it meanwhile. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

/* Is there little enough for that, and did no kernel reach any while it stayed? Needs a current context. */
bool kprof_managed_may_stay(void);
/* From now on it stays while a batch is open. No batch may be open. */
void kprof_managed_stay(void);
/* Bring it to the host and keep it there. The current context must be idle. A failure, after which nothing stays any
 * more, where the application has told the driver where it is to be, or the driver refuses. */
kprof_status kprof_managed_hold(void) KPROF_MUST_CHECK;
/* The driver may put it anywhere again. Did all of it stay, and no more come? Where some left the host, where kernels
 * have `reached` it, as the proof shows, and once more has come or gone three times, nothing stays any more. True, too,
 * where nothing is held. Thread-safe. */
bool kprof_managed_let_go(bool reached);
