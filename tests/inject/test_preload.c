/* Libraries are loaded beside the application, but not beside its end, and only where they are needed. */
#include "cupti/profiler.h"
#include "inject/engine.h"
#include "inject/preload.h"
#include "test.h"

#include <stdatomic.h>
#include <time.h>

/* In place of the engine's and of CUPTI's. */
static atomic_uint begun, loaded;

static void profiler_preload(void)
{
    struct timespec time = {0, 50000000};
    atomic_fetch_add(&begun, 1);
    nanosleep(&time, NULL);
    atomic_fetch_add(&loaded, 1);
}

static const kprof_device_ops device_ops = {.profiler_preload = profiler_preload};

static int set_up(void **state)
{
    static kprof_chip_metrics chips[2];
    chips[1].pass_count = 3;
    kprof_engine.process.config = (kprof_config){.chips = chips, .chip_count = 2};
    atomic_store(&begun, 0);
    atomic_store(&loaded, 0);
    return 0;
}

TEST(test_the_end_waits)
{
    kprof_preload_end(); /* for nothing */
    kprof_preload_start();
    kprof_preload_end();
    assert_int_equal(atomic_load(&loaded), 1);
    kprof_preload_end();
}

TEST(test_not_where_no_counters_are_measured)
{
    kprof_engine.process.config.chip_count = 1;
    kprof_preload_start();
    kprof_preload_end();
    assert_int_equal(atomic_load(&begun), 0);
}

int main(void)
{
    kprof_engine.device = &device_ops;
    around_each(set_up, NULL);
    return run_all_tests();
}
