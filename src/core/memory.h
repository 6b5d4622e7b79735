/* How much memory the machine has left for this process. */
#pragma once

#include <stddef.h>

/* Return the bytes that can be allocated without swapping: the kernel's estimate, within the limits of the process'
 * control group and of the groups above it. 0 when the kernel does not tell, at least 1 when it does. The kernel's
 * files are below `root`: "" is the machine itself. */
size_t kprof_memory_available_bytes(const char *root);

/* Return the bytes that the control groups leave, SIZE_MAX without a limit. `membership` is a file like
 * /proc/self/cgroup. The groups' file systems are below `root`: version 2 there, version 1 in its folder "memory". */
size_t kprof_memory_left_in_groups_bytes(const char *membership, const char *root);
