/* Batches of one pass, of which nothing is saved or repeated: what may keep them from being measured all the same. The
 * engine runs on the simulated machine. */
#define PASSES 1
#include "engine_test.h"

#define OTHER_STREAM  2 /* of the second context */
#define OTHER_CONTEXT (&sim.contexts[1])

static int end_other_context(void **state)
{
    (void)state;
    sim_call(&(sim_step){.op = SIM_RELEASE, .stream = OTHER_STREAM}, NULL);
    sim_call(&(sim_step){.op = SIM_DESTROY_CONTEXT, .stream = OTHER_STREAM}, NULL);
    return 0;
}

static void test_launches_together(void **state)
{
    (void)state;
    uint64_t words[SIM_WORDS];
    unsigned first = launch(SIM_ADD), second = launch(SIM_ADD);
    assert_int_equal(look_up(first).count, 0);
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT}, words), 0);
    assert_string_equal(look_up(first).reason, "");
    assert_string_equal(look_up(second).reason, "");
}

/* By an event a launch may wait for work there that waits for the host, which waits for the launch call to return. */
static void test_other_context_that_waits_for_the_host(void **state)
{
    (void)state;
    sim.hooks->context_created(OTHER_CONTEXT);
    sim.holds = 1;
    sim_call(&(sim_step){.op = SIM_HOLD, .stream = OTHER_STREAM}, NULL);
    sim_call(&(sim_step){.op = SIM_RECORD, .stream = OTHER_STREAM}, NULL);
    unsigned first = launch(SIM_ADD);
    sim_call(&(sim_step){.op = SIM_STREAM_WAIT, .from = OTHER_STREAM}, NULL);
    unsigned second = launch(SIM_ADD);
    assert_unmeasured(first, "the GPU's work did not end within 1 s");
    assert_unmeasured(second, "the GPU's work did not end within 1 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches_together),
        cmocka_unit_test_teardown(test_other_context_that_waits_for_the_host, end_other_context),
    };
    return cmocka_run_group_tests(tests, start_engine, remove_folder);
}
