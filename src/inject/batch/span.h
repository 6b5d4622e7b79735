/* A range of the application that the batch repeats as a whole: it joins with its first launch, which has its record,
 * and in each pass one range of CUPTI's is around all that came until its end. Hold the gate. */
#pragma once

#include "inject/batch/state.h"

/* Return why a range of this name is not repeated, whatever its work is; "": nobody needs to know; NULL: it is
 * repeated. */
const char *kprof_span_obstacle(const kprof_kernel *range, const kprof_chip_metrics *metrics);
/* Does replaying the batch have to leave nothing out, and to end nowhere but with the range? */
static inline bool kprof_span_is_whole(const kprof_batch_state *state)
{
    return state->range != NULL;
}
/* The launch or transfer, which is the last of the list, has joined: find its lane. */
void kprof_span_note_work(kprof_batch_state *state, const kprof_batch_launch *work);
/* As kprof_batch_note_order. */
void kprof_span_note_order(kprof_lanes *lanes, const kprof_call *call, bool has_returned);
/* There is no work in any lane. */
void kprof_span_reset(kprof_lanes *lanes);
/* Return the launch that has the range's record. There is one. */
kprof_open_launch *kprof_span_first(const kprof_batch_state *state);
/* Has the range ended before the batch did? `closed_by`: what closes the batch. */
kprof_status kprof_span_check(const kprof_batch_state *state, const char *closed_by) KPROF_MUST_CHECK;
/* The batch is over, after so long. */
void kprof_span_note_end(const kprof_batch_state *state, kprof_status status, int64_t took_ns);
