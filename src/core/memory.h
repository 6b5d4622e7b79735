/* How much memory the machine has left for this process. */
#ifndef KPROF_CORE_MEMORY_H
#define KPROF_CORE_MEMORY_H

#include <stddef.h>

/* Bytes that can be allocated without swapping: the kernel's estimate, within the limit of the process' control group.
 * 0 when the kernel does not tell. */
size_t kprof_memory_available_bytes(void);

#endif
