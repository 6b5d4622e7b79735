/* The counters of a GPU serve one process at a time: the processes of one run take turns, through a lock for each GPU
 * in the session directory. */
#ifndef KPROF_INJECT_LOCK_H
#define KPROF_INJECT_LOCK_H

#include "core/folder.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A locked file. */
typedef struct kprof_file_lock {
    const char *suffix; /* of its name in the session directory */
    int fd;             /* -1: not locked */
    struct stat file;   /* tells whether the number is still ours */
} kprof_file_lock;

#define KPROF_LOCK_MAX_GPUS 64

typedef struct kprof_lock {
    char session_dir[PATH_MAX];
    char gpus[KPROF_LOCK_MAX_GPUS][40]; /* [gpu_count], the UUIDs of those that were chosen */
    size_t gpu_count, gpu;              /* gpu: the one chosen last */
    kprof_file_lock turn;               /* exclusive: whose turn it is */
    kprof_file_lock wanted;             /* shared by those who want theirs */
} kprof_lock;

/* Set the folder of the lock. Call this first. */
void kprof_lock_set_folder(const char *dir);
/* Choose the GPU, by its UUID, whose lock _take and _want are about from now on. What is held of another one is given
 * back. */
void kprof_lock_choose(const char *uuid);
/* Wait for this process' turn, for `timeout_ms` at most; false when that time is over. Before it waits it calls
 * `before_wait`, which may be NULL, to give up what the process whose turn it is may need. */
bool kprof_lock_take(unsigned timeout_ms, void (*before_wait)(void));
/* _want tells other processes that this one wants its turn, and the counters if one keeps them beyond its own turn.
 * _have takes that back. */
void kprof_lock_want(void);
void kprof_lock_have(void);
/* Does another process want those of a GPU that was ever chosen? */
bool kprof_lock_is_wanted(void);
/* Does kprof ask its processes to close what is open, since a signal has arrived? */
bool kprof_lock_is_asked(void);
/* Does kprof, which reads what this process writes, still live? UNKNOWN where the session directory is gone or cannot
 * be looked at; *is_gone says which of the two. A few system calls. */
kprof_owner kprof_lock_owner(bool *is_gone);
/* Give the turn to others. In a forked child this lets go of a copy only: the lock stays the parent's. */
void kprof_lock_give(void);

#endif
