/* Chooses the capacity of batches. */
#pragma once

#include "inject/contexts.h"

/* Return how many ranges a measurement in the context can have: as many as the machine has memory for. `reserves`:
 * counter data is made before it is known how many ranges there will be. */
size_t kprof_capacity_of_memory(const kprof_profiled_context *context, bool reserves);
/* Return how many ranges the next batch of the context can have. */
size_t kprof_capacity_choose(const kprof_profiled_context *context, bool reserves);
/* Return how many samples a measurement of launches that are not repeated can have. */
size_t kprof_capacity_choose_samples(const kprof_profiled_context *context);
/* Adapt what the next batch reserves to one that was full or not. `overhead_ms`: what it took besides its launches. */
void kprof_capacity_note(kprof_profiled_context *context, bool is_full, double overhead_ms);
/* Return how many ranges a measurement of replays is made for: the `needed` ones, and more for the batches that follow
 * as far as `most` allows. */
size_t kprof_capacity_make(kprof_profiled_context *context, size_t needed, size_t most);
