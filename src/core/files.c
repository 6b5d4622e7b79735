/* A signal may interrupt read and write, and a disk may take less than it is given. */
#include "core/files.h"

#include "core/log.h"
#include "core/signals.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

void kprof_close_at(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

void kprof_fclose_at(FILE *const *file)
{
    if (*file)
        fclose(*file);
}

void kprof_closedir_at(DIR *const *folder)
{
    if (*folder)
        closedir(*folder);
}

size_t kprof_write_all(int fd, const void *data, size_t size)
{
    size_t done = 0;
    kprof_write_guard guard;
    kprof_write_guard_begin(&guard);
    while (done < size) {
        const ssize_t written = write(fd, (const char *)data + done, size - done);
        if (written == 0)
            errno = ENOSPC;
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            break;
    }
    kprof_write_guard_end(&guard);
    return done;
}

uint64_t kprof_file_limit_bytes(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

bool kprof_write_at(int fd, const void *data, size_t size, uint64_t offset)
{
    return offset + size <= kprof_file_limit_bytes() && pwrite(fd, data, size, (off_t)offset) == (ssize_t)size;
}

size_t kprof_read_at(int fd, void *out, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            break;
    }
    return done;
}

bool kprof_read_whole(int fd, size_t most, kprof_strbuf *out)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return false;
    const size_t size = (size_t)info.st_size;
    void *to = size <= most ? kprof_strbuf_extend(out, size) : NULL;
    errno = to ? EIO : size <= most ? ENOMEM : EFBIG; /* a shorter file than it was tells nothing itself */
    return to && kprof_read_at(fd, to, size, 0) == size;
}

size_t kprof_read_text(const char *path, char *out, size_t size)
{
    KPROF_AUTO_FCLOSE FILE *file = fopen(path, "re");
    const size_t length = file ? fread(out, 1, size - 1, file) : 0;
    out[length] = '\0';
    return length;
}

kprof_status kprof_fail_to_make(const char *path, const char *format, ...)
{
    const int reason = errno;
    char what[PATH_MAX + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *slash = strrchr(path, '/');
    KPROF_AUTO_FREE char *folder = slash && slash > path ? kprof_strndup(path, (size_t)(slash - path)) : NULL;
    if (reason == ENOENT && folder && access(folder, F_OK) != 0)
        return kprof_fail(KPROF_OUTPUT, "%s: there is no folder %s; make it first, or name another", what, folder);
    return kprof_fail(KPROF_OUTPUT, "%s: %s", what, strerror(reason));
}

/* Files of /proc are read line by line: they have no size. */
bool kprof_proc_number(const kprof_proc_file *of, const char *name, int base, uint64_t *out)
{
    char whole[PATH_MAX], line[256], *end;
    const size_t length = strlen(name);
    bool found = false;
    KPROF_AUTO_FCLOSE FILE *file =
        snprintf(whole, sizeof whole, "%s%s", of->root, of->path) < (int)sizeof whole ? fopen(whole, "re") : NULL;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, length) != 0 || line[length] != ':')
            continue;
        const unsigned long long number = strtoull(line + length + 1, &end, base);
        found = end > line + length + 1;
        *out = found ? number : *out;
    }
    return found;
}
