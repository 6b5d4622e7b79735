/* Opens the batch for a launch, and releases it. Hold the gate. */
#pragma once

#include "inject/batch/stages.h"

/* Open a batch for the launch, as kprof has decided for it. The batch must be able to hold this many `ranges`. */
kprof_status kprof_open_batch(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision,
                              size_t ranges) KPROF_MUST_CHECK;
/* Forget all that the batch has. `is_idle`: no work is left in the context, which lives on. */
void kprof_open_release(kprof_batch *batch, bool is_idle);

/* Put the launch off, as the batch is full: the next one that finds the context idle opens one. Returns the reason. */
kprof_status kprof_open_fail_sealed(kprof_batch *batch, const kprof_batch_launch *launch);
/* The fate of the launch whose call this thread is in. */
typedef struct kprof_open_outcome {
    bool is_put_off; /* it is not measured, but a later one could be */
    bool is_sampled; /* it completes no sample: see kprof_batch_has_sampled */
} kprof_open_outcome;

extern __thread kprof_open_outcome kprof_this_outcome;
