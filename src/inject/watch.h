/* Closes batches, writes counts and gives counters back while the application makes no call: in a pause, and as the
 * process ends. */
#pragma once

#include <stdbool.h>

/* Messages give this as the reason for closing a batch when a signal is about to end the process. */
#define KPROF_CLOSED_BY_SIGNAL "a signal"

/* The hook of kprof_idle_start. The process has launched nothing for `calls` quarters of a second, and may be about to
 * end without a word, and others may wait; 0: it is about to end, and asks for all that is open. Returns whether the
 * counters are given back. */
bool kprof_watch_give_back(unsigned calls);
/* Write the counts of all kernels, and that the process ends in an orderly way. */
void kprof_watch_write_end(void);
/* Would something be lost if the process ended now? CUPTI keeps activities for a while. */
bool kprof_watch_has_unwritten(void);

/* With --kill yes: has kprof chosen all launches that were asked for, and not said so yet? */
bool kprof_watch_may_be_done(void);
/* Tell that the process may be ended, if nothing is open. Needs the gate, alone. */
void kprof_watch_tell_done(void);
