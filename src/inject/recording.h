/* Begins and ends CUPTI's records of activities, for a trace or a census, in a process that measures nothing, and says
 * what the driver's calls have to do with them. */
#ifndef KPROF_INJECT_RECORDING_H
#define KPROF_INJECT_RECORDING_H

#include "cupti/activities.h"
#include "cupti/target.h"

/* The hooks of such a process, for kprof_target_start. */
extern const kprof_target_hooks kprof_recording_hooks;

/* Hand activities over from now on, before the application uses CUDA. UNSUPPORTED when CUPTI refuses. */
kprof_status kprof_recording_start(const kprof_activity_sink *sink, kprof_activity_scope scope) KPROF_MUST_CHECK;
/* Has that begun, and is the process armed? */
bool kprof_recording_runs(void);
/* Record nothing in a forked child. */
void kprof_recording_forget(void);

#endif
