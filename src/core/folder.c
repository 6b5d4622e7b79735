/* Opens the session directory and its files. The path comes from the environment, and other users may have put
 * something else in its place: ownership is checked on the open descriptor, never on the name. */
#include "core/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOWEST_FD 500 /* of a descriptor that has been moved out of the way */

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
    return admit(fd, against, reason);
}

int kprof_fd_move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}
