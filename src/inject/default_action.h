/* The contract of the preloaded library with the injection library about signals whose default action ends the process.
 * A handler stands in for that action, and the program goes on to see the default action. */
#pragma once

#include <stdint.h>

/* The preloaded library calls these. All three must be async-signal-safe. */
typedef struct kprof_signal_hooks {
    /* A signal is about to end the process. `thread` is what the thread's slot has. Return the number of the signal
     * that is to end it now; 0: it ends later, by the library's `end`, and the thread goes on until then. */
    int (*decide)(int number, const void *thread);
    /* The set of signals (bit number - 1) that the handler stands in for has changed. */
    void (*publish)(uint64_t signals);
} kprof_signal_hooks;

/* The injection library calls these. */
typedef struct kprof_default_actions {
    /* Have the handler stand in for the default action from now on, in this process alone; `hooks` is borrowed for the
     * life of the process. */
    void (*stand_in)(const kprof_signal_hooks *hooks);
    /* End the process by the default action. */
    void (*end)(int number);
    /* Return the calling thread's slot, which a signal handler can read. */
    void **(*thread_slot)(void);
} kprof_default_actions;

/* The name under which the preloaded library exports its struct. */
#define KPROF_DEFAULT_ACTIONS "kprof_default_action_table"
