/* Graphs that are measured as one launch each. The engine runs on the simulated machine, in a process that shares its
 * memory with nobody. */
#define GRAPHS KPROF_GRAPH_WHOLE
#include "engine_test.h"
#include "inject/engine.h"
#include "test.h"

/* Have a graph of three kernels, the last of which is `last`. */
static void capture(sim_kernel last)
{
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    unsigned first = launch(SIM_ADD);
    (void)launch(SIM_SWAP);
    (void)launch(last);
    do_call((sim_step){.op = SIM_END_CAPTURE});
    assert_pending(first); /* it did not run */
}

static unsigned launch_graph(bool unsaved)
{
    do_call((sim_step){.op = SIM_GRAPH_LAUNCH, .a = SLOT, .b = SLOT, .tag = ++last_tag, .unsaved = unsaved});
    return last_tag;
}

static void read_memory(uint64_t words[SIM_WORDS])
{
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT}, words), 0);
}

/* Kernels and graphs share a batch, and no replay leaves a trace. */
TEST(test_graph_among_launches)
{
    uint64_t before[SIM_WORDS], after[SIM_WORDS];
    capture(SIM_COUNT);
    unsigned first = launch(SIM_SCALE);
    unsigned graph = launch_graph(false), again = launch_graph(false);
    unsigned last = launch(SIM_ADD);
    read_memory(before); /* the first copy behind them, so that replays are tried */
    assert_pending(first);
    assert_pending(graph);
    close_batch();
    read_memory(after);
    assert_memory_equal(before, after, sizeof before);
    assert_measured(first);
    assert_measured(graph);
    assert_measured(again);
    assert_measured(last);
    graph = launch_graph(false);
    read_memory(before);
    assert_pending(graph);
    close_batch();
    assert_measured(graph);
}

/* The graph that is launched in replays must be the one that was launched then. */
TEST(test_graph_that_is_changed)
{
    kprof_call call = {.kind = KPROF_CALL_GRAPH_CHANGE, .name = "change of a graph", .context = &sim.contexts[0]};
    capture(SIM_ADD);
    unsigned graph = launch_graph(false);
    assert_pending(graph);
    sim.hooks->enter(&call);
    assert_measured(graph);
    sim.hooks->leave(&call);
}

TEST(test_graph_that_is_not_repeated)
{
    capture(SIM_PRINT);
    unsigned before = launch(SIM_ADD);
    unsigned graph = launch_graph(false);
    assert_measured(before);
    assert_measured_once(graph, "the graph cannot be replayed: it prints");
    graph = launch_graph(false);
    assert_measured_once(graph, "the graph cannot be replayed: it prints");
}

/* Found out when the batch is open, since that is when memory is saved. */
TEST(test_graph_whose_memory_is_not_saved)
{
    static const char why[] = "the graph sets or copies memory that a replay cannot restore";
    capture(SIM_ADD);
    assert_measured_once(launch_graph(true), why);
    unsigned before = launch(SIM_ADD);
    unsigned graph = launch_graph(true);
    assert_measured(before);
    assert_measured_once(graph, why);
    graph = launch_graph(false);
    close_batch();
    assert_measured(graph);
}

TEST(test_graph_that_may_wait)
{
    capture(SIM_PRINT);
    sim.awaits = true;
    for (unsigned ends = 0; ends < 2; ends++)
        assert_unmeasured(launch_graph(false), "a graph's first launches are only watched");
    assert_measured_once(launch_graph(false), "the graph cannot be replayed: it prints");
    sim.awaits = false;
}

/* Nothing may be synchronised meanwhile, and a captured launch does not run. */
TEST(test_graph_beside_a_capture)
{
    capture(SIM_ADD);
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE, .stream = 1});
    assert_unmeasured(launch_graph(false), "a stream was being captured");
    do_call((sim_step){.op = SIM_END_CAPTURE, .stream = 1});
}

/* They see nothing of a graph, and all of the launches beside it. */
TEST(test_counters_of_patched_code)
{
    uint32_t *patched = kprof_engine.process.config.chips[0].patched;
    patched[1] = 1;
    capture(SIM_ADD);
    unsigned graph = launch_graph(false), after = launch(SIM_ADD);
    close_batch();
    assert_report(graph, 1, "counters of code that is patched into kernels");
    assert_measured(after);
    patched[1] = 0;
}

AROUND_ALL(start_engine, remove_folder)
