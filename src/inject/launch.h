/* The hooks on the application's driver calls. */
#pragma once

#include "cupti/target.h"
#include "inject/exec.h"
#include "inject/launch_state.h"

extern const kprof_target_hooks kprof_launch_hooks;

/* Before the first hook is called. */
void kprof_launch_prepare(void);

/* In a forked child, where nothing is measured. */
void kprof_launch_forget(void);
/* Replay what is open, as the process is about to call exec or _exit: then it writes all that _finish does, too. Before
 * a thread starts, which may use memory of the host, only what would not be replayed beside one. Does nothing in a
 * forked child. Async-signal-safe. */
void kprof_launch_before(kprof_exec_turn turn);
/* A signal is about to end the process: have what is open replayed first, for two seconds at most. The rest is as in
 * kprof_signal_hooks. */
int kprof_launch_take_signal(int number, const void *thread_state);
/* If a signal has come that is to end the process, end it when what was open is replayed, or after two seconds. */
void kprof_launch_end_by_signal(void);
/* Replay what is open: nothing is measured any more. */
void kprof_launch_stop(void);
/* The same, and write how often each kernel was launched, and the end record: the process ends in an orderly way. */
void kprof_launch_finish(void);
