/* Who counts as writing memory at any time, besides threads (test_threads.c). */
#include "inject/writers.h"

#include "cupti/target.h"
#include "descriptor_limit.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned sharing;
static const char *opened; /* NULL, or what all descriptors seem to be of */

/* In place of CUPTI's and of the system's. */
unsigned kprof_target_sharing(void)
{
    return sharing;
}

ssize_t __real_readlink(const char *path, char *target, size_t size);
ssize_t __wrap_readlink(const char *path, char *target, size_t size);

ssize_t __wrap_readlink(const char *path, char *target, size_t size)
{
    size_t length = opened ? strlen(opened) : 0;
    if (!opened)
        return __real_readlink(path, target, size);
    memcpy(target, opened, length < size ? length : size);
    return (ssize_t)(length < size ? length : size);
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

/* What is open counts, whoever else there is. */
static void test_open_devices(void **state)
{
    (void)state;
    static const char *const devices[] = {"/dev/infiniband/uverbs0", "/dev/nvidia-fs3", "/dev/vfio/12"};
    bool alone = kprof_writers_others() == NULL; /* else there is a sanitizer's own thread */
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        opened = devices[i];
        const char *why = kprof_writers_devices(), *others = kprof_writers_others();
        opened = NULL;
        assert_non_null(why);
        assert_non_null(strstr(why, "a network card or another device"));
        assert_true(!alone || (others && strcmp(others, why) == 0));
    }
    opened = "/dev/nvidia0";
    const char *why = kprof_writers_devices();
    opened = NULL;
    assert_null(why);
    assert_null(kprof_writers_devices());
}

/* What cannot be listed may be there. */
static void test_no_descriptor_left(void **state)
{
    (void)state;
    rlim_t before = limit_descriptors(0);
    const char *why = kprof_writers_devices();
    limit_descriptors(before);
    assert_non_null(why);
}

static void *run_named_like_cuda(void *user)
{
    prctl(PR_SET_NAME, "cuda-EvtHandlr", 0, 0, 0);
    pthread_barrier_wait(user); /* it is there */
    pthread_barrier_wait(user); /* and may go */
    return NULL;
}

/* CUDA's thread runs functions of the application's, or starts threads of its name that do, once it was given any. */
static void test_host_functions(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_t thread;
    if (kprof_writers_others())
        skip(); /* a sanitizer's own thread */
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, run_named_like_cuda, &barrier), 0);
    pthread_barrier_wait(&barrier);
    const char *without = kprof_writers_others();
    sharing = KPROF_RUNS_HOST_CODE;
    const char *with = kprof_writers_others();
    sharing = KPROF_SHARES_WITH_HOST | KPROF_WAITS_FOR_HOST;
    const char *with_others = kprof_writers_others();
    sharing = 0;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_null(without);
    assert_non_null(with);
    assert_non_null(strstr(with, "other threads of the application"));
    assert_null(with_others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_asynchronous_input),
        cmocka_unit_test(test_device_files),
        cmocka_unit_test(test_open_devices),
        cmocka_unit_test(test_no_descriptor_left),
        cmocka_unit_test(test_host_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
