/* The batch's measurement: its ranges and witnesses, its passes one by one, and their evaluation. Hold the gate. */
#pragma once

#include "inject/batch/state.h"
#include "inject/evaluate.h"

typedef struct kprof_passes {
    bool shares;                   /* the ranges of own runs are part of the samples' measurement */
    bool automatic;                /* each kernel of a replay is a range by itself */
    size_t replayed;               /* this many launches and transfers, the first ones, are replayed */
    uint32_t measured;             /* passes so far */
    kprof_evaluations evaluations; /* of the chosen launches, in their order; made when the passes begin to end */
} kprof_passes;

/* Begin the measurement around own runs: of the proof, or of all there is to measure. While samples lack passes, the
 * batch adds its ranges to theirs. */
kprof_status kprof_passes_begin_own(kprof_passes *passes, kprof_batch_state *state) KPROF_MUST_CHECK;
/* Begin the measurement of replays. */
kprof_status kprof_passes_begin_replays(kprof_passes *passes, kprof_batch_state *state) KPROF_MUST_CHECK;
/* Find a pass for a window that the launch opens, in a measurement for samples. */
kprof_status kprof_passes_begin_window(kprof_batch_state *state, const kprof_batch_launch *opener) KPROF_MUST_CHECK;
/* Return how many ranges the proof of the whole batch may have. */
size_t kprof_passes_count_proof(const kprof_batch_state *state);
/* Can each kernel of the replays be a range by itself? Return how many ranges there will be; 0: they are pushed. */
size_t kprof_passes_count_automatic(const kprof_passes *passes, const kprof_batch_state *state);

kprof_status kprof_passes_start(kprof_batch_state *state) KPROF_MUST_CHECK;
/* *more: another pass has to follow. */
kprof_status kprof_passes_stop(kprof_batch_state *state, bool *more);
/* Decode the counters of the pass that was stopped last. */
kprof_status kprof_passes_decode(kprof_batch_state *state) KPROF_MUST_CHECK;
/* Decode pass number `pass`, from 0, and begin to evaluate what it completes, beside the next pass. */
kprof_status kprof_passes_read(kprof_passes *passes, kprof_batch_state *state, uint32_t pass,
                               bool more) KPROF_MUST_CHECK;
/* Wait until what was begun is evaluated. */
void kprof_passes_wait(kprof_batch_state *state);
