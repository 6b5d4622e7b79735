/* Loads CUPTI's libraries, which takes 50 ms, beside the application's own start. */
#ifndef KPROF_INJECT_PRELOAD_H
#define KPROF_INJECT_PRELOAD_H

#include <pthread.h>
#include <stdatomic.h>

typedef struct kprof_preload {
    pthread_t thread;
    atomic_bool running; /* and not joined */
} kprof_preload;

/* Begin, in a thread of its own, where the process is to measure counters. What fails here is told by who needs it. */
void kprof_preload_start(void);
/* The process is about to end or to fork: have the loading done with it first, if it is within a second. A child would
 * find locks of libraries that are being loaded taken for ever. */
void kprof_preload_end(void);
/* In a forked child, which has no such thread. */
void kprof_preload_forget(void);

#endif
