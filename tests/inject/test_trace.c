/* Tests that a trace ends with all that it has, whatever other threads do at its end. The device records nothing, and
 * records are counted here instead of written. */
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/stacks.h"
#include "inject/trace.h"
#include "inject/wait.h"
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_bool holds;   /* the thread writes a name, and so has the lock of the trace */
static atomic_bool is_over; /* the trace is about to end */
static unsigned ends;       /* that were written */
static bool is_paused;

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static kprof_status activities_start(const kprof_activity_sink *wanted, kprof_activity_scope what)
{
    return KPROF_OK;
}

static size_t activities_flush(void)
{
    atomic_store(&is_over, true);
    return 0;
}

static void activities_pause(bool pauses)
{
    is_paused = pauses;
}

static bool activities_save(void)
{
    return true;
}

static int64_t activities_now_ns(void)
{
    return 1;
}

static const kprof_device_ops device = {.activities_start = activities_start,
                                        .activities_flush = activities_flush,
                                        .activities_pause = activities_pause,
                                        .activities_save = activities_save,
                                        .activities_now_ns = activities_now_ns};

/* In place of the engine's. */
void kprof_devices_announce(void) {}
void kprof_process_outlive_libraries(void) {}
bool kprof_idle_may_be_handler(void)
{
    return false;
}

void kprof_idle_watch(void) {}
kprof_status kprof_wait_at_most(void *context, int64_t limit_ns)
{
    return KPROF_OK;
}

uint32_t kprof_launch_stack(void)
{
    return 0;
}

void kprof_process_write(const kprof_record *record)
{
    ends += record->type == KPROF_RECORD_TRACED && record->traced.end_unix_ns >= 0;
    if (record->type != KPROF_RECORD_NAME)
        return;
    atomic_store(&holds, true);
    while (!atomic_load(&is_over))
        wait_ms(1);
    wait_ms(10); /* the end is given the time to give up */
}

static void *take_range(void *unused)
{
    kprof_trace_take_range(&(kprof_trace_range){.name = "step", .domain = "", .style = "PushPop", .start_ns = 1});
    return unused;
}

/* A forked child that uses NVTX does not wait for a thread that only its parent has. */
static int end_of_child(void)
{
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60); /* if it does */
        kprof_recording_forget();
        take_range(NULL);
        kprof_trace_lose_range();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

TEST(end_beside_a_thread_that_adds)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_range, NULL), 0);
    while (!atomic_load(&holds))
        wait_ms(1);
    assert_int_equal(end_of_child(), 0);
    kprof_trace_end();
    pthread_join(thread, NULL);
    assert_int_equal(ends, 1);
}

/* What is open as the process is disarmed is measured still, and CUPTI goes on to record. */
TEST(nothing_is_recorded_beside_the_last_passes)
{
    kprof_recording_hold();
    atomic_store(&kprof_engine.process.armed, false);
    kprof_recording_hold();
    kprof_recording_release(false);
    assert_true(is_paused);
    kprof_recording_release(false);
    assert_false(is_paused);
    kprof_recording_hold();
    assert_true(is_paused);
    kprof_recording_release(false);
    assert_false(is_paused);
    atomic_store(&kprof_engine.process.armed, true);
}

/* Launches that are measured are launched by kprof, too. */
TEST(calls_are_saved_in_a_trace_alone)
{
    assert_false(kprof_recording_save());
    kprof_engine.process.config.only_records = true;
    assert_true(kprof_recording_save());
    kprof_engine.process.config.only_records = false;
}

static int start(void **state)
{
    kprof_engine.device = &device;
    kprof_engine.process.config.traces = true;
    atomic_store(&kprof_engine.process.armed, true);
    return kprof_trace_start() == KPROF_OK ? 0 : -1;
}

AROUND_ALL(start, NULL)
