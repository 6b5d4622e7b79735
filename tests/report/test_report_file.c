/* Puts a report in its place while another run does so, too: between the look at the name and the rename. */
#include "report/store/report_file.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define OWN "own"

static char folder[] = "/tmp/kprof-report-file-XXXXXX";
static char path[64], draft[64];

static const char *others; /* what another run puts there before the next rename; NULL: nothing */
static int others_lock;    /* its lock, as it goes on writing; -1: none */
static bool others_leave;  /* it removes that behind the rename */

static void put(const char *file, const char *content)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
    close(fd);
}

static void assert_content(const char *file, const char *content)
{
    char text[16] = "";
    int fd = open(file, O_RDONLY);
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    assert_string_equal(text, content);
}

int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);

/* NOLINTNEXTLINE(readability-function-size): the C library's parameters */
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (others) {
        put(path, others);
        if (others_lock == 0)
            others_lock = open(path, O_RDONLY);
        assert_true(others_lock < 0 || flock(others_lock, LOCK_EX | LOCK_NB) == 0);
    }
    others = NULL;
    int result = __real_renameat2(from_folder, from, to_folder, to, flags);
    int reason = errno;
    if (others_leave)
        unlink(path);
    others_leave = false;
    errno = reason;
    return result;
}

static kprof_status replace_beside(const char *content, bool is_written)
{
    unlink(path);
    put(draft, OWN);
    others = content;
    others_lock = is_written ? 0 : -1;
    kprof_status status = kprof_report_file_replace(draft, path, -1);
    if (others_lock >= 0)
        close(others_lock);
    return status;
}

TEST(test_nothing_there)
{
    assert_int_equal(replace_beside(NULL, false), KPROF_OK);
    assert_content(path, OWN);
}

/* Each run may replace the report of one that has ended, whoever was first. */
TEST(test_report_that_came_meanwhile)
{
    assert_int_equal(replace_beside("other", false), KPROF_OK);
    assert_content(path, OWN);
    assert_int_equal(access(draft, F_OK), -1);
}

TEST(test_run_that_began_and_gave_up)
{
    others_leave = true;
    assert_int_equal(replace_beside("", false), KPROF_OK);
    assert_content(path, OWN);
}

TEST(test_run_that_began_meanwhile)
{
    assert_int_equal(replace_beside("", false), KPROF_OUTPUT);
    assert_content(path, "");
    assert_content(draft, OWN);
    assert_int_equal(replace_beside("other", true), KPROF_OUTPUT);
    assert_content(path, "other");
    assert_content(draft, OWN);
}

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/run.kprof", folder);
    snprintf(draft, sizeof draft, "%s/run.kprof.new-1", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    unlink(draft);
    return rmdir(folder);
}

AROUND_ALL(make_folder, remove_folder)
