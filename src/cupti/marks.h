/* Marks behind the application's work, which tell how far the GPU is without waiting for it. */
#ifndef KPROF_CUPTI_MARKS_H
#define KPROF_CUPTI_MARKS_H

#include "cupti/driver_call.h"

#include <stdint.h>

/* How far the GPU is in a context. */
typedef struct kprof_progress {
    uint64_t passed; /* marks so far */
    uint64_t ahead;  /* marks that the GPU has not passed yet */
    uint64_t first;  /* number of the oldest of these, of one context; 0: there is none, or it is not known */
} kprof_progress;

/* Put a mark behind the launch, graph launch or transfer that has just returned, in its context and its stream, which
 * must not be captured. If the driver refuses, there is no mark. `what` was launched, NULL: nobody asks. Return the
 * launch before the context's newest earlier mark if the GPU passed that mark within a millisecond; else NULL.
 * Thread-safe. */
void *kprof_marks_set(void *context, void *stream, void *what);
/* Look how far the GPU is in a context, NULL for all of them: all is 0 where no mark was put. Takes 0.2 us for each
 * mark ahead. Thread-safe. */
kprof_progress kprof_marks_look(const void *context);
/* The context ends. Thread-safe. */
void kprof_marks_forget(const void *context);

#endif
