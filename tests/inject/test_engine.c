/* The engine on the simulated machine, where what the random programs cannot ask for goes wrong. All kernels are
 * launched in a process that shares memory with the host, so that they are watched before they are measured. */
#include "engine_test.h"

#include "cupti/snapshot.h"
#include "inject/contexts.h"
#include "inject/launch.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <time.h>

#define LATE_MS     1300 /* longer than the engine waits for a kernel */
#define STICKY_MS   200
#define SHARED_SLOT 0 /* in the same context as the other one */

/* What goes wrong. */
static struct {
    atomic_bool unsaved; /* memory cannot be saved */
    atomic_bool network; /* a network card may write memory */
    atomic_bool plugged; /* from when memory has been saved */
    atomic_bool late;    /* the next kernel takes long, if its memory is saved before it */
    atomic_bool busy;    /* the idle thread never finds the contexts idle */
    atomic_bool sticky;  /* giving the counters back takes long */
} faults;

static atomic_bool slow;      /* the next wait is */
static atomic_bool releasing; /* the counters are being given back */
static atomic_int snapshots;

/* Around the engine's own functions, and the simulated machine's: see CMakeLists.txt. */
bool __real_kprof_contexts_idle(void);
bool __wrap_kprof_contexts_idle(void);
void __real_kprof_profiler_release(kprof_profiler *profiler);
void __wrap_kprof_profiler_release(kprof_profiler *profiler);
void __real_kprof_snapshot_free(kprof_snapshot *snapshot);
void __wrap_kprof_snapshot_free(kprof_snapshot *snapshot);
kprof_status __real_kprof_snapshot_take(void *context, kprof_snapshot **out);
kprof_status __wrap_kprof_snapshot_take(void *context, kprof_snapshot **out);
kprof_status __real_kprof_target_synchronize(void);
kprof_status __wrap_kprof_target_synchronize(void);
bool __wrap_kprof_threads_others(bool names_tell);
const char *__wrap_kprof_writers_devices(void);

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

bool __wrap_kprof_contexts_idle(void)
{
    return !atomic_load(&faults.busy) && __real_kprof_contexts_idle();
}

void __wrap_kprof_profiler_release(kprof_profiler *profiler)
{
    bool sticks = atomic_load(&faults.sticky);
    atomic_store(&releasing, sticks);
    if (sticks)
        wait_ms(STICKY_MS);
    __real_kprof_profiler_release(profiler);
    atomic_store(&releasing, false);
}

void __wrap_kprof_snapshot_free(kprof_snapshot *snapshot)
{
    if (snapshot)
        atomic_fetch_sub(&snapshots, 1);
    __real_kprof_snapshot_free(snapshot);
}

kprof_status __wrap_kprof_snapshot_take(void *context, kprof_snapshot **out)
{
    if (atomic_load(&faults.unsaved))
        return kprof_fail(KPROF_UNSUPPORTED, "memory cannot be saved (test)");
    atomic_fetch_add(&snapshots, 1);
    if (atomic_exchange(&faults.plugged, false))
        atomic_store(&faults.network, true);
    atomic_store(&slow, atomic_exchange(&faults.late, false));
    return __real_kprof_snapshot_take(context, out);
}

kprof_status __wrap_kprof_target_synchronize(void)
{
    if (atomic_exchange(&slow, false))
        wait_ms(LATE_MS);
    return __real_kprof_target_synchronize();
}

bool __wrap_kprof_threads_others(bool names_tell)
{
    (void)names_tell;
    return false; /* a sanitizer may have its own */
}

const char *__wrap_kprof_writers_devices(void)
{
    return atomic_load(&faults.network) ? "a network card may write (test)" : NULL;
}

static int start_sharing(void **state)
{
    int result = start_engine(state);
    sim_call(&(sim_step){.op = SIM_ALLOC, .a = SHARED_SLOT, .shared = true}, NULL);
    return result;
}

static int mend(void **state)
{
    (void)state;
    atomic_store(&faults.unsaved, false);
    atomic_store(&faults.network, false);
    atomic_store(&faults.plugged, false);
    atomic_store(&faults.late, false);
    atomic_store(&faults.busy, false);
    atomic_store(&faults.sticky, false);
    return 0;
}

static void test_memory_that_cannot_be_saved(void **state)
{
    (void)state;
    atomic_store(&faults.unsaved, true);
    assert_unmeasured(launch(SIM_ADD), "its next ones are measured");
    assert_unmeasured(launch(SIM_ADD), "its next ones are measured");
    assert_measured_once(launch(SIM_ADD), "measured in one pass: memory cannot be saved (test)");
    assert_measured_once(launch(SIM_ADD), "measured in one pass: memory cannot be saved (test)");
    assert_unmeasured(launch_on(SIM_ADD, SHARED_SLOT), "the kernel takes host memory");
    atomic_store(&faults.unsaved, false);
    assert_measured(launch(SIM_ADD));
}

static void test_memory_that_a_network_card_writes(void **state)
{
    (void)state;
    atomic_store(&faults.network, true);
    assert_measured_once(launch(SIM_ADD), "measured in one pass: a network card may write (test)");
    assert_int_equal(atomic_load(&snapshots), 0);
    atomic_store(&faults.network, false);
    assert_measured(launch(SIM_ADD));
}

static void test_network_card_that_comes_later(void **state)
{
    (void)state;
    atomic_store(&faults.plugged, true);
    assert_unmeasured(launch(SIM_MOVE), "the launch was not repeated: a network card may write (test)");
    assert_int_equal(atomic_load(&snapshots), 0);
}

/* Its memory cannot be freed yet, since that would wait for it. */
static void launch_late(sim_kernel kernel)
{
    atomic_store(&faults.late, true);
    assert_unmeasured(launch(kernel), "did not end within 1 s");
    assert_int_equal(atomic_load(&snapshots), 1);
}

static void test_late_kernel_that_is_launched_again(void **state)
{
    (void)state;
    atomic_store(&faults.busy, true);
    launch_late(SIM_SCALE);
    for (unsigned i = 0; i < 200 && atomic_load(&snapshots) > 0; i++) {
        assert_unmeasured(launch(SIM_SCALE), "an earlier launch of the kernel did not end by itself");
        wait_ms(20);
    }
    assert_int_equal(atomic_load(&snapshots), 0);
}

static void test_late_kernel_and_nothing_after_it(void **state)
{
    (void)state;
    launch_late(SIM_SUM);
    for (unsigned i = 0; i < 500 && atomic_load(&snapshots) > 0; i++)
        wait_ms(20);
    assert_int_equal(atomic_load(&snapshots), 0);
}

/* As another process of the run that wants the counters does. */
static int want_counters(void)
{
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/gpu.wanted", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && flock(fd, LOCK_SH) == 0);
    return fd;
}

/* What ends after kprof takes CUPTI with it. */
static void test_end_while_counters_are_given_back(void **state)
{
    (void)state;
    atomic_store(&faults.sticky, true);
    assert_measured(launch(SIM_ADD));
    int wanted = want_counters();
    while (!atomic_load(&releasing))
        wait_ms(1);
    kprof_launch_stop();
    assert_false(atomic_load(&releasing));
    close(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_memory_that_cannot_be_saved, mend),
        cmocka_unit_test_teardown(test_memory_that_a_network_card_writes, mend),
        cmocka_unit_test_teardown(test_network_card_that_comes_later, mend),
        cmocka_unit_test_teardown(test_late_kernel_that_is_launched_again, mend),
        cmocka_unit_test_teardown(test_late_kernel_and_nothing_after_it, mend),
        cmocka_unit_test_teardown(test_end_while_counters_are_given_back,
                                  mend), /* the last: nothing is measured after */
    };
    return cmocka_run_group_tests(tests, start_sharing, remove_folder);
}
