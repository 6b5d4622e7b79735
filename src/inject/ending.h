/* Ends the process by a signal once its open batch is measured, if the program leaves the signal's default action. */
#pragma once

#include "inject/default_action.h"

#include <stdbool.h>

/* Find the preloaded library. `decide` is as in kprof_signal_hooks. */
void kprof_ending_prepare(int (*decide)(int number, const void *thread));
/* Have signals wait for the open batch from now on. Cheap but for the first call. */
void kprof_ending_watch(void);
/* Tell a signal handler, in this thread, where it finds the thread's state. */
void kprof_ending_name_thread(void *state);
/* A signal has come: return the number of the first one. Async-signal-safe. */
int kprof_ending_note(int number);
/* Has one come? */
bool kprof_ending_is_due(void);
/* Did it come so long ago that kprof waits no longer? */
bool kprof_ending_is_overdue(void);
/* End the process by it. */
void kprof_ending_end(void);
/* The process is about to call exec: the next program has actions of its own. */
void kprof_ending_before_exec(void);
