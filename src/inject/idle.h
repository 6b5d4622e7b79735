/* Acts when this process has not launched anything for a while: an open batch would be lost if the process were killed,
 * and another process may wait for the GPU's counters. */
#ifndef KPROF_INJECT_IDLE_H
#define KPROF_INJECT_IDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct kprof_idle {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool running, stopped; /* the watching thread */
    atomic_bool held;      /* there is something to give back */
    atomic_ulong uses;     /* tells whether the last wait saw a new launch */
    unsigned long seen;    /* uses when that wait began; of the watching thread */
    bool (*give_back)(unsigned calls);
    unsigned calls; /* since the last launch */
} kprof_idle;

/* What to do then; called on a thread of its own each quarter of a second, with the number of the call since the last
 * launch, from 1, until it returns true. */
void kprof_idle_start(bool (*give_back)(unsigned calls));
/* There is something to give back: watch from now on whether more follows. Cheap: called after every measured launch,
 * with the gate still held, so that who gets the gate next knows of the launch. */
void kprof_idle_watch(void);
/* For what kprof_idle_start was given, once it holds the gate: a launch may have ended while it waited for that. */
bool kprof_idle_lasts(void);
/* The process ends: nothing is given back any more. */
void kprof_idle_stop(void);
/* In a forked child, where the watching thread does not exist. */
void kprof_idle_forget(void);

#endif
