/* Other programs are run within limits of time, also those that nobody can end. */
#include "core/child.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)

static const char *run(const char *script, int64_t limit_ns, kprof_child *result)
{
    char sh[] = "/bin/sh", c[] = "-c";
    char *const arguments[] = {sh, c, (char *)script, NULL};
    const kprof_child_limits limits = {.most_bytes = 4096, .limit_ns = limit_ns};
    return kprof_child_run(arguments, &limits, result);
}

TEST(test_ends_by_itself)
{
    kprof_child child = {0};
    assert_null(run("echo out; echo err >&2; exit 3", 600 * SECOND_NS, &child));
    assert_string_equal(child.out.data, "out\n");
    assert_string_equal(child.errors.data, "err\n");
    assert_true(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 3);
    kprof_child_free(&child);
}

TEST(test_takes_too_long)
{
    kprof_child child = {0};
    assert_string_equal(run("trap '' TERM; sleep 600", SECOND_NS / 10, &child), "it runs for too long");
    assert_true(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left of it */
    kprof_child_free(&child);
}

/* What is traced is gone for its parent when the tracer has taken note: until then it is as one that a driver keeps. */
static void be_traced(void)
{
    int ready[2];
    char byte = 0;
    const pid_t traced = getpid();
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (pipe(ready) != 0)
        _exit(1);
    const pid_t tracer = fork();
    if (tracer == 0) {
        const bool is_traced = setsid() > 0 && ptrace(PTRACE_SEIZE, traced, NULL, NULL) == 0;
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        byte = is_traced;
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        sleep(600);
        _exit(0);
    }
    if (tracer > 0 && read(ready[0], &byte, 1) == 1 && byte)
        printf("%d", (int)tracer);
    fflush(stdout);
    sleep(600);
}

TEST(test_does_not_end_at_all)
{
    char self[] = "/proc/self/exe", word[] = "traced";
    char *const arguments[] = {self, word, NULL};
    const kprof_child_limits limits = {.most_bytes = 4096, .limit_ns = 3 * SECOND_NS};
    kprof_child child = {0};
    const char *ended = kprof_child_run(arguments, &limits, &child);
    const pid_t tracer = child.out.data ? atoi(child.out.data) : 0;
    if (tracer <= 0) {
        kprof_child_free(&child);
        skip(); /* nobody may trace here */
    }
    assert_string_equal(ended, "it runs for too long");
    assert_true(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* it is still there */
    assert_int_equal(kill(tracer, SIGKILL), 0);
    assert_true(waitpid(-1, NULL, 0) > 0);
    kprof_child_free(&child);
}

TEST(test_is_not_there)
{
    char name[] = "/nonexistent/program";
    char *const arguments[] = {name, NULL};
    kprof_child child = {0};
    const kprof_child_limits limits = {.limit_ns = SECOND_NS};
    assert_string_equal(kprof_child_run(arguments, &limits, &child), strerror(ENOENT));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        be_traced();
        return 0;
    }
    return run_all_tests();
}
