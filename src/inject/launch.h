/* The hooks on the application's driver calls. */
#ifndef KPROF_INJECT_LAUNCH_H
#define KPROF_INJECT_LAUNCH_H

#include "cupti/target.h"
#include "inject/exec.h"

#include <stdatomic.h>

#define KPROF_REFUSALS_TOLD 8

typedef struct kprof_launch_state {
    atomic_bool ended;   /* no batch is opened any more */
    atomic_bool settled; /* disarmed, and no batch is open or can be opened any more */
    atomic_bool forked;  /* without exec: everything here is the parent's */
    /* Hashes of the reasons that were told why graphs are not profiled kernel by kernel; 0: free. */
    _Atomic uint64_t refusals[KPROF_REFUSALS_TOLD];
    atomic_bool told_endless; /* that a replay does not end */
    atomic_bool told_done;    /* that the process may be ended */
    atomic_bool told_stopped; /* that launches are not measured, as the application has stopped profiling */
} kprof_launch_state;

extern kprof_launch_state kprof_the_launches;

extern const kprof_target_hooks kprof_launch_hooks;

/* Before the first hook is called. */
void kprof_launch_prepare(void);

/* Write how often each kernel was launched so far. */
void kprof_launch_write_counts(void);
/* In a forked child, where nothing is measured. */
void kprof_launch_forget(void);
/* Replay what is open, as the process is about to call exec or _exit: then it writes all that _finish does, too. Before
 * a thread starts, which may use memory of the host, only what would not be replayed beside one. Does nothing in a
 * forked child. Async-signal-safe. */
void kprof_launch_before(kprof_exec_turn turn);
/* A signal is about to end the process: have what is open replayed first, for two seconds at most. The rest is as in
 * kprof_signal_hooks. */
int kprof_launch_take_signal(int number, const void *thread_state);
/* If a signal has come that is to end the process, end it when what was open has been replayed, or two seconds after.
 */
void kprof_launch_end_by_signal(void);
/* Replay what is open: nothing is measured any more. */
void kprof_launch_stop(void);
/* The same, and write how often each kernel was launched, and the end record: the process ends in an orderly way. */
void kprof_launch_finish(void);

#endif
