/* Decides how a launch is measured: safety comes first, costs second. */
#pragma once

#include "cupti/operation.h"
#include "inject/kernels.h"

/* Why a launch is not repeated: work came in another stream before it had ended. */
#define KPROF_NOT_ALONE                                                                                                \
    "the launch, or one before it, did not end by itself before work came in another stream, and may have waited for " \
    "it"

/* Why a launch behind a wait for a value is not repeated: as KPROF_NOT_ALONE. */
#define KPROF_BEHIND_VALUE                                                                                             \
    "the launch came behind a wait for a value in memory that had not come before work came in another stream, and "   \
    "may depend on that work"

/* Why a launch is not measured, though what is queued behind it is. */
#define KPROF_DID_NOT_END                                                                                              \
    "the launch did not end by itself while nothing else was done, and may have waited for the application"
#define KPROF_BEHIND_IT "; what is queued behind it is measured"

/* Why a launch behind one that may wait is not measured. */
#define KPROF_NOT_WATCHED                                                                                              \
    "the launch came behind one that may have waited for the application, so that nothing could tell whether it "      \
    "reached memory of the host, and no launch of its kernel has shown that it does not"

/* Why a launch is not measured: an earlier one of its kernel did not end. */
#define KPROF_MAY_WAIT                                                                                                 \
    "an earlier launch of the kernel did not end by itself while nothing else was done, and may have waited for the "  \
    "application"

typedef enum kprof_decision_kind {
    KPROF_REPLAYED,    /* in replays after its own run, with others in a batch */
    KPROF_LIVE,        /* in its own run, in the one pass that there is, with others in a batch */
    KPROF_MULTIPLEXED, /* in its own run, in one pass of several, when it is its turn */
    KPROF_INSTRUCTED,  /* likewise, in a pass that counts or samples its instructions, alone in its batch */
    KPROF_WATCHED,     /* not this time: kprof watches whether it ends by itself */
    KPROF_REFUSED,     /* not at all */
} kprof_decision_kind;

/* Replays of a launch may need more than memory of the device put back. A launch that prints has a batch of its own,
 * which is replayed before its call returns. */
typedef enum kprof_need {
    KPROF_DROPS_OUTPUT = 1, /* what the kernel prints then must not be seen */
    KPROF_SAVES_HOST = 2,   /* memory of the host is put back, too, while no code of the application can run */
    KPROF_ON_TRIAL = 4,     /* it takes an address of the host, and the proof tells whether it uses that */
} kprof_need;

typedef struct kprof_decision {
    kprof_decision_kind kind;
    const char *why; /* why it is none of the first two, else ""; valid until the thread's next call */
    unsigned needs;  /* kprof_need bits, of a launch that is replayed */
} kprof_decision;

/* Is the launch measured in its own run alone, as one pass is enough? It joins no replayed batch, and needs no copy. */
bool kprof_decision_is_live(const kprof_batch_launch *launch);
/* Decide for a launch; `operation` is its copy, NULL when there is none. */
kprof_decision kprof_decision_make(const kprof_batch_launch *launch, const kprof_operation *operation);
/* Return why a kernel of a graph must not be repeated among the graph's others; NULL if it may. The text is valid until
 * the thread's next call. */
const char *kprof_decision_node_obstacle(const kprof_batch_launch *node, const kprof_operation *operation);
/* Would the launch be repeated, or with less risk to be lost, if managed memory stayed on the host while a batch is
 * open? `decision`: of the launch. */
bool kprof_decision_wants_managed_to_stay(const kprof_batch_launch *launch, const kprof_decision *decision);
/* Decide again for a launch that cannot be replayed after all; `why` says the reason. */
kprof_decision kprof_decision_unrepeated(const kprof_batch_launch *launch, const char *why);
/* May a batch that is repeated begin behind the launch? `decision`: of the launch, which is not repeated itself. */
bool kprof_decision_may_follow(const kprof_batch_launch *launch, const kprof_decision *decision);
/* May the launch wait for memory that the host writes after it, or a graph for functions of the host? */
bool kprof_decision_may_wait_for_host(const kprof_batch_launch *launch);
/* May another GPU, another process or a network card write memory of the GPU? */
bool kprof_decision_has_other_writers(void);
/* May the launch wait for what the host, another GPU, another process or a network card does after it? */
bool kprof_decision_may_wait(const kprof_batch_launch *launch);
/* May any work of the process? */
bool kprof_decision_may_be_helped(void);
/* Return why memory of the host that the GPU reaches may not be saved and restored in replays now, by the thread that
 * launches in the context; NULL if it may. A batch is replayed before that thread leaves the call, since then the
 * application may change the memory with no call at all. */
const char *kprof_decision_host_obstacle(const void *context);
/* Can kernels of this process reach memory that a replay does not put back? Then a batch needs a proof that its own
 * did not. */
bool kprof_decision_needs_proof(void);
/* Has an earlier launch of the kernel reached memory of the host, or do the arguments have some? */
bool kprof_decision_is_suspicious(const kprof_batch_launch *launch, const kprof_operation *operation);
/* It is not suspicious, and an earlier proof has shown that the kernel does not reach memory of the host. */
bool kprof_decision_is_proved(const kprof_batch_launch *launch, const kprof_operation *operation);
/* Will kprof prove batches? Not every chip has the counters for that. */
bool kprof_decision_proves(const kprof_chip_metrics *metrics);
