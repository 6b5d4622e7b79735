/* The bystander blocks all signals and takes them when it is asked, so that no signal is missed however late it runs.
 * It ends with kprof, also when that is killed: its end of the channel closes then. */
#include "cli/bystander.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_LIMIT_MS 1000
/* A sender that signals one process of a job after the other may reach kprof first. */
#define GRACE_NS   20000000
#define FIRST_FREE 4

typedef kprof_signal_origin origins[KPROF_BYSTANDER_SIGNALS + 1];

/* kprof's files stay kprof's: locks and pipes end with it. Async-signal-safe, since kprof may have threads. */
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
    int ready;
    if (send(bystander->channel, "", 1, MSG_NOSIGNAL) != 1)
        return false;
    while ((ready = poll(&answer, 1, ANSWER_LIMIT_MS)) < 0 && errno == EINTR)
        continue;
    if (ready != 1 || recv(bystander->channel, got, sizeof got, 0) != (ssize_t)sizeof got)
        return false;
    for (int number = 1; number <= KPROF_BYSTANDER_SIGNALS; number++)
        if (got[number].is_set)
            bystander->seen[number] = got[number];
    return true;
}

bool kprof_bystander_got(kprof_bystander *bystander, const struct signalfd_siginfo *info)
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
