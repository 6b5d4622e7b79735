/* Reads /proc/thread-self/maps, a line for each mapping: "7f00-7f40 rw-s 00000000 00:01 1024   /path". The process' own
 * is empty once its first thread has ended. */
#include "core/mappings.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mapping {
    uint64_t begin, end;
    char permissions[5]; /* "rw-s": shared, "rw-p": private */
    const char *path;    /* "" without one */
} mapping;

typedef struct question {
    uint64_t begin, end;
    const char *prefix;
} question;

static bool parse(char *line, mapping *out)
{
    int path = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &out->begin, &out->end, out->permissions, &path) < 3)
        return false;
    out->path = line + path;
    return true;
}

static bool is_shared(const mapping *m, const question *asked)
{
    return m->permissions[3] == 's' && m->begin < asked->end && asked->begin < m->end;
}

static bool is_named(const mapping *m, const question *asked)
{
    return strncmp(m->path, asked->prefix, strlen(asked->prefix)) == 0;
}

static bool any(bool (*matches)(const mapping *m, const question *asked), const question *asked)
{
    FILE *file = fopen("/proc/thread-self/maps", "re");
    char *line = NULL;
    size_t capacity = 0;
    mapping m;
    bool found = !file, empty = true;
    while (!found && getline(&line, &capacity, file) > 0) {
        found = !parse(line, &m) || matches(&m, asked);
        empty = false;
    }
    free(line);
    if (file)
        fclose(file);
    return found || empty;
}

bool kprof_mappings_shared(const void *address, size_t size_bytes)
{
    return any(is_shared, &(question){.begin = (uintptr_t)address, .end = (uintptr_t)address + size_bytes});
}

bool kprof_mappings_named(const char *prefix)
{
    return any(is_named, &(question){.prefix = prefix});
}
