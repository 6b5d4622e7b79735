/* Tests what a forked child lets go of, and which processes are measured at all. The parts of the engine note that they
 * were told; the configuration and the spool are real. */
#include "inject/arming.h"
#include "inject/batch.h"
#include "inject/census.h"
#include "inject/ending.h"
#include "inject/engine.h"
#include "inject/exec.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/launch.h"
#include "inject/life.h"
#include "inject/lock.h"
#include "inject/preload.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/stacks.h"
#include "inject/trace.h"
#include "inject/trace_limit.h"
#include "inject/utilization.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAUNCHES, GATE, BATCH, LOCK, IDLE, PRELOAD, PARTS };
enum { FINISHED = 71, STOPPED }; /* how a process has ended */

static unsigned forgotten[PARTS]; /* in this process */
static unsigned started, preloads_ended, watched_signals;
static bool had_exit_handler; /* when the device was started, whose threads may register it from then on */
static bool ends;             /* this process is a child that looks how it ends */
static unsigned finishes;
static kprof_owner owner = KPROF_OWNER_LIVES; /* what looking at the session directory gives */
static bool folder_is_gone;
static unsigned owner_looks;
static char folder[] = "/tmp/kprof-test-process-XXXXXX";

/* In place of the engine's and of CUPTI's. */
const kprof_target_hooks kprof_launch_hooks;

static kprof_status target_start(const kprof_target_hooks *hooks)
{
    started++;
    had_exit_handler = kprof_engine.process.exit_handler != NULL;
    return KPROF_OK;
}

static const kprof_device_ops device_ops = {.target_start = target_start};

void kprof_launch_prepare(void) {}

kprof_status kprof_arming_start(void)
{
    return KPROF_OK;
}
void kprof_launch_stacks_prepare(void) {}
const kprof_target_hooks kprof_recording_hooks, kprof_utilization_hooks;
kprof_status kprof_census_start(void)
{
    return KPROF_OK;
}

void kprof_recording_forget(void) {}
void kprof_utilization_forget(void) {}
void kprof_preload_end(void)
{
    preloads_ended++;
}

void kprof_launch_finish(void)
{
    finishes++;
    if (ends)
        _exit(preloads_ended == 1 ? FINISHED : 0);
}

void kprof_launch_before(kprof_exec_turn turn) {}

int kprof_launch_take_signal(int number, const void *thread_state)
{
    return thread_state ? 0 : number;
}

void kprof_launch_end_by_signal(void) {}

void kprof_ending_prepare(int (*decide)(int number, const void *thread)) {}

void kprof_ending_watch(void)
{
    watched_signals++;
}

void kprof_launch_stop(void)
{
    if (ends)
        _exit(preloads_ended == 1 ? STOPPED : 0);
}

void kprof_launch_forget(void)
{
    forgotten[LAUNCHES]++;
}

void kprof_gate_reset(void)
{
    forgotten[GATE]++;
}

void kprof_batch_forget(void)
{
    forgotten[BATCH]++;
}

void kprof_lock_give(void)
{
    forgotten[LOCK]++;
}

kprof_owner kprof_lock_owner(bool *is_gone)
{
    owner_looks++;
    *is_gone = folder_is_gone;
    return owner;
}

kprof_status kprof_trace_start(void)
{
    return KPROF_OK;
}

bool kprof_trace_limit_needs_calls(void)
{
    return false;
}

void kprof_trace_limit_forget(void) {}

void kprof_trace_note_profiler(bool starts) {}

void kprof_idle_forget(void)
{
    forgotten[IDLE]++;
}

void kprof_preload_forget(void)
{
    forgotten[PRELOAD]++;
}

static int set_up(void **state)
{
    kprof_config config = {.follow_children = false, .root_pid = getpid()};
    if (!mkdtemp(folder) || kprof_config_save(&config, folder) != KPROF_OK)
        return -1;
    return setenv(KPROF_SESSION_ENV, folder, 1);
}

static int tear_down(void **state)
{
    char command[128];
    if (kprof_engine.process.spool)
        kprof_spool_writer_close(kprof_engine.process.spool);
    kprof_engine.process.spool = NULL;
    kprof_filter_free(kprof_engine.process.filter);
    kprof_config_free(&kprof_engine.process.config);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void assert_child(int (*run)(void), int expected)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
}

static int start_as_child(void)
{
    kprof_life_begin(&device_ops);
    return started == 0 && !kprof_engine.process.spool && !atomic_load(&kprof_engine.process.armed) ? 0 : 1;
}

/* First: nothing has started yet. */
TEST(test_children_not_asked_for)
{
    assert_child(start_as_child, 0);
}

TEST(test_started_once)
{
    kprof_life_begin(&device_ops);
    kprof_life_begin(&device_ops);
    assert_int_equal(started, 1);
    assert_true(had_exit_handler);
    assert_true(atomic_load(&kprof_engine.process.armed));
    assert_non_null(kprof_engine.process.spool);
}

/* The number of the first part of which the child still has what its parent had. */
static int look_around(void)
{
    for (int part = 0; part < PARTS; part++)
        if (forgotten[part] != 1)
            return 1 + part;
    return atomic_load(&kprof_engine.process.armed) || kprof_engine.process.spool ? 1 + PARTS : 0;
}

/* The threads that held its locks are not there, CUDA's contexts do not work, and the spool is its parent's. */
TEST(test_forked_child)
{
    assert_child(look_around, 0);
    for (int part = 0; part < PARTS; part++)
        assert_int_equal(forgotten[part], 0);
    assert_true(atomic_load(&kprof_engine.process.armed));
    kprof_process_write(&(kprof_record){.type = KPROF_RECORD_END});
    assert_true(atomic_load(&kprof_engine.process.armed));
}

static int end(bool armed)
{
    ends = true;
    preloads_ended = 0;
    atomic_store(&kprof_engine.process.armed, armed);
    exit(1);
}

static int end_armed(void)
{
    return end(true);
}

static int end_disarmed(void)
{
    return end(false);
}

/* CUDA ends after the process' own handlers: by then no thread may use it any more. */
TEST(test_exit)
{
    assert_child(end_armed, FINISHED);
    assert_child(end_disarmed, STOPPED);
}

static void end_library(void)
{
    _exit(finishes == 1 && preloads_ended == 1 ? FINISHED : 0);
}

static int end_with_libraries(void)
{
    finishes = preloads_ended = 0;
    atomic_store(&kprof_engine.process.armed, true);
    atexit(end_library); /* it was loaded after kprof */
    kprof_process_outlive_libraries();
    kprof_process_outlive_libraries();
    assert_int_equal(watched_signals, 2);
    exit(1);
}

/* The open batch is closed before the libraries that measuring needs end. */
TEST(test_exit_before_libraries)
{
    assert_child(end_with_libraries, FINISHED);
}

/* As on a full disk. From then on nothing is measured. */
TEST(test_results_that_cannot_be_written)
{
    struct rlimit before, small;
    kprof_record record = {.type = KPROF_RECORD_MESSAGE};
    record.message = (kprof_message_record){KPROF_LOG_INFO, KPROF_OK, "a message"};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    kprof_process_write(&record);
    bool armed = atomic_load(&kprof_engine.process.armed);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_false(armed);
}

/* Run as if time enough had passed since the last look; what it writes to stderr comes back in `said`. */
static bool is_armed_after_look(char *said, size_t size)
{
    int pipes[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipes), 0);
    assert_true(dup2(pipes[1], STDERR_FILENO) >= 0);
    atomic_store(&kprof_engine.process.looked_ns, 0);
    kprof_process_check_owner();
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    close(pipes[1]);
    ssize_t got = read(pipes[0], said, size - 1);
    said[got > 0 ? got : 0] = '\0';
    close(pipes[0]);
    return atomic_load(&kprof_engine.process.armed);
}

static int lose_kprof(void)
{
    char said[1024];
    const kprof_record record = {.type = KPROF_RECORD_END};
    kprof_spool_writer *spool = kprof_engine.process.spool;
    if (!is_armed_after_look(said, sizeof said) || said[0])
        return 1;
    kprof_process_check_owner(); /* it has just been looked for */
    if (owner_looks != 1)
        return 2;
    owner = KPROF_OWNER_UNKNOWN; /* as on a file system without locks */
    if (!is_armed_after_look(said, sizeof said))
        return 3;
    owner = KPROF_OWNER_GONE;
    if (is_armed_after_look(said, sizeof said) || !strstr(said, "kprof has ended") || !strstr(said, "kprof recover"))
        return 4;
    if (kprof_spool_write(spool, &record) == KPROF_OK) /* nobody reads it */
        return 5;
    return is_armed_after_look(said, sizeof said) || said[0] ? 6 : 0; /* said once */
}

/* In a forked child, which has a spool of its own. */
static void rearm(void)
{
    assert_int_equal(kprof_spool_writer_open(folder, &kprof_engine.process.spool), KPROF_OK);
    atomic_store(&kprof_engine.process.armed, true);
}

static int lose_kprof_in_child(void)
{
    rearm();
    int wrong = lose_kprof();
    kprof_spool_writer_close(kprof_engine.process.spool);
    return wrong;
}

TEST(test_kprof_is_killed)
{
    assert_child(lose_kprof_in_child, 0);
}

static int lose_folder(void)
{
    char said[1024];
    rearm();
    owner = KPROF_OWNER_UNKNOWN;
    folder_is_gone = true;
    return is_armed_after_look(said, sizeof said) || said[0];
}

/* kprof has ended in an orderly way, and said that this process still runs. */
TEST(test_session_is_removed)
{
    assert_child(lose_folder, 0);
}

AROUND_ALL(set_up, tear_down)
