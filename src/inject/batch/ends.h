/* Keeps batches from what may never end: a kernel that waits for what comes after it, in another stream or on the host.
 * docs/internals.md, "Programs that wait", has the rules. Hold the gate. */
#ifndef KPROF_INJECT_BATCH_ENDS_H
#define KPROF_INJECT_BATCH_ENDS_H

#include "inject/batch/state.h"

#include <pthread.h>

typedef struct kprof_ends {
    size_t unproved;      /* launches from this number on may wait for what comes after them */
    pthread_t thread;     /* the one that launched them: each has a default stream of its own */
    void *stream;         /* theirs; valid while `unproved` is less than the count of launches */
    size_t most_replayed; /* launches behind may wait for what the batch does not have; SIZE_MAX: none does */
    atomic_bool unknown;  /* since the last wait, a kernel was launched that is not known to end by itself */
} kprof_ends;

/* A batch may begin behind a launch that must not be repeated. That one runs when memory has been saved, and what it
 * changes becomes part of what was saved as soon as it has ended. */
typedef struct kprof_behind {
    bool wanted;      /* for the batch that opens next */
    bool stands;      /* behind such a launch, which may not have ended */
    bool begun;       /* its call has returned */
    void *stream;     /* its stream */
    pthread_t thread; /* that launched it */
} kprof_behind;

/* Call this before a launch or transfer is added to the batch. */
void kprof_ends_note_launch(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call);
/* Note that all launches so far have ended, and that no work in another stream can have helped them. */
void kprof_ends_note_all(kprof_ends *ends, const kprof_batch_state *state);
/* Wait for kernels that may wait for the launch, as it comes in another stream than they; false when one of them does
 * not end: the batch must take nothing more. */
bool kprof_ends_check(kprof_ends *ends, kprof_batch_state *state, const kprof_batch_launch *launch);
/* Wait for what comes before a range that begins with the launch. NOT_COLLECTED when it does not end. */
kprof_status kprof_ends_wait_before_range(kprof_ends *ends, kprof_batch_state *state,
                                          const kprof_batch_launch *launch) KPROF_MUST_CHECK;
/* Wait until the application's own runs are over. */
kprof_status kprof_ends_await(kprof_ends *ends, kprof_batch_state *state) KPROF_MUST_CHECK;

/* May a batch begin behind the launch, for which kprof has decided so? */
bool kprof_behind_may_stand(const kprof_batch_launch *launch, const kprof_decision *decision);
/* Look whether the launch that the batch stands behind has ended. Work in another stream before makes the batch
 * worthless. */
void kprof_behind_check(kprof_behind *behind, kprof_batch_state *state, const kprof_call *call);

#endif
