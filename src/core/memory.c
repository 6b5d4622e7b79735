/* Reads /proc/meminfo and the control group's files, version 2 and 1. */
#include "core/memory.h"

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

/* Cached files and some of the kernel's own count as used, but make way: after a while they fill any limit. */
static size_t read_reclaimable(const char *path)
{
    static const char *const names[] = {"active_file",       "inactive_file",       "slab_reclaimable",
                                        "total_active_file", "total_inactive_file", "total_slab_reclaimable"};
    char name[64];
    unsigned long long value;
    size_t sum = 0, hierarchy_sum = 0; /* version 1 has both forms; the second counts groups below, too */
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%63s %llu", name, &value) == 2)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(name, names[i]) == 0)
                *(i < 3 ? &sum : &hierarchy_sum) += (size_t)value;
    if (file)
        fclose(file);
    return hierarchy_sum > sum ? hierarchy_sum : sum;
}

/* SIZE_MAX where there is no limit. */
static size_t left_in_group(const char *limit_path, const char *usage_path, const char *stat_path)
{
    size_t limit = read_number(limit_path), usage = read_number(usage_path);
    if (limit == SIZE_MAX || usage == SIZE_MAX)
        return SIZE_MAX;
    size_t reclaimable = read_reclaimable(stat_path);
    usage = usage > reclaimable ? usage - reclaimable : 0;
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
