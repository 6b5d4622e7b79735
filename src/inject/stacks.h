/* Call stacks of launches, where --call-stack asks for them. */
#pragma once

#include <stdint.h>

/* Before the first launch, not within a call of the driver. */
void kprof_launch_stacks_prepare(void);
/* The number of the calling thread's call stack, whose records are written by now; 0: there is none. */
uint32_t kprof_launch_stack(void);
