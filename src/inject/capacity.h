/* Chooses the capacity of batches. */
#ifndef KPROF_INJECT_CAPACITY_H
#define KPROF_INJECT_CAPACITY_H

#include "inject/contexts.h"

/* Return how many ranges the next batch of a context can have. */
size_t kprof_capacity_choose(const kprof_profiled_context *context);
/* Adapt the capacity of the next batch. The last one could hold `capacity` launches and got `count`; `overhead_ms` is
 * the time that it took besides its launches. */
void kprof_capacity_note(kprof_profiled_context *context, size_t count, size_t capacity, double overhead_ms);

#endif
