/* Makes the file of a report and puts it in its place. Several runs may write to one name at once. */
#include "report/report_file.h"
#include "report/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite's files beside a report. */
static const char *const side_files[] = {"-wal", "-shm", "-journal"};

/* A log of a killed run would be taken for that of the file that now has the name. */
static void remove_side_files(const char *path)
{
    for (size_t i = 0; i < sizeof side_files / sizeof *side_files; i++) {
        char *name = NULL;
        if (asprintf(&name, "%s%s", path, side_files[i]) < 0)
            return;
        unlink(name);
        free(name);
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
    if (asprintf(draft, "%s.new-XXXXXX", path) < 0) {
        *draft = NULL;
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", path);
    }
    int fd = mkostemp(*draft, O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return KPROF_OK;
    }
    kprof_status status = kprof_fail(KPROF_OUTPUT, "%s: cannot create the report: %s", path, strerror(errno));
    free(*draft);
    *draft = NULL;
    return status;
}

kprof_status kprof_report_file_make(const char *path, kprof_create_mode mode, char **draft)
{
    struct stat info;
    *draft = NULL;
    if (mode == KPROF_CREATE_REPLACE) {
        if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
            return kprof_fail(KPROF_OUTPUT, "%s: cannot be overwritten: not a regular file", path);
        return make_draft(path, draft);
    }
    if (mode == KPROF_CREATE_NEW) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
            return kprof_fail(KPROF_OUTPUT, "%s: exists already; use --force-overwrite or another name", path);
        if (fd < 0)
            return kprof_fail(KPROF_OUTPUT, "%s: cannot create the report: %s", path, strerror(errno));
        close(fd);
    }
    remove_side_files(path);
    return KPROF_OK;
}

kprof_status kprof_report_file_copy(kprof_report *report, char **copy)
{
    sqlite3_stmt *statement = NULL;
    kprof_status status = make_draft(report->path, copy);
    if (status != KPROF_OK)
        return status;
    int rc = sqlite3_prepare_v2(report->db, "VACUUM INTO ?1", -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 1, *copy, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    sqlite3_finalize(statement);
    if (rc == SQLITE_DONE)
        return KPROF_OK;
    status = kprof_store_fail(report, "copying the report, since another program reads it");
    kprof_report_file_remove(*copy);
    free(*copy);
    *copy = NULL;
    return status;
}

kprof_status kprof_report_file_replace(const char *draft, const char *path)
{
    remove_side_files(path);
    if (rename(draft, path) == 0)
        return KPROF_OK;
    return kprof_fail(KPROF_OUTPUT, "%s: cannot be replaced: %s; the new report is in %s", path, strerror(errno),
                      draft);
}
