/* Graphs whose kernels are measured one by one, with copies from and to the host among them. The engine runs on the
 * simulated machine, in a process that shares its memory with nobody. */
#include "engine_test.h"

#include "inject/batch.h"
#include "inject/contexts.h"
#include "inject/engine.h"
#include "inject/kernels.h"
#include "inject/wait.h"
#include "test.h"

#define OTHER_STREAM  1 /* of the same context */
#define SECOND_STREAM 2 /* of the second context, on another device */
#define SECOND_SLOT   1

enum { IN, ADD, SWAP, DICE, OUT, SET };

static unsigned node_count;

static void capture(const unsigned *nodes, unsigned count)
{
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    for (unsigned i = 0; i < count; i++) {
        static const sim_op ops[] = {SIM_COPY_IN, SIM_LAUNCH, SIM_LAUNCH, SIM_LAUNCH, SIM_COPY_OUT, SIM_MEMSET};
        sim_kernel kernel = nodes[i] == SWAP ? SIM_SWAP : nodes[i] == DICE ? SIM_DICE : SIM_ADD;
        do_call((sim_step){.op = ops[nodes[i]], .kernel = kernel, .a = SLOT, .b = SLOT});
    }
    do_call((sim_step){.op = SIM_END_CAPTURE});
    node_count = count;
}

#define CAPTURE(...)                                                                                                   \
    capture((const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

static unsigned launch_graph(void)
{
    do_call((sim_step){.op = SIM_GRAPH_LAUNCH, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    return last_tag;
}

static void fill_buffer(uint64_t value)
{
    sim_call(&(sim_step){.op = SIM_BUFFER_WRITE, .value = value}, NULL);
}

static uint64_t read_buffer(void)
{
    uint64_t words[SIM_WORDS];
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    sim_call(&(sim_step){.op = SIM_BUFFER_READ}, words);
    return words[0];
}

/* Each kernel among the graph's nodes. */
static void assert_nodes_measured(unsigned graph)
{
    unsigned measured = 0;
    for (unsigned i = 0; i < node_count; i++)
        if (look_up(sim_node_tag(graph, i)).count > 0) {
            assert_measured(sim_node_tag(graph, i));
            measured++;
        }
    assert_true(measured > 0);
}

static void assert_node_pending(unsigned graph, unsigned node)
{
    assert_pending(sim_node_tag(graph, node));
}

static void forget_comparison(kprof_kernel *kernel)
{
    atomic_store(&kernel->compared, false);
}

static void trust(kprof_kernel *kernel)
{
    atomic_store(&kernel->compared, true);
}

static bool no_space; /* for the next copy of a graph */

static kprof_operation *copy_operation(const kprof_call *call, kprof_snapshot *snapshot)
{
    bool fails = no_space && call->kind == KPROF_CALL_TRANSFER;
    no_space = no_space && !fails;
    return fails ? NULL : sim_device.operation_copy(call, snapshot);
}

static const char *refusal; /* of the next graphs; NULL: they are not refused */

static const kprof_graph_call *target_graph(const kprof_call *call, size_t *count, const char **why)
{
    const kprof_graph_call *nodes = sim_device.target_graph(call, count, why);
    if (refusal)
        *why = refusal;
    return refusal ? NULL : nodes;
}

static unsigned named; /* graphs, with whose names the variables of their modules become known */

static bool name_graph(const kprof_call *call, kprof_call *out)
{
    named++;
    return sim_device.target_name_graph(call, out);
}

static int start(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.operation_copy = copy_operation;
    device.target_graph = target_graph;
    device.target_name_graph = name_graph;
    return start_engine_on(&device);
}

static int mend(void **state)
{
    let_go(OTHER_STREAM);
    close_batch();
    sim.pageable = sim.tells = sim.changes_stream = false;
    kprof_profiled_context *profiled = (kprof_profiled_context *)kprof_contexts_find(&sim.contexts[0]);
    profiled->diverges = false;
    profiled->comparisons = 0;
    kprof_kernels_visit(forget_comparison);
    return 0;
}

/* Replays find what each launch copied from the host, whatever the host has written there since, and the graph itself.
 * They change nothing that the host has. */
TEST(test_copies_among_kernels)
{
    CAPTURE(IN, ADD, SWAP, OUT);
    fill_buffer(5);
    unsigned first = launch_graph();
    assert_node_pending(first, 1); /* the copy to the host is the first one behind the kernels: it was tried */
    uint64_t output = read_buffer();
    assert_int_not_equal(output, 5);
    fill_buffer(6);
    unsigned second = launch_graph();
    assert_node_pending(second, 1);
    assert_int_not_equal(read_buffer(), output);
    fill_buffer(5);
    unsigned third = launch_graph(), last = launch(SIM_ADD);
    assert_node_pending(second, 1);
    assert_int_equal(read_buffer(), output);
    close_batch();
    assert_nodes_measured(first);
    assert_nodes_measured(second);
    assert_nodes_measured(third);
    assert_measured(last);
    assert_int_equal(read_buffer(), output);
}

/* The host has acted upon what it got when the graph had ended, and not before. */
TEST(test_kernel_that_computes_something_else)
{
    CAPTURE(DICE, OUT, OUT);
    unsigned graph = launch_graph();
    (void)launch(SIM_ADD);
    assert_nodes_measured(graph);
    assert_true(kprof_contexts_find(&sim.contexts[0])->diverges);
    CAPTURE(OUT, DICE, OUT);
    unsigned before = launch(SIM_ADD);
    graph = launch_graph(); /* from now on a batch ends behind each such graph */
    assert_measured(before);
    assert_nodes_measured(graph);
}

TEST(test_graph_that_shows_a_difference)
{
    (void)launch(SIM_ADD);
    close_batch();
    kprof_kernels_visit(trust);
    ((kprof_profiled_context *)kprof_contexts_find(&sim.contexts[0]))->comparisons = 4;
    CAPTURE(DICE, OUT);
    unsigned graph = launch_graph(), behind = launch(SIM_ADD);
    assert_node_pending(graph, 0);
    close_batch();
    assert_nodes_measured(graph);
    assert_unmeasured(behind, "a replay computed something else");
    graph = launch_graph();
    assert_nodes_measured(graph);
    behind = launch(SIM_ADD);
    close_batch();
    assert_measured(behind);
}

/* What the host got is not there any more when the graph has ended, so that it is not compared. */
TEST(test_output_that_is_written_over)
{
    CAPTURE(ADD, OUT, SET);
    for (unsigned i = 0; i < 3; i++)
        assert_nodes_measured(launch_graph());
    CAPTURE(DICE, OUT, SET, ADD);
    assert_nodes_measured(launch_graph());
    assert_false(kprof_contexts_find(&sim.contexts[0])->diverges);
}

/* What the graph has copied to the host before is not there when the graph is launched. */
TEST(test_input_that_the_graph_writes)
{
    CAPTURE(ADD, OUT, IN);
    unsigned before = launch(SIM_ADD), graph = launch_graph();
    assert_measured(before);
    assert_node_pending(graph, 0); /* it is never told of */
    close_batch();
    assert_node_pending(graph, 0);
}

/* The driver may read it at once. */
TEST(test_pageable_memory)
{
    sim.pageable = true;
    CAPTURE(IN, ADD, OUT);
    unsigned only = launch_graph();
    close_batch();
    assert_nodes_measured(only);
    unsigned first = launch(SIM_ADD), second = launch_graph();
    assert_node_pending(second, 1);
    close_batch();
    assert_measured(first);
    assert_nodes_measured(second);
    (void)launch(SIM_ADD);
    hold(OTHER_STREAM);
    second = launch_graph();
    assert_unmeasured(sim_node_tag(second, 1), "the GPU's work did not end within 0.1 s");
}

/* What its last launch has copied to the host may still be being kept there. */
TEST(test_graph_in_another_stream)
{
    CAPTURE(ADD, OUT);
    unsigned first = launch_graph();
    close_batch();
    assert_nodes_measured(first);
    sim.changes_stream = true;
    (void)launch(SIM_ADD);
    hold(OTHER_STREAM);
    unsigned graph = launch_graph();
    assert_unmeasured(sim_node_tag(graph, 0), "the GPU's work did not end within 0.1 s");
}

/* By a function of the host, say, which may write the memory that the graph has copied. */
TEST(test_host_that_is_told)
{
    sim.tells = true;
    CAPTURE(IN, ADD, OUT);
    unsigned first = launch_graph(), graph = launch_graph();
    assert_node_pending(graph, 1);
    close_batch();
    assert_nodes_measured(first);
    assert_nodes_measured(graph);
    (void)launch(SIM_ADD);
    hold(OTHER_STREAM);
    graph = launch_graph();
    close_batch();
    assert_unmeasured(sim_node_tag(graph, 1), "the GPU's work did not end within 0.1 s");
}

/* Kernels of a graph that could not be measured then do not count. */
TEST(test_count_behind_work_that_waits)
{
    kprof_filter *before = kprof_engine.process.filter, *one;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_count = 1}, &one), KPROF_OK);
    kprof_engine.process.filter = one;
    CAPTURE(ADD);
    hold(OTHER_STREAM);
    assert_unmeasured(sim_node_tag(launch_graph(), 0), "the GPU's work did not end within 0.1 s");
    let_go(OTHER_STREAM);
    unsigned graph = launch_graph();
    close_batch();
    assert_nodes_measured(graph);
    kprof_engine.process.filter = before;
    kprof_filter_free(one);
}

/* There is space again in the next batch, unless there never is. */
TEST(test_no_space_beside_others)
{
    CAPTURE(IN, ADD);
    unsigned before = launch(SIM_ADD);
    no_space = true;
    unsigned graph = launch_graph();
    assert_measured(before);
    assert_node_pending(graph, 1);
    close_batch();
    assert_nodes_measured(graph);
    no_space = true;
    graph = launch_graph();
    assert_unmeasured(sim_node_tag(graph, 1), "or copies too much from or to the host");
}

/* Nothing is saved for a graph that cannot be repeated. */
TEST(test_kernel_that_cannot_be_repeated)
{
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_PRINT, .a = SLOT, .b = SLOT});
    do_call((sim_step){.op = SIM_END_CAPTURE});
    unsigned graph = launch_graph();
    assert_unmeasured(sim_node_tag(graph, 0), "a kernel of the graph: the kernel cannot be replayed: it prints");
    assert_false(kprof_batch_is_open());
}

/* No batch is opened there, though one is open elsewhere. */
TEST(test_device_without_metrics)
{
    sim.second_chip = "AD102"; /* which the configuration does not have */
    const sim_step node = {.op = SIM_LAUNCH, .stream = SECOND_STREAM, .a = SECOND_SLOT, .b = SECOND_SLOT};
    do_call((sim_step){.op = SIM_ALLOC, .stream = SECOND_STREAM, .a = SECOND_SLOT});
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE, .stream = SECOND_STREAM});
    do_call(node);
    do_call((sim_step){.op = SIM_END_CAPTURE, .stream = SECOND_STREAM});
    unsigned before = launch(SIM_ADD);
    assert_pending(before);
    do_call((sim_step){.op = SIM_GRAPH_LAUNCH, .stream = SECOND_STREAM, .from = SECOND_STREAM, .tag = ++last_tag});
    assert_unmeasured(sim_node_tag(last_tag, 0), "no metrics were chosen for this device's chip");
    assert_measured(before);
    assert_false(kprof_batch_is_open());
}

/* Warnings so far that kernels ran which no record stands for; `last` has 512 bytes for the last one. */
static int count_warnings(char *last)
{
    kprof_spool_reader *reader = open_spool();
    kprof_record record;
    int count = 0;
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD)
        if (record.type == KPROF_RECORD_MESSAGE && record.message.status == KPROF_NOT_COLLECTED) {
            assert_int_equal(record.message.level, KPROF_LOG_WARNING);
            snprintf(last, 512, "%s", record.message.text);
            count++;
        }
    kprof_spool_reader_close(reader);
    return count;
}

/* A process may have graphs that are refused for different reasons. */
TEST(test_refusals_are_told_once)
{
    static const char *const reasons[] = {"it allocates", "it allocates", "it has conditional nodes", "it allocates"};
    static const int messages[] = {1, 1, 2, 2};
    char last[512];
    CAPTURE(ADD);
    const int before = count_warnings(last);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        refusal = reasons[i];
        (void)launch_graph();
        assert_int_equal(count_warnings(last), before + messages[i]);
    }
    assert_non_null(strstr(last, "it has conditional nodes"));
    refusal = NULL;
}

/* Its kernels may leave the addresses of their variables to kernels that are repeated later. */
TEST(test_variables_of_a_refused_graph)
{
    CAPTURE(ADD);
    refusal = "it has conditional nodes";
    named = 0;
    (void)launch_graph();
    assert_int_equal(named, 1);
    refusal = NULL;
}

AROUND_EACH(NULL, mend)
AROUND_ALL(start, remove_folder)
