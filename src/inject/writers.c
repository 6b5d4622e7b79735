/* Threads, and what reads files and networks on its own. */
#include "inject/writers.h"

#include "core/mappings.h"
#include "inject/threads.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Beginnings of what /proc/self/fd tells of descriptors through which memory is written with no call that waits: of the
 * host alone, and of devices as well. */
static const char *const host_descriptors[] = {"anon_inode:[io_uring]", NULL};
static const char *const device_descriptors[] = {"/dev/infiniband/", "/dev/nvidia-fs", "/dev/gdrdrv", "/dev/vfio/",
                                                 NULL};

static bool is_one_of(const char *const *beginnings, const char *descriptor)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%.20s", descriptor);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    for (; *beginnings; beginnings++)
        if (strncmp(target, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

static bool has_descriptor(const char *const *beginnings)
{
    DIR *descriptors = opendir("/proc/self/fd");
    bool found = !descriptors;
    for (struct dirent *entry; !found && (entry = readdir(descriptors));)
        found = is_one_of(beginnings, entry->d_name);
    if (descriptors)
        closedir(descriptors);
    return found;
}

const char *kprof_writers_devices(void)
{
    return has_descriptor(device_descriptors)
               ? "a network card or another device may write the memory that a replay restores"
               : NULL;
}

const char *kprof_writers_others(void)
{
    if (kprof_threads_others())
        return "other threads of the application reach the memory that a replay restores (pinned or managed)";
    if (has_descriptor(host_descriptors) || kprof_mappings_named("/[aio]"))
        return "asynchronous input may be on its way to the memory that a replay restores (pinned or managed)";
    return kprof_writers_devices();
}
