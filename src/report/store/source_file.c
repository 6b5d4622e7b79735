/* Looks for files of others, opens, reads and hashes them. */
#include "report/store/source_file.h"
#include "core/bytes.h"
#include "report/store/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limits for the folders that the user gave. */
#define DEPTH_MAX   16
#define ENTRIES_MAX 100000

/* A search for files of a name. */
typedef struct search {
    const char *name;
    kprof_source_taker *take;
    void *user;
    size_t entries;
    bool is_done;
} search;

int kprof_source_open(int folder, const char *name, size_t most, size_t *size)
{
    struct stat found; /* only what is a file is opened: of a pipe or a device that alone is an act */
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode))
        return -1;
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

void kprof_source_hash(const char *bytes, size_t size, char hash[17])
{
    snprintf(hash, 17, "%016llx", (unsigned long long)kprof_hash(KPROF_HASH_START, bytes, size));
}

/* Look through a folder, whose descriptor this closes, and those in it. */
static void search_folder(search *of, int folder, size_t depth)
{
    DIR *entries = fdopendir(folder);
    if (!entries) {
        close(folder);
        return;
    }
    of->is_done = !of->take(of->user, dirfd(entries), of->name);
    for (const struct dirent *entry; depth < DEPTH_MAX && !of->is_done && (entry = readdir(entries));) {
        const bool may_be_folder = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        if (++of->entries > ENTRIES_MAX)
            break;
        if (!may_be_folder || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const int inner = openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (inner >= 0)
            search_folder(of, inner, depth + 1);
    }
    closedir(entries);
}

void kprof_source_search(const kprof_source_places *places, const char *path, kprof_source_taker *take, void *user)
{
    search of = {.name = kprof_path_last_part(path), .take = take, .user = user};
    if (!*of.name || strcmp(of.name, ".") == 0 || strcmp(of.name, "..") == 0)
        return;
    for (size_t i = 0; places->files && i < places->files->count && !of.is_done; i++) {
        const bool is_named = strcmp(kprof_path_last_part(places->files->items[i]), of.name) == 0;
        KPROF_AUTO_FREE char *real = is_named ? realpath(places->files->items[i], NULL) : NULL;
        if (real)
            of.is_done = !take(user, AT_FDCWD, real);
    }
    for (size_t i = 0; places->folders && i < places->folders->count && !of.is_done; i++) {
        const int folder = open(places->folders->items[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0)
            search_folder(&of, folder, 0);
    }
}
