/* The session directory: the configuration that the injection library reads and the spools that it writes. */
#ifndef KPROF_CLI_SESSION_H
#define KPROF_CLI_SESSION_H

#include "core/status.h"

#include <stdbool.h>

typedef struct kprof_session {
    char *dir; /* absolute; NULL: not open */
    /* Open from its creation on, so that somebody who puts another folder or a link in its place gains nothing. */
    int folder, parent;
} kprof_session;

/* Make a private directory (0700) in $TMPDIR, or /tmp. OUTPUT when that cannot be done. */
kprof_status kprof_session_open(kprof_session *out) KPROF_MUST_CHECK;
/* Remove the directory and the files in it; with `keep` leave it, and say where it is. A directory that somebody put in
 * its place is left alone. Safe to call twice, and on a zeroed struct. */
void kprof_session_close(kprof_session *session, bool keep);

#endif
