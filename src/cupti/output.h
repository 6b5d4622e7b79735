/* Controls what kernels print. CUDA's driver keeps the text, and writes it to stdout within calls that wait for the
 * GPU. The preloaded library (inject/exec.c) stands in for vfprintf: it counts what the driver writes, and drops it
 * while replays run. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

typedef struct kprof_output_control {
    atomic_bool watches; /* look for what the driver writes: set once the application prints on the device */
    atomic_bool drops;
    atomic_uint seen; /* pieces of text that the driver wrote, since it is looked for */
} kprof_output_control;

/* The name under which the preloaded library exports it. There is none in a program that was started without it. */
#define KPROF_OUTPUT_NAME "kprof_output"

/* Find the control. To be called once, early, as kprof_thread_find_list. */
void kprof_output_find(void);
/* Look for what the driver writes from now on; false where that cannot be done. */
bool kprof_output_watch(void);
/* How many pieces of text has the driver written since? */
unsigned kprof_output_seen(void);
/* Does kprof see what kernels print? The first call in the process runs a kernel of kprof's own that prints nothing, in
 * the stream of the current context, which must be idle. Output must be watched. */
bool kprof_output_is_seen(void *stream);
/* Drop what the driver writes from now on, or no longer. */
void kprof_output_drop(bool drops);
