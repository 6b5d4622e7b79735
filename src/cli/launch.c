/* Starts the application with the injection environment, forwards signals to it and waits for it. */
#include "cli/launch.h"
#include "cli/paths.h"
#include "cli/program.h"
#include "core/config.h"
#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/process_filter.h"
#include "core/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_LIMIT_MS 1000
/* A sender that signals one process of a job after the other may reach kprof first. */
#define GRACE_NS   20000000
#define FIRST_FREE 4

/* The signals that kprof has an action of its own for, with the actions that it was started with. */
static struct {
    int number;
    void (*action)(int);
    struct sigaction previous;
} settled[] = {{.number = SIGPIPE, .action = SIG_IGN},
               {.number = SIGXFSZ, .action = SIG_IGN},
               {.number = SIGCHLD, .action = SIG_DFL}};

#define SETTLED_COUNT (sizeof settled / sizeof settled[0])

void kprof_signals_settle(void)
{
    for (size_t i = 0; i < SETTLED_COUNT; i++) {
        const struct sigaction own = {.sa_handler = settled[i].action};
        sigaction(settled[i].number, &own, &settled[i].previous);
    }
}

static mode_t started_umask;

void kprof_umask_settle(void)
{
    started_umask = umask(077);
    umask(started_umask & 077);
}

kprof_status kprof_signals_block(kprof_signals *out)
{
    sigset_t set;
    kprof_signals_that_end(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, &out->previous) != 0)
        return kprof_fail(KPROF_INTERNAL, "cannot block signals: %m");
    out->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (out->fd >= 0)
        return KPROF_OK;
    kprof_status status = kprof_fail(KPROF_INTERNAL, "cannot receive signals: %m");
    sigprocmask(SIG_SETMASK, &out->previous, NULL);
    return status;
}

void kprof_signals_restore(kprof_signals *signals)
{
    struct signalfd_siginfo info;
    if (signals->fd < 0)
        return;
    while (read(signals->fd, &info, sizeof info) == sizeof info)
        continue;
    close(signals->fd);
    signals->fd = -1;
    sigprocmask(SIG_SETMASK, &signals->previous, NULL);
}

typedef kprof_signal_origin origins[KPROF_BYSTANDER_SIGNALS + 1];

/* The application gets none of kprof's files, so that locks and pipes end with kprof. Async-signal-safe, since kprof
 * may have threads. */
static void keep_only(int channel)
{
    int nothing = open("/dev/null", O_RDWR);
    for (int stream = 0; stream < 3 && nothing >= 0; stream++)
        dup2(nothing, stream);
    dup2(channel, FIRST_FREE - 1);
    if (close_range(FIRST_FREE, ~0U, 0) == 0)
        return;
    for (int file = FIRST_FREE; file < sysconf(_SC_OPEN_MAX); file++)
        close(file);
}

/* The bystander blocks all signals and takes them when it is asked, so that no signal is missed however late it runs.
 * It ends with kprof, also when that is killed: its end of the channel closes then. */
static void stand_by(int channel)
{
    const struct timespec at_once = {0, 0};
    sigset_t all;
    char question;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    keep_only(channel);
    channel = FIRST_FREE - 1;
    while (read(channel, &question, 1) == 1) {
        origins got = {{0, 0, false}};
        siginfo_t info;
        for (int number; (number = sigtimedwait(&all, &info, &at_once)) > 0;)
            if (number <= KPROF_BYSTANDER_SIGNALS)
                got[number] = (kprof_signal_origin){info.si_code, info.si_pid, true};
        if (send(channel, got, sizeof got, MSG_NOSIGNAL) != (ssize_t)sizeof got)
            break;
    }
    _exit(0);
}

void kprof_bystander_fork(kprof_bystander *out)
{
    int ends[2];
    *out = (kprof_bystander){0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        stand_by(ends[1]);
    close(ends[1]);
    if (pid < 0)
        close(ends[0]);
    else
        *out = (kprof_bystander){.pid = pid, .channel = ends[0]};
}

/* Note the signals it got since the last question. Give up a bystander that does not answer: it may be stopped. */
static bool ask(kprof_bystander *bystander)
{
    struct pollfd answer = {.fd = bystander->channel, .events = POLLIN};
    origins got;
    if (send(bystander->channel, "", 1, MSG_NOSIGNAL) != 1)
        return false;
    if (kprof_monotonic_poll(&answer, ANSWER_LIMIT_MS) != 1 ||
        recv(bystander->channel, got, sizeof got, 0) != (ssize_t)sizeof got)
        return false;
    for (int number = 1; number <= KPROF_BYSTANDER_SIGNALS; number++)
        if (got[number].is_set)
            bystander->seen[number] = got[number];
    return true;
}

/* Did it get the same signal? Waits for its answer for a second at most, and for signals that are on their way. */
static bool has_got(kprof_bystander *bystander, const struct signalfd_siginfo *info)
{
    const struct timespec grace = {0, GRACE_NS};
    kprof_signal_origin *seen = &bystander->seen[info->ssi_signo];
    for (int tries = 0; tries < 2 && bystander->pid > 0; tries++) {
        if (!ask(bystander)) {
            kprof_bystander_end(bystander);
            return false;
        }
        bool is_same = seen->is_set && seen->code == info->ssi_code && seen->pid == (int32_t)info->ssi_pid;
        if (is_same) {
            seen->is_set = false;
            return true;
        }
        nanosleep(&grace, NULL);
    }
    return false;
}

void kprof_bystander_end(kprof_bystander *bystander)
{
    if (bystander->pid <= 0)
        return;
    close(bystander->channel);
    kill(bystander->pid, SIGKILL);
    waitpid(bystander->pid, NULL, 0);
    *bystander = (kprof_bystander){0};
}

/* If kprof has no stderr that it can write to, the application's output is lost. */
static void send_stdout_to_stderr(void)
{
    const int flags = fcntl(STDERR_FILENO, F_GETFL);
    const int nothing = flags >= 0 && (flags & O_ACCMODE) == O_RDONLY ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    dup2(nothing >= 0 ? nothing : STDERR_FILENO, STDOUT_FILENO);
}

/* In the child: wait for the gate, then become the application. Only async-signal-safe calls from here on, since the
 * driver or CUPTI may have started threads in kprof. */
static void run_application(const kprof_child_spec *spec, char **environment, int gate, int error)
{
    char byte;
    ssize_t got;
    while ((got = read(gate, &byte, 1)) < 0 && errno == EINTR)
        continue;
    if (got != 1) /* kprof was killed, and nothing has been started */
        _exit(127);
    const int nothing = spec->null_stdin ? open("/dev/null", O_RDONLY) : -1;
    if (nothing > STDIN_FILENO) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    if (spec->stdout_to_stderr)
        send_stdout_to_stderr();
    for (size_t i = 0; i < SETTLED_COUNT; i++)
        sigaction(settled[i].number, &settled[i].previous, NULL);
    sigprocmask(SIG_SETMASK, &spec->signals->previous, NULL);
    umask(started_umask);
    execvpe(spec->argv[0], spec->argv, environment);
    int reason = errno;
    _exit(write(error, &reason, sizeof reason) == sizeof reason ? 127 : 126);
}

/* Programs look for this variable, to leave out under ncu what it does not bear, such as another profiler. */
#define NCU_ENV "NV_COMPUTE_PROFILER_PERFWORKS_DIR"

static bool is_replaced(const kprof_child_spec *spec, const char *variable)
{
    static const char *const names[] = {"CUDA_INJECTION64_PATH=", KPROF_SESSION_ENV "=", KPROF_TREES_ENV "=",
                                        "TEARDOWN_CUPTI=", NULL};
    static const char *const ncu[] = {NCU_ENV "=", NULL};
    static const char *const nvtx[] = {"NVTX_INJECTION64_PATH=", NULL};
    return kprof_begins_with_one(variable, names) || (spec->nvtx && kprof_begins_with_one(variable, nvtx)) ||
           (kprof_is_called_ncu() && kprof_begins_with_one(variable, ncu));
}

/* A variable whose list gets one more entry at its end: what the user has in it stays first. */
static void add_longer(kprof_strlist *out, const char *name, char separator, const char *entry)
{
    const char *value = secure_getenv(name);
    if (value && *value)
        kprof_strlist_take(out, kprof_strprintf("%s=%s%c%s", name, value, separator, entry));
    else
        kprof_strlist_take(out, kprof_strprintf("%s=%s", name, entry));
}

/* The environment with the injection in it. TEARDOWN_CUPTI, which makes PyTorch finalise CUPTI, is left out. */
static void make_environment(const kprof_child_spec *spec, kprof_strlist *out)
{
    static const char *const longer[] = {"LD_PRELOAD=", "ASAN_OPTIONS=", NULL};
    for (char **variable = environ; *variable; variable++)
        if (!is_replaced(spec, *variable) && !(spec->preloaded && kprof_begins_with_one(*variable, longer)))
            kprof_strlist_add(out, *variable);
    kprof_strlist_take(out, kprof_strprintf("CUDA_INJECTION64_PATH=%s", spec->injection_library));
    kprof_strlist_take(out, kprof_strprintf(KPROF_SESSION_ENV "=%s", spec->session_dir));
    if (kprof_is_called_ncu()) {
        const int folder = (int)(strrchr(spec->injection_library, '/') - spec->injection_library);
        kprof_strlist_take(out, kprof_strprintf(NCU_ENV "=%.*s", folder, spec->injection_library));
    }
    if (spec->trees)
        kprof_strlist_take(out, kprof_strprintf(KPROF_TREES_ENV "=%s", spec->trees));
    if (spec->nvtx)
        kprof_strlist_take(out, kprof_strprintf("NVTX_INJECTION64_PATH=%s", spec->injection_library));
    if (!spec->preloaded)
        return;
    add_longer(out, "LD_PRELOAD", ':', spec->preloaded);
    /* AddressSanitizer refuses to start a program with a library before its own, unless this option turns the check
     * off. kprof's library replaces no function of AddressSanitizer. */
    add_longer(out, "ASAN_OPTIONS", ':', "verify_asan_link_order=0");
}

kprof_status kprof_child_fork(const kprof_child_spec *spec, kprof_child *out)
{
    int gate[2], error[2];
    KPROF_AUTO(kprof_strlist) list = KPROF_STRLIST_INIT;
    make_environment(spec, &list);
    KPROF_AUTO_FREE char **environment = kprof_calloc(list.count + 1, sizeof *environment);
    /* execvpe wants a NULL at the end; a strlist has none */
    memcpy(environment, list.items, list.count * sizeof *environment);
    if (pipe2(gate, O_CLOEXEC) != 0)
        return kprof_fail(KPROF_INTERNAL, "cannot make a pipe: %m");
    if (pipe2(error, O_CLOEXEC) != 0) {
        close(gate[0]);
        close(gate[1]);
        return kprof_fail(KPROF_INTERNAL, "cannot make a pipe: %m");
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(gate[1]);
        run_application(spec, environment, gate[0], error[1]);
    }
    close(gate[0]);
    close(error[1]);
    *out = (kprof_child){.pid = pid,
                         .gate = gate[1],
                         .error = error[0],
                         .signals = spec->signals,
                         .bystander = spec->bystander,
                         .session_dir = spec->session_dir,
                         .also = -1};
    if (pid > 0)
        return KPROF_OK;
    out->pid = 0;
    kprof_status status = kprof_fail(KPROF_NO_APPLICATION, "cannot start a process: %m");
    kprof_child_close(out);
    return status;
}

kprof_status kprof_child_start(kprof_child *child, const char *name)
{
    int reason = 0;
    ssize_t size;
    (void)!write(child->gate, "", 1);
    close(child->gate);
    child->gate = -1;
    do {
        size = read(child->error, &reason, sizeof reason);
    } while (size < 0 && errno == EINTR);
    if (size == 0)
        return KPROF_OK;
    waitpid(child->pid, NULL, 0);
    child->pid = 0;
    return kprof_program_fail(name, size == sizeof reason ? reason : EIO);
}

/* Return the signals that have a handler of kprof's in the place of the default action. */
static uint64_t read_defaults(const kprof_child *child)
{
    const char *reason;
    char name[64];
    uint64_t defaults = 0;
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(child->session_dir, &reason);
    snprintf(name, sizeof name, KPROF_DEFAULTS_FILE, (long)child->pid);
    KPROF_AUTO_CLOSE int fd = folder >= 0 ? kprof_folder_open_file(folder, name, O_RDONLY, &reason) : -1;
    return fd >= 0 && read(fd, &defaults, sizeof defaults) == (ssize_t)sizeof defaults ? defaults : 0;
}

/* Does the signal end the process? If /proc does not tell, assume that it does not. */
static bool would_end(const kprof_child *child, int number)
{
    char path[64];
    uint64_t handled = UINT64_MAX, spared = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)child->pid);
    kprof_proc_number(&(kprof_proc_file){"", path}, "SigCgt", 16, &handled);
    kprof_proc_number(&(kprof_proc_file){"", path}, "SigIgn", 16, &spared);
    return !(((handled | spared) & ~read_defaults(child)) >> (number - 1) & 1);
}

void kprof_child_release(kprof_child *child)
{
    if (child->held)
        kill(child->pid, child->held);
    child->held = 0;
}

/* The terminal signals the whole group, and so may any process. A terminal that goes away sends SIGHUP to the leader of
 * the session alone. */
static bool has_reached_application(const kprof_child *child, const struct signalfd_siginfo *info)
{
    const bool hangs_up = info->ssi_signo == SIGHUP && getsid(0) != getpid();
    const bool is_terminals = info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT || hangs_up;
    return getpgid(child->pid) == getpgrp() &&
           ((info->ssi_code > 0 && is_terminals) || has_got(child->bystander, info));
}

/* Other signals reached kprof alone: from a process, a timer, or a limit on processor time. A second signal means
 * that its sender is in a hurry. */
static void forward(kprof_child *child, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;
    if (number == SIGCHLD)
        return;
    bool is_first = child->arrived == 0;
    child->arrived = number;
    if (has_reached_application(child, info))
        return;
    if (is_first && would_end(child, number)) {
        child->held = number;
        return;
    }
    kprof_child_release(child);
    kill(child->pid, number);
}

bool kprof_child_wait(kprof_child *child, int timeout_ms)
{
    struct pollfd poll_for[] = {{.fd = child->signals->fd, .events = POLLIN}, {.fd = child->also, .events = POLLIN}};
    struct signalfd_siginfo info;
    if (child->ended)
        return true;
    poll(poll_for, 2, timeout_ms);
    while (read(child->signals->fd, &info, sizeof info) == sizeof info)
        forward(child, &info);
    child->ended = waitpid(child->pid, &child->wait_status, WNOHANG) == child->pid;
    return child->ended;
}

void kprof_child_close(kprof_child *child)
{
    if (child->gate > 0 && child->pid > 0) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
    }
    if (child->gate > 0)
        close(child->gate);
    if (child->error > 0)
        close(child->error);
    *child = (kprof_child){.gate = -1, .error = -1, .also = -1};
}
