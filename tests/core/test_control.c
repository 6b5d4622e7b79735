/* The switch of a process: what one side writes the other one reads, and what somebody else has written counts for
 * nothing. */
#include "core/control.h"
#include "core/folder.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PID 4711L

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
    unlinkat(folder, "gpu.4711.control", 0);
    close(folder);
    return rmdir(dir);
}

TEST(a_wish_and_its_answer)
{
    kprof_control control;
    const kprof_control_wish wish = {3, 1, 2};
    assert_false(kprof_control_read(folder, PID, &control));
    assert_false(kprof_control_wish_for(folder, PID, &wish));
    assert_null(kprof_control_make(folder, PID));
    assert_true(kprof_control_read(folder, PID, &control));
    assert_int_equal(control.wish.turn + control.wish.armed + control.answered + control.state, 0);
    assert_true(kprof_control_wish_for(folder, PID, &wish));
    assert_true(kprof_control_read(folder, PID, &control));
    assert_memory_equal(&control.wish, &wish, sizeof wish);
    assert_int_equal(control.answered, 0);
    assert_true(kprof_control_answer(folder, PID, 3, KPROF_CONTROL_ARMED));
    assert_true(kprof_control_read(folder, PID, &control));
    assert_memory_equal(&control.wish, &wish, sizeof wish);
    assert_int_equal(control.answered, 3);
    assert_int_equal(control.state, KPROF_CONTROL_ARMED);
    assert_null(kprof_control_make(folder, PID)); /* by the next program of the process */
    assert_true(kprof_control_read(folder, PID, &control));
    assert_memory_equal(&control.wish, &wish, sizeof wish);
}

static void *await(void *mapping)
{
    kprof_control control;
    bool is_there = true;
    do
        is_there = kprof_control_await(mapping, 0) && kprof_control_read(folder, PID, &control);
    while (is_there && control.wish.turn == 0);
    return is_there ? mapping : NULL;
}

TEST(a_wish_wakes_who_waits)
{
    pthread_t thread;
    void *result = NULL;
    assert_null(kprof_control_map(folder, PID));
    assert_null(kprof_control_make(folder, PID));
    void *mapping = kprof_control_map(folder, PID);
    assert_non_null(mapping);
    assert_int_equal(pthread_create(&thread, NULL, await, mapping), 0);
    assert_true(kprof_control_wish_for(folder, PID, &(kprof_control_wish){1, 1, 0}));
    pthread_join(thread, &result);
    assert_ptr_equal(result, mapping);
    assert_true(kprof_control_await(mapping, 0)); /* at once */
}

/* Nothing that is touched goes away with a file that somebody cuts: this process would end by SIGBUS. */
TEST(a_file_that_is_cut)
{
    kprof_control control;
    assert_null(kprof_control_make(folder, PID));
    void *mapping = kprof_control_map(folder, PID);
    const int fd = openat(folder, "gpu.4711.control", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_false(kprof_control_await(mapping, 0));
    assert_false(kprof_control_read(folder, PID, &control));
    close(fd);
}

TEST(what_kprof_never_writes)
{
    const kprof_control wrong[] = {
        {.wish.armed = 2},
        {.wish.plan = KPROF_CONTROL_PLANS},
        {.state = KPROF_CONTROL_STATES},
    };
    kprof_control control;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(kprof_control_make(folder, PID));
        const int fd = openat(folder, "gpu.4711.control", O_RDWR | O_CLOEXEC);
        assert_int_equal(pwrite(fd, &wrong[i], sizeof wrong[i], 0), sizeof wrong[i]);
        close(fd);
        assert_false(kprof_control_read(folder, PID, &control));
        assert_null(kprof_control_make(folder, PID));
        assert_true(kprof_control_read(folder, PID, &control));
        unlinkat(folder, "gpu.4711.control", 0);
    }
}

TEST(a_link_is_no_switch)
{
    kprof_control control;
    assert_int_equal(symlinkat("/dev/zero", folder, "gpu.4711.control"), 0);
    assert_false(kprof_control_read(folder, PID, &control));
    assert_null(kprof_control_map(folder, PID));
    assert_null(kprof_control_make(folder, PID)); /* it takes the link's place */
    assert_true(kprof_control_read(folder, PID, &control));
}

AROUND_EACH(set_up, tear_down)
