/* Samples of instructions that are enabled in the process' first context before anything is loaded there, until that
 * context is opened for measurements. Where CUPTI has a subscriber, it does not tell which instructions the samples are
 * of, if their function was loaded before (H200, CUPTI 13.0). They keep the GPU's counters, so they keep the process'
 * turn, too. */
#pragma once

#include "cupti/pc_samples.h"

#include <stdbool.h>

/* Note the first context that the application makes. */
void kprof_early_note(void *context);
/* Are samples wanted in this context, and still to be enabled? Thread-safe. */
bool kprof_early_is_wanted(const void *context);
/* Enable them, if it is this process' turn. The context must be idle, and nothing captured. Needs the gate, alone. */
void kprof_early_begin(void);
/* Are they enabled? Thread-safe. */
bool kprof_early_is_there(void);
/* Hand them over to who opens the context; NULL if there are none. Needs the gate, alone, as the next ones do. */
kprof_pc_samples *kprof_early_take(const void *context);
/* Another context, or this one, is about to be opened: the device's counters serve one at a time. */
void kprof_early_leave_to(const void *context);
/* Disable them, if the context's work ends before the thread has waited for long enough. */
void kprof_early_end(void);
/* The same, and leave the turn to other processes then. */
void kprof_early_yield(void);
/* The context ends. */
void kprof_early_forget(const void *context);
