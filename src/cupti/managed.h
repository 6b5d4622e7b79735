/* Managed memory that the host has used: its pages are in the host's page tables or in the GPU's, where the driver was
 * not told to have them in both. */
#pragma once

#include "cupti/allocations.h"

/* List all managed memory, of all contexts: allocations and variables of modules. The caller frees the array. False
 * when not all is known. */
bool kprof_managed_list(kprof_span **out, size_t *count);
/* Can the host and kernels use it at the same time, on the current device? */
bool kprof_managed_moves_freely(void);
/* List what the host has of managed memory, as it has since a kernel or kprof last used it. All contexts must be idle
 * since then: a kernel takes pages back. The caller frees the array. False when the system does not tell, or takes too
 * long. */
bool kprof_managed_list_touched(kprof_span **out, size_t *count);
