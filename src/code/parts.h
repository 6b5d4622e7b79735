/* Lines of the parts of a function that the compiler calls from there, such as a division of doubles. */
#pragma once

#include "code/waits.h"

/* The line table says nothing of most such parts: the line before them holds on, often that of the closing brace. Give
 * their instructions the line of those that call them, where this is one. */
void kprof_code_give_parts_lines(const kprof_code *code, kprof_code_function *function,
                                 const kprof_code_listing *listing);
