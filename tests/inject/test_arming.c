/* What calls find that are under way while kprof ctl stops or begins to measure, and what a child finds that was forked
 * then. The engine runs on the simulated machine. */
#include "engine_test.h"

#include "core/control.h"
#include "core/folder.h"
#include "inject/arming.h"
#include "inject/idle.h"
#include "inject/launch_state.h"
#include "inject/range.h"
#include "test.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*meanwhile)(void); /* runs once, where the next call looks whether a stream is captured */

static bool is_capturing(void)
{
    void (*const run)(void) = meanwhile;
    meanwhile = NULL;
    if (run)
        run();
    return sim_device.target_capturing();
}

/* As inject/arming.c does with the gate held. */
static void set_armed(bool armed)
{
    assert_true(kprof_gate_enter_exclusive(0));
    atomic_store(&kprof_engine.process.armed, armed);
    atomic_store(&kprof_engine.process.waits, !armed);
    atomic_store(&kprof_the_launches.settled, !armed);
    kprof_gate_leave_exclusive();
}

static void stop(void)
{
    set_armed(false);
}

static int arm_again(void **state)
{
    set_armed(true);
    return 0;
}

/* CUPTI tells of the launch as it enters, and of its end no more: nothing must wait for that. */
TEST_WITH(test_launch_that_enters_as_measuring_stops, NULL, arm_again)
{
    const sim_step step = {.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT, .tag = ++last_tag};
    kprof_call call = sim_describe(&step);
    meanwhile = stop;
    sim.hooks->enter(&call);
    assert_null(meanwhile);
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
    sim.hooks->leave(&call); /* where CUPTI does tell of it */
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

static bool is_late; /* a launch enters that CUPTI was about to tell of when its callbacks were turned off */

static kprof_status follow(bool follows)
{
    const sim_step step = {.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT, .tag = last_tag};
    const kprof_call call = sim_describe(&step);
    if (is_late && follows)
        sim.hooks->enter(&call);
    is_late = false;
    return sim_device.target_follow(follows);
}

/* Nobody is told of the launch's end, as the callbacks are still off then. */
TEST_WITH(test_launch_that_is_told_late, NULL, arm_again)
{
    const kprof_control_wish wish = {1, true, 0};
    set_armed(false);
    is_late = true;
    assert_int_equal(kprof_arming_follow(&wish), KPROF_CONTROL_ARMED);
    assert_false(is_late);
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

/* A child that is forked within a range may end it. The engine stays as it is there: no thread begins, and no lock of
 * the parent's is waited for. */
TEST(test_range_that_ends_in_a_forked_child)
{
    int status = 0;
    kprof_engine.process.config.replay_choice = KPROF_RANGES;
    assert_true(kprof_range_begin("", "forward", "", 0));
    (void)launch(SIM_ADD);
    assert_int_equal(atomic_load(&kprof_the_range.phase), KPROF_RANGE_MEASURED);
    const pid_t child = fork();
    if (child == 0) {
        kprof_range_end();
        _exit(atomic_load(&kprof_the_idle.running) || atomic_load(&kprof_the_idle.held));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    kprof_range_end();
    assert_int_equal(atomic_load(&kprof_the_range.phase), KPROF_RANGE_NONE);
    kprof_engine.process.config.replay_choice = 0;
}

static int start(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.target_capturing = is_capturing;
    device.target_follow = follow;
    return start_engine_on(&device);
}

static bool has_no_threads;

int __real_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *user);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *user);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *user)
{
    return has_no_threads ? EAGAIN : __real_pthread_create(out, how, run, user);
}

/* kprof ctl is answered that the process takes no commands, and does not wait for it. */
TEST(test_no_thread_to_be_had)
{
    const char *reason;
    kprof_control control;
    has_no_threads = true;
    const kprof_status status = kprof_arming_start();
    has_no_threads = false;
    assert_int_equal(status, KPROF_NO_MEMORY);
    const int session = kprof_folder_open(kprof_engine.process.session_dir, &reason);
    assert_true(session >= 0);
    assert_false(kprof_control_read(session, getpid(), &control));
    close(session);
}

AROUND_ALL(start, remove_folder)
