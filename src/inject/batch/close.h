/* Closes the batch: waits for its own run, replays it, and reports its launches. Hold the gate. */
#pragma once

#include "inject/batch/stages.h"

/* Replay the open batch, report its launches, and forget it. `why` says for the log what closes it. Where its work does
 * not end for as long as the thread may wait, seal the batch instead. Returns whether no batch is open now. */
bool kprof_close_batch(kprof_batch *batch, const char *why);
/* Close the open batch, or give it up where that would have to wait. */
void kprof_close_or_give_up(kprof_batch *batch, const char *why);
/* Take nothing more: a later call closes the batch, when its work has ended. What the application submits until then
 * runs behind all that replays repeat. */
void kprof_close_seal(kprof_batch *batch, const char *why);
/* A call has copied to the host what kernels computed that kprof has not compared yet. The next launch tries replays,
 * which compare all copies before it. Where kprof may not try them, close the batch, whose passes compare the copy, and
 * return true. */
bool kprof_close_behind_copy(kprof_batch *batch);
/* Call this before a launch joins. If a trial is due, find out whether replays give the host the same: then the batch
 * goes on, else close it. While managed memory stays on the host, find out likewise whether new kernels reached it. */
void kprof_close_or_go_on(kprof_batch *batch);
/* Has the batch been open for so long that it is time to close it? */
bool kprof_close_is_due(kprof_batch *batch);
/* Report that no launch of the batch was measured. */
void kprof_close_deliver_reason(kprof_batch *batch, const char *reason);
