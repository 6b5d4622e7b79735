/* The switch of a process that was started with --armed no: a file in the session directory, which the process makes.
 * The command line writes there whether to measure launches, and with which plan. A thread of the injection library
 * sleeps until that changes, and writes how it went. */
#pragma once

#include "core/config.h"

#include <stdbool.h>
#include <stdint.h>

/* The switch of a process, by its id, and the one for processes that start later. */
#define KPROF_CONTROL_FILE "gpu.%ld.control"
#define KPROF_CONTROL_ALL  0L /* in place of an id */
/* The configuration of a plan, by its number; the file KPROF_CONFIG_FILE is number 0. */
#define KPROF_CONTROL_CONFIG KPROF_CONFIG_FILE ".%u"
/* A session has at most this many plans. */
#define KPROF_CONTROL_PLANS 64

typedef enum kprof_control_state {
    KPROF_CONTROL_UNARMED,
    KPROF_CONTROL_ARMED,
    KPROF_CONTROL_FAILED, /* a message of the process has said why; it is not armed */
    KPROF_CONTROL_STATES
} kprof_control_state;

/* A process is asked to measure, or to stop. */
typedef struct kprof_control_wish {
    uint32_t turn; /* another one for each wish */
    uint32_t armed, plan;
} kprof_control_wish;

typedef struct kprof_control {
    kprof_control_wish wish;
    uint32_t answered; /* the turn of the wish that was followed last */
    uint32_t state;    /* kprof_control_state */
} kprof_control;

/* Make the switch unless it is there: a process may have called exec, and the command line may have a wish for one that
 * has not called CUDA yet. `folder` is the session directory. NULL, or the reason why not. */
const char *kprof_control_make(int folder, long pid);
/* Remove it: then nobody can tell the process anything, nor waits for its answer. */
void kprof_control_remove(int folder, long pid);
/* False where there is no switch, or none that kprof has written. */
bool kprof_control_read(int folder, long pid, kprof_control *out);
/* The command line calls this to write a wish and wake the process. False where the process has no switch. */
bool kprof_control_wish_for(int folder, long pid, const kprof_control_wish *wish);
/* The process calls this once it has followed the wish of this turn. False, with errno, where it could not answer. */
bool kprof_control_answer(int folder, long pid, uint32_t turn, kprof_control_state state);

/* Map the switch to wait for it: NULL when that fails. */
void *kprof_control_map(int folder, long pid);
/* Sleep until the wish may have another turn than this one, for a second at most. False where the system has no such
 * wait. Only the kernel looks at the memory: if this process did, a file that somebody cuts short would end it. */
bool kprof_control_await(void *mapping, uint32_t turn);
