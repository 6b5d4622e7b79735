/* Captures while a batch is open: it is closed before the first ones, and stays open over later ones where nothing ran
 * beside those. */
#include "engine_test.h"

#include "inject/captures.h"
#include "inject/engine.h"
#include "inject/exec.h"
#include "inject/launch.h"
#include "test.h"

#define OTHER_STREAM 1 /* of the same context */
#define MANAGED_SLOT 0

static int set_up(void **state)
{
    kprof_the_captures = (kprof_captures){0};
    close_batch();
    return 0;
}

/* A launch and a copy become nodes, and run nothing. */
static void begin(void)
{
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT});
    do_call((sim_step){.op = SIM_COPY, .a = SLOT, .b = SLOT});
}

static void end(void)
{
    do_call((sim_step){.op = SIM_END_CAPTURE});
}

static void capture(void)
{
    begin();
    end();
}

static unsigned launch_beside(void)
{
    sim_step step = {.op = SIM_LAUNCH, .kernel = SIM_ADD, .stream = OTHER_STREAM, .a = SLOT, .b = SLOT};
    step.tag = ++last_tag;
    do_call(step);
    return last_tag;
}

/* So that the next one leaves a batch open. */
static void make_known(void)
{
    for (unsigned i = 0; i < 3; i++)
        capture();
}

TEST(test_first_captures_close_the_batch)
{
    for (unsigned i = 0; i < 3; i++) {
        unsigned tag = launch(SIM_ADD);
        begin();
        assert_measured(tag);
        end();
    }
    unsigned before = launch(SIM_ADD);
    capture();
    assert_pending(before);
    unsigned after = launch(SIM_ADD);
    capture();
    assert_pending(before);
    close_batch();
    assert_measured(before);
    assert_measured(after);
}

TEST(test_what_runs_beside_a_capture)
{
    make_known();
    unsigned before = launch(SIM_ADD);
    begin();
    unsigned beside = launch_beside();
    end();
    assert_unmeasured(before, "a stream was being captured");
    assert_unmeasured(beside, "a stream was being captured");
    make_known(); /* in vain: a batch was lost */
    unsigned later = launch(SIM_ADD);
    begin();
    assert_measured(later);
    end();
}

TEST(test_memory_allocated_beside_a_capture)
{
    make_known();
    unsigned before = launch(SIM_ADD);
    begin();
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    end();
    assert_unmeasured(before, "a stream was being captured");
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* The memory goes later: the driver would wait for all work before it frees any. */
TEST(test_freed_memory_that_a_lost_batch_has_kept)
{
    make_known();
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned before = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    assert_pending(before);
    begin();
    launch_beside();
    assert_unmeasured(before, "a stream was being captured");
    end();
}

/* Nothing of kprof's takes its place meanwhile: to allocate that could end the capture. */
TEST(test_memory_freed_beside_a_capture)
{
    make_known();
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned before = launch(SIM_ADD);
    begin();
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    end();
    assert_unmeasured(before, "a stream was being captured");
}

/* The process may end before the capture does. */
TEST(test_exec_during_a_capture)
{
    make_known();
    unsigned before = launch(SIM_ADD);
    begin();
    kprof_launch_before(KPROF_BEFORE_EXEC);
    assert_unmeasured(before, "a stream was being captured");
    end();
}

/* Nobody has waited for its kernels, which may have ended in time. This test is the last, as the memory stays. */
TEST(test_managed_memory_of_a_lost_batch)
{
    make_known();
    sim.managed = true;
    do_call((sim_step){.op = SIM_ALLOC, .a = MANAGED_SLOT, .shared = true});
    unsigned before = launch(SIM_DICE);
    assert_pending(before);
    begin();
    launch_beside();
    end();
    assert_unmeasured(before, "a stream was being captured");
    unsigned later = launch(SIM_DICE);
    close_batch();
    assert_measured(later);
}

/* They run when their graph is launched, if ever. */
TEST(test_captured_launches_are_not_counted)
{
    uint64_t before = atomic_load(&kprof_engine.process.launches);
    capture();
    assert_int_equal(atomic_load(&kprof_engine.process.launches), before);
    launch(SIM_ADD);
    assert_int_equal(atomic_load(&kprof_engine.process.launches), before + 1);
}

/* The first captures of a program that launches beside them teach nothing. */
TEST(test_captures_that_are_not_quiet)
{
    for (unsigned i = 0; i < 5; i++) {
        begin();
        assert_unmeasured(launch_beside(), "a stream was being captured");
        end();
    }
    unsigned tag = launch(SIM_ADD);
    begin();
    assert_measured(tag);
    end();
}

/* Such a call may have ended no capture. */
TEST(test_ends_that_fail)
{
    const sim_step step = {.op = SIM_END_CAPTURE};
    for (unsigned i = 0; i < 3; i++) {
        kprof_call call = sim_describe(&step);
        sim.hooks->enter(&call);
        call.failed = true;
        sim.hooks->leave(&call);
    }
    unsigned tag = launch(SIM_ADD);
    begin();
    assert_measured(tag);
    end();
}

/* Launches of the batch, and those of the graph that was captured meanwhile, are repeated in their order. */
TEST(test_graph_captured_while_a_batch_is_open)
{
    make_known();
    unsigned before = launch(SIM_ADD);
    capture();
    do_call((sim_step){.op = SIM_GRAPH_LAUNCH, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    unsigned graph = last_tag, after = launch(SIM_SWAP);
    assert_pending(before);
    close_batch();
    assert_measured(before);
    assert_measured(sim_node_tag(graph, 0));
    assert_measured(after);
}

AROUND_EACH(set_up, NULL)
AROUND_ALL(start_engine, remove_folder)
