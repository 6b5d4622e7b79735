/* Runs another program to its end, within limits. */
#pragma once

#include "core/strbuf.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kprof_child_limits {
    size_t most_bytes; /* of its output; 0: all of it is dropped */
    int64_t limit_ns;
    /* NULL: none; else a signal handler sets it to a number that is not 0, and the program is ended. Then, and at the
     * end of its time, it first gets SIGTERM and 5 s to tidy up. */
    const volatile sig_atomic_t *interrupted;
} kprof_child_limits;

/* The result. Starts as zeros. */
typedef struct kprof_child {
    kprof_strbuf out, errors; /* what it printed: all of stdout, and the first 4 KB of stderr */
    int status;               /* as waitpid gives it; that of SIGKILL where even that has not ended it yet */
} kprof_child;

/* Run a program, whose argument list begins with its path and ends with NULL, without input. Return NULL when it has
 * ended by itself, whatever its status; else why it could not start, or had to be ended: it ran for longer, or printed
 * more, or a signal is pending that this process has blocked and that would end it. */
const char *kprof_child_run(char *const *arguments, const kprof_child_limits *limits, kprof_child *result);
void kprof_child_free(kprof_child *result); /* members */
