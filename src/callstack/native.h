/* The native frames of the calling thread, as return addresses, the modules that these are in, and their functions. */
#pragma once

#include "callstack/unwind.h"

/* Load what unwinding needs, which must not happen within a call of the driver. */
void kprof_native_prepare(void);
/* Put return addresses, the innermost first and without those in this library, into addresses[most]. Return their
 * number, and whether there are more in *cut. */
size_t kprof_native_walk(kprof_unwind_rules *rules, uintptr_t *addresses, size_t most, bool *cut);
/* The absolute path (if known) of the module with this return address, valid until the next call, and the offset of the
 * call in its file's addresses. NULL: no module has it; somebody has generated the code. One thread at a time. */
const char *kprof_native_module(uintptr_t address, uint64_t *offset);
/* The name of the function at this address of the module's file, from its symbols, as C++ qualifies it and without
 * parameters. The report has better ones, with inlined functions, from debug information; these are for what has to be
 * known while the program runs. `module`: as kprof_native_module returns it. Caller frees; NULL: the file has no symbol
 * for it, or cannot be read. */
char *kprof_symbol_find(const char *module, uint64_t address);
