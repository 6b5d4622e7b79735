/* Decides how a launch is measured: safety comes first, costs second. */
#ifndef KPROF_INJECT_TREATMENT_H
#define KPROF_INJECT_TREATMENT_H

#include "cupti/operation.h"
#include "inject/batch.h"

typedef enum kprof_treatment_kind {
    KPROF_REPLAYED,    /* in replays after its own run, with others in a batch */
    KPROF_LIVE,        /* in its own run, in the one pass that there is, with others in a batch */
    KPROF_MULTIPLEXED, /* in its own run, in one pass of several, where it is its turn */
    KPROF_WATCHED,     /* not this time: it is watched whether it ends by itself */
    KPROF_REFUSED,     /* not at all */
} kprof_treatment_kind;

typedef struct kprof_treatment {
    kprof_treatment_kind kind;
    const char *why; /* why it is none of the first two, else ""; valid until the thread's next call */
} kprof_treatment;

/* Choose for a launch; `operation` is its copy, NULL when there is none. */
kprof_treatment kprof_treatment_choose(const kprof_batch_launch *launch, const kprof_operation *operation);
/* Choose again for a launch that cannot be replayed after all; `why` says the reason. */
kprof_treatment kprof_treatment_unrepeated(const kprof_batch_launch *launch, const char *why);
/* May the launch wait for what the host, another GPU, another process or a network card does after it? */
bool kprof_treatment_may_wait(const kprof_batch_launch *launch);
/* Can kernels of this process reach memory that a replay does not put back? Then a batch needs a proof that its own
 * did not. */
bool kprof_treatment_needs_proof(void);
/* Will batches be proved? That takes counters which not every chip has. */
bool kprof_treatment_proves(const kprof_chip_metrics *metrics);

#endif
