/* Reads /proc/thread-self/maps, a line for each mapping: "7f00-7f40 rw-s 00000000 00:01 1024 /path". /proc/self/maps is
 * empty once the first thread of the process has ended. */
#include "cupti/mappings.h"
#include "core/files.h"
#include "core/strbuf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* /proc/thread-self/pagemap has 64 bits for each page: these say that it is in memory, or swapped out. */
#define PAGE_IS_THERE (UINT64_C(3) << 62)
#define PAGES_AT_ONCE 512
#define PAGES_BETWEEN 16 /* fewer that are not there do not end a run */

typedef struct mapping {
    uint64_t begin, end;
    char permissions[5]; /* "rw-s": shared, "rw-p": private */
} mapping;

/* Does any mapping satisfy `is_wanted`? True also when none can be read. */
static bool any_mapping(bool (*is_wanted)(const char *line, const void *user), const void *user)
{
    KPROF_AUTO_FCLOSE FILE *file = fopen("/proc/thread-self/maps", "re");
    KPROF_AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    bool found = !file, empty = true;
    while (!found && getline(&line, &capacity, file) > 0) {
        found = is_wanted(line, user);
        empty = false;
    }
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
    return path && kprof_begins_with(path, user);
}

bool kprof_mappings_named(const char *beginning)
{
    return any_mapping(is_named, beginning);
}

/* A run of pages that is found piece by piece. */
typedef struct page_run {
    uint64_t first, next; /* next: behind its last page; 0: none was found */
} page_run;

/* Extend the run by the pages from number `page` on. False when what comes behind it is far enough off. */
static bool extend(page_run *run, uint64_t page, const uint64_t *entries, size_t count)
{
    for (size_t i = 0; i < count; i++, page++) {
        if (entries[i] & PAGE_IS_THERE) {
            run->first = run->next > 0 ? run->first : page;
            run->next = page + 1;
        } else if (run->next > 0 && page - run->next >= PAGES_BETWEEN) {
            return false;
        }
    }
    return true;
}

bool kprof_mappings_find_present(uint64_t *begin, uint64_t *end)
{
    uint64_t entries[PAGES_AT_ONCE], page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t page = *begin / page_bytes, last = (*end + page_bytes - 1) / page_bytes;
    page_run run = {0};
    KPROF_AUTO_CLOSE int file = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    bool readable = file >= 0, goes_on = readable;
    while (goes_on && page < last) {
        uint64_t wanted = last - page < PAGES_AT_ONCE ? last - page : PAGES_AT_ONCE;
        ssize_t got = pread(file, entries, wanted * sizeof *entries, (off_t)(page * sizeof *entries));
        size_t count = got > 0 ? (size_t)got / sizeof *entries : 0;
        readable = count > 0;
        goes_on = readable && extend(&run, page, entries, count);
        page += count;
    }
    if (!readable)
        return *begin < *end;
    if (run.next > 0 && run.first * page_bytes > *begin)
        *begin = run.first * page_bytes;
    if (run.next > 0 && run.next * page_bytes < *end)
        *end = run.next * page_bytes;
    return run.next > 0;
}

bool kprof_mappings_all_present(uint64_t address, size_t size_bytes)
{
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), end = address + size_bytes;
    KPROF_AUTO_CLOSE int file = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    bool present = file >= 0;
    for (uint64_t page = address / page_bytes; present && page * page_bytes < end; page++) {
        uint64_t entry;
        present = pread(file, &entry, sizeof entry, (off_t)(page * sizeof entry)) == (ssize_t)sizeof entry &&
                  (entry & PAGE_IS_THERE);
    }
    return present;
}
