/* Measures a part of a program from inside: what kprof ctl does from outside. It is a header alone; nothing is linked.
 * The program has to run under kprof --armed no; each function returns 0, or an exit code of kprof's
 * (kprof/exit_codes.h) with a text that says what went wrong and what to do.
 *
 *     char answer[KPROF_CTL_ANSWER];
 *     if (kprof_ctl_start("default", "step.kprof", answer) != 0)
 *         fprintf(stderr, "%s", answer);
 *     step();
 *     kprof_ctl_stop(answer);  // step.kprof is there now: kprof report step.kprof
 */
#ifndef KPROF_CTL_H
#define KPROF_CTL_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the buffer that takes an answer, which may be NULL. */
#define KPROF_CTL_ANSWER 4096

#ifdef O_CLOEXEC
#define KPROF_CTL_FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#else /* a compiler that was asked for standard C alone */
#define KPROF_CTL_FOLDER O_RDONLY
#endif

/* Wait for no answer for longer than this: a command may have launches measured first. */
#ifndef KPROF_CTL_LIMIT_S
#define KPROF_CTL_LIMIT_S 150
#endif

static inline int kprof_ctl_fail(char *answer, const char *what, const char *why)
{
    if (answer)
        snprintf(answer, KPROF_CTL_ANSWER, "kprof: %s%s%s\n", what, *why ? ": " : "", why);
    return 109;
}

/* Has a signal of the program interrupted a call that may still be repeated? Each try has its own limit, so a timer
 * of the program would prolong the wait for ever without a deadline, which is in ticks of times(): standard C alone
 * declares no other clock that nobody can set. */
static inline int kprof_ctl_again(ssize_t result, clock_t deadline)
{
    const int error = errno, is_interrupted = result < 0 && error == EINTR;
    const int is_late = result < 0 && (error == EAGAIN || (is_interrupted && times(NULL) >= deadline));
    errno = is_late ? ETIMEDOUT : error;
    return is_interrupted && !is_late;
}

/* A socket to the kprof that this program runs under; -1, with an answer. */
static inline int kprof_ctl_connect(clock_t deadline, char *answer)
{
    static const char relaunch[] = "this process does not run under kprof; start it as kprof --armed no ./app";
    struct sockaddr_un address;
    struct timeval limit = {KPROF_CTL_LIMIT_S, 0};
    const char *dir = getenv("KPROF_SESSION_DIR");
    if (!dir || !*dir) {
        kprof_ctl_fail(answer, relaunch, "");
        return -1;
    }
    int folder = open(dir, KPROF_CTL_FOLDER), result = -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/gpu.socket", folder);
    if (folder >= 0 && fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0)
        do /* this waits while the kprof has no room for further clients */
            result = connect(fd, (struct sockaddr *)&address, sizeof address);
        while (kprof_ctl_again(result, deadline));
    if (result == 0) {
        close(folder);
        return fd;
    }
    kprof_ctl_fail(answer,
                   errno == ETIMEDOUT
                       ? "its kprof gives no answer"
                       : "its kprof cannot be told, which measures from the start (without --armed no) or is gone",
                   strerror(errno));
    if (folder >= 0)
        close(folder);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Send a word with its end; a signal may interrupt that. -1, with errno, where that fails. */
static inline ssize_t kprof_ctl_send(int fd, const char *word, clock_t deadline)
{
    size_t left = strlen(word) + 1;
    ssize_t sent = 0;
    while (left > 0 && (sent >= 0 || kprof_ctl_again(sent, deadline))) {
        sent = send(fd, word, left, MSG_NOSIGNAL);
        word += sent > 0 ? sent : 0;
        left -= sent > 0 ? (size_t)sent : 0;
    }
    return sent;
}

/* The words of a line of kprof ctl, such as {"start", "--set", "full", "-o", "/tmp/x", NULL}; a path has to be
 * absolute. The answer is lines of text: "message LEVEL TEXT", "process PID STATE LAUNCHES" and "report PATH". */
static inline int kprof_ctl(const char *const *words, char *answer)
{
    char text[KPROF_CTL_ANSWER];
    size_t size = 0;
    ssize_t got = 0;
    const clock_t deadline = times(NULL) + KPROF_CTL_LIMIT_S * sysconf(_SC_CLK_TCK);
    int code = 109, used = 0, fd = kprof_ctl_connect(deadline, answer);
    if (fd < 0)
        return 109;
    for (; *words && got >= 0; words++)
        got = kprof_ctl_send(fd, *words, deadline);
    if (got >= 0 && shutdown(fd, SHUT_WR) == 0)
        do {
            got = recv(fd, text + size, sizeof text - 1 - size, 0);
            size += got > 0 ? (size_t)got : 0;
        } while (size + 1 < sizeof text && (got > 0 || kprof_ctl_again(got, deadline)));
    close(fd);
    text[size] = '\0';
    if (sscanf(text, "exit %d\n%n", &code, &used) != 1)
        return kprof_ctl_fail(answer, "its kprof gives no answer", got < 0 ? strerror(errno) : "");
    if (answer)
        memcpy(answer, text + used, size - (size_t)used + 1);
    return code;
}

static inline int kprof_ctl_of_this(const char *command, const char *set, const char *report, char *answer)
{
    char pid[24], folder[2048], path[4096] = "";
    size_t at = 0;
    const char *words[8];
    size_t count = 0;
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    words[count++] = command;
    words[count++] = pid;
    if (set) {
        words[count++] = "--set";
        words[count++] = set;
    }
    if (report && *report != '/') {
        if (!getcwd(folder, sizeof folder - 1))
            return kprof_ctl_fail(answer, "there is no current folder", strerror(errno));
        strcat(folder, "/");
        for (const char *c = folder; *c; c++) { /* kprof expands placeholders, and this has none */
            path[at++] = *c;
            if (*c == '%')
                path[at++] = '%';
        }
    }
    if (report) {
        if (snprintf(path + at, sizeof path - at, "%s", report) >= (int)(sizeof path - at))
            return kprof_ctl_fail(answer, "the path of the report is too long", "");
        words[count++] = "--export";
        words[count++] = path;
    }
    words[count] = NULL;
    return kprof_ctl(words, answer);
}

/* Measure this process' launches from now on. `set` NULL: what the run measures; else `report` has to be given.
 * `report`: the file that kprof_ctl_stop makes of them, or NULL. */
static inline int kprof_ctl_start(const char *set, const char *report, char *answer)
{
    return kprof_ctl_of_this("start", set, report, answer);
}

/* Measure no more. The GPU's work should have ended, as after cudaDeviceSynchronize. */
static inline int kprof_ctl_stop(char *answer)
{
    return kprof_ctl_of_this("stop", NULL, NULL, answer);
}

#ifdef __cplusplus
}
#endif

#endif
