/* Reads nvdisasm's listing of a cubin, for the functions that have been read from that. */
#pragma once

#include "code/code.h"

/* Give the functions' instructions in `code` their texts, accesses and waits. `text` ends with a NUL at text[size] and
 * is overwritten. Returns KPROF_OK also where nothing in it is about them, or KPROF_NO_MEMORY. */
void kprof_code_take_listing(kprof_code *code, char *text, size_t size);
