/* A batch is a group of launches that are measured together. Each launch runs once in the application's own call, as it
 * would without kprof. The batch keeps a copy of it, and of the transfers and other launches in between. When the batch
 * closes, kprof checks that no launch reached memory which is not saved. Then it replays all of them in order, once for
 * each pass, always starting from the memory as it was before the batch. At the end it puts memory back as the
 * application's own run left it. If one pass is enough, or a launch must not be repeated, kprof measures the
 * application's own run instead. A process has at most one open batch.
 *
 * Callers hold the gate exclusively. Exceptions: _is_open, _records, _replays, _is_sealed, _is_wanted, _is_window,
 * _is_of, _saves_host, _has_host, _repeats_for_long, _note_unknown_end and _spoil need no gate, and _context_ending may
 * also be called inside a shared call.
 */
#pragma once

#include "inject/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The one of the process: batch/stages.h has its members, for batch.c and tests. */
extern struct kprof_batch kprof_the_batch;

/* Any thread may call this; without the gate the answer is only a hint. */
bool kprof_batch_is_open(void);
/* Does the open batch also take transfers and launches that are not chosen? Without the gate this is only a hint. */
bool kprof_batch_records(void);
/* Return the kprof_monotonic_ns when the last batch began to open. Hold the gate. */
int64_t kprof_batch_opened_ns(void);
/* Is the open batch one that is repeated? It may take nothing more. */
bool kprof_batch_replays(void);
/* Does the open batch take nothing more, and only wait for its work to end? */
bool kprof_batch_is_sealed(void);
/* A call of the application begins in this thread. */
void kprof_batch_begin_call(void);
/* Was the launch of this call put off, since the GPU's work goes on? */
bool kprof_batch_has_put_off(void);
/* Was the launch of this call only watched, or measured for a sample that still lacks passes, or not needed for one?
 * Then -c does not count it: of a sample, -c counts the launch with the last pass. */
bool kprof_batch_has_sampled(void);
/* Has a launch in the context gone unmeasured because the GPU was still at work? Then the next launch that finds the
 * context idle opens a batch. */
bool kprof_batch_is_wanted(const void *context);
/* Is the open batch a window of launches that are not repeated? Then only calls that end or hinder a pass close it. */
bool kprof_batch_is_window(void);
/* Do replays of the open batch put memory of the host back, pinned or registered? Any call that may bring such memory,
 * or take it away, must close the batch first. */
bool kprof_batch_saves_host(void);
/* Is it such a batch, or one that is repeated in a process with managed memory? Then only the application's thread
 * replays it, within one of its calls. */
bool kprof_batch_has_host(void);
/* Is it such a batch while other processes wait for the counters? Then it is to be replayed before the application goes
 * on behind a wait: the process may pause there, and the batch would be lost. */
bool kprof_batch_ends_at_wait(void);
/* Does the call that enters work in a stream of the open batch's context? Without the gate a hint. */
bool kprof_batch_is_of(const kprof_call *call);
/* Has a replay gone on for `limit_ns`, and for too long? *count: what it repeats. Without the gate a hint. */
bool kprof_batch_repeats_for_long(int64_t limit_ns, size_t *count);
/* The application is about to submit work that the sealed batch does not have, or to do what kprof does not know. The
 * gate may be shared. */
void kprof_batch_note_other_work(const kprof_call *call);
/* A kernel runs outside of all ranges, and kprof has not seen it end by itself. */
void kprof_batch_note_unknown_end(void);
/* Do not repeat the open batch: something happened that it does not know of. `reason`, a literal, says what. */
void kprof_batch_spoil(const char *reason);
/* A call is about to take away what replays use, and the batch is spoiled. The work that kprof has put behind a launch
 * that has not ended must not touch it. */
void kprof_batch_stop_behind(void);
/* Return the kprof_sharing bits that matter to the open batch and have been set since it was opened. */
unsigned kprof_batch_new_sharing(void);

/* Take a launch into the open batch, or open one for it if it is chosen; the driver call that follows is its own run.
 * False when the launch is in no batch: the open one was closed then, and `status` is KPROF_OK for a launch that is not
 * chosen, else why it will not be measured. */
bool kprof_batch_enter(const kprof_batch_launch *launch, kprof_status *status);
/* Do the same for a call that stands for `count` launches and transfers, such as a graph launch. Either all are taken
 * or none. They are measured in replays only. */
bool kprof_batch_enter_all(const kprof_batch_launch *launches, size_t count, kprof_status *status);
/* Call this after the driver call. It closes the batch when it is full or has been open for too long. */
void kprof_batch_leave(const kprof_call *call);
/* A range of the application ends. If the open batch measures it, take the measurement to its end. */
void kprof_batch_end_range(void);
/* The same without the gate, if the thread could not enter it: the batch gives the range up later. `why`: a literal. */
void kprof_batch_note_overdue_range(const char *why);
/* Is such a range open? Without the gate a hint. */
bool kprof_batch_spans_calls(void);
/* A call of the program enters, or has returned. What a range that is repeated runs behind it comes behind what it may
 * have waited for. Needs no gate. */
void kprof_batch_note_order(const kprof_call *call, bool has_returned);
/* Have the open batch keep the memory that the call is about to free, or the module that it unloads: the call takes
 * something else away, or its pool keeps the memory. False where it cannot, or where none is open. */
bool kprof_batch_keep_freed(const kprof_call *call);
/* Have the open batch save the memory that the call has brought. */
void kprof_batch_cover(const kprof_call *call);
/* Replay the open batch, report its launches, and forget it. `why` tells the log what closes it. If its work does not
 * end in the time that the thread may wait, seal the batch instead: it takes nothing more, and a later call closes it.
 * Returns whether no batch is open now. */
bool kprof_batch_close(const char *why);
/* Close the open batch if its work has ended, without waiting; else leave it. Returns whether none is open now. */
bool kprof_batch_close_idle(const char *why);
/* Close the open batch, or give it up where that would have to wait. */
void kprof_batch_end(const char *why);
/* The same as the process ends: a range that is open ends, too. */
void kprof_batch_end_with_process(const char *why);
/* Give up the open batch if it belongs to the context, which ends. Returns true if a pass was under way. */
bool kprof_batch_context_ending(void *context);
/* Forget the parent's batch, in a forked child. */
void kprof_batch_forget(void);
