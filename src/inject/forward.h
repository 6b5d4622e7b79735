/* The call stacks of PyTorch's forward pass, for the launches of the backward pass, which come from threads that run no
 * Python. Needs the NVTX ranges of torch.autograd.profiler.emit_nvtx, and --nvtx. */
#pragma once

#include <stdint.h>

/* The calling thread has pushed a range of this name: keep its call stack if it is of an operator with a sequence
 * number. Any thread, whether call stacks are kept or not. */
void kprof_forward_note(const char *range);
/* The number of the call stack of the operator that made this node of the backward pass; 0: it is not known. */
uint32_t kprof_forward_find(uint64_t sequence);
