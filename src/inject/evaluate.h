/* Turns the counters of a batch into values while its passes run: each pass completes some of the metrics, and its
 * launches keep the GPU busy for longer than it takes to evaluate those that the pass before completed. */
#ifndef KPROF_INJECT_EVALUATE_H
#define KPROF_INJECT_EVALUATE_H

#include "core/config.h"
#include "cupti/profiler.h"
#include "inject/witness.h"

#include <pthread.h>
#include <stdatomic.h>

#define KPROF_EVALUATE_THREADS 16

/* As the end of a range of passes: all that are left. */
#define KPROF_ALL_PASSES UINT32_MAX

/* The values and witnesses of one launch. */
typedef struct kprof_evaluation {
    size_t launch;  /* the caller's number */
    size_t range;   /* of the measurement, from 0 */
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

/* What is being evaluated, and by whom. */
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

/* Make `count` evaluations with all values NaN. The caller sets the launch and the range of each. The arguments are
 * borrowed. */
kprof_status kprof_evaluations_make(const kprof_profiler *profiler, const kprof_chip_metrics *metrics, size_t count,
                                    kprof_evaluations *out) KPROF_MUST_CHECK;
void kprof_evaluations_free(kprof_evaluations *evaluations); /* members */

/* Begin to evaluate, after pass `from` was decoded: its witnesses, and the metrics whose last pass is among `from` to
 * `end` - 1. Threads are started for this. Do not decode or evaluate anything else before kprof_evaluate_wait. Needs
 * the gate. */
void kprof_evaluate_begin(kprof_evaluations *evaluations, uint32_t from, uint32_t end);
/* Wait for the end of what kprof_evaluate_begin has begun, if anything. */
void kprof_evaluate_wait(void);

#endif
