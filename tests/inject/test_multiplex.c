/* Samples where memory of the host runs out, or where the process ends. The engine runs on the simulated machine. */
#include "engine_test.h"
#include "inject/batch.h"
#include "inject/gate.h"
#include "inject/launch.h"
#include "test.h"

#define GROUPS 200 /* more than fit without more memory */

static size_t refused_bytes; /* allocations of at least as much fail; 0: none */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    bool is_table = size == sizeof(void *) && count >= 64;
    return is_table && refused_bytes && count * size >= refused_bytes ? NULL : __real_calloc(count, size);
}

/* Each launch here has a shape of its own. Those that are told apart already are measured all the same. */
TEST(test_no_memory_for_more_groups)
{
    (void)launch(SIM_PRINT); /* it is watched */
    refused_bytes = 128 * sizeof(void *);
    unsigned first = launch(SIM_PRINT), last = 0;
    for (unsigned i = 1; i < GROUPS; i++)
        last = launch(SIM_PRINT);
    refused_bytes = 0;
    end_samples();
    assert_report(first, 1, "measured in 1 of 2 passes");
    assert_true(look_up(last).count <= 1);
}

/* CUDA ends its contexts then, within the handler. */
TEST(test_context_that_ends_within_a_replay)
{
    (void)launch(SIM_PRINT);
    unsigned open = launch(SIM_PRINT);
    assert_true(kprof_batch_is_open());
    assert_true(kprof_gate_enter_exclusive(1000));
    kprof_launch_stop();
    sim.hooks->context_ending(&sim.contexts[0]);
    assert_true(kprof_batch_is_open());
    assert_pending(open);
    kprof_gate_leave_exclusive();
    kprof_launch_prepare(); /* as if nothing had been */
    close_batch();
}

/* The application's signal handler exits while its thread may be evaluating samples: these are left alone.
 * The last test: nothing is measured after. */
TEST(test_end_within_a_replay)
{
    unsigned open = launch(SIM_PRINT);
    close_batch();
    assert_true(kprof_gate_enter_exclusive(1000));
    kprof_batch_close("a test");
    kprof_launch_finish();
    assert_pending(open);
    kprof_gate_leave_exclusive();
    kprof_launch_finish();
    assert_report(open, 1, "measured in 1 of 2 passes");
}

AROUND_ALL(start_engine, remove_folder)
