/* The state that measuring needs in each context. It is made at the context's first chosen launch. */
#ifndef KPROF_INJECT_CONTEXTS_H
#define KPROF_INJECT_CONTEXTS_H

#include "core/config.h"
#include "cupti/flush.h"
#include "cupti/profiler.h"
#include "cupti/snapshot.h"

#include <pthread.h>

typedef struct kprof_profiled_context {
    void *context;
    uint32_t device;
    const kprof_chip_metrics *metrics; /* borrowed */
    kprof_profiler *profiler;
    struct kprof_multiplex *multiplex; /* NULL until wanted */
    bool has_counters;                 /* of the device */
    kprof_flush *flush;                /* NULL until wanted */
    char flush_reason[160];            /* why there is none */
    bool flush_failed;                 /* wanted, and there was no room */
    unsigned growths;                  /* how often the room of a batch has been doubled */
    double ready_ms;                   /* what the first pass of a profiler took to start */
    double repeated_ms;                /* what full batches in a row took to start and stop their passes */
    size_t last_launches;              /* of the last batch */
    unsigned small_batches;            /* in a row: far fewer launches than there was room for */
    kprof_snapshot *snapshot;          /* NULL until wanted */
    bool searches;     /* the last batch reached host memory: the next one finds out which launch does */
    bool diverges;     /* a replay computed something else: later batches end before the host gets to know */
    bool left_in_pass; /* a pass could not be ended, because the GPU's work did not end */
    struct kprof_profiled_context *next;
} kprof_profiled_context;

typedef struct kprof_context_list {
    pthread_mutex_t mutex; /* one that checks for errors */
    kprof_profiled_context *contexts;
    void **live; /* [live_count]: all that the application has */
    size_t live_count, live_capacity;
    bool incomplete; /* there was no memory to list one */
} kprof_context_list;

/* The context's own, which must be current; other contexts of its device give the counters back. NOT_COLLECTED when the
 * work of one of them does not end within a second. Thread-safe; what it points to is for one launch at a time. */
kprof_status kprof_contexts_open(void *context, const kprof_chip_metrics *metrics,
                                 kprof_profiled_context **out) KPROF_MUST_CHECK;
/* The context's own, NULL where nothing was measured yet. With the gate held. */
const kprof_profiled_context *kprof_contexts_find(const void *context);
/* A context of the application's is there from now on, measured or not. Thread-safe. */
void kprof_contexts_note(void *context);
/* Wait until the work of all contexts but this one is done, as kprof_wait_with_limit does: what that work writes to
 * this one's memory, a replay would take back. NOT_COLLECTED when it does not end in time. With the gate held. */
kprof_status kprof_contexts_wait_for_others(const void *context) KPROF_MUST_CHECK;
/* It ends; `in_pass`: with a pass under way, which nothing ends any more. */
void kprof_contexts_forget(void *context, bool in_pass);
/* Is the work of all contexts done? Waits for each as kprof_wait_with_limit does. With the gate held. */
bool kprof_contexts_idle(void);
/* Give the device memory that kprof keeps back to the application, but for that of a context whose work does not end
 * within a second. With the gate held, and no batch open. */
void kprof_contexts_release_memory(void);
/* Let other processes have the counters, but for those of a context whose work does not end within a second; the next
 * measurement takes them again. With the gate held. */
void kprof_contexts_release(void);

/* Tell what there is of samples that lack passes, in all contexts; see multiplex.h. With the gate held. */
void kprof_contexts_end_samples(void);

#endif
