/* Reads /proc/thread-self/maps, a line for each mapping: "7f00-7f40 rw-s 00000000 00:01 1024 /path". /proc/self/maps is
 * empty once the first thread of the process has ended. */
#include "core/mappings.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct mapping {
    uint64_t begin, end;
    char permissions[5]; /* "rw-s": shared, "rw-p": private */
} mapping;

bool kprof_mappings_shared(const void *address, size_t size_bytes)
{
    FILE *file = fopen("/proc/thread-self/maps", "re");
    uint64_t begin = (uintptr_t)address, end = begin + size_bytes;
    char *line = NULL;
    size_t capacity = 0;
    mapping m;
    bool found = !file, empty = true;
    while (!found && getline(&line, &capacity, file) > 0) {
        bool is_parsed = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &m.begin, &m.end, m.permissions) == 3;
        found = !is_parsed || (m.permissions[3] == 's' && m.begin < end && begin < m.end);
        empty = false;
    }
    free(line);
    if (file)
        fclose(file);
    return found || empty;
}
