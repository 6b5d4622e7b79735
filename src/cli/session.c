/* Makes and removes the session directory. */
#include "cli/session.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

kprof_status kprof_session_open(kprof_session *out)
{
    const char *parent = getenv("TMPDIR");
    char resolved[PATH_MAX], dir[PATH_MAX + 32];
    if (!parent || !*parent)
        parent = "/tmp";
    if (!realpath(parent, resolved))
        return kprof_fail(KPROF_OUTPUT, "cannot make a directory for temporary files in %s: %m; set TMPDIR", parent);
    snprintf(dir, sizeof dir, "%s/kprof-XXXXXX", resolved);
    if (!mkdtemp(dir))
        return kprof_fail(KPROF_OUTPUT, "cannot make a directory for temporary files in %s: %m; set TMPDIR", resolved);
    out->dir = strdup(dir);
    if (out->dir)
        return KPROF_OK;
    rmdir(dir);
    return kprof_fail(KPROF_NO_MEMORY, "out of memory");
}

static void remove_files(DIR *dir)
{
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
}

static void remove_tree(const char *path)
{
    /* A child that outlives the application may add a file between the two steps: once more, then give up. */
    for (int attempt = 0; attempt < 3; attempt++) {
        DIR *dir = opendir(path);
        if (dir) {
            remove_files(dir);
            closedir(dir);
        }
        if (rmdir(path) == 0 || errno == ENOENT)
            return;
    }
    kprof_log(KPROF_LOG_WARNING, "cannot remove the temporary directory %s: %m", path);
}

void kprof_session_close(kprof_session *session, bool keep)
{
    if (!session->dir)
        return;
    if (keep)
        kprof_log(KPROF_LOG_WARNING, "what the application's processes wrote is kept in %s", session->dir);
    else
        remove_tree(session->dir);
    free(session->dir);
    session->dir = NULL;
}
