/* Numbers that the kernel tells in files of text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Read the number of the first line "name: number" of a file below `root`, "" for the machine itself. False, with *out
 * as it was: there is no such file or line. */
bool kprof_proc_number(const char *root, const char *path, const char *name, int base, uint64_t *out);
