/* Threads, and what reads files and networks on its own. */
#include "inject/writers.h"

#include "core/mappings.h"
#include "inject/threads.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Beginnings of what /proc/self/fd tells of descriptors through which memory is written with no call that waits. */
static const char *const asynchronous[] = {
    "anon_inode:[io_uring]", "/dev/infiniband/", "/dev/nvidia-fs", "/dev/gdrdrv", "/dev/vfio/",
};

static bool is_asynchronous(const char *descriptor)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%.20s", descriptor);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    for (size_t i = 0; i < sizeof asynchronous / sizeof *asynchronous; i++)
        if (strncmp(target, asynchronous[i], strlen(asynchronous[i])) == 0)
            return true;
    return false;
}

static bool has_asynchronous_io(void)
{
    DIR *descriptors = opendir("/proc/self/fd");
    bool found = !descriptors;
    for (struct dirent *entry; !found && (entry = readdir(descriptors));)
        found = is_asynchronous(entry->d_name);
    if (descriptors)
        closedir(descriptors);
    return found || kprof_mappings_named("/[aio]");
}

const char *kprof_writers_others(void)
{
    if (kprof_threads_others())
        return "other threads of the application reach the memory that a replay restores (pinned or managed)";
    if (has_asynchronous_io())
        return "asynchronous input may be on its way to the memory that a replay restores (pinned or managed)";
    return NULL;
}
