/* Reads the proof: did launches reach memory of the host, which replays may not change? Hold the gate. */
#pragma once

#include "inject/batch/state.h"

/* Decode the proof's pass, which has ended. NOT_COLLECTED where a launch reached memory of the host. Then note which
 * kernel it was, if that is known; else note that all kernels of the batch that ran within the proof are proved. */
kprof_status kprof_proof_check(kprof_batch_state *state) KPROF_MUST_CHECK;
