/* Takes launches and transfers into the batch. Hold the gate. */
#pragma once

#include "inject/batch/stages.h"

/* See kprof_batch_enter. */
bool kprof_join_launch(kprof_batch *batch, const kprof_batch_launch *launch, kprof_status *status);
/* Before the call joins the batch: look at the launch that the batch stands behind. */
void kprof_join_check_behind(kprof_batch *batch, const kprof_call *call);
/* Add a launch or transfer to the batch, which owns its operation from now on. There is space. */
void kprof_join_add(kprof_batch *batch, const kprof_batch_launch *launch, kprof_operation *operation);
/* Return why the open batch has to close before the launches; NULL: it can hold them, and this many ranges. */
const char *kprof_join_obstacle(const kprof_batch *batch, const kprof_batch_launch *launch,
                                const kprof_decision *decision, size_t ranges);
/* In a search, call this before a launch or graph is added. It can have a range of its own if the context is idle, or
 * share that of the launch before it, which goes on. Else this seals the batch, and returns false. */
bool kprof_join_searches(kprof_batch *batch, const kprof_batch_launch *launch, bool *is_idle);
/* If managed memory is what speaks against repeating the launch, have it stay on the host from now on, and close the
 * open batch. True: decide again. */
bool kprof_join_has_managed_stay(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision);
/* If the host may have changed memory that it shares with the GPU since the last call, add that change to the batch. */
void kprof_join_follow_host(kprof_batch *batch, const kprof_call *call);
