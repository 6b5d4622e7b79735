/* kprof trace --pm-sampling: counters of the GPUs over the time of a traced program, in one pass, without a launch
 * being repeated. The thread that watches (idle.h) starts them once the program has a context, and polls them. */
#pragma once

#include "cupti/target.h"

#include <stdbool.h>

/* So many samples of a GPU are written as CUPTI gives them. From then on neighbours are averaged: two, and twice as
 * many each time that the program has run for twice as long. */
#define KPROF_UTILIZATION_SAMPLES 65536

/* The hooks of a process that is traced and sampled, for kprof_target_start; those of recording.h and what samples
 * need. */
extern const kprof_target_hooks kprof_utilization_hooks;

/* Start what has to be started, and write the samples that are there. False: there is nothing to come back for. */
bool kprof_utilization_poll(void);
/* Do the same, whatever the thread that watches is about: something ends. */
void kprof_utilization_settle(void);
/* End all samples, and write the last ones. */
void kprof_utilization_end(void);
/* Begin anew in a forked child: what is sampled is its parent's. */
void kprof_utilization_forget(void);
