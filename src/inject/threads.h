/* The application's other threads. */
#ifndef KPROF_INJECT_THREADS_H
#define KPROF_INJECT_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* Does the process have a thread besides the calling one, CUDA's and kprof's own? True also when that cannot be told.
 * CUDA names its threads "cuda..."; an application that names its own so is taken for CUDA. */
bool kprof_threads_others(void);
/* A thread that the caller has just started is one of kprof's own. */
void kprof_threads_mark_own(pthread_t thread);

#endif
