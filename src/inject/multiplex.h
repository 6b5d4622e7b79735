/* Measures launches that are not repeated. Each is measured in one pass, in its own run; the passes of several launches
 * of one kernel and shape (grid, block, cluster, dynamic shared memory) make up a sample, which has all values. Passes
 * come in windows: batches of a kind of their own, in which every group of equal launches has its turn. With the gate
 * held. */
#ifndef KPROF_INJECT_MULTIPLEX_H
#define KPROF_INJECT_MULTIPLEX_H

#include "inject/batch.h"
#include "inject/contexts.h"

/* The most passes that a sample can have. */
#define KPROF_MULTIPLEX_PASSES 64

typedef enum kprof_turn {
    KPROF_TURN_NOW,   /* measure the launch in the window's pass */
    KPROF_TURN_LATER, /* its group has had its turn in this window, or needs another pass */
    KPROF_TURN_NEVER, /* its group has as many samples as were asked for */
} kprof_turn;

/* Does the launch's group need samples, whatever the pass? `context` may be one that has had no window. */
bool kprof_multiplex_wants(const kprof_profiled_context *context, const kprof_batch_launch *launch);
/* Is it the launch's turn in the open window? NEVER also means that memory ran out. */
kprof_turn kprof_multiplex_turn(const kprof_batch_launch *launch);
/* Count a launch that is not measured because it waits for another window. Have enough of them gone by to make a new
 * window worth its price? */
bool kprof_multiplex_loses_patience(void);

/* Is there a measurement for samples that can go on? Else the samples that there are have been told of. */
bool kprof_multiplex_goes_on(void);
/* Begin a measurement for samples. */
kprof_status kprof_multiplex_begin(const kprof_measurement *wanted) KPROF_MUST_CHECK;
/* A window opens for the batch's opener: find a pass for it. With the context idle. */
kprof_status kprof_multiplex_open_window(void) KPROF_MUST_CHECK;
/* May the batch use the measurement of the samples? It may if there is one like `wanted` with room for `least` more
 * ranges. Then the batch's ranges begin after those of the samples, and its capacity is the room that is left. */
bool kprof_multiplex_shares(const kprof_measurement *wanted, size_t least);
/* The batch, which may have shared the measurement, is over. */
void kprof_multiplex_note_batch(void);
/* Make the launch, whose turn it is, part of a sample, and return its range. `why` it is not repeated. */
size_t kprof_multiplex_take(const kprof_batch_launch *launch, const char *why);
/* The driver refused this launch, of this range: the sample cannot be completed. */
void kprof_multiplex_drop(size_t range, const kprof_launch_record *refused);
/* Tell of a launch that is not measured, since it was not its turn. */
void kprof_multiplex_skip(const kprof_launch_record *record);
/* The window's pass has ended and can be decoded. */
kprof_status kprof_multiplex_read_window(void) KPROF_MUST_CHECK;
/* Tell of the window's launches, and of samples that are complete now; or why there are none, of all samples. */
void kprof_multiplex_deliver(void);
void kprof_multiplex_deliver_reason(const char *reason);

/* Samples that lack passes will not get them: tell what they have. Before the context's profiler is used for something
 * else, or given back. */
void kprof_multiplex_end(kprof_profiled_context *context);
/* The context goes: the same, and free what is kept. */
void kprof_multiplex_free(kprof_profiled_context *context);

#endif
