/* The line table of a cubin, for the functions that have been read. */
#pragma once

#include "code/code.h"

#include <libelf.h>

/* Give the instructions in `code` their frames, or its line_state why they have none. Returns KPROF_OK in both cases,
 * KPROF_NO_MEMORY otherwise. */
kprof_status kprof_code_read_lines(Elf *elf, kprof_code *code) KPROF_MUST_CHECK;

/* Give them their lines in the PTX that the cubin was assembled from; *has_lines: some have one. Returns as above. */
kprof_status kprof_code_read_ptx_lines(Elf *elf, kprof_code *code, bool *has_lines) KPROF_MUST_CHECK;

/* Give `code` the PTX itself with the lines of its instructions, or neither, where the cubin has none, has several
 * texts or more of one than is read. Returns KPROF_OK in all these cases, KPROF_NO_MEMORY otherwise. */
kprof_status kprof_code_read_ptx(Elf *elf, kprof_code *code) KPROF_MUST_CHECK;
