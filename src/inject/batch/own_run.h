/* The application's own run of the batch's launches, and the pass around it: it proves that the launches may be
 * replayed, or is what is measured. Hold the gate. */
#pragma once

#include "inject/batch/passes.h"
#include "inject/batch/state.h"

typedef struct kprof_own_run {
    void *stream;                     /* of the last call that was measured in its own run */
    bool is_threads;                  /* it is the default stream of the thread that made that call */
    bool in_pass;                     /* a pass is under way */
    bool proof_open;                  /* a range of the proof goes on */
    size_t lenient_from;              /* it looks for writes alone from this launch of the batch on */
    bool proof_paused;                /* for the call that is under way */
    atomic_bool range_open;           /* the range of the last launch goes on, as that launch does, or one before it */
    bool tells_end;                   /* it is no graph or range that may wait for more than other launches do */
    atomic_bool spans_calls;          /* a range of the application is open, which the last launch began */
    _Atomic(const char *) overdue;    /* why it went on after its end; NULL: it did not */
    const char *closed_by;            /* what closes the batch */
    _Atomic(const char *) lost_range; /* why a range is not what it should be; NULL: all are */
} kprof_own_run;

/* Get the profiler ready, and start the pass, if there is one, and the proof's range. `opener` opens a window. */
kprof_status kprof_own_run_begin(kprof_own_run *own, kprof_batch_state *state, kprof_passes *passes,
                                 const kprof_batch_launch *opener) KPROF_MUST_CHECK;
/* Begin a range of the proof, where the batch has one for all its launches. The context must be idle. */
kprof_status kprof_own_run_begin_proof(kprof_own_run *own, kprof_batch_state *state) KPROF_MUST_CHECK;
/* The launch that the range begins with may read memory of the host, so that the proof looks for writes alone. Without
 * a range, none can begin before that launch has ended: it would keep work in other streams from running. */
void kprof_own_run_watch_writes(kprof_own_run *own, kprof_batch_state *state);
/* Does the proof look for writes alone at present? */
bool kprof_own_run_is_lenient(const kprof_own_run *own, const kprof_batch_state *state);
/* The launch has ended: let the proof look for reads again, or take only kernels that it has shown to be harmless. */
void kprof_own_run_watch_reads(kprof_own_run *own, kprof_batch_state *state, const kprof_passes *passes);
/* End the proof: kprof began it for a case that has not come, so the batch has none. The context is idle. */
void kprof_own_run_drop_proof(kprof_own_run *own, kprof_batch_state *state);
/* End it before work that the proof must not see; true if another one can begin behind that, or there is no proof. What
 * runs must end by itself: until it has, nothing runs that comes later in another stream. */
bool kprof_own_run_pause_proof(kprof_own_run *own, kprof_batch_state *state, const kprof_passes *passes);

/* Does a pass count what the application launches, so that no kernel may be recorded? */
bool kprof_own_run_counts(const kprof_own_run *own, const kprof_batch_state *state);

/* Begin a range around the call that is under way, whose launches were added to the batch. */
void kprof_own_run_begin_range(kprof_own_run *own, kprof_batch_state *state, const kprof_call *call, size_t range);
/* End it behind the launch. False if the launch goes on, and so does its range: the batch must take nothing more. */
bool kprof_own_run_end_range(kprof_own_run *own, kprof_batch_state *state, const kprof_open_launch *launch);
/* The same in a search: the range of a launch that goes on takes the launches behind it, too, until the context is
 * found idle. `is_idle`: it is now. */
void kprof_own_run_begin_search(kprof_own_run *own, kprof_batch_state *state, const kprof_call *call, bool is_idle);
void kprof_own_run_end_search(kprof_own_run *own, kprof_batch_state *state);
/* Give up the range of the application that is open, if there is one, since `why`. The context must be idle. */
void kprof_own_run_cut_range(kprof_own_run *own, kprof_batch_state *state, const char *why);
/* The application submits work that the batch does not have. */
void kprof_own_run_note_other_work(kprof_own_run *own, kprof_batch_state *state);

/* `awaited`: what kprof_ends_await returned. End the pass, and evaluate or check it. */
kprof_status kprof_own_run_end(kprof_own_run *own, kprof_batch_state *state, kprof_passes *passes,
                               kprof_status awaited) KPROF_MUST_CHECK;
