/* A file for each cubin, written whole before its record. */
#include "inject/cubins.h"

#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "inject/engine.h"
#include "inject/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_FILES 100000

/* The numbers of cubins that have a record. */
static struct {
    uint64_t *ids; /* [count] */
    size_t count;
    int next; /* number of a file */
} told;

static bool note(uint64_t id)
{
    if (KPROF_ANY(i, told.count, told.ids[i] == id))
        return false;
    if (KPROF_APPEND(told.ids, told.count)) /* else it gets another record */
        told.ids[told.count++] = id;
    return true;
}

/* Create "<pid>-<n>.cubin" with the first free n: exec keeps the pid. The descriptor, or -1 and the reason. */
static int create_file(int folder, char *name, size_t size, const char **reason)
{
    int fd = -1;
    for (; fd < 0 && told.next < MAX_FILES; told.next++) {
        snprintf(name, size, "%ld-%d.cubin", (long)getpid(), told.next);
        fd = kprof_folder_open_file(folder, name, O_WRONLY | O_CREAT | O_EXCL, reason);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* NULL, or the reason: then there is no file. */
static const char *write_file(const void *bytes, size_t size, char *name, size_t name_size)
{
    const char *reason = "too many files";
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(kprof_engine.process.session_dir, &reason);
    int fd = folder >= 0 ? create_file(folder, name, name_size, &reason) : -1;
    if (fd >= 0) {
        reason = size > kprof_file_limit_bytes()           ? "the limit on file sizes (ulimit -f) is reached"
                 : kprof_write_all(fd, bytes, size) < size ? strerror(errno)
                                                           : NULL;
        if (close(fd) != 0 && !reason)
            reason = strerror(errno);
        if (reason)
            unlinkat(folder, name, 0);
    }
    return reason;
}

uint64_t kprof_cubins_tell(uint64_t crc, const char *function)
{
    char name[64] = "";
    size_t size = 0;
    uint64_t id;
    const void *bytes = kprof_engine.device->codes_find(crc, function, &size, &id);
    const bool is_new = note(id);
    const char *reason = bytes && is_new ? write_file(bytes, size, name, sizeof name) : NULL;
    if (bytes)
        kprof_engine.device->codes_drop(id);
    if (!is_new)
        return id;
    if (reason)
        kprof_log(KPROF_LOG_WARNING, "the code of kernels cannot be kept for the source page: %s", reason);
    kprof_record record = {.type = KPROF_RECORD_CODE};
    record.code = (kprof_code_record){.crc = id, .bytes = size, .file = bytes && !reason ? name : ""};
    kprof_process_write(&record);
    return id;
}
