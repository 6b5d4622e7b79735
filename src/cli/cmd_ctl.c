/* kprof ctl: tells the kprof of a running application to measure, or to stop. It finds the session directory by a
 * process, and hands its own words over; that kprof decides what to do. */
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/remote.h"
#include "cli/spools.h"
#include "core/config.h"
#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "report/model/number.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST_ANSWER_BYTES ((size_t)16 << 20)
/* If a line could mean several runs, each of them has this long to tell its processes. */
#define PATIENCE_S   5
#define SEND_LIMIT_S 60

/* A run that the line is about. */
typedef struct target {
    char *dir;           /* the session directory; owned */
    kprof_strlist words; /* for the other kprof */
} target;

typedef struct targets {
    const kprof_options *options; /* of the line; borrowed */
    target *items;                /* [count], owned */
    size_t count;
    kprof_status missing; /* the first word of kprof ctl status that names no run; OK: there is none */
} targets;

/* Return the session directory of a process under kprof, from its environment. Caller frees; NULL: there is none. */
static char *session_of(long pid)
{
    KPROF_AUTO_FREE char *variable = NULL;
    char path[64], *found = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    KPROF_AUTO_FCLOSE FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&variable, &size, '\0', file) > 0) {
        const char *session = kprof_after(variable, KPROF_SESSION_ENV "=");
        found = session ? kprof_strdup(session) : NULL;
    }
    return found;
}

/* Return the session directory of a child of the process, which is then a kprof. */
static char *session_of_child(long pid)
{
    char path[96], *found = NULL;
    long child;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, pid);
    KPROF_AUTO_FCLOSE FILE *file = fopen(path, "re");
    while (file && !found && fscanf(file, "%ld", &child) == 1)
        found = session_of(child);
    return found;
}

/* Say why there is no session of this name. */
static kprof_status refuse(const char *word, bool is_pid, long pid)
{
    if (!is_pid)
        return kprof_fail(KPROF_NO_APPLICATION,
                          "\"%s\" is neither a process id nor the directory of a run; kprof ctl status lists those "
                          "that take commands",
                          word);
    const bool is_others = kill((pid_t)pid, 0) != 0 && errno == EPERM;
    if (is_others || !kprof_pid_lives(pid))
        return kprof_fail(KPROF_NO_APPLICATION, "process %s %s; kprof ctl status lists those that take commands", word,
                          is_others ? "is another user's" : "does not exist, or has ended");
    return kprof_fail(KPROF_NO_APPLICATION,
                      "process %s was not started under kprof; start it as kprof --armed no ./app", word);
}

static void add_each(const char *option, const kprof_strlist *values, kprof_strlist *out)
{
    for (size_t i = 0; i < values->count; i++) {
        kprof_strlist_add(out, option);
        kprof_strlist_add(out, values->items[i]);
    }
}

static void add_options(const kprof_options *options, kprof_strlist *out)
{
    const kprof_selection *selection = &options->selection;
    add_each("--set", &selection->sets, out);
    add_each("--section", &selection->sections, out);
    add_each("--metrics", &selection->metrics, out);
    if (options->export_path) {
        /* The other kprof may have another current folder. It expands placeholders: a folder's name must not look like
         * one. */
        char folder[PATH_MAX];
        KPROF_AUTO(kprof_strbuf) whole = KPROF_STRBUF_INIT;
        if (options->export_path[0] != '/')
            kprof_export_path_quote(getcwd(folder, sizeof folder) ? folder : "", &whole);
        kprof_strbuf_printf(&whole, "%s%s", options->export_path[0] == '/' ? "" : "/", options->export_path);
        kprof_strlist_add(out, "--export");
        kprof_strlist_add(out, whole.data);
    }
    if (options->force_overwrite)
        kprof_strlist_add(out, "--force-overwrite");
}

static bool asks_status(const kprof_options *options)
{
    return strcmp(options->argument, "status") == 0;
}

/* Find the run of this directory, and take the directory's name. Add the run, with the words that each gets, if the
 * line has not named it yet. */
static target *find_run(char *dir, targets *out)
{
    target *known = KPROF_FIRST(it, out->items, out->count, strcmp(it->dir, dir) == 0);
    if (known) {
        free(dir);
        return known;
    }
    target *added = KPROF_ADD(out->items, out->count);
    added->dir = dir;
    kprof_strlist_add(&added->words, out->options->argument);
    if (!asks_status(out->options)) /* status takes none */
        add_options(out->options, &added->words);
    return added;
}

/* A word is the id of a process of the application, the id of its kprof, which stands for all, or the session
 * directory. */
static kprof_status read_target(const char *word, targets *out)
{
    char *end;
    const long pid = strtol(word, &end, 10);
    const bool is_pid = *word >= '0' && *word <= '9' && !*end;
    char *dir = is_pid ? session_of(pid) : realpath(word, NULL);
    const bool is_one = is_pid && dir;
    if (is_pid && !dir)
        dir = session_of_child(pid);
    if (!dir)
        return refuse(word, is_pid, pid);
    target *found = find_run(dir, out);
    if (is_one)
        kprof_strlist_add(&found->words, word);
    return KPROF_OK;
}

/* Connect, even if somebody stops and continues this process meanwhile. */
static bool reach(int fd, const struct sockaddr_un *address)
{
    int result;
    do
        result = connect(fd, (const struct sockaddr *)address, sizeof *address);
    while (result < 0 && errno == EINTR);
    return result == 0;
}

static bool send_words(int fd, const kprof_strlist *words)
{
    for (size_t i = 0; i < words->count; i++) {
        const char *at = words->items[i];
        size_t left = strlen(at) + 1;
        for (ssize_t sent; left > 0; at += sent, left -= (size_t)sent)
            if ((sent = send(fd, at, left, MSG_NOSIGNAL)) < 0 && errno == EINTR)
                sent = 0; /* a process that was stopped goes on */
            else if (sent < 0)
                return false;
    }
    return shutdown(fd, SHUT_WR) == 0;
}

/* Wait for more of an answer for this long; 0: as long as the other kprof runs. False where none comes: *stopped is
 * then the process id of the other kprof if somebody has stopped it, else 0. */
static bool await_answer(int fd, time_t limit_s, long *stopped)
{
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready, seconds = 0; /* it has been stopped for so many */
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    do {
        ready = kprof_monotonic_poll(&wait, limit_s > 0 ? (int64_t)limit_s * 1000 : 1000);
        seconds = peer.pid > 0 && kprof_pid_is_stopped(peer.pid) ? seconds + 1 : 0;
    } while (ready == 0 && limit_s == 0 && seconds < 2);
    *stopped = ready == 0 && seconds > 0 ? peer.pid : 0;
    errno = ready == 0 ? EAGAIN : errno;
    return ready > 0;
}

/* Ask, and read the whole answer. Wait for it this long; 0: as long as it takes. */
static kprof_status ask(const target *to, time_t limit_s, kprof_strbuf *out)
{
    const struct timeval limit = {.tv_sec = limit_s > 0 ? limit_s : SEND_LIMIT_S};
    struct sockaddr_un address;
    char block[4096];
    ssize_t size = -1;
    long stopped = 0;
    const char *reason = NULL;
    KPROF_AUTO_CLOSE const int folder = kprof_folder_open(to->dir, &reason);
    if (folder < 0)
        return kprof_fail(KPROF_NO_APPLICATION, "%s: %s", to->dir, reason);
    kprof_remote_address(folder, &address);
    KPROF_AUTO_CLOSE const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (fd >= 0 && reach(fd, &address) && send_words(fd, &to->words)) {
        while (await_answer(fd, limit_s, &stopped) && (size = recv(fd, block, sizeof block, 0)) > 0 &&
               out->length <= MOST_ANSWER_BYTES)
            kprof_strbuf_append(out, block, (size_t)size);
    }
    const int error = errno;
    if (size == 0 && out->length > 0)
        return KPROF_OK;
    if (stopped > 0)
        return kprof_fail(KPROF_NO_APPLICATION,
                          "the kprof of %s, process %ld, is stopped (by Ctrl-Z, SIGSTOP or a debugger); it follows "
                          "when it goes on, as by fg or kill -CONT %ld",
                          to->dir, stopped, stopped);
    if (error == ENOENT || error == ECONNREFUSED)
        return kprof_fail(KPROF_NO_APPLICATION,
                          "the run in %s takes no commands: it measures from the start, or its kprof is gone; start it "
                          "as kprof --armed no ./app",
                          to->dir);
    return kprof_fail(KPROF_NO_APPLICATION, "the kprof of %s gives no answer: %s", to->dir, strerror(error));
}

/* Tell which processes a run has, so that one can be named. A kprof that is stopped does not say. */
static void list_run(const char *dir)
{
    KPROF_AUTO(kprof_strbuf) answer = KPROF_STRBUF_INIT, line = KPROF_STRBUF_INIT;
    target to = {.dir = (char *)dir, .words = KPROF_STRLIST_INIT};
    kprof_strlist_add(&to.words, "status");
    const bool is_told = KPROF_MUTE(ask(&to, PATIENCE_S, &answer)) == KPROF_OK;
    char *at = is_told ? answer.data : NULL;
    for (char *row; (row = strsep(&at, "\n"));) {
        const char *pid = kprof_after(row, "process ");
        if (pid)
            kprof_strbuf_printf(&line, "%s%ld", line.length ? ", " : ", processes ", atol(pid));
    }
    kprof_log(KPROF_LOG_ERROR, "  %s%s", dir, kprof_strbuf_text(&line));
    kprof_strlist_free(&to.words);
}

/* The line names no run: take the only one, or change none. */
static kprof_status choose_only(const kprof_strlist *live, targets *out)
{
    const bool is_clear = live->count == 1 || asks_status(out->options);
    for (size_t i = 0; i < live->count && is_clear; i++)
        find_run(kprof_strdup(live->items[i]), out);
    if (live->count > 0 && is_clear)
        return KPROF_OK;
    if (live->count == 0)
        return kprof_fail(KPROF_NO_APPLICATION,
                          "no application runs under kprof --armed no in %s; one that was started with another TMPDIR "
                          "is found by a process id",
                          kprof_sessions_folder());
    kprof_status status = kprof_fail(
        KPROF_USAGE, "%zu runs take commands; name one or several, by process ids or their directories", live->count);
    for (size_t i = 0; i < live->count; i++)
        list_run(live->items[i]);
    return status;
}

/* Find the runs, and make the words that each gets: the command, its options, and its processes. */
static kprof_status find_targets(targets *out)
{
    char folder[PATH_MAX];
    const kprof_options *options = out->options;
    KPROF_AUTO(kprof_strlist) live = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    if (!options->argument)
        return kprof_fail(KPROF_USAGE, "what is to be done? usage: kprof ctl start|stop|status [PID...|DIR...]");
    if (options->export_path && options->export_path[0] != '/' && !getcwd(folder, sizeof folder))
        return kprof_fail(KPROF_OUTPUT, "-o %s: there is no current folder (%m): give a whole path",
                          options->export_path);
    for (size_t i = 1; i < options->reports.count && status == KPROF_OK; i++) {
        status = read_target(options->reports.items[i], out);
        if (status != KPROF_OK && asks_status(options)) { /* of the others */
            out->missing = out->missing == KPROF_OK ? status : out->missing;
            status = KPROF_OK;
        }
    }
    if (status == KPROF_OK && out->count == 0 && out->missing == KPROF_OK) {
        kprof_session_find_live(&live);
        status = choose_only(&live, out);
    }
    if (status == KPROF_OK && out->count > 1 && options->export_path && !strchr(options->export_path, '%'))
        return kprof_fail(KPROF_USAGE, "-o %s: each of %zu runs needs a report of its own, such as -o %s_%%q{RANK}",
                          options->export_path, out->count, options->export_path);
    return status;
}

/* The other kprof's report on its processes. */
typedef struct ctl_answer {
    kprof_listing listing;
    size_t processes, armed;
} ctl_answer;

/* Read the lines that cli/remote.h tells of. Return the exit code. */
static int read_answer(char *text, ctl_answer *out)
{
    static const char *const levels[] = {"error", "warning", "info"};
    int code = kprof_status_exit_code(KPROF_INTERNAL);
    for (char *line; (line = strsep(&text, "\n"));) {
        const char *word = strsep(&line, " ");
        if (!line)
            continue;
        if (strcmp(word, "exit") == 0)
            code = atoi(line);
        else if (strcmp(word, "report") == 0)
            kprof_log(KPROF_LOG_INFO, "report: %s", line);
        const char *level = strcmp(word, "message") == 0 ? strsep(&line, " ") : "";
        for (kprof_log_level i = KPROF_LOG_ERROR; i <= KPROF_LOG_INFO && line; i++)
            if (strcmp(level, levels[i]) == 0)
                kprof_log(i, "%s", line);
        for (size_t i = 0; i < 3 && strcmp(word, "process") == 0; i++) {
            const char *cell = strsep(&line, " ");
            out->armed += i == 1 && cell && strcmp(cell, "armed") == 0;
            out->processes += i == 0;
            kprof_strlist_add(&out->listing.cells, cell ? cell : "");
        }
    }
    return code;
}

/* Return the exit code. */
static int show(const kprof_options *options, ctl_answer *from)
{
    if (asks_status(options))
        return kprof_status_exit_code(
            kprof_results_show(options, &kprof_listing_page, &(kprof_page_input){.content = &from->listing}));
    if (from->processes > 0) /* start and stop print nothing else */
        kprof_log(KPROF_LOG_INFO, "%zu of %zu process%s %s armed", from->armed, from->processes,
                  kprof_ending(from->processes, "es"), from->armed == 1 || from->processes == 1 ? "is" : "are");
    else
        kprof_log(KPROF_LOG_INFO, "no process has called CUDA yet%s",
                  strcmp(options->argument, "start") == 0 ? "; each is armed when it does" : "");
    return 0;
}

int kprof_cmd_ctl(const kprof_options *options)
{
    static const kprof_listing_column columns[] = {
        {.key = "process", .label = "Process", .type = KPROF_FIELD_INTEGER},
        {.key = "state", .label = "State"},
        {.key = "measured", .label = "Launches measured", .type = KPROF_FIELD_INTEGER},
        {0},
    };
    targets runs = {.options = options};
    ctl_answer from = {.listing = {.columns = columns}};
    kprof_status status = find_targets(&runs);
    int code = kprof_status_exit_code(status == KPROF_OK ? runs.missing : status);
    for (size_t i = 0; i < runs.count && status == KPROF_OK; i++) {
        KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
        const kprof_status asked = ask(&runs.items[i], 0, &text);
        const int answered = asked == KPROF_OK ? read_answer(text.data, &from) : kprof_status_exit_code(asked);
        code = code == 0 ? answered : code;
    }
    const bool has_others = from.processes > 0 && (runs.count > 1 || runs.missing != KPROF_OK);
    if (code == 0 || has_others) { /* one of several runs may have ended */
        const int shown = show(options, &from);
        code = code == 0 ? shown : code;
    }
    kprof_listing_free(&from.listing);
    for (size_t i = 0; i < runs.count; i++) {
        kprof_strlist_free(&runs.items[i].words);
        free(runs.items[i].dir);
    }
    free(runs.items);
    return code;
}
