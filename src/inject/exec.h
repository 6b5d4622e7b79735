/* The contract of the preloaded library with the injection library. */
#ifndef KPROF_INJECT_EXEC_H
#define KPROF_INJECT_EXEC_H

#include <stdatomic.h>
#include <stdbool.h>

/* Called before each exec of the process, and with `ends` before each _exit, also in a child between vfork and either,
 * and in signal handlers. */
typedef void kprof_exec_function(bool ends);
typedef _Atomic(kprof_exec_function *) kprof_exec_slot;

/* The name under which the preloaded library exports its slot. The injection library looks it up among all that is
 * loaded, and there is none where a program has been started without the preloaded library. */
#define KPROF_EXEC_SLOT "kprof_exec_hook"

#endif
