/* The counters of a GPU serve one process at a time: the processes of one run stand in line for them, one line for each
 * GPU, in a file of the session directory. */
#pragma once

#include "core/folder.h"

#include <stdbool.h>

/* From now on _take stands in the line of the GPU with this UUID. A place in another line is given up. */
void kprof_lock_choose(const char *uuid);
/* Wait for this process' turn. Processes get it in the order of asking. Wait while others make progress, and for
 * `timeout_ms` without any. If false, the process keeps its place: a later call may find that its turn has come. A
 * process that does not take its turn for a tenth of a second loses it to the next one. Before _take waits it calls
 * `before_wait`, which may be NULL, to give up what the process whose turn it is may need. */
bool kprof_lock_take(unsigned timeout_ms, void (*before_wait)(void));
/* Tell those who wait that this process, whose turn it is, makes progress. Cheap: most calls only read a clock. */
void kprof_lock_note_progress(void);
/* Tell the others whether the work of this process, whose turn it is, may wait for what they do next. While it may,
 * they wait for their turn only as long as a call may be held. */
void kprof_lock_note_stuck(bool is_stuck);
/* Does another process stand in line for a GPU that was ever chosen? Then it wants the counters, too, if this one keeps
 * them beyond its turn. */
bool kprof_lock_is_wanted(void);
/* Does kprof ask its processes to close what is open, since a signal has arrived? */
bool kprof_lock_is_asked(void);
/* Does kprof, which reads what this process writes, still run? UNKNOWN where the session directory is gone or cannot be
 * looked at; *is_gone says which of the two. A few system calls. */
kprof_owner kprof_lock_owner(bool *is_gone);
/* Give the turn to the next in line, or leave the line. In a forked child this lets go of a copy: the parent stays. */
void kprof_lock_give(void);
