/* Answers questions about the memory mappings of the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does the range touch a mapping that other processes can share (MAP_SHARED)? True also when nothing can be read. */
bool kprof_mappings_shared(const void *address, size_t size_bytes);

/* Does the range touch the heap or a stack, whose pages hold more than what the application has there? True also when
 * nothing can be read. */
bool kprof_mappings_general(const void *address, size_t size_bytes);
/* Has the process a mapping whose file has a name that begins so? True also when nothing can be read. */
bool kprof_mappings_named(const char *beginning);
/* Find the first pages of a range that the host has in its page tables, as it has since it used them: the range becomes
 * theirs, with what is between them where that is little. All of it when nothing can be read. False: none. */
bool kprof_mappings_find_present(uint64_t *begin, uint64_t *end);
/* Has the host all pages of the range in its page tables? False when nothing can be read. */
bool kprof_mappings_all_present(uint64_t address, size_t size_bytes);
