/* Tests which open files count as ways by which another device writes memory at any time. */
#include "cupti/writers.h"

#include "descriptor_limit.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/kprof-writers-XXXXXX";

/* Return what kprof tells when a file of this path is the one that is open. */
static const char *open_device(const char *path)
{
    char link[sizeof folder + 8];
    snprintf(link, sizeof link, "%s/3", folder);
    assert_int_equal(symlink(path, link), 0);
    const char *why = kprof_writers_in(folder);
    assert_int_equal(unlink(link), 0);
    return why;
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    return rmdir(folder);
}

TEST(test_device_files)
{
    assert_true(kprof_writers_is_device_file("/dev/infiniband/uverbs0"));
    assert_true(kprof_writers_is_device_file("/dev/gdrdrv"));
    assert_false(kprof_writers_is_device_file("/dev/nvidia0"));
    assert_false(kprof_writers_is_device_file("/home/me/dev/vfio/1"));
    assert_false(kprof_writers_is_device_file(""));
    assert_null(kprof_writers_devices());
}

TEST(test_open_devices)
{
    static const char *const devices[] = {"/dev/infiniband/uverbs0", "/dev/nvidia-fs3", "/dev/vfio/12"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const char *why = open_device(devices[i]);
        assert_non_null(why);
        assert_non_null(strstr(why, "a network card or another device"));
    }
    assert_null(open_device("/dev/nvidia0"));
    assert_null(kprof_writers_in(folder));
    assert_null(kprof_writers_devices());
}

/* A folder that cannot be listed may have such a file. */
TEST(test_no_descriptor_left)
{
    rlim_t before = limit_descriptors(0);
    const char *why = kprof_writers_devices();
    limit_descriptors(before);
    assert_non_null(why);
}

AROUND_ALL(make_folder, remove_folder)
