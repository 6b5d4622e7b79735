/* A process apart, since kprof may be killed: it alone speaks to NVML, so what it has locked it knows. Only kprof holds
 * the other end of the socket between them, thus its end is kprof's end, by whatever cause. */
#include "cli/clock_guard.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* One whole message; false when the other process has ended. */
static bool receive(int channel, void *message, size_t size)
{
    ssize_t received;
    do {
        received = recv(channel, message, size, 0);
    } while (received < 0 && errno == EINTR);
    return received == (ssize_t)size;
}

static bool tell(int channel, const void *message, size_t size)
{
    ssize_t sent;
    do {
        sent = send(channel, message, size, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

/* Out of reach of the terminal, and of signals that are meant for kprof. Of its streams only stderr is kept, so that
 * nobody who reads kprof's stdout waits for the guard. */
static void detach(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &ignore, NULL);
    setsid();
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return;
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
}

static void guard(int channel)
{
    kprof_clock_request request;
    kprof_clocks *clocks = NULL;
    detach();
    if (receive(channel, &request, sizeof request)) {
        kprof_status status = kprof_clocks_lock(&request, &clocks);
        (void)tell(channel, &status, sizeof status);
        (void)receive(channel, &request, sizeof request); /* nothing comes: it returns at the end */
        status = kprof_clocks_unlock(clocks);
        (void)tell(channel, &status, sizeof status);
    }
    _exit(0);
}

kprof_status kprof_clock_guard_fork(kprof_clock_guard *out)
{
    int ends[2];
    *out = (kprof_clock_guard){0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return kprof_fail(KPROF_INTERNAL, "--clock-control: cannot make a socket: %m");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        guard(ends[1]);
    }
    close(ends[1]);
    if (pid > 0) {
        out->pid = pid;
        out->channel = ends[0];
        return KPROF_OK;
    }
    close(ends[0]);
    return kprof_fail(KPROF_INTERNAL, "--clock-control: cannot start a process: %m");
}

kprof_status kprof_clock_guard_lock(kprof_clock_guard *guard, const kprof_clock_request *request)
{
    kprof_status status;
    if (!tell(guard->channel, request, sizeof *request))
        return kprof_fail(
            KPROF_INTERNAL,
            "--clock-control: the process that locks the clocks has ended: was it killed? Run kprof again");
    guard->locked = *request;
    if (!receive(guard->channel, &status, sizeof status))
        return kprof_fail(
            KPROF_INTERNAL,
            "--clock-control: the process that locks the clocks has ended: was it killed? Run kprof again");
    if (status != KPROF_OK)
        guard->locked.device_count = 0;
    return status;
}

kprof_status kprof_clock_guard_release(kprof_clock_guard *guard)
{
    kprof_status status = KPROF_OK;
    if (guard->pid == 0)
        return KPROF_OK;
    shutdown(guard->channel, SHUT_WR);
    const bool is_answered = receive(guard->channel, &status, sizeof status);
    for (size_t i = 0; i < guard->locked.device_count && !is_answered; i++)
        status = kprof_fail(KPROF_INTERNAL,
                            "GPU %s: its clock may stay locked, since the process that unlocks it was killed; "
                            "to unlock it: " KPROF_CLOCKS_UNLOCK_COMMAND,
                            guard->locked.devices[i], guard->locked.devices[i]);
    close(guard->channel);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *guard = (kprof_clock_guard){0};
    return status;
}
