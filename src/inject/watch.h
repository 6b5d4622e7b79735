/* Closes batches, writes counts and gives counters back while the application makes no call: in a pause, and as the
 * process ends. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* While others wait for the counters, a batch closes when its process has made no call for a time between these. */
#define KPROF_LONGEST_PAUSE_NS  INT64_C(250000000)
#define KPROF_SHORTEST_PAUSE_NS INT64_C(30000000)

/* Messages give this as the reason for closing a batch when a signal is about to end the process. */
#define KPROF_CLOSED_BY_SIGNAL "a signal"

/* The hook of kprof_idle_start. The process has launched nothing for `calls` of idle.h's waits, and may be about to end
 * without a word, and others may wait; 0: it is about to end, and asks for all that is open. Returns whether the
 * counters are given back. */
bool kprof_watch_give_back(unsigned calls);
/* A pause of `limit_ns` has closed a batch, and the process paused for `further_ns` more. Return how long the next one
 * has to be: twice as long where to wait as long again would have put more launches into the batch, else half. */
int64_t kprof_watch_learn_pause(int64_t limit_ns, int64_t further_ns);
/* A launch is in the open batch, and returns. If a pause had closed the batch before it, that is over: learn from it.
 * Needs the gate, alone; before kprof_idle_watch, whose next wait is as long as pauses are to last then. */
void kprof_watch_note_launch(void);
/* Write the counts of all kernels, and that the process ends in an orderly way. */
void kprof_watch_write_end(void);
/* Would something be lost if the process ended now? CUPTI keeps activities for a while. */
bool kprof_watch_has_unwritten(void);

/* With --kill yes: has kprof chosen all launches that were asked for, and not said so yet? */
bool kprof_watch_may_be_done(void);
/* Tell that the process may be ended, if nothing is open. Needs the gate, alone. */
void kprof_watch_tell_done(void);
