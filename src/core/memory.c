/* Reads /proc/meminfo and the files of control groups, version 2 and 1. Paths are on the heap, as a thread of a program
 * that asks may have a small stack. */
#include "core/memory.h"

#include "core/files.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The number in a file; SIZE_MAX when there is none ("max" is no limit). */
static size_t read_number(const char *path)
{
    char text[64];
    unsigned long long value;
    return kprof_read_text(path, text, sizeof text) > 0 && sscanf(text, "%llu", &value) == 1 ? (size_t)value : SIZE_MAX;
}

/* Cached files and some memory of the kernel count as used, and after a while fill any limit. They give way when memory
 * is needed, so subtract them. */
static size_t read_reclaimable(const char *path)
{
    static const char *const names[] = {"active_file",       "inactive_file",       "slab_reclaimable",
                                        "total_active_file", "total_inactive_file", "total_slab_reclaimable"};
    char name[64];
    unsigned long long value;
    size_t sum = 0, hierarchy_sum = 0; /* version 1 has both names; the second also counts the groups below */
    KPROF_AUTO_FCLOSE FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%63s %llu", name, &value) == 2)
        for (size_t i = 0; i < COUNT_OF(names); i++)
            if (strcmp(name, names[i]) == 0)
                *(i < 3 ? &sum : &hierarchy_sum) += (size_t)value;
    return hierarchy_sum > sum ? hierarchy_sum : sum;
}

typedef struct group_files {
    const char *limit, *usage, *statistics;
} group_files;

static const group_files version_2 = {"memory.max", "memory.current", "memory.stat"},
                         version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"};

static size_t read_in(const char *folder, const char *name, size_t (*read)(const char *path))
{
    KPROF_AUTO_FREE char *path = kprof_strprintf("%s/%s", folder, name);
    return path ? read(path) : SIZE_MAX;
}

/* SIZE_MAX where there is no limit. */
static size_t left_in_group(const char *folder, const group_files *files)
{
    size_t limit = read_in(folder, files->limit, read_number), usage = read_in(folder, files->usage, read_number);
    if (limit == SIZE_MAX || usage == SIZE_MAX)
        return SIZE_MAX;
    size_t reclaimable = read_in(folder, files->statistics, read_reclaimable);
    usage = usage > reclaimable ? usage - reclaimable : 0;
    return limit > usage ? limit - usage : 0;
}

static bool lists(const char *controllers, const char *name)
{
    size_t length = strlen(name);
    for (const char *found = strstr(controllers, name); found; found = strstr(found + length, name))
        if ((found == controllers || found[-1] == ',') && (found[length] == ',' || found[length] == '\0'))
            return true;
    return false;
}

/* Return what the groups of a line "number:controllers:path" leave. A line of version 2 has no controllers. */
static size_t left_by_line(char *line, const char *root)
{
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return SIZE_MAX;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    bool is_version_2 = *++controllers == '\0';
    if (!is_version_2 && !lists(controllers, "memory"))
        return SIZE_MAX;
    const char *below = is_version_2 ? "" : "/memory";
    KPROF_AUTO_FREE char *folder = kprof_strprintf("%s%s%s", root, below, strcmp(path, "/") == 0 ? "" : path);
    if (!folder)
        return SIZE_MAX;
    /* The least that is left in this group and in each group above it, up to the root. */
    size_t least = SIZE_MAX;
    const size_t root_length = strlen(root) + strlen(below);
    for (char *end = folder + strlen(folder); end > folder + root_length; end = strrchr(folder, '/')) {
        *end = '\0';
        size_t left = left_in_group(folder, is_version_2 ? &version_2 : &version_1);
        least = left < least ? left : least;
    }
    return least;
}

size_t kprof_memory_left_in_groups_bytes(const char *membership, const char *root)
{
    KPROF_AUTO_FREE char *line = NULL;
    size_t size = 0;
    /* The mounted folder is itself a group of the process in a container, whatever the membership file says. */
    size_t least = left_in_group(root, &version_2);
    KPROF_AUTO_FREE char *folder = kprof_strprintf("%s/memory", root);
    size_t left_1 = folder ? left_in_group(folder, &version_1) : SIZE_MAX;
    least = left_1 < least ? left_1 : least;
    KPROF_AUTO_FCLOSE FILE *file = fopen(membership, "re");
    while (file && getline(&line, &size, file) > 0) {
        size_t left = left_by_line(line, root);
        least = left < least ? left : least;
    }
    return least;
}

size_t kprof_memory_available_bytes(const char *root)
{
    KPROF_AUTO_FREE char *membership = kprof_strprintf("%s/proc/self/cgroup", root);
    KPROF_AUTO_FREE char *groups = kprof_strprintf("%s/sys/fs/cgroup", root);
    uint64_t kibibytes = 0;
    kprof_proc_number(&(kprof_proc_file){root, "/proc/meminfo"}, "MemAvailable", 10, &kibibytes);
    const size_t available = (size_t)kibibytes * 1024;
    size_t left = membership && groups ? kprof_memory_left_in_groups_bytes(membership, groups) : available;
    return left >= available ? available : left > 0 ? left : 1;
}
