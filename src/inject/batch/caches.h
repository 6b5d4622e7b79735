/* Empties or flushes the GPU's caches before chosen launches, as --cache-control asks. Hold the gate. */
#pragma once

#include "inject/batch/state.h"

/* Get ready, as the batch opens. A failure becomes its note. */
void kprof_caches_prepare(kprof_batch_state *state);
/* Flush or empty caches, if that is asked for, before a chosen launch runs in `stream`: in a replay, or in its own run
 * where it is measured in that. */
void kprof_caches_clear(kprof_batch_state *state, void *stream);
/* Have later flushes wait for the launch before them in `stream`. */
void kprof_caches_follow(kprof_batch_state *state, void *stream);
