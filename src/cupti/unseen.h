/* Waits for launches that other threads are in the middle of and that CUPTI has told nobody about, since its callbacks
 * were off as they began. */
#pragma once

#include <stdbool.h>

/* To be called once the callbacks are on. A launch takes microseconds on the processor, so it has submitted its work
 * when its thread has run for a millisecond since, or has gone to sleep: waits for that of each thread of the process,
 * for 20 ms at least. False when a thread that could run did not get so far within five seconds. */
bool kprof_unseen_await(void);
