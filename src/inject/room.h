/* Chooses how much room a batch gets. */
#ifndef KPROF_INJECT_ROOM_H
#define KPROF_INJECT_ROOM_H

#include "inject/contexts.h"

/* Return how many ranges the next batch of a context can have. */
size_t kprof_room_choose(const kprof_profiled_context *context);
/* Adapt the room of the next batch. The last one had room for `capacity` launches and got `count`; `overhead_ms` is the
 * time that it took besides its launches. */
void kprof_room_note(kprof_profiled_context *context, size_t count, size_t capacity, double overhead_ms);

#endif
