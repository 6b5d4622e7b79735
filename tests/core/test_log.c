/* Messages: one line, one call of the sink, levels respected, errno kept, usable from many threads. */
#include "core/files.h"
#include "core/log.h"
#include "log_capture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif

static bool is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
    return true;
#else
    return false;
#endif
}

TEST(fail_logs_and_returns_its_status)
{
    log_capture log;
    log_capture_start(&log);
    assert_int_equal(kprof_fail(KPROF_USAGE, "--set: %s is not known", "ful"), KPROF_USAGE);
    assert_int_equal(log.count, 1);
    assert_int_equal(log.level, KPROF_LOG_ERROR);
    assert_string_equal(log.last, "--set: ful is not known");
}

static bool is_pending(int number)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number) == 1;
}

/* Writes that fail, in a program with the default actions. Gives its exit status. */
static int fail_to_write(void)
{
    const char *folder = getenv("TMPDIR");
    char path[512], text[8] = "message";
    int ends[2];
    sigset_t pipe_alone;
    const struct rlimit four = {4, 4};
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    snprintf(path, sizeof path, "%s/kprof-test-log-%d", folder ? folder : "/tmp", (int)getpid());
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (pipe(ends) != 0 || file < 0 || unlink(path) != 0 || close(ends[0]) != 0 || setrlimit(RLIMIT_FSIZE, &four) != 0)
        return 2;
    if (kprof_write_all(ends[1], text, sizeof text) != 0 || errno != EPIPE)
        return 3;
    if (kprof_write_all(file, text, sizeof text) != 4 || errno != EFBIG)
        return 4;
    kprof_log_set_sink(NULL, NULL);
    dup2(file, STDERR_FILENO);
    kprof_log(KPROF_LOG_ERROR, "to a file that may not grow");
    dup2(ends[1], STDERR_FILENO);
    kprof_log(KPROF_LOG_ERROR, "to nobody");
    sigemptyset(&pipe_alone);
    sigaddset(&pipe_alone, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_alone, NULL);
    raise(SIGPIPE); /* the program's own, which stays */
    kprof_log(KPROF_LOG_ERROR, "to nobody");
    return is_pending(SIGPIPE) && !is_pending(SIGXFSZ) ? 0 : 5;
}

TEST(no_signal_is_raised)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(fail_to_write());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(levels_above_the_limit_are_dropped)
{
    log_capture log;
    log_capture_start(&log);
    kprof_log(KPROF_LOG_DEBUG, "hidden");
    assert_int_equal(log.count, 0);
    kprof_log_set_level(KPROF_LOG_DEBUG);
    kprof_log(KPROF_LOG_DEBUG, "shown");
    assert_int_equal(log.count, 1);
    kprof_log_set_level(KPROF_LOG_ERROR);
    kprof_log(KPROF_LOG_WARNING, "hidden");
    assert_int_equal(log.count, 1);
    kprof_log_set_level(KPROF_LOG_INFO);
}

TEST(control_characters_do_not_pass)
{
    log_capture log;
    log_capture_start(&log);
    kprof_log(KPROF_LOG_INFO, "kernel %s", "a\nb\x1b[2Jc\x7f");
    assert_string_equal(log.last, "kernel a\\nb\\x1b[2Jc\\x7f");
    kprof_log(KPROF_LOG_INFO, "%s",
              "\xc2\x9b"
              "31m \xe2\x80\xae"
              "evil \xff");
    assert_string_equal(log.last, "\\xc2\\x9b31m \\xe2\\x80\\xae"
                                  "evil \\xff");
}

TEST(long_messages_are_whole)
{
    log_capture log;
    log_capture_start(&log);
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    kprof_log(KPROF_LOG_INFO, "%s!", text);
    assert_int_equal(strlen(log.last), sizeof text);
    assert_int_equal(log.last[sizeof text - 1], '!');
}

/* What is cut off may be the reason, so another one is told. */
TEST(messages_that_do_not_fit_say_why)
{
    enum { MESSAGE_BYTES = 512 << 20, LIMIT_BYTES = 256 << 20 };
    static const char end[] = "out of memory)";
    struct rlimit before, limit = {.rlim_cur = LIMIT_BYTES};
    log_capture log;
    if (is_sanitized()) /* their malloc ends the process */
        skip();
    log_capture_start(&log);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    kprof_log(KPROF_LOG_INFO, "%-*s: the reason", MESSAGE_BYTES, "name");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(log.count, 1);
    assert_memory_equal(log.last, "name ", 5);
    assert_string_equal(log.last + strlen(log.last) - strlen(end), end);
}

TEST(errno_survives)
{
    log_capture log;
    log_capture_start(&log);
    errno = EXDEV;
    kprof_log(KPROF_LOG_INFO, "text");
    assert_int_equal(errno, EXDEV);
}

/* Runs `kprof_log` with descriptor `fd` redirected to a pipe and returns what arrived there. */
static void log_through_default_sink(int fd, char *out, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(fd);
    dup2(ends[1], fd);
    close(ends[1]);
    kprof_log_set_sink(NULL, NULL);
    kprof_log(KPROF_LOG_WARNING, "careful");
    dup2(saved, fd);
    close(saved);
    ssize_t got = read(ends[0], out, size - 1);
    out[got > 0 ? got : 0] = '\0';
    close(ends[0]);
}

TEST(default_sink_is_stderr_and_only_that)
{
    char text[256];
    log_through_default_sink(STDERR_FILENO, text, sizeof text);
    assert_string_equal(text, "kprof: warning: careful\n");
    fflush(stdout);
    log_through_default_sink(STDOUT_FILENO, text, sizeof text);
    assert_string_equal(text, "");
}

TEST(a_sink_is_given_back)
{
    log_capture outer, inner;
    log_capture_start(&outer);
    kprof_log_receiver before = kprof_log_set_sink(log_capture_sink, &inner);
    assert_ptr_equal(before.user, &outer);
    kprof_log_set_sink(before.sink, before.user);
    kprof_log(KPROF_LOG_INFO, "text");
    assert_string_equal(outer.last, "text");
    kprof_log_set_sink(NULL, NULL);
    before = kprof_log_set_sink(NULL, NULL);
    assert_true(before.sink != NULL && before.sink != log_capture_sink);
}

static void count_message(void *user, kprof_log_level level, const char *message)
{
    atomic_fetch_add((atomic_uint *)user, 1);
}

static void *log_a_thousand(void *unused)
{
    for (int i = 0; i < 1000; i++)
        kprof_log(KPROF_LOG_INFO, "message %d", i);
    return unused;
}

TEST(threads_may_log_at_once)
{
    atomic_uint count = 0;
    kprof_log_set_sink(count_message, &count);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_a_thousand, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count, 4000);
}
