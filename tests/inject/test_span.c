/* Ranges of the application that are repeated as a whole. The engine runs on the simulated machine, in a process that
 * shares its memory with nobody. */
#define REPLAY_CHOICE KPROF_RANGES
#include "engine_test.h"

#include "inject/batch/span.h"
#include "inject/kernels.h"
#include "inject/range.h"
#include "test.h"

#define OTHER_STREAM 1 /* of the same context */

/* What is told of a range. */
typedef struct told_range {
    unsigned count;
    kprof_replay_mode mode;
    uint64_t launches;
    double values[METRICS];
    unsigned value_count;
    char reason[512];
} told_range;

/* A range has the number of its first launch. */
static told_range look_up_range(unsigned first)
{
    kprof_spool_reader *reader = open_spool();
    kprof_record record;
    told_range told = {0};
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD) {
        const kprof_launch_record *launch = &record.launch;
        if (record.type != KPROF_RECORD_LAUNCH || launch->max_blocks_per_sm != first)
            continue;
        assert_int_equal(launch->grid[0], 0);
        told = (told_range){.count = told.count + 1,
                            .mode = launch->mode,
                            .launches = launch->range_launches,
                            .value_count = launch->value_count};
        for (unsigned i = 0; i < METRICS && i < launch->value_count; i++)
            told.values[i] = launch->values[i];
        snprintf(told.reason, sizeof told.reason, "%s", launch->reason);
    }
    kprof_spool_reader_close(reader);
    return told;
}

/* It has the sums over its launches, which are numbered one after the other, in both passes. */
static told_range assert_repeated(unsigned first, unsigned last)
{
    const told_range told = look_up_range(first);
    if (told.count != 1 || told.mode != KPROF_REPLAY_RANGE || told.value_count != METRICS)
        fail_msg("told %u times, in mode %d, with %u values: %s", told.count, told.mode, told.value_count, told.reason);
    for (unsigned i = 0; i < METRICS; i++) {
        long double sum = 0;
        for (unsigned tag = first; tag <= last; tag++)
            sum += sim_value(sim.signatures[tag], i);
        assert_true(told.values[i] == (double)sum);
    }
    return told;
}

static void assert_not_measured(unsigned first, const char *why)
{
    const told_range told = look_up_range(first);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.value_count, 0);
    if (!strstr(told.reason, why))
        fail_msg("the reason is \"%s\"", told.reason);
}

static void read_memory(uint64_t *words)
{
    sim_drain();
    for (unsigned i = 0; i < SIM_WORDS; i++)
        words[i] = atomic_load(&sim_words(SLOT)[i]);
}

static int prepare(void **state)
{
    assert_false(kprof_batch_is_open());
    return 0;
}

/* The copies and the wait are part of it, and memory is as the program left it. */
TEST(repeated_with_all_that_it_has)
{
    uint64_t before[SIM_WORDS], after[SIM_WORDS];
    assert_true(kprof_range_begin("", "all", "", 0));
    const unsigned first = launch(SIM_ADD);
    launch(SIM_SCALE);
    do_call((sim_step){.op = SIM_MEMSET, .a = SLOT, .value = 3});
    do_call((sim_step){.op = SIM_COPY, .a = SLOT, .b = SLOT});
    launch(SIM_ADD);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    do_call((sim_step){.op = SIM_COPY_OUT_ASYNC, .a = SLOT, .b = SLOT});
    const unsigned last = launch(SIM_SWAP);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    read_memory(before);
    assert_true(kprof_batch_is_open());
    kprof_range_end();
    assert_false(kprof_batch_is_open());
    read_memory(after);
    assert_memory_equal(before, after, sizeof before);
    const told_range told = assert_repeated(first, last);
    assert_int_equal(told.launches, 4);
    assert_string_equal(told.reason, "");
}

/* Replays copy what the host had at the time, and it is not changed by what they copy to the host. */
TEST(copies_from_and_to_the_host)
{
    do_call((sim_step){.op = SIM_BUFFER_WRITE, .value = 7});
    assert_true(kprof_range_begin("", "input", "", 0));
    const unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_COPY_IN_ASYNC, .a = SLOT, .b = SLOT});
    launch(SIM_SCALE);
    do_call((sim_step){.op = SIM_COPY_OUT_ASYNC, .a = SLOT, .b = SLOT});
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    const uint64_t buffer = sim.streams[0].buffer;
    do_call((sim_step){.op = SIM_COPY_IN, .a = SLOT, .b = SLOT, .value = 5});
    const unsigned last = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    kprof_range_end();
    assert_string_equal(assert_repeated(first, last).reason, "");
    assert_true(sim.streams[0].buffer == buffer);
}

static kprof_status lock_nothing(kprof_operation *operation, kprof_snapshot *snapshot, unsigned lane)
{
    (void)operation, (void)snapshot, (void)lane;
    return kprof_fail(KPROF_NOT_COLLECTED, "no page-locked memory");
}

TEST(copies_without_page_locked_memory)
{
    kprof_device_ops ops = *kprof_engine.device;
    const kprof_device_ops *before = kprof_engine.device;
    ops.operation_prepare_counted = lock_nothing;
    kprof_engine.device = &ops;
    assert_true(kprof_range_begin("", "much input", "", 0));
    const unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_COPY_IN_ASYNC, .a = SLOT, .b = SLOT});
    kprof_range_end();
    kprof_engine.device = before;
    assert_not_measured(first, "no page-locked memory");
}

/* The host waits in it, so that nothing runs beside it. */
TEST(copy_in_another_stream)
{
    uint64_t words[SIM_WORDS];
    assert_true(kprof_range_begin("", "copy", "", 0));
    const unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    const sim_step copy = {.op = SIM_COPY_OUT, .stream = OTHER_STREAM, .a = SLOT, .b = SLOT};
    assert_int_equal(sim_call(&copy, words), 0);
    launch(SIM_SCALE);
    kprof_range_end();
    assert_string_equal(assert_repeated(first, first + 1).reason, "");
}

static void launch_in_other(sim_kernel kernel, unsigned slot)
{
    do_call((sim_step){
        .op = SIM_LAUNCH, .kernel = kernel, .stream = OTHER_STREAM, .a = slot, .b = slot, .tag = ++last_tag});
}

static kprof_status (*run_counted)(const kprof_operation *operation, kprof_snapshot *snapshot, kprof_lane lane);
static char lanes_had[64]; /* of the replays: a digit each, behind "<" where it waits for the others */

static kprof_status write_lane_down(const kprof_operation *operation, kprof_snapshot *snapshot, kprof_lane lane)
{
    const size_t length = strlen(lanes_had);
    snprintf(lanes_had + length, sizeof lanes_had - length, "%s%u", lane.waits_for ? "<" : "", lane.number);
    return run_counted(operation, snapshot, lane);
}

/* They run side by side in replays, too, but where an event, the host or a copy to it orders them. */
TEST(work_in_several_streams)
{
    kprof_device_ops ops = *kprof_engine.device;
    const kprof_device_ops *before = kprof_engine.device;
    run_counted = ops.operation_run_counted;
    ops.operation_run_counted = write_lane_down;
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    kprof_engine.device = &ops;
    lanes_had[0] = '\0';
    assert_true(kprof_range_begin("", "streams", "", 0));
    const unsigned first = launch(SIM_ADD);
    launch_in_other(SIM_SCALE, SPARE_SLOT);
    do_call((sim_step){.op = SIM_RECORD});
    do_call((sim_step){.op = SIM_STREAM_WAIT, .stream = OTHER_STREAM});
    launch_in_other(SIM_ADD, SLOT); /* behind the first one */
    launch_in_other(SIM_ADD, SPARE_SLOT);
    do_call((sim_step){.op = SIM_SYNC_STREAM, .stream = OTHER_STREAM});
    launch(SIM_SCALE); /* behind the third one */
    launch_in_other(SIM_ADD, SPARE_SLOT);
    do_call((sim_step){.op = SIM_COPY_OUT_ASYNC, .stream = OTHER_STREAM, .a = SPARE_SLOT, .b = SPARE_SLOT});
    const unsigned last = launch(SIM_ADD);
    kprof_range_end();
    kprof_engine.device = before;
    assert_string_equal(assert_repeated(first, last).reason, "");
    assert_string_equal(lanes_had, "01<11<0<11<001<11<0<11<0");
}

static unsigned count_waiting(kprof_lanes *lanes)
{
    unsigned count = 0;
    for (unsigned i = 0; i < KPROF_LANES; i++)
        count += atomic_load(&lanes->waiting[i]) != 0;
    return count;
}

/* Some share a lane. */
TEST(work_in_more_streams_than_lanes)
{
    kprof_lanes lanes;
    char streams[KPROF_LANES + 1][4];
    kprof_span_reset(&lanes);
    for (unsigned i = 0; i <= KPROF_LANES; i++) {
        const kprof_call wait = {.kind = KPROF_CALL_ORDER, .stream = streams[i]};
        atomic_store(&lanes.waiting[0], 0);
        kprof_span_note_order(&lanes, &wait, false);
        assert_int_equal(count_waiting(&lanes), i < KPROF_LANES ? 1 + i - (i > 0) : KPROF_LANES);
    }
}

static char independent_stream;

static bool blocks(void *stream)
{
    return stream != &independent_stream;
}

static size_t outputs_nothing(const kprof_operation *operation)
{
    return 0;
}

/* What the work waits for. The host waits in copies in streams of the program. */
static unsigned note_work(kprof_batch_state *state, void *stream, kprof_kernel *kernel)
{
    static kprof_open_launch items[1];
    const kprof_call call = {.stream = stream};
    state->list.items = items;
    state->list.count = 1;
    kprof_span_note_work(state, &(kprof_batch_launch){.call = &call, .kernel = kernel, .awaited = !kernel && stream});
    return items[0].waits_for;
}

/* The legacy one and streams that block wait for one another, and others go on beside it. */
TEST(default_streams)
{
    static kprof_kernel kernel;
    static kprof_batch_state batch;
    static char streams[KPROF_LANES];
    kprof_device_ops ops = *kprof_engine.device;
    const kprof_device_ops *before = kprof_engine.device;
    const struct {
        void *stream;
        kprof_kernel *kernel; /* NULL: a copy */
        unsigned waits_for;
    } works[] = {{&independent_stream, &kernel, 0},
                 {&streams[0], &kernel, 0},
                 {&streams[1], &kernel, 0},
                 {NULL, &kernel, 1u << 1 | 1u << 2},
                 {&streams[2], &kernel, 1u << 3},
                 {&streams[2], &kernel, 0},
                 {&independent_stream, &kernel, 0},
                 {NULL, &kernel, 1u << 1 | 1u << 2 | 1u << 4},
                 {&streams[0], &kernel, 1u << 3},
                 {&streams[0], &kernel, 0},
                 {NULL, NULL, 1u << 1 | 1u << 2 | 1u << 4},
                 {&independent_stream, &kernel, 0x1e}, /* all that have had work */
                 {&streams[1], &kernel, 0x1b},
                 {&independent_stream, NULL, 0},
                 {&streams[1], &kernel, 0x1b},
                 {&streams[3], &kernel, 0x1f},
                 {&streams[4], &kernel, 0x3f},
                 {&streams[5], &kernel, 0x7f},
                 {&streams[6], &kernel, 0x7f}, /* it shares a lane, as the next one does */
                 {&streams[7], &kernel, 0x7f},
                 {&streams[5], &kernel, 0x7f},
                 {&streams[5], &kernel, 0}};
    ops.target_stream_blocks = blocks;
    ops.operation_output_bytes = outputs_nothing;
    kprof_engine.device = &ops;
    kprof_span_reset(&batch.lanes);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        assert_int_equal(note_work(&batch, works[i].stream, works[i].kernel), works[i].waits_for);
    kprof_engine.device = before;
}

static unsigned waits_for_host(void)
{
    return KPROF_WAITS_FOR_HOST;
}

static bool writes_to_host(const kprof_call *call)
{
    return call->kind == KPROF_CALL_TRANSFER;
}

/* After calls that tell the program nothing of the GPU, work goes on side by side. */
TEST(calls_that_order_streams)
{
    static const struct {
        kprof_call call;
        bool has_returned;
        bool orders, orders_beside_functions; /* the latter: where the host is told by functions of it or by a write */
    } calls[] = {
        {{.kind = KPROF_CALL_LAUNCH}, true, false, false},
        {{.kind = KPROF_CALL_LAUNCH, .failed = true}, true, true, true},
        {{.kind = KPROF_CALL_GRAPH_LAUNCH}, true, false, true},
        {{.kind = KPROF_CALL_GRAPH_LAUNCH, .failed = true}, true, true, true},
        {{.kind = KPROF_CALL_HARMLESS}, true, false, false},
        {{.kind = KPROF_CALL_WAIT}, false, false, false},
        {{.kind = KPROF_CALL_WAIT}, true, true, true},
        {{.kind = KPROF_CALL_WAIT, .failed = true}, true, false, false}, /* not yet */
        {{.kind = KPROF_CALL_ALLOCATE}, true, true, true},
        {{.kind = KPROF_CALL_POOL_FREE}, true, true, true},
        {{.kind = KPROF_CALL_SETUP}, true, false, true},
        {{.kind = KPROF_CALL_ORDER}, false, true, true}, /* in the default stream */
        {{.kind = KPROF_CALL_VALUE_WAIT}, false, true, true},
        {{.kind = KPROF_CALL_VALUE_WAIT}, true, false, false},
        {{.kind = KPROF_CALL_TRANSFER}, false, true, true},
        {{.kind = KPROF_CALL_TRANSFER, .stream = &kprof_engine}, false, false, true},
    };
    kprof_lanes lanes;
    kprof_device_ops ops = *kprof_engine.device;
    const kprof_device_ops *before = kprof_engine.device;
    ops.target_sharing = waits_for_host;
    ops.transfer_is_hosts = writes_to_host;
    for (size_t i = 0; i < 2 * sizeof calls / sizeof *calls; i++) {
        const bool orders = i % 2 ? calls[i / 2].orders_beside_functions : calls[i / 2].orders;
        kprof_engine.device = i % 2 ? &ops : before;
        kprof_span_reset(&lanes);
        kprof_span_note_order(&lanes, &calls[i / 2].call, calls[i / 2].has_returned);
        kprof_engine.device = before;
        if ((count_waiting(&lanes) > 0) != orders)
            fail_msg("call %zu orders: %d", i / 2, !orders);
    }
}

TEST(graph_by_its_nodes)
{
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT});
    do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_SCALE, .a = SLOT, .b = SLOT});
    do_call((sim_step){.op = SIM_END_CAPTURE});
    assert_true(kprof_range_begin("", "graph", "", 0));
    do_call((sim_step){.op = SIM_GRAPH_LAUNCH, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    const unsigned graph = last_tag, behind = launch(SIM_ADD);
    kprof_range_end();
    const told_range told = look_up_range(graph);
    assert_int_equal(told.mode, KPROF_REPLAY_RANGE);
    assert_int_equal(told.launches, 2);
    for (unsigned i = 0; i < METRICS; i++)
        assert_true(told.values[i] == sim_value(sim.signatures[sim_node_tag(graph, 0)], i) +
                                          sim_value(sim.signatures[sim_node_tag(graph, 1)], i) +
                                          sim_value(sim.signatures[behind], i));
}

/* What comes only in the first range keeps no later one from being repeated; what comes twice does. */
TEST(cut_short)
{
    unsigned first[4];
    for (unsigned i = 0; i < 4; i++) {
        assert_true(kprof_range_begin("", "cut", "", 0));
        first[i] = launch(SIM_ADD);
        if (i != 1)
            close_batch();
        launch(SIM_SCALE);
        kprof_range_end();
    }
    assert_not_measured(first[0], "later ones are measured as they run): unmap");
    assert_repeated(first[1], first[1] + 1);
    assert_not_measured(first[2], "later ones are measured as they run): unmap");
    end_samples();
    assert_int_equal(look_up_range(first[3]).mode, KPROF_REPLAY_MULTIPLEX);
}

TEST(kernel_that_must_not_be_repeated)
{
    assert_true(kprof_range_begin("", "prints", "", 0));
    const unsigned later = launch(SIM_ADD);
    launch(SIM_PRINT);
    kprof_range_end();
    assert_not_measured(later, "it prints (simulated)");
    assert_true(kprof_range_begin("", "prints at once", "", 0));
    const unsigned first = launch(SIM_PRINT);
    kprof_range_end();
    end_samples();
    assert_int_equal(look_up_range(first).mode, KPROF_REPLAY_MULTIPLEX);
}

TEST(host_gets_something_else)
{
    assert_true(kprof_range_begin("", "dice", "", 0));
    const unsigned first = launch(SIM_DICE);
    do_call((sim_step){.op = SIM_COPY_OUT_ASYNC, .a = SLOT, .b = SLOT});
    kprof_range_end();
    assert_not_measured(first, "computed something else");
}

TEST(refused_first_launch)
{
    assert_true(kprof_range_begin("", "refused", "", 0));
    sim_step step = {.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT, .tag = ++last_tag, .refused = true};
    assert_int_not_equal(sim_call(&step, NULL), 0);
    const unsigned first = last_tag;
    launch(SIM_ADD);
    kprof_range_end();
    assert_false(kprof_batch_is_open());
    assert_not_measured(first, "the driver refused the launch");
}

AROUND_EACH(prepare, NULL)
AROUND_ALL(start_engine, remove_folder)
