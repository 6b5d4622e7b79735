/* Tells whether the application has one thread only. The preloaded library (inject/exec.c) sees which threads CUDA's
 * libraries and kprof start, and lists them here. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#define KPROF_MAX_FOREIGN_THREADS 128

/* Threads that run no code of the application, by the kernel's id; 0: a free place, -1: a thread is about to begin. */
typedef atomic_int kprof_foreign_threads[KPROF_MAX_FOREIGN_THREADS];

/* The name under which the preloaded library exports its list. Programs that were started without it have none. */
#define KPROF_FOREIGN_THREADS_NAME "kprof_foreign_thread_ids"

/* Find the list. To be called once, early: the loader's lock, which it takes, may be held by a thread that waits for
 * the caller of the function below. */
void kprof_thread_find_list(void);
/* Is the calling thread in the list? */
bool kprof_thread_is_foreign(void);
/* Is the calling thread the only one of the application? False also where that cannot be known. It stays true until the
 * calling thread starts another one. */
bool kprof_thread_is_alone(void);
