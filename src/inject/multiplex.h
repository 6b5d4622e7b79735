/* Measures launches that are not repeated. Each is measured in one pass, in its own run; the passes of several launches
 * of one kernel and shape make up a sample, which has all values. Passes come in windows: batches of their own kind,
 * where every group of equal launches has its turn. With the gate held. */
#pragma once

#include "inject/batch/source.h"
#include "inject/batch/state.h"
#include "inject/contexts.h"

typedef enum kprof_turn {
    KPROF_TURN_NOW,   /* measure the launch in the window's pass */
    KPROF_TURN_LATER, /* its group has had its turn in this window, or needs another pass */
    KPROF_TURN_NEVER, /* its group has as many samples as were asked for */
} kprof_turn;

/* Does the launch's group need samples, whatever the pass? `context` may be one that has had no window. */
bool kprof_multiplex_wants(const kprof_profiled_context *context, const kprof_batch_launch *launch);
/* Is it the launch's turn in the window that is open in the context? NEVER also means that memory ran out. */
kprof_turn kprof_multiplex_turn(const kprof_profiled_context *context, const kprof_batch_launch *launch);
/* Count a launch that waits for another window. Return whether enough have gone by for a new window to be worth it. */
bool kprof_multiplex_wants_new_window(const kprof_profiled_context *context, const kprof_batch_launch *launch);

/* Is the launch to be counted or sampled by its instructions, in a batch by itself? `context` may be NULL. Samples come
 * before counters, and both before the passes of each sample. They need a profiler without an object: once there is
 * one, they wait until all samples that can be complete soon are. */
bool kprof_multiplex_wants_instructions(const kprof_profiled_context *context, const kprof_batch_launch *launch,
                                        kprof_source_kind *kind);
/* Find the group of such a launch; NULL: no memory, or too many groups. */
struct kprof_group *kprof_multiplex_group(kprof_profiled_context *context, const kprof_batch_launch *launch);
/* Report such a launch. `note` says why it was measured in another way than asked for; "": it was not. */
void kprof_multiplex_deliver_instructed(kprof_launch_record *record, kprof_source_kind kind, const char *note);
/* Does the context have a measurement for samples, and do some of them lack passes? */
bool kprof_multiplex_is_open(const kprof_profiled_context *context);
/* Should another process of the run have the counters? It should if no sample lacks passes, or after enough windows. */
bool kprof_multiplex_has_had_turn(const kprof_profiled_context *context);
/* Find a pass for the window that opens: one that the opener's group lacks. The context must be idle. */
kprof_status kprof_multiplex_open_window(const kprof_profiled_context *context,
                                         const kprof_batch_launch *opener) KPROF_MUST_CHECK;
/* Can the measurement for samples go on? If not, the samples that there are have been reported. */
bool kprof_multiplex_goes_on(const kprof_profiled_context *context);
/* Begin a measurement for samples. */
kprof_status kprof_multiplex_begin(kprof_profiled_context *context, const kprof_measurement *wanted) KPROF_MUST_CHECK;
/* May the batch use the measurement of the samples? It may if there is one like `wanted` that can hold `least` more
 * ranges. Then the batch's ranges begin after those of the samples, and its capacity is what the samples leave. */
bool kprof_multiplex_shares(kprof_batch_state *state, const kprof_measurement *wanted, size_t least);
/* Note the end of a batch, which may have shared the measurement. */
void kprof_multiplex_note_batch(const kprof_batch_state *state);
/* Move the batch's note to the sample of this range: it concerns that launch alone. */
void kprof_multiplex_keep_note(kprof_batch_state *state, size_t range);
/* Report a launch that is not measured since it was not its turn. */
void kprof_multiplex_skip(const kprof_launch_record *record);
/* Decode the window's pass, which has ended. */
kprof_status kprof_multiplex_read_window(const kprof_batch_state *state) KPROF_MUST_CHECK;
/* Report the window's launches and the samples that are complete now. */
void kprof_multiplex_deliver(const kprof_batch_state *state);
/* Report all of them, and all samples, without values, and `reason`. */
void kprof_multiplex_deliver_reason(const kprof_batch_state *state, const char *reason);
