/* Answers questions about the memory mappings of the process. */
#ifndef KPROF_CORE_MAPPINGS_H
#define KPROF_CORE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Does the range touch a mapping that other processes can share (MAP_SHARED)? True also when nothing can be read. */
bool kprof_mappings_shared(const void *address, size_t size_bytes);

/* Does the range touch the heap or a stack, whose pages hold more than what the application has there? True also when
 * nothing can be read. */
bool kprof_mappings_general(const void *address, size_t size_bytes);
/* Has the process a mapping whose file has a name that begins so? True also when nothing can be read. */
bool kprof_mappings_named(const char *beginning);
/* Does the host have a page of the range in its page tables, as it has since it used it? True also when nothing can be
 * read. */
bool kprof_mappings_present(const void *address, size_t size_bytes);

#endif
