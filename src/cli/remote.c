/* One client at a time: it is read without waiting for it, its command is done, and it is answered when all processes
 * have followed. Whoever is slow, or writes too much, is dropped. */
#include "cli/remote.h"
#include "cli/commands.h"
#include "cli/parts.h"
#include "cli/paths.h"
#include "core/control.h"
#include "core/log.h"
#include "core/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_LIMIT_NS   INT64_C(2000000000)
#define FOLLOW_LIMIT_NS INT64_C(120000000000)
#define BACKLOG         16

/* A process that is to follow. */
typedef struct follower {
    long pid;
    uint32_t turn;
} follower;

/* Launches since a start. */
typedef struct open_part {
    kprof_part part; /* first turn 0: there are none */
    char *path;      /* the report of their own that they are to have; NULL: none */
    bool overwrites; /* a file of that name */
} open_part;

struct kprof_remote {
    kprof_remote_run run;
    int listener, client; /* client -1: there is none */
    int64_t since_ns;     /* when the client came, or its command was given on */
    kprof_strbuf words;   /* that the client has sent so far */
    kprof_strbuf answer;
    kprof_strlist given; /* the words of the command that is under way */
    kprof_options options;
    bool is_parsed; /* `options` */
    follower *followers;
    size_t follower_count;
    uint32_t turn; /* of the last wish */
    kprof_parts *parts;
    open_part open;    /* since the last start */
    open_part closing; /* which a start has ended, until all processes have followed */
};

void kprof_remote_address(int folder, void *out)
{
    struct sockaddr_un *address = out;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" KPROF_SESSION_SOCKET, folder);
}

kprof_status kprof_remote_open(const kprof_remote_run *run, kprof_remote **out)
{
    struct sockaddr_un address;
    kprof_remote *remote = calloc(1, sizeof *remote);
    if (!remote)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    const int folder = run->session->folder;
    remote->run = *run;
    remote->client = remote->listener = -1;
    kprof_status status = kprof_parts_new(&(kprof_parts_run){run->options, run->session, run->plans}, &remote->parts);
    if (status != KPROF_OK) {
        kprof_remote_close(remote);
        return status;
    }
    remote->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    kprof_remote_address(folder, &address);
    if (remote->listener < 0 || bind(remote->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        fchmodat(folder, KPROF_SESSION_SOCKET, S_IRUSR | S_IWUSR, 0) != 0 || listen(remote->listener, BACKLOG) != 0) {
        status = kprof_fail(KPROF_OUTPUT, "%s: no socket for kprof ctl: %m; set TMPDIR to a folder that may have one",
                            run->session->dir);
        kprof_remote_close(remote);
        return status;
    }
    *out = remote;
    return KPROF_OK;
}

int kprof_remote_descriptor(const kprof_remote *remote)
{
    return remote->client >= 0 ? remote->client : remote->listener;
}

/* Forget the client, whatever was done of its command. */
static void drop(kprof_remote *remote)
{
    if (remote->client >= 0)
        close(remote->client);
    if (remote->is_parsed)
        kprof_options_free(&remote->options);
    remote->client = -1;
    remote->is_parsed = false;
    kprof_strbuf_clear(&remote->words);
    kprof_strbuf_clear(&remote->answer);
    kprof_strlist_free(&remote->given);
    free(remote->followers);
    remote->followers = NULL;
    remote->follower_count = 0;
}

/* What does not fit into the socket's buffer is cut: nobody waits for a client. */
static void answer(kprof_remote *remote, kprof_status status)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&text, "exit %d\n", kprof_status_exit_code(status));
    kprof_strbuf_append(&text, remote->answer.data, remote->answer.length);
    if (!text.failed)
        (void)!send(remote->client, text.data, text.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    kprof_strbuf_free(&text);
    drop(remote);
}

static void keep_message(void *user, kprof_log_level level, const char *message)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    kprof_remote *remote = user;
    kprof_strbuf_printf(&remote->answer, "message %s %s\n", levels[level], message);
}

static bool is_of_this_user(int client)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void take_client(kprof_remote *remote)
{
    remote->client = accept4(remote->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    remote->since_ns = kprof_monotonic_ns();
    if (remote->client >= 0 && !is_of_this_user(remote->client))
        drop(remote);
}

/* Every word ends with a zero byte. */
static bool split_words(kprof_remote *remote)
{
    const kprof_strbuf *words = &remote->words;
    bool is_whole = words->length > 0 && !words->failed && words->data[words->length - 1] == '\0';
    for (size_t at = 0; is_whole && at < words->length; at += strlen(words->data + at) + 1)
        is_whole = remote->given.count < KPROF_REMOTE_WORDS && kprof_strlist_add(&remote->given, words->data + at);
    return is_whole;
}

static bool add_follower(kprof_remote *remote, long pid, const kprof_control_wish *wish)
{
    follower *grown = realloc(remote->followers, (remote->follower_count + 1) * sizeof *grown);
    if (!grown || !kprof_control_wish_for(remote->run.session->folder, pid, wish)) {
        remote->followers = grown ? grown : remote->followers;
        return false;
    }
    remote->followers = grown;
    remote->followers[remote->follower_count++] = (follower){pid, wish->turn};
    return true;
}

typedef struct teller {
    kprof_remote *remote;
    const kprof_control_wish *wish;
} teller;

static void tell_process(void *user, const kprof_spools_process *process)
{
    const teller *to = user;
    (void)!add_follower(to->remote, (long)process->pid, to->wish);
}

static kprof_status read_pid(const char *word, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(word, &end, 10);
    if (*word < '0' || *word > '9' || *end || errno || *out <= 0)
        return kprof_fail(KPROF_USAGE, "kprof ctl: \"%s\" is no process id", word);
    return KPROF_OK;
}

/* Tell the processes that are named, or all and those that come. */
static kprof_status tell(kprof_remote *remote, bool armed, uint32_t plan)
{
    const int folder = remote->run.session->folder;
    const kprof_control_wish wish = {++remote->turn, armed, plan};
    const kprof_strlist *words = &remote->options.reports;
    kprof_status status = KPROF_OK;
    if (words->count == 1) {
        const char *reason = kprof_control_make(folder, KPROF_CONTROL_ALL);
        if (reason || !kprof_control_wish_for(folder, KPROF_CONTROL_ALL, &wish))
            return kprof_fail(KPROF_OUTPUT, "telling processes that start later: %s", reason ? reason : "no switch");
        kprof_spools_visit(remote->run.spools, tell_process, &(teller){remote, &wish});
    }
    for (size_t i = 1; i < words->count && status == KPROF_OK; i++) {
        long pid;
        status = read_pid(words->items[i], &pid);
        if (status == KPROF_OK && !add_follower(remote, pid, &wish))
            status = kprof_fail(KPROF_NO_APPLICATION,
                                "process %ld cannot be told: it has not called CUDA yet, has ended, or runs without "
                                "kprof's library",
                                pid);
    }
    return status;
}

static void forget_part(open_part *part)
{
    free(part->path);
    *part = (open_part){0};
}

/* Make the report that launches of their own are to have. */
static kprof_status close_part(kprof_remote *remote, open_part *part)
{
    const kprof_options wanted = {.export_path = part->path, .force_overwrite = part->overwrites};
    char *path = NULL;
    kprof_status status = part->path ? kprof_parts_make(remote->parts, &part->part, &wanted, &path) : KPROF_OK;
    if (path && remote->client >= 0)
        kprof_strbuf_printf(&remote->answer, "report %s\n", path);
    else if (path)
        kprof_log(KPROF_LOG_INFO, "report: %s", path);
    free(path);
    forget_part(part);
    return status;
}

/* A report that is there must not be missed only when the launches have been measured. */
static kprof_status check_path(const kprof_options *options)
{
    char *path = NULL;
    if (!options->export_path || options->force_overwrite || strstr(options->export_path, "%i"))
        return KPROF_OK;
    kprof_status status = kprof_export_path_expand(options->export_path, &path);
    if (status == KPROF_OK && access(path, F_OK) == 0)
        status = kprof_fail(KPROF_OUTPUT, "%s: exists already; use --force-overwrite or another name", path);
    free(path);
    return status;
}

static kprof_status note_path(const kprof_options *options, open_part *out)
{
    if (!options->export_path)
        return KPROF_OK;
    free(out->path);
    out->path = kprof_strdup(options->export_path);
    out->overwrites = options->force_overwrite;
    return out->path ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "out of memory");
}

static kprof_status start(kprof_remote *remote)
{
    const kprof_options *options = &remote->options;
    open_part next = {0};
    kprof_status status = check_path(options);
    if (status == KPROF_OK)
        status = kprof_parts_plan(remote->parts, options, &next.part.plan);
    if (status == KPROF_OK && next.part.plan > 0 && !options->export_path)
        status = kprof_fail(KPROF_USAGE, "other sets than the run's own need a report of their own: -o FILE");
    if (status == KPROF_OK)
        status = tell(remote, true, next.part.plan);
    if (status == KPROF_OK)
        status = note_path(options, &next);
    if (status != KPROF_OK)
        return status;
    next.part.first_turn = remote->turn;
    remote->closing = remote->open;
    remote->open = next;
    return KPROF_OK;
}

static kprof_status stop(kprof_remote *remote)
{
    const kprof_options *options = &remote->options;
    if (options->selection.sets.count + options->selection.sections.count + options->selection.metrics.count > 0)
        return kprof_fail(KPROF_USAGE, "kprof ctl stop: sets, sections and metrics are chosen by kprof ctl start");
    if (options->export_path && remote->open.part.first_turn == 0)
        return kprof_fail(KPROF_USAGE, "kprof ctl stop -o: nothing was started");
    kprof_status status = check_path(options);
    if (status == KPROF_OK)
        status = tell(remote, false, 0);
    if (status == KPROF_OK)
        status = note_path(options, &remote->open);
    if (status != KPROF_OK)
        return status;
    remote->closing = remote->open;
    remote->open = (open_part){0};
    return KPROF_OK;
}

static void describe_process(void *user, const kprof_spools_process *process)
{
    static const char *const states[] = {"unarmed", "armed", "failed"};
    kprof_remote *remote = user;
    kprof_control control;
    const bool is_there = kprof_control_read(remote->run.session->folder, (long)process->pid, &control);
    kprof_strbuf_printf(&remote->answer, "process %" PRId64 " %s %" PRIu64 "\n", process->pid,
                        is_there ? states[control.state] : "unknown", process->measured);
}

static kprof_status begin(kprof_remote *remote)
{
    const char *word = remote->options.argument;
    kprof_status status = kprof_spools_poll(remote->run.spools);
    if (status != KPROF_OK)
        return kprof_fail(status, "this run cannot store what processes measure any more");
    if (strcmp(word, "start") == 0)
        return start(remote);
    return strcmp(word, "stop") == 0 ? stop(remote) : KPROF_OK;
}

static kprof_status parse(kprof_remote *remote)
{
    char **words = calloc(remote->given.count + 3, sizeof *words);
    if (!words)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    words[0] = (char *)"kprof";
    words[1] = (char *)"ctl";
    memcpy(words + 2, remote->given.items, remote->given.count * sizeof *words);
    kprof_status status = kprof_options_parse(words, &remote->options);
    remote->is_parsed = true;
    if (status == KPROF_OK && (remote->options.command->mask != KPROF_IN(ctl) || !remote->options.argument))
        status = kprof_fail(KPROF_USAGE, "kprof ctl: start, stop or status?");
    free(words);
    return status;
}

static void begin_command(kprof_remote *remote)
{
    const kprof_log_receiver before = kprof_log_set_sink(keep_message, remote);
    kprof_status status = split_words(remote) ? parse(remote) : kprof_fail(KPROF_USAGE, "kprof ctl: no command");
    if (status == KPROF_OK)
        status = begin(remote);
    (void)kprof_log_set_sink(before.sink, before.user);
    remote->since_ns = kprof_monotonic_ns();
    if (status != KPROF_OK)
        answer(remote, status);
}

/* The command is whole when the client has shut its side down. */
static void read_command(kprof_remote *remote)
{
    char block[4096];
    ssize_t size = 0;
    while (remote->words.length <= KPROF_REMOTE_BYTES && (size = recv(remote->client, block, sizeof block, 0)) > 0)
        kprof_strbuf_append(&remote->words, block, (size_t)size);
    const bool waits = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (size == 0 && remote->words.length <= KPROF_REMOTE_BYTES)
        begin_command(remote);
    else if (!waits || kprof_monotonic_ns() - remote->since_ns > READ_LIMIT_NS)
        drop(remote);
}

static bool has_followed(const kprof_remote *remote, const follower *process)
{
    kprof_control control;
    if (!kprof_control_read(remote->run.session->folder, process->pid, &control) ||
        !kprof_spools_lives(remote->run.spools, process->pid))
        return true; /* it has ended */
    return control.answered == process->turn || control.wish.turn != process->turn;
}

static kprof_status finish(kprof_remote *remote)
{
    kprof_status status = kprof_spools_poll(remote->run.spools);
    size_t failed = 0;
    for (size_t i = 0; i < remote->follower_count; i++) {
        kprof_control control;
        failed += kprof_control_read(remote->run.session->folder, remote->followers[i].pid, &control) &&
                  control.state == KPROF_CONTROL_FAILED;
    }
    if (status == KPROF_OK && failed > 0 && failed == remote->follower_count)
        status = kprof_fail(KPROF_NOT_COLLECTED, "no process could do that");
    if (status == KPROF_OK)
        status = close_part(remote, &remote->closing);
    kprof_spools_visit(remote->run.spools, describe_process, remote);
    return status;
}

static void look_after(kprof_remote *remote)
{
    bool is_done = true;
    for (size_t i = 0; i < remote->follower_count && is_done; i++)
        is_done = has_followed(remote, &remote->followers[i]);
    const bool is_late = kprof_monotonic_ns() - remote->since_ns > FOLLOW_LIMIT_NS;
    if (!is_done && !is_late)
        return;
    const kprof_log_receiver before = kprof_log_set_sink(keep_message, remote);
    kprof_status status = is_done ? finish(remote)
                                  : kprof_fail(KPROF_NOT_COLLECTED, "a process still measures after two minutes; it "
                                                                    "follows when it is done");
    (void)kprof_log_set_sink(before.sink, before.user);
    answer(remote, status);
}

bool kprof_remote_serve(kprof_remote *remote)
{
    if (remote->client < 0)
        take_client(remote);
    if (remote->client >= 0 && !remote->is_parsed)
        read_command(remote);
    if (remote->client >= 0 && remote->is_parsed)
        look_after(remote);
    return remote->client >= 0;
}

void kprof_remote_close(kprof_remote *remote)
{
    if (!remote)
        return;
    kprof_status status = close_part(remote, &remote->closing);
    kprof_status last = close_part(remote, &remote->open);
    if (remote->client >= 0 && remote->is_parsed && strcmp(remote->options.argument, "stop") != 0) {
        keep_message(remote, KPROF_LOG_ERROR, "the application has ended");
        status = KPROF_NO_APPLICATION;
    }
    if (remote->client >= 0 && remote->is_parsed)
        answer(remote, status == KPROF_OK ? last : status);
    drop(remote);
    kprof_parts_free(remote->parts);
    if (remote->listener >= 0)
        close(remote->listener);
    kprof_strbuf_free(&remote->words);
    kprof_strbuf_free(&remote->answer);
    free(remote);
}
