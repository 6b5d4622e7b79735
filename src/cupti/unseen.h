/* Waits until other threads have left launches that CUPTI has told nobody about, since its callbacks were off when
 * these began. */
#pragma once

#include <stdbool.h>

/* To be called once the callbacks are on. A launch takes microseconds on the processor, so it has submitted its work
 * once its thread has run for a millisecond, or has gone to sleep. Waits until each thread of the process has done one
 * of the two, and for 20 ms at least. False when a thread that could run did not get so far within five seconds. */
bool kprof_unseen_await(void);
