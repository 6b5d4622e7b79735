/* One file per entry, named by the key's hash: magic, key length, data length, key, data, checksum of all before it. An
 * entry's time is that of its last use. */
#include "core/cache.h"

#include "core/bytes.h"
#include "core/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC            UINT64_C(0x31656863616b706b) /* "kpkache1" */
#define MAX_ENTRY_BYTES  (64u << 20)
#define MAX_ENTRIES      1024
#define MAX_FOLDER_BYTES MAX_ENTRY_BYTES
#define CHECKSUM_BYTES   8
#define NAME_LENGTH      16 /* hexadecimal digits of the hash */
#define DRAFT_ENDING     ".XXXXXX"

typedef struct entry_header {
    uint64_t magic, key_size, data_size;
} entry_header;

static uint64_t hash(const kprof_strbuf *bytes)
{
    return kprof_hash(KPROF_HASH_START, bytes->data, bytes->length);
}

static bool make_folder(char *path, size_t size)
{
    const char *off = secure_getenv("KPROF_CACHE"), *xdg = secure_getenv("XDG_CACHE_HOME"),
               *home = secure_getenv("HOME");
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
    if (!make_folder(folder, sizeof folder))
        return false;
    int length = snprintf(path, size, "%s/%016lx", folder, hash(key));
    return length > 0 && (size_t)length < size;
}

static bool read_part(int fd, uint64_t offset, size_t size, kprof_strbuf *out)
{
    void *data = kprof_strbuf_extend(out, size);
    return data && pread(fd, data, size, (off_t)offset) == (ssize_t)size;
}

/* Is this the entry of `key`? A file of somebody else's is not read: it could name another chip's counters. */
static bool check_file(const kprof_strbuf *key, kprof_cache_entry *entry)
{
    struct stat info;
    entry->start = sizeof(entry_header) + key->length;
    const off_t least = (off_t)(entry->start + CHECKSUM_BYTES);
    if (fstat(entry->fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() || info.st_size < least ||
        info.st_size > (off_t)MAX_ENTRY_BYTES)
        return false;
    entry->size = (uint64_t)(info.st_size - least);
    const entry_header expected = {MAGIC, key->length, entry->size};
    KPROF_AUTO(kprof_strbuf) found = KPROF_STRBUF_INIT;
    return read_part(entry->fd, 0, entry->start, &found) && memcmp(found.data, &expected, sizeof expected) == 0 &&
           memcmp(found.data + sizeof expected, key->data, key->length) == 0;
}

typedef struct cache_file {
    struct timespec used;
    off_t size;
    char name[NAME_LENGTH + sizeof DRAFT_ENDING];
} cache_file;

KPROF_BY_BOTH(latest_first, cache_file, KPROF_COMPARE(b->used.tv_sec, a->used.tv_sec),
              KPROF_COMPARE(b->used.tv_nsec, a->used.tv_nsec))

/* An entry, or the draft of one that a killed process left: nothing else is ours to remove. */
static int is_ours(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    bool is_draft = length == NAME_LENGTH + strlen(DRAFT_ENDING) && entry->d_name[NAME_LENGTH] == '.';
    return (length == NAME_LENGTH || is_draft) && strspn(entry->d_name, "0123456789abcdef") >= NAME_LENGTH;
}

/* Keep what was used last, within the bounds on number and size. */
static void prune(const char *path)
{
    KPROF_AUTO_CLOSE int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    KPROF_AUTO_FREE struct dirent **names = NULL;
    int count = folder >= 0 ? scandirat(folder, ".", &names, is_ours, NULL) : 0;
    KPROF_AUTO_FREE cache_file *files = kprof_calloc(count > 0 ? (size_t)count : 1, sizeof *files);
    size_t listed = 0;
    for (int i = 0; i < count; i++) {
        struct stat info;
        if (fstatat(folder, names[i]->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) { /* else a process removed it */
            files[listed] = (cache_file){.used = info.st_mtim, .size = info.st_size};
            strcpy(files[listed++].name, names[i]->d_name);
        }
        free(names[i]);
    }
    qsort(files, listed, sizeof *files, latest_first);
    off_t total = 0;
    for (size_t i = 0; i < listed; i++) {
        total += files[i].size;
        if (i >= MAX_ENTRIES || total > (off_t)MAX_FOLDER_BYTES)
            (void)unlinkat(folder, files[i].name, 0);
    }
}

bool kprof_cache_open(const kprof_strbuf *key, kprof_cache_entry *out)
{
    char path[PATH_MAX];
    const bool has_path = entry_path(key, path, sizeof path);
    out->fd = has_path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (out->fd < 0 || !check_file(key, out)) {
        kprof_cache_close(out);
        return false;
    }
    (void)futimens(out->fd, NULL);
    return true;
}

bool kprof_cache_read(const kprof_cache_entry *entry, uint64_t offset, uint64_t size, kprof_strbuf *out)
{
    return offset <= entry->size && size <= entry->size - offset &&
           read_part(entry->fd, entry->start + offset, size, out);
}

void kprof_cache_close(kprof_cache_entry *entry)
{
    if (entry->fd >= 0)
        close(entry->fd);
    entry->fd = -1;
}

bool kprof_cache_get(const kprof_strbuf *key, kprof_strbuf *out)
{
    kprof_cache_entry entry;
    KPROF_AUTO(kprof_strbuf) file = KPROF_STRBUF_INIT;
    uint64_t checksum;
    bool found =
        kprof_cache_open(key, &entry) && read_part(entry.fd, 0, entry.start + entry.size + CHECKSUM_BYTES, &file);
    if (found) {
        file.length -= CHECKSUM_BYTES;
        memcpy(&checksum, file.data + file.length, CHECKSUM_BYTES);
        found = checksum == hash(&file);
    }
    if (found)
        kprof_strbuf_append(out, file.data + entry.start, entry.size);
    kprof_cache_close(&entry);
    return found;
}

void kprof_cache_put(const kprof_strbuf *key, const void *data, size_t size)
{
    char path[PATH_MAX], draft[PATH_MAX + 16];
    if (size > MAX_ENTRY_BYTES / 2 || !entry_path(key, path, sizeof path))
        return;
    const entry_header header = {MAGIC, key->length, size};
    KPROF_AUTO(kprof_strbuf) file = KPROF_STRBUF_INIT;
    kprof_strbuf_append(&file, &header, sizeof header);
    kprof_strbuf_append(&file, key->data, key->length);
    kprof_strbuf_append(&file, data, size);
    const uint64_t checksum = hash(&file);
    kprof_strbuf_append(&file, &checksum, CHECKSUM_BYTES);
    snprintf(draft, sizeof draft, "%s" DRAFT_ENDING, path);
    int fd = mkostemp(draft, O_CLOEXEC);
    if (fd >= 0) {
        const bool written = kprof_write_all(fd, file.data, file.length) == file.length;
        if (close(fd) != 0 || !written || rename(draft, path) != 0)
            unlink(draft);
        *strrchr(path, '/') = '\0';
        prune(path);
    }
}
