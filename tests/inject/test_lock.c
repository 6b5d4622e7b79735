/* The line in which processes stand for the counters: one at a time, in the order in which they came. The turn passes
 * on from those who die, and is kept by those whose children end. */
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/wait.h"
#include "sim/clock.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS    60000
#define ENDLESS_MS 3600000 /* longer than a test may run */
#define GPU        "00112233445566778899aabbccddeeff"
#define OTHER_GPU  "ffeeddccbbaa99887766554433221100"
#define LIMIT_MS   1000 /* passes at once where a test says so */
#define HOLD_NS    1000000

static char folder[] = "/tmp/kprof-test-lock-XXXXXX";
static bool reads_fail;
static void (*after_read)(const uint32_t *line); /* of the file, whose third word changes with progress */

ssize_t __real_pread(int fd, void *out, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t at);

/* A disk may take what is written and give nothing back. */
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t at)
{
    if (reads_fail) {
        errno = EIO;
        return -1;
    }
    const ssize_t got = __real_pread(fd, out, size, at);
    if (after_read && got > (ssize_t)(2 * sizeof(uint32_t)))
        after_read(out);
    return got;
}

static int set_up(void **state)
{
    assert_non_null(mkdtemp(folder));
    snprintf(kprof_engine.process.session_dir, sizeof kprof_engine.process.session_dir, "%s", folder);
    kprof_lock_choose(GPU);
    atomic_store(&kprof_engine.waits.hold_ns, HOLD_NS);
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* Run the function in a child, which stands in no line, and return its answer. */
static bool ask_child(bool (*ask)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        kprof_lock_give();
        _exit(ask() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

static bool take_at_once(void)
{
    return kprof_lock_take(0, NULL);
}

static bool take_in_time(void)
{
    return kprof_lock_take(LONG_MS, NULL);
}

/* Could another process have its turn now? It leaves at once. */
static bool is_free(void)
{
    return ask_child(take_at_once);
}

static bool seems_wanted(void)
{
    return ask_child(kprof_lock_is_wanted);
}

static void assert_waiting_is_seen_by_others(void)
{
    assert_false(seems_wanted());
    assert_true(kprof_lock_take(0, NULL));
    assert_true(seems_wanted());
    assert_false(kprof_lock_is_wanted()); /* by others */
    kprof_lock_give();
    assert_false(seems_wanted());
}

TEST(test_one_at_a_time)
{
    assert_true(is_free());
    assert_true(kprof_lock_take(0, NULL));
    assert_false(is_free());
    assert_false(is_free()); /* the child that asked has not given it away */
    kprof_lock_give();
    assert_true(is_free());
    kprof_lock_give(); /* once more is harmless */
    assert_true(is_free());
    assert_waiting_is_seen_by_others();
}

static bool take_other_gpu(void)
{
    kprof_lock_choose(OTHER_GPU);
    return take_in_time();
}

/* Two GPUs count at the same time: they have two lines. */
TEST(test_another_gpu)
{
    assert_true(kprof_lock_take(0, NULL));
    assert_true(ask_child(take_other_gpu));
    kprof_lock_choose(OTHER_GPU); /* gives the other turn up */
    assert_true(kprof_lock_take(0, NULL));
    kprof_lock_choose(GPU);
    assert_true(is_free());
    assert_false(seems_wanted());
    assert_waiting_is_seen_by_others();
}

static bool is_wanted_with_another_gpu(void)
{
    kprof_lock_choose(GPU);
    return kprof_lock_is_wanted();
}

/* A process that has had the counters of two GPUs sees that either is wanted. */
TEST(test_wanting_another_gpu)
{
    kprof_lock_choose(OTHER_GPU);
    assert_true(kprof_lock_take(0, NULL));
    assert_true(ask_child(is_wanted_with_another_gpu));
    kprof_lock_choose(GPU);
    assert_waiting_is_seen_by_others();
}

TEST(test_take_again)
{
    for (int i = 0; i < 1000; i++) {
        assert_true(kprof_lock_take(0, NULL));
        kprof_lock_give();
    }
    assert_true(is_free());
}

static int told; /* a descriptor */

static void tell(void)
{
    if (write(told, "", 1) != 1)
        _exit(1);
}

/* A process that has its turn, or waits for it, says so, and is there until it is killed. */
static pid_t start_holder(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        told = ready[1];
        kprof_lock_give();
        if (kprof_lock_take(0, NULL))
            tell();
        else
            (void)kprof_lock_take(LONG_MS, tell);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static pid_t holder;
static int asked;

static void kill_holder(void)
{
    asked++;
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}

static void count_asked(void)
{
    asked++;
    sim_clock_advance_ms(LIMIT_MS);
}

TEST(test_wait_for_the_other)
{
    holder = start_holder();
    asked = 0;
    assert_false(kprof_lock_take(20, count_asked));
    assert_int_equal(asked, 1);
    assert_true(kprof_lock_take(LONG_MS, kill_holder)); /* who dies gives it back */
    assert_int_equal(asked, 2);
    kprof_lock_give();
    assert_true(is_free());
}

/* A process whose work waits for others, and goes on when this one has given up. */
static void get_stuck(void)
{
    char byte;
    kprof_lock_give();
    told = holder;
    if (!kprof_lock_take(LONG_MS, NULL))
        _exit(1);
    kprof_lock_note_stuck(true);
    tell();
    if (read(STDIN_FILENO, &byte, 1) != 1)
        _exit(1);
    kprof_lock_note_stuck(false);
    kprof_lock_give();
    _exit(0);
}

TEST(test_no_wait_for_who_waits_for_others)
{
    int ready[2], go_on[2], status;
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go_on), 0);
    holder = ready[1];
    pid_t pid = fork();
    if (pid == 0) {
        dup2(go_on[0], STDIN_FILENO);
        get_stuck();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
    assert_false(kprof_lock_take(ENDLESS_MS, NULL));
    assert_int_equal(kprof_wait_rest_ns(), 0); /* of the call's time */
    assert_int_equal(write(go_on[1], &byte, 1), 1);
    do /* as later calls do, until the other one goes on */
        kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
    while (!kprof_lock_take(ENDLESS_MS, NULL));
    kprof_lock_give();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go_on[i]);
    }
}

/* The place stays while the process does something else, and others see that it is wanted. */
TEST(test_place_is_kept)
{
    holder = start_holder();
    assert_false(kprof_lock_take(0, NULL));
    assert_true(seems_wanted());
    assert_true(kprof_lock_is_wanted());
    pid_t next = start_holder(); /* behind this one */
    kill_holder();
    assert_true(kprof_lock_take(0, NULL));
    kprof_lock_give();
    assert_false(kprof_lock_take(0, NULL)); /* now it is the other one's turn */
    kill(next, SIGKILL);
    waitpid(next, NULL, 0);
    assert_true(kprof_lock_take(LONG_MS, NULL));
    kprof_lock_give();
    assert_true(is_free());
}

static void let_time_pass(void)
{
    sim_clock_advance_ms(LIMIT_MS);
}

static bool take_after_a_while(void)
{
    return kprof_lock_take(LONG_MS, let_time_pass);
}

/* A process that keeps a place and does not come back for it keeps nobody else waiting. */
TEST(test_turn_that_is_not_taken)
{
    holder = start_holder();
    assert_false(kprof_lock_take(0, NULL));
    kill_holder();
    assert_true(ask_child(take_after_a_while));
    assert_true(kprof_lock_take(0, NULL)); /* at the end of the line, and alone in it */
    kprof_lock_give();
}

TEST(test_whoever_dies_in_line_is_passed_over)
{
    pid_t others[3];
    assert_true(kprof_lock_take(0, NULL));
    for (int i = 0; i < 3; i++)
        others[i] = start_holder();
    for (int i = 0; i < 3; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    assert_false(kprof_lock_is_wanted());
    kprof_lock_give();
    assert_true(is_free());
}

/* A process that makes progress until it is told to end. */
static void make_progress(void)
{
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    kprof_lock_give();
    told = holder;
    if (!kprof_lock_take(LONG_MS, NULL))
        _exit(1);
    tell();
    while (poll(&end, 1, 1) == 0) {
        sim_clock_advance_ms(LIMIT_MS);
        kprof_lock_note_progress();
    }
    kprof_lock_give();
    _exit(0);
}

static unsigned seen_progress;

/* Most of the time that the process waits for has passed. */
static void see_progress(const uint32_t *line)
{
    static uint32_t last;
    if (line[2] == last)
        return;
    last = line[2];
    sim_clock_advance_ms(LIMIT_MS - 1);
    if (++seen_progress == 4)
        tell();
}

/* A process that waits does so for as long as others make progress. */
TEST(test_wait_while_there_is_progress)
{
    int ready[2], end[2], status;
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    holder = ready[1];
    pid_t pid = fork();
    if (pid == 0) {
        dup2(end[0], STDIN_FILENO);
        make_progress();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    told = end[1];
    after_read = see_progress;
    const bool has_turn = kprof_lock_take(LIMIT_MS, NULL);
    after_read = NULL;
    assert_true(has_turn);
    assert_true(seen_progress >= 4);
    kprof_lock_give();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(end[i]);
    }
}

/* The application may write over what it finds. */
TEST(test_file_that_is_written_over)
{
    char path[128];
    assert_true(kprof_lock_take(0, NULL));
    snprintf(path, sizeof path, "%s/gpu." GPU ".line", folder);
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        if (i > 0)
            fputs("The application's own, which is longer than the line.", file);
        fclose(file);
        assert_true(kprof_lock_take(LONG_MS, NULL));
        assert_false(is_free());
    }
    kprof_lock_give();
    assert_true(is_free());
}

TEST(test_not_asked_when_free)
{
    asked = 0;
    assert_true(kprof_lock_take(LONG_MS, count_asked));
    assert_int_equal(asked, 0);
    kprof_lock_give();
}

/* The descriptor of the lock; -1 when there is none. */
static int find_descriptor(void)
{
    char path[64], target[256];
    for (int fd = 3; fd < 65536; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, "gpu." GPU ".line"))
            return fd;
    }
    return -1;
}

/* The application closes the lock's descriptor, and gets the number for a file of its own. */
TEST(test_application_closes_files)
{
    assert_true(kprof_lock_take(0, NULL));
    int number = find_descriptor();
    assert_true(number >= 3);
    int own = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(dup2(own, number), number);
    kprof_lock_give();
    assert_true(fcntl(number, F_GETFD) >= 0);
    close(number);
    close(own);
    assert_true(is_free());
}

TEST(test_no_folder)
{
    snprintf(kprof_engine.process.session_dir, sizeof kprof_engine.process.session_dir, "/nonexistent");
    assert_true(kprof_lock_take(0, NULL)); /* nobody to take turns with */
    kprof_lock_give();
    snprintf(kprof_engine.process.session_dir, sizeof kprof_engine.process.session_dir, "%s", folder);
    kprof_lock_choose(GPU);
}

static void write_number(const char *path, int number)
{
    FILE *file = fopen(path, "a");
    if (!file)
        _exit(1);
    fprintf(file, "%d\n", number);
    fclose(file);
}

/* Each is told to stand in line when the one before it does. */
TEST(test_order)
{
    enum { COUNT = 100 };
    char path[128], byte;
    int ready[2], number, status;
    snprintf(path, sizeof path, "%s/order", folder);
    assert_int_equal(pipe(ready), 0);
    assert_true(kprof_lock_take(0, NULL));
    for (int i = 0; i < COUNT; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            kprof_lock_give();
            told = ready[1];
            if (!kprof_lock_take(LONG_MS, tell))
                _exit(1);
            write_number(path, i);
            kprof_lock_give();
            _exit(0);
        }
        assert_true(pid > 0);
        assert_int_equal(read(ready[0], &byte, 1), 1);
    }
    close(ready[0]);
    close(ready[1]);
    kprof_lock_give();
    for (int i = 0; i < COUNT; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(fscanf(file, "%d", &number), 1);
        assert_int_equal(number, i);
    }
    fclose(file);
}

/* There is no line then, and nobody waits. */
TEST(test_file_that_cannot_be_read)
{
    reads_fail = true;
    assert_true(kprof_lock_take(LONG_MS, NULL));
    kprof_lock_give();
    reads_fail = false;
    assert_true(is_free());
}

/* Processes that count in a file, which goes wrong when two are in at once. */
static void count_in_file(const char *path)
{
    for (int i = 0; i < 50; i++) {
        int value = 0;
        if (!kprof_lock_take(LONG_MS, NULL))
            _exit(1);
        FILE *file = fopen(path, "r+");
        if (!file || fscanf(file, "%d", &value) != 1)
            _exit(1);
        rewind(file);
        fprintf(file, "%d\n", value + 1);
        fclose(file);
        kprof_lock_give();
    }
    _exit(0);
}

TEST(test_processes_take_turns)
{
    char path[128];
    int value = 0, status;
    snprintf(path, sizeof path, "%s/count", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("0\n", file);
    fclose(file);
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        if (pid == 0)
            count_in_file(path);
        assert_true(pid > 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &value), 1);
    fclose(file);
    assert_int_equal(value, 200);
}

AROUND_ALL(set_up, tear_down)
