/* The line table of a cubin, for the functions that have been read. */
#ifndef KPROF_CODE_LINES_H
#define KPROF_CODE_LINES_H

#include "code/code.h"

#include <libelf.h>

/* Give the instructions in `code` their frames, or its line_state why they have none. Returns KPROF_OK in both cases,
 * KPROF_NO_MEMORY otherwise. */
kprof_status kprof_code_read_lines(Elf *elf, kprof_code *code) KPROF_MUST_CHECK;

#endif
