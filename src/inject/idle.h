/* Acts when this process has not launched anything for a while: if it were killed, an open batch would be lost, and
 * another process may wait for the GPU's counters. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct kprof_idle {
    pthread_mutex_t mutex; /* one that checks for errors */
    pthread_cond_t changed;
    atomic_bool running; /* the watching thread */
    bool stopped;
    atomic_bool held;   /* there is something to give back */
    atomic_ulong uses;  /* tells whether the last wait saw a new launch */
    unsigned long seen; /* uses when that wait began; of the watching thread */
    bool (*give_back)(unsigned calls);
    unsigned calls;          /* since the last launch */
    atomic_int asked;        /* a kprof_idle_request: the process is about to call exec or _exit */
    atomic_bool hurries;     /* the next wait is short */
    _Atomic int64_t wait_ns; /* as _set_wait has it */
    bool retries;            /* the function was called for that request and could not answer it */
} kprof_idle;

extern kprof_idle kprof_the_idle;

typedef enum kprof_idle_request { KPROF_NOT_ASKED, KPROF_ASKED, KPROF_BEING_DONE } kprof_idle_request;

/* Set the function that acts. A thread of kprof's own calls it each quarter of a second until it returns true. `calls`
 * counts the calls since the last launch, from 1; it is 0 where something was launched in that quarter. */
void kprof_idle_start(bool (*give_back)(unsigned calls));
/* Watch from now on whether more launches follow, since there is something to give back. Cheap. Call it after every
 * measured launch with the gate still held, so that the next holder of the gate knows of the launch. */
void kprof_idle_watch(void);
/* Do the same, and do not wait long before the function is called next, unless that wait has begun. */
void kprof_idle_hurry(void);
/* Have the function called each `wait_ns` from the next wait on, in place of each quarter of a second; 0: no longer. */
void kprof_idle_set_wait(int64_t wait_ns);
/* May the calling thread be in a signal handler? */
bool kprof_idle_may_be_handler(void);
/* Have the function called at once, with 0, and wait until it has answered: two seconds at most until it begins, and
 * thirty until it ends, or five in a signal handler. Does nothing where no thread watches, as there was nothing to give
 * back yet. It may be called where only async-signal-safe functions may. */
void kprof_idle_ask(void);
/* Have the function called at once, too, but do not wait. */
void kprof_idle_rouse(void);
/* Does somebody wait for an answer that has not begun? */
bool kprof_idle_is_asked(void);
/* The function begins to answer; false when nobody waits, or not any more. */
bool kprof_idle_begin(void);
/* The function has answered. */
void kprof_idle_answer(void);
/* Has nothing been launched since? The function given to kprof_idle_start asks this once it holds the gate, as a
 * launch may have ended while it waited. */
bool kprof_idle_lasts(void);
/* Stop watching, as the process ends. A signal handler may call it, wherever it has interrupted its thread. */
void kprof_idle_stop(void);
/* In a forked child, where the watching thread does not exist. */
void kprof_idle_forget(void);
