/* Appends records to this process's spool. Lives inside other people's programs, which may close every descriptor,
 * change directory, fork or cancel threads: nothing here trusts the descriptor number from one record to the next. */
#include "core/files.h"
#include "core/folder.h"
#include "core/hold.h"
#include "spool/format.h"
#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SPOOLS_PER_PID 10000

/* Records that are held are written when they are more than this. */
#define MOST_HELD_BYTES ((size_t)256 << 10)

struct kprof_spool_writer {
    pthread_mutex_t lock; /* one that checks for errors; guards everything below */
    char *path;           /* absolute */
    int fd;
    dev_t device; /* identity of the file that `fd` must still be */
    ino_t inode;
    uint64_t size;       /* whole records and the header */
    kprof_strbuf buffer; /* whole records that are not written yet */
    bool holds;
    bool failure_logged;
    bool stopped;
};

static bool is_spool_file(const kprof_spool_writer *writer, int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_dev == writer->device && info.st_ino == writer->inode;
}

/* Make writer->fd stand for the spool again after the application closed or reused the number. The application's file
 * is left alone. Return NULL, or the reason for failure. */
static const char *ensure_open(kprof_spool_writer *writer)
{
    if (is_spool_file(writer, writer->fd))
        return NULL;
    int fd = open(writer->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return strerror(errno);
    if (!is_spool_file(writer, fd)) {
        close(fd);
        return "the file was replaced";
    }
    writer->fd = kprof_fd_move_up(fd);
    return NULL;
}

/* The mark must fit on a full disk, so it is a bit of the file's mode. */
static void mark_as_lacking(const kprof_spool_writer *writer)
{
    if (is_spool_file(writer, writer->fd))
        (void)fchmod(writer->fd, KPROF_SPOOL_MODE | KPROF_SPOOL_LACKS_RECORDS);
}

/* How many bytes of the buffer's first `bytes`, which are not all, are whole records. */
static size_t whole_bytes(const kprof_spool_writer *writer, size_t bytes)
{
    size_t whole = 0, next = 0;
    while (writer->size > 0 && next <= bytes) { /* else there is the file's header alone */
        whole = next;
        next += KPROF_SPOOL_RECORD_HEADER_BYTES + kprof_spool_decode_record_header(writer->buffer.data + whole).length;
    }
    return whole;
}

/* Append the buffer and empty it. Return NULL, or the reason for failure. After a failure the file ends with the last
 * record that was written whole. */
static const char *append_buffer(kprof_spool_writer *writer)
{
    const char *reason = writer->buffer.length > 0 ? ensure_open(writer) : NULL;
    size_t fits = reason ? 0 : writer->buffer.length;
    const uint64_t most = kprof_file_limit_bytes();
    if (fits > 0 && writer->size + fits > most) {
        fits = most > writer->size ? whole_bytes(writer, most - writer->size) : 0;
        reason = "the limit on file sizes (ulimit -f) is reached";
    }
    const size_t done = fits > 0 ? kprof_write_all(writer->fd, writer->buffer.data, fits) : 0;
    if (done < fits)
        reason = strerror(errno);
    const size_t whole = done == fits ? done : whole_bytes(writer, done);
    writer->size += whole;
    if (done > whole && ftruncate(writer->fd, (off_t)writer->size) != 0)
        reason = "a partial record could not be removed";
    kprof_strbuf_clear(&writer->buffer);
    return reason;
}

/* Write the record, or hold it; NULL: write what is held. */
static const char *write_locked(kprof_spool_writer *writer, const kprof_record *record)
{
    const size_t before = writer->buffer.length;
    const char *reason = NULL;
    if (record && !kprof_spool_encode_record(record, &writer->buffer))
        reason = "the record is larger than the format allows";
    else if (writer->buffer.failed)
        reason = "out of memory";
    if (reason) {
        writer->buffer.length = before;
        writer->buffer.failed = false;
    }
    if (writer->holds && record && record->type == KPROF_RECORD_LAUNCH && writer->buffer.length <= MOST_HELD_BYTES)
        return reason;
    const char *other = append_buffer(writer);
    return reason ? reason : other;
}

kprof_status kprof_spool_write(kprof_spool_writer *writer, const kprof_record *record)
{
    int saved_errno = errno, cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* a thread may be cancelled inside write(2) */
    bool locked = pthread_mutex_lock(&writer->lock) == 0;          /* else a signal handler has interrupted a write */
    if (locked && !record)
        writer->holds = false;
    const char *reason = !locked           ? "a signal handler ends the process in the middle of a record"
                         : writer->stopped ? "nobody reads it"
                                           : write_locked(writer, record);
    bool log_it = reason && locked && !writer->stopped && !writer->failure_logged;
    if (log_it)
        mark_as_lacking(writer);
    writer->failure_logged = writer->failure_logged || log_it;
    if (locked)
        pthread_mutex_unlock(&writer->lock);
    /* Log once, and after unlocking, because the log's sink may be this spool. */
    if (log_it)
        kprof_log(KPROF_LOG_ERROR, "writing %s: %s", writer->path, reason);
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
    return reason ? KPROF_OUTPUT : KPROF_OK;
}

void kprof_spool_hold(kprof_spool_writer *writer)
{
    if (pthread_mutex_lock(&writer->lock) != 0) /* as above */
        return;
    writer->holds = true;
    pthread_mutex_unlock(&writer->lock);
}

kprof_status kprof_spool_release(kprof_spool_writer *writer)
{
    return kprof_spool_write(writer, NULL);
}

void kprof_spool_writer_stop(kprof_spool_writer *writer)
{
    KPROF_HOLD(writer->lock);
    if (!writer->stopped && is_spool_file(writer, writer->fd))
        close(writer->fd);
    writer->stopped = true;
}

/* Create "<pid>-<n>.spool" with the first free n: exec keeps the pid. The descriptor, or -1 and the reason. */
static int create_file(int folder, const char *dir, kprof_strbuf *path, const char **reason)
{
    for (int n = 0; n < MAX_SPOOLS_PER_PID; n++) {
        char name[64];
        snprintf(name, sizeof name, "%ld-%d.spool", (long)getpid(), n);
        int fd = kprof_folder_open_file(folder, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, reason);
        if (fd < 0 && errno == EEXIST)
            continue;
        kprof_strbuf_printf(path, "%s/%s", dir, name);
        return fd < 0 ? fd : kprof_fd_move_up(fd);
    }
    return -1;
}

static const char *start_file(kprof_spool_writer *writer, const char *dir)
{
    const char *reason;
    kprof_strbuf path = KPROF_STRBUF_INIT;
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(dir, &reason);
    if (folder < 0)
        return reason;
    writer->fd = create_file(folder, dir, &path, &reason);
    writer->path = kprof_strbuf_take(&path);
    struct stat info;
    if (writer->fd < 0)
        return reason;
    if (!writer->path || fstat(writer->fd, &info) != 0) {
        close(writer->fd);
        return "out of memory";
    }
    writer->device = info.st_dev;
    writer->inode = info.st_ino;
    kprof_spool_encode_header(&writer->buffer);
    reason = writer->buffer.failed ? "out of memory" : append_buffer(writer);
    if (reason)
        mark_as_lacking(writer);
    return reason;
}

kprof_status kprof_spool_writer_open(const char *dir, kprof_spool_writer **out)
{
    *out = NULL;
    const char *reason = "out of memory";
    kprof_spool_writer *writer = calloc(1, sizeof *writer);
    if (writer) {
        writer->fd = -1;
        writer->lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
        reason = start_file(writer, dir);
    }
    if (!reason) {
        *out = writer;
        return KPROF_OK;
    }
    kprof_spool_writer_close(writer);
    return kprof_fail(KPROF_OUTPUT, "creating a spool in %s: %s", dir, reason);
}

void kprof_spool_writer_close(kprof_spool_writer *writer)
{
    if (!writer)
        return;
    if (writer->inode && !writer->stopped && is_spool_file(writer, writer->fd))
        close(writer->fd);
    pthread_mutex_destroy(&writer->lock);
    kprof_strbuf_free(&writer->buffer);
    KPROF_FREE(writer->path, writer);
}

/* Leave the memory alone: another thread of the parent may have held the lock and been changing it during fork. */
void kprof_spool_writer_abandon(kprof_spool_writer *writer)
{
    if (writer && !writer->stopped && is_spool_file(writer, writer->fd))
        close(writer->fd);
}
