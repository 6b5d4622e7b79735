/* Reads /proc/meminfo and the control group's files, version 2 and 1. */
#include "core/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t read_available(void)
{
    char line[256];
    unsigned long long kibibytes = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1)
            break;
    if (file)
        fclose(file);
    return (size_t)kibibytes * 1024;
}

/* The number in a file; SIZE_MAX when there is none ("max" is no limit). */
static size_t read_number(const char *path)
{
    unsigned long long value;
    FILE *file = fopen(path, "re");
    if (!file)
        return SIZE_MAX;
    int found = fscanf(file, "%llu", &value);
    fclose(file);
    return found == 1 ? (size_t)value : SIZE_MAX;
}

/* Cached files count as used, but make way. */
static size_t read_inactive_files(const char *path)
{
    char name[64];
    unsigned long long value = 0;
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fscanf(file, "%63s %llu", name, &value) == 2)
        found = strcmp(name, "inactive_file") == 0 || strcmp(name, "total_inactive_file") == 0;
    if (file)
        fclose(file);
    return found ? (size_t)value : 0;
}

/* SIZE_MAX where there is no limit. */
static size_t left_in_group(const char *limit_path, const char *usage_path, const char *stat_path)
{
    size_t limit = read_number(limit_path), usage = read_number(usage_path);
    if (limit == SIZE_MAX || usage == SIZE_MAX)
        return SIZE_MAX;
    size_t files = read_inactive_files(stat_path);
    usage = usage > files ? usage - files : 0;
    return limit > usage ? limit - usage : 0;
}

size_t kprof_memory_available_bytes(void)
{
    size_t available = read_available();
    size_t left =
        left_in_group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat");
    if (left == SIZE_MAX)
        left = left_in_group("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                             "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat");
    return left < available ? left : available;
}
