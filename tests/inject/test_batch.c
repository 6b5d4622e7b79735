/* When a batch closes, is not repeated or is given up. The engine runs on the simulated machine, in a process that
 * shares its memory with nobody, so that launches wait together for the call that closes their batch. Long times pass
 * without waiting for them. */
#include "engine_test.h"

#include "cupti/operation.h"
#include "sim/clock.h"

#include <stdatomic.h>

#define PAGEABLE_SLOT  4 /* as the other one, but the host's: kernels take it all the same */
#define LONG_S         1000
#define MAX_OPEN_S     10
#define MOST_TRANSFERS 12 /* in a row */
#define OTHER_STREAM   2  /* of the second context */
#define OTHER_CONTEXT  (&sim.contexts[1])

static struct {
    atomic_int launch_s; /* the next launch that is repeated takes so long */
    atomic_int wait_s;   /* the next wait after one does */
    atomic_bool network; /* a network card may write memory */
} faults;

static atomic_int next_wait_s;
static unsigned measured_again; /* launches and transfers that were repeated in a pass */

/* Around the engine's own functions, and the simulated machine's: see CMakeLists.txt. */
bool __wrap_kprof_contexts_idle(void);
kprof_status __real_kprof_operation_run(const kprof_operation *operation);
kprof_status __wrap_kprof_operation_run(const kprof_operation *operation);
kprof_status __real_kprof_target_synchronize(void);
kprof_status __wrap_kprof_target_synchronize(void);
const char *__wrap_kprof_writers_devices(void);

bool __wrap_kprof_contexts_idle(void)
{
    return false; /* else a pause of the test would close its batch */
}

kprof_status __wrap_kprof_operation_run(const kprof_operation *operation)
{
    measured_again += sim.contexts[0].armed != NULL;
    sim_clock_advance_s(atomic_exchange(&faults.launch_s, 0));
    atomic_fetch_add(&next_wait_s, atomic_exchange(&faults.wait_s, 0));
    return __real_kprof_operation_run(operation);
}

kprof_status __wrap_kprof_target_synchronize(void)
{
    sim_clock_advance_s(atomic_exchange(&next_wait_s, 0));
    return __real_kprof_target_synchronize();
}

const char *__wrap_kprof_writers_devices(void)
{
    return atomic_load(&faults.network) ? "a network card may write (test)" : NULL;
}

static int mend(void **state)
{
    (void)state;
    atomic_store(&faults.launch_s, 0);
    atomic_store(&faults.wait_s, 0);
    atomic_store(&faults.network, false);
    measured_again = 0;
    return 0;
}

/* Memory as the host sees it, in a call that closes the batch. */
static void read_memory(uint64_t words[SIM_WORDS])
{
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT}, words), 0);
}

/* By two launches of a kernel that doubles its memory, once each. */
static void assert_doubled_twice(const uint64_t before[SIM_WORDS])
{
    uint64_t after[SIM_WORDS];
    read_memory(after);
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(after[i] == 4 * before[i]);
}

static void test_repetition_that_takes_far_longer(void **state)
{
    (void)state;
    uint64_t before[SIM_WORDS];
    read_memory(before);
    unsigned first = launch(SIM_ADD), second = launch(SIM_ADD);
    atomic_store(&faults.launch_s, LONG_S);
    assert_doubled_twice(before);
    assert_int_equal(measured_again, 1);
    assert_measured_once(first, "the replay was abandoned");
    assert_measured_once(second, "the replay was abandoned");
}

static void test_repetition_whose_end_takes_far_longer(void **state)
{
    (void)state;
    uint64_t before[SIM_WORDS];
    read_memory(before);
    unsigned first = launch(SIM_ADD), second = launch(SIM_ADD);
    atomic_store(&faults.wait_s, LONG_S);
    assert_doubled_twice(before);
    assert_measured_once(first, "the replay was abandoned");
    assert_measured_once(second, "the replay was abandoned");
}

static void test_repetition_that_takes_a_little_longer(void **state)
{
    (void)state;
    uint64_t before[SIM_WORDS];
    read_memory(before);
    unsigned first = launch(SIM_ADD), second = launch(SIM_ADD);
    sim_clock_advance_s(LONG_S);
    atomic_store(&faults.launch_s, 5 * LONG_S);
    assert_doubled_twice(before);
    assert_measured(first);
    assert_measured(second);
}

/* What it wrote since memory was saved stays. */
static void test_network_card_that_comes_later(void **state)
{
    (void)state;
    uint64_t words[SIM_WORDS];
    unsigned tag = launch(SIM_ADD);
    sim_call(&(sim_step){.op = SIM_SYNC_STREAM}, NULL);
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = SLOT, .value = 7}, NULL);
    atomic_store(&faults.network, true);
    read_memory(words);
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(words[i] == sim_hash(7, i));
    assert_measured_once(tag, "the launch was not repeated: a network card may write (test)");
}

/* A process that is killed loses no more. */
static void test_batch_that_has_been_open_for_long(void **state)
{
    (void)state;
    unsigned first = launch(SIM_ADD);
    assert_int_equal(look_up(first).count, 0);
    sim_clock_advance_s(MAX_OPEN_S + 1);
    unsigned second = launch(SIM_ADD);
    assert_measured(first);
    assert_measured(second);
}

static void set_memory(uint64_t value)
{
    assert_int_equal(sim_call(&(sim_step){.op = SIM_MEMSET, .a = SLOT, .value = value}, NULL), 0);
}

/* All three are repeated together. */
static void test_transfer_between_launches(void **state)
{
    (void)state;
    uint64_t words[SIM_WORDS];
    unsigned first = launch(SIM_ADD);
    set_memory(7);
    unsigned second = launch(SIM_ADD);
    assert_int_equal(look_up(first).count, 0);
    read_memory(words);
    assert_int_equal(measured_again, 3);
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(words[i] == 2 * sim_hash(7, i));
    assert_measured(first);
    assert_measured(second);
}

/* To repeat more of them costs more than another batch. */
static void test_many_transfers(void **state)
{
    (void)state;
    unsigned first = launch(SIM_ADD);
    for (unsigned i = 0; i < MOST_TRANSFERS; i++)
        set_memory(i);
    assert_int_equal(look_up(first).count, 0);
    set_memory(7);
    assert_measured(first);
    assert_int_equal(measured_again, 1 + MOST_TRANSFERS);
}

/* No call tells that the host has it. */
static void test_pageable_memory(void **state)
{
    (void)state;
    sim_call(&(sim_step){.op = SIM_ALLOC, .a = PAGEABLE_SLOT, .shared = true}, NULL);
    sim.shares_memory = false;
    unsigned before = launch(SIM_ADD);
    assert_unmeasured(launch_on(SIM_ADD, PAGEABLE_SLOT), "the kernel takes pageable host memory");
    assert_measured(before);
}

static int end_other_context(void **state)
{
    (void)state;
    sim_call(&(sim_step){.op = SIM_RELEASE, .stream = OTHER_STREAM}, NULL);
    sim_call(&(sim_step){.op = SIM_DESTROY_CONTEXT, .stream = OTHER_STREAM}, NULL);
    return 0;
}

/* Its kernels may write the memory that is to be saved. */
static void test_other_context_that_is_at_work(void **state)
{
    (void)state;
    uint64_t words[SIM_WORDS];
    sim.hooks->context_created(OTHER_CONTEXT);
    unsigned tag = launch(SIM_ADD);
    read_memory(words);
    assert_measured(tag);
    sim.holds = 1;
    sim_call(&(sim_step){.op = SIM_HOLD, .stream = OTHER_STREAM}, NULL);
    tag = launch(SIM_ADD);
    read_memory(words);
    assert_unmeasured(tag, "the GPU's work did not end within 1 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_repetition_that_takes_far_longer, mend),
        cmocka_unit_test_teardown(test_repetition_whose_end_takes_far_longer, mend),
        cmocka_unit_test_teardown(test_repetition_that_takes_a_little_longer, mend),
        cmocka_unit_test_teardown(test_network_card_that_comes_later, mend),
        cmocka_unit_test_teardown(test_batch_that_has_been_open_for_long, mend),
        cmocka_unit_test_teardown(test_transfer_between_launches, mend),
        cmocka_unit_test_teardown(test_many_transfers, mend),
        cmocka_unit_test(test_pageable_memory),
        cmocka_unit_test_teardown(test_other_context_that_is_at_work, end_other_context),
    };
    return cmocka_run_group_tests(tests, start_engine, remove_folder);
}
