/* The contract of the preloaded library with the injection library. */
#pragma once

#include <stdatomic.h>

typedef enum kprof_exec_turn { KPROF_BEFORE_EXEC, KPROF_BEFORE_EXIT, KPROF_BEFORE_THREAD } kprof_exec_turn;

/* Called before each exec and _exit of the process, also in a child between vfork and either, and in signal handlers;
 * and before the application starts a thread. */
typedef void kprof_exec_function(kprof_exec_turn before);
typedef _Atomic(kprof_exec_function *) kprof_exec_slot;

/* The name under which the preloaded library exports its slot. The injection library looks it up among all that is
 * loaded, and there is none where a program has been started without the preloaded library. */
#define KPROF_EXEC_SLOT "kprof_exec_hook"
