/* Turns the counters of a batch into values while its passes run. Each pass completes some of the metrics, and the
 * launches of the next pass take the GPU longer than their evaluation takes. */
#pragma once

#include "core/config.h"
#include "cupti/profiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define KPROF_EVALUATE_THREADS 16

/* As the end of a range of passes: all that are left. */
#define KPROF_ALL_PASSES UINT32_MAX

/* One witness of one launch: a counter that several passes have. It tells whether they saw the same execution. It
 * starts as zeros. */
typedef struct kprof_witness {
    uint32_t passes;  /* that had it */
    double mean;      /* over those */
    double low, high; /* of the passes' own values */
    double beside;    /* of KPROF_RANGE_CYCLES: KPROF_KERNEL_CYCLES of the same pass; 0 or NaN: the pass had none */
} kprof_witness;

/* The values and witnesses of one launch. */
typedef struct kprof_evaluation {
    size_t launch;  /* the caller's number */
    size_t range;   /* of the measurement, from 0 */
    bool automatic; /* CUPTI made the range for the kernel; else the host pushed it */
    double *values; /* [metrics->metrics.count], the measurement's; NaN where counters are missing, or passes */
    kprof_witness witnesses[KPROF_MAX_WITNESSES];
    kprof_status status;
    char reason[256]; /* why not, when status is not KPROF_OK */
} kprof_evaluation;

/* The launches of a batch that are evaluated. */
typedef struct kprof_evaluations {
    const kprof_profiler *profiler;
    const kprof_chip_metrics *metrics;
    kprof_evaluation *items; /* [count], owned */
    size_t count;
    double *values; /* [count][metrics->metrics.count], owned */
} kprof_evaluations;

typedef struct kprof_evaluate_worker {
    kprof_reader *reader;
    double *values; /* [names.count] */
    pthread_t thread;
} kprof_evaluate_worker;

/* The names that are being evaluated, and the threads that do it. */
typedef struct kprof_evaluator {
    kprof_evaluations *evaluations;
    kprof_strlist names; /* the metrics that are complete, then the witnesses; the strings are the configuration's */
    size_t *indices;     /* [names.count]: which metrics, and which witnesses they are */
    size_t metric_count;
    size_t capacity; /* of both */
    bool prepared;   /* else memory ran out */
    atomic_size_t next;
    size_t running; /* threads */
    kprof_evaluate_worker workers[KPROF_EVALUATE_THREADS];
    const kprof_chip_metrics *readers_metrics; /* what the readers are for: another chip's are made anew */
} kprof_evaluator;

extern kprof_evaluator kprof_the_evaluator;

/* Make `count` evaluations with all values NaN. The caller sets launch and range of each. Borrows its arguments. */
kprof_status kprof_evaluations_make(const kprof_profiler *profiler, const kprof_chip_metrics *metrics, size_t count,
                                    kprof_evaluations *out) KPROF_MUST_CHECK;
void kprof_evaluations_free(kprof_evaluations *evaluations); /* members */

/* Begin to evaluate, after pass `from` was decoded: its witnesses, and the metrics whose last pass is among `from` to
 * `end` - 1. Starts threads. Decode and evaluate nothing else before kprof_evaluate_wait. Needs the gate. */
void kprof_evaluate_begin(kprof_evaluations *evaluations, uint32_t from, uint32_t end);
/* Wait until the threads that kprof_evaluate_begin started have ended, if there are any. */
void kprof_evaluate_wait(void);

/* Add the value of one more pass that was decoded; call this for each pass that has the witness, in their order. CUPTI
 * gives a counter of several passes as the `mean` over those decoded so far, so the pass' own value is (n + 1) * mean
 * - n * (mean before). Return that value; NaN, as `mean` is then, if the image does not have the witness. */
double kprof_witness_add(kprof_witness *witness, double mean);
/* Return (high - low) / mean in percent; NaN when fewer than two passes had it, or the mean is 0. */
double kprof_witness_spread_pct(const kprof_witness *witness);
