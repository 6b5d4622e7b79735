/* The session directory: the configuration that the injection library reads and the spools that it writes. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <stdbool.h>

#include <sys/types.h>

typedef struct kprof_session {
    char *dir; /* absolute; NULL: not open */
    /* Open from its creation on, so that somebody who puts another folder or a link in its place gains nothing. */
    int folder, parent;
    int lock; /* held while this kprof lives, or recovers the session; -1: none */
} kprof_session;

/* Has this process opened a session, and not closed it? */
bool kprof_session_is_open(void);

/* The folder that holds the directories of sessions: $TMPDIR, or /tmp. */
const char *kprof_sessions_folder(void);
/* Make a private directory (0700) in `parent`, which is that folder or another one. OUTPUT when that cannot be done. */
kprof_status kprof_session_open(const char *parent, kprof_session *out) KPROF_MUST_CHECK;

/* The place of a run's report, noted in the session directory for whoever recovers the session. */
typedef struct kprof_session_note {
    char *path;   /* absolute, owned; NULL: the run keeps no report */
    char *place;  /* the file that it is built in: absolute, owned */
    dev_t device; /* of that file, and its inode */
    ino_t inode;
} kprof_session_note;

/* Note that the report is to be at `path` and is built in the file `place`. OUTPUT when that cannot be written. */
kprof_status kprof_session_note_report(const kprof_session *session, const char *path,
                                       const char *place) KPROF_MUST_CHECK;
/* Read the note; all 0 where there is none. */
void kprof_session_read_note(const kprof_session *session, kprof_session_note *out);
void kprof_session_note_free(kprof_session_note *note); /* members, not the struct */

/* Ask the application's processes, or no longer, to close their open batches. They look four times a second. */
void kprof_session_ask_to_close(const kprof_session *session, bool wanted);

/* Append the directories of this user's sessions in $TMPDIR, or /tmp, whose kprof is gone: it was killed, or kept what
 * it could not store. */
void kprof_session_find_old(kprof_strlist *out);
/* Append the directories of this user's sessions there whose kprof lives and takes commands of kprof ctl. */
void kprof_session_find_live(kprof_strlist *out);
/* Open such a session. USAGE where `dir` is none, belongs to others or to a kprof that lives. */
kprof_status kprof_session_reopen(const char *dir, kprof_session *out) KPROF_MUST_CHECK;

/* The socket in the session directory that kprof ctl sends its commands to. */
#define KPROF_SESSION_SOCKET "gpu.socket"
/* The file, in the session directory, that is a report of the run with its plans and nothing measured yet. */
#define KPROF_SESSION_SEED "seed.kprof"
/* Remove the directory and the files in it; with `keep` leave it, and say where it is. A directory that somebody put in
 * its place is left alone, and so is one with files in it that no kprof makes. May be called twice, and on zeros. */
void kprof_session_close(kprof_session *session, bool keep);
/* Let go of an open directory as it is, and say nothing. */
void kprof_session_leave(kprof_session *session);
