/* Makes, finds and removes session directories. */
#include "cli/session.h"
#include "core/config.h"
#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t open_count; /* sessions */

#define DIR_PREFIX   "kprof-"
#define DIR_PATTERN  DIR_PREFIX "XXXXXX"
#define NOTE_FILE    "note"
#define RECOVER_FILE "recover.lock"

const char *kprof_sessions_folder(void)
{
    const char *folder = secure_getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* A user names the folder to recover, so kprof touches nothing else in it. */
static bool is_own_file(const char *name)
{
    static const char *const prefixes[] = {KPROF_CONFIG_FILE,  KPROF_OWNER_FILE, RECOVER_FILE, NOTE_FILE, "gpu.",
                                           KPROF_SESSION_SEED, "report.kprof",   NULL};
    return kprof_begins_with_one(name, prefixes) || kprof_ends_with(name, ".spool") || kprof_ends_with(name, ".cubin");
}

/* Without a free descriptor kprof cannot list the folder, but it still removes a session that it has just made. */
static void remove_files(int folder)
{
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    KPROF_AUTO_CLOSEDIR DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir && copy >= 0)
        close(copy);
    unlinkat(folder, KPROF_SESSION_SEED, 0); /* first: without it nobody recovers the rest */
    if (dir)
        rewinddir(dir); /* the copy shares its position with the original */
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (is_own_file(entry->d_name) && strcmp(entry->d_name, KPROF_OWNER_FILE) != 0 &&
            strcmp(entry->d_name, RECOVER_FILE) != 0)
            unlinkat(folder, entry->d_name, 0);
    }
    unlinkat(folder, KPROF_OWNER_FILE, 0); /* late: by it the folder is found again if kprof is killed meanwhile */
    unlinkat(folder, RECOVER_FILE, 0);     /* last: while it is there nobody else takes the folder over */
}

static void close_session(kprof_session *session)
{
    const int files[] = {session->lock, session->folder, session->parent};
    for (size_t i = 0; i < COUNT_OF(files); i++)
        if (files[i] >= 0)
            close(files[i]);
    free(session->dir);
    *session = (kprof_session){.lock = -1};
}

bool kprof_session_is_open(void)
{
    return open_count > 0;
}

kprof_status kprof_session_open(const char *parent, kprof_session *out)
{
    const char *reason = NULL;
    char resolved[PATH_MAX], dir[PATH_MAX + 32];
    if (!realpath(parent, resolved))
        return kprof_fail(KPROF_OUTPUT, "cannot make a directory for temporary files in %s: %m; set TMPDIR", parent);
    snprintf(dir, sizeof dir, "%s/" DIR_PATTERN, resolved);
    kprof_session session = {.parent = open(resolved, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .lock = -1};
    if (session.parent < 0 || !mkdtemp(dir)) {
        reason = strerror(errno);
        if (session.parent >= 0)
            close(session.parent);
        return kprof_fail(KPROF_OUTPUT, "cannot make a directory for temporary files in %s: %s; set TMPDIR", resolved,
                          reason);
    }
    session.folder = kprof_folder_open(dir, &reason);
    if (session.folder >= 0)
        session.lock = kprof_folder_own(session.folder, &reason);
    session.dir = kprof_strdup(dir);
    if (session.lock >= 0) {
        open_count++;
        *out = session;
        return KPROF_OK;
    }
    kprof_status status =
        kprof_fail(KPROF_OUTPUT, "the directory for temporary files %s cannot be used: %s; set TMPDIR", dir, reason);
    if (session.folder >= 0)
        remove_files(session.folder);
    unlinkat(session.parent, strrchr(dir, '/') + 1, AT_REMOVEDIR);
    close_session(&session);
    return status;
}

static void remove_tree(const kprof_session *session)
{
    const char *name = strrchr(session->dir, '/') + 1;
    /* A child that outlives the application may add a file between the two steps: once more, then give up. */
    for (int attempt = 0; attempt < 3; attempt++) {
        struct stat made, found;
        remove_files(session->folder);
        const bool are_there =
            fstat(session->folder, &made) == 0 && fstatat(session->parent, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
        if (!are_there || made.st_dev != found.st_dev || made.st_ino != found.st_ino) {
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

void kprof_session_leave(kprof_session *session)
{
    open_count--;
    close_session(session);
}

void kprof_session_close(kprof_session *session, bool keep)
{
    if (!session->dir)
        return;
    if (keep)
        kprof_log(KPROF_LOG_WARNING,
                  "all that the application's processes wrote is kept in %s; kprof recover %s makes a report of it, "
                  "and with -o FILE in another place",
                  session->dir, session->dir);
    else
        remove_tree(session);
    kprof_session_leave(session);
}

/* "DEVICE INODE PLACE/FOLDER/NAME": the report is to be /FOLDER/NAME, and is built in /FOLDER/PLACE. */
kprof_status kprof_session_note_report(const kprof_session *session, const char *path, const char *place)
{
    struct stat file;
    KPROF_AUTO_FREE char *whole = realpath(place, NULL); /* the report itself may not be there yet */
    const char *slash = strrchr(path, '/'), *end = whole ? strrchr(whole, '/') : NULL;
    int fd = -1;
    bool is_written = false;
    if (end && stat(place, &file) == 0)
        fd = openat(session->folder, NOTE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        is_written =
            dprintf(fd, "%llu %llu %s%.*s/%s", (unsigned long long)file.st_dev, (unsigned long long)file.st_ino,
                    end + 1, (int)(end - whole), whole, slash ? slash + 1 : path) > 0;
        is_written = close(fd) == 0 && is_written;
    }
    return is_written ? KPROF_OK : kprof_fail(KPROF_OUTPUT, "writing %s/" NOTE_FILE ": %m", session->dir);
}

void kprof_session_read_note(const kprof_session *session, kprof_session_note *out)
{
    char text[PATH_MAX + NAME_MAX + 64];
    const char *reason;
    unsigned long long device, inode;
    int at = 0;
    *out = (kprof_session_note){0};
    KPROF_AUTO_CLOSE int fd = kprof_folder_open_file(session->folder, NOTE_FILE, O_RDONLY, &reason);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    text[size > 0 ? size : 0] = '\0';
    const char *path = sscanf(text, "%llu %llu %n", &device, &inode, &at) == 2 ? strchr(text + at, '/') : NULL;
    if (!path)
        return;
    kprof_strbuf place = KPROF_STRBUF_INIT;
    kprof_strbuf_append(&place, path, (size_t)(strrchr(path, '/') + 1 - path));
    kprof_strbuf_append(&place, text + at, (size_t)(path - text) - (size_t)at);
    *out = (kprof_session_note){kprof_strdup(path), kprof_strbuf_take(&place), (dev_t)device, (ino_t)inode};
}

void kprof_session_note_free(kprof_session_note *note)
{
    KPROF_FREE(note->path, note->place);
    *note = (kprof_session_note){0};
}

void kprof_session_ask_to_close(const kprof_session *session, bool wanted)
{
    const char *reason;
    int fd = wanted ? kprof_folder_open_file(session->folder, KPROF_CLOSE_FILE, O_WRONLY | O_CREAT, &reason) : -1;
    if (fd >= 0)
        close(fd);
    if (!wanted)
        unlinkat(session->folder, KPROF_CLOSE_FILE, 0);
}

static int is_session_name(const struct dirent *entry)
{
    return kprof_begins_with(entry->d_name, DIR_PREFIX) && strlen(entry->d_name) == strlen(DIR_PATTERN);
}

/* Append the sessions with such an owner that have this file; NULL: any file. */
static void find_sessions(kprof_owner owner, const char *file, kprof_strlist *out)
{
    char parent[PATH_MAX], dir[PATH_MAX + 300];
    struct dirent **entries;
    const char *reason;
    int count = realpath(kprof_sessions_folder(), parent) ? scandir(parent, &entries, is_session_name, alphasort) : -1;
    for (int i = 0; i < count; i++) {
        snprintf(dir, sizeof dir, "%s/%s", parent, entries[i]->d_name);
        KPROF_AUTO_CLOSE int folder = kprof_folder_open(dir, &reason);
        if (folder >= 0 && kprof_folder_owner(folder) == owner && (!file || faccessat(folder, file, F_OK, 0) == 0))
            kprof_strlist_add(out, dir);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

void kprof_session_find_old(kprof_strlist *out)
{
    find_sessions(KPROF_OWNER_GONE, NULL, out);
}

void kprof_session_find_live(kprof_strlist *out)
{
    find_sessions(KPROF_OWNER_LIVES, KPROF_SESSION_SOCKET, out);
}

/* NULL, or why nobody can recover this folder. */
static const char *find_obstacle(int folder)
{
    kprof_owner owner = kprof_folder_owner(folder);
    if (owner == KPROF_OWNER_LIVES)
        return "its kprof still runs";
    if (owner == KPROF_OWNER_UNKNOWN && faccessat(folder, KPROF_SESSION_SEED, F_OK, 0) != 0)
        return "it is no directory of a run";
    return NULL;
}

/* Return NULL, or the reason not to recover the session. Two that recover it at once would both make a report of it;
 * one that gets the lock after the other has removed the session finds no name of the lock, or no owner. */
static const char *take_over(kprof_session *session)
{
    struct stat lock;
    const char *reason = find_obstacle(session->folder);
    if (reason)
        return reason;
    session->lock = kprof_folder_open_file(session->folder, RECOVER_FILE, O_RDWR | O_CREAT, &reason);
    if (session->lock < 0)
        return reason;
    if (flock(session->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return "another kprof is recovering it";
    if (fstat(session->lock, &lock) == 0 && lock.st_nlink > 0 && !find_obstacle(session->folder))
        return NULL;
    unlinkat(session->folder, RECOVER_FILE, 0); /* this may have made it anew after the other one removed it */
    return "another kprof has recovered it";
}

kprof_status kprof_session_reopen(const char *dir, kprof_session *out)
{
    kprof_session session = {.dir = realpath(dir, NULL), .folder = -1, .parent = -1, .lock = -1};
    const char *reason = session.dir ? NULL : strerror(errno);
    if (session.dir && strcmp(session.dir, "/") != 0)
        session.folder = kprof_folder_open(session.dir, &reason);
    else if (session.dir)
        reason = "it is no directory of a run";
    if (session.folder >= 0) {
        session.parent = openat(session.folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        reason = session.parent < 0 ? strerror(errno) : take_over(&session);
    }
    if (!reason) {
        open_count++;
        *out = session;
        return KPROF_OK;
    }
    const bool is_run = session.folder >= 0 && kprof_folder_owner(session.folder) != KPROF_OWNER_UNKNOWN;
    kprof_status status = is_run ? kprof_fail(KPROF_USAGE, "%s cannot be recovered: %s", dir, reason)
                                 : kprof_fail(KPROF_USAGE,
                                              "%s cannot be recovered: %s; a run that was cut short has named its "
                                              "folder, and kprof recover without a name looks for it in %s",
                                              dir, reason, kprof_sessions_folder());
    close_session(&session);
    return status;
}
