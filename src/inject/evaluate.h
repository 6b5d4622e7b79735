/* Turns the counters of a batch into values, on several threads: evaluating takes longer than many a launch. */
#ifndef KPROF_INJECT_EVALUATE_H
#define KPROF_INJECT_EVALUATE_H

#include "core/config.h"
#include "cupti/profiler.h"

/* Of one launch of the decoded measurement. */
typedef struct kprof_evaluation {
    size_t launch;       /* in launch order, from 0 */
    double *values;      /* [metrics->metrics.count], the caller's; NaN where counters are missing */
    kprof_status status; /* out */
    char reason[256];    /* out: why not, when status is not KPROF_OK */
} kprof_evaluation;

/* Evaluate all of them; returns when that is done. With the gate held. */
void kprof_evaluate(const kprof_profiler *profiler, const kprof_chip_metrics *metrics, kprof_evaluation *evaluations,
                    size_t count);
/* The witnesses of one launch: values is [metrics->witnesses.count]. With the gate held. */
kprof_status kprof_evaluate_witnesses(const kprof_profiler *profiler, const kprof_chip_metrics *metrics, size_t launch,
                                      double *values) KPROF_MUST_CHECK;

#endif
