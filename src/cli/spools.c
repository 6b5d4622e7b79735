/* Finds spools in the session directory, and stores their new records, a transaction at a time. */
#include "cli/spools.h"
#include "core/files.h"
#include "core/filter.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/names.h"
#include "report/model/number.h"
#include "spool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_PER_TRANSACTION 4096
#define MAX_NAMED_KERNELS       65536 /* per process; names are for the status line only */
#define MAX_MESSAGES            1000  /* remembered to show each once */
#define TERM_PATIENCE_NS        INT64_C(2000000000)

typedef struct spool {
    char *name;
    kprof_spool_reader *reader; /* NULL once it is read to its end */
    kprof_ingest *ingest;
    kprof_strlist kernels; /* function names; item i is kernel i+1 */
    char *warning, *error; /* the last ones */
    char *executable;
    kprof_status failure;         /* of the error */
    int64_t pid;                  /* 0: no process record yet */
    uint64_t measured, elsewhere; /* elsewhere: of these, with plans that the report is not about */
    uint32_t plan;
    bool armed;
    uint64_t open; /* launches that are being measured, at least */
    bool is_traced, ended, damaged;
    kprof_status unread; /* why it could not be opened */
    bool done;           /* with --kill: all its launches are measured */
    int64_t killed_ns;   /* when it got SIGTERM for that; 0: it has not */
} spool;

struct kprof_spools {
    const kprof_session *session;
    kprof_names names; /* of the items */
    kprof_report *report;
    kprof_progress *progress;
    spool **items;
    size_t count;
    kprof_strlist messages;
    kprof_status failure, told;
    bool root_seen;
    bool is_silent;
    kprof_spools_choice choice;
};

kprof_spools *kprof_spools_new(const kprof_session *session, kprof_report *report, kprof_progress *progress)
{
    kprof_spools *spools = kprof_calloc(1, sizeof *spools);
    spools->session = session;
    spools->report = report;
    spools->progress = progress;
    return spools;
}

void kprof_pids_add(kprof_pids *pids, long pid)
{
    *KPROF_ADD(pids->items, pids->count) = pid;
}

bool kprof_pids_have(const kprof_pids *pids, long pid)
{
    return KPROF_ANY(i, pids->count, pids->items[i] == pid);
}

/* The state of the first thread, which may end before the others; '?': it is not known. */
static char read_state(long pid, long *threads)
{
    char path[64], text[1024];
    char state = '?';
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    const char *rest = kprof_read_text(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (rest)
        (void)sscanf(rest, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state, threads);
    return state;
}

bool kprof_pid_lives(long pid)
{
    long threads = 1;
    if (kill((pid_t)pid, 0) != 0)
        return errno == EPERM;
    return read_state(pid, &threads) != 'Z' || threads > 1;
}

bool kprof_pid_is_stopped(long pid)
{
    long threads;
    const char state = read_state(pid, &threads);
    return state == 'T' || state == 't';
}

/* Does it live? A process of another namespace has a number that another process may have here: one that runs something
 * else, or that this user may not look into. */
static bool lives(const spool *item)
{
    char path[64], executable[4096];
    if (!kprof_pid_lives((long)item->pid))
        return false;
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)item->pid);
    const ssize_t length = readlink(path, executable, sizeof executable - 1);
    if (length < 0)
        return errno != EACCES && errno != EPERM;
    executable[length] = '\0'; /* with " (deleted)" behind it, if it is gone by now */
    return !item->executable || kprof_begins_with(executable, item->executable);
}

void kprof_spools_choose(kprof_spools *spools, const kprof_spools_choice *choice)
{
    spools->choice = *choice;
    spools->is_silent = true;
}

void kprof_spools_free(kprof_spools *spools)
{
    if (!spools)
        return;
    kprof_names_free(&spools->names);
    for (size_t i = 0; i < spools->count; i++) {
        spool *item = spools->items[i];
        kprof_spool_reader_close(item->reader);
        kprof_ingest_free(item->ingest);
        kprof_strlist_free(&item->kernels);
        KPROF_FREE(item->name, item->warning, item->error, item->executable, item);
    }
    kprof_strlist_free(&spools->messages);
    KPROF_FREE(spools->items, spools);
}

/* Open a spool. One that is not readable is reported once and passed over: the others still count. */
static void open_spool(kprof_spools *spools, const char *name)
{
    spool *item = kprof_calloc(1, sizeof *item);
    item->name = kprof_strdup(name);
    item->unread = kprof_spool_reader_open(spools->session->folder, name, &item->reader);
    item->damaged = item->unread != KPROF_OK;
    item->ingest = kprof_ingest_new(spools->report);
    kprof_ingest_choose(item->ingest, spools->choice.plan, spools->choice.first_turn);
    if (item->reader)
        kprof_spool_reader_rest(item->reader);
    kprof_names_add(&spools->names, item->name, spools->count);
    *KPROF_ADD(spools->items, spools->count) = item;
}

static int is_spool(const struct dirent *entry)
{
    return kprof_ends_with(entry->d_name, ".spool");
}

/* In the order of process ids, and for one process in that of its programs: nearly always the order of their start. */
static kprof_status find_new(kprof_spools *spools)
{
    struct dirent **entries;
    const kprof_pids *pids = &spools->choice.pids; /* spools have the names of their processes */
    int count = scandirat(spools->session->folder, ".", &entries, is_spool, versionsort);
    if (count < 0)
        return kprof_fail(KPROF_BAD_SPOOL, "cannot read the session directory %s: %m", spools->session->dir);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        const bool is_chosen = pids->count == 0 || kprof_pids_have(pids, atol(name));
        if (is_chosen && kprof_names_find(&spools->names, name) == KPROF_NAMES_NONE)
            open_spool(spools, name);
        free(entries[i]);
    }
    free(entries);
    return KPROF_OK;
}

static void note_kernel(spool *item, const kprof_kernel_record *kernel)
{
    if (kernel->kernel != item->kernels.count + 1 || item->kernels.count >= MAX_NAMED_KERNELS)
        return;
    KPROF_AUTO_FREE char *function = kprof_name_function(kernel->mangled);
    kprof_strlist_add(&item->kernels, function ? function : kernel->mangled);
}

static const char *kernel_name(const spool *item, uint32_t kernel)
{
    return kernel > 0 && kernel <= item->kernels.count ? item->kernels.items[kernel - 1] : NULL;
}

/* INTERNAL is the least telling failure: any other takes its place. */
static void note_message(kprof_spools *spools, spool *from, const kprof_message_record *message)
{
    if (message->level <= KPROF_LOG_WARNING) {
        char **last = message->level == KPROF_LOG_WARNING ? &from->warning : &from->error;
        free(*last);
        *last = kprof_strdup(message->text);
    }
    if (message->level == KPROF_LOG_ERROR)
        from->failure = message->status;
    if (message->level != KPROF_LOG_WARNING && message->status != KPROF_OK &&
        (spools->told == KPROF_OK || spools->told == KPROF_INTERNAL))
        spools->told = message->status;
    if (spools->is_silent || kprof_strlist_contains(&spools->messages, message->text))
        return;
    if (spools->messages.count < MAX_MESSAGES)
        kprof_strlist_add(&spools->messages, message->text);
    kprof_log(message->level, "%s", message->text);
}

/* Metrics that no pass counts need no replay. */
static bool is_measured(const kprof_launch_record *launch)
{
    return launch->mode != KPROF_REPLAY_NONE || !*launch->reason;
}

/* Note what the command line itself needs from a record. */
static void note_record(kprof_spools *spools, spool *item, const kprof_record *record)
{
    switch (record->type) {
    case KPROF_RECORD_PROCESS:
        item->pid = record->process.pid;
        free(item->executable);
        item->executable = kprof_strdup(record->process.executable);
        kprof_progress_connect(spools->progress, item->pid, record->process.executable);
        return;
    case KPROF_RECORD_KERNEL:
        note_kernel(item, &record->kernel);
        return;
    case KPROF_RECORD_LAUNCH:
        item->open -= item->open > 0;
        item->measured += is_measured(&record->launch);
        item->elsewhere += is_measured(&record->launch) && item->plan != spools->choice.plan;
        if (record->launch.mode != KPROF_REPLAY_NONE)
            kprof_progress_launch(spools->progress, kernel_name(item, record->launch.kernel),
                                  record->launch.pass_count);
        spools->progress->launches++;
        return;
    case KPROF_RECORD_PROGRESS:
        item->done = record->progress.pass_count == 0;
        item->open = record->progress.open;
        if (item->done)
            return;
        kprof_progress_note(spools->progress, kernel_name(item, record->progress.kernel), &record->progress);
        return;
    case KPROF_RECORD_MESSAGE:
        note_message(spools, item, &record->message);
        return;
    case KPROF_RECORD_ARMED:
        item->armed = true;
        item->plan = record->armed.plan;
        return;
    case KPROF_RECORD_TRACE:
        item->is_traced = true;
        return;
    case KPROF_RECORD_END:
        item->ended = true;
        kprof_progress_disconnect(spools->progress, item->pid);
        return;
    default:
        return;
    }
}

/* Store up to a transaction's worth of one spool; *more is set when it may hold further records. */
static kprof_status store_some(kprof_spools *spools, spool *item, bool *more)
{
    kprof_record record;
    kprof_status status = kprof_report_begin(spools->report);
    *more = false;
    for (size_t i = 0; i < RECORDS_PER_TRANSACTION && status == KPROF_OK; i++) {
        kprof_spool_next_result result = kprof_spool_next(item->reader, &record);
        item->damaged = result == KPROF_SPOOL_DAMAGED;
        *more = result == KPROF_SPOOL_RECORD;
        if (!*more)
            break;
        status = kprof_ingest_record(item->ingest, &record);
        if (status == KPROF_OK)
            note_record(spools, item, &record);
        else if (status == KPROF_BAD_SPOOL && kprof_spool_lacks_records(item->reader))
            status = KPROF_OK; /* it refers to one that did not fit on the disk, so it is lost, too */
    }
    kprof_status committed = kprof_report_commit(spools->report);
    return status == KPROF_OK ? committed : status;
}

kprof_status kprof_spools_poll(kprof_spools *spools)
{
    if (spools->failure != KPROF_OK)
        return spools->failure;
    kprof_status status = find_new(spools);
    for (size_t i = 0; i < spools->count && status == KPROF_OK; i++) {
        spool *item = spools->items[i];
        bool more = !item->damaged && kprof_spool_has_news(item->reader);
        while (more && status == KPROF_OK && !item->damaged) {
            status = store_some(spools, item, &more);
            kprof_progress_tick(spools->progress);
        }
        if (item->reader) /* thousands of processes come and go in a run, so a spool is open only here */
            kprof_spool_reader_rest(item->reader);
    }
    kprof_progress_tick(spools->progress);
    spools->failure = status;
    return status;
}

uint64_t kprof_spools_open_launches(const kprof_spools *spools)
{
    spool *const *items = spools->items;
    return KPROF_SUM(i, spools->count, items[i]->open > 0 && !items[i]->ended && lives(items[i]) ? items[i]->open : 0);
}

void kprof_spools_end_done(kprof_spools *spools)
{
    for (size_t i = 0; i < spools->count; i++) {
        spool *item = spools->items[i];
        const int64_t now_ns = kprof_monotonic_ns();
        if (!item->done || item->ended || item->pid <= 0 || !lives(item))
            continue;
        if (item->killed_ns == 0)
            (void)kill((pid_t)item->pid, SIGTERM);
        else if (now_ns - item->killed_ns > TERM_PATIENCE_NS)
            (void)kill((pid_t)item->pid, SIGKILL);
        item->killed_ns = item->killed_ns ? item->killed_ns : now_ns;
    }
}

/* A process that called exec goes on in a later spool of the same pid. */
static bool goes_on(const kprof_spools *spools, const spool *item)
{
    for (size_t i = spools->count; i-- > 0 && spools->items[i] != item;)
        if (spools->items[i]->pid == item->pid)
            return true;
    return false;
}

void kprof_spools_visit(const kprof_spools *spools, void (*visit)(void *user, const kprof_spools_process *process),
                        void *user)
{
    for (size_t i = 0; i < spools->count; i++) {
        const spool *item = spools->items[i];
        if (item->pid > 0 && !item->ended && !goes_on(spools, item) && kprof_pid_lives((long)item->pid))
            visit(user, &(kprof_spools_process){item->pid, item->measured, item->warning, item->error, item->failure,
                                                item->reader && kprof_spool_lacks_records(item->reader)});
    }
}

bool kprof_spools_has(const kprof_spools *spools, int64_t pid)
{
    return KPROF_ANY(i, spools->count, spools->items[i]->pid == pid);
}

bool kprof_spools_lives(const kprof_spools *spools, int64_t pid)
{
    bool has_ended = false;
    for (size_t i = 0; i < spools->count; i++)
        if (spools->items[i]->pid == pid)
            has_ended = spools->items[i]->ended; /* the last one tells */
    return !has_ended && kprof_pid_lives((long)pid);
}

/* Launches that were to be measured when their process ended. */
static void explain_open(kprof_spools *spools, const spool *item)
{
    if (item->open == 0 || item->ended)
        return;
    if (spools->told == KPROF_OK)
        spools->told = KPROF_NOT_COLLECTED;
    kprof_log(KPROF_LOG_WARNING,
              "process %ld %s while at least %lu launch%s still being measured; their values are lost, since "
              "launches are measured in batches: let the process end by exit, or live for half a second more",
              item->pid, goes_on(spools, item) ? "called exec" : "ended", item->open,
              item->open == 1 ? " was" : "es were");
}

/* Describe what is left of a process that was cut short. The caller frees the text. */
static char *describe_kept(const spool *item, const char *of_trace)
{
    if (item->is_traced && item->measured == 0)
        return kprof_strdup(of_trace);
    return kprof_strprintf("the %lu launch%s that it had measured before %s kept%s%s", item->measured,
                           kprof_ending(item->measured, "es"), item->measured == 1 ? "is" : "are",
                           item->is_traced ? ", and " : "", item->is_traced ? of_trace : "");
}

static void explain_end(const kprof_spools *spools, const spool *item, pid_t root)
{
    KPROF_AUTO_FREE char *kept =
        describe_kept(item, "its trace lacks what it did in its last second, and NVTX ranges that had not ended");
    if (item->unread != KPROF_OK) /* which was told */
        return;
    if (item->damaged)
        kprof_log(KPROF_LOG_WARNING, "process %ld: what it wrote is damaged; what came before that is kept", item->pid);
    else if (item->killed_ns)
        kprof_log(KPROF_LOG_INFO, "--kill yes has ended process %ld; %s", item->pid, kept);
    else if (item->pid == 0 || item->ended || goes_on(spools, item))
        return;
    else if (item->pid != root && lives(item))
        kprof_log(KPROF_LOG_WARNING,
                  "process %ld still runs after the application has ended; what it does from now on is not collected, "
                  "and %s",
                  item->pid, kept);
    else if (item->failure != KPROF_OK) { /* it has told why it measured no more, and nothing of its end */
        if (item->measured > 0)
            kprof_log(KPROF_LOG_INFO, "process %ld: %s", item->pid, kept);
    } else
        kprof_log(item->is_traced ? KPROF_LOG_WARNING : KPROF_LOG_INFO,
                  "process %ld ended without an orderly exit (killed, crashed or by _exit); %s", item->pid, kept);
}

/* Nothing is known of the end of a spool that could not be read to its end. */
static void explain(kprof_spools *spools, const spool *item, pid_t root)
{
    if (item->reader && !item->ended && kprof_spool_lacks_records(item->reader)) {
        KPROF_AUTO_FREE char *kept = describe_kept(item, "its trace ends there");
        spools->told = KPROF_OUTPUT;
        kprof_log(KPROF_LOG_ERROR,
                  "process %ld could not go on writing to %s (full disk, or ulimit -f) and ran on without profiling: "
                  "%s; set TMPDIR to another folder",
                  atol(item->name), spools->session->dir, kept);
        return;
    }
    explain_end(spools, item, root);
    explain_open(spools, item);
}

kprof_status kprof_spools_finish(kprof_spools *spools, pid_t root)
{
    kprof_status status = kprof_spools_poll(spools);
    for (size_t i = 0; i < spools->count; i++) {
        const spool *item = spools->items[i];
        spools->root_seen = spools->root_seen || item->pid == root;
        if (item->pid > 0 && !item->ended && !goes_on(spools, item))
            kprof_progress_disconnect(spools->progress, item->pid);
        if (item->killed_ns && !item->damaged) /* it had measured all that was wanted */
            kprof_report_set_whole(spools->report, item->pid);
        if (status == KPROF_OK)
            explain(spools, spools->items[i], root);
    }
    return status;
}

kprof_spools_summary kprof_spools_summarize(const kprof_spools *spools)
{
    kprof_spools_summary summary = {.root_seen = spools->root_seen, .told = spools->told};
    for (size_t i = 0; i < spools->count; i++) {
        summary.processes += spools->items[i]->pid != 0;
        summary.unread = spools->items[i]->unread != KPROF_OK ? spools->items[i]->unread : summary.unread;
        summary.elsewhere += spools->items[i]->elsewhere;
        summary.armed = summary.armed || spools->items[i]->armed;
        summary.killed += spools->items[i]->killed_ns != 0;
        summary.cut_short += spools->items[i]->pid != 0 && !spools->items[i]->ended;
    }
    return summary;
}
