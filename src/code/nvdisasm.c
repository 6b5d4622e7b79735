/* Looks in absolute folders only, so that nothing in the current one is run, and starts no interpreter to ask it for
 * its packages. The program gets no shell, no input and a process group of its own, which ends with it. */
#include "code/nvdisasm.h"

#include "core/clean.h"
#include "core/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_REASON_BYTES = 200, MOST_ERROR_BYTES = 4096 };

static bool is_program(const char *path)
{
    struct stat file;
    return path[0] == '/' && stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Add FOLDER/NAME if it is a program. */
static bool add_program(const char *folder, size_t length, const char *name, kprof_strlist *out)
{
    kprof_strbuf path = KPROF_STRBUF_INIT;
    kprof_strbuf_append(&path, folder, length);
    kprof_strbuf_puts(&path, name);
    bool ok = !path.failed && (!is_program(path.data) || kprof_strlist_add_unique(out, path.data));
    kprof_strbuf_free(&path);
    return ok;
}

static bool add_from_path(const char *folders, kprof_strlist *out)
{
    for (const char *at = folders; at && *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        if (length > 0 && !add_program(at, length, "/nvdisasm", out))
            return false;
        at += length;
    }
    return true;
}

/* Add what packages below PREFIX/lib/python3* brought. Characters of the prefix stand for themselves. */
static bool add_from_packages(const char *prefix, kprof_strlist *out)
{
    kprof_strbuf pattern = KPROF_STRBUF_INIT;
    for (const char *at = prefix; *at; at++)
        kprof_strbuf_printf(&pattern, strchr("*?[]{}~\\", *at) ? "\\%c" : "%c", *at);
    kprof_strbuf_puts(&pattern, "/lib/python3*/{site,dist}-packages/"
                                "{triton/backends/nvidia/bin,nvidia/cu13/bin,nvidia/cuda_nvdisasm/bin,"
                                "nvidia/cuda_nvcc/bin}/nvdisasm");
    glob_t found = {0};
    int result = pattern.failed ? GLOB_NOSPACE : glob(pattern.data, GLOB_BRACE, NULL, &found);
    bool ok = result != GLOB_NOSPACE;
    for (size_t i = 0; ok && i < found.gl_pathc; i++)
        ok = add_program(found.gl_pathv[i], strlen(found.gl_pathv[i]), "", out);
    globfree(&found);
    kprof_strbuf_free(&pattern);
    return ok;
}

/* The packages of the Python that PATH has, which an environment of its own may bring: PREFIX/bin/python3. */
static bool add_from_python(const char *folders, kprof_strlist *out)
{
    for (const char *at = folders; at && *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        kprof_strlist python = KPROF_STRLIST_INIT;
        bool ok = add_program(at, length, "/python3", &python);
        if (ok && python.count > 0 && length > strlen("/bin") && !strncmp(at + length - strlen("/bin"), "/bin", 4)) {
            char *prefix = kprof_strndup(at, length - strlen("/bin"));
            ok = prefix && add_from_packages(prefix, out);
            free(prefix);
        }
        kprof_strlist_free(&python);
        if (!ok)
            return false;
        at += length;
    }
    return true;
}

bool kprof_nvdisasm_find(kprof_strlist *out)
{
    const char *path = getenv("PATH");
    bool ok = add_from_path(path, out);
    static const char *const toolkits[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; ok && i < sizeof toolkits / sizeof *toolkits; i++) {
        const char *folder = secure_getenv(toolkits[i]);
        ok = !folder || add_program(folder, strlen(folder), "/bin/nvdisasm", out);
    }
    ok = ok && add_from_path("/usr/local/cuda/bin:/opt/cuda/bin", out);
    static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; ok && i < sizeof environments / sizeof *environments; i++) {
        const char *folder = secure_getenv(environments[i]);
        ok = !folder || folder[0] != '/' || add_from_packages(folder, out);
    }
    ok = ok && add_from_python(path, out);
    const char *home = secure_getenv("HOME");
    kprof_strbuf user = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&user, "%s/.local", home ? home : "");
    ok = ok && !user.failed && (user.data[0] != '/' || add_from_packages(user.data, out));
    kprof_strbuf_free(&user);
    return ok && add_from_packages("/usr", out) && add_from_packages("/usr/local", out);
}

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

static const char too_long[] = "it runs for too long";

/* Read both pipes until they end. Returns why the program has to be ended first, or NULL. */
static const char *read_all(child *c, const kprof_nvdisasm_limits *limits, kprof_strbuf *out, kprof_strbuf *errors)
{
    int64_t end = c->start_ns + limits->limit_ns;
    while (c->out >= 0 || c->err >= 0) {
        int64_t left_ms = (end - kprof_monotonic_ns()) / 1000000;
        struct pollfd fds[] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
        if (left_ms <= 0)
            return too_long;
        int ready = poll(fds, 2, left_ms < 1000 ? (int)left_ms + 1 : 1000);
        if (ready < 0 && errno != EINTR)
            return strerror(errno);
        if (ready <= 0)
            continue;
        if (fds[0].revents && !take(&c->out, limits->most_bytes, out))
            return "it prints more than kprof reads";
        if (fds[1].revents)
            (void)take(&c->err, MOST_ERROR_BYTES, errors);
        if (out->failed || errors->failed)
            return "out of memory";
    }
    return NULL;
}

/* It has closed its output, so it is about to end. Returns as read_all does. Its number stays its own meanwhile. */
static const char *await_end(const child *c, int64_t limit_ns)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    siginfo_t ended;
    for (;;) {
        ended.si_pid = 0;
        if (waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR)
            return strerror(errno);
        if (ended.si_pid == c->pid)
            return NULL;
        if (kprof_monotonic_ns() - c->start_ns > limit_ns)
            return too_long;
        nanosleep(&pause, NULL);
    }
}

/* Its own words, of which the first line is enough, or how it ended. */
static void tell_failure(const kprof_strbuf *errors, int status, kprof_strbuf *reason)
{
    char line[MOST_REASON_BYTES + 1] = "";
    const char *words = errors->data ? errors->data + strspn(errors->data, " \t\n") : "";
    snprintf(line, sizeof line, "%.*s", (int)strcspn(words, "\n"), words);
    char *clean = kprof_clean_text(line);
    if (clean && *clean)
        kprof_strbuf_puts(reason, clean);
    else if (WIFSIGNALED(status))
        kprof_strbuf_printf(reason, "signal %d ended it", WTERMSIG(status));
    else
        kprof_strbuf_printf(reason, "it ended with status %d", WEXITSTATUS(status));
    free(clean);
}

kprof_status kprof_nvdisasm_run(char *const *arguments, const kprof_nvdisasm_limits *limits, kprof_strbuf *out,
                                kprof_strbuf *reason)
{
    child c;
    int error = start(arguments, &c), status = 0;
    if (error) {
        kprof_strbuf_puts(reason, strerror(error));
        return KPROF_INTERNAL;
    }
    kprof_strbuf errors = KPROF_STRBUF_INIT;
    const char *ended = read_all(&c, limits, out, &errors);
    if (!ended)
        ended = await_end(&c, limits->limit_ns);
    kill(-c.pid, SIGKILL); /* what it has started, too */
    int ends[] = {c.out, c.err};
    close_all(ends, 2);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
        ;
    bool lacks_memory = out->failed || errors.failed;
    if (ended)
        kprof_strbuf_puts(reason, ended);
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        tell_failure(&errors, status, reason);
    kprof_strbuf_free(&errors);
    if (lacks_memory || reason->failed)
        return KPROF_NO_MEMORY;
    return reason->length == 0 ? KPROF_OK : KPROF_INTERNAL;
}
