/* How a launch is to be measured: what is safe decides, and costs second. */
#ifndef KPROF_INJECT_TREATMENT_H
#define KPROF_INJECT_TREATMENT_H

#include "cupti/operation.h"
#include "inject/batch.h"

typedef enum kprof_treatment_kind {
    KPROF_TOGETHER, /* with others in a batch */
    KPROF_ALONE,    /* replayed in a batch of its own, within its launch call */
    KPROF_ONE_PASS, /* in the application's own run alone, in one pass */
    KPROF_REFUSED,  /* not at all */
} kprof_treatment_kind;

typedef struct kprof_treatment {
    kprof_treatment_kind kind;
    /* The application's own run is not measured, but watched whether it ends without the host's help: a kernel that
     * waits for the host would never end inside a measured launch. Never with KPROF_TOGETHER. */
    bool watched;
    const char *why; /* why it is KPROF_ONE_PASS or KPROF_REFUSED, else ""; valid until the thread's next call */
} kprof_treatment;

/* `operation`: the launch's copy, NULL when there is none. */
kprof_treatment kprof_treatment_choose(const kprof_batch_launch *launch, const kprof_operation *operation);
/* The same for a launch that turns out not to be replayable, and `why`. */
kprof_treatment kprof_treatment_unrepeated(const kprof_batch_launch *launch, const kprof_operation *operation,
                                           const char *why);

#endif
