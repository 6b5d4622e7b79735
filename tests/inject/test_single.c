/* Batches of one pass, of which nothing is saved or repeated: what may keep them from being measured all the same. The
 * engine runs on the simulated machine. */
#define PASSES 1
#include "engine_test.h"
#include "sim/clock.h"

#include "inject/batch.h"
#include "inject/batch/stages.h"
#include "inject/engine.h"
#include "inject/evaluate.h"
#include "test.h"

#include <stdatomic.h>

#define SHARED_SLOT    0
#define BLOCKED_STREAM 1
#define OTHER_STREAM   2 /* of the second context */
#define OTHER_CONTEXT  (&sim.contexts[1])

static int end_other_context(void **state)
{
    let_go(OTHER_STREAM);
    sim_call(&(sim_step){.op = SIM_DESTROY_CONTEXT, .stream = OTHER_STREAM}, NULL);
    return 0;
}

/* Launch what takes longer than a call may be held. */
static unsigned launch_slow(sim_function *function)
{
    sim.may_wait = true;
    do_call(
        (sim_step){.op = SIM_LAUNCH, .function = function, .a = SLOT, .b = SLOT, .slow_ms = 250, .tag = ++last_tag});
    return last_tag;
}

static void synchronize_slow(void)
{
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    await_work();
    sim.may_wait = false;
    kprof_engine.waits.hold_ns = kprof_engine.waits.patience_ns = SIM_LONG_HOLD_NS;
    if (kprof_batch_is_sealed())
        close_when_ended();
    close_batch();
}

TEST(test_launches_together)
{
    uint64_t words[SIM_WORDS], again[SIM_WORDS];
    unsigned first = launch(SIM_DICE); /* nothing is repeated, so that nobody minds */
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT}, words), 0);
    unsigned second = launch(SIM_PRINT);
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned third = launch_on(SIM_ADD, SPARE_SLOT);
    assert_pending(first);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT}, again), 0);
    assert_memory_equal(words, again, sizeof words);
}

/* They are all measured, but for one behind which others came while nobody knew whether it ends by itself. */
TEST(test_launches_that_take_long)
{
    static sim_function alone = {"slow (1)", .kernel = SIM_ADD}, together = {"slow (2)", .kernel = SIM_ADD};
    for (unsigned i = 0; i < 5; i++) {
        unsigned first = launch_slow(&alone);
        synchronize_slow();
        assert_measured(first);
    }
    unsigned first = launch_slow(&together), second = launch_slow(&together);
    synchronize_slow();
    assert_unmeasured(first, "other work came before the launch had ended");
    assert_unmeasured(second, "the GPU's work did not end within 0.1 s");
    for (unsigned i = 0; i < 5; i++) {
        first = launch_slow(&together);
        second = launch_slow(&together);
        synchronize_slow();
        assert_measured(first);
        assert_measured(second);
    }
}

/* A launch behind it has a range once the value has come. In another context it may be what a launch waits for. */
TEST(test_waits_for_values)
{
    const unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_VALUE_WAIT, .flag = 0});
    const unsigned second = launch(SIM_ADD);
    assert_pending(first);
    do_call((sim_step){.op = SIM_VALUE_WAIT, .stream = OTHER_STREAM, .from = OTHER_STREAM, .flag = 0});
    assert_measured(first);
    assert_measured(second);
}

/* Kernels of a graph are repeated all the same, and so must not print. */
TEST(test_graph_that_prints)
{
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_PRINT, .a = SLOT, .b = SLOT});
    do_call((sim_step){.op = SIM_END_CAPTURE});
    do_call((sim_step){.op = SIM_GRAPH_LAUNCH, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    close_batch();
    assert_unmeasured(sim_node_tag(last_tag, 0), "a kernel of the graph: the kernel cannot be replayed: it prints");
}

/* By an event a launch may wait for work there that waits for the host, which waits for the launch call to return. */
TEST_WITH(test_other_context_that_waits_for_the_host, NULL, end_other_context)
{
    sim.hooks->context_created(OTHER_CONTEXT);
    hold(OTHER_STREAM);
    sim_call(&(sim_step){.op = SIM_RECORD, .stream = OTHER_STREAM}, NULL);
    unsigned first = launch(SIM_ADD);
    sim_call(&(sim_step){.op = SIM_STREAM_WAIT, .from = OTHER_STREAM}, NULL);
    unsigned second = launch(SIM_ADD);
    assert_unmeasured(first, "the GPU's work did not end within 0.1 s");
    assert_unmeasured(second, "the GPU's work did not end within 0.1 s");
}

/* A range begins on the GPU behind all that was launched before, so that the launch would wait for the host, too. */
TEST(test_host_function_that_waits)
{
    unsigned first = launch(SIM_ADD);
    hold(BLOCKED_STREAM);
    unsigned second = launch(SIM_ADD), third = launch(SIM_ADD);
    assert_pending(first);
    assert_unmeasured(second, "the GPU's work did not end within 0.1 s, and may wait for the application");
    assert_unmeasured(third, "the GPU's work did not end within 0.1 s");
    let_go(BLOCKED_STREAM);
    unsigned fourth = launch(SIM_ADD);
    close_batch();
    assert_measured(first);
    assert_measured(fourth);
}

static bool in_error;    /* the context, as who waits for it is told */
static unsigned reading; /* threads that look at counters */

static bool holds_own_run; /* the next launch in a range does not end before it is told to */
static atomic_bool stuck;

static kprof_status push_range(kprof_profiler *profiler, size_t number)
{
    atomic_store(&stuck, holds_own_run);
    holds_own_run = false;
    return sim_device.profiler_push(profiler, number);
}

static kprof_progress look_at_marks(const void *context)
{
    return atomic_load(&stuck) ? (kprof_progress){.ahead = 1} : sim_device.marks_look(context);
}

static kprof_status synchronize(void)
{
    while (atomic_load(&stuck))
        usleep(1000);
    return in_error ? kprof_fail(KPROF_INTERNAL, "the context is in error") : sim_device.target_synchronize();
}

static kprof_status read_slowly(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    __atomic_add_fetch(&reading, 1, __ATOMIC_SEQ_CST);
    usleep(20000);
    kprof_status status = sim_device.reader_read(reader, range, names, values);
    __atomic_sub_fetch(&reading, 1, __ATOMIC_SEQ_CST);
    return status;
}

static unsigned prepared; /* how often emptying the caches was */

static void prepare_to_empty(kprof_flush *flush)
{
    prepared++;
    sim_device.flush_prepare_to_empty(flush);
}

static unsigned copied; /* launches and transfers */

static kprof_operation *copy_operation(const kprof_call *call, kprof_snapshot *snapshot)
{
    copied++;
    return sim_device.operation_copy(call, snapshot);
}

static unsigned waited_for; /* launches that later flushes were told to wait for */

static kprof_status flush_behind(kprof_flush *flush, void *stream)
{
    waited_for++;
    return sim_device.flush_behind(flush, stream);
}

static bool cannot_pop;

static kprof_status pop_range(kprof_profiler *profiler)
{
    kprof_status status = sim_device.profiler_pop(profiler);
    return cannot_pop ? kprof_fail(KPROF_INTERNAL, "CUPTI failed (test)") : status;
}

static bool busy; /* another tool has the counters */
static unsigned busy_starts;

static kprof_status start_pass(kprof_profiler *profiler)
{
    if (!busy)
        return sim_device.profiler_start(profiler);
    busy_starts++;
    sim_clock_advance_s(5);
    return kprof_fail(KPROF_COUNTERS_BUSY, "the GPU counters are in use (test)");
}

static int end_error(void **state)
{
    in_error = busy = cannot_pop = false;
    return 0;
}

/* The counters of a pass that ended all the same are being looked at when the batch is given up. */
TEST_WITH(test_context_in_error, NULL, end_error)
{
    unsigned first = launch(SIM_ADD), second = launch(SIM_SCALE);
    in_error = true;
    close_batch();
    assert_unmeasured(first, "this launch, or one measured with it, failed");
    assert_unmeasured(second, "this launch, or one measured with it, failed");
    assert_int_equal(__atomic_load_n(&reading, __ATOMIC_SEQ_CST), 0);
    assert_int_equal(kprof_the_evaluator.running, 0);
}

/* Its range may have counted what came after the launch. */
TEST_WITH(test_range_without_an_end, NULL, end_error)
{
    unsigned first = launch(SIM_ADD);
    cannot_pop = true;
    unsigned second = launch(SIM_ADD);
    cannot_pop = false;
    close_batch();
    assert_unmeasured(first, "CUPTI did not end a range");
    assert_unmeasured(second, "CUPTI did not end a range");
    first = launch(SIM_ADD);
    close_batch();
    assert_measured(first);
}

static void end_own_run(void)
{
    kprof_engine.waits.hold_ns = kprof_engine.waits.patience_ns = SIM_LONG_HOLD_NS;
    atomic_store(&stuck, false);
    await_work();
}

/* The first launch of a kernel, as none is known to end by itself. */
static unsigned launch_held(sim_function *function)
{
    holds_own_run = true;
    kprof_engine.waits.patience_ns = SIM_SHORT_HOLD_NS;
    do_call((sim_step){.op = SIM_LAUNCH, .function = function, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    assert_false(holds_own_run);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    assert_true(kprof_batch_is_sealed() && kprof_the_batch.own.range_open);
    assert_pending(last_tag);
    return last_tag;
}

/* CUPTI would wait for its end. Its range goes on until it has ended, whatever the host does meanwhile. */
TEST_WITH(test_launch_that_does_not_end, NULL, end_error)
{
    static sim_function first = {"waits (1)", .kernel = SIM_ADD}, second = {"waits (2)", .kernel = SIM_ADD};
    unsigned before = launch(SIM_ADD), held = launch_held(&first);
    do_call((sim_step){.op = SIM_QUERY});
    assert_pending(held);
    end_own_run();
    close_when_ended();
    assert_measured(before);
    assert_measured(held);

    held = launch_held(&second);
    do_call((sim_step){.op = SIM_COPY_IN, .a = SLOT, .value = 1}); /* it may be in the range, too */
    end_own_run();
    close_when_ended();
    assert_unmeasured(held, "other work came before the launch had ended");
    held = launch(SIM_ADD);
    close_batch();
    assert_measured(held);
}

/* The range stays open behind earlier work, and has no launch. */
TEST_WITH(test_refused_launch_behind_work_that_does_not_end, NULL, end_error)
{
    static sim_function function = {"refused", .kernel = SIM_ADD};
    const sim_step refused = {
        .op = SIM_LAUNCH, .function = &function, .a = SLOT, .b = SLOT, .tag = ++last_tag, .refused = true};
    close_batch();
    holds_own_run = true;
    kprof_engine.waits.patience_ns = SIM_SHORT_HOLD_NS;
    assert_int_equal(sim_call(&refused, NULL), SIM_REFUSED);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    assert_true(kprof_batch_is_sealed() && kprof_the_batch.own.range_open && kprof_the_batch.state.list.count == 0);
    do_call((sim_step){.op = SIM_COPY_IN, .a = SLOT, .value = 1});
    end_own_run();
    close_when_ended();
    assert_unmeasured(last_tag, "the driver refused the launch");
    const unsigned next = launch(SIM_ADD);
    close_batch();
    assert_measured(next);
}

/* Where nothing is repeated, ranges are those of samples. */
TEST_WITH(test_sample_that_does_not_end, NULL, end_error)
{
    static sim_function waits = {"waits (3)", .kernel = SIM_ADD};
    kprof_config *config = &kprof_engine.process.config;
    const int choice = config->replay_choice;
    config->replay_choice = KPROF_MULTIPLEX_ALL;
    unsigned held = launch_held(&waits);
    end_own_run();
    close_when_ended();
    end_samples();
    assert_measured(held);
    config->replay_choice = choice;
}

/* Each launch would wait for as long again. */
TEST_WITH(test_another_tool, NULL, end_error)
{
    busy = true;
    assert_unmeasured(launch(SIM_ADD), "in use (test)");
    assert_unmeasured(launch(SIM_ADD), "another tool used the GPU counters a short while before");
    sim_clock_advance_s(30);
    assert_unmeasured(launch(SIM_ADD), "a short while before");
    assert_int_equal(busy_starts, 1);
    sim_clock_advance_s(30);
    assert_unmeasured(launch(SIM_ADD), "in use (test)");
    assert_int_equal(busy_starts, 2);
    busy = false;
    sim_clock_advance_s(60);
    unsigned last = launch(SIM_ADD);
    close_batch();
    assert_measured(last);
}

static void launch_in(unsigned stream, bool per_thread)
{
    do_call((sim_step){.op = SIM_LAUNCH,
                       .kernel = SIM_ADD,
                       .stream = stream,
                       .a = SLOT,
                       .b = SLOT,
                       .tag = ++last_tag,
                       .per_thread = per_thread});
}

static void *launch_in_threads_stream(void *unused)
{
    launch_in(0, true);
    return unused;
}

/* A flush would disturb the launches before it, and what is in its own stream is before it anyway. */
TEST(test_flushes_wait_for_launches)
{
    pthread_t other;
    kprof_engine.process.config.cache_control = KPROF_CACHE_FLUSH_ALL;
    launch_in(0, false);
    launch_in(0, false);
    assert_int_equal(waited_for, 0);
    launch_in(BLOCKED_STREAM, false);
    assert_int_equal(waited_for, 1);
    close_batch();
    waited_for = 0;
    assert_int_equal(pthread_create(&other, NULL, launch_in_threads_stream, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(waited_for, 1); /* only that thread can name its stream */
    launch_in(0, true);              /* in another stream, though it has the same name */
    assert_int_equal(waited_for, 2);
    launch_in(BLOCKED_STREAM, false);
    assert_int_equal(waited_for, 2);
    close_batch();
    assert_measured(last_tag);
    kprof_engine.process.config.cache_control = KPROF_CACHE_FLUSH_NONE;
}

/* The one pass that there is waits for each launch, and a kernel may wait for the host: a proof comes first. */
TEST(test_memory_of_the_host)
{
    kprof_engine.process.config.cache_control = KPROF_CACHE_FLUSH_ALL;
    copied = 0;
    unsigned alone = launch(SIM_ADD);
    close_batch();
    assert_measured(alone);
    assert_int_equal(prepared, 0); /* own runs do not empty caches */
    assert_int_equal(copied, 0);   /* nor are they repeated */
    do_call((sim_step){.op = SIM_ALLOC, .a = SHARED_SLOT, .shared = true});
    unsigned first = launch(SIM_ADD), second = launch(SIM_SCALE);
    assert_pending(first);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_true(prepared > 0);
    assert_int_equal(copied, 2);
    for (unsigned i = 0; i < 2; i++) {
        first = launch_on(SIM_ADD, SHARED_SLOT);
        close_batch();
        assert_unmeasured(first, "reached memory of the host");
    }
    for (unsigned i = 0; i < 2; i++)
        assert_unmeasured(launch_on(SIM_ADD, SHARED_SLOT), "a kernel's first launches are only watched");
    first = launch_on(SIM_ADD, SHARED_SLOT);
    second = launch_on(SIM_ADD, SHARED_SLOT);
    assert_pending(first);
    close_batch();
    assert_measured(first);
    assert_measured(second);
}

static int start(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.target_synchronize = synchronize;
    device.reader_read = read_slowly;
    device.profiler_start = start_pass;
    device.marks_look = look_at_marks;
    device.profiler_pop = pop_range;
    device.profiler_push = push_range;
    device.operation_copy = copy_operation;
    device.flush_behind = flush_behind;
    device.flush_prepare_to_empty = prepare_to_empty;
    return start_engine_on(&device);
}

AROUND_ALL(start, remove_folder)
