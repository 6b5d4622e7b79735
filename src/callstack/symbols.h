/* The names of native functions, from the symbols in the files of their modules. The report has better ones, with
 * inlined functions, from debug information; these are for what has to be known while the program runs. */
#pragma once

#include <stdint.h>

/* The name of the function at this address of the module's file, as C++ qualifies it and without parameters. The path
 * is the one that kprof_native_module returns. Caller frees; NULL: the file has no symbol for it, or cannot be read. */
char *kprof_symbol_find(const char *module, uint64_t address);
