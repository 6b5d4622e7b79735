/* A file of a few numbers. Both sides use pread and pwrite, and wait by a futex on its first number. */
#include "core/control.h"
#include "core/files.h"
#include "core/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(offsetof(kprof_control, wish.turn) == 0, "the futex is the first number");

static int open_switch(int folder, long pid, int flags, const char **reason)
{
    char name[64];
    snprintf(name, sizeof name, KPROF_CONTROL_FILE, pid);
    return kprof_folder_open_file(folder, name, flags, reason);
}

bool kprof_control_read(int folder, long pid, kprof_control *out)
{
    const char *reason;
    KPROF_AUTO_CLOSE const int fd = open_switch(folder, pid, O_RDONLY, &reason);
    return fd >= 0 && pread(fd, out, sizeof *out, 0) == (ssize_t)sizeof *out && out->wish.armed <= 1 &&
           out->wish.plan < KPROF_CONTROL_PLANS && out->state < KPROF_CONTROL_STATES;
}

static const char *make_new(int folder, long pid)
{
    static const kprof_control unarmed;
    const char *reason = NULL;
    const int fd = open_switch(folder, pid, O_WRONLY | O_CREAT | O_EXCL, &reason);
    if (fd < 0)
        return reason;
    if (!kprof_write_at(fd, &unarmed, sizeof unarmed, 0))
        reason = "the disk is full";
    return close(fd) == 0 ? reason : strerror(errno);
}

void kprof_control_remove(int folder, long pid)
{
    char name[64];
    snprintf(name, sizeof name, KPROF_CONTROL_FILE, pid);
    (void)unlinkat(folder, name, 0);
}

/* Both sides may make the switch at once: the second one finds that of the first. Replace a file that is no switch. */
const char *kprof_control_make(int folder, long pid)
{
    kprof_control there;
    const char *reason = make_new(folder, pid);
    if (!reason || kprof_control_read(folder, pid, &there))
        return NULL;
    kprof_control_remove(folder, pid);
    return make_new(folder, pid);
}

bool kprof_control_wish_for(int folder, long pid, const kprof_control_wish *wish)
{
    const char *reason;
    KPROF_AUTO_CLOSE const int fd = open_switch(folder, pid, O_RDWR, &reason);
    if (fd < 0)
        return false;
    const uint32_t rest[] = {wish->armed, wish->plan};
    const bool is_written = kprof_write_at(fd, rest, sizeof rest, offsetof(kprof_control, wish.armed)) &&
                            kprof_write_at(fd, &wish->turn, sizeof wish->turn, 0); /* last: who sees it sees the rest */
    void *mapping = is_written ? kprof_control_map(folder, pid) : NULL;
    if (mapping) {
        (void)syscall(SYS_futex, mapping, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        munmap(mapping, sizeof(kprof_control));
    }
    return is_written;
}

bool kprof_control_answer(int folder, long pid, uint32_t turn, kprof_control_state state)
{
    const char *reason;
    const uint32_t answer[] = {turn, (uint32_t)state};
    KPROF_AUTO_CLOSE const int fd = open_switch(folder, pid, O_WRONLY, &reason);
    return fd >= 0 && kprof_write_at(fd, answer, sizeof answer, offsetof(kprof_control, answered));
}

void *kprof_control_map(int folder, long pid)
{
    const char *reason;
    KPROF_AUTO_CLOSE const int fd = open_switch(folder, pid, O_RDONLY, &reason);
    void *mapping = fd >= 0 ? mmap(NULL, sizeof(kprof_control), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    return mapping == MAP_FAILED ? NULL : mapping;
}

bool kprof_control_await(void *mapping, uint32_t turn)
{
    /* Some file systems have no futexes between processes: then the wish is seen a second later. */
    static const struct timespec limit = {1, 0};
    return syscall(SYS_futex, mapping, FUTEX_WAIT, turn, &limit, NULL, 0) == 0 || errno == EAGAIN || errno == EINTR ||
           errno == ETIMEDOUT;
}
