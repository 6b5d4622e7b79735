/* Many launches measured together: each runs once in the application's own call, which is the first pass, and is kept;
 * when the batch closes, all are replayed in order for each further pass, with memory restored before it. One batch is
 * open in a process at a time; every function here is called with the gate held exclusively, but for _is_open (and
 * _context_ending, which may also be called inside a shared call). */
#ifndef KPROF_INJECT_BATCH_H
#define KPROF_INJECT_BATCH_H

#include "inject/replay.h"

#include <stdbool.h>

/* Called for each chosen launch once it is measured, or is not: `reason` then says why. */
typedef void kprof_batch_sink(kprof_launch_record *record, const char *reason);

/* May be called by any thread; only a hint without the gate. */
bool kprof_batch_is_open(void);

/* Take a launch into the open batch, or open one for it if it is `chosen`; the driver call that follows is its first
 * pass. Launches that are not chosen are replayed too, since they change memory. False when the launch cannot be part
 * of a batch (the open one was closed then): it has to be measured alone, or not at all. */
bool kprof_batch_enter(const kprof_replay_launch *launch, bool chosen, kprof_batch_sink *sink);
/* After the driver call. Closes the batch when it is full. */
void kprof_batch_leave(const kprof_call *call);
/* Replay the open batch, hand its launches to the sink, and forget it. Does nothing when none is open. */
void kprof_batch_close(void);
/* The context goes, and with it the open batch if that is its own: nothing is replayed any more. */
void kprof_batch_context_ending(void *context);
/* In a forked child, which has no part in its parent's batch. */
void kprof_batch_forget(void);

#endif
