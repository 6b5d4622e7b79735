/* Ingests the spools of all processes into the report while the application runs. */
#pragma once

#include "cli/progress.h"
#include "cli/session.h"
#include "report/report.h"

#include <sys/types.h>

typedef struct kprof_spools kprof_spools;

/* Watch the session directory; records go to `report` and `progress`. All three are borrowed. */
kprof_spools *kprof_spools_new(const kprof_session *session, kprof_report *report, kprof_progress *progress);
void kprof_spools_free(kprof_spools *spools);

/* Process ids. */
typedef struct kprof_pids {
    long *items; /* [count], owned */
    size_t count;
} kprof_pids;
void kprof_pids_add(kprof_pids *pids, long pid);
bool kprof_pids_have(const kprof_pids *pids, long pid);
/* False also of one that has ended and that its parent has not waited for. */
bool kprof_pid_lives(long pid);
/* By a signal or a debugger, for now at least: strace stops a process at each call. */
bool kprof_pid_is_stopped(long pid);

typedef struct kprof_spools_choice {
    uint32_t plan, first_turn; /* of kprof ctl: see kprof_ingest_choose */
    kprof_pids pids;           /* borrowed; none: all */
} kprof_spools_choice;
/* Store only launches of this choice, and tell nobody of messages. To be called before anything is stored. */
void kprof_spools_choose(kprof_spools *spools, const kprof_spools_choice *choice);

/* Ingest what has been written since the last call. After a failure (OUTPUT: disk full) no more is read; every call
 * gives the same status again, and only the first logs. */
kprof_status kprof_spools_poll(kprof_spools *spools) KPROF_MUST_CHECK;
/* A process that lives and writes records. */
typedef struct kprof_spools_process {
    int64_t pid;
    uint64_t measured;           /* launches so far */
    const char *warning, *error; /* the last ones that it has written; NULL: none */
    kprof_status failure;        /* of the error */
    bool is_cut;                 /* it could not write all */
} kprof_spools_process;
void kprof_spools_visit(const kprof_spools *spools, void (*visit)(void *user, const kprof_spools_process *process),
                        void *user);
/* Has the process written anything? */
bool kprof_spools_has(const kprof_spools *spools, int64_t pid);
/* Is the process one of these, or one that has written nothing yet? */
bool kprof_spools_lives(const kprof_spools *spools, int64_t pid);
/* Launches, at least, that processes which live are still measuring. */
uint64_t kprof_spools_open_launches(const kprof_spools *spools);
/* End processes that have reported all their launches as measured: by SIGTERM, and 2 s later by SIGKILL. */
void kprof_spools_end_done(kprof_spools *spools);
/* The application's first process has ended: ingest the rest, and say which processes were cut short or still run. */
kprof_status kprof_spools_finish(kprof_spools *spools, pid_t root) KPROF_MUST_CHECK;

typedef struct kprof_spools_summary {
    size_t processes;    /* spools with a process record */
    uint64_t elsewhere;  /* launches measured with other plans of kprof ctl, which the report does not have */
    bool armed;          /* kprof ctl has armed a process */
    size_t killed;       /* ended by kprof_spools_end_done */
    size_t cut_short;    /* did not tell of their end: they crashed, called exec, or still run */
    bool root_seen;      /* the first process wrote one: set by _finish */
    kprof_status unread; /* why a spool could not be opened, KPROF_OK when all could */
    kprof_status told;   /* the gravest failure that a process reported, KPROF_OK when none */
} kprof_spools_summary;
kprof_spools_summary kprof_spools_summarize(const kprof_spools *spools);
