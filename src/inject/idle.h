/* Gives the GPU's counters back when this process has not measured for a while, since another process may wait for
 * them: the first pass after that costs about 150 ms more. */
#ifndef KPROF_INJECT_IDLE_H
#define KPROF_INJECT_IDLE_H

/* A measurement ended: watch from now on whether another one follows. */
void kprof_idle_watch(void);
/* The process ends: nothing is given back any more. */
void kprof_idle_stop(void);
/* In a forked child, where the watching thread does not exist. */
void kprof_idle_forget(void);

#endif
