/* Which open files count as ways by which another device writes memory at any time. */
#include "inject/writers.h"

#include "descriptor_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *opened; /* NULL, or what all descriptors seem to be of */

/* In place of the system's. */
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

static void test_open_devices(void **state)
{
    (void)state;
    static const char *const devices[] = {"/dev/infiniband/uverbs0", "/dev/nvidia-fs3", "/dev/vfio/12"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        opened = devices[i];
        const char *why = kprof_writers_devices();
        opened = NULL;
        assert_non_null(why);
        assert_non_null(strstr(why, "a network card or another device"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_files),
        cmocka_unit_test(test_open_devices),
        cmocka_unit_test(test_no_descriptor_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
