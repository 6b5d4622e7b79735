/* flock(2) on a file that is opened anew each time: the application may close any descriptor that it did not open. */
#include "inject/lock.h"

#include "core/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 2

static char path[PATH_MAX];
static int held = -1;
static struct stat held_file; /* tells whether the number is still ours */

void kprof_lock_set_folder(const char *dir)
{
    snprintf(path, sizeof path, "%s/gpu.lock", dir);
}

bool kprof_lock_take(unsigned timeout_ms, void (*before_wait)(void))
{
    const struct timespec pause = {0, POLL_MS * 1000000};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return true;           /* without the session directory there is nobody to take turns with */
    fd = kprof_fd_move_up(fd); /* it may be held for long */
    for (unsigned waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited_ms += POLL_MS) {
        if (waited_ms >= timeout_ms) {
            close(fd);
            return false;
        }
        if (waited_ms == 0 && before_wait)
            before_wait();
        nanosleep(&pause, NULL);
    }
    held = fd;
    (void)fstat(fd, &held_file);
    return true;
}

void kprof_lock_give(void)
{
    struct stat now;
    if (held >= 0 && fstat(held, &now) == 0 && now.st_dev == held_file.st_dev && now.st_ino == held_file.st_ino)
        close(held);
    held = -1;
}
