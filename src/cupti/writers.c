/* Looks for files through which other devices reach memory, among those that the process has open. It is a file of its
 * own because its test links it without CUDA. */
#include "cupti/writers.h"

#include "core/files.h"
#include "core/strbuf.h"
#include "cupti/mappings.h"

#include <dirent.h>
#include <unistd.h>

/* Not /proc/self, which is empty once the first thread has ended. */
#define DESCRIPTORS "/proc/thread-self/fd"

/* Beginnings of their paths. */
static const char *const device_files[] = {"/dev/infiniband/", "/dev/hfi1",   "/dev/cxi",
                                           "/dev/nvidia-fs",   "/dev/gdrdrv", "/dev/libnvm",
                                           "/dev/vfio/",       "/dev/uio",    NULL};

/* Is a descriptor's file one of those? True also when the folder cannot be read. */
static bool has_one_of(const char *const *beginnings, const char *folder)
{
    KPROF_AUTO_CLOSEDIR DIR *descriptors = opendir(folder);
    bool found = !descriptors;
    for (struct dirent *entry; !found && (entry = readdir(descriptors));) {
        char target[64];
        ssize_t length = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = '\0';
        found = kprof_begins_with_one(target, beginnings);
    }
    return found;
}

bool kprof_writers_is_device_file(const char *path)
{
    return kprof_begins_with_one(path, device_files);
}

const char *kprof_writers_in(const char *folder)
{
    return has_one_of(device_files, folder)
               ? "a network card or another device may write the memory that a replay restores"
               : NULL;
}

const char *kprof_writers_devices(void)
{
    return kprof_writers_in(DESCRIPTORS);
}

const char *kprof_writers_of_host(void)
{
    static const char *const rings[] = {"anon_inode:[io_uring]", NULL};
    return has_one_of(rings, DESCRIPTORS) || kprof_mappings_named("/[aio]")
               ? "asynchronous input and output may use memory of the host while the launch is repeated"
               : NULL;
}
