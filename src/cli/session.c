/* Makes and removes the session directory. */
#include "cli/session.h"
#include "core/folder.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

kprof_status kprof_session_open(kprof_session *out)
{
    const char *parent = getenv("TMPDIR"), *reason = NULL;
    char resolved[PATH_MAX], dir[PATH_MAX + 32];
    if (!parent || !*parent)
        parent = "/tmp";
    if (!realpath(parent, resolved))
        return kprof_fail(KPROF_OUTPUT, "cannot make a directory for temporary files in %s: %m; set TMPDIR", parent);
    snprintf(dir, sizeof dir, "%s/kprof-XXXXXX", resolved);
    kprof_session session = {.parent = open(resolved, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (session.parent < 0 || !mkdtemp(dir)) {
        reason = strerror(errno);
        if (session.parent >= 0)
            close(session.parent);
        return kprof_fail(KPROF_OUTPUT, "cannot make a directory for temporary files in %s: %s; set TMPDIR", resolved,
                          reason);
    }
    session.folder = kprof_folder_open(dir, &reason);
    session.dir = strdup(dir);
    if (session.folder >= 0 && session.dir) {
        *out = session;
        return KPROF_OK;
    }
    if (session.folder >= 0)
        close(session.folder);
    unlinkat(session.parent, strrchr(dir, '/') + 1, AT_REMOVEDIR);
    close(session.parent);
    free(session.dir);
    return kprof_fail(KPROF_OUTPUT, "the directory for temporary files %s cannot be used: %s; set TMPDIR", dir,
                      session.folder < 0 ? reason : "out of memory");
}

static void remove_files(int folder)
{
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        if (copy >= 0)
            close(copy);
        return;
    }
    rewinddir(dir); /* the copy shares its position with the original */
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(folder, entry->d_name, 0);
    closedir(dir);
}

/* Is the name in the parent still that of the folder that was made? */
static bool is_in_place(const kprof_session *session, const char *name)
{
    struct stat made, found;
    return fstat(session->folder, &made) == 0 && fstatat(session->parent, name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           made.st_dev == found.st_dev && made.st_ino == found.st_ino;
}

static void remove_tree(const kprof_session *session)
{
    const char *name = strrchr(session->dir, '/') + 1;
    /* A child that outlives the application may add a file between the two steps: once more, then give up. */
    for (int attempt = 0; attempt < 3; attempt++) {
        remove_files(session->folder);
        if (!is_in_place(session, name)) {
            kprof_log(KPROF_LOG_WARNING,
                      "somebody moved or replaced the temporary directory %s: its files are removed, what has its name "
                      "now is left alone",
                      session->dir);
            return;
        }
        if (unlinkat(session->parent, name, AT_REMOVEDIR) == 0)
            return;
    }
    kprof_log(KPROF_LOG_WARNING, "cannot remove the temporary directory %s: %m", session->dir);
}

void kprof_session_close(kprof_session *session, bool keep)
{
    if (!session->dir)
        return;
    if (keep)
        kprof_log(KPROF_LOG_WARNING, "what the application's processes wrote is kept in %s", session->dir);
    else
        remove_tree(session);
    close(session->folder);
    close(session->parent);
    free(session->dir);
    *session = (kprof_session){0};
}
