/* A process of kprof's own in its process group. A signal that it gets as well was sent to the whole group, and so has
 * reached the application already: nothing in a signal itself tells that. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#define KPROF_BYSTANDER_SIGNALS 64

/* The sender of a signal, and its way of sending. */
typedef struct kprof_signal_origin {
    int32_t code, pid;
    bool is_set;
} kprof_signal_origin;

typedef struct kprof_bystander {
    pid_t pid;                                             /* 0: there is none */
    int channel;                                           /* to it */
    kprof_signal_origin seen[KPROF_BYSTANDER_SIGNALS + 1]; /* by it, and not by kprof so far */
} kprof_bystander;

/* Start it while the signals are blocked that it is to watch. If that fails, it sees none. */
void kprof_bystander_fork(kprof_bystander *out);
/* Did it get the same signal? Waits for its answer for a second at most, and for signals that are on their way. */
bool kprof_bystander_got(kprof_bystander *bystander, const struct signalfd_siginfo *info);
/* End it; does nothing where there is none. */
void kprof_bystander_end(kprof_bystander *bystander);
