/* The file that a command is writing: nobody shall take it for a whole one. */
#pragma once

/* Let a signal that ends kprof wait while a file is made, until one of the two below is called. */
void kprof_unfinished_hold(void);
/* Have a signal that ends kprof remove this file first, and SQLite's files beside it. `folder` is removed then, too;
 * NULL: none. One file at a time; a signal that is ignored stays so. */
void kprof_unfinished_begin(const char *path, const char *folder);
/* Remove it now, as the command ends. May be called by a handler of signals. */
void kprof_unfinished_remove(void);
/* The file is whole, or it has been removed, or could not be made. */
void kprof_unfinished_end(void);

/* Have `handler` called for the signals that end kprof (core/signals.h), where they are not ignored. */
void kprof_signals_follow(void (*handler)(int number));
