/* The open batch, for the files that make it up: batch.c opens and closes it, passes.c runs its passes, deliver.c tells
 * what came of it. With the gate held. */
#ifndef KPROF_INJECT_BATCH_PRIVATE_H
#define KPROF_INJECT_BATCH_PRIVATE_H

#include "cupti/operation.h"
#include "inject/batch.h"
#include "inject/contexts.h"
#include "inject/decision.h"
#include "inject/evaluate.h"

#include <pthread.h>
#include <stdatomic.h>

/* After kprof has waited in vain for the GPU's counters, it does not wait again for so many times as long. */
#define KPROF_VAIN_WAIT_FACTOR 10

/* Why a launch is not repeated: work came in another stream before it had ended. */
#define KPROF_NOT_ALONE                                                                                                \
    "the launch, or one before it, did not end by itself before work came in another stream, and may have waited for " \
    "it"

/* The launch has had no range yet. */
#define KPROF_NO_RANGE SIZE_MAX

typedef struct kprof_open_launch {
    kprof_operation *operation; /* NULL where nothing is replayed */
    kprof_kernel *kernel;       /* NULL: a transfer */
    bool chosen;
    size_t own_range;           /* around its own run, or that of its graph; KPROF_NO_RANGE: none */
    size_t range;               /* in which it is measured: of a chosen launch */
    kprof_launch_record record; /* of a chosen launch */
} kprof_open_launch;

/* The log shows where the time of a batch went: milliseconds, summed over its passes. evaluate_ms is the wait for it.
 */
typedef struct kprof_batch_times {
    double save_ms, prepare_ms, open_ms, try_ms, wait_ms, keep_ms, restore_ms, start_ms, run_ms, stop_ms, decode_ms,
        evaluate_ms, deliver_ms;
} kprof_batch_times;

/* A batch may begin behind a launch that must not be repeated. That one runs when memory has been saved, and what it
 * changes becomes part of what was saved as soon as it has ended. */
typedef struct kprof_behind {
    bool wanted;      /* for the batch that opens next */
    bool stands;      /* behind such a launch, which may not have ended */
    bool begun;       /* its call has returned */
    void *stream;     /* its stream */
    pthread_t thread; /* that launched it */
} kprof_behind;

typedef struct kprof_open_batch {
    atomic_bool open;
    atomic_bool records; /* it is open, replayed, and takes launches and transfers */
    atomic_bool replays; /* it is open, and replayed */
    atomic_bool sealed;  /* it is open, and takes nothing more: it closes as soon as its work has ended */
    atomic_bool window;  /* it is open, and one of multiplex.h */
    kprof_decision_kind kind;
    unsigned needs;                /* kprof_need bits of its first launch */
    atomic_bool saves_host;        /* it puts memory of the host back, and may have several launches */
    unsigned output_before;        /* pieces of text that the driver had written when it was opened */
    atomic_bool unknown_ends;      /* since the last wait, a kernel was launched that is not known to end by itself */
    _Atomic(const char *) spoiled; /* why the batch is not repeated; NULL: it is */
    char closing[128];             /* why it is sealed */
    _Atomic(void *) wanted;        /* a context in which no batch could be opened; NULL: there is none */
    _Atomic(const char *) lost_range; /* why a range around an own run is not what it should be; NULL: all are */
    char note[512];                   /* why launches are measured in another way than asked for; "" when all is well */
    kprof_profiled_context *context;
    const kprof_chip_metrics *metrics;
    atomic_uint sharing;    /* when it was opened */
    bool proved;            /* the application's own run is watched for traffic to host memory */
    bool searching;         /* likewise, launch by launch */
    bool saved;             /* the context's snapshot has the start */
    bool shares;            /* the ranges of own runs are part of the samples' measurement */
    bool automatic;         /* each kernel of a replay is a range by itself */
    bool proof_open;        /* a range of the proof goes on */
    bool proof_paused;      /* for the call that is under way */
    atomic_bool range_open; /* the range of the last own run goes on, as its launch does */
    bool in_pass;           /* a pass is under way around the application's own run */
    size_t capacity;        /* of ranges, besides that of the whole batch */
    size_t count;           /* of launches and transfers */
    size_t chosen_count;
    size_t first_range;               /* the batch's first one; before it are those of samples */
    size_t range_count;               /* of ranges so far: the next one's index */
    size_t least_ranges;              /* that it must be able to hold when it opens */
    const kprof_batch_launch *opener; /* the launch that it is opened for; only while it opens */
    size_t wanted_ranges;             /* that there will be, besides that of the whole batch */
    size_t replay_count;              /* of launches and transfers that are replayed, the first so many */
    size_t most_replayed;             /* those behind may wait for what the batch does not have; SIZE_MAX: none does */
    kprof_behind behind;              /* a launch that it does not have */
    size_t entered;                   /* launches and transfers of the call that is under way */
    unsigned entered_traits;          /* kprof_node_trait bits of these */
    size_t launch_capacity;           /* of the array below */
    kprof_open_launch *launches;      /* [launch_capacity] */
    void *own_stream;                 /* of the last call whose own run is what is measured */
    bool own_is_threads;              /* it is the default stream of the thread that made that call */
    size_t unproved;                  /* launches from this number on may wait for what comes after them */
    pthread_t unproved_thread;        /* the one that launched them: each has a default stream of its own */
    void *unproved_stream;            /* theirs; valid while `unproved` is less than `count` */
    size_t uncompared;                /* launches before this number are of kernels that were compared */
    bool compares_last;               /* passes also repeat the copy to the host that closes the batch */
    kprof_evaluations evaluations;    /* of the chosen ones, in their order; made when the passes begin to end */
    int64_t looked_ns;                /* when others were last looked for that wait for the counters */
    int64_t opened_ns, started_ns, chosen_ns; /* chosen_ns: when the last chosen launch came */
    bool lock_in_vain;                        /* the last wait for another process' measurement was */
    int64_t longest_pass_ns;                  /* after which a replay is abandoned */
    _Atomic int64_t repeated_since_ns;        /* of the pass that is replayed; 0: none is */
    kprof_batch_times times;
    const kprof_batch_listener *listener;
} kprof_open_batch;

extern kprof_open_batch kprof_the_batch;

/* Remember why launches are measured in another way. The first reason stays. */
void kprof_batch_note(const char *text, const char *why);
/* Flush or empty caches, if that is asked for, before a chosen launch runs in `stream`: in a replay, or in its own run
 * where it is measured in that. */
void kprof_batch_clear_caches(void *stream);

/* Return the index of a launch's range, which also names it. A launch without one gets the next index. */
size_t kprof_batch_take_range(size_t *range);
/* Note that all launches so far have ended, and that no work in another stream can have helped them. */
void kprof_batch_note_ends(void);
/* Note that launches of kernels that are not known to end by themselves have not, though they had the time. */
void kprof_batch_note_late(void);

/* passes.c */

/* Wait until the application's own runs are over. */
kprof_status kprof_passes_await(void) KPROF_MUST_CHECK;

/* Get the profiler ready, and start the pass around the application's own run if there is one. */
kprof_status kprof_passes_begin(void) KPROF_MUST_CHECK;
/* Begin a range of the proof, where the batch has one for all its launches. The work before it may still run. */
kprof_status kprof_passes_begin_proof(void) KPROF_MUST_CHECK;
/* End it before work that the proof must not see; true if another one can begin behind that, or there is no proof. */
bool kprof_passes_pause_proof(void);
/* `awaited`: what _await returned. End the pass of the application's own runs and, where these are over, run all other
 * passes. *passes is the number of passes that were measured. Whatever the status, memory is then as the application's
 * own runs left it. */
kprof_status kprof_passes_run(kprof_status awaited, uint32_t *passes) KPROF_MUST_CHECK;

/* Repeat what the batch has, with no pass, to see whether the host gets the `same` each time. Memory is then as the own
 * runs left it, which may go on if that is so. The batch has a chosen launch, else nobody reads its proof. It has
 * neither managed memory nor needs, and shares nothing. */
kprof_status kprof_passes_try(bool *same) KPROF_MUST_CHECK;

/* deliver.c */

/* Report the chosen launches, which have been evaluated. */
void kprof_deliver_all(uint32_t passes);
/* Report an evaluated launch with `reason`, or why it could not be evaluated. Its record has mode and passes already
 * and gets the values and the spreads of the witnesses. A pushed range begins before its kernel: where the witnesses
 * tell by how much, the values leave that time out. */
void kprof_deliver(const kprof_chip_metrics *metrics, const kprof_evaluation *e, kprof_launch_record *record,
                   const char *reason);
/* Report that no launch was measured. */
void kprof_deliver_reason(const char *reason);
/* Write the decoded image of one launch to the folder that the configuration names, if it does; failing to is a
 * warning. */
void kprof_deliver_image(const kprof_profiler *profiler, const kprof_launch_record *launch);

#endif
