/* Writes the counter data images of single launches. */
#include "inject/keep.h"

#include "core/log.h"
#include "inject/engine.h"
#include "inject/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* errno says why not. */
static bool write_file(const char *path, const char *content, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    ssize_t written = 0;
    for (size_t at = 0; at < size && (written >= 0 || errno == EINTR); at += written > 0 ? (size_t)written : 0)
        written = write(fd, content + at, size - at);
    int reason = errno;
    bool closed = close(fd) == 0;
    if (written < 0)
        errno = reason;
    return written >= 0 && closed;
}

void kprof_keep_image(const kprof_profiler *profiler, const kprof_launch_record *launch)
{
    const char *dir = kprof_engine.process.config.counter_data_dir;
    if (!dir)
        return;
    char path[PATH_MAX];
    size_t size;
    const char *image = kprof_engine.device->profiler_image(profiler, &size);
    snprintf(path, sizeof path, "%s/%d-%llu.counterdata", dir, (int)getpid(), (unsigned long long)launch->launch);
    if (!write_file(path, image, size))
        kprof_log(KPROF_LOG_WARNING, "counter data cannot be kept in %s: %m", path);
}
