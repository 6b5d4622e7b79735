/* Repeats a batch: puts the start back before each pass, and the end back after the last one, also after a failure.
 * Hold the gate, except to read what is atomic. */
#pragma once

#include "inject/batch/passes.h"
#include "inject/batch/source.h"
#include "inject/batch/state.h"
#include "inject/batch/timeline.h"

typedef struct kprof_replay {
    unsigned output_before;          /* pieces of text that the driver had written when the batch was opened */
    _Atomic int64_t longest_pass_ns; /* after which a replay is abandoned */
    _Atomic int64_t since_ns;        /* when the replay that is under way began; 0: none is */
    atomic_size_t operations;        /* of the batch whose replay began last */
    size_t repeated;                 /* launches, since memory was put back last; SIZE_MAX: nobody knows how many */
    size_t compared;                 /* launches of a replay behind which all memory was compared; 0: none was */
    kprof_source source;             /* what is measured of instructions */
    kprof_timelines timelines;       /* what is sampled over time */
} kprof_replay;

/* Set the limit of a pass by what the own run took, which has ended. */
void kprof_replay_set_limit(kprof_replay *replay, const kprof_batch_state *state);
/* Run all passes of the first `passes->replayed` launches. Memory is then as own runs left it, whatever the status. */
kprof_status kprof_replay_run(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes) KPROF_MUST_CHECK;
/* Repeat all launches with no pass, to see whether the host gets the same each time: then all are still counted as
 * replayed. The batch has neither managed memory nor needs, and shares nothing. */
kprof_status kprof_replay_try(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes) KPROF_MUST_CHECK;
