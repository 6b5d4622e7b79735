/* Opens the batch for a launch, and releases it. Hold the gate, but for _begin_call, _is_sampled and _has_put_off. */
#pragma once

#include "inject/batch/stages.h"

/* Open a batch for the launch, as kprof has decided for it. `ranges`: it must be able to hold so many. */
kprof_status kprof_open_batch(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision,
                              size_t ranges) KPROF_MUST_CHECK;
/* Forget all that the batch has. `is_idle`: no work is left in the context, which lives on. */
void kprof_open_release(kprof_batch *batch, bool is_idle);

/* Put the launch off, as the batch is full: the next one that finds the context idle opens one. Returns the reason. */
kprof_status kprof_open_fail_sealed(kprof_batch *batch, const kprof_batch_launch *launch);
/* A call of the application begins in this thread. */
void kprof_open_begin_call(void);
/* The launch of this call completes no sample: see kprof_batch_has_sampled. */
void kprof_open_note_sampled(void);
bool kprof_open_is_sampled(void);
/* Was the launch of this call put off? */
bool kprof_open_has_put_off(void);
