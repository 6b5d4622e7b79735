/* The line table of a cubin, for the functions that have been read. */
#pragma once

#include "code/code.h"

#include <libelf.h>

/* Give the instructions in `code` their frames, or its line_state why they have none. */
void kprof_code_read_lines(Elf *elf, kprof_code *code);

/* Give them their lines in the PTX that the cubin was assembled from, and `texts` the names of these texts, which an
 * instruction's `ptx` counts. Do some have one? */
bool kprof_code_read_ptx_lines(Elf *elf, kprof_code *code, kprof_strlist *texts);

/* Give `code` the PTX itself with the lines of its instructions, or neither, where the cubin has none or more than is
 * read. */
void kprof_code_read_ptx(Elf *elf, kprof_code *code);
