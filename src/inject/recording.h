/* Begins and ends CUPTI's records of activities, for a trace or a census. Beside counters they pause while kprof works,
 * and in passes that count. In a process that measures nothing, kprof follows the driver's calls for this alone. */
#pragma once

#include "cupti/activities.h"
#include "cupti/target.h"

/* The hooks of a process that measures nothing, for kprof_target_start. */
extern const kprof_target_hooks kprof_recording_hooks;

/* Hears of pauses, with the gate held alone. Times are on the clock of activities. */
typedef struct kprof_recording_turns {
    /* This thread, in a call of the application's, begins to work for kprof. A pass has counted what the application
     * launched since `counted_ns`; 0: none has. */
    void (*begin)(int64_t start_ns, int64_t counted_ns);
    void (*end)(int64_t start_ns, int64_t end_ns);
    /* The application calls the driver, also as a part of the runtime; without the gate, where the hooks see calls. */
    void (*called)(uint32_t correlation);
} kprof_recording_turns;

/* Hand activities over from now on, before the application uses CUDA. `turns`, or NULL. UNSUPPORTED: CUPTI refuses. */
kprof_status kprof_recording_start(const kprof_activity_sink *sink, kprof_activity_scope scope,
                                   const kprof_recording_turns *turns) KPROF_MUST_CHECK;
/* Has that begun, and is the process armed? */
bool kprof_recording_runs(void);
/* Are activities recorded in a process that measures launches? */
bool kprof_recording_is_beside(void);
/* kprof works in this thread, in a call of the application: until _release, what kprof asks of the GPU is not recorded.
 * Holds nest. They need the gate, alone, and do nothing but beside counters. */
void kprof_recording_hold(void);
/* With `counts` a pass counts what the application launches from now on: nothing is recorded until the next hold. */
void kprof_recording_release(bool counts);
/* This thread submits work of kprof's in streams of the application: record none of it until _go_on with the answer.
 * Needs the gate, alone. Acts beside counters only, and only while the context is idle, as CUPTI may wait for work. */
bool kprof_recording_leave_out(void *context);
void kprof_recording_go_on(bool left_out);
/* Note what a proof said of kernels that were recorded meanwhile, unless it was `searching`: if memory of the host was
 * `reached`, the records may have done it. */
void kprof_recording_note_proof(bool searching, bool reached);
/* Must no kernel be recorded in a pass that proves? */
bool kprof_recording_spoils_proofs(void);
/* A context has been made: from now on activities are to be written before exec and _exit, too. */
void kprof_recording_note_context(void *context);
/* The application makes a call of the driver that a trace tells of. */
void kprof_recording_note_call(const kprof_call *call);
/* A context is about to end: hand over what CUPTI has of it. */
void kprof_recording_flush(void);
/* Stop recording calls twice, if kprof can tell them by now; in kprof's own thread. Returns whether to ask again. */
bool kprof_recording_save(void);
/* Take what CUPTI still has, as the recording ends. Return how many of its buffers it keeps. */
size_t kprof_recording_finish(void);
/* Record nothing in a forked child. */
void kprof_recording_forget(void);
