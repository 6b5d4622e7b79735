/* Opens the session directory and its files. The path comes from the environment, and other users may have put
 * something else in its place: ownership is checked on the open descriptor, never on the name. */
#include "core/folder.h"
#include "core/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOWEST_FD   500 /* of a descriptor that has been moved out of the way */
#define OWNER_DRAFT KPROF_OWNER_FILE ".new"

/* The descriptor as it is, or closed and -1 when there is something against it. */
static int admit(int fd, const char *against, const char **reason)
{
    if (!against)
        return fd;
    close(fd);
    *reason = against;
    errno = EPERM;
    return -1;
}

int kprof_folder_open(const char *path, const char **reason)
{
    struct stat info;
    *reason = "its path is not absolute";
    if (path[0] != '/')
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        *reason = strerror(errno);
        return fd < 0 ? -1 : admit(fd, *reason, reason);
    }
    const char *against = NULL;
    if (info.st_uid != geteuid())
        against = "it belongs to another user";
    else if (info.st_mode & (S_IRWXG | S_IRWXO))
        against = "other users have access to it";
    return admit(fd, against, reason);
}

int kprof_folder_open_file(int folder, const char *name, int flags, const char **reason)
{
    struct stat info;
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0 || fstat(fd, &info) != 0) {
        *reason = strerror(errno);
        return fd < 0 ? -1 : admit(fd, *reason, reason);
    }
    const char *against = NULL;
    if (!S_ISREG(info.st_mode))
        against = "it is not a regular file";
    else if (info.st_uid != geteuid())
        against = "it belongs to another user";
    else if ((flags & O_CREAT) && (info.st_mode & 0600) != 0600) /* an umask leaves even the owner out */
        (void)!fchmod(fd, 0600);
    return admit(fd, against, reason);
}

/* The file gets its name once it is locked: nobody finds it without its lock while the owner lives. */
int kprof_folder_own(int folder, const char **reason)
{
    int fd = kprof_folder_open_file(folder, OWNER_DRAFT, O_RDWR | O_CREAT | O_EXCL, reason);
    if (fd < 0)
        return -1;
    bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (is_locked ? renameat(folder, OWNER_DRAFT, folder, KPROF_OWNER_FILE) == 0
                  : unlinkat(folder, OWNER_DRAFT, 0) == 0)
        return fd;
    *reason = strerror(errno);
    close(fd);
    return -1;
}

kprof_owner kprof_folder_owner(int folder)
{
    const char *reason;
    KPROF_AUTO_CLOSE int fd = kprof_folder_open_file(folder, KPROF_OWNER_FILE, O_RDWR, &reason);
    if (fd < 0)
        return KPROF_OWNER_UNKNOWN;
    struct stat file;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? KPROF_OWNER_LIVES : KPROF_OWNER_UNKNOWN;
    /* Without a name, the owner has removed the folder meanwhile. */
    return fstat(fd, &file) == 0 && file.st_nlink > 0 ? KPROF_OWNER_GONE : KPROF_OWNER_UNKNOWN;
}

int kprof_fd_move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}
