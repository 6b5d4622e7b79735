/* Moves descriptors. */
#include "core/fd.h"

#include <fcntl.h>
#include <unistd.h>

#define LOWEST_FD 500

int kprof_fd_move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}
