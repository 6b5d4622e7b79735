/* Gives a child no shell, no input and a process group of its own, which ends with it. */
#include "core/child.h"

#include "core/monotonic.h"
#include "core/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_ERROR_BYTES = 4096 };
#define GRACE_NS  INT64_C(5000000000) /* for it to tidy up */
#define KILLED_NS INT64_C(1000000000) /* for the kernel to end it */

/* A program that runs, and the ends of its pipes. */
typedef struct child {
    pid_t pid;
    int out, err;
    int64_t start_ns;
} child;

static void close_all(int *ends, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

/* Returns 0 or what errno tells. */
static int start(char *const *arguments, child *c)
{
    int ends[4] = {-1, -1, -1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0 || pipe2(ends + 2, O_CLOEXEC) != 0) {
        int error = errno;
        close_all(ends, 4);
        return error;
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    error = error ? error : posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    error = error ? error : posix_spawn_file_actions_adddup2(&actions, ends[3], STDERR_FILENO);
    error = error ? error : posix_spawnattr_setpgroup(&attributes, 0);
    error = error ? error : posix_spawnattr_setsigmask(&attributes, &none);
    error = error ? error : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    error = error ? error : posix_spawn(&c->pid, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error) {
        close_all(ends, 4);
        return error;
    }
    close(ends[1]);
    close(ends[3]);
    c->start_ns = kprof_monotonic_ns();
    c->out = ends[0];
    c->err = ends[2];
    return 0;
}

/* Take what there is to read; sets *fd to -1 at the end. What goes beyond `most` is lost. Returns false past it. */
static bool take(int *fd, size_t most, kprof_strbuf *to)
{
    char bytes[1 << 16];
    ssize_t got = read(*fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR)
        return true;
    if (got <= 0) {
        close(*fd);
        *fd = -1;
        return true;
    }
    bool fits = (size_t)got <= most - to->length;
    kprof_strbuf_append(to, bytes, fits ? (size_t)got : most - to->length);
    return fits;
}

static const char too_long[] = "it runs for too long", interrupted[] = "a signal has interrupted it";

/* Is a signal pending that somebody sent to end this process, which has blocked it? */
static bool has_pending_end(void)
{
    sigset_t pending, ending;
    struct sigaction action;
    kprof_signals_that_end(&ending);
    if (sigpending(&pending) != 0)
        return false;
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&pending, number) == 1 && sigismember(&ending, number) == 1 &&
            sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            return true;
    return false;
}

static bool is_interrupted(const kprof_child_limits *limits)
{
    return (limits->interrupted && *limits->interrupted) || has_pending_end();
}

/* Read both pipes until they end. Returns why the program has to be ended first, or NULL. */
static const char *read_all(child *c, const kprof_child_limits *limits, kprof_strbuf *out, kprof_strbuf *errors)
{
    int64_t end = c->start_ns + limits->limit_ns;
    while (c->out >= 0 || c->err >= 0) {
        int64_t left_ms = (end - kprof_monotonic_ns()) / 1000000;
        struct pollfd fds[] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
        if (left_ms <= 0)
            return too_long;
        if (is_interrupted(limits))
            return interrupted;
        int ready = poll(fds, 2, left_ms < 1000 ? (int)left_ms + 1 : 1000);
        if (ready < 0 && errno != EINTR)
            return strerror(errno);
        if (ready <= 0)
            continue;
        if (fds[0].revents && !take(&c->out, limits->most_bytes, out) && limits->most_bytes > 0)
            return "it prints more than kprof reads";
        if (fds[1].revents)
            (void)take(&c->err, MOST_ERROR_BYTES, errors);
    }
    return NULL;
}

/* It has closed its output, so it is about to end. Returns as read_all does. Does not reap it, so that no other process
 * gets its number meanwhile. */
static const char *await_end(const child *c, const kprof_child_limits *limits)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    siginfo_t ended;
    for (;;) {
        ended.si_pid = 0;
        if (waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR)
            return strerror(errno);
        if (ended.si_pid == c->pid)
            return NULL;
        if (kprof_monotonic_ns() - c->start_ns > limits->limit_ns)
            return too_long;
        if (is_interrupted(limits))
            return interrupted;
        nanosleep(&pause, NULL);
    }
}

/* Wait for it for so long from now on. */
static void await_end_for(const child *c, int64_t ns)
{
    (void)await_end(c, &(kprof_child_limits){.limit_ns = kprof_monotonic_ns() - c->start_ns + ns});
}

const char *kprof_child_run(char *const *arguments, const kprof_child_limits *limits, kprof_child *result)
{
    child c;
    int error = start(arguments, &c);
    if (error)
        return strerror(error);
    const char *ended = read_all(&c, limits, &result->out, &result->errors);
    if (!ended)
        ended = await_end(&c, limits);
    if (ended && limits->interrupted) {
        kill(c.pid, SIGTERM);
        await_end_for(&c, GRACE_NS);
    }
    kill(-c.pid, SIGKILL); /* what it has started, too */
    int ends[] = {c.out, c.err};
    close_all(ends, 2);
    /* Even then a process does not end while a driver keeps it in a call. Leave it to whoever inherits it. */
    if (ended)
        await_end_for(&c, KILLED_NS);
    if (waitpid(c.pid, &result->status, WNOHANG) == 0)
        result->status = SIGKILL;
    return ended;
}

void kprof_child_free(kprof_child *result)
{
    KPROF_FREE_TEXTS(&result->out, &result->errors);
}
