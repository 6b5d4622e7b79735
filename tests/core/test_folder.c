/* The session directory: whose it must be, and how others tell whether its owner lives. */
#include "core/folder.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[32];
static int folder;

static int set_up(void **state)
{
    const char *reason;
    strcpy(dir, "/tmp/kprof-test-XXXXXX");
    folder = mkdtemp(dir) ? kprof_folder_open(dir, &reason) : -1;
    return folder >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    unlinkat(folder, KPROF_OWNER_FILE, 0);
    close(folder);
    return rmdir(dir);
}

/* A process that owns the folder until it is killed. */
static pid_t start_owner(void)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *reason;
        if (kprof_folder_own(folder, &reason) >= 0 && write(ready[1], "o", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

TEST(an_owner_is_gone_when_it_is_killed)
{
    assert_int_equal(kprof_folder_owner(folder), KPROF_OWNER_UNKNOWN);
    pid_t pid = start_owner();
    assert_int_equal(kprof_folder_owner(folder), KPROF_OWNER_LIVES);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(kprof_folder_owner(folder), KPROF_OWNER_GONE);
    assert_int_equal(kprof_folder_owner(folder), KPROF_OWNER_GONE); /* looking takes nothing */
}

TEST(a_child_of_the_owner_does_not_own)
{
    const char *reason;
    int lock = kprof_folder_own(folder, &reason);
    assert_true(lock >= 0);
    assert_true(fcntl(lock, F_GETFD) & FD_CLOEXEC); /* so that what it starts holds nothing */
    assert_int_equal(kprof_folder_owner(folder), KPROF_OWNER_LIVES);
    close(lock);
    assert_int_equal(kprof_folder_owner(folder), KPROF_OWNER_GONE);
}

/* One that removes its lock before it gives it up has ended, and was not cut short. */
TEST(an_owner_that_ends_is_not_gone)
{
    const char *reason;
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < 5000; i++) {
            int lock = kprof_folder_own(folder, &reason);
            unlinkat(folder, KPROF_OWNER_FILE, 0);
            close(lock);
        }
        _exit(0);
    }
    unsigned gone = 0;
    while (waitpid(pid, NULL, WNOHANG) == 0)
        gone += kprof_folder_owner(folder) == KPROF_OWNER_GONE;
    assert_int_equal(gone, 0);
}

/* Files that others have put there say nothing. */
TEST(links_tell_nothing)
{
    assert_int_equal(symlinkat("/dev/null", folder, KPROF_OWNER_FILE), 0);
    assert_int_equal(kprof_folder_owner(folder), KPROF_OWNER_UNKNOWN);
}

AROUND_EACH(set_up, tear_down)
