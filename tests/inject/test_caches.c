/* What launches are told to have where their caches could not be flushed as asked. The engine runs on the simulated
 * machine. */
#include "engine_test.h"
#include "inject/batch.h"
#include "inject/engine.h"
#include "test.h"

#include <stdatomic.h>

static struct {
    bool no_space;         /* nothing can be flushed */
    const char *shortfall; /* of emptying; NULL: it does all */
    unsigned prepared;     /* how often emptying was */
    unsigned emptied, copied;
    unsigned sharing;   /* what the process shares besides */
    const char *writer; /* a device that writes memory with no call */
    bool busy;          /* the next wait within a window takes until the test lets it end */
    atomic_bool may_end;
} caches;

static kprof_status open_flush(kprof_flush **out)
{
    *out = NULL;
    return caches.no_space ? kprof_fail(KPROF_NO_MEMORY, "no space (test)") : sim_device.flush_open(out);
}

static void prepare_to_empty(kprof_flush *flush)
{
    caches.prepared++;
    sim_device.flush_prepare_to_empty(flush);
}

static kprof_status empty_caches(kprof_flush *flush, void *stream)
{
    caches.emptied++;
    return sim_device.flush_empty(flush, stream);
}

static kprof_status copy_to_flush(kprof_flush *flush, void *stream)
{
    caches.copied++;
    return sim_device.flush_run(flush, stream);
}

static kprof_status synchronize(void)
{
    if (caches.busy && kprof_batch_is_window()) {
        caches.busy = false;
        while (!atomic_load(&caches.may_end))
            usleep(1000);
    }
    return sim_device.target_synchronize();
}

static unsigned tell_sharing(void)
{
    return sim_device.target_sharing() | caches.sharing;
}

static const char *tell_writer(void)
{
    return caches.writer;
}

static const char *tell_shortfall(const kprof_flush *flush)
{
    return caches.shortfall;
}

/* The first launch in a context decides whether it has what flushing takes. */
static int new_context(void **state)
{
    close_batch();
    do_call((sim_step){.op = SIM_DESTROY_CONTEXT});
    sim_reset(1);
    sim.hooked = true;
    do_call((sim_step){.op = SIM_ALLOC, .a = SLOT});
    kprof_engine.process.config.cache_control = KPROF_CACHE_FLUSH_ALL;
    caches.no_space = false;
    caches.shortfall = NULL;
    caches.prepared = caches.emptied = caches.copied = 0;
    caches.sharing = 0;
    caches.writer = NULL;
    caches.busy = false;
    return 0;
}

TEST(test_emptied)
{
    unsigned first = launch(SIM_ADD);
    close_batch();
    assert_measured(first);
    assert_true(caches.prepared > 0);
}

TEST(test_emptied_in_part)
{
    caches.shortfall = "L2 was flushed by copying, not emptied: refused (test)";
    unsigned first = launch(SIM_ADD);
    close_batch();
    assert_report(first, METRICS,
                  "not all caches were emptied before the launch: L2 was flushed by copying, not emptied: refused");
}

/* The launch before is known to end. */
TEST(test_emptied_in_own_runs)
{
    (void)launch(SIM_PRINT); /* it is watched */
    assert_measured_once(launch(SIM_PRINT), "");
    assert_true(caches.prepared > 0 && caches.emptied > 0 && caches.copied == 0);
}

TEST(test_emptied_in_part_in_own_runs)
{
    caches.shortfall = "L2 was flushed by copying, not emptied: refused (test)";
    (void)launch(SIM_PRINT);
    assert_measured_once(launch(SIM_PRINT),
                         "; not all caches were emptied before the launch: L2 was flushed by copying, "
                         "not emptied: refused (test)");
}

#define COPIED "; before the launch L2 was flushed by copying, and other caches were left alone: "

/* How caches are emptied beside what writes then is only known of some GPUs. */
TEST(test_not_emptied_beside_others)
{
    caches.sharing = KPROF_SHARES_WITH_DEVICES;
    for (unsigned i = 0; i < 2; i++)
        (void)launch(SIM_ADD); /* they are watched */
    assert_measured_once(launch(SIM_ADD), COPIED "other devices or other processes may write memory meanwhile");
    caches.sharing = 0;
    caches.writer = "a network card (test)";
    assert_measured_once(launch(SIM_ADD), COPIED "other devices or other processes may write memory meanwhile");
    caches.writer = NULL;
    caches.sharing = KPROF_MAY_NOT_SAVE;
    assert_measured_once(launch(SIM_ADD), COPIED "the process has memory that kprof cannot save, or a green context");
    assert_true(caches.emptied == 0 && caches.copied == 3);
}

/* The window's other launches are not told so. */
TEST(test_not_emptied_while_the_gpu_is_busy)
{
    (void)launch(SIM_PRINT); /* it may be watched */
    unsigned before = launch(SIM_PRINT);
    caches.busy = true;
    atomic_store(&caches.may_end, false);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    unsigned slow = launch(SIM_PRINT);
    kprof_engine.waits.hold_ns = SIM_LONG_HOLD_NS;
    atomic_store(&caches.may_end, true);
    await_work();
    assert_measured_once(slow, COPIED "the GPU's work did not end within 0.1 s");
    assert_null(strstr(look_up(before).reason, "copying"));
    assert_int_equal(caches.copied, 1);
}

TEST(test_only_l2_in_own_runs)
{
    kprof_engine.process.config.cache_control = KPROF_CACHE_FLUSH_L2;
    (void)launch(SIM_PRINT);
    assert_measured_once(launch(SIM_PRINT), "");
    assert_true(caches.prepared == 0 && caches.emptied == 0 && caches.copied > 0);
}

TEST(test_only_l2)
{
    kprof_engine.process.config.cache_control = KPROF_CACHE_FLUSH_L2;
    caches.shortfall = "nothing";
    unsigned first = launch(SIM_ADD);
    close_batch();
    assert_measured(first);
    assert_int_equal(caches.prepared, 0);
}

TEST(test_no_space)
{
    caches.no_space = true;
    unsigned first = launch(SIM_ADD);
    close_batch();
    assert_report(first, METRICS, "caches were not flushed before the launch: no space (test)");
}

TEST(test_no_space_in_own_runs)
{
    caches.no_space = true;
    (void)launch(SIM_PRINT); /* it is watched */
    unsigned prints = launch(SIM_PRINT);
    assert_measured_once(prints, "; caches were not flushed before the launch: no space (test)");
}

static int start(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.flush_open = open_flush;
    device.flush_prepare_to_empty = prepare_to_empty;
    device.flush_empty = empty_caches;
    device.flush_run = copy_to_flush;
    device.flush_shortfall = tell_shortfall;
    device.target_sharing = tell_sharing;
    device.target_synchronize = synchronize;
    device.writers_devices = tell_writer;
    return start_engine_on(&device);
}

AROUND_EACH(new_context, NULL)
AROUND_ALL(start, remove_folder)
