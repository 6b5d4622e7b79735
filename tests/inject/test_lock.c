/* The lock between processes: one at a time, given back by those who die, kept by those whose children end or whose
 * descriptors are closed by the application. */
#include "inject/engine.h"
#include "inject/lock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS   60000
#define GPU       "00112233445566778899aabbccddeeff"
#define OTHER_GPU "ffeeddccbbaa99887766554433221100"

static char folder[] = "/tmp/kprof-test-lock-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    kprof_lock_set_folder(folder);
    kprof_lock_choose(GPU);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* Can another process take the lock now? It is given back. */
static bool is_free(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        kprof_lock_give();
        _exit(kprof_lock_take(0, NULL) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

/* Does another process find the counters wanted? */
static bool seems_wanted(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(kprof_lock_is_wanted() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

static void test_wanting_is_seen_by_others(void **state)
{
    (void)state;
    assert_false(seems_wanted());
    kprof_lock_want();
    kprof_lock_want(); /* once more is harmless */
    assert_true(seems_wanted());
    assert_true(is_free()); /* wanting takes nothing */
    kprof_lock_have();
    assert_false(seems_wanted());
    assert_false(kprof_lock_is_wanted());
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    assert_true(is_free());
    assert_true(kprof_lock_take(0, NULL));
    assert_false(is_free());
    assert_false(is_free()); /* the child that asked has not given it away */
    kprof_lock_give();
    assert_true(is_free());
    kprof_lock_give(); /* once more is harmless */
    assert_true(is_free());
}

/* Two GPUs count at the same time: their locks are two. */
static void test_another_gpu(void **state)
{
    (void)state;
    assert_true(kprof_lock_take(0, NULL));
    pid_t pid = fork();
    if (pid == 0) {
        kprof_lock_choose(OTHER_GPU);
        _exit(kprof_lock_take(LONG_MS, NULL) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    kprof_lock_choose(OTHER_GPU); /* gives the other one back */
    assert_true(kprof_lock_take(0, NULL));
    kprof_lock_want();
    kprof_lock_choose(GPU);
    assert_true(is_free());
    assert_false(seems_wanted());
}

/* A process that has had the counters of two GPUs sees that either is wanted. */
static void test_wanting_another_gpu(void **state)
{
    (void)state;
    kprof_lock_choose(OTHER_GPU);
    kprof_lock_want();
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        kprof_lock_give();
        kprof_engine.lock.wanted.fd = -1; /* the parent's */
        kprof_lock_choose(GPU);
        _exit(kprof_lock_is_wanted() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    kprof_lock_have();
    kprof_lock_choose(GPU);
}

static void test_take_again(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(kprof_lock_take(0, NULL));
        kprof_lock_give();
    }
    assert_true(is_free());
}

/* A process that takes the lock, says so, and keeps it until it is killed. */
static pid_t start_holder(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (kprof_lock_take(LONG_MS, NULL) && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static pid_t holder;
static int asked;

static void kill_holder(void)
{
    asked++;
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}

static void count_asked(void)
{
    asked++;
}

static void test_wait_for_the_other(void **state)
{
    (void)state;
    holder = start_holder();
    asked = 0;
    assert_false(kprof_lock_take(20, count_asked));
    assert_int_equal(asked, 1);
    assert_true(kprof_lock_take(LONG_MS, kill_holder)); /* who dies gives it back */
    assert_int_equal(asked, 2);
    kprof_lock_give();
    assert_true(is_free());
}

static void test_not_asked_when_free(void **state)
{
    (void)state;
    asked = 0;
    assert_true(kprof_lock_take(LONG_MS, count_asked));
    assert_int_equal(asked, 0);
    kprof_lock_give();
}

/* The descriptor of the lock; -1 when there is none. */
static int find_descriptor(void)
{
    char path[64], target[256];
    for (int fd = 3; fd < 65536; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, "gpu." GPU ".lock"))
            return fd;
    }
    return -1;
}

/* The application closes the lock's descriptor, and gets the number for a file of its own. */
static void test_application_closes_files(void **state)
{
    (void)state;
    assert_true(kprof_lock_take(0, NULL));
    int number = find_descriptor();
    assert_true(number >= 3);
    int own = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(dup2(own, number), number);
    kprof_lock_give();
    assert_true(fcntl(number, F_GETFD) >= 0);
    close(number);
    close(own);
    assert_true(is_free());
}

static void test_no_folder(void **state)
{
    (void)state;
    kprof_lock_set_folder("/nonexistent");
    assert_true(kprof_lock_take(0, NULL)); /* nobody to take turns with */
    kprof_lock_give();
    kprof_lock_set_folder(folder);
    kprof_lock_choose(GPU);
}

/* Processes that count in a file, which goes wrong when two are in at once. */
static void count_in_file(const char *path)
{
    for (int i = 0; i < 50; i++) {
        int value = 0;
        if (!kprof_lock_take(LONG_MS, NULL))
            _exit(1);
        FILE *file = fopen(path, "r+");
        if (!file || fscanf(file, "%d", &value) != 1)
            _exit(1);
        rewind(file);
        fprintf(file, "%d\n", value + 1);
        fclose(file);
        kprof_lock_give();
    }
    _exit(0);
}

static void test_processes_take_turns(void **state)
{
    (void)state;
    char path[128];
    int value = 0, status;
    snprintf(path, sizeof path, "%s/count", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("0\n", file);
    fclose(file);
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        if (pid == 0)
            count_in_file(path);
        assert_true(pid > 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &value), 1);
    fclose(file);
    assert_int_equal(value, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time),       cmocka_unit_test(test_wanting_is_seen_by_others),
        cmocka_unit_test(test_another_gpu),         cmocka_unit_test(test_wanting_is_seen_by_others),
        cmocka_unit_test(test_wanting_another_gpu), cmocka_unit_test(test_wanting_is_seen_by_others),
        cmocka_unit_test(test_take_again),          cmocka_unit_test(test_wait_for_the_other),
        cmocka_unit_test(test_not_asked_when_free), cmocka_unit_test(test_application_closes_files),
        cmocka_unit_test(test_no_folder),           cmocka_unit_test(test_processes_take_turns),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
