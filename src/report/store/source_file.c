/* Looks for files of others, opens, reads and hashes them. */
#include "report/store/source_file.h"
#include "core/bisect.h"
#include "core/bytes.h"
#include "core/log.h"
#include "report/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A limit for the folders that the user gave, whose descriptors are open meanwhile. */
#define DEPTH_MAX 32
#define TOO_DEEP  "more than 32 levels deep"

/* A file below a folder. */
typedef struct entry {
    size_t name; /* in the index' names */
    size_t folder;
} entry;

/* A file that has the wanted name. */
typedef struct candidate {
    const char *file; /* of the user's; NULL: one of the index */
    const struct found_folder *folder;
    size_t same_end, order;
} candidate;

int kprof_source_open(int folder, const char *name, size_t most, size_t *size)
{
    struct stat found; /* only what is a file is opened: of a pipe or a device that alone is an act */
    errno = 0;
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    if (!S_ISREG(found.st_mode)) {
        errno = S_ISLNK(found.st_mode) ? ELOOP : 0;
        return -1;
    }
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return -1;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && (uintmax_t)found.st_size <= most) {
        *size = (size_t)found.st_size;
        return file;
    }
    close(file);
    errno = EFBIG;
    return -1;
}

void kprof_source_hash(const char *bytes, size_t size, char hash[17])
{
    snprintf(hash, 17, "%016lx", kprof_hash(KPROF_HASH_START, bytes, size));
}

size_t kprof_source_same_end(const char *a, const char *b)
{
    size_t parts = 0;
    const char *x = a + strlen(a), *y = b + strlen(b);
    while (x > a && y > b && x[-1] == y[-1]) {
        const bool is_slash = *--x == '/';
        y--;
        parts += is_slash;
        while (is_slash && x > a && x[-1] == '/')
            x--;
        while (is_slash && y > b && y[-1] == '/')
            y--;
    }
    const bool is_whole = (x == a || x[-1] == '/') && (y == b || y[-1] == '/') && *x != '/' && *x;
    return parts + is_whole;
}

void kprof_source_index_free(kprof_source_index *index)
{
    for (size_t i = 0; i < index->folder_count; i++)
        free(index->folders[i].below);
    free(index->folders);
    for (size_t i = 0; i < index->link_count; i++)
        free(index->links[i].below);
    free(index->links);
    KPROF_FREE_TEXTS(&index->names, &index->entries, &index->passed_over);
    *index = (kprof_source_index){0};
}

static size_t entry_count(const kprof_source_index *index)
{
    return index->entries.length / sizeof(entry);
}

/* Note why kprof does not look into a folder. */
static void pass_over(kprof_source_index *index, const struct found_folder *in, const char *name, const char *why)
{
    if (index->passed_count++ == 0)
        kprof_strbuf_printf(&index->passed_over, "%s%s: %s", in->below, name, why);
}

static bool is_link_to_folder(int folder, const char *name)
{
    struct stat link, to;
    return fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode) &&
           fstatat(folder, name, &to, 0) == 0 && S_ISDIR(to.st_mode);
}

/* Note the files of a folder, whose descriptor this closes, then those of the folders in it. */
static void add_folder(kprof_source_index *index, int folder, struct found_folder place, size_t depth)
{
    KPROF_AUTO(kprof_strlist) inner = KPROF_STRLIST_INIT;
    DIR *entries = depth > DEPTH_MAX ? NULL : fdopendir(folder);
    if (!entries) {
        pass_over(index, &place, "", depth > DEPTH_MAX ? TOO_DEEP : strerror(errno));
        close(folder);
        free(place.below);
        return;
    }
    const size_t number = index->folder_count;
    *KPROF_ADD(index->folders, index->folder_count) = place;
    for (const struct dirent *found; !index->is_cut && (found = readdir(entries));) {
        index->is_cut = ++index->looked_at >= KPROF_SOURCE_ENTRIES_MAX;
        const bool may_be_folder = found->d_type == DT_DIR || found->d_type == DT_UNKNOWN;
        if (may_be_folder && strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            kprof_strlist_add(&inner, found->d_name);
        if (found->d_type != DT_REG && found->d_type != DT_LNK && found->d_type != DT_UNKNOWN)
            continue;
        if (found->d_type != DT_REG && is_link_to_folder(dirfd(entries), found->d_name)) {
            *KPROF_ADD(index->links, index->link_count) =
                (struct found_folder){place.given, kprof_strprintf("%s%s", place.below, found->d_name)};
            continue;
        }
        kprof_strbuf_append(&index->entries, &(entry){index->names.length, number}, sizeof(entry));
        kprof_strbuf_append(&index->names, found->d_name, strlen(found->d_name) + 1);
    }
    for (size_t i = 0; i < inner.count && !index->is_cut; i++) {
        const int next = openat(dirfd(entries), inner.items[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (next < 0 && errno != ENOTDIR && errno != ELOOP && errno != ENOENT)
            pass_over(index, &place, inner.items[i], strerror(errno));
        if (next >= 0)
            add_folder(index, next,
                       (struct found_folder){place.given, kprof_strprintf("%s%s/", place.below, inner.items[i])},
                       depth + 1);
    }
    closedir(entries);
}

static bool is_below(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strcmp(folder, "/") == 0 || (kprof_begins_with(path, folder) && (!path[length] || path[length] == '/'));
}

/* Note the links to folders that kprof does not look into by another way. */
static void pass_over_links(const kprof_strlist *folders, kprof_source_index *index)
{
    KPROF_AUTO(kprof_strlist) looked_into = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < folders->count; i++) {
        char *real = realpath(folders->items[i], NULL);
        if (real)
            kprof_strlist_take(&looked_into, real);
    }
    for (size_t i = 0; i < index->link_count; i++) {
        const struct found_folder *link = &index->links[i];
        KPROF_AUTO_FREE char *path = kprof_strprintf("%s/%s", folders->items[link->given], link->below);
        KPROF_AUTO_FREE char *to = realpath(path, NULL);
        KPROF_AUTO_FREE char *why = kprof_strprintf("a link to %s", to ? to : "");
        if (to && !KPROF_ANY(k, looked_into.count, is_below(to, looked_into.items[k])))
            pass_over(index, link, "", why);
    }
}

static int by_name(const void *a, const void *b, void *names)
{
    const entry *x = a, *y = b;
    const int order = strcmp((const char *)names + x->name, (const char *)names + y->name);
    return order ? order : KPROF_COMPARE(x->name, y->name);
}

static void build_index(const kprof_source_places *places, kprof_source_index *index)
{
    for (size_t i = 0; places->folders && i < places->folders->count; i++) {
        const int folder = open(places->folders->items[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0)
            add_folder(index, folder, (struct found_folder){i, kprof_strdup("")}, 0);
    }
    if (index->link_count > 0)
        pass_over_links(places->folders, index);
    if (entry_count(index) > 0)
        qsort_r(index->entries.data, entry_count(index), sizeof(entry), by_name, index->names.data);
    if (index->is_cut)
        kprof_log(KPROF_LOG_WARNING,
                  "the folders of --source-folders have more than %d files and folders: sources may be among those "
                  "that kprof did not look at; name a folder that is nearer to them",
                  KPROF_SOURCE_ENTRIES_MAX);
    if (index->passed_count > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "below --source-folders kprof did not look into %zu folder%s, the first is %s; name a folder that is "
                  "nearer to the sources, if they are there",
                  index->passed_count, index->passed_count == 1 ? "" : "s", index->passed_over.data);
    index->is_built = true;
}

KPROF_BY_BOTH(by_end, candidate, KPROF_COMPARE(b->same_end, a->same_end), KPROF_COMPARE(a->order, b->order))

/* Open a folder below one that the user gave, through no link; -1: it is gone. */
static int open_below(const char *given, char *below)
{
    int folder = open(given, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (char *at = below, *end; folder >= 0 && (end = strchr(at, '/')); at = end + 1) {
        *end = '\0';
        const int next = openat(folder, at, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        *end = '/';
        close(folder);
        folder = next;
    }
    return folder;
}

/* A search for the files of a name. */
typedef struct search {
    const kprof_source_places *places;
    const char *path, *name; /* and its last part */
    kprof_source_taker *take;
    void *user;
    kprof_strbuf found; /* array of candidates */
} search;

/* Does the taker want no other one? */
static bool offer(const search *of, const candidate *found)
{
    if (found->file) {
        KPROF_AUTO_FREE char *real = realpath(found->file, NULL);
        return real && !of->take(of->user, AT_FDCWD, real);
    }
    const int folder = open_below(of->places->folders->items[found->folder->given], found->folder->below);
    const bool is_taken = folder >= 0 && !of->take(of->user, folder, of->name);
    if (folder >= 0)
        close(folder);
    return is_taken;
}

static void add_candidate(search *of, candidate found, const char *path)
{
    found.same_end = kprof_source_same_end(path, of->path);
    if (found.same_end > 0)
        kprof_strbuf_append(&of->found, &found, sizeof found);
}

static void add_found(search *of, const kprof_source_index *index)
{
    const entry *entries = (const entry *)index->entries.data;
    const char *names = index->names.data;
    size_t low;
    KPROF_BISECT(low, entry_count(index), strcmp(names + entries[middle].name, of->name) < 0)
    for (; low < entry_count(index) && strcmp(names + entries[low].name, of->name) == 0; low++) {
        const struct found_folder *folder = &index->folders[entries[low].folder];
        KPROF_AUTO_FREE char *path =
            kprof_strprintf("%s/%s%s", of->places->folders->items[folder->given], folder->below, of->name);
        add_candidate(of, (candidate){.folder = folder, .order = low}, path);
    }
}

static bool offer_all(search *of)
{
    candidate *candidates = (candidate *)of->found.data;
    const size_t count = of->found.length / sizeof *candidates;
    bool is_taken = false;
    if (count > 1)
        qsort(candidates, count, sizeof *candidates, by_end);
    for (size_t i = 0; i < count && !is_taken; i++)
        is_taken = offer(of, &candidates[i]);
    kprof_strbuf_free(&of->found);
    return is_taken;
}

void kprof_source_search(const kprof_source_places *places, const char *path, kprof_source_taker *take, void *user)
{
    search of = {.places = places, .path = path, .name = kprof_path_last_part(path), .take = take, .user = user};
    KPROF_AUTO(kprof_source_index) own = {.is_built = false};
    kprof_source_index *index = places->index ? places->index : &own;
    if (!*of.name || strcmp(of.name, ".") == 0 || strcmp(of.name, "..") == 0)
        return;
    const kprof_strlist *files = of.places->files;
    for (size_t i = 0; files && i < files->count; i++)
        add_candidate(&of, (candidate){.file = files->items[i], .order = i}, files->items[i]);
    if (offer_all(&of))
        return;
    if (!index->is_built)
        build_index(places, index);
    add_found(&of, index);
    offer_all(&of);
}
