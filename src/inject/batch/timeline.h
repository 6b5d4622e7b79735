/* Samples the counters of a batch's launches over time, in a replay for each pass of samples. Each chosen launch runs
 * by itself. Whatever fails here is reported with the launches and changes none of their values. Hold the gate. */
#pragma once

#include "inject/batch/kept.h"
#include "inject/batch/passes.h"
#include "inject/batch/state.h"

typedef struct kprof_timelines {
    kprof_kept_list kept;          /* the samples of one pass of a launch, or why it has none */
    size_t pass;                   /* of the replay that is under way */
    uint64_t round_ns;             /* it is for launches of this interval */
    uint64_t interval_ns;          /* as it is configured; 0: it is not */
    char reason[KPROF_NOTE_BYTES]; /* why launches lack samples; "": no reason */
} kprof_timelines;

/* Get ready for replays: choose how often each launch is sampled, by what its passes counted. Returns whether there is
 * to be one. After a failure there is none, and all is as it was before. */
bool kprof_timelines_begin(kprof_timelines *timelines, kprof_batch_state *state, const kprof_passes *passes);
/* Repeat a launch or transfer in the replay. The status is that of the launch. */
kprof_status kprof_timelines_run(kprof_timelines *timelines, kprof_batch_state *state,
                                 kprof_open_launch *launch) KPROF_MUST_CHECK;
/* The replay has ended, at all launches or before some of them. Is another one to follow? When none is, all is as it
 * was before the first one. */
bool kprof_timelines_end(kprof_timelines *timelines, kprof_batch_state *state, kprof_status status);
/* Remember why launches lack what was not measured. The first reason stays. */
void kprof_timelines_note(kprof_timelines *timelines, const char *reason);
/* Write what was measured, once the records of the launches are written. */
void kprof_timelines_deliver(kprof_timelines *timelines, const kprof_batch_state *state);
/* Forget it all. */
void kprof_timelines_free(kprof_timelines *timelines);
