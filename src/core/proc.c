/* Reads files of /proc line by line: they have no size. */
#include "core/proc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kprof_proc_number(const kprof_proc_file *of, const char *name, int base, uint64_t *out)
{
    char whole[PATH_MAX], line[256], *end;
    const size_t length = strlen(name);
    bool found = false;
    FILE *file =
        snprintf(whole, sizeof whole, "%s%s", of->root, of->path) < (int)sizeof whole ? fopen(whole, "re") : NULL;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, length) != 0 || line[length] != ':')
            continue;
        const unsigned long long number = strtoull(line + length + 1, &end, base);
        found = end > line + length + 1;
        *out = found ? number : *out;
    }
    if (file)
        fclose(file);
    return found;
}
