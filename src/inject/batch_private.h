/* The open batch, for the files that make it up: batch.c opens and closes it, passes.c runs its passes, deliver.c tells
 * what came of it. With the gate held. */
#ifndef KPROF_INJECT_BATCH_PRIVATE_H
#define KPROF_INJECT_BATCH_PRIVATE_H

#include "cupti/operation.h"
#include "cupti/snapshot.h"
#include "inject/batch.h"
#include "inject/contexts.h"
#include "inject/evaluate.h"
#include "inject/treatment.h"

#include <stdatomic.h>

typedef struct kprof_open_launch {
    kprof_operation *operation; /* NULL where nothing is replayed */
    void *stream;
    bool transfer; /* no launch, and so no range of the measurement */
    bool chosen;
    kprof_launch_record record; /* of a chosen launch */
} kprof_open_launch;

/* Where the time of a batch went, for the log: milliseconds, summed over its passes; evaluate_ms: waiting for it. */
typedef struct kprof_batch_times {
    double save_ms, prepare_ms, open_ms, restore_ms, start_ms, run_ms, stop_ms, decode_ms, evaluate_ms, deliver_ms;
} kprof_batch_times;

typedef struct kprof_open_batch {
    atomic_bool open;
    kprof_treatment_kind kind;
    kprof_kernel *watched; /* the kernel whose run is watched, not measured; NULL: none */
    char note[512];        /* why the launches are measured in another way than asked for; "" when all is well */
    kprof_profiled_context *context;
    const kprof_chip_metrics *metrics;
    kprof_snapshot *snapshot;      /* NULL where nothing is replayed */
    size_t capacity, count;        /* of launches and transfers */
    size_t transfer_count;         /* of them */
    size_t chosen_count;           /* of them */
    size_t unchosen_run;           /* launches since the last chosen one */
    kprof_open_launch *launches;   /* [capacity] */
    kprof_evaluations evaluations; /* of the chosen ones, in their order; made when the passes begin to end */
    int64_t opened_ns, started_ns, first_pass_ns;
    kprof_batch_times times;
    bool abandoned;
    const kprof_batch_listener *listener;
} kprof_open_batch;

extern kprof_open_batch kprof_batch;

/* Remember why a launch is measured in another way, unless something else is the reason already. */
void kprof_batch_note(const char *text, const char *why);
/* Flush caches, where they are to be, before a chosen launch into `stream`, with the launch before it in `after`. */
void kprof_batch_flush(void *stream, void *after);

/* passes.c */

/* Does the batch restore memory and run its launches again? */
bool kprof_passes_repeat(void);
/* Is its launch measured in one pass of several? */
bool kprof_passes_partly(void);
/* Have the profiler ready for the first pass. */
kprof_status kprof_passes_begin(void) KPROF_MUST_CHECK;
/* End the first pass, which the launches' own calls were, and run all others; *passes: how many were measured. Whatever
 * the status, memory is then as one execution leaves it. */
kprof_status kprof_passes_run(uint32_t *passes) KPROF_MUST_CHECK;
/* Only end the first pass: nothing that was chosen has run. */
void kprof_passes_end_empty(void);
/* Free the snapshots of a context that had to wait for its work, which is done now; or forget them, when it ends.
 * NULL: of all contexts. */
void kprof_passes_free_late(const void *context, bool lives);
/* Free those of a context if its work is done within a second. */
void kprof_passes_try_late(void *context);

/* deliver.c */

/* Tell of the chosen launches, which have been evaluated. */
void kprof_deliver_all(uint32_t passes);
/* Tell that none of them was measured. */
void kprof_deliver_reason(const char *reason);

#endif
