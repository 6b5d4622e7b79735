/* Keeps the application's other threads out of the driver while one launch is replayed: replay saves and restores
 * device memory, and a copy or launch from another thread in between would be lost or counted. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define KPROF_CACHE_LINE 64

/* The longest wait for other threads to leave the driver, before a launch goes unmeasured. */
#define KPROF_GATE_TIMEOUT_MS 2000

/* Every driver call writes to it: what the calls only read must not share its cache line. */
typedef struct kprof_gate {
    _Alignas(KPROF_CACHE_LINE) atomic_int inside; /* threads inside a shared call */
    atomic_bool exclusive;                        /* a replay is under way or waits for `inside` to fall to 0 */
    _Atomic(pthread_t) owner;                     /* the thread that replays, else 0 */
    pthread_mutex_t mutex;                        /* one that checks for errors */
    pthread_cond_t changed;
    bool timed_out; /* the last wait to be alone timed out */
} kprof_gate;

extern kprof_gate kprof_the_gate;

/* Enter and leave around every driver call that may change memory or state. _enter waits while a replay is under way.
 * A thread may nest calls. */
void kprof_gate_enter_shared(void);
void kprof_gate_leave_shared(void);

/* Enter alone, before a replay. Waits until no other thread is inside a shared call, but for `timeout_ms` at most: a
 * call may itself wait for work that only this thread will submit. After a timeout the next wait is very short. Waits
 * for another replay without a limit, since that ends by itself, but not at all if the timeout is 0. Returns false when
 * the time is over. It also does in a signal handler that has interrupted a replay of this thread, or this very wait:
 * do not replay then. */
bool kprof_gate_enter_exclusive(unsigned timeout_ms);
void kprof_gate_leave_exclusive(void);
/* Does this thread hold the gate alone? Async-signal-safe: a handler may have interrupted it there. */
bool kprof_gate_is_own(void);

/* Wait, for `timeout_ms` at most, until no other thread is in a replay or about to begin one; not for shared calls. */
void kprof_gate_await_exclusive(unsigned timeout_ms);

/* Open the gate in a forked child, where the threads that held it do not exist. */
void kprof_gate_reset(void);
