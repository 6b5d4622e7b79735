/* Call stacks of launches, where --call-stack asks for them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Before the first launch, not within a call of the driver. */
void kprof_launch_stacks_prepare(void);
/* The number of the calling thread's call stack, whose records are written by now; 0: there is none. */
uint32_t kprof_launch_stack(void);
/* Has the stack functions of Python that the filter takes? 0 has none. */
bool kprof_launch_stack_matches(uint32_t stack);
/* If no launch of the process was chosen, name functions that made launches which were refused. */
void kprof_launch_stacks_tell_missed(void);
