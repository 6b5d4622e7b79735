/* Starts kprof's own threads. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Start a thread of kprof's own, which no signal of the application reaches. False when there is none to be had. */
bool kprof_threads_start(pthread_t *out, void *(*run)(void *user), void *user);
/* The calling thread does kprof's work now: its driver calls are not the application's. _start marks its threads so. */
void kprof_threads_mark_own(void);
