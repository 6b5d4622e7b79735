/* The engine on the simulated machine, where what the random programs cannot ask for goes wrong. All kernels are
 * launched in a process that shares memory with the host, so that they are watched before they are measured. */
#include "core/config.h"
#include "cupti/snapshot.h"
#include "inject/contexts.h"
#include "inject/launch.h"
#include "inject/process.h"
#include "sim/device.h"
#include "spool/spool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LATE_MS     1300 /* longer than the engine waits for a kernel */
#define STICKY_MS   200
#define PASSES      2
#define SHARED_SLOT 0
#define SLOT        2 /* in the same context, for the device alone */

static char folder[] = "/tmp/kprof-engine-XXXXXX";
static unsigned last_tag;

/* What goes wrong. */
static struct {
    atomic_bool unsaved; /* memory cannot be saved */
    atomic_bool network; /* a network card may write memory */
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

static void save_config(void)
{
    uint8_t image[4] = {0};
    uint32_t last_passes[PASSES] = {0, 1};
    kprof_chip_metrics chip = {.chip = "GH100",
                               .last_passes = last_passes,
                               .config_image = image,
                               .config_image_size = sizeof image,
                               .pass_count = PASSES};
    kprof_config config = {.chips = &chip,
                           .chip_count = 1,
                           .cache_control = KPROF_CACHE_FLUSH_NONE,
                           .witness_control = KPROF_WITNESSES_AUTO,
                           .follow_children = true};
    assert_true(kprof_strlist_add(&chip.metrics, "m0") && kprof_strlist_add(&chip.metrics, "m1"));
    assert_int_equal(kprof_config_save(&config, folder), KPROF_OK);
    kprof_strlist_free(&chip.metrics);
}

static int start_engine(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    save_config();
    setenv(KPROF_SESSION_ENV, folder, 1);
    sim.capacity = 64;
    sim.second_chip = "GH100";
    kprof_process_start();
    sim_reset(1);
    sim.hooked = true;
    sim_call(&(sim_step){.op = SIM_ALLOC, .a = SHARED_SLOT, .shared = true}, NULL);
    sim_call(&(sim_step){.op = SIM_ALLOC, .a = SLOT}, NULL);
    return atomic_load(&kprof_this_process.armed) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static int mend(void **state)
{
    (void)state;
    atomic_store(&faults.unsaved, false);
    atomic_store(&faults.network, false);
    atomic_store(&faults.late, false);
    atomic_store(&faults.busy, false);
    atomic_store(&faults.sticky, false);
    return 0;
}

/* Launch a kernel on memory of slot `a` too; the launch's number. */
static unsigned launch_on(sim_kernel kernel, unsigned a)
{
    sim_step step = {.op = SIM_LAUNCH, .kernel = kernel, .a = a, .b = SLOT, .tag = ++last_tag};
    assert_int_equal(sim_call(&step, NULL), 0);
    return last_tag;
}

static unsigned launch(sim_kernel kernel)
{
    return launch_on(kernel, SLOT);
}

/* The reason that is reported with a launch; how many values it has. */
static unsigned look_up(unsigned tag, char reason[512])
{
    char path[sizeof folder + 64];
    kprof_spool_reader *reader;
    kprof_record record;
    unsigned found = 0, values = 0;
    snprintf(path, sizeof path, "%s/%d-0.spool", folder, (int)getpid());
    assert_int_equal(kprof_spool_reader_open(path, &reader), KPROF_OK);
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD) {
        if (record.type != KPROF_RECORD_LAUNCH || record.launch.grid[0] != tag)
            continue;
        found++;
        values = record.launch.value_count;
        snprintf(reason, 512, "%s", record.launch.reason);
    }
    kprof_spool_reader_close(reader);
    assert_int_equal(found, 1);
    return values;
}

static void assert_unmeasured(unsigned tag, const char *why)
{
    char reason[512];
    assert_int_equal(look_up(tag, reason), 0);
    assert_non_null(strstr(reason, why));
}

static void assert_measured(unsigned tag, const char *how)
{
    char reason[512];
    assert_int_equal(look_up(tag, reason), 2);
    assert_non_null(strstr(reason, how));
}

static void test_memory_that_cannot_be_saved(void **state)
{
    (void)state;
    atomic_store(&faults.unsaved, true);
    assert_unmeasured(launch(SIM_ADD), "its next ones are measured");
    assert_unmeasured(launch(SIM_ADD), "its next ones are measured");
    assert_measured(launch(SIM_ADD), "measured in one pass: memory cannot be saved (test)");
    assert_measured(launch(SIM_ADD), "measured in one pass: memory cannot be saved (test)");
    assert_unmeasured(launch_on(SIM_ADD, SHARED_SLOT), "the kernel takes host memory");
    atomic_store(&faults.unsaved, false);
    char reason[512];
    assert_int_equal(look_up(launch(SIM_ADD), reason), 2);
    assert_string_equal(reason, "");
}

static void test_memory_that_a_network_card_writes(void **state)
{
    (void)state;
    atomic_store(&faults.network, true);
    assert_measured(launch(SIM_ADD), "measured in one pass: a network card may write (test)");
    assert_int_equal(atomic_load(&snapshots), 0);
    atomic_store(&faults.network, false);
    char reason[512];
    assert_int_equal(look_up(launch(SIM_ADD), reason), 2);
    assert_string_equal(reason, "");
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
    assert_measured(launch(SIM_ADD), "");
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
        cmocka_unit_test_teardown(test_late_kernel_that_is_launched_again, mend),
        cmocka_unit_test_teardown(test_late_kernel_and_nothing_after_it, mend),
        cmocka_unit_test_teardown(test_end_while_counters_are_given_back,
                                  mend), /* the last: nothing is measured after */
    };
    return cmocka_run_group_tests(tests, start_engine, remove_folder);
}
