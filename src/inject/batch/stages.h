/* The open batch, with what each of its stages keeps. The files that take a batch from one stage to the next have it:
 * open.c, join.c, graph.c, close.c, and batch.c, which owns the one of the process. */
#pragma once

#include "inject/batch/compare.h"
#include "inject/batch/ends.h"
#include "inject/batch/own_run.h"
#include "inject/batch/passes.h"
#include "inject/batch/replay.h"
#include "inject/batch/state.h"

typedef struct kprof_opening {
    _Atomic(void *) wanted; /* kprof could not open a batch in this context; NULL: there is none */
    bool lock_timed_out;    /* the last wait for another process' measurement timed out */
} kprof_opening;

typedef struct kprof_closing {
    char why[128];         /* the batch is sealed */
    int64_t begun_ns;      /* when the batch that closes began to */
    int64_t looked_ns;     /* when kprof last looked for others that wait for the counters */
    size_t first_unproved; /* launches before this one have been proved, where managed memory stays on the host */
    bool lost_in_pause;    /* a batch that only the application's thread could have replayed */
} kprof_closing;

typedef struct kprof_batch {
    kprof_batch_state state;
    kprof_opening opening;
    kprof_ends ends;
    kprof_behind behind;
    kprof_own_run own;
    kprof_comparison comparison;
    kprof_passes passes;
    kprof_replay replay;
    kprof_closing closing;
    bool awaits_value; /* the call that is under way makes a stream wait for a value */
} kprof_batch;
