/* Samples of the program counter in one context. CUPTI gives a function's samples only if samples were enabled when it
 * was loaded, and in each pass of counters since. So they are armed, enabled and not started, whenever a pass runs, and
 * started around single launches. Arm them just before a measurement of passes begins: once they were started, or the
 * application has launched a kernel since, the pass would fail, or end the process. */
#pragma once

#include "cupti/instructions.h"

typedef struct kprof_pc_samples kprof_pc_samples;

/* Get a context ready; it must be current. `buffer_bytes` of the device's memory hold samples until they are read; 0:
 * as many as usual. */
kprof_status kprof_pc_samples_open(void *context, size_t buffer_bytes, kprof_pc_samples **out) KPROF_MUST_CHECK;
/* Enable samples anew, with a period of 2^`period` cycles, without starting them. The context must be idle.
 * NO_PERMISSION where the driver keeps counters from this user. */
kprof_status kprof_pc_samples_arm(kprof_pc_samples *samples, uint32_t period) KPROF_MUST_CHECK;
/* Disable samples. Once they were started this waits 45 ms for CUPTI's threads, else it takes 0.01 ms (H200). */
kprof_status kprof_pc_samples_disarm(kprof_pc_samples *samples) KPROF_MUST_CHECK;
/* Around one launch, with the context idle. The profiler must have no object that has run a pass. */
kprof_status kprof_pc_samples_start(kprof_pc_samples *samples) KPROF_MUST_CHECK;
kprof_status kprof_pc_samples_stop(kprof_pc_samples *samples) KPROF_MUST_CHECK;
/* Read the samples of the launch. NOT_COLLECTED when CUPTI tells of none, UNSUPPORTED when it does not tell which
 * instructions they are of. */
kprof_status kprof_pc_samples_read(kprof_pc_samples *samples, kprof_instruction_data *out) KPROF_MUST_CHECK;
/* Free what is ours without touching the context, which may be going; nothing, where samples are still enabled. */
void kprof_pc_samples_close(kprof_pc_samples *samples);
