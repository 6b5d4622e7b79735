/* The session directory as both sides trust it: a folder that belongs to this user alone, and files in it. */
#pragma once

/* Open a folder for openat(2) and its kind. `path` must be absolute; its last part must be no symbolic link. The folder
 * must belong to the effective user and be closed to all others. Return the descriptor (close-on-exec), or -1; then
 * *reason (a literal, or strerror's) says why. */
int kprof_folder_open(const char *path, const char **reason);

/* Open a regular file in a folder with these flags of open(2) and mode 0600. A symbolic link and a file of another user
 * are refused. Return the descriptor (close-on-exec), or -1 as above; errno is EEXIST where O_EXCL found one. */
int kprof_folder_open_file(int folder, const char *name, int flags, const char **reason);

/* kprof holds a lock on this file in the session directory for as long as it lives, however it ends. */
#define KPROF_OWNER_FILE "kprof.lock"

/* While this file is in the session directory, the application's processes are to close their open batches. */
#define KPROF_CLOSE_FILE "gpu.close"

/* A file of a process, by its id: eight bytes, with bit number - 1 for each signal that would end the process though
 * /proc tells of a handler. */
#define KPROF_DEFAULTS_FILE "gpu.%ld.defaults"

typedef enum kprof_owner {
    KPROF_OWNER_UNKNOWN, /* there is no such file, or it cannot be looked at */
    KPROF_OWNER_LIVES,
    KPROF_OWNER_GONE
} kprof_owner;

/* Make the file, with the lock on it. Return the descriptor (close-on-exec) that holds the lock until it is closed, or
 * -1 as above. A file system without locks is no failure: then the owner stays unknown. */
int kprof_folder_own(int folder, const char **reason);
/* Tell whether the process that owns the folder still lives. */
kprof_owner kprof_folder_owner(int folder);

/* Move an open file to a high number and return that. Some programs count on getting low numbers, or close the first
 * few hundred. The low number is closed. When the limit on descriptors is low, the file stays where it is. */
int kprof_fd_move_up(int fd);
