/* The cache: round trip, misses, damage, foreign files, off switch, writers at the same time. */
#include "core/cache.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kprof-test-cache-XXXXXX";

static int set_up(void **state)
{
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static kprof_strbuf text(const char *content)
{
    kprof_strbuf buf = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&buf, content);
    return buf;
}

static bool holds(const char *key_text, const char *expected)
{
    kprof_strbuf key = text(key_text), found = KPROF_STRBUF_INIT;
    bool same = kprof_cache_get(&key, &found) && found.length == strlen(expected) &&
                memcmp(found.data, expected, found.length) == 0;
    kprof_strbuf_free(&key);
    kprof_strbuf_free(&found);
    return same;
}

static void put(const char *key_text, const char *data)
{
    kprof_strbuf key = text(key_text);
    kprof_cache_put(&key, data, strlen(data));
    kprof_strbuf_free(&key);
}

/* Path of the only entry. */
static void only_entry(char *path, size_t size)
{
    char inner[256];
    snprintf(inner, sizeof inner, "%s/kprof", folder);
    DIR *dir = opendir(inner);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        snprintf(path, size, "%s/%s", inner, entry->d_name);
    }
    closedir(dir);
    assert_int_equal(count, 1);
}

static void clear(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/kprof", folder);
    assert_int_equal(system(command), 0);
}

TEST(test_round_trip)
{
    assert_false(holds("a", "1"));
    put("a", "one");
    put("b", "two");
    assert_true(holds("a", "one"));
    assert_true(holds("b", "two"));
    put("a", "three");
    assert_true(holds("a", "three"));
    clear();
}

TEST(test_every_damaged_byte_is_a_miss)
{
    put("key", "data");
    char path[512], content[256];
    only_entry(path, sizeof path);
    int fd = open(path, O_RDWR);
    ssize_t size = read(fd, content, sizeof content);
    for (ssize_t i = 0; i < size; i++) {
        char flipped = (char)(content[i] ^ 0x10);
        assert_int_equal(pwrite(fd, &flipped, 1, i), 1);
        assert_false(holds("key", "data"));
        assert_int_equal(pwrite(fd, &content[i], 1, i), 1);
    }
    assert_true(holds("key", "data"));
    for (ssize_t length = size - 1; length >= 0; length--) {
        assert_int_equal(ftruncate(fd, length), 0);
        assert_false(holds("key", "data"));
    }
    close(fd);
    clear();
}

TEST(test_private)
{
    struct stat info;
    char path[512];
    put("key", "data");
    only_entry(path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 077, 0);
    clear();
}

TEST(test_symlink_is_not_followed)
{
    char path[512], moved[520];
    put("key", "data");
    only_entry(path, sizeof path);
    snprintf(moved, sizeof moved, "%s/elsewhere", folder);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_false(holds("key", "data"));
    clear();
}

/* Nor is a writer waited for. */
TEST(test_fifo_is_a_miss)
{
    char path[512];
    put("key", "data");
    only_entry(path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(holds("key", "data"));
    clear();
}

TEST(test_off)
{
    setenv("KPROF_CACHE", "off", 1);
    put("key", "data");
    assert_false(holds("key", "data"));
    unsetenv("KPROF_CACHE");
    assert_false(holds("key", "data"));
}

static void *write_often(void *data)
{
    for (int i = 0; i < 200; i++)
        put("shared", data);
    return NULL;
}

TEST(test_writers_at_the_same_time)
{
    pthread_t one, two;
    pthread_create(&one, NULL, write_often, "first");
    pthread_create(&two, NULL, write_often, "second");
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert_true(holds("shared", "first") || holds("shared", "second"));
    char path[512];
    only_entry(path, sizeof path); /* no draft is left */
    clear();
}

static void make_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/kprof/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool has_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/kprof/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Bytes in the folder, and how many files. */
static off_t measure(int *count)
{
    char inner[256];
    snprintf(inner, sizeof inner, "%s/kprof", folder);
    DIR *dir = opendir(inner);
    off_t total = 0;
    *count = 0;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &info, 0) != 0)
            continue;
        total += info.st_size;
        (*count)++;
    }
    closedir(dir);
    return total;
}

/* Between two uses of the cache the clock of the file system must move on. */
static void let_time_pass(void)
{
    usleep(20000);
}

TEST(test_number_of_entries_is_bounded)
{
    int count;
    put("dear", "data");
    make_file("notes.txt");
    make_file("0123456789abcdef.x1Y2z3"); /* a draft whose writer was killed */
    for (int i = 0; i < 1200; i++) {
        char key[32];
        snprintf(key, sizeof key, "%d", i);
        put(key, "data");
        if (i % 256 == 0) {
            let_time_pass();
            assert_true(holds("dear", "data")); /* used now and then: never the oldest */
            let_time_pass();
        }
    }
    measure(&count);
    assert_int_equal(count, 1024 + 1);
    assert_true(holds("dear", "data") && holds("1199", "data"));
    assert_false(holds("0", "data"));
    assert_true(has_file("notes.txt"));
    assert_false(has_file("0123456789abcdef.x1Y2z3"));
    clear();
}

TEST(test_size_of_the_folder_is_bounded)
{
    enum { LARGE_BYTES = 20 << 20 };
    KPROF_AUTO_FREE char *data = calloc(1, LARGE_BYTES);
    assert_non_null(data);
    int count;
    for (int i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        kprof_strbuf key = text(name);
        kprof_cache_put(&key, data, LARGE_BYTES);
        kprof_strbuf_free(&key);
        let_time_pass();
    }
    assert_true(measure(&count) <= 64 << 20);
    assert_int_equal(count, 3);
    kprof_strbuf key = text("e"), found = KPROF_STRBUF_INIT;
    assert_true(kprof_cache_get(&key, &found));
    assert_int_equal(found.length, LARGE_BYTES);
    kprof_strbuf_free(&key);
    kprof_strbuf_free(&found);
    clear();
}

/* As by keys whose hashes are the same. */
TEST(test_entry_of_another_key)
{
    char path[512], place[512];
    put("a", "one");
    only_entry(place, sizeof place);
    clear();
    put("b", "two");
    only_entry(path, sizeof path);
    assert_int_equal(rename(path, place), 0);
    assert_false(holds("a", "two"));
    clear();
}

TEST(test_file_of_another_user)
{
    char path[512];
    put("key", "data");
    only_entry(path, sizeof path);
    if (chown(path, geteuid() + 1, (gid_t)-1) != 0) {
        clear();
        skip(); /* not allowed */
    }
    assert_false(holds("key", "data"));
    clear();
}

/* One entry may not push out all the others. */
TEST(test_large_data_is_not_kept)
{
    enum { HALF = 32 << 20 };
    KPROF_AUTO_FREE char *data = calloc(1, HALF + 1);
    kprof_strbuf key = text("large"), found = KPROF_STRBUF_INIT;
    assert_non_null(data);
    put("small", "data");
    kprof_cache_put(&key, data, HALF + 1);
    assert_false(kprof_cache_get(&key, &found));
    assert_true(holds("small", "data"));
    kprof_strbuf_free(&key);
    kprof_strbuf_free(&found);
    clear();
}

/* Not below wherever the application happens to be: a path that is not absolute does not count. */
TEST(test_relative_folder)
{
    char inner[256];
    const char *old_home = getenv("HOME");
    KPROF_AUTO_FREE char *home = old_home ? strdup(old_home) : NULL;
    snprintf(inner, sizeof inner, "%s/.cache/kprof", folder);
    assert_int_equal(chdir(folder), 0);
    setenv("XDG_CACHE_HOME", "beside", 1);
    setenv("HOME", folder, 1);
    put("key", "data");
    bool kept = holds("key", "data"), is_there = access(inner, F_OK) == 0, beside = access("beside", F_OK) == 0;
    setenv("HOME", ".", 1);
    bool kept_nowhere = holds("key", "data");
    setenv("XDG_CACHE_HOME", folder, 1);
    if (home)
        setenv("HOME", home, 1);
    else
        unsetenv("HOME");
    assert_true(kept && is_there && !beside && !kept_nowhere);
}

TEST(test_full_disk)
{
    struct rlimit before, small;
    int count;
    put("key", "data");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 20;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    put("key", "other data");
    put("other", "data");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(holds("key", "data"));
    measure(&count);
    assert_int_equal(count, 1);
    clear();
}

AROUND_ALL(set_up, tear_down)
