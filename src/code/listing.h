/* Reads nvdisasm's listing of a cubin, for the functions that have been read from that. */
#pragma once

#include "code/code.h"

/* Give the functions' instructions in `code` their texts, accesses and waits. `text` ends with a NUL at text[size] and
 * is overwritten. Nothing in it may be about them. */
void kprof_code_take_listing(kprof_code *code, char *text, size_t size);
