/* Measures the instructions of a batch's launches, in replays of their own: samples of the program counter before the
 * passes, counters behind them, each chosen launch by itself. A launch that is not repeated is counted or sampled in
 * its own run. What fails here is reported with the launches; their values stay. Hold the gate. */
#pragma once

#include "inject/batch/kept.h"
#include "inject/batch/state.h"

/* The kinds of replays. */
typedef enum kprof_source_kind {
    KPROF_COUNTED, /* of what a launch's instructions count */
    KPROF_SAMPLED, /* with samples */
    KPROF_SOURCE_KINDS,
    KPROF_TIMED = KPROF_SOURCE_KINDS /* only how long launches take: their samples depend on it */
} kprof_source_kind;

struct kprof_group; /* samples.h */

typedef struct kprof_source {
    kprof_kept_list kept;                               /* the values of launches' functions, or why there are none */
    kprof_source_kind kind;                             /* of the replay that is under way */
    unsigned rounds;                                    /* of that kind, so far */
    uint32_t period;                                    /* of the samples, as a power of two */
    bool enabled;                                       /* counters of instructions are */
    bool dirty;                                         /* launches have counted since the last reading */
    struct kprof_group *group;                          /* of the launch that is measured in its own run; NULL: none */
    int64_t begun_ns;                                   /* when that began */
    char reasons[KPROF_SOURCE_KINDS][KPROF_NOTE_BYTES]; /* why launches lack a kind; "": no reason */
} kprof_source;

/* Get ready for the replays of a kind. */
void kprof_source_begin(kprof_source *source, kprof_source_kind kind);
/* Is another replay to follow? When none is, all is as it was before the first one. */
bool kprof_source_next(kprof_source *source, kprof_batch_state *state);
/* Repeat a launch or transfer in the replay. The status is that of the launch. */
kprof_status kprof_source_run(kprof_source *source, kprof_batch_state *state,
                              kprof_open_launch *launch) KPROF_MUST_CHECK;
/* The replay has ended, at all launches or before some of them. */
void kprof_source_end(kprof_source *source, kprof_batch_state *state, kprof_status status);
/* Is the kind asked for? */
bool kprof_source_is_wanted(kprof_source_kind kind);
/* Measure the batch's only launch, which is about to be launched, in its own run. The context is idle, and nothing else
 * is launched there before kprof_source_end_own. `group` is the launch's. */
void kprof_source_begin_own(kprof_source *source, kprof_batch_state *state, struct kprof_group *group, void *stream);
/* The context is idle again. Keep what the launch has; `lost` says why nobody can tell; NULL: kprof can. */
void kprof_source_end_own(kprof_source *source, kprof_batch_state *state, const char *lost);
/* Remember why launches lack what was not measured. The first reason of each kind stays. */
void kprof_source_note(kprof_source *source, const char *reason);
/* Write what was measured, once the records of the launches are written. */
void kprof_source_deliver(kprof_source *source, const kprof_batch_state *state);
/* Forget it all. */
void kprof_source_free(kprof_source *source);
