/* Keeps the application's other threads out of the driver while one launch is replayed: replay saves and restores
 * device memory, and a copy or launch from another thread in between would be lost or counted. */
#ifndef KPROF_INJECT_GATE_H
#define KPROF_INJECT_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct kprof_gate {
    atomic_int inside;     /* threads inside a shared call */
    atomic_bool exclusive; /* a replay is under way or waits for `inside` to fall to 0 */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool in_vain; /* nobody got to be alone since somebody waited in vain */
} kprof_gate;

/* Around every driver call that may change memory or state. _enter waits while a replay is under way. A thread may nest
 * calls. */
void kprof_gate_enter_shared(void);
void kprof_gate_leave_shared(void);

/* Before a replay: waits until no other thread is inside such a call, `timeout_ms` at most, since a call may itself
 * wait for work that only this thread will submit; hardly at all where the last wait was in vain. Another replay is
 * waited for without a limit, since it ends by itself, but not at all with a timeout of 0. False when that time is
 * over, or when this thread is in the middle of a replay: do not replay. */
bool kprof_gate_enter_exclusive(unsigned timeout_ms);
void kprof_gate_leave_exclusive(void);

/* Wait until no other thread is in a replay, or about to be, `timeout_ms` at most; not for those inside calls. */
void kprof_gate_await_exclusive(unsigned timeout_ms);

/* In a forked child: the threads that held the gate do not exist there. */
void kprof_gate_reset(void);

#endif
