/* Loads CUPTI's libraries, which takes 50 ms, beside the application's own start. */
#pragma once

/* Begin to load in a thread, if the process is to measure counters. Whoever needs the libraries reports failures. */
void kprof_preload_start(void);
/* Wait for the end of loading, for a second at most, before the process ends or forks. Otherwise a child could find
 * locks of the libraries taken for ever. */
void kprof_preload_end(void);
/* Forget the thread in a forked child, which does not have it. */
void kprof_preload_forget(void);
