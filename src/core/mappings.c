/* Reads /proc/thread-self/maps, a line for each mapping: "7f00-7f40 rw-s 00000000 00:01 1024 /path". /proc/self/maps is
 * empty once the first thread of the process has ended. */
#include "core/mappings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* /proc/thread-self/pagemap has 64 bits for each page: these say that it is in memory, or swapped out. */
#define PAGE_IS_THERE (UINT64_C(3) << 62)
#define PAGES_AT_ONCE 512

typedef struct mapping {
    uint64_t begin, end;
    char permissions[5]; /* "rw-s": shared, "rw-p": private */
} mapping;

/* Is there a mapping that is looked for? True also when none can be read. */
static bool any_mapping(bool (*is_wanted)(const char *line, const void *user), const void *user)
{
    FILE *file = fopen("/proc/thread-self/maps", "re");
    char *line = NULL;
    size_t capacity = 0;
    bool found = !file, empty = true;
    while (!found && getline(&line, &capacity, file) > 0) {
        found = is_wanted(line, user);
        empty = false;
    }
    free(line);
    if (file)
        fclose(file);
    return found || empty;
}

/* Read a line; does its mapping overlap with the range? */
static bool overlaps(const char *line, const mapping *range, mapping *out)
{
    *out = (mapping){.begin = 0, .end = UINT64_MAX, .permissions = "---s"}; /* where it cannot be read */
    (void)sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &out->begin, &out->end, out->permissions);
    return out->begin < range->end && range->begin < out->end;
}

static bool is_shared(const char *line, const void *range)
{
    mapping m;
    return overlaps(line, range, &m) && m.permissions[3] == 's';
}

bool kprof_mappings_shared(const void *address, size_t size_bytes)
{
    mapping range = {.begin = (uintptr_t)address, .end = (uintptr_t)address + size_bytes};
    return any_mapping(is_shared, &range);
}

static bool is_general(const char *line, const void *range)
{
    mapping m;
    return overlaps(line, range, &m) && (strstr(line, "[heap]") || strstr(line, "[stack"));
}

bool kprof_mappings_general(const void *address, size_t size_bytes)
{
    mapping range = {.begin = (uintptr_t)address, .end = (uintptr_t)address + size_bytes};
    return any_mapping(is_general, &range);
}

static bool is_named(const char *line, const void *user)
{
    const char *path = strpbrk(line, "/[");
    return path && strncmp(path, user, strlen(user)) == 0;
}

bool kprof_mappings_named(const char *beginning)
{
    return any_mapping(is_named, beginning);
}

bool kprof_mappings_present(const void *address, size_t size_bytes)
{
    uint64_t pages[PAGES_AT_ONCE], page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t page = (uintptr_t)address / page_bytes;
    uint64_t end = ((uintptr_t)address + size_bytes + page_bytes - 1) / page_bytes;
    int file = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    bool found = file < 0;
    while (!found && page < end) {
        uint64_t wanted = end - page < PAGES_AT_ONCE ? end - page : PAGES_AT_ONCE;
        ssize_t got = pread(file, pages, wanted * sizeof *pages, (off_t)(page * sizeof *pages));
        found = got < (ssize_t)sizeof *pages;
        for (ssize_t i = 0; i < got / (ssize_t)sizeof *pages && !found; i++)
            found = (pages[i] & PAGE_IS_THERE) != 0;
        page += got > 0 ? (uint64_t)got / sizeof *pages : 0;
    }
    if (file >= 0)
        close(file);
    return found;
}
