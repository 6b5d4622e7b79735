/* Numbers that the kernel tells in files of text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A file below `root`, "" for the machine itself. */
typedef struct kprof_proc_file {
    const char *root, *path;
} kprof_proc_file;

/* Read the number of the file's first line "name: number". False: there is none, and *out is as it was. */
bool kprof_proc_number(const kprof_proc_file *of, const char *name, int base, uint64_t *out);
