/* flock(2) on a file that is opened anew each time: the application may close any descriptor that it did not open. */
#include "inject/lock.h"

#include "inject/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 2

void kprof_lock_set_folder(const char *dir)
{
    kprof_lock *locks = &kprof_engine.lock;
    snprintf(locks->session_dir, sizeof locks->session_dir, "%s", dir);
}

static int open_lock(const kprof_file_lock *lock, size_t gpu)
{
    const char *reason;
    char name[64];
    int folder = kprof_folder_open(kprof_engine.lock.session_dir, &reason);
    if (folder < 0)
        return -1;
    snprintf(name, sizeof name, "gpu.%s.%s", kprof_engine.lock.gpus[gpu], lock->suffix);
    int fd = kprof_folder_open_file(folder, name, O_RDWR | O_CREAT, &reason);
    close(folder);
    return fd;
}

static void hold(kprof_file_lock *lock, int fd)
{
    lock->fd = fd;
    (void)fstat(fd, &lock->file);
}

static void let_go(kprof_file_lock *lock)
{
    struct stat now;
    if (lock->fd >= 0 && fstat(lock->fd, &now) == 0 && now.st_dev == lock->file.st_dev &&
        now.st_ino == lock->file.st_ino)
        close(lock->fd);
    lock->fd = -1;
}

void kprof_lock_choose(const char *uuid)
{
    kprof_lock *locks = &kprof_engine.lock;
    size_t i = 0;
    while (i < locks->gpu_count && strcmp(locks->gpus[i], uuid) != 0)
        i++;
    if (i == KPROF_LOCK_MAX_GPUS)
        i = 0; /* more GPUs than the engine knows share a lock */
    else if (i == locks->gpu_count)
        snprintf(locks->gpus[locks->gpu_count++], sizeof locks->gpus[0], "%s", uuid);
    if (i == locks->gpu)
        return;
    let_go(&locks->turn);
    let_go(&locks->wanted);
    locks->gpu = i;
}

bool kprof_lock_take(unsigned timeout_ms, void (*before_wait)(void))
{
    kprof_lock *locks = &kprof_engine.lock;
    const struct timespec pause = {0, POLL_MS * 1000000};
    int fd = open_lock(&locks->turn, locks->gpu);
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
    hold(&locks->turn, fd);
    return true;
}

void kprof_lock_want(void)
{
    kprof_lock *locks = &kprof_engine.lock;
    int fd = locks->wanted.fd < 0 ? open_lock(&locks->wanted, locks->gpu) : -1;
    if (fd < 0)
        return;
    fd = kprof_fd_move_up(fd);
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        hold(&locks->wanted, fd);
    else
        close(fd);
}

void kprof_lock_have(void)
{
    let_go(&kprof_engine.lock.wanted);
}

bool kprof_lock_is_wanted(void)
{
    bool others = false;
    for (size_t i = 0; i < kprof_engine.lock.gpu_count && !others; i++) {
        int fd = open_lock(&kprof_engine.lock.wanted, i);
        if (fd < 0)
            return false;
        others = flock(fd, LOCK_EX | LOCK_NB) != 0;
        close(fd);
    }
    return others;
}

bool kprof_lock_is_asked(void)
{
    const char *reason;
    int folder = kprof_folder_open(kprof_engine.lock.session_dir, &reason);
    if (folder < 0)
        return false;
    bool is_asked = faccessat(folder, KPROF_CLOSE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    close(folder);
    return is_asked;
}

kprof_owner kprof_lock_owner(bool *is_gone)
{
    const char *reason;
    int folder = kprof_folder_open(kprof_engine.lock.session_dir, &reason);
    *is_gone = folder < 0 && errno == ENOENT;
    if (folder < 0)
        return KPROF_OWNER_UNKNOWN;
    kprof_owner owner = kprof_folder_owner(folder);
    close(folder);
    return owner;
}

void kprof_lock_give(void)
{
    let_go(&kprof_engine.lock.turn);
}
