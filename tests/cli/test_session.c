/* Two that recover a session at once: one of them has it, whenever the other looks. */
#include "cli/session.h"
#include "core/folder.h"
#include "descriptor_limit.h"
#include "log_capture.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

static char dir[32], seed[64], precious[64];
static int awaited; /* the kind of lock behind whose taking another kprof recovers the session; 0: none does */
static log_capture captured;

static void recover_meanwhile(void)
{
    kprof_session other;
    awaited = 0;
    assert_int_equal(kprof_session_reopen(dir, &other), KPROF_OK);
    kprof_session_close(&other, false);
    assert_int_not_equal(access(seed, F_OK), 0);
}

/* The C library's, but another kprof comes first to the lock of recoveries, or right behind a look at the owner. */
int flock(int fd, int operation)
{
    int kind = operation & (LOCK_SH | LOCK_EX);
    bool is_time = kind == awaited;
    if (is_time && kind == LOCK_EX)
        recover_meanwhile();
    int result = (int)syscall(SYS_flock, fd, operation);
    if (is_time && kind == LOCK_SH)
        recover_meanwhile();
    return result;
}

static void make(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
}

static int make_session(void **state)
{
    char owner[64];
    strcpy(dir, "/tmp/kprof-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(seed, sizeof seed, "%s/" KPROF_SESSION_SEED, dir);
    snprintf(owner, sizeof owner, "%s/" KPROF_OWNER_FILE, dir);
    snprintf(precious, sizeof precious, "%s/precious", dir);
    make(seed);
    make(owner);
    log_capture_start(&captured);
    return 0;
}

static void refuse(const char *reason)
{
    kprof_session session;
    assert_int_equal(kprof_session_reopen(dir, &session), KPROF_USAGE);
    assert_non_null(strstr(captured.last, reason));
}

TEST_WITH(while_the_other_recovers, make_session, NULL)
{
    kprof_session other;
    assert_int_equal(kprof_session_reopen(dir, &other), KPROF_OK);
    refuse("another kprof is recovering it");
    kprof_session_close(&other, false);
    assert_int_not_equal(access(dir, F_OK), 0);
}

TEST_WITH(when_the_other_has_removed_the_lock, make_session, NULL)
{
    awaited = LOCK_EX;
    refuse("another kprof has recovered it");
    assert_int_not_equal(access(dir, F_OK), 0);
}

/* The folder stays, since a file of somebody else is in it: the lock can be made again. */
TEST_WITH(when_the_other_has_left_a_folder_without_a_session, make_session, NULL)
{
    char lock[64];
    make(precious);
    awaited = LOCK_EX;
    refuse("another kprof has recovered it");
    snprintf(lock, sizeof lock, "%s/recover.lock", dir);
    assert_int_not_equal(access(lock, F_OK), 0);
    refuse("it is no directory of a run");
    assert_int_equal(unlink(precious) | rmdir(dir), 0);
}

/* The other one removes it while this one asks for its owner. */
TEST_WITH(when_the_other_has_just_recovered_it, make_session, NULL)
{
    awaited = LOCK_SH;
    refuse("it is no directory of a run");
    assert_int_not_equal(access(dir, F_OK), 0);
}

/* A run that has found no descriptor for its report closes its session likewise. */
TEST(where_no_descriptor_is_left)
{
    kprof_session session;
    char parent[] = "/tmp/kprof-parent-XXXXXX";
    assert_non_null(mkdtemp(parent));
    assert_int_equal(kprof_session_open(parent, &session), KPROF_OK);
    const rlim_t before = limit_descriptors(0);
    kprof_session_close(&session, false);
    (void)limit_descriptors(before);
    assert_int_equal(rmdir(parent), 0);
}
