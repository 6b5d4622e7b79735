/* Runs the application: starts it with the injection library, forwards signals, waits. */
#pragma once

#include "core/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Ignore SIGPIPE and SIGXFSZ: a closed pipe or a file too large is then an error like any other, and kprof still
 * removes its temporary files. Do not ignore SIGCHLD, or kprof could not wait for the application. The application gets
 * back what kprof was started with. */
void kprof_signals_settle(void);

/* Let the user read and write what kprof makes, whatever the umask says. The application gets kprof's umask back. */
void kprof_umask_settle(void);

/* A descriptor takes SIGCHLD, and all signals that would end kprof and can be caught, from kprof_signals_block to
 * kprof_signals_restore. So nothing interrupts kprof between making its temporary files and removing them. */
typedef struct kprof_signals {
    int fd;
    sigset_t previous;
} kprof_signals;

kprof_status kprof_signals_block(kprof_signals *out) KPROF_MUST_CHECK;
/* Forget pending signals and handle signals as before. */
void kprof_signals_restore(kprof_signals *signals);

#define KPROF_BYSTANDER_SIGNALS 64

/* The sender of a signal, and its way of sending. */
typedef struct kprof_signal_origin {
    int32_t code, pid;
    bool is_set;
} kprof_signal_origin;

/* A process of kprof's own in kprof's process group. If it gets a signal, too, somebody has sent that to the whole
 * group, and the application has it already: the signal itself does not tell. */
typedef struct kprof_bystander {
    pid_t pid;                                             /* 0: there is none */
    int channel;                                           /* to it */
    kprof_signal_origin seen[KPROF_BYSTANDER_SIGNALS + 1]; /* by it, and not by kprof so far */
} kprof_bystander;

/* Start it while kprof blocks the signals that it is to watch. If that fails, it sees none. */
void kprof_bystander_fork(kprof_bystander *out);
/* End it; does nothing where there is none. */
void kprof_bystander_end(kprof_bystander *bystander);

typedef struct kprof_child_spec {
    char **argv;                   /* NULL-terminated */
    const char *injection_library; /* absolute path */
    const char *preloaded;         /* absolute paths, with colons between them; NULL: nothing is preloaded */
    const char *session_dir;
    const char *trees; /* value of KPROF_TREES_ENV; NULL: none */
    bool nvtx;         /* NVTX is to load the injection library too */
    bool stdout_to_stderr;
    bool null_stdin;
    kprof_signals *signals; /* blocked; used for as long as the child lives, as is the bystander */
    kprof_bystander *bystander;
} kprof_child_spec;

typedef struct kprof_child {
    pid_t pid; /* 0: none */
    int gate;  /* a byte lets the child start the application; closing it without one ends the child */
    int error; /* errno of a failed exec arrives here */
    kprof_signals *signals;
    kprof_bystander *bystander;
    const char *session_dir; /* borrowed */
    int also;                /* a descriptor whose input ends a wait, too; -1: none */
    bool ended;
    int wait_status;
    int arrived; /* a signal that has arrived for the application; the caller sets it to 0 */
    int held;    /* the same, where it would end the application and has not been forwarded yet; else 0 */
} kprof_child;

/* Fork a child that waits, so that its process id is known before the application runs. */
kprof_status kprof_child_fork(const kprof_child_spec *spec, kprof_child *out) KPROF_MUST_CHECK;
/* Let it start `name`. NO_APPLICATION, with the reason and perhaps a suggestion, when that fails. */
kprof_status kprof_child_start(kprof_child *child, const char *name) KPROF_MUST_CHECK;
/* Wait for at most `timeout_ms`, and for input of `also`, for the end of the application or a signal to forward; true
 * when it has ended. A signal that has reached the application with kprof's whole group is not forwarded. Another one
 * that the application handles or ignores is forwarded at once, one that would end it by kprof_child_release. */
bool kprof_child_wait(kprof_child *child, int timeout_ms);
/* Forward the signal that is held back, if there is one. */
void kprof_child_release(kprof_child *child);
/* Close descriptors; ends a child that was never started. */
void kprof_child_close(kprof_child *child);
