/* One file per entry, named by the key's hash: magic, key length, data length, key, data, checksum of all before it. */
#include "core/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC           UINT64_C(0x31656863616b706b) /* "kpkache1" */
#define MAX_ENTRY_BYTES (64u << 20)

typedef struct entry_header {
    uint64_t magic, key_size, data_size;
} entry_header;

/* FNV-1a, 64 bits: tells accidents, not attacks; the folder is the user's own. */
static uint64_t hash(uint64_t seed, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        seed = (seed ^ bytes[i]) * UINT64_C(0x100000001b3);
    return seed;
}

static uint64_t hash_start(const void *data, size_t size)
{
    return hash(UINT64_C(0xcbf29ce484222325), data, size);
}

static bool make_folder(char *path, size_t size)
{
    const char *off = getenv("KPROF_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (off && strcmp(off, "off") == 0)
        return false;
    int length;
    if (xdg && xdg[0] == '/')
        length = snprintf(path, size, "%s", xdg);
    else if (home && home[0] == '/')
        length = snprintf(path, size, "%s/.cache", home);
    else
        return false;
    if (length < 0 || (size_t)length + sizeof "/kprof" > size)
        return false;
    (void)mkdir(path, 0700);
    strcat(path, "/kprof");
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool entry_path(const kprof_strbuf *key, char *path, size_t size)
{
    char folder[PATH_MAX];
    if (key->failed || !make_folder(folder, sizeof folder))
        return false;
    int length = snprintf(path, size, "%s/%016llx", folder, (unsigned long long)hash_start(key->data, key->length));
    return length > 0 && (size_t)length < size;
}

/* A file of somebody else's is not read: it could name another chip's counters. */
static bool read_file(const char *path, kprof_strbuf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat info;
    bool good = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
                info.st_size <= (off_t)MAX_ENTRY_BYTES;
    char chunk[65536];
    for (ssize_t n; good && (n = read(fd, chunk, sizeof chunk)) != 0;) {
        good = n > 0;
        if (good)
            kprof_strbuf_append(out, chunk, (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    return good && !out->failed;
}

static bool unpack(const kprof_strbuf *file, const kprof_strbuf *key, kprof_strbuf *out)
{
    entry_header header;
    uint64_t checksum;
    if (file->length < sizeof header + sizeof checksum)
        return false;
    memcpy(&header, file->data, sizeof header);
    size_t body = file->length - sizeof header - sizeof checksum;
    if (header.magic != MAGIC || header.key_size != key->length || header.key_size > body ||
        header.data_size != body - header.key_size)
        return false;
    memcpy(&checksum, file->data + file->length - sizeof checksum, sizeof checksum);
    const char *stored_key = file->data + sizeof header;
    if (checksum != hash_start(file->data, file->length - sizeof checksum) ||
        memcmp(stored_key, key->data, key->length) != 0)
        return false;
    kprof_strbuf_append(out, stored_key + key->length, header.data_size);
    return !out->failed;
}

bool kprof_cache_get(const kprof_strbuf *key, kprof_strbuf *out)
{
    char path[PATH_MAX];
    if (!entry_path(key, path, sizeof path))
        return false;
    kprof_strbuf file = KPROF_STRBUF_INIT;
    bool found = read_file(path, &file) && unpack(&file, key, out);
    kprof_strbuf_free(&file);
    return found;
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

void kprof_cache_put(const kprof_strbuf *key, const void *data, size_t size)
{
    char path[PATH_MAX], draft[PATH_MAX + 16];
    if (size > MAX_ENTRY_BYTES / 2 || !entry_path(key, path, sizeof path))
        return;
    entry_header header = {MAGIC, key->length, size};
    kprof_strbuf file = KPROF_STRBUF_INIT;
    kprof_strbuf_append(&file, &header, sizeof header);
    kprof_strbuf_append(&file, key->data, key->length);
    kprof_strbuf_append(&file, data, size);
    uint64_t checksum = file.failed ? 0 : hash_start(file.data, file.length);
    kprof_strbuf_append(&file, &checksum, sizeof checksum);
    snprintf(draft, sizeof draft, "%s.XXXXXX", path);
    int fd = file.failed ? -1 : mkostemp(draft, O_CLOEXEC);
    if (fd >= 0) {
        bool written = write_all(fd, file.data, file.length);
        if (close(fd) != 0 || !written || rename(draft, path) != 0)
            unlink(draft);
    }
    kprof_strbuf_free(&file);
}
