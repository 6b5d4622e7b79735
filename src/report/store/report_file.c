/* Makes the file of a report and puts it in its place. Several runs may write to one name at once. */
#include "report/store/report_file.h"
#include "core/files.h"
#include "report/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The second try handles a file that appeared between the check and the rename of the first, the third one that
 * disappeared again. */
#define MOST_TRIES 3

const char *const kprof_side_files[KPROF_SIDE_FILE_COUNT] = {"-wal", "-shm", "-journal"};

/* Remove the log of a killed run: SQLite would use it for the file that now has this name. This takes no memory, which
 * kprof may have run out of. */
static void remove_side_files(const char *path)
{
    for (size_t i = 0; i < KPROF_SIDE_FILE_COUNT; i++) {
        char name[PATH_MAX + 16];
        if (snprintf(name, sizeof name, "%s%s", path, kprof_side_files[i]) < (int)sizeof name)
            unlink(name);
    }
}

void kprof_report_file_remove(const char *path)
{
    unlink(path);
    remove_side_files(path);
}

/* An empty file beside `path`, with a name of its own. */
static kprof_status make_draft(const char *path, char **draft)
{
    *draft = kprof_strprintf("%s.new-XXXXXX", path);
    int fd = mkostemp(*draft, O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return KPROF_OK;
    }
    kprof_status status = kprof_fail_to_make(path, "%s: cannot create the report", path);
    free(*draft);
    *draft = NULL;
    return status;
}

/* Does the path still name the file that is open here? */
static bool has_name(int fd, const char *path)
{
    struct stat own, named;
    return fstat(fd, &own) == 0 && stat(path, &named) == 0 && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/* A process that writes a file holds the exclusive lock; one that is about to replace it holds a shared lock. False
 * when another run's lock is in the way. True on a file system without locks. */
static bool lock_file(int fd, int kind)
{
    return flock(fd, kind | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* Keep others from writing the file of that name, if there is one. False when another run is writing it. The caller
 * closes *lock unless it is -1. */
static bool lock_named(const char *path, int *lock, bool *is_there)
{
    struct stat info;
    *lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *is_there = *lock >= 0 || errno != ENOENT || (lstat(path, &info) == 0 && S_ISLNK(info.st_mode));
    if (*lock < 0 || lock_file(*lock, LOCK_SH))
        return true;
    close(*lock);
    *lock = -1;
    return false;
}

static kprof_status make_in_place(const char *path, kprof_create_mode mode, int *lock)
{
    struct stat info;
    int flags = mode == KPROF_CREATE_NEW ? O_CREAT | O_EXCL : 0; /* a claimed file is there, and empty */
    *lock = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (*lock < 0 && errno != EEXIST)
        return kprof_fail_to_make(path, "%s: cannot create the report", path);
    if (*lock >= 0 && lock_file(*lock, LOCK_EX) && has_name(*lock, path) && fstat(*lock, &info) == 0 &&
        info.st_size == 0) {
        remove_side_files(path);
        return KPROF_OK;
    }
    if (*lock >= 0)
        close(*lock);
    *lock = -1;
    return kprof_fail(KPROF_OUTPUT, "%s: exists already; use --force-overwrite or another name", path);
}

kprof_status kprof_report_file_make(const char *path, kprof_create_mode mode, char **draft, int *lock)
{
    struct stat info;
    *draft = NULL;
    *lock = -1;
    if (mode != KPROF_CREATE_REPLACE)
        return make_in_place(path, mode, lock);
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
        return kprof_fail(KPROF_OUTPUT, "%s: cannot be overwritten: not a regular file", path);
    int present;
    bool is_there;
    if (!lock_named(path, &present, &is_there))
        return kprof_fail(KPROF_OUTPUT, "%s: another run is writing it; use another name", path);
    if (present >= 0)
        close(present);
    return make_draft(path, draft);
}

kprof_status kprof_report_file_fill(const char *path, int from)
{
    char block[65536];
    ssize_t got = 1;
    bool is_put = true;
    int to = open(path, O_WRONLY | O_CLOEXEC);
    while (to >= 0 && is_put && (got = read(from, block, sizeof block)) > 0)
        is_put = kprof_write_all(to, block, (size_t)got) == (size_t)got;
    bool is_whole = to >= 0 && got == 0 && is_put;
    int reason = errno;
    if (to >= 0 && close(to) != 0 && is_whole) {
        is_whole = false;
        reason = errno;
    }
    return is_whole ? KPROF_OK : kprof_fail(KPROF_OUTPUT, "%s: copying the run's plans: %s", path, strerror(reason));
}

/* Into an empty file. */
static bool vacuum_into(kprof_report *report, const char *path)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(report->db, "VACUUM INTO ?1", -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE;
}

/* The file gets its name only when it is complete, since kprof may be killed at any time. */
kprof_status kprof_report_keep_seed(kprof_report *report, const char *path)
{
    KPROF_AUTO_FREE char *draft = NULL;
    kprof_status status = make_draft(path, &draft);
    if (status == KPROF_OK && !vacuum_into(report, draft)) /* which is on another disk than the report, perhaps */
        status =
            kprof_fail(KPROF_OUTPUT,
                       "%s: cannot write what a recovery needs: %s; set TMPDIR to another folder if its disk is full",
                       path, sqlite3_errmsg(report->db));
    if (status == KPROF_OK && rename(draft, path) != 0)
        status = kprof_fail(KPROF_OUTPUT, "%s: cannot be created: %s", path, strerror(errno));
    return status;
}

kprof_status kprof_report_file_copy(kprof_report *report, char **copy)
{
    kprof_status status = make_draft(report->path, copy);
    if (status != KPROF_OK)
        return status;
    if (vacuum_into(report, *copy))
        return KPROF_OK;
    status = kprof_store_fail(report, "copying the report, since another program reads it");
    kprof_report_file_remove(*copy);
    free(*copy);
    *copy = NULL;
    return status;
}

/* Lock the file of that name, if there is one, so that no run writes it. Returns NULL, or the reason why the file
 * stays. *again is set when a file with content appeared meanwhile, or the file disappeared: then try again. */
static const char *put_in_place(const char *draft, const char *path, bool is_there, bool *again)
{
    struct stat info;
    if (is_there) {
        remove_side_files(path);
        return rename(draft, path) == 0 ? NULL : strerror(errno);
    }
    /* rename would overwrite a file that another run has just begun */
    if (renameat2(AT_FDCWD, draft, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return NULL;
    if (errno == EEXIST) {
        *again = lstat(path, &info) != 0 || info.st_size > 0; /* a run that has just begun may not have its lock yet */
        return "another run has begun to write it";
    }
    return rename(draft, path) == 0 ? NULL : strerror(errno); /* the file system knows no better */
}

kprof_status kprof_report_file_replace(const char *draft, const char *path, int own)
{
    const char *reason;
    bool again;
    int tries = 0;
    do {
        int lock = -1;
        bool is_there = true;
        again = false;
        reason = "another run is writing it";
        if (own >= 0 || lock_named(path, &lock, &is_there))
            reason = put_in_place(draft, path, is_there, &again);
        if (lock >= 0)
            close(lock);
    } while (again && ++tries < MOST_TRIES);
    if (!reason)
        return KPROF_OK;
    return kprof_fail(KPROF_OUTPUT, "%s: cannot be replaced: %s; the new report is in %s", path, reason, draft);
}
