/* Opens, reads and hashes files of others. */
#include "report/store/source_file.h"
#include "core/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int kprof_source_open(int folder, const char *name, size_t most, size_t *size)
{
    struct stat found;
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return -1;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && (uintmax_t)found.st_size <= most) {
        *size = (size_t)found.st_size;
        return file;
    }
    close(file);
    return -1;
}

bool kprof_source_read(int file, char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = read(file, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

void kprof_source_hash(const char *bytes, size_t size, char hash[17])
{
    snprintf(hash, 17, "%016llx", (unsigned long long)kprof_hash(KPROF_HASH_START, bytes, size));
}
