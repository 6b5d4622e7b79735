/* When a batch closes and what keeps it open, when it is not repeated, and what the application sees of that. The
 * engine runs on the simulated machine, in a process that shares its memory with nobody. Long times pass without
 * waiting for them. */
#include "engine_test.h"

#include "cupti/operation.h"
#include "inject/batch.h"
#include "inject/batch/stages.h"
#include "inject/contexts.h"
#include "inject/engine.h"
#include "inject/exec.h"
#include "inject/kernels.h"
#include "inject/launch.h"
#include "sim/clock.h"
#include "test.h"

#include <signal.h>

#include <stdatomic.h>
#include <unistd.h>

#define LONG_S        1000
#define MANY_CALLS    1000
#define TRIES         3 /* as in replay.c */
#define MOST_OPEN_S   10
#define MANAGED_SLOT  0
#define POOL_SLOT     SIM_POOLED
#define OTHER_STREAM  2 /* of the second context */
#define OTHER_CONTEXT (&sim.contexts[1])
#define SOME_TIME     1000 /* a value for which nobody waits any more */

/* What goes wrong, once, after so many operations were repeated. */
static struct {
    atomic_uint after;
    atomic_int launch_s; /* it takes so long */
    atomic_int wait_s;   /* the wait after it does */
    atomic_bool fails;
    atomic_bool not_kept;      /* what the next transfer brought cannot be kept; whatever was repeated */
    atomic_bool host_not_kept; /* nor what the host did next */
    atomic_bool all_not_kept;  /* nor all memory, before a copy to the host */
    atomic_bool network;       /* a network card may write memory */
} faults;

static atomic_int next_wait_s, next_start_s;
static atomic_bool waits_until_told; /* that the wait does not end */
static unsigned repeated;            /* launches and transfers, in all passes */
static bool alarms_blocked;          /* during the last of them */

static bool cannot_restore;

static kprof_status restore_end(kprof_snapshot *snapshot)
{
    kprof_status status = sim_device.snapshot_restore_end(snapshot);
    return cannot_restore ? kprof_fail(KPROF_INTERNAL, "the memory cannot be restored (test)") : status;
}

static kprof_status run_operation(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    sigset_t blocked;
    alarms_blocked = pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGALRM);
    if (repeated++ == atomic_load(&faults.after)) {
        sim_clock_advance_s(atomic_exchange(&faults.launch_s, 0));
        atomic_fetch_add(&next_wait_s, atomic_exchange(&faults.wait_s, 0));
        if (atomic_exchange(&faults.fails, false))
            return kprof_fail(KPROF_INTERNAL, "the driver fails (test)");
    }
    return sim_device.operation_run(operation, snapshot);
}

static kprof_status operation_returned(kprof_operation *operation)
{
    kprof_status status = sim_device.operation_returned(operation);
    return atomic_exchange(&faults.not_kept, false) ? kprof_fail(KPROF_NO_MEMORY, "no memory (test)") : status;
}

static kprof_status keep_host(kprof_snapshot *snapshot, kprof_operation **out)
{
    if (!atomic_exchange(&faults.host_not_kept, false))
        return sim_device.operation_keep_host(snapshot, out);
    *out = NULL;
    return kprof_fail(KPROF_NO_MEMORY, "no memory (test)");
}

static kprof_status keep_all(kprof_snapshot *snapshot, kprof_operation **out)
{
    *out = NULL;
    return atomic_load(&faults.all_not_kept) ? kprof_fail(KPROF_NO_MEMORY, "no memory (test)")
                                             : sim_device.operation_keep_all(snapshot, out);
}

static kprof_status start_pass(kprof_profiler *profiler)
{
    sim_clock_advance_s(atomic_exchange(&next_start_s, 0));
    return sim_device.profiler_start(profiler);
}

static kprof_status synchronize(void)
{
    int wait_s = atomic_exchange(&next_wait_s, 0);
    sim_clock_advance_s(wait_s);
    bool waits = wait_s > 0 && atomic_load(&waits_until_told);
    for (int i = 0; waits && i < 10000 && !atomic_load(&kprof_the_launches.told_endless); i++)
        usleep(1000);
    return sim_device.target_synchronize();
}

/* Another thread frees memory while this one opens a batch. */
static struct {
    atomic_bool frees;
    sim_step step;
    atomic_int id;
    pthread_t thread;
} beside;

static void *free_beside(void *unused)
{
    atomic_store(&beside.id, gettid());
    (void)sim_call(&beside.step, NULL);
    return unused;
}

/* That thread is the application's, and no pause of the test. */
static bool is_capturing_to_kprofs(void)
{
    return gettid() == atomic_load(&beside.id) ? sim_device.target_capturing() : is_capturing_to_others();
}

/* Does the thread sleep, as it does in front of the gate? */
static bool is_asleep(int id)
{
    char path[64], of = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE *file = id > 0 ? fopen(path, "r") : NULL;
    if (file && fscanf(file, "%*d (%*[^)]) %c", &of) != 1)
        of = '?';
    if (file)
        fclose(file);
    return of == 'S';
}

static kprof_status take_snapshot(kprof_snapshot *snapshot, bool with_host)
{
    if (atomic_exchange(&beside.frees, false) && pthread_create(&beside.thread, NULL, free_beside, NULL) == 0)
        for (int i = 0; i < 10000 && !is_asleep(atomic_load(&beside.id)); i++)
            usleep(1000);
    return sim_device.snapshot_take(snapshot, with_host);
}

static const char *find_writer(void)
{
    return atomic_load(&faults.network) ? "a network card may write (test)" : NULL;
}

static int start_faulty(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.operation_run = run_operation;
    device.operation_returned = operation_returned;
    device.operation_keep_host = keep_host;
    device.operation_keep_all = keep_all;
    device.snapshot_restore_end = restore_end;
    device.snapshot_take = take_snapshot;
    device.target_capturing = is_capturing_to_kprofs;
    device.target_synchronize = synchronize;
    device.profiler_start = start_pass;
    device.writers_devices = find_writer;
    return start_engine_on(&device);
}

static void forget_comparison(kprof_kernel *kernel)
{
    atomic_store(&kernel->compared, false);
}

/* Stream 1 writes a value, for which stream 0 may wait. */
static void write_value(uint64_t value)
{
    const unsigned variable = sim_variable_of_stream(1);
    do_call((sim_step){.op = SIM_MEMSET, .stream = 1, .a = variable, .b = variable, .signal = value});
}

static int mend(void **state)
{
    if (sim.may_wait) /* the test failed */
        write_value(SOME_TIME);
    sim.may_wait = false;
    close_batch();
    atomic_store(&faults.after, 0);
    atomic_store(&faults.launch_s, 0);
    atomic_store(&faults.wait_s, 0);
    atomic_store(&faults.fails, false);
    atomic_store(&faults.not_kept, false);
    atomic_store(&faults.all_not_kept, false);
    atomic_store(&faults.network, false);
    sim.refuses_frees = sim.sees_output = sim.hides_output = sim.prints_nothing = false;
    repeated = 0;
    kprof_profiled_context *profiled = (kprof_profiled_context *)kprof_contexts_find(&sim.contexts[0]);
    if (profiled) {
        profiled->late_values = 0;
        profiled->diverges = false;
        profiled->comparisons = 0;
        profiled->compared = 0;
        profiled->pushes_ranges = false;
    }
    kprof_kernels_visit(forget_comparison);
    return 0;
}

/* Memory as a kernel finds it. */
static void look_at(unsigned slot, uint64_t words[SIM_WORDS])
{
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    for (unsigned i = 0; i < SIM_WORDS; i++)
        words[i] = atomic_load(&sim_words(slot)[i]);
}

static void look(uint64_t words[SIM_WORDS])
{
    look_at(SLOT, words);
}

/* As the host reads it. */
static void copy_out(uint64_t words[SIM_WORDS])
{
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT}, words), 0);
}

static void copy_much_out(uint64_t words[SIM_WORDS])
{
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT, .large = true}, words), 0);
}

static void assert_filled(const uint64_t words[SIM_WORDS], uint64_t factor, uint64_t value)
{
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(words[i] == factor * sim_hash(value, i));
}

static void assert_same_memory(const uint64_t words[SIM_WORDS])
{
    uint64_t now[SIM_WORDS];
    look(now);
    assert_memory_equal(now, words, sizeof now);
}

static unsigned launch_alone(sim_kernel kernel)
{
    unsigned tag = launch(kernel);
    close_batch();
    return tag;
}

/* Two launches of a kernel that doubles its memory, and what the application's own run leaves. */
typedef struct pair {
    unsigned first, second;
    uint64_t end[SIM_WORDS];
} pair;

static pair launch_two(void)
{
    pair launched;
    uint64_t start[SIM_WORDS];
    look(start);
    launched.first = launch(SIM_ADD);
    launched.second = launch(SIM_ADD);
    look(launched.end);
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(launched.end[i] == 4 * start[i]);
    assert_pending(launched.first);
    return launched;
}

/* Close their batch: memory stays as it was left. */
static void assert_closed(const pair *launched, unsigned values, const char *reason)
{
    close_batch();
    assert_same_memory(launched->end);
    assert_report(launched->first, values, reason);
    assert_report(launched->second, values, reason);
}

static unsigned launch_peer(unsigned stream, unsigned from, uint64_t flag)
{
    do_call((sim_step){.op = SIM_LAUNCH,
                       .kernel = SIM_PEER,
                       .stream = stream,
                       .from = from,
                       .flag = flag,
                       .a = SLOT,
                       .b = SLOT,
                       .tag = ++last_tag});
    return last_tag;
}

static unsigned launch_in_second_stream(void)
{
    do_call((sim_step){.op = SIM_LAUNCH, .stream = 1, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    return last_tag;
}

static unsigned launch_function(sim_function *function)
{
    do_call((sim_step){
        .op = SIM_LAUNCH, .function = function, .kernel = SIM_SCALE, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    return last_tag;
}

static int end_other_context(void **state)
{
    sim_call(&(sim_step){.op = SIM_RELEASE, .stream = OTHER_STREAM}, NULL);
    sim_call(&(sim_step){.op = SIM_DESTROY_CONTEXT, .stream = OTHER_STREAM}, NULL);
    return mend(state);
}

static void await_value(uint64_t value)
{
    do_call((sim_step){.op = SIM_VALUE_WAIT, .from = 1, .flag = value});
}

TEST_WITH(test_replays_leave_no_trace, NULL, mend)
{
    pair launched = launch_two();
    assert_int_equal(repeated, 0);
    close_batch();
    assert_int_equal(repeated, 2 * PASSES);
    assert_false(alarms_blocked);
    assert_same_memory(launched.end);
    assert_measured(launched.first);
    assert_measured(launched.second);
}

/* Of the first pass nothing is left, of the second what the first one measured. */
TEST_WITH(test_repetition_that_takes_far_longer, NULL, mend)
{
    pair launched = launch_two();
    atomic_store(&faults.launch_s, LONG_S);
    assert_closed(&launched, 0, "a pass took far longer than the application's own run");
    assert_int_equal(repeated, 1);
    launched = launch_two();
    atomic_store(&faults.after, 1 + 2);
    atomic_store(&faults.launch_s, LONG_S);
    assert_closed(&launched, 1, "the replay was abandoned: a pass took far longer than the application's own run");
    assert_int_equal(repeated, 1 + 2 + 1);
}

/* Its launches are all done then, and so is what it measured. */
TEST_WITH(test_repetition_whose_end_takes_far_longer, NULL, mend)
{
    pair launched = launch_two();
    atomic_store(&faults.wait_s, LONG_S);
    assert_closed(&launched, PASSES, "");
}

/* A kernel may wait for another one, for which there is nothing that kprof can do. */
TEST_WITH(test_repetition_that_does_not_end, NULL, mend)
{
    pair launched = launch_two();
    atomic_store(&kprof_the_launches.told_endless, false);
    atomic_store(&waits_until_told, true);
    atomic_store(&faults.wait_s, LONG_S);
    assert_closed(&launched, PASSES, "");
    atomic_store(&waits_until_told, false);
    assert_true(atomic_load(&kprof_the_launches.told_endless));
}

TEST_WITH(test_repetition_that_takes_a_little_longer, NULL, mend)
{
    pair launched = launch_two();
    sim_clock_advance_s(LONG_S);
    atomic_store(&faults.launch_s, 5 * LONG_S);
    assert_closed(&launched, PASSES, "");
}

/* In the middle of a pass, when memory is neither as before nor as after. */
TEST_WITH(test_repetition_that_fails, NULL, mend)
{
    pair launched = launch_two();
    atomic_store(&faults.after, 1);
    atomic_store(&faults.fails, true);
    assert_closed(&launched, 0, "the driver fails (test)");
    launched = launch_two();
    atomic_store(&faults.after, 2 + 2 + 1);
    atomic_store(&faults.fails, true);
    assert_closed(&launched, 1, "the replay was abandoned: the driver fails (test)");
}

/* What it wrote since memory was saved stays. */
TEST_WITH(test_network_card_that_comes_later, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned tag = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = SLOT, .value = 7}, NULL);
    atomic_store(&faults.network, true);
    close_batch();
    look(words);
    assert_filled(words, 1, 7);
    assert_int_equal(repeated, 0);
    assert_unmeasured(tag, "the launch was not repeated: a network card may write (test)");
}

/* Nothing more joins it. */
TEST_WITH(test_spoiled_batch, NULL, mend)
{
    pair launched = launch_two();
    kprof_batch_spoil("something happened (test)");
    kprof_batch_spoil("something else happened (test)");
    unsigned next = launch(SIM_ADD);
    assert_int_equal(repeated, 0);
    assert_unmeasured(launched.first, "the launch was not repeated: something happened (test)");
    assert_unmeasured(launched.second, "the launch was not repeated: something happened (test)");
    close_batch();
    assert_measured(next);
    uint64_t words[SIM_WORDS];
    look(words);
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(words[i] == 2 * launched.end[i]);
}

static void assert_closed_after_s(int seconds)
{
    unsigned first = launch(SIM_ADD);
    assert_pending(first);
    sim_clock_advance_s(seconds);
    unsigned second = launch(SIM_ADD);
    assert_measured(first);
    assert_measured(second);
}

/* Each launch is told once, with the reason. */
TEST_WITH(test_context_that_ends_before_its_batch, NULL, mend)
{
    unsigned first = launch(SIM_ADD), last = launch(SIM_ADD);
    assert_true(kprof_batch_is_open());
    assert_pending(last);
    sim.hooks->context_ending(&sim.contexts[0]);
    assert_false(kprof_batch_is_open());
    assert_unmeasured(first, "the context ended before the launch was measured");
    assert_unmeasured(last, "the context ended before the launch was measured");
    unsigned next = launch(SIM_ADD);
    close_batch();
    assert_measured(next);
}

/* A process that is killed loses no more, however seldom it launches. */
TEST_WITH(test_batch_that_has_been_open_for_long, NULL, mend)
{
    launch(SIM_ADD);
    close_batch(); /* what it took is known from now on */
    assert_closed_after_s(1);
}

static void set_memory(uint64_t value)
{
    do_call((sim_step){.op = SIM_MEMSET, .a = SLOT, .value = value});
}

/* Open a batch of a context whose passes take 1.9 s, with a launch and so many transfers. Is it closed when so much
 * time has gone by? */
static bool is_closed_after(unsigned transfers, int seconds)
{
    launch(SIM_ADD);
    close_batch();
    unsigned first = launch(SIM_ADD);
    kprof_the_batch.state.context->fixed_ms = 1900;
    for (unsigned i = 0; i < transfers; i++)
        set_memory(i);
    sim_clock_advance_s(seconds);
    unsigned last = launch(SIM_ADD);
    bool is_closed = look_up(first).count > 0;
    if (is_closed)
        assert_measured(last);
    else
        assert_pending(last);
    close_batch();
    return is_closed;
}

/* A batch that is dear may be open for several times as long as its passes take, but not for ever. */
TEST_WITH(test_dear_batch_that_has_been_open_for_long, NULL, mend)
{
    assert_false(is_closed_after(600, 4));
    assert_true(is_closed_after(600, 10));
    launch(SIM_ADD);
    atomic_store(&next_start_s, LONG_S);
    close_batch();
    assert_closed_after_s(MOST_OPEN_S + 1);
}

/* A process that launches seldom and is killed loses what it launched in a second or two. */
TEST_WITH(test_dear_batch_of_few_launches, NULL, mend)
{
    assert_false(is_closed_after(10, 2));
    assert_true(is_closed_after(10, 4));
}

/* All three are repeated together. */
TEST_WITH(test_transfer_between_launches, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned first = launch(SIM_ADD);
    set_memory(7);
    unsigned second = launch(SIM_ADD);
    assert_pending(first);
    close_batch();
    assert_int_equal(repeated, 3 * PASSES);
    look(words);
    assert_filled(words, 2, 7);
    assert_measured(first);
    assert_measured(second);
}

/* What came from the host comes again, and what went there is compared. */
TEST_WITH(test_transfers_from_and_to_the_host, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    (void)launch(SIM_ADD);
    copy_out(words);
    (void)launch(SIM_ADD); /* of the kernel this is known from now on */
    close_batch();
    repeated = 0;
    unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_COPY_IN, .a = SLOT, .value = 7});
    unsigned second = launch(SIM_ADD);
    copy_out(words);
    assert_filled(words, 2, 7);
    unsigned third = launch(SIM_ADD);
    assert_pending(first);
    close_batch();
    assert_int_equal(repeated, 5 * PASSES);
    look(words);
    assert_filled(words, 4, 7);
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
}

/* A replay would not find what the launch behind the copy had. */
TEST_WITH(test_copy_from_the_host_that_cannot_be_kept, NULL, mend)
{
    unsigned first = launch(SIM_ADD);
    atomic_store(&faults.not_kept, true);
    do_call((sim_step){.op = SIM_COPY_IN, .a = SLOT, .value = 7});
    close_batch();
    assert_int_equal(repeated, 0);
    assert_report(first, 0, "what came from the host, or went to it, could not be kept");
    unsigned later = launch(SIM_ADD);
    close_batch();
    assert_measured(later);
}

static pthread_barrier_t barrier;

/* A call that loads code, say, and takes its time. */
static void *stay_inside(void *unused)
{
    kprof_call call = {.kind = KPROF_CALL_SETUP, .name = "slow call", .context = &sim.contexts[0]};
    sim.hooks->enter(&call);
    pthread_barrier_wait(&barrier); /* it is inside */
    pthread_barrier_wait(&barrier); /* and may go */
    sim.hooks->leave(&call);
    return unused;
}

/* Another thread enters a call, and stays there. */
static pthread_t enter_beside(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, stay_inside, NULL), 0);
    pthread_barrier_wait(&barrier);
    return thread;
}

static void leave_beside(pthread_t thread)
{
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

/* Who is inside may use the memory before it is saved. */
TEST_WITH(test_allocation_beside_another_thread, NULL, mend)
{
    pair launched = launch_two();
    pthread_t thread = enter_beside();
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    leave_beside(thread);
    assert_closed(&launched, 0, "the launch was not repeated: memory was allocated while another thread");
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* The same for a call that closes the batch: it runs all the same. */
TEST_WITH(test_close_beside_another_thread, NULL, mend)
{
    pair launched = launch_two();
    pthread_t thread = enter_beside();
    do_call((sim_step){.op = SIM_UNKNOWN, .a = SLOT, .value = 7});
    look(launched.end);
    assert_filled(launched.end, 1, 7);
    leave_beside(thread);
    assert_closed(&launched, 0, "the launch was not repeated: another thread stayed inside a CUDA call");
}

/* Launches from then on need a proof: those before it are replayed at once. */
TEST_WITH(test_memory_that_is_shared_later, NULL, mend)
{
    pair launched = launch_two();
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT, .shared = true});
    sim.shares_memory = false;
    assert_report(launched.first, METRICS, "");
    assert_report(launched.second, METRICS, "");
    assert_same_memory(launched.end);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* They cannot be replayed at once, and others may write the memory later. */
TEST_WITH(test_memory_that_is_shared_beside_another_thread, NULL, mend)
{
    pair launched = launch_two();
    pthread_t thread = enter_beside();
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT, .shared = true});
    atomic_store(&others_may_close, true);
    leave_beside(thread); /* which closes the batch */
    atomic_store(&others_may_close, false);
    assert_closed(&launched, 0, "the launch was not repeated: memory came to be shared while another thread");
    sim.shares_memory = false;
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

TEST_WITH(test_waits, NULL, mend)
{
    kprof_call setup = {.kind = KPROF_CALL_SETUP, .name = "function of the host", .context = &sim.contexts[0]};
    unsigned first = launch(SIM_ADD);
    sim.hooks->enter(&setup);
    sim.hooks->leave(&setup);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    do_call((sim_step){.op = SIM_QUERY});
    do_call((sim_step){.op = SIM_RECORD});
    do_call((sim_step){.op = SIM_STREAM_WAIT});
    unsigned second = launch(SIM_ADD);
    assert_pending(first);
    close_batch();
    assert_measured(first);
    assert_measured(second);
}

/* It is saved as it is when it comes, and launches change it from then on. */
TEST_WITH(test_allocations, NULL, mend)
{
    uint64_t before[SIM_WORDS], after[SIM_WORDS];
    static const sim_op ways[] = {SIM_ALLOC, SIM_POOL_ALLOC};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        unsigned first = launch(SIM_ADD);
        do_call((sim_step){.op = ways[i], .a = SPARE_SLOT});
        look_at(SPARE_SLOT, before);
        unsigned second = launch_on(SIM_SCALE, SPARE_SLOT), third = launch_on(SIM_SCALE, SPARE_SLOT);
        assert_pending(first);
        look_at(SPARE_SLOT, after);
        assert_memory_not_equal(before, after, sizeof before);
        close_batch();
        look_at(SPARE_SLOT, before);
        assert_memory_equal(before, after, sizeof before);
        assert_measured(first);
        assert_measured(second);
        assert_measured(third);
        do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    }
}

/* It is there when the stream comes to it, and a launch is right behind it. */
TEST_WITH(test_allocation_in_the_order_of_a_stream, NULL, mend)
{
    unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_POOL_ALLOC, .a = SPARE_SLOT});
    unsigned second = launch_on(SIM_SCALE, SPARE_SLOT), third = launch_on(SIM_SCALE, SPARE_SLOT);
    assert_pending(first);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* Replays use memory that is freed meanwhile; then it is gone. */
TEST_WITH(test_frees, NULL, mend)
{
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned first = launch_on(SIM_SCALE, SPARE_SLOT), second = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    unsigned third = launch(SIM_ADD);
    assert_pending(first);
    assert_true(sim.slots[SPARE_SLOT].live);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    assert_false(sim.slots[SPARE_SLOT].live);
}

/* The module that is loaded again has a variable of its own, and the one before it is there for replays. */
TEST_WITH(test_unloads, NULL, mend)
{
    const sim_step reload = {.op = SIM_RELOAD, .a = SIM_VARIABLES};
    unsigned tags[5] = {launch(SIM_COUNT), launch(SIM_COUNT)};
    const unsigned unloads = atomic_load(&sim.unloads);
    do_call(reload);
    tags[2] = launch(SIM_COUNT);
    assert_pending(tags[0]);
    assert_true(sim.slots[SIM_VARIABLES].kept);
    assert_int_equal(sim_place_of(SIM_VARIABLES), SIM_SECONDS);
    do_call(reload); /* the simulated driver has no place for a third */
    assert_false(sim.slots[SIM_VARIABLES].live);
    assert_int_equal(atomic_load(&sim.unloads), unloads + 1);
    for (unsigned i = 0; i < 3; i++)
        assert_measured(tags[i]);
    tags[3] = launch(SIM_COUNT);
    do_call(reload);
    tags[4] = launch(SIM_COUNT);
    close_batch();
    assert_measured(tags[3]);
    assert_measured(tags[4]);
    assert_int_equal(atomic_load(&sim.unloads), unloads + 2);
}

/* The driver refuses to unload what is unloaded already. */
TEST_WITH(test_unload_that_fails, NULL, mend)
{
    const sim_step again = {.op = SIM_RELOAD, .a = SIM_VARIABLES, .refused = true};
    unsigned tag = launch(SIM_COUNT);
    assert_int_equal(sim_call(&again, NULL), SIM_REFUSED);
    assert_measured(tag);
    assert_true(sim.slots[SIM_VARIABLES].live);
}

/* The pool would give the memory back as soon as the host waits. Replays use it, and then it is gone. */
TEST_WITH(test_frees_to_a_pool, NULL, mend)
{
    do_call((sim_step){.op = SIM_POOL_ALLOC, .a = POOL_SLOT});
    unsigned first = launch_on(SIM_SCALE, POOL_SLOT);
    do_call((sim_step){.op = SIM_POOL_FREE, .a = POOL_SLOT});
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    do_call((sim_step){.op = SIM_POOL_ALLOC, .a = POOL_SLOT});
    do_call((sim_step){.op = SIM_MEMSET, .a = POOL_SLOT, .value = 3}); /* as a program does with new memory */
    unsigned second = launch_on(SIM_SCALE, POOL_SLOT);
    do_call((sim_step){.op = SIM_POOL_FREE, .a = POOL_SLOT});
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    assert_pending(first);
    assert_true(sim.slots[POOL_SLOT].live);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_false(sim.slots[POOL_SLOT].live);
}

/* The thread that frees looks for a batch before another has opened one, and is called on once that is open. */
static void check_free_beside(sim_op op, unsigned slot)
{
    atomic_store(&beside.id, 0);
    beside.step = (sim_step){.op = op, .a = slot};
    atomic_store(&beside.frees, true);
    unsigned first = launch(SIM_ADD);
    assert_int_equal(pthread_join(beside.thread, NULL), 0);
    unsigned second = launch(SIM_ADD);
    assert_pending(first);
    assert_true(sim.slots[slot].live);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_false(sim.slots[slot].live);
}

TEST_WITH(test_free_while_a_batch_opens, NULL, mend)
{
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    check_free_beside(SIM_FREE, SPARE_SLOT);
    do_call((sim_step){.op = SIM_POOL_ALLOC, .a = POOL_SLOT});
    check_free_beside(SIM_POOL_FREE, POOL_SLOT);
    assert_false(sim.pools[0].held);
}

/* What the application has said is the answer, and what its pool would have. */
TEST_WITH(test_questions_of_a_pool, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    do_call((sim_step){.op = SIM_POOL_ALLOC, .a = POOL_SLOT});
    unsigned first = launch_on(SIM_SCALE, POOL_SLOT);
    sim_call(&(sim_step){.op = SIM_POOL_ASK, .a = POOL_SLOT}, words);
    assert_int_equal(words[1], 1);
    assert_pending(first);
    do_call((sim_step){.op = SIM_POOL_FREE, .a = POOL_SLOT});
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    assert_pending(first);
    sim_call(&(sim_step){.op = SIM_POOL_ASK, .a = POOL_SLOT}, words);
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], 0);
    assert_measured(first);
}

/* There is no space for both. */
TEST_WITH(test_allocation_after_free, NULL, mend)
{
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned first = launch_on(SIM_SCALE, SPARE_SLOT);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    assert_pending(first);
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    assert_measured(first);
    unsigned second = launch_on(SIM_SCALE, SPARE_SLOT);
    close_batch();
    assert_measured(second);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* The same, where the batch cannot close first: it gets no values. */
TEST_WITH(test_questions_of_a_pool_behind_work_that_waits, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    do_call((sim_step){.op = SIM_POOL_ALLOC, .a = POOL_SLOT});
    unsigned first = launch_on(SIM_SCALE, POOL_SLOT);
    do_call((sim_step){.op = SIM_POOL_FREE, .a = POOL_SLOT});
    hold(1);
    assert_pending(first);
    sim_call(&(sim_step){.op = SIM_POOL_ASK, .a = POOL_SLOT}, words);
    assert_int_equal(words[0], 0);
    let_go(1);
    close_when_ended();
    assert_unmeasured(first, "its work did not end before a call that takes away what replays use");
}

/* To free memory waits for all work, also for what waits for the host. */
TEST_WITH(test_free_behind_work_that_waits, NULL, mend)
{
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    hold(0);
    assert_false(try_to_close());
    assert_true(sim.slots[SPARE_SLOT].live);
    let_go(0);
    close_when_ended();
    assert_measured(first);
    assert_false(sim.slots[SPARE_SLOT].live);
}

/* Do other processes that wait for their turn know that they may wait for this one in vain? */
static bool is_told_stuck(void)
{
    char path[sizeof folder + 64];
    uint32_t fields[4]; /* of the line: see lock.c */
    snprintf(path, sizeof path, "%s/gpu.00112233445566778899aabbccddeeff.line", folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fread(fields, sizeof *fields, 4, file), 4);
    fclose(file);
    return fields[3] == 1;
}

/* A batch whose work does not end takes nothing more, and holds no call. It is closed by the next call, whatever that
 * is, that finds its work to have ended. */
TEST_WITH(test_work_that_does_not_end_in_time, NULL, mend)
{
    uint64_t end[SIM_WORDS];
    unsigned first = launch(SIM_ADD), second = launch(SIM_ADD);
    hold(1);
    assert_false(try_to_close());
    assert_true(kprof_batch_is_open() && kprof_batch_is_sealed() && kprof_batch_replays() && !kprof_batch_records());
    assert_true(is_told_stuck());
    unsigned third = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_COPY_IN, .a = SLOT, .value = 5}); /* replays put back what comes meanwhile */
    do_call((sim_step){.op = SIM_QUERY});
    assert_true(kprof_batch_is_sealed());
    assert_pending(first);
    assert_unmeasured(third, "the GPU's work did not end within 0.1 s, so that launches before it are still to be");
    let_go(1);
    close_when_ended();
    assert_false(is_told_stuck());
    assert_measured(first);
    assert_measured(second);
    look(end);
    assert_filled(end, 1, 5);
    third = launch(SIM_ADD);
    close_batch();
    assert_measured(third);
}

/* What replays would need is gone then. */
TEST_WITH(test_call_that_takes_memory_behind_work_that_waits, NULL, mend)
{
    unsigned first = launch(SIM_ADD);
    hold(1);
    do_call((sim_step){.op = SIM_UNKNOWN, .a = SLOT, .value = 7});
    assert_true(kprof_batch_is_sealed());
    assert_pending(first);
    let_go(1);
    close_when_ended();
    assert_unmeasured(first, "its work did not end before a call that takes away what replays use");
}

/* Code that is unloaded, and a context that ends, wait for nobody. */
TEST_WITH(test_unload_behind_work_that_waits, NULL, mend)
{
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    hold(1);
    assert_false(try_to_close());
    assert_pending(first);
    const sim_step unload = {.op = SIM_RELOAD, .a = SIM_VARIABLES};
    const kprof_call call = sim_describe(&unload);
    kprof_launch_hooks.enter(&call);
    kprof_launch_hooks.leave(&call);
    assert_false(kprof_batch_is_open());
    assert_true(sim.slots[SPARE_SLOT].live); /* to free it would wait for that work */
    assert_unmeasured(first, "the GPU's work did not end within 0.1 s");
    let_go(1);
    (void)launch(SIM_ADD);
    close_batch();
    assert_false(sim.slots[SPARE_SLOT].live);
}

static bool chooses_nothing;

static void choose_or_not(kprof_kernel *kernel)
{
    kernel->matches = !chooses_nothing;
}

static unsigned launch_unchosen(sim_kernel kernel)
{
    chooses_nothing = true;
    kprof_kernels_visit(choose_or_not);
    unsigned tag = launch(kernel);
    chooses_nothing = false;
    kprof_kernels_visit(choose_or_not);
    return tag;
}

/* Launch what is not chosen, until a batch is open. */
static void open_by_unchosen(sim_kernel kernel)
{
    for (unsigned i = 0; i < MANY_CALLS && !kprof_batch_records(); i++)
        (void)launch_unchosen(kernel);
    assert_true(kprof_batch_records());
}

/* The next launch that finds the context idle opens the batch, so that it is open when chosen ones come behind work
 * that does not end. */
TEST_WITH(test_launch_behind_work_that_waits, NULL, mend)
{
    assert_measured(launch_alone(SIM_ADD)); /* the kernel is known */
    assert_measured(launch_alone(SIM_SCALE));
    hold(1);
    assert_unmeasured(launch(SIM_ADD), "the GPU's work did not end within 0.1 s");
    (void)launch_unchosen(SIM_ADD);
    assert_false(kprof_batch_is_open()); /* it is behind that work, too */
    let_go(1);
    open_by_unchosen(SIM_ADD);
    hold(1);
    unsigned second = launch(SIM_SCALE), third = launch(SIM_ADD);
    assert_pending(second);
    let_go(1);
    close_batch();
    assert_measured(second);
    assert_measured(third);
    (void)launch_unchosen(SIM_ADD);
    assert_false(kprof_batch_is_open()); /* nothing was put off since */
}

/* The same, where a batch that waits for its end keeps it from being measured. */
TEST_WITH(test_launch_behind_a_batch_that_waits, NULL, mend)
{
    unsigned first = launch(SIM_ADD);
    hold(1);
    assert_false(try_to_close());
    assert_unmeasured(launch(SIM_ADD), "the GPU's work did not end within 0.1 s");
    let_go(1);
    open_by_unchosen(SIM_ADD);
    assert_measured(first);
    unsigned last = launch(SIM_ADD);
    close_batch();
    assert_measured(last);
}

/* What comes after a batch is sealed may be what its last launch waits for, and no replay has that. */
TEST_WITH(test_sealed_launch_that_waits_for_a_later_one, NULL, mend)
{
    const unsigned variable = sim_variable_of_stream(1);
    sim.may_wait = true;
    unsigned first = launch(SIM_ADD), peer = launch_peer(0, 1, 1);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    assert_false(try_to_close());
    do_call((sim_step){.op = SIM_LAUNCH,
                       .kernel = SIM_TALLY,
                       .stream = 1,
                       .a = variable,
                       .b = variable,
                       .signal = 1,
                       .tag = ++last_tag});
    close_when_ended();
    assert_measured(first);
    assert_unmeasured(peer, "did not end by itself before work came in another stream");
    sim.may_wait = false;
}

TEST_WITH(test_value_that_has_come, NULL, mend)
{
    sim.may_wait = true;
    const unsigned first = launch_in_second_stream();
    write_value(2);
    await_value(2);
    const unsigned second = launch(SIM_ADD);
    assert_pending(first);
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    const unsigned third = launch_in_second_stream();
    assert_pending(second);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    sim.may_wait = false;
}

/* What comes behind the wait may depend on what comes later in another stream. If values often come so late, waits
 * close batches. The kernel behind it does not wait itself: it counts as one that ends. */
TEST_WITH(test_value_that_comes_late, NULL, mend)
{
    static sim_function function = {"behind a value", .kernel = SIM_SCALE};
    sim.may_wait = true;
    for (uint64_t value = 3; value < 6; value++) {
        const unsigned first = launch(SIM_ADD);
        await_value(value);
        assert_pending(first);
        const unsigned second = launch_function(&function);
        (void)launch_in_second_stream();
        write_value(value);
        await_work();
        close_when_ended();
        assert_measured(first);
        assert_unmeasured(second, "the launch came behind a wait for a value in memory that had not come before work");
    }
    const unsigned first = launch(SIM_ADD);
    await_value(6);
    assert_measured(first);
    write_value(6);
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    const unsigned last = launch_function(&function);
    close_batch();
    assert_measured(last);
    sim.may_wait = false;
}

/* The call cannot wait until the batch is replayed. If that happens often, waits close batches. */
TEST_WITH(test_value_that_has_not_come_as_a_batch_must_close, NULL, mend)
{
    sim.may_wait = true;
    for (uint64_t value = 7; value < 10; value++) {
        const unsigned first = launch(SIM_ADD);
        await_value(value);
        close_batch();
        assert_pending(first);
        write_value(value);
        await_work();
        close_when_ended();
        assert_unmeasured(first, "the launch was not repeated: its work did not end before a call that takes away");
    }
    const unsigned first = launch(SIM_ADD);
    await_value(10);
    assert_measured(first);
    write_value(10);
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    sim.may_wait = false;
}

static void await_host(uint64_t value)
{
    do_call((sim_step){.op = SIM_VALUE_WAIT, .flag = value});
}

static void write_by_host(uint64_t value)
{
    sim_call(&(sim_step){.op = SIM_RELEASE, .flag = value}, NULL);
    await_work();
}

/* A program that begins each round by a wait never launches while the context is idle. So a batch opens at the wait. */
TEST_WITH(test_batch_that_opens_at_a_wait, NULL, mend)
{
    assert_measured(launch_alone(SIM_ADD)); /* the kernel is known */
    sim.may_wait = true;
    await_host(11);
    assert_false(kprof_batch_is_open()); /* nothing has been put off */
    assert_unmeasured(launch(SIM_ADD), "the GPU's work did not end within 0.1 s");
    write_by_host(11);
    await_host(12);
    const unsigned first = launch(SIM_ADD), second = launch(SIM_ADD);
    assert_pending(first);
    write_by_host(12);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    await_host(13);
    assert_false(kprof_batch_is_open());
    write_by_host(13);
    sim.may_wait = false;
}

/* Then no batch opens at a wait, as none would be replayed. */
TEST_WITH(test_wait_where_nothing_is_repeated, NULL, mend)
{
    kprof_config *config = &kprof_engine.process.config;
    const int choice = config->replay_choice;
    sim.may_wait = true;
    await_host(14);
    assert_unmeasured(launch(SIM_ADD), "the GPU's work did not end within 0.1 s");
    write_by_host(14);
    config->replay_choice = KPROF_MULTIPLEX_ALL;
    await_host(15);
    assert_false(kprof_batch_is_open());
    write_by_host(15);
    config->replay_choice = choice;
    (void)launch_alone(SIM_ADD); /* what was put off */
    sim.may_wait = false;
}

/* Nothing there is repeated, and it may be what others wait for. */
TEST_WITH(test_value_in_another_context, NULL, mend)
{
    const unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_VALUE_WAIT, .stream = OTHER_STREAM, .from = OTHER_STREAM, .flag = 0});
    assert_measured(first);
}

/* Launches that could not be measured then do not count. */
TEST_WITH(test_count_of_launches_behind_work_that_waits, NULL, mend)
{
    kprof_filter *before = kprof_engine.process.filter, *two;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_count = 2}, &two), KPROF_OK);
    kprof_engine.process.filter = two;
    hold(1);
    for (unsigned i = 0; i < 3; i++)
        assert_unmeasured(launch(SIM_ADD), "the GPU's work did not end within 0.1 s");
    let_go(1);
    unsigned first = launch(SIM_ADD);
    hold(1);
    assert_false(try_to_close());
    assert_unmeasured(launch(SIM_ADD), "the GPU's work did not end within 0.1 s");
    let_go(1);
    close_when_ended();
    assert_measured(first);
    unsigned second = launch(SIM_ADD); /* the last one closes its batch */
    assert_measured(second);
    (void)launch(SIM_ADD);
    assert_false(kprof_batch_is_open());
    assert_int_equal(look_up(last_tag).count, 0);
    kprof_engine.process.filter = before;
    kprof_filter_free(two);
}

/* Memory that is freed cannot be put back, and a kernel of the next module may have this one's handle. */
TEST_WITH(test_calls_that_close, NULL, mend)
{
    sim.refuses_frees = true;
    static const sim_step calls[] = {
        {.op = SIM_FREE, .a = SPARE_SLOT},
        {.op = SIM_UNKNOWN, .a = SLOT},
        {.op = SIM_RELOAD, .a = SIM_VARIABLES},
        {.op = SIM_GRAPH_LAUNCH},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
        unsigned tag = launch(SIM_ADD);
        assert_pending(tag);
        do_call(calls[i]);
        assert_measured(tag);
    }
}

/* Each pass would repeat what is not chosen, too. */
TEST_WITH(test_nothing_but_transfers, NULL, mend)
{
    unsigned tag = launch(SIM_ADD);
    set_memory(1);
    assert_pending(tag);
    sim_clock_advance_s(1);
    set_memory(2);
    assert_measured(tag);
    assert_int_equal(repeated, PASSES); /* up to the last launch that is measured */
}

/* A launch that must not be repeated is measured by itself. */
TEST_WITH(test_launch_that_is_not_repeated, NULL, mend)
{
    unsigned before = launch(SIM_ADD);
    assert_unmeasured(launch(SIM_PRINT), "a kernel's first launch is only watched");
    unsigned prints = launch(SIM_PRINT);
    assert_measured(before);
    assert_measured_once(prints,
                         "measured in 1 of 2 passes, as no more equal launches came: the kernel cannot be replayed");
    assert_int_equal(repeated, PASSES);
    unsigned after = launch(SIM_ADD);
    close_batch();
    assert_measured(after);
}

/* Replays are unheard, and the launch is measured before its call returns. */
TEST_WITH(test_launch_that_prints, NULL, mend)
{
    sim.sees_output = true;
    unsigned before = launch(SIM_ADD), prints = launch(SIM_PRINT);
    assert_measured(before);
    assert_measured(prints);
    uint64_t printed = sim.printed[0];
    do_call((sim_step){.op = SIM_SYNC_CONTEXT});
    assert_int_equal(sim.printed[0], printed);
    assert_int_equal(repeated, 2 * PASSES);
}

/* Its text is for errors alone, as often. */
TEST_WITH(test_launch_that_can_print, NULL, mend)
{
    sim.sees_output = sim.prints_nothing = true;
    unsigned first = launch(SIM_PRINT), second = launch(SIM_PRINT);
    assert_measured(first);
    assert_measured(second);
    assert_int_equal(repeated, 2 * PASSES);
}

/* Then nothing of it could be dropped. */
TEST_WITH(test_output_that_is_not_seen, NULL, mend)
{
    sim.sees_output = sim.hides_output = true;
    assert_unmeasured(launch(SIM_PRINT), "its kernel can print, and kprof does not see how");
    unsigned second = launch(SIM_PRINT);
    assert_pending(second); /* it is multiplexed */
    close_batch();
    assert_int_equal(repeated, 0);
}

static unsigned compared;

static void count_compared(kprof_kernel *kernel)
{
    compared += atomic_load(&kernel->compared);
}

/* How many kernels are known to give the host the same in replays? */
static unsigned compared_kernels(void)
{
    compared = 0;
    kprof_kernels_visit(count_compared);
    return compared;
}

/* Before the launch behind a copy to the host that may show what a new kernel has done, replays without counters
 * compare what they give. The batch goes on. */
TEST_WITH(test_copies_to_the_host_behind_new_kernels, NULL, mend)
{
    uint64_t words[SIM_WORDS], end[SIM_WORDS];
    unsigned first = launch(SIM_ADD), second = launch(SIM_SUM);
    copy_out(words);
    assert_int_equal(repeated, 0);
    assert_same_memory(words);
    unsigned third = launch(SIM_SUM);
    assert_int_equal(compared_kernels(), 2);
    assert_int_equal(repeated, 3 * TRIES);
    copy_much_out(words); /* of known kernels */
    assert_int_equal(repeated, 3 * TRIES);
    unsigned new_one = launch(SIM_SCALE);
    copy_out(words);
    unsigned last = launch(SIM_SUM);
    assert_int_equal(compared_kernels(), 3);
    assert_int_equal(repeated, (3 + 7) * TRIES);
    assert_pending(first);
    look(end);
    repeated = 0;
    close_batch();
    assert_int_equal(repeated, 8 * PASSES);
    assert_same_memory(end);
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    assert_measured(new_one);
    assert_measured(last);
}

/* Nothing may be measured, or repeated once more, upon memory that is not the own runs'. */
TEST_WITH(test_try_that_leaves_a_trace, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned tag = launch(SIM_SCALE);
    copy_out(words);
    cannot_restore = true;
    (void)launch(SIM_ADD);
    cannot_restore = false;
    assert_unmeasured(tag, "the memory cannot be restored (test)");
    assert_false(kprof_batch_is_open() || atomic_load(&kprof_engine.process.armed));
    atomic_store(&kprof_engine.process.armed, true);
}

/* Tries take time: after some that found no difference other kernels are taken for like these. */
TEST_WITH(test_copies_behind_many_new_kernels, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    static const sim_kernel kernels[] = {SIM_ADD, SIM_SCALE, SIM_MOVE, SIM_SUM};
    for (unsigned i = 0; i < 4; i++) {
        do_call((sim_step){.op = SIM_LAUNCH, .kernel = kernels[i], .a = SLOT, .b = SLOT, .tag = ++last_tag});
        assert_int_equal(compared_kernels(), i);
        copy_out(words);
    }
    unsigned new_one = launch(SIM_COUNT), before = repeated;
    copy_out(words);
    (void)launch(SIM_COUNT);
    assert_int_equal(compared_kernels(), 4);
    assert_int_equal(repeated, before);
    close_batch();
    assert_measured(new_one);
}

/* Have what the host has got compared, and change none of it. */
static unsigned launch_elsewhere(void)
{
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_COUNT, .a = SPARE_SLOT, .b = SPARE_SLOT, .tag = ++last_tag});
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    return last_tag;
}

/* A try that is abandoned leaves no trace. */
TEST_WITH(test_try_that_takes_far_longer, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned tag = launch(SIM_ADD);
    atomic_store(&faults.launch_s, LONG_S);
    copy_out(words);
    unsigned next = launch_elsewhere();
    assert_report(tag, 0, "a pass took far longer than the application's own run");
    assert_same_memory(words);
    assert_int_equal(compared_kernels(), 0);
    assert_pending(next);
}

/* The batch would wait in vain for what runs beside the copy. */
TEST_WITH(test_copy_beside_work_that_waits, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned tag = launch(SIM_ADD);
    hold(1);
    copy_out(words);
    assert_pending(tag);
    let_go(1);
    close_batch();
    assert_measured(tag);
}

/* No other launch can be chosen. */
TEST_WITH(test_last_launch_that_is_asked_for, NULL, mend)
{
    kprof_filter *before = kprof_engine.process.filter, *two;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_count = 2}, &two), KPROF_OK);
    kprof_engine.process.filter = two;
    unsigned first = launch(SIM_ADD);
    assert_pending(first);
    unsigned second = launch(SIM_ADD);
    assert_measured(first);
    assert_measured(second);
    kprof_engine.process.filter = before;
    kprof_filter_free(two);
}

/* The last one is on its way in another thread as the one before it returns: it shares the batch. */
TEST_WITH(test_last_launch_in_another_thread, NULL, mend)
{
    kprof_filter *before = kprof_engine.process.filter, *two;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_count = 2}, &two), KPROF_OK);
    kprof_engine.process.filter = two;
    const unsigned first = launch(SIM_ADD);
    atomic_fetch_add(&kprof_engine.process.matched, 1);
    const unsigned second = launch(SIM_ADD);
    assert_pending(second);
    atomic_fetch_add(&kprof_engine.process.handled, 1);
    (void)launch(SIM_SCALE); /* which is not chosen */
    assert_measured(first);
    assert_measured(second);
    kprof_engine.process.filter = before;
    kprof_filter_free(two);
}

/* Kernels compute something else each time. Does a batch of them end where the host gets something? Else replays go on
 * from what the own run left there. */
static bool will_close_at_copy(void)
{
    uint64_t words[SIM_WORDS], end[SIM_WORDS];
    unsigned tags[4];
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        tags[i] = launch(i % 2 ? SIM_ADD : SIM_DICE);
        assert_pending(tags[i]);
        copy_out(words);
    }
    const bool closes = look_up(tags[0]).count > 0;
    look(end);
    close_batch();
    for (size_t i = 0; i < COUNT_OF(tags); i++)
        assert_measured(tags[i]);
    assert_same_memory(end);
    assert_int_equal(compared_kernels(), 0);
    return closes;
}

/* The host has seen what the replay does not compute: no launch is lost behind it. */
TEST_WITH(test_kernel_that_computes_something_else, NULL, mend)
{
    uint64_t words[SIM_WORDS], end[SIM_WORDS];
    unsigned first = launch(SIM_DICE);
    copy_out(words);
    unsigned second = launch(SIM_ADD);
    assert_measured(first);
    look(end);
    close_batch();
    assert_same_memory(end);
    assert_measured(second);
    assert_true(kprof_contexts_find(&sim.contexts[0])->diverges);
    assert_int_equal(compared_kernels(), 0);
    assert_false(will_close_at_copy());
    atomic_store(&faults.all_not_kept, true);
    assert_true(will_close_at_copy());
}

static void trust(kprof_kernel *kernel)
{
    atomic_store(&kernel->compared, true);
}

/* Memory is at the end of the own run what it was before, and not where a replay ends: nobody has seen it change. */
TEST_WITH(test_memory_that_only_replays_change, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    set_memory(7);
    close_batch();
    unsigned tag = launch(SIM_DICE);
    copy_out(words);
    set_memory(7);
    close_batch();
    assert_measured(tag);
    look(words);
    assert_filled(words, 1, 7);
}

/* After replays of other launches have given the host the same. -c counts another launch in place of the lost one. */
TEST_WITH(test_kernel_that_computes_something_else_later, NULL, mend)
{
    uint64_t words[SIM_WORDS], end[SIM_WORDS];
    kprof_filter *before = kprof_engine.process.filter, *two;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_count = 2}, &two), KPROF_OK);
    kprof_engine.process.filter = two;
    kprof_kernels_visit(trust);
    unsigned first = launch(SIM_DICE);
    copy_out(words);
    unsigned second = launch(SIM_ADD);
    look(end);
    close_batch();
    assert_same_memory(end);
    assert_measured(first); /* before the host knew */
    assert_unmeasured(second, "a replay computed something else");
    assert_false(kprof_filter_exhausted(two));
    kprof_engine.process.filter = before;
    kprof_filter_free(two);
}

/* What the host gets first is the same in each replay, and what it gets then is not. */
TEST_WITH(test_kernel_with_several_results, NULL, mend)
{
    uint64_t words[SIM_WORDS], end[SIM_WORDS];
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned first = launch(SIM_DICE);
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SPARE_SLOT}, words), 0);
    assert_pending(first);
    copy_out(words);
    unsigned second = launch(SIM_ADD);
    assert_measured(first);
    look(end);
    close_batch();
    assert_measured(second);
    assert_same_memory(end);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* No launch comes that would have them compared. Other processes may wait for the counters. */
TEST_WITH(test_copies_behind_the_last_launch, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned last = launch(SIM_ADD);
    copy_out(words);
    assert_pending(last);
    sim_clock_advance_s(LONG_S);
    copy_out(words);
    assert_measured(last);
    assert_same_memory(words);
}

/* Only some replays show it, so they are tried once more when there are many launches that would be lost. */
TEST_WITH(test_kernel_that_computes_something_else_in_a_long_batch, NULL, mend)
{
    uint64_t words[SIM_WORDS], end[SIM_WORDS];
    kprof_kernels_visit(trust);
    unsigned first = launch(SIM_DICE);
    for (unsigned i = 0; i < 30; i++)
        copy_out(words);
    assert_int_equal(repeated, 0);
    assert_pending(first);
    copy_out(words);
    unsigned second = launch(SIM_ADD);
    assert_measured(first);
    look(end);
    close_batch();
    assert_same_memory(end);
    assert_measured(second);
}

/* A batch that is not much longer than one whose replays agreed is trusted. */
TEST_WITH(test_long_batches_that_are_trusted, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    kprof_kernels_visit(trust);
    for (unsigned i = 0; i < 40; i++) {
        (void)launch(SIM_ADD);
        copy_out(words);
        assert_int_equal(repeated, i < 16 ? 0 : 32 * TRIES);
    }
}

/* They tell nothing of what replays would give. */
TEST_WITH(test_copies_that_are_not_compared, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned tag = launch(SIM_ADD);
    atomic_store(&faults.after, 2 + 1);
    copy_out(words);
    atomic_store(&faults.fails, true);
    (void)launch_elsewhere();
    assert_report(tag, 0, "the driver fails (test)");
    assert_int_equal(compared_kernels(), 0);
    assert_same_memory(words);
    tag = launch(SIM_ADD);
    atomic_store(&faults.not_kept, true);
    copy_out(words);
    (void)launch(SIM_COUNT);
    assert_report(tag, 0, "what came from the host, or went to it, could not be kept");
    assert_int_equal(compared_kernels(), 0);
    tag = launch(SIM_ADD);
    close_batch(); /* no copy */
    assert_measured(tag);
    assert_int_equal(compared_kernels(), 0);
}

/* Nobody has seen it, but the application goes on with what its own run left. */
TEST_WITH(test_kernel_that_computes_something_else_unseen, NULL, mend)
{
    uint64_t end[SIM_WORDS];
    unsigned tag = launch(SIM_DICE);
    look(end);
    close_batch();
    assert_same_memory(end);
    assert_measured(tag);
}

/* Its kernels may write the memory that is to be saved. */
TEST_WITH(test_other_context_that_is_at_work, NULL, end_other_context)
{
    sim.hooks->context_created(OTHER_CONTEXT);
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    sim.holds = 1;
    sim_call(&(sim_step){.op = SIM_HOLD, .stream = OTHER_STREAM}, NULL);
    tag = launch(SIM_ADD);
    close_batch();
    assert_unmeasured(tag, "the GPU's work did not end within 0.1 s");
}

/* The host writes managed memory between launches, with no call: replays write it, too, before the next launch. */
TEST_WITH(test_managed_memory, NULL, mend)
{
    uint64_t words[SIM_WORDS], added[SIM_WORDS];
    sim.managed = sim.managed_is_large = true;
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    do_call((sim_step){.op = SIM_ALLOC, .a = MANAGED_SLOT, .shared = true});
    unsigned first = launch_on(SIM_ADD, MANAGED_SLOT), second = launch_on(SIM_ADD, MANAGED_SLOT);
    assert_pending(first);
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = MANAGED_SLOT, .value = 7}, NULL);
    assert_pending(second);
    unsigned third = launch_on(SIM_ADD, MANAGED_SLOT);
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = MANAGED_SLOT, .value = 8}, NULL);
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT}); /* saving it might take pages from the host */
    unsigned fourth = launch_on(SIM_ADD, MANAGED_SLOT);
    assert_pending(third);
    close_batch();
    assert_true(alarms_blocked);
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    assert_measured(fourth);
    assert_int_equal(repeated, (4 + 2) * PASSES);
    look_at(MANAGED_SLOT, words);
    look(added);
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(words[i] == sim_hash(8, i) + added[i]);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* A prefetch takes a page from the host, and the batch goes on: replays write what the host had written there. */
TEST_WITH(test_managed_memory_that_moves, NULL, mend)
{
    uint64_t words[SIM_WORDS], added[SIM_WORDS];
    const unsigned first = launch_on(SIM_ADD, MANAGED_SLOT);
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = MANAGED_SLOT, .value = 11}, NULL);
    do_call((sim_step){.op = SIM_PREFETCH, .a = MANAGED_SLOT});
    const unsigned second = launch_on(SIM_ADD, MANAGED_SLOT);
    do_call((sim_step){.op = SIM_PREFETCH, .a = MANAGED_SLOT});
    assert_pending(first);
    assert_pending(second);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    look_at(MANAGED_SLOT, words);
    look(added);
    for (unsigned i = 0; i < SIM_WORDS; i++)
        assert_true(words[i] == sim_hash(11, i) + added[i]);
}

/* It is no launch, so no range of the own run ends with it. */
TEST_WITH(test_managed_memory_that_moves_in_a_search, NULL, mend)
{
    const bool shared = sim.shares_memory;
    sim.shares_memory = true;
    assert_measured(launch_alone(SIM_ADD));
    kprof_the_batch.state.context->searches = true;
    const unsigned first = launch(SIM_ADD);
    assert_true(kprof_the_batch.state.searching && kprof_batch_records());
    do_call((sim_step){.op = SIM_PREFETCH, .a = MANAGED_SLOT});
    const unsigned second = launch(SIM_ADD);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    sim.shares_memory = shared;
}

static unsigned launch_for_ms(sim_function *function, int64_t ms)
{
    sim.may_wait = true;
    do_call((sim_step){
        .op = SIM_LAUNCH, .function = function, .a = MANAGED_SLOT, .b = SLOT, .slow_ms = ms, .tag = ++last_tag});
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    await_work();
    sim.may_wait = false;
    kprof_engine.waits.hold_ns = kprof_engine.waits.patience_ns = SIM_LONG_HOLD_NS;
    return last_tag;
}

/* The call of a launch would have to be held until that has ended. Later ones are measured as they run. */
TEST_WITH(test_managed_memory_of_a_kernel_that_takes_long, NULL, mend)
{
    static sim_function slow = {"slow, managed", .kernel = SIM_ADD};
    unsigned first = launch_for_ms(&slow, 0);
    close_batch();
    assert_measured(first);
    assert_unmeasured(launch_for_ms(&slow, 250), "the GPU's work did not end within 0.1 s");
    assert_unmeasured(launch_for_ms(&slow, 250), "a kernel's first launches are only watched");
    unsigned last = launch_for_ms(&slow, 250);
    close_when_ended();
    end_samples();
    assert_report(last, 1, "launches of the kernel take longer than a call is held");
}

/* What the host did takes too much space: the batch ends before the next launch. */
TEST_WITH(test_managed_memory_that_is_not_kept, NULL, mend)
{
    unsigned first = launch_on(SIM_ADD, MANAGED_SLOT);
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = MANAGED_SLOT, .value = 9}, NULL);
    atomic_store(&faults.host_not_kept, true);
    unsigned second = launch_on(SIM_ADD, MANAGED_SLOT);
    assert_measured(first);
    assert_pending(second);
    close_batch();
    assert_measured(second);
}

/* The application is about to start one, which may use managed memory as soon as it runs. */
TEST_WITH(test_managed_memory_before_a_thread, NULL, mend)
{
    unsigned tag = launch_on(SIM_ADD, MANAGED_SLOT);
    kprof_launch_before(KPROF_BEFORE_THREAD);
    assert_measured(tag);
}

/* With managed memory no replays are tried behind a copy to the host. Those of the passes compare it, so that the next
 * batch stays open. */
TEST_WITH(test_copies_to_the_host_with_managed_memory, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    unsigned first = launch(SIM_ADD);
    copy_out(words);
    assert_measured(first);
    assert_int_equal(repeated, 2 * PASSES);
    assert_int_equal(compared_kernels(), 1);
    unsigned second = launch(SIM_ADD);
    copy_out(words);
    assert_pending(second);
    close_batch();
    assert_measured(second);
    assert_same_memory(words);
}

/* Once they have given it something else, replays go on from what the own run left, managed memory among it. */
TEST_WITH(test_copies_that_differ_with_managed_memory, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    const unsigned first = launch(SIM_DICE);
    copy_out(words);
    assert_measured(first);
    assert_true(kprof_contexts_find(&sim.contexts[0])->diverges);
    assert_false(will_close_at_copy());
}

static void match_scale_alone(kprof_kernel *kernel)
{
    kernel->matches = strcmp(kernel->record.mangled, "scale") == 0;
}

static void match(kprof_kernel *kernel)
{
    kernel->matches = true;
}

/* So many that nobody chose would cost the chosen one its automatic range. */
TEST_WITH(test_copy_behind_many_that_were_not_chosen, NULL, mend)
{
    uint64_t words[SIM_WORDS];
    kprof_kernels_visit(match_scale_alone);
    unsigned chosen = launch(SIM_SCALE);
    for (unsigned i = 0; i < 40; i++)
        launch(SIM_ADD);
    copy_out(words);
    kprof_kernels_visit(match);
    assert_measured(chosen);
    assert_int_equal(repeated, PASSES);
    assert_int_equal(compared_kernels(), 0);
}

/* A thread that the application has started since may be using it while the batch is replayed. */
TEST_WITH(test_managed_memory_and_another_thread, NULL, mend)
{
    unsigned first = launch(SIM_ADD);
    assert_pending(first);
    sim.several_threads = true;
    close_batch();
    assert_unmeasured(first, "the launch was not repeated: other threads may use managed memory");
    assert_int_equal(repeated, 0);
    unsigned second = launch(SIM_ADD);
    assert_unmeasured(second, "only watched");
    sim.several_threads = false;
    unsigned third = launch(SIM_ADD);
    close_batch();
    assert_measured(third);
}

static int end_threads(void **state)
{
    const int failed = mend(state);
    sim.several_threads = sim.hides_host = sim.managed_stays = sim.managed_is_over = false;
    sim.managed_is_large = true;
    return failed;
}

/* There is little enough of it to stay on the host, where the proof sees kernels reach it. They do not: so other
 * threads may use it while the batch is open, and while it is replayed. */
TEST_WITH(test_managed_memory_that_stays_on_the_host, NULL, end_threads)
{
    uint64_t words[SIM_WORDS];
    sim.managed_is_large = false;
    sim.several_threads = true;
    const unsigned first = launch(SIM_ADD);
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = MANAGED_SLOT, .value = 12}, NULL);
    const unsigned second = launch(SIM_ADD);
    assert_pending(first);
    assert_true(sim.holds_managed);
    close_batch();
    assert_false(sim.holds_managed);
    assert_measured(first);
    assert_measured(second);
    look_at(MANAGED_SLOT, words);
    assert_filled(words, 1, 12);
}

/* What managed memory is for. */
TEST_WITH(test_managed_memory_that_kernels_reach_on_the_host, NULL, end_threads)
{
    uint64_t words[SIM_WORDS], expected[SIM_WORDS];
    sim.managed_is_large = false;
    sim.several_threads = sim.hides_host = true;
    look_at(MANAGED_SLOT, expected);
    const unsigned first = launch(SIM_ADD), second = launch_on(SIM_SUM, MANAGED_SLOT);
    assert_pending(first);
    const unsigned third = launch(SIM_ADD); /* before it the second one's kernel is looked at, which is new */
    assert_unmeasured(first, "reached memory of the host");
    assert_unmeasured(second, "reached memory of the host");
    assert_int_equal(repeated, 0);
    look_at(MANAGED_SLOT, words);
    assert_memory_equal(words, expected, sizeof words);
    assert_false(sim.holds_managed);
    close_batch();
    assert_unmeasured(third, "other threads may use managed memory"); /* it was to join the batch that was lost */
    assert_unmeasured(launch(SIM_ADD), "only watched");
}

/* Kernels may have reached that without being seen. */
TEST_WITH(test_managed_memory_that_comes_while_some_stays, NULL, end_threads)
{
    sim.managed_is_large = false;
    sim.several_threads = true;
    const unsigned first = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT, .shared = true});
    const unsigned second = launch(SIM_ADD);
    close_batch();
    assert_unmeasured(first, "managed memory came");
    assert_unmeasured(second, "managed memory came");
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
}

/* Its first launch is lost, as the host may have used managed memory while it ran. Later ones need not be awaited. */
TEST_WITH(test_long_kernel_beside_managed_memory_that_stays, NULL, end_threads)
{
    static sim_function slow = {"slow, beside managed", .kernel = SIM_ADD};
    sim.managed_is_large = false;
    for (int i = 0; i < 3; i++) {
        sim.may_wait = true;
        do_call(
            (sim_step){.op = SIM_LAUNCH, .function = &slow, .a = SLOT, .b = SLOT, .slow_ms = 250, .tag = ++last_tag});
        do_call((sim_step){.op = SIM_SYNC_STREAM});
        await_work();
        sim.may_wait = false;
        kprof_engine.waits.hold_ns = kprof_engine.waits.patience_ns = SIM_LONG_HOLD_NS;
        if (i == 0)
            assert_unmeasured(last_tag, "the GPU's work did not end within 0.1 s");
    }
    assert_true(sim.managed_stays);
    close_batch();
    assert_measured(last_tag);
}

/* That its kernel has ended by itself before tells nothing: the launch may wait for what comes behind it in another
 * stream. */
TEST_WITH(test_kernel_that_waits_beside_managed_memory_that_stays, NULL, end_threads)
{
    sim.managed_is_large = false;
    sim.several_threads = true;
    const unsigned first = launch(SIM_ADD);
    sim_step elsewhere = {.op = SIM_LAUNCH, .kernel = SIM_ADD, .stream = 1, .a = SLOT, .b = SLOT, .tag = ++last_tag};
    do_call(elsewhere); /* before it the first one has ended */
    const unsigned second = launch(SIM_ADD);
    hold(0);
    const unsigned third = launch(SIM_ADD);
    elsewhere.tag = ++last_tag;
    do_call(elsewhere);
    assert_true(kprof_batch_is_sealed());
    let_go(0);
    close_when_ended();
    assert_measured(first);
    assert_unmeasured(second, "may have waited for");
    assert_unmeasured(third, "may have waited for");
}

/* Nobody knows what the host does until its next call. */
TEST_WITH(test_pause_with_managed_memory, NULL, mend)
{
    unsigned tag = launch(SIM_ADD);
    sim_clock_advance_s(1);
    usleep(600000); /* the engine looks four times a second */
    assert_pending(tag);
    close_batch();
    assert_measured(tag);
}

/* Another process stands in line behind this one, which has its turn: see lock.c. */
static int other_in_line = -1;

static void stand_in_line(void)
{
    char path[sizeof folder + 64];
    uint32_t last;
    snprintf(path, sizeof path, "%s/gpu.00112233445566778899aabbccddeeff.line", folder);
    other_in_line = open(path, O_RDWR | O_CLOEXEC);
    assert_true(other_in_line >= 0);
    assert_int_equal(pread(other_in_line, &last, sizeof last, sizeof last), sizeof last);
    struct flock ticket = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = ((off_t)1 << 41) + ++last, .l_len = 1};
    assert_int_equal(fcntl(other_in_line, F_OFD_SETLK, &ticket), 0);
    assert_int_equal(pwrite(other_in_line, &last, sizeof last, sizeof last), sizeof last);
}

static int leave_line(void **state)
{
    if (other_in_line >= 0)
        close(other_in_line);
    other_in_line = -1;
    kprof_the_batch.closing.lost_in_pause = false;
    return mend(state);
}

/* A process pauses behind a wait rather than behind a launch. */
TEST_WITH(test_managed_memory_while_others_wait, NULL, leave_line)
{
    const unsigned first = launch(SIM_ADD);
    stand_in_line();
    const unsigned second = launch(SIM_ADD);
    assert_pending(first);
    assert_pending(second);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    assert_measured(first);
    assert_measured(second);
}

/* From then on the process takes no chances. */
TEST_WITH(test_pause_with_managed_memory_while_others_wait, NULL, leave_line)
{
    const unsigned lost = launch(SIM_ADD);
    stand_in_line();
    atomic_store(&others_may_close, true);
    for (int i = 0; i < 100 && kprof_batch_is_open(); i++) {
        sim_clock_advance_s(1);
        usleep(50000);
    }
    atomic_store(&others_may_close, false);
    assert_unmeasured(lost, "the launch was not repeated: other threads may use managed memory");
    close(other_in_line);
    const unsigned first = launch(SIM_ADD);
    assert_pending(first);
    stand_in_line();
    const unsigned second = launch(SIM_ADD);
    assert_measured(first);
    assert_measured(second);
}

/* The thread that calls exec replays it; in a signal handler the thread that watches for pauses has it, to which a
 * stream is being captured. */
TEST_WITH(test_exec_with_managed_memory, NULL, mend)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    unsigned in_handler = launch(SIM_ADD);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    kprof_launch_before(KPROF_BEFORE_EXEC);
    assert_unmeasured(in_handler, "a stream was being captured");
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    unsigned tag = launch(SIM_ADD);
    kprof_launch_before(KPROF_BEFORE_EXEC);
    assert_measured(tag);
}

AROUND_ALL(start_faulty, remove_folder)
