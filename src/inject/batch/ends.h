/* Keeps batches from what may never end: a kernel that waits for what comes after it, in another stream or on the host.
 * docs/internals.md, "Programs that wait", has the rules. Hold the gate. */
#pragma once

#include "inject/batch/state.h"

#include <pthread.h>

/* Why a batch takes nothing more. */
#define KPROF_OTHER_STREAM "work in another stream, behind a launch that had not ended"

typedef struct kprof_ends {
    size_t unproved;   /* launches from this number on may wait for later work */
    pthread_t thread;  /* it launched them: each thread has a default stream of its own */
    void *stream;      /* theirs; valid while `unproved` is less than the count of launches */
    bool awaits_value; /* from number `value_at` on launches are behind a wait for a value that may not have come */
    size_t value_at;
    size_t most_replayed; /* later launches must not be repeated; SIZE_MAX: all may be */
    const char *why_cut;  /* valid where there is such a number */
    atomic_bool unknown;  /* since the last wait, the application launched a kernel that kprof has not seen end */
    atomic_bool helped;   /* the batch was sealed, and work came that unproved launches may have waited for */
} kprof_ends;

/* A batch may begin behind a launch that must not be repeated. kprof saves memory, lets that launch run, and adds to
 * what it saved what the launch has changed, as soon as it has ended. An open batch may also go on behind the launch if
 * it changes nothing, or if it ends before the next call: replays leave it out, or put what it has left. */
typedef struct kprof_behind {
    bool wanted;          /* for the batch that opens next */
    bool prepared;        /* the batch has one launch, and goes on behind it if that does not end by itself */
    bool stands;          /* behind such a launch, which may not have ended */
    bool goes_on;         /* the batch was open before: */
    size_t first;         /* how many of its launches come before that one */
    bool watched;         /* whether that one changes memory, and the answer is still to be read */
    bool keeps;           /* it does: replays put what it has left, and nothing may come before it has ended */
    kprof_kernel *kernel; /* its */
    bool begun;           /* its call has returned */
    bool gave_up;         /* work came that it may have waited for, or nothing tells what it did */
    void *stream;         /* its stream */
    pthread_t thread;     /* that launched it */
} kprof_behind;

/* Call this before a launch or transfer is added to the batch. */
void kprof_ends_note_launch(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call);
/* A wait for a value joins the batch. What comes behind it in its stream may depend on work that comes later elsewhere.
 */
void kprof_ends_note_value_wait(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call);
/* If the launch comes in another stream than kernels that may wait for it, or than a wait for a value, wait until all
 * have ended; false when one does not end: the batch must take nothing more. */
bool kprof_ends_check(kprof_ends *ends, kprof_batch_state *state, const kprof_batch_launch *launch);
/* The call, which is about to be made, does work that the sealed batch does not have. The gate may be shared. */
void kprof_ends_note_other_work(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call);
/* The last launch is about to run in a range of its own, and all before it have ended, or are known to. */
void kprof_ends_note_alone(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call);
/* All work of a sealed batch has ended, and nothing else can have helped its launches: they took long. */
void kprof_ends_note_late_ends(kprof_ends *ends, const kprof_batch_state *state);
/* All work has ended: unproved launches are proved; but those that other work may have helped must not be replayed. */
void kprof_ends_settle(kprof_ends *ends, const kprof_batch_state *state);
/* Repeat no launch from this number on. `why` is a literal. */
void kprof_ends_cut(kprof_ends *ends, size_t number, const char *why);
/* Wait for what comes before a range that begins with the launch. NOT_COLLECTED when it does not end. */
kprof_status kprof_ends_wait_before_range(kprof_ends *ends, kprof_batch_state *state,
                                          const kprof_batch_launch *launch) KPROF_MUST_CHECK;
/* Wait until the application's own runs are over. */
kprof_status kprof_ends_await(kprof_ends *ends, kprof_batch_state *state) KPROF_MUST_CHECK;

/* May a batch begin behind the launch? `decision` is what kprof has decided for it. */
bool kprof_behind_may_stand(const kprof_batch_launch *launch, const kprof_decision *decision);
/* Can a proof tell of what comes behind the launch, which may read memory of the host meanwhile? It looks for writes.
 */
bool kprof_behind_may_prove(const kprof_kernel *kernel, const kprof_chip_metrics *metrics);
/* The batch that opens is for this launch by itself. Is it to go on behind the launch if that does not end? */
bool kprof_behind_may_come(const kprof_batch_launch *launch, const kprof_decision *decision);
/* Look whether the launch that the batch stands behind has ended. Work in another stream before makes what the batch
 * has behind it worthless; false when the batch must take nothing more. */
bool kprof_behind_check(kprof_behind *behind, kprof_ends *ends, kprof_batch_state *state, const kprof_call *call);
/* That launch has not ended, and what comes next may help it or change what it changes. */
void kprof_behind_give_up(kprof_behind *behind, kprof_ends *ends, kprof_batch_state *state, const char *why);
/* It has ended: see whether it changed memory. */
void kprof_behind_settle(kprof_behind *behind, kprof_ends *ends, const kprof_batch_state *state);
