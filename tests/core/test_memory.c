/* Tests how much memory the machine has left. */
#include "core/memory.h"
#include "test.h"

#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(test_within_the_machine)
{
    size_t total = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t available = kprof_memory_available_bytes("");
    assert_true(available > 0);
    assert_true(available <= total);
}

static void *look(void *out)
{
    *(size_t *)out = kprof_memory_available_bytes("");
    return NULL;
}

/* A program's thread may have little, and most of it is the program's. */
TEST(test_small_stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    size_t available = 0;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* it makes frames larger */
#endif
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 24 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attributes, look, &available), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    assert_true(available > 0);
}

/* A folder with files as the kernel has them. */
static char root[64];

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static size_t left(const char *membership)
{
    char path[PATH_MAX];
    put("membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    return kprof_memory_left_in_groups_bytes(path, root);
}

static int set_up(void **state)
{
    strcpy(root, "/tmp/kprof-groups-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status, (void)flag, (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TEST_WITH(test_no_limit, set_up, tear_down)
{
    put("a/memory.max", "max\n");
    put("a/memory.current", "1000\n");
    assert_int_equal(left("0::/a\n"), SIZE_MAX);
    assert_int_equal(left("0::/elsewhere\n"), SIZE_MAX);
    assert_int_equal(left("no line of that kind\n"), SIZE_MAX);
    assert_int_equal(kprof_memory_left_in_groups_bytes("/nonexistent", root), SIZE_MAX);
}

TEST_WITH(test_least_of_nested_groups, set_up, tear_down)
{
    put("job/memory.max", "3000\n");
    put("job/memory.current", "2500\n");
    put("job/memory.stat", "anon 2200\ninactive_file 200\nactive_file 100\n");
    put("job/step/memory.max", "9000\n");
    put("job/step/memory.current", "100\n");
    assert_int_equal(left("0::/job/step\n"), 800);
    assert_int_equal(left("0::/job\n"), 800);
    put("memory.max", "700\n");
    put("memory.current", "0\n");
    assert_int_equal(left("0::/job/step\n"), 700);
    assert_int_equal(left("0::/\n"), 700);
    assert_int_equal(left("0::/of the machine/job\n"), 700);
    assert_int_equal(kprof_memory_left_in_groups_bytes("/nonexistent", root), 700);
    put("job/step/memory.current", "9001\n");
    assert_int_equal(left("0::/job/step\n"), 0);
}

TEST_WITH(test_version_1, set_up, tear_down)
{
    put("memory/job/memory.limit_in_bytes", "3000\n");
    put("memory/job/memory.usage_in_bytes", "1000\n");
    put("memory/job/memory.stat", "inactive_file 10\ntotal_inactive_file 50\n");
    put("job/memory.max", "1\n");
    put("job/memory.current", "0\n");
    assert_int_equal(left("9:name=memory:/job\n4:cpu,memory:/job\n"), 2050);
    assert_int_equal(left("4:memory,cpu:/job/step\n"), 2050);
    assert_int_equal(left("4:memory2:/job\n"), SIZE_MAX);
}
