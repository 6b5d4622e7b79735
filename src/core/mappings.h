/* What the process has mapped into its memory. */
#ifndef KPROF_CORE_MAPPINGS_H
#define KPROF_CORE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Does the range touch a mapping that other processes can share (MAP_SHARED)? True also when that cannot be told. */
bool kprof_mappings_shared(const void *address, size_t size_bytes);

#endif
