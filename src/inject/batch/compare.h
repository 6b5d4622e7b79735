/* Compares what replays give the host with what own runs gave: a kernel may compute something else. Hold the gate. */
#pragma once

#include "inject/batch/state.h"

typedef struct kprof_comparison {
    size_t next; /* kprof has compared the kernels of all launches before this number */
    bool shown;  /* behind the last launch the host has got what kernels computed that kprof has not compared */
    bool last;   /* passes also repeat the copy to the host that closes the batch */
} kprof_comparison;

/* Must the batch end before the operation joins it, unless replays go on from what the own run left there? */
bool kprof_compare_ends_at(const kprof_batch_state *state, const kprof_operation *operation);
/* Does the call that is under way show the host what kernels computed that were not compared yet? */
bool kprof_compare_shows_unknown(kprof_comparison *comparison, const kprof_batch_state *state);
/* Does the call show the host something, in a batch of far more launches than were compared together before? */
bool kprof_compare_is_longer(const kprof_batch_state *state);
/* Must the batch end behind the graph whose launch is under way? */
bool kprof_compare_ends_behind_graph(const kprof_batch_state *state);
/* All replays of the first `replayed` launches have given the host what the own runs gave. */
void kprof_compare_note_same(kprof_batch_state *state, size_t replayed);
