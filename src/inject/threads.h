/* Threads of the process: the application's, and those that kprof starts. */
#ifndef KPROF_INJECT_THREADS_H
#define KPROF_INJECT_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* Does the process have a thread besides the calling one, CUDA's and kprof's own? True also when that cannot be told.
 * CUDA's have started with it, as below, or, where `names_tell`, are told by their names, "cuda-EvtHandlr" and "cuda"
 * with eleven digits, unless the program has that name. A thread that the application starts in one of CUDA's threads
 * has its name. */
bool kprof_threads_others(bool names_tell);
/* CUDA starts within a call of the calling thread, and has started. If that was the only thread of the application, all
 * threads that are there in the end, besides it, are CUDA's, CUPTI's and kprof's. Else, or when the second is not
 * called in the same thread, nothing is known of them. */
void kprof_threads_cuda_starts(void);
void kprof_threads_cuda_started(void);
/* Start a thread of kprof's own, which no signal of the application reaches. False when there is none to be had. */
bool kprof_threads_start(pthread_t *out, void *(*run)(void *user), void *user);

#endif
