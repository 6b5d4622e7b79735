/* The writer inside a program that closes descriptors, moves about, forks, uses threads and fills the disk: the spool
 * must have every record whose write succeeded, at the latest when it is released, and nothing else, and the program's
 * own files must stay untouched. */
#include "descriptor_limit.h"
#include "log_capture.h"
#include "spool/spool.h"
#include "spool_samples.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static log_capture log_seen;
static char dir[32];

/* The answers of the "disk" to the writer's next calls. */
static struct {
    int calls;        /* so many so far */
    int interrupt_at; /* this call fails with EINTR */
    int shorten_at;   /* this call writes half */
    int full_from;    /* from this call on: no space */
} disk;

/* The application's signal handler runs within the next call, and exits: the end record is written. */
static struct {
    kprof_spool_writer *writer; /* NULL: there is none */
    kprof_status status;        /* of the end record */
} handler;

static void run_handler(void)
{
    kprof_record record = {.type = KPROF_RECORD_END};
    kprof_spool_writer *writer = handler.writer;
    handler.writer = NULL;
    if (writer)
        handler.status = kprof_spool_write(writer, &record);
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    int call = ++disk.calls;
    run_handler();
    if (call == disk.interrupt_at || (disk.full_from && call >= disk.full_from)) {
        errno = call == disk.interrupt_at ? EINTR : ENOSPC;
        return -1;
    }
    return __real_write(fd, data, call == disk.shorten_at ? size / 2 : size);
}

static kprof_spool_writer *open_writer(void)
{
    kprof_spool_writer *writer;
    assert_int_equal(kprof_spool_writer_open(dir, &writer), KPROF_OK);
    return writer;
}

static void spool_path(char *path, size_t size, int n)
{
    snprintf(path, size, "%s/%ld-%d.spool", dir, (long)getpid(), n);
}

static kprof_status write_seen(kprof_spool_writer *writer, uint32_t kernel)
{
    kprof_record record = {.type = KPROF_RECORD_SEEN, .seen = {kernel, 1}};
    return kprof_spool_write(writer, &record);
}

/* The spool holds SEEN records of exactly these kernels, and nothing is left over. */
static void assert_spool_holds(int n, const uint32_t *kernels, size_t count)
{
    char path[64];
    kprof_spool_reader *reader;
    kprof_record record;
    spool_path(path, sizeof path, n);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, path, &reader), KPROF_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_RECORD);
        assert_int_equal(record.type, KPROF_RECORD_SEEN);
        assert_int_equal(record.seen.kernel, kernels[i]);
    }
    assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_WAIT);
    assert_false(kprof_spool_has_news(reader));
    kprof_spool_reader_close(reader);
}

/* The descriptor that the writer holds on its n-th spool; -1 when none. */
static int writer_fd(int n)
{
    char path[64], link_path[64], target[256];
    spool_path(path, sizeof path, n);
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link_path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strcmp(target, path) == 0)
            return fd;
    }
    return -1;
}

TEST(all_types_are_written)
{
    char path[64];
    struct stat info;
    kprof_spool_reader *reader;
    kprof_record record;
    kprof_spool_writer *writer = open_writer();
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        assert_int_equal(kprof_spool_write(writer, &samples[i]), KPROF_OK);
        assert_int_equal(disk.calls, i + 2); /* one write(2) each, and one for the header */
    }
    kprof_spool_writer_close(writer);
    spool_path(path, sizeof path, 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, path, &reader), KPROF_OK);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_RECORD);
        assert_int_equal(record.type, samples[i].type);
    }
    kprof_spool_reader_close(reader);
}

TEST(spools_of_one_pid_are_numbered)
{
    kprof_spool_writer *first = open_writer(), *second = open_writer();
    assert_int_equal(write_seen(second, 2), KPROF_OK);
    assert_int_equal(write_seen(first, 1), KPROF_OK);
    assert_spool_holds(0, (const uint32_t[]){1}, 1);
    assert_spool_holds(1, (const uint32_t[]){2}, 1);
    kprof_spool_writer_close(first);
    kprof_spool_writer_close(second);
}

TEST(closed_descriptors_are_reopened)
{
    kprof_spool_writer *writer = open_writer();
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    assert_true(writer_fd(0) >= 500);
    close(writer_fd(0));
    assert_int_equal(write_seen(writer, 2), KPROF_OK);
    close(writer_fd(0));
    assert_int_equal(write_seen(writer, 3), KPROF_OK);
    kprof_spool_writer_close(writer);
    assert_int_equal(writer_fd(0), -1);
    assert_spool_holds(0, (const uint32_t[]){1, 2, 3}, 3);
}

TEST(a_reused_descriptor_is_left_alone)
{
    char path[64];
    struct stat info;
    kprof_spool_writer *writer = open_writer();
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    int number = writer_fd(0);
    snprintf(path, sizeof path, "%s/application", dir);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(dup2(file, number), number);
    close(file);
    assert_int_equal(write_seen(writer, 2), KPROF_OK);
    assert_int_not_equal(writer_fd(0), number);
    assert_int_equal(fstat(number, &info), 0); /* still the application's, and empty */
    assert_int_equal(info.st_size, 0);
    int mine = writer_fd(0);
    assert_int_equal(dup2(number, mine), mine);
    kprof_spool_writer_close(writer);
    assert_int_equal(fstat(mine, &info), 0); /* closing does not close the application's file either */
    close(mine);
    close(number);
    assert_spool_holds(0, (const uint32_t[]){1, 2}, 2);
}

TEST(the_directory_may_change)
{
    char *before = getcwd(NULL, 0);
    kprof_spool_writer *writer;
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(kprof_spool_writer_open(".", &writer), KPROF_OUTPUT);
    assert_int_equal(kprof_spool_writer_open(dir, &writer), KPROF_OK);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    close(writer_fd(0));
    assert_int_equal(write_seen(writer, 2), KPROF_OK);
    kprof_spool_writer_close(writer);
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_spool_holds(0, (const uint32_t[]){1, 2}, 2);
}

TEST(a_replaced_file_is_not_written)
{
    char path[64];
    struct stat info;
    kprof_spool_writer *writer = open_writer();
    spool_path(path, sizeof path, 0);
    int number = writer_fd(0);
    char keep[80];
    snprintf(keep, sizeof keep, "%s.old", path); /* keeps the inode number taken */
    assert_int_equal(rename(path, keep), 0);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    close(number);
    assert_int_equal(write_seen(writer, 1), KPROF_OUTPUT);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 0);
    kprof_spool_writer_close(writer);
}

TEST(a_full_disk_loses_only_what_did_not_fit)
{
    kprof_spool_writer *writer = open_writer();
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    disk.shorten_at = disk.calls + 1;
    disk.full_from = disk.calls + 2;
    assert_int_equal(write_seen(writer, 2), KPROF_OUTPUT);
    assert_spool_holds(0, (const uint32_t[]){1}, 1);
    assert_int_equal(write_seen(writer, 3), KPROF_OUTPUT);
    assert_int_equal(log_seen.count, 1); /* said once, not for every record */
    assert_non_null(strstr(log_seen.last, "No space"));
    disk.full_from = 0;
    assert_int_equal(write_seen(writer, 4), KPROF_OK);
    kprof_spool_writer_close(writer);
    assert_spool_holds(0, (const uint32_t[]){1, 4}, 2);
}

static bool lacks_records(void)
{
    char path[64];
    kprof_spool_reader *reader;
    spool_path(path, sizeof path, 0);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, path, &reader), KPROF_OK);
    bool lacks = kprof_spool_lacks_records(reader);
    kprof_spool_reader_close(reader);
    return lacks;
}

TEST(readers_see_that_a_record_is_missing)
{
    kprof_spool_writer *writer = open_writer();
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    assert_false(lacks_records());
    disk.full_from = disk.calls + 1;
    assert_int_equal(write_seen(writer, 2), KPROF_OUTPUT);
    assert_true(lacks_records());
    disk.full_from = 0;
    assert_int_equal(write_seen(writer, 3), KPROF_OK);
    assert_true(lacks_records());
    kprof_spool_writer_close(writer);
}

TEST(a_spool_that_cannot_begin_is_marked_too)
{
    kprof_spool_writer *writer;
    disk.full_from = 1;
    assert_int_equal(kprof_spool_writer_open(dir, &writer), KPROF_OUTPUT);
    assert_true(lacks_records());
}

TEST(nothing_is_written_after_the_stop)
{
    kprof_spool_writer *writer = open_writer();
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    int number = writer_fd(0);
    kprof_spool_writer_stop(writer);
    assert_int_equal(fcntl(number, F_GETFD), -1);
    assert_int_equal(write_seen(writer, 2), KPROF_OUTPUT);
    assert_int_equal(log_seen.count, 0);
    assert_false(lacks_records());
    kprof_spool_writer_stop(writer);
    kprof_spool_writer_close(writer);
    assert_spool_holds(0, (const uint32_t[]){1}, 1);
}

TEST(interruptions_and_short_writes_are_continued)
{
    kprof_spool_writer *writer = open_writer();
    disk.interrupt_at = disk.calls + 1;
    disk.shorten_at = disk.calls + 2;
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    kprof_spool_writer_close(writer);
    assert_spool_holds(0, (const uint32_t[]){1}, 1);
}

static kprof_status write_launch(kprof_spool_writer *writer, uint64_t launch)
{
    kprof_record record = samples[4];
    record.launch.launch = launch;
    return kprof_spool_write(writer, &record);
}

/* The spool holds these launches, one after the other from 1; 0 stands for another record. */
static void assert_launches(const uint64_t *launches, size_t count)
{
    char path[64];
    kprof_spool_reader *reader;
    kprof_record record;
    spool_path(path, sizeof path, 0);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, path, &reader), KPROF_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_RECORD);
        assert_int_equal(record.type == KPROF_RECORD_LAUNCH ? record.launch.launch : 0, launches[i]);
    }
    assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_WAIT);
    assert_false(kprof_spool_has_news(reader));
    kprof_spool_reader_close(reader);
}

TEST(launches_that_are_held_are_written_together)
{
    kprof_spool_writer *writer = open_writer();
    const int before = disk.calls;
    kprof_spool_hold(writer);
    assert_int_equal(write_launch(writer, 1), KPROF_OK);
    assert_int_equal(write_launch(writer, 2), KPROF_OK);
    assert_int_equal(disk.calls, before);
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    assert_int_equal(disk.calls, before + 1);
    assert_int_equal(write_launch(writer, 3), KPROF_OK);
    assert_launches((const uint64_t[]){1, 2, 0}, 3);
    assert_int_equal(kprof_spool_release(writer), KPROF_OK);
    assert_int_equal(disk.calls, before + 2);
    assert_int_equal(write_launch(writer, 4), KPROF_OK);
    assert_launches((const uint64_t[]){1, 2, 0, 3, 4}, 5);
    assert_int_equal(kprof_spool_release(writer), KPROF_OK);
    assert_int_equal(disk.calls, before + 3);
    kprof_spool_writer_close(writer);
}

TEST(not_too_much_is_held)
{
    kprof_spool_writer *writer = open_writer();
    const int before = disk.calls;
    uint64_t launch = 0;
    kprof_spool_hold(writer);
    while (disk.calls == before && launch < 100000)
        assert_int_equal(write_launch(writer, ++launch), KPROF_OK);
    assert_in_range(launch, 100, 10000);
    kprof_spool_writer_close(writer);
}

/* The bytes of one such record. */
static size_t launch_bytes(void)
{
    char path[64];
    struct stat empty, one;
    kprof_spool_writer *writer = open_writer();
    spool_path(path, sizeof path, 0);
    assert_int_equal(stat(path, &empty), 0);
    assert_int_equal(write_launch(writer, 1), KPROF_OK);
    assert_int_equal(stat(path, &one), 0);
    kprof_spool_writer_close(writer);
    assert_int_equal(unlink(path), 0);
    return (size_t)(one.st_size - empty.st_size);
}

TEST(a_full_disk_keeps_the_held_launches_that_fit)
{
    kprof_spool_writer *writer = open_writer();
    kprof_spool_hold(writer);
    for (uint64_t i = 1; i <= 5; i++)
        assert_int_equal(write_launch(writer, i), KPROF_OK);
    disk.shorten_at = disk.calls + 1; /* in the middle of the third */
    disk.full_from = disk.calls + 2;
    assert_int_equal(kprof_spool_release(writer), KPROF_OUTPUT);
    assert_launches((const uint64_t[]){1, 2}, 2);
    assert_non_null(strstr(log_seen.last, "No space"));
    disk.full_from = 0;
    assert_int_equal(write_launch(writer, 6), KPROF_OK);
    assert_launches((const uint64_t[]){1, 2, 6}, 3);
    kprof_spool_writer_close(writer);
}

TEST(a_file_size_limit_keeps_the_held_launches_that_fit)
{
    const size_t bytes = launch_bytes();
    char path[64];
    struct stat info;
    struct rlimit before, limit;
    kprof_spool_writer *writer = open_writer();
    spool_path(path, sizeof path, 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    kprof_spool_hold(writer);
    for (uint64_t i = 1; i <= 5; i++)
        assert_int_equal(write_launch(writer, i), KPROF_OK);
    limit = before;
    limit.rlim_cur = (rlim_t)info.st_size + 3 * bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    kprof_status status = kprof_spool_release(writer);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, KPROF_OUTPUT);
    assert_launches((const uint64_t[]){1, 2, 3}, 3);
    kprof_spool_writer_close(writer);
}

/* Without the writer's own check SIGXFSZ would end this program. */
TEST(a_file_size_limit_does_not_kill)
{
    struct rlimit before, limit;
    kprof_spool_writer *writer = open_writer();
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 50;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    kprof_status status = write_seen(writer, 2);
    kprof_spool_writer *another;
    limit.rlim_cur = 3;
    setrlimit(RLIMIT_FSIZE, &limit);
    kprof_status open_status = kprof_spool_writer_open(dir, &another);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, KPROF_OUTPUT);
    assert_int_equal(open_status, KPROF_OUTPUT);
    assert_int_equal(write_seen(writer, 3), KPROF_OK);
    kprof_spool_writer_close(writer);
    assert_spool_holds(0, (const uint32_t[]){1, 3}, 2);
}

TEST(few_descriptors_are_enough)
{
    rlim_t before = limit_descriptors(64);
    kprof_spool_writer *writer = open_writer();
    kprof_status status = write_seen(writer, 1);
    limit_descriptors(before);
    assert_int_equal(status, KPROF_OK);
    kprof_spool_writer_close(writer);
    assert_spool_holds(0, (const uint32_t[]){1}, 1);
}

TEST(a_missing_directory_is_named)
{
    kprof_spool_writer *writer;
    assert_int_equal(kprof_spool_writer_open("/nonexistent/session", &writer), KPROF_OUTPUT);
    assert_null(writer);
    assert_non_null(strstr(log_seen.last, "/nonexistent/session"));
    kprof_spool_writer_close(NULL);
}

/* The injection library's sink: messages become records of the very spool that may be failing. */
static void sink_into_spool(void *user, kprof_log_level level, const char *message)
{
    kprof_record record = {.type = KPROF_RECORD_MESSAGE, .message = {level, KPROF_OK, message}};
    (void)!kprof_spool_write(user, &record);
}

TEST(logging_into_a_failing_spool_ends)
{
    kprof_spool_writer *writer = open_writer();
    kprof_log_set_sink(sink_into_spool, writer);
    disk.full_from = disk.calls + 1;
    assert_int_equal(write_seen(writer, 1), KPROF_OUTPUT);
    kprof_log_set_sink(log_capture_sink, &log_seen);
    kprof_spool_writer_close(writer);
}

#define THREADS            4
#define RECORDS_PER_THREAD 500

typedef struct worker {
    pthread_t thread;
    kprof_spool_writer *writer;
    uint32_t number;
    unsigned failed;
} worker;

static void *write_many(void *user)
{
    worker *w = user;
    for (uint32_t i = 0; i < RECORDS_PER_THREAD; i++) {
        kprof_record record = samples[4];
        record.launch.kernel = w->number;
        record.launch.launch = i;
        w->failed += kprof_spool_write(w->writer, &record) != KPROF_OK;
    }
    return NULL;
}

TEST(threads_write_whole_records)
{
    char path[64];
    kprof_spool_reader *reader;
    kprof_record record;
    kprof_spool_writer *writer = open_writer();
    worker workers[THREADS] = {0};
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].writer = writer;
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, write_many, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failed, 0);
    }
    kprof_spool_writer_close(writer);
    spool_path(path, sizeof path, 0);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, path, &reader), KPROF_OK);
    uint64_t next[THREADS] = {0};
    for (size_t i = 0; i < THREADS * RECORDS_PER_THREAD; i++) {
        assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_RECORD);
        assert_true(record.launch.launch == next[record.launch.kernel]++);
    }
    assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_WAIT);
    kprof_spool_reader_close(reader);
}

/* Keeps what the child abandons reachable, or valgrind would call it a leak. */
static kprof_spool_writer *volatile abandoned;

TEST(a_forked_child_forgets_the_spool)
{
    kprof_spool_writer *writer = open_writer();
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int number = writer_fd(0);
        abandoned = writer;
        kprof_spool_writer_abandon(abandoned);
        _exit(fcntl(number, F_GETFD) == -1 ? 0 : 1);
    }
    int child_status = -1;
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
    assert_int_equal(write_seen(writer, 2), KPROF_OK);
    kprof_spool_writer_close(writer);
    assert_spool_holds(0, (const uint32_t[]){1, 2}, 2);
}

static int set_up(void **state)
{
    memset(&disk, 0, sizeof disk);
    log_capture_start(&log_seen);
    strcpy(dir, "/tmp/kprof-test-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

TEST(a_handler_within_a_write_does_not_wait)
{
    kprof_spool_writer *writer = open_writer();
    handler.writer = writer;
    assert_int_equal(write_seen(writer, 1), KPROF_OK);
    assert_int_equal(handler.status, KPROF_OUTPUT);
    assert_int_equal(write_seen(writer, 2), KPROF_OK);
    assert_spool_holds(0, (const uint32_t[]){1, 2}, 2);
    kprof_spool_writer_close(writer);
}

static int tear_down(void **state)
{
    DIR *entries = opendir(dir);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries)
        closedir(entries);
    return rmdir(dir);
}

AROUND_EACH(set_up, tear_down)
