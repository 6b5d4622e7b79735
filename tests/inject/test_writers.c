/* Who counts as writing memory at any time, besides threads (test_threads.c). */
#include "inject/writers.h"

#include "cupti/target.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

unsigned kprof_target_sharing(void)
{
    return 0;
}

static void test_alone(void **state)
{
    (void)state;
    const char *why = kprof_writers_others();
    if (why)
        assert_non_null(strstr(why, "threads")); /* a sanitizer's own */
}

static void *run(void *user)
{
    *(const char **)user = kprof_writers_others();
    return NULL;
}

static void test_thread(void **state)
{
    (void)state;
    pthread_t thread;
    const char *why = NULL;
    assert_int_equal(pthread_create(&thread, NULL, run, &why), 0);
    pthread_join(thread, NULL);
    assert_non_null(why);
    assert_non_null(strstr(why, "other threads of the application"));
}

static void test_asynchronous_input(void **state)
{
    (void)state;
    if (kprof_writers_others())
        skip(); /* a sanitizer's own thread */
    aio_context_t context = 0;
    bool has_aio = syscall(SYS_io_setup, 4, &context) == 0;
    if (has_aio) {
        assert_non_null(strstr(kprof_writers_others(), "asynchronous input"));
        syscall(SYS_io_destroy, context);
        assert_null(kprof_writers_others());
    }
    struct io_uring_params parameters = {0};
    long ring = syscall(SYS_io_uring_setup, 4, &parameters); /* may be forbidden */
    if (ring >= 0) {
        assert_non_null(strstr(kprof_writers_others(), "asynchronous input"));
        close((int)ring);
        assert_null(kprof_writers_others());
    }
    if (!has_aio && ring < 0)
        skip(); /* both are forbidden here */
}

static void test_device_files(void **state)
{
    (void)state;
    assert_true(kprof_writers_is_device_file("/dev/infiniband/uverbs0"));
    assert_true(kprof_writers_is_device_file("/dev/gdrdrv"));
    assert_false(kprof_writers_is_device_file("/dev/nvidia0"));
    assert_false(kprof_writers_is_device_file("/home/me/dev/vfio/1"));
    assert_false(kprof_writers_is_device_file(""));
    assert_null(kprof_writers_devices());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_asynchronous_input),
        cmocka_unit_test(test_device_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
