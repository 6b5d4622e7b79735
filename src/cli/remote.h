/* Takes the commands of kprof ctl while an application runs, by a socket in the session directory, from this user
 * alone. A command is the words of a command line, each ended by a zero byte; the client then shuts its side down. The
 * answer is lines: "exit CODE", then "message LEVEL TEXT", "process PID STATE LAUNCHES" and "report PATH". */
#pragma once

#include "cli/plans.h"
#include "cli/session.h"
#include "cli/spools.h"

/* A command has at most this many bytes and words. */
#define KPROF_REMOTE_BYTES ((size_t)512 << 10)
#define KPROF_REMOTE_WORDS 8192

/* The run that is told what to do; all is borrowed. */
typedef struct kprof_remote_run {
    const kprof_session *session;
    kprof_spools *spools;
    const kprof_options *options;
    const kprof_plans *plans;
    const char *report_path; /* that the run's own report is to have; NULL: none */
} kprof_remote_run;

typedef struct kprof_remote kprof_remote;

/* Listen, and begin to count the time of --delay and --duration. OUTPUT when there can be no socket. */
kprof_status kprof_remote_open(const kprof_remote_run *run, kprof_remote **out) KPROF_MUST_CHECK;
/* Do what is to be done without waiting. Returns whether a command is under way, and should be looked after soon. */
bool kprof_remote_serve(kprof_remote *remote);
/* The descriptor that becomes readable when a command comes. */
int kprof_remote_descriptor(const kprof_remote *remote);
/* The application has ended: answer the command that is under way, and stop listening. Safe for NULL. Fails if a report
 * of kprof ctl could not be made, so that its launches are in no report. */
kprof_status kprof_remote_close(kprof_remote *remote);

/* The socket's address by way of an open folder: the path of a session directory may be longer than an address. */
void kprof_remote_address(int folder, void *out);
