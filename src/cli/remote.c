/* Clients are read without waiting for them. A command is answered when all processes have followed; others are heard
 * meanwhile, since one process may wait for another one. Whoever is slow, or writes too much, is dropped. */
#include "cli/remote.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parts.h"
#include "cli/paths.h"
#include "core/control.h"
#include "core/log.h"
#include "core/monotonic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BLOCKS_AT_ONCE  256
#define READ_LIMIT_NS   INT64_C(2000000000)
#define FOLLOW_LIMIT_NS INT64_C(120000000000)
#define STOP_LIMIT_NS   INT64_C(1500000000) /* every process that has not followed has been stopped for this long */
#define MOST_CLIENTS    32                  /* heard at a time; others wait */

typedef struct client {
    int fd;             /* -1: there is none */
    int64_t since_ns;   /* when it came, or when its command was passed on */
    int64_t stopped_ns; /* since when all processes that are to follow have been stopped; 0: one runs */
    kprof_strbuf words; /* that it has sent so far */
    kprof_strbuf answer;
    kprof_strlist given; /* the words of its command */
    kprof_options options;
    bool is_parsed;  /* `options` */
    kprof_pids whom; /* the processes that its command names */
    kprof_pids told; /* those that are to follow */
    kprof_pids lost; /* of these, those that had stopped measuring by themselves */
    uint32_t turn;   /* the number of its wish */
} client;

struct kprof_remote {
    kprof_remote_run run;
    int listener;
    client clients[MOST_CLIENTS];
    uint32_t turn;    /* the number of the last wish */
    int64_t begun_ns; /* of --delay; then of --duration */
    enum { BEFORE_IT, IN_IT, BEHIND_IT } clock;
    kprof_parts parts;
};

void kprof_remote_address(int folder, void *out)
{
    struct sockaddr_un *address = out;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" KPROF_SESSION_SOCKET, folder);
}

static void follow_clock(kprof_remote *remote);

kprof_status kprof_remote_open(const kprof_remote_run *run, kprof_remote **out)
{
    kprof_remote *remote = kprof_calloc(1, sizeof *remote);
    struct sockaddr_un address;
    const int folder = run->session->folder;
    remote->run = *run;
    for (size_t i = 0; i < MOST_CLIENTS; i++)
        remote->clients[i].fd = -1;
    remote->parts.run = (kprof_parts_run){run->options, run->session, run->plans};
    remote->begun_ns = kprof_monotonic_ns();
    remote->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    kprof_remote_address(folder, &address);
    if (remote->listener >= 0 && bind(remote->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
        fchmodat(folder, KPROF_SESSION_SOCKET, S_IRUSR | S_IWUSR, 0) == 0 &&
        listen(remote->listener, MOST_CLIENTS) == 0) {
        follow_clock(remote); /* so that without a delay no process begins unarmed */
        *out = remote;
        return KPROF_OK;
    }
    kprof_status status = kprof_fail(
        KPROF_OUTPUT, "%s: no socket for kprof ctl: %m; set TMPDIR to a folder that may have one", run->session->dir);
    (void)kprof_remote_close(remote);
    return status;
}

int kprof_remote_descriptor(const kprof_remote *remote)
{
    return remote->listener;
}

static void drop(client *from)
{
    if (from->fd >= 0)
        close(from->fd);
    if (from->is_parsed)
        kprof_options_free(&from->options);
    KPROF_FREE_TEXTS(&from->words, &from->answer);
    kprof_strlist_free(&from->given);
    KPROF_FREE(from->whom.items, from->told.items, from->lost.items);
    *from = (client){.fd = -1};
}

/* An answer is cut to what fits the socket's buffer: nobody waits for a client. */
static void answer(client *to, kprof_status status)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&text, "exit %d\n", kprof_status_exit_code(status));
    kprof_strbuf_append(&text, to->answer.data, to->answer.length);
    (void)!send(to->fd, text.data, text.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    drop(to);
}

static void keep_message(void *user, kprof_log_level level, const char *message)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    client *to = user;
    kprof_strbuf_printf(&to->answer, "message %s %s\n", levels[level], message);
}

static kprof_status read_pids(client *from)
{
    const kprof_strlist *words = &from->options.reports;
    kprof_status status = KPROF_OK;
    for (size_t i = 1; i < words->count && status == KPROF_OK; i++) {
        char *end;
        errno = 0;
        const long pid = strtol(words->items[i], &end, 10);
        if (words->items[i][0] < '0' || words->items[i][0] > '9' || *end || errno || pid <= 0)
            status = kprof_fail(KPROF_USAGE, "kprof ctl: \"%s\" is no process id", words->items[i]);
        else
            kprof_pids_add(&from->whom, pid);
    }
    return status;
}

typedef struct teller {
    const kprof_remote *remote;
    client *from;
    const kprof_control_wish *wish;
} teller;

static bool tell_process(const teller *how, long pid)
{
    const int folder = how->remote->run.session->folder;
    kprof_control before;
    const bool is_lost = !how->wish->armed && kprof_control_read(folder, pid, &before) && before.wish.armed &&
                         before.state == KPROF_CONTROL_FAILED;
    if (!kprof_control_wish_for(folder, pid, how->wish))
        return false;
    kprof_pids_add(&how->from->told, pid);
    if (is_lost)
        kprof_pids_add(&how->from->lost, pid);
    return true;
}

/* A process that has not called CUDA yet finds its wish when it does. */
static bool tell_early(const teller *how, long pid)
{
    const int folder = how->remote->run.session->folder;
    return !kprof_spools_has(how->remote->run.spools, pid) && kprof_spools_lives(how->remote->run.spools, pid) &&
           !kprof_control_make(folder, pid) && kprof_control_wish_for(folder, pid, how->wish);
}

static void tell_living(void *user, const kprof_spools_process *process)
{
    (void)!tell_process(user, (long)process->pid);
}

/* Tell the processes that are named, or all and those that come. */
static kprof_status tell(kprof_remote *remote, client *from, bool armed, uint32_t plan)
{
    const int folder = remote->run.session->folder;
    const kprof_control_wish wish = {++remote->turn, armed, plan};
    const teller how = {remote, from, &wish};
    from->turn = wish.turn;
    if (from->whom.count == 0) {
        const char *reason = kprof_control_make(folder, KPROF_CONTROL_ALL);
        if (reason || !kprof_control_wish_for(folder, KPROF_CONTROL_ALL, &wish))
            return kprof_fail(KPROF_OUTPUT, "telling processes that start later: %s", reason ? reason : "no switch");
        kprof_spools_visit(remote->run.spools, tell_living, (void *)&how);
    }
    for (size_t i = 0; i < from->whom.count; i++) {
        const long pid = from->whom.items[i];
        const bool is_early = tell_early(&how, pid);
        if (is_early && armed)
            kprof_log(KPROF_LOG_INFO, "process %ld has not called CUDA yet; it is armed when it does", pid);
        else if (!is_early && !tell_process(&how, pid))
            return kprof_fail(KPROF_NO_APPLICATION, "process %ld takes no commands, or has ended", pid);
    }
    return KPROF_OK;
}

/* Arm all processes when --delay has passed, and disarm them when --duration has. */
static void follow_clock(kprof_remote *remote)
{
    const kprof_options *options = remote->run.options;
    const int64_t now_ns = kprof_monotonic_ns();
    const double limit_s = remote->clock == BEFORE_IT ? options->delay_s : options->duration_s;
    client nobody = {.fd = -1};
    if (options->delay_s + options->duration_s <= 0 || remote->clock == BEHIND_IT ||
        (remote->clock == IN_IT && limit_s <= 0) || (double)(now_ns - remote->begun_ns) < limit_s * 1e9)
        return;
    remote->clock++;
    remote->begun_ns = now_ns;
    (void)!tell(remote, &nobody, remote->clock == IN_IT, 0);
    drop(&nobody);
}

static bool is_trace(const kprof_remote *remote)
{
    return remote->run.options->command->mask == KPROF_IN(trace);
}

/* Refuse a report that exists before anything is measured for it. */
static kprof_status check_path(const kprof_remote *remote, const kprof_options *options)
{
    KPROF_AUTO_FREE char *path = NULL;
    if (options->export_path && is_trace(remote))
        return kprof_fail(KPROF_USAGE, "kprof ctl %s -o %s: a trace has one report, that of kprof trace -o",
                          options->argument, options->export_path);
    if (!options->export_path)
        return KPROF_OK;
    kprof_status status = kprof_export_path_expand(options->export_path, &path);
    if (status == KPROF_OK && remote->run.report_path && kprof_paths_are_same(path, remote->run.report_path))
        return kprof_fail(KPROF_OUTPUT, "%s: is to be the report of the whole run; use another name", path);
    return KPROF_THEN(status, kprof_report_check_place(path, options->force_overwrite));
}

/* Ranges report their number of launches, whatever measures them; a census or a trace takes no set. */
static kprof_status settle_selection(const kprof_remote *remote, kprof_selection *selection)
{
    const bool has_own = kprof_selection_count(selection) > 0;
    if (has_own && (remote->run.options->census || is_trace(remote)))
        return kprof_fail(KPROF_USAGE, "this run takes a %s, and measures no sets, sections and metrics",
                          is_trace(remote) ? "trace" : "census");
    if (has_own && kprof_replay_is_of_ranges(remote->run.options->replay_choice))
        kprof_strlist_add_unique(&selection->metrics, KPROF_RANGE_LAUNCHES);
    return KPROF_OK;
}

static kprof_status start(kprof_remote *remote, client *from)
{
    const kprof_options *options = &from->options;
    uint32_t plan = 0;
    kprof_status status = check_path(remote, options);
    KPROF_THEN(status, settle_selection(remote, &from->options.selection));
    if (status == KPROF_OK && options->export_path && !options->force_overwrite &&
        !strstr(options->export_path, "%i") && kprof_parts_promise(&remote->parts, options->export_path))
        status = kprof_fail(KPROF_OUTPUT,
                            "%s: is to be the report of an earlier start; stop that first, or use another name",
                            options->export_path);
    KPROF_THEN(status, kprof_parts_plan(&remote->parts, options, &plan));
    if (status == KPROF_OK && plan > 0 && !options->export_path)
        status = kprof_fail(KPROF_USAGE, "other sets than the run's own need a report of their own: -o FILE");
    KPROF_THEN(status, tell(remote, from, true, plan));
    if (status != KPROF_OK)
        return status;
    kprof_parts_end(&remote->parts, &from->whom, from);
    kprof_parts_begin(&remote->parts, &(kprof_part){plan, from->turn, from->whom}, options);
    return KPROF_OK;
}

static kprof_status stop(kprof_remote *remote, client *from)
{
    const kprof_options *options = &from->options;
    if (kprof_selection_count(&options->selection) > 0)
        return kprof_fail(KPROF_USAGE, "kprof ctl stop: sets, sections and metrics are chosen by kprof ctl start");
    kprof_status status = check_path(remote, options);
    if (status == KPROF_OK && options->export_path)
        status = kprof_parts_name(&remote->parts, &from->whom, options);
    KPROF_THEN(status, tell(remote, from, false, 0));
    if (status == KPROF_OK)
        kprof_parts_end(&remote->parts, &from->whom, from);
    return status;
}

typedef struct describer {
    const kprof_remote *remote;
    client *to;
} describer;

static void describe_process(void *user, const kprof_spools_process *process)
{
    static const char *const states[] = {"unarmed", "armed", "failed"};
    const describer *how = user;
    kprof_control control;
    const bool is_there = kprof_control_read(how->remote->run.session->folder, (long)process->pid, &control);
    kprof_strbuf_printf(&how->to->answer, "process %" PRId64 " %s %" PRIu64 "\n", process->pid,
                        is_there ? states[control.state] : "unknown", process->measured);
}

static kprof_status fail_storing(kprof_status status)
{
    return kprof_fail(status, "this run cannot store what processes measure any more; kprof ctl stop ends their "
                              "measuring, and kprof recover makes a report when the application has ended");
}

static kprof_status begin(kprof_remote *remote, client *from)
{
    const char *word = from->options.argument;
    kprof_status status = kprof_spools_poll(remote->run.spools);
    if (strcmp(word, "start") == 0)
        return status == KPROF_OK ? start(remote, from) : fail_storing(status);
    return strcmp(word, "stop") == 0 ? stop(remote, from) : KPROF_OK;
}

static kprof_status parse(client *from)
{
    KPROF_AUTO_FREE char **words = kprof_calloc(from->given.count + 3, sizeof *words);
    words[0] = (char *)"kprof";
    words[1] = (char *)"ctl";
    memcpy(words + 2, from->given.items, from->given.count * sizeof *words);
    kprof_status status = kprof_options_parse(words, &from->options);
    from->is_parsed = true;
    if (status == KPROF_OK && (from->options.command->mask != KPROF_IN(ctl) || !from->options.argument))
        status = kprof_fail(KPROF_USAGE, "kprof ctl: start, stop or status?");
    return KPROF_THEN(status, read_pids(from));
}

static kprof_status take_command(kprof_remote *remote, client *from)
{
    const kprof_strbuf *words = &from->words; /* each ends with a zero byte */
    const bool is_whole = words->length > 0 && !words->failed && words->data[words->length - 1] == '\0';
    bool fits = words->length <= KPROF_REMOTE_BYTES;
    for (size_t at = 0; is_whole && fits && at < words->length; at += strlen(words->data + at) + 1)
        fits = from->given.count < KPROF_REMOTE_WORDS && kprof_strlist_add(&from->given, words->data + at);
    kprof_status status = !fits      ? kprof_fail(KPROF_USAGE, "kprof ctl: more than %zu bytes or %d words",
                                                  KPROF_REMOTE_BYTES, KPROF_REMOTE_WORDS)
                          : is_whole ? parse(from)
                                     : kprof_fail(KPROF_USAGE, "kprof ctl: no command");
    return KPROF_THEN(status, begin(remote, from));
}

static void begin_command(kprof_remote *remote, client *from)
{
    const kprof_status status = KPROF_HEAR(keep_message, from, take_command(remote, from));
    from->since_ns = kprof_monotonic_ns();
    if (status != KPROF_OK)
        answer(from, status);
}

/* The command is whole when the client has shut its side down. Read what is too much, too: a client that kprof hangs up
 * on would not see why. */
static void read_command(kprof_remote *remote, client *from)
{
    char block[4096];
    ssize_t size = 0;
    for (int left = BLOCKS_AT_ONCE; left > 0 && (size = recv(from->fd, block, sizeof block, 0)) > 0; left--)
        if (from->words.length <= KPROF_REMOTE_BYTES)
            kprof_strbuf_append(&from->words, block, (size_t)size);
    const bool waits = size > 0 || (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
    if (size == 0)
        begin_command(remote, from);
    else if (!waits || kprof_monotonic_ns() - from->since_ns > READ_LIMIT_NS)
        drop(from);
}

typedef struct failure {
    long pid;
    bool is_stopped, is_lost; /* lost: it stopped measuring by itself, and an error says why */
    char *reason;             /* owned; NULL: none was told */
    kprof_status status;
} failure;

static void note_reason(void *user, const kprof_spools_process *process)
{
    failure *of = user;
    const char *text = process->is_cut
                           ? "the process could not write what it measured: is the disk of the run's TMPDIR full?"
                       : of->is_lost    ? process->error
                       : of->is_stopped ? NULL
                                        : process->warning;
    if (process->pid != of->pid || !text)
        return;
    of->reason = kprof_strdup(text);
    of->status = process->is_cut ? KPROF_OUTPUT : of->is_lost ? process->failure : KPROF_NOT_COLLECTED;
}

/* No process could do what it was told. Others may still come where none was named. */
static kprof_status fail_all(kprof_remote *remote, const client *from)
{
    failure first = {.pid = from->told.items[0], .status = KPROF_NOT_COLLECTED};
    kprof_spools_visit(remote->run.spools, note_reason, &first);
    kprof_status status = kprof_fail(first.status, "%s", first.reason ? first.reason : "no process could do that");
    if (from->whom.count > 0)
        kprof_parts_forget(&remote->parts, from->turn);
    free(first.reason);
    return status;
}

/* Tell why processes that are stopped have not measured all. Fails where all have not. */
static kprof_status tell_lost(const kprof_remote *remote, const client *from)
{
    kprof_status status = KPROF_OK;
    size_t count = 0;
    for (size_t i = 0; i < from->told.count && strcmp(from->options.argument, "stop") == 0; i++) {
        const long pid = from->told.items[i];
        failure of = {.pid = pid, .is_stopped = true, .is_lost = kprof_pids_have(&from->lost, pid)};
        kprof_spools_visit(remote->run.spools, note_reason, &of);
        count += of.reason && of.status != KPROF_OK;
        if (of.reason && of.status != KPROF_OK)
            status = kprof_fail(of.status, "%s", of.reason);
        free(of.reason);
    }
    return count == from->told.count ? status : KPROF_OK;
}

static kprof_status finish(kprof_remote *remote, client *from)
{
    kprof_status status = kprof_spools_poll(remote->run.spools);
    size_t failed = 0;
    for (size_t i = 0; i < from->told.count; i++) {
        kprof_control control;
        failed += kprof_control_read(remote->run.session->folder, from->told.items[i], &control) &&
                  control.state == KPROF_CONTROL_FAILED;
    }
    if (status != KPROF_OK && strcmp(from->options.argument, "status") == 0)
        status = KPROF_OK; /* it shows what is known all the same */
    else if (status != KPROF_OK)
        (void)fail_storing(status);
    else if (failed > 0 && failed == from->told.count)
        status = fail_all(remote, from);
    else
        status = tell_lost(remote, from);
    kprof_status made = kprof_parts_make(&remote->parts, from, &from->answer);
    kprof_spools_visit(remote->run.spools, describe_process, &(describer){remote, from});
    return status == KPROF_OK ? made : status;
}

/* Has it followed, or was it told something else, or has it ended? */
static bool has_followed(const kprof_remote *remote, const client *from, long pid)
{
    kprof_control control;
    return !kprof_control_read(remote->run.session->folder, pid, &control) ||
           !kprof_spools_lives(remote->run.spools, pid) || control.answered == from->turn ||
           control.wish.turn != from->turn;
}

static kprof_status fail_late(long stopped)
{
    if (stopped > 0)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "process %ld is stopped (by Ctrl-Z, SIGSTOP or a debugger); it follows when it goes on, as "
                          "by kill -CONT %ld",
                          stopped, stopped);
    return kprof_fail(KPROF_NOT_COLLECTED,
                      "a process is still measuring after two minutes; it follows as soon as it has finished");
}

static void look_after(kprof_remote *remote, client *from)
{
    const int64_t now_ns = kprof_monotonic_ns();
    size_t missing = 0, stopped_count = 0;
    long stopped = 0;
    for (size_t i = 0; i < from->told.count && missing == stopped_count; i++) {
        const long pid = from->told.items[i];
        if (has_followed(remote, from, pid))
            continue;
        missing++;
        if (kprof_pid_is_stopped(pid)) {
            stopped_count++;
            stopped = pid;
        }
    }
    if (missing == 0 || missing > stopped_count)
        from->stopped_ns = 0;
    else if (from->stopped_ns == 0)
        from->stopped_ns = now_ns;
    const bool is_stopped = from->stopped_ns && now_ns - from->stopped_ns > STOP_LIMIT_NS;
    if (missing > 0 && !is_stopped && now_ns - from->since_ns <= FOLLOW_LIMIT_NS)
        return;
    kprof_status status = KPROF_HEAR(keep_message, from, finish(remote, from));
    if (missing > 0)
        status = KPROF_HEAR(keep_message, from, fail_late(is_stopped ? stopped : 0));
    answer(from, status);
}

bool kprof_remote_serve(kprof_remote *remote)
{
    bool is_busy = false;
    follow_clock(remote);
    for (size_t i = 0; i < MOST_CLIENTS; i++) {
        client *from = &remote->clients[i];
        struct ucred peer;
        socklen_t size = sizeof peer;
        if (from->fd < 0) {
            from->fd = accept4(remote->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            from->since_ns = kprof_monotonic_ns();
            if (from->fd >= 0 && (getsockopt(from->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
                                  peer.uid != geteuid())) /* it is another user's */
                drop(from);
        }
        if (from->fd >= 0 && !from->is_parsed)
            read_command(remote, from);
        if (from->fd >= 0 && from->is_parsed)
            look_after(remote, from);
        is_busy = is_busy || from->fd >= 0;
    }
    return is_busy;
}

kprof_status kprof_remote_close(kprof_remote *remote)
{
    if (!remote)
        return KPROF_OK;
    for (size_t i = 0; i < MOST_CLIENTS; i++) {
        client *from = &remote->clients[i];
        const bool waits = from->fd >= 0 && from->is_parsed;
        kprof_status status = waits ? kprof_parts_make(&remote->parts, from, &from->answer) : KPROF_OK;
        if (waits && strcmp(from->options.argument, "stop") != 0) {
            keep_message(from, KPROF_LOG_ERROR, "the application has ended");
            status = KPROF_NO_APPLICATION;
        }
        if (waits)
            answer(from, status);
        drop(from);
    }
    kprof_parts_end(&remote->parts, &(kprof_pids){NULL, 0}, remote);
    (void)!kprof_parts_make(&remote->parts, remote, NULL);
    const kprof_status lost = remote->parts.lost;
    kprof_parts_free(&remote->parts);
    if (remote->listener >= 0)
        close(remote->listener);
    free(remote);
    return lost;
}
