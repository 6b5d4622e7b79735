/* The engine on the simulated machine, where what the random programs cannot ask for goes wrong. The process shares
 * memory with the host, so that a proof is taken of each batch.
 */
#include "engine_test.h"
#include "sim/clock.h"

#include "cupti/snapshot.h"
#include "inject/batch.h"
#include "inject/batch/stages.h"
#include "inject/captures.h"
#include "inject/contexts.h"
#include "inject/decision.h"
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/kernels.h"
#include "inject/launch.h"
#include "inject/lock.h"
#include "inject/process.h"
#include "inject/wait.h"
#include "inject/watch.h"
#include "test.h"

#include <glob.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCHES     2 /* of a kernel, before it is measured in its own run */
#define STICKY_MS   200
#define SHARED_SLOT 0 /* in the same context as the other one */

/* What goes wrong. */
static struct {
    atomic_bool unsaved; /* memory cannot be saved */
    atomic_bool network; /* a network card may write memory */
    atomic_bool busy;    /* a pause of the test closes no batch */
    atomic_bool sticky;  /* giving the counters back takes long */
    atomic_bool vain;    /* a copy is not awaited to the end */
    atomic_bool blind;   /* CUPTI does not tell what the proof counted */
    atomic_uint slow;    /* so many waits from now one for the GPU begins that ends when it is told to; 0: none */
    atomic_bool stuck;   /* it has begun, and not ended */
    atomic_bool deep;    /* a kernel that is new needs local memory, and the device has no space for it */
} faults;

#define SMS             2
#define THREADS_PER_SM  1024
#define BYTES_PER_STACK 4096
static atomic_uint stack_bytes = BYTES_PER_STACK; /* of a kernel while `deep` */
static size_t asked_bytes;                        /* of local memory, for which space was looked for last */
static unsigned given_back;                       /* how often copies were */

#define HELD_BYTES 65536
static size_t added_bytes;  /* to the free memory that a call told of */
static unsigned held_asked; /* how often what kprof keeps was looked for */

static atomic_bool releasing; /* the counters are being given back */
static atomic_int snapshots;  /* that are taken now */

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* To the thread that watches for pauses, a stream is being captured. */
static bool is_capturing(void)
{
    bool watches = !pthread_equal(pthread_self(), own_thread) && kprof_gate_is_own();
    return (watches && atomic_load(&faults.busy)) || sim_device.target_capturing();
}

static void release_profiler(kprof_profiler *profiler)
{
    bool sticks = atomic_load(&faults.sticky);
    atomic_store(&releasing, sticks);
    if (sticks)
        wait_ms(STICKY_MS);
    sim_device.profiler_release(profiler);
    atomic_store(&releasing, false);
}

static kprof_status open_reader(const kprof_chip_metrics *metrics, kprof_reader **out)
{
    return atomic_load(&faults.blind) ? kprof_fail(KPROF_INTERNAL, "CUPTI cannot evaluate (test)")
                                      : sim_device.reader_open(metrics, out);
}

static void drop_snapshot(kprof_snapshot *snapshot, bool is_idle)
{
    atomic_fetch_sub(&snapshots, 1);
    sim_device.snapshot_drop(snapshot, is_idle);
}

static kprof_status take_snapshot(kprof_snapshot *snapshot, bool with_host)
{
    if (atomic_load(&faults.unsaved))
        return kprof_fail(KPROF_UNSUPPORTED, "memory cannot be saved (test)");
    atomic_fetch_add(&snapshots, 1);
    return sim_device.snapshot_take(snapshot, with_host);
}

static kprof_status synchronize(void)
{
    if (atomic_load(&faults.slow) > 0 && atomic_fetch_sub(&faults.slow, 1) == 1)
        atomic_store(&faults.stuck, true);
    while (atomic_load(&faults.stuck))
        wait_ms(1);
    return sim_device.target_synchronize();
}

/* Nothing is known of the simulated machine's work while the wait goes on: it may have ended. */
static kprof_progress look_at_marks(const void *context)
{
    return atomic_load(&faults.stuck) ? (kprof_progress){.ahead = 1} : sim_device.marks_look(context);
}

static unsigned marked;       /* launches that have a mark */
static atomic_bool is_behind; /* the GPU, so that no mark shows a launch to be short */

static void *set_mark(void *context, void *stream, void *what)
{
    void *is_short = sim_device.marks_set(context, stream, what);
    marked++;
    return atomic_load(&is_behind) ? NULL : is_short;
}

static unsigned follows; /* how often a launch was followed */

static kprof_status follow(kprof_snapshot *snapshot, void *stream, bool becomes_start)
{
    follows++;
    return sim_device.snapshot_follow(snapshot, stream, becomes_start);
}

static bool takes_host; /* arguments name memory of the host, which no kernel uses */

static bool sees_host(const kprof_operation *operation)
{
    return takes_host || sim_device.operation_sees_host(operation);
}

static bool changes_memory; /* the launch that is watched */

static kprof_status look_for_changes(kprof_snapshot *snapshot, bool *changed)
{
    kprof_status status = sim_device.snapshot_has_changed(snapshot, changed);
    *changed = *changed || changes_memory;
    return status;
}

static unsigned prepared; /* how often CUPTI was begun with */
static bool was_in_line;  /* this process stood in line for the counters then */

static void prepare(void)
{
    char line[sizeof folder + 16];
    glob_t found;
    snprintf(line, sizeof line, "%s/gpu.*.line", folder);
    was_in_line = was_in_line || glob(line, 0, NULL, &found) == 0;
    globfree(&found);
    prepared++;
}

static unsigned stops; /* how often that was given up, as memory went */

static void stop_following(kprof_snapshot *snapshot)
{
    stops++;
    sim_device.snapshot_stop_following(snapshot);
}

static unsigned hosts_left; /* how often saved memory of the host was given up */

static bool leave_host(kprof_snapshot *snapshot)
{
    hosts_left++;
    return sim_device.snapshot_leave_host(snapshot);
}

/* What is waited for by the next waits does not end. `hold_ns`: how long a call may wait. */
static void begin_late_work(unsigned slow, int64_t hold_ns)
{
    atomic_store(&faults.slow, slow);
    kprof_engine.waits.hold_ns = hold_ns;
    kprof_engine.waits.patience_ns = SIM_SHORT_HOLD_NS;
}

static void end_late_work(void)
{
    assert_int_equal(atomic_load(&faults.slow), 0);
    atomic_store(&faults.stuck, false);
    kprof_engine.waits.hold_ns = kprof_engine.waits.patience_ns = SIM_LONG_HOLD_NS;
    await_work();
}

static unsigned awaited; /* copies before which the work before them was waited for */

static atomic_bool launches_meanwhile; /* another thread does */

static void *launch_beside(void *user)
{
    (void)launch(SIM_ADD);
    return NULL;
}

static kprof_awaited await_start(const kprof_call *call, int64_t perhaps_ns)
{
    pthread_t other;
    bool is_busy = atomic_exchange(&faults.busy, false);
    awaited++;
    if (atomic_exchange(&launches_meanwhile, false) && pthread_create(&other, NULL, launch_beside, NULL) == 0)
        pthread_join(other, NULL);
    atomic_store(&faults.busy, is_busy);
    assert_true(!kprof_gate_is_own() && atomic_load(&kprof_the_gate.inside) == 0); /* others can launch */
    kprof_awaited result = sim_device.transfer_await_start(call, perhaps_ns);
    return atomic_load(&faults.vain) ? KPROF_AWAIT_TIMED_OUT : result;
}

static kprof_status describe_device(uint32_t ordinal, kprof_device_record *out)
{
    kprof_status status = sim_device.target_device(ordinal, out);
    out->sm_count = SMS;
    out->max_threads_per_sm = THREADS_PER_SM;
    return status;
}

static void describe_kernel(const kprof_call *call, kprof_kernel_record *out)
{
    sim_device.target_kernel(call, out);
    out->local_bytes_per_thread = atomic_load(&faults.deep) ? atomic_load(&stack_bytes) : 0;
}

static bool has_space(const kprof_call *call, size_t local_bytes)
{
    if (local_bytes > 0)
        asked_bytes = local_bytes;
    return local_bytes == 0 && sim_device.target_has_space(call, local_bytes);
}

static size_t tell_held_bytes(const kprof_snapshot *snapshot)
{
    assert_non_null(snapshot);
    held_asked++;
    return HELD_BYTES;
}

static void give_back(kprof_snapshot *snapshot)
{
    given_back++;
    sim_device.snapshot_release(snapshot);
}

static void add_free(const kprof_call *call, size_t size_bytes)
{
    assert_int_equal(call->kind, KPROF_CALL_MEMORY_INFO);
    added_bytes += size_bytes;
}

static const char *find_writer(void)
{
    return atomic_load(&faults.network) ? "a network card may write (test)" : NULL;
}

static int start_sharing(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.operation_sees_host = sees_host;
    device.profiler_release = release_profiler;
    device.reader_open = open_reader;
    device.marks_look = look_at_marks;
    device.marks_set = set_mark;
    device.snapshot_drop = drop_snapshot;
    device.snapshot_follow = follow;
    device.snapshot_leave_host = leave_host;
    device.profiler_prepare = prepare;
    device.snapshot_stop_following = stop_following;
    device.snapshot_has_changed = look_for_changes;
    device.snapshot_take = take_snapshot;
    device.snapshot_held_bytes = tell_held_bytes;
    device.snapshot_release = give_back;
    device.target_add_free = add_free;
    device.target_capturing = is_capturing;
    device.target_device = describe_device;
    device.target_has_space = has_space;
    device.target_kernel = describe_kernel;
    device.target_synchronize = synchronize;
    device.transfer_await_start = await_start;
    device.writers_devices = find_writer;
    int result = start_engine_on(&device);
    sim_call(&(sim_step){.op = SIM_ALLOC, .a = SHARED_SLOT, .shared = true}, NULL);
    return result;
}

/* Threads of the engine may be looking. */
static void mend(void)
{
    atomic_bool *of[] = {&faults.unsaved, &faults.network, &faults.busy, &faults.sticky,
                         &faults.blind,   &faults.deep,    &faults.vain};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        atomic_store(of[i], false);
    atomic_store(&faults.slow, 0);
    takes_host = false;
    end_late_work();
}

static int set_up(void **state)
{
    mend();
    sim.hides_host = true;            /* only the proof tells */
    atomic_store(&faults.busy, true); /* else a pause of the test would close its batch */
    return 0;
}

static int tear_down(void **state)
{
    (void)sim_call(&(sim_step){.op = SIM_SYNC_CONTEXT}, NULL); /* slow work ends */
    mend();
    close_batch();
    assert_int_equal(atomic_load(&snapshots), 0);
    return 0;
}

static unsigned launch_alone(sim_kernel kernel, unsigned slot)
{
    close_batch();
    unsigned tag = launch_on(kernel, slot);
    close_batch();
    return tag;
}

/* Launch a kernel until it is not only watched. */
static void have_watched(sim_kernel kernel, unsigned slot)
{
    for (unsigned i = 0; i < WATCHES; i++)
        assert_unmeasured(launch_on(kernel, slot), "a kernel's first launches are only watched");
}

/* As CUDA's runtime does between launches. */
static void call_for_code(void)
{
    kprof_call call = {.kind = KPROF_CALL_CODE, .name = "look for a function", .context = &sim.contexts[0]};
    sim.hooks->enter(&call);
    sim.hooks->leave(&call);
}

/* The first test: its kernels have not been launched. Replays leave no trace in memory of the host, and repeat what it
 * wrote between the launches. */
TEST(test_host_memory_that_is_saved)
{
    uint64_t after[SIM_WORDS], later[SIM_WORDS];
    sim.saves_host = true;
    sim.hides_host = false;
    unsigned first = launch_on(SIM_ADD, SHARED_SLOT);
    sim_call(&(sim_step){.op = SIM_HOST_WRITE, .a = SHARED_SLOT, .value = 5}, NULL);
    call_for_code();
    unsigned second = launch_on(SIM_ADD, SHARED_SLOT), third = launch(SIM_ADD);
    assert_pending(first);
    sim_call(&(sim_step){.op = SIM_HOST_READ, .a = SHARED_SLOT}, after);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    sim_call(&(sim_step){.op = SIM_HOST_READ, .a = SHARED_SLOT}, later);
    assert_memory_equal(after, later, sizeof after);
    first = launch_on(SIM_ADD, SHARED_SLOT);
    assert_pending(first);
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT}); /* nothing tells which calls take memory of the host away */
    assert_measured(first);
    do_call((sim_step){.op = SIM_FREE, .a = SPARE_SLOT});
    sim.saves_host = false;
}

/* The driver allocates local memory within the launch: copies of kprof's must not take its space. */
TEST(test_kernel_that_needs_local_memory)
{
    unsigned before = launch(SIM_ADD);
    assert_pending(before);
    atomic_store(&faults.deep, true);
    asked_bytes = given_back = 0;
    unsigned deep = launch(SIM_COUNT);
    assert_int_equal(asked_bytes, (size_t)BYTES_PER_STACK * THREADS_PER_SM * SMS);
    assert_measured(before);
    assert_true(given_back > 0);
    asked_bytes = 0;
    unsigned again = launch(SIM_TALLY);
    assert_int_equal(asked_bytes, 0); /* the driver has as much by then */
    assert_pending(deep);
    close_batch();
    assert_measured(deep);
    assert_measured(again);
}

/* A capture allocates none, and what kprof keeps cannot be given back then: that is done when the graph is launched. */
TEST(test_captured_kernel_that_needs_local_memory)
{
    static sim_function deep = {"deep", .kernel = SIM_ADD};
    sim_step step = {.op = SIM_LAUNCH, .function = &deep, .a = SLOT, .b = SLOT};
    kprof_the_captures = (kprof_captures){.quiet = 3}; /* a batch stays open over captures */
    atomic_store(&stack_bytes, 2 * BYTES_PER_STACK);   /* more than any kernel before it needed */
    unsigned before = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    atomic_store(&faults.deep, true);
    asked_bytes = given_back = 0;
    do_call(step);
    do_call((sim_step){.op = SIM_END_CAPTURE});
    assert_int_equal(asked_bytes, 0);
    assert_pending(before);
    step.tag = ++last_tag;
    do_call(step);
    assert_int_equal(asked_bytes, (size_t)2 * BYTES_PER_STACK * THREADS_PER_SM * SMS);
    assert_true(given_back > 0);
    assert_measured(before);
    atomic_store(&stack_bytes, BYTES_PER_STACK);
    kprof_the_captures = (kprof_captures){0};
}

/* It takes time, and other processes may measure meanwhile. */
TEST(test_begins_with_cupti_before_its_turn)
{
    (void)launch_alone(SIM_ADD, SLOT);
    assert_true(prepared > 0 && !was_in_line);
}

/* The proof is clean: nothing reaches the memory that is shared. */
TEST(test_launches_that_stay_on_the_device)
{
    unsigned first = launch(SIM_SWAP), second = launch(SIM_SWAP);
    assert_pending(first);
    close_batch();
    assert_measured(first);
    assert_measured(second);
}

/* Replays are tried before the launch behind the first copy of a kernel to the host. The own run has to be proved
 * before and after that. */
TEST(test_proof_around_a_try)
{
    static const char why[] = "reached memory of the host, which no replay may change";
    uint64_t words[SIM_WORDS];
    const sim_step copy_out = {.op = SIM_COPY_OUT, .a = SLOT};
    unsigned first = launch(SIM_ADD);
    assert_int_equal(sim_call(&copy_out, words), 0);
    unsigned second = launch(SIM_ADD);
    assert_pending(first);
    assert_int_equal(kprof_contexts_find(&sim.contexts[0])->comparisons, 1);
    close_batch();
    assert_measured(first);
    assert_measured(second);

    first = launch(SIM_SCALE);
    assert_int_equal(sim_call(&copy_out, words), 0);
    second = launch_on(SIM_ADD, SHARED_SLOT);
    assert_pending(first);
    assert_int_equal(kprof_contexts_find(&sim.contexts[0])->comparisons, 2);
    close_batch();
    assert_unmeasured(first, why);
    assert_unmeasured(second, why);
    assert_measured(launch_alone(SIM_SCALE, SLOT)); /* nobody is searched any more */

    first = launch_on(SIM_SWAP, SHARED_SLOT);
    assert_int_equal(sim_call(&copy_out, words), 0);
    (void)launch(SIM_SCALE);
    assert_unmeasured(first, why);
    assert_int_equal(kprof_contexts_find(&sim.contexts[0])->comparisons, 2);
    assert_measured(launch_alone(SIM_SCALE, SLOT));
}

/* A replay has computed something else. What the own run left before a copy to the host is kept outside of the proof's
 * ranges, and the proof goes on behind it. */
TEST(test_proof_around_what_is_kept)
{
    uint64_t words[SIM_WORDS];
    const sim_step copy_out = {.op = SIM_COPY_OUT, .a = SLOT};
    kprof_profiled_context *context = (kprof_profiled_context *)kprof_contexts_find(&sim.contexts[0]);
    context->diverges = true;
    for (unsigned reaches = 0; reaches < 2; reaches++) {
        unsigned first = launch(SIM_DICE);
        assert_int_equal(sim_call(&copy_out, words), 0);
        assert_pending(first);
        unsigned second = launch_on(SIM_ADD, reaches ? SHARED_SLOT : SLOT);
        close_batch();
        if (reaches) {
            assert_unmeasured(first, "reached memory of the host, which no replay may change");
            assert_unmeasured(second, "reached memory of the host, which no replay may change");
        } else {
            assert_measured(first);
            assert_measured(second);
        }
    }
    context->diverges = false;
    assert_measured(launch_alone(SIM_SCALE, SLOT)); /* nobody is searched any more */
}

static void choose_only_add(kprof_kernel *kernel)
{
    kernel->matches = strcmp(kernel->record.mangled, "add") == 0;
}

static void choose(kprof_kernel *kernel)
{
    kernel->matches = true;
}

/* A batch without a chosen launch has nothing to try for, and nobody has proved what else is in it. */
TEST(test_no_try_behind_a_launch_that_was_refused)
{
    uint64_t words[SIM_WORDS];
    assert_measured(launch_alone(SIM_TALLY, SLOT)); /* the kernel is known */
    kprof_kernels_visit(choose_only_add);
    unsigned tag = ++last_tag;
    const sim_step refused = {.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT, .tag = tag, .refused = true};
    assert_int_equal(sim_call(&refused, NULL), SIM_REFUSED);
    (void)launch_on(SIM_TALLY, SHARED_SLOT);
    assert_true(kprof_batch_is_open());
    assert_int_equal(sim_call(&(sim_step){.op = SIM_COPY_OUT, .a = SLOT}, words), 0);
    assert_false(kprof_batch_is_open());
    assert_unmeasured(tag, "the driver refused the launch");
    kprof_kernels_visit(choose);
}

TEST(test_launch_that_reaches_host_memory)
{
    static const char why[] = "reached memory of the host, which no replay may change";
    uint64_t words[SIM_WORDS];
    unsigned stays = launch(SIM_SCALE), reaches = launch_on(SIM_MOVE, SHARED_SLOT);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    sim_call(&(sim_step){.op = SIM_HOST_READ, .a = SHARED_SLOT}, words);
    close_batch(); /* which of them it was is not known: see where the simulated machine checks replays */
    assert_unmeasured(stays, why);
    assert_unmeasured(reaches, why);
    stays = launch(SIM_SCALE);
    reaches = launch_on(SIM_MOVE, SHARED_SLOT);
    close_batch(); /* now it is */
    assert_unmeasured(stays, why);
    assert_unmeasured(reaches, why);
    stays = launch(SIM_SCALE);
    sim.hides_host = false;
    have_watched(SIM_MOVE, SHARED_SLOT);
    reaches = launch_on(SIM_MOVE, SHARED_SLOT);
    assert_measured(stays); /* the first of them has closed its batch */
    assert_measured_once(reaches, "the kernel takes memory of the host");
    stays = launch(SIM_SCALE);
    reaches = launch(SIM_MOVE); /* once may have been for the sake of its arguments */
    close_batch();
    assert_measured(stays);
    assert_measured(reaches);
}

/* Seen twice, whatever its arguments are. */
TEST(test_kernel_that_reaches_host_memory)
{
    for (unsigned i = 0; i < 2; i++) { /* the second one is searched */
        unsigned first = launch_on(SIM_SUM, SHARED_SLOT), second = launch_on(SIM_SUM, SHARED_SLOT);
        close_batch();
        assert_unmeasured(first, "reached memory of the host");
        assert_unmeasured(second, "reached memory of the host");
    }
    have_watched(SIM_SUM, SLOT);
    assert_measured_once(launch(SIM_SUM), "launches of the kernel reach memory of the host");
}

/* The search finds nobody: the batch is measured all the same. */
TEST(test_search_in_vain)
{
    assert_unmeasured(launch_alone(SIM_COUNT, SHARED_SLOT), "reached memory of the host");
    unsigned first = launch(SIM_SCALE), second = launch(SIM_SWAP);
    close_batch();
    assert_measured(first);
    assert_measured(second);
}

/* A range would wait for what waits for the host, so that a launch of the search has none. The next batch searches. */
TEST(test_search_behind_work_that_waits)
{
    assert_unmeasured(launch_alone(SIM_COUNT, SHARED_SLOT), "reached memory of the host");
    unsigned first = launch(SIM_SCALE);
    kprof_the_batch.state.context->fixed_ms = 1000; /* such a batch stays open for longer than the wait */
    hold(1);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    assert_unmeasured(launch(SIM_SCALE), "the GPU's work did not end within 0.1 s");
    kprof_engine.waits.hold_ns = SIM_LONG_HOLD_NS;
    let_go(1);
    close_when_ended();
    assert_measured(first);
    assert_measured(launch_alone(SIM_SCALE, SLOT));
}

/* Longer than a call may be held. */
#define SLOW_MS 250

static unsigned launch_slow(sim_function *function, unsigned slot)
{
    kprof_engine.waits.hold_ns = KPROF_HOLD_NS;
    kprof_engine.waits.patience_ns = KPROF_PATIENCE_NS;
    do_call((sim_step){.op = SIM_LAUNCH,
                       .kernel = function->kernel,
                       .function = function,
                       .a = slot,
                       .b = SLOT,
                       .slow_ms = SLOW_MS,
                       .tag = ++last_tag});
    return last_tag;
}

/* The application waits for what it has launched. */
static void synchronize_slow(void)
{
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    await_work();
    kprof_engine.waits.hold_ns = kprof_engine.waits.patience_ns = SIM_LONG_HOLD_NS;
}

/* Kernels that take long are no suspects: one search after the other has some, which come behind one another. */
TEST(test_slow_kernels_in_searches)
{
    static sim_function slow = {"slow", .kernel = SIM_SCALE};
    unsigned first = 0, second = 0;
    for (unsigned i = 0; i < 4; i++) {
        static sim_function reaches[4] = {{"reaches (1)", .kernel = SIM_COUNT},
                                          {"reaches (2)", .kernel = SIM_COUNT},
                                          {"reaches (3)", .kernel = SIM_COUNT},
                                          {"reaches (4)", .kernel = SIM_COUNT}};
        do_call((sim_step){.op = SIM_LAUNCH, .function = &reaches[i], .a = SHARED_SLOT, .b = SLOT, .tag = ++last_tag});
        close_batch();
        assert_unmeasured(last_tag, "reached memory of the host");
        first = launch_slow(&slow, SLOT);
        second = launch_slow(&slow, SLOT);
        assert_true(kprof_the_batch.state.searching && kprof_batch_records());
        synchronize_slow();
        close_batch();
        assert_measured(first);
        assert_measured(second);
    }
}

/* Of launches that were not told apart it was the one that nobody has shown to stay away from memory of the host. */
TEST(test_slow_kernel_that_reaches_host_memory)
{
    static sim_function slow = {"slow, reaches", .kernel = SIM_SCALE};
    for (unsigned i = 0; i < 4; i++) {
        unsigned first = launch_slow(&slow, SHARED_SLOT), second = launch(SIM_SCALE);
        synchronize_slow();
        close_batch();
        assert_unmeasured(first, "reached memory of the host");
        assert_unmeasured(second, "reached memory of the host");
    }
    unsigned first = launch_slow(&slow, SHARED_SLOT), second = launch(SIM_SCALE);
    synchronize_slow();
    close_when_ended();
    assert_unmeasured(first, "a kernel's first launches are only watched");
    assert_unmeasured(second, "the GPU's work did not end within 0.1 s");
    assert_measured(launch_alone(SIM_SCALE, SLOT));
}

/* One that takes memory of the host, and does not use it, is known once the proof has told so of a launch behind which
 * others came. */
TEST(test_slow_kernel_that_takes_memory_of_the_host)
{
    static sim_function slow = {"slow, takes", .kernel = SIM_SCALE};
    sim.hides_host = false;
    takes_host = true;
    close_batch();
    assert_unmeasured(launch_slow(&slow, SLOT), KPROF_DID_NOT_END KPROF_BEHIND_IT);
    takes_host = false;
    unsigned behind = launch(SIM_SCALE);
    synchronize_slow();
    close_batch();
    assert_measured(behind);
    takes_host = true;
    unsigned first = launch_slow(&slow, SLOT), second = launch_slow(&slow, SLOT);
    synchronize_slow();
    close_batch();
    takes_host = false;
    assert_measured(first);
    assert_measured(second);
}

TEST(test_proof_that_cannot_be_read)
{
    uint64_t before[SIM_WORDS], after[SIM_WORDS];
    unsigned tag = launch(SIM_SCALE);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    memcpy(before, (const void *)sim_words(SLOT), sizeof before);
    atomic_store(&faults.blind, true);
    close_batch();
    atomic_store(&faults.blind, false);
    memcpy(after, (const void *)sim_words(SLOT), sizeof after);
    assert_memory_equal(before, after, sizeof before);
    assert_unmeasured(tag, "CUPTI cannot evaluate (test)");
    assert_measured(launch_alone(SIM_SCALE, SLOT));
}

TEST(test_memory_that_cannot_be_saved)
{
    atomic_store(&faults.unsaved, true);
    have_watched(SIM_ADD, SLOT);
    assert_measured_once(launch(SIM_ADD), "memory cannot be saved (test)");
    assert_measured_once(launch(SIM_ADD), "memory cannot be saved (test)");
    assert_measured_once(launch_on(SIM_ADD, SHARED_SLOT), "memory cannot be saved (test)");
    atomic_store(&faults.unsaved, false);
    assert_measured(launch_alone(SIM_ADD, SLOT));
}

/* The application sees how much would be free without kprof's copies, and the batch goes on. */
TEST(test_free_memory)
{
    kprof_call call = {.kind = KPROF_CALL_MEMORY_INFO, .name = "cuMemGetInfo (test)", .context = &sim.contexts[0]};
    unsigned tag = launch(SIM_ADD);
    added_bytes = 0;
    kprof_launch_hooks.enter(&call);
    kprof_launch_hooks.leave(&call);
    assert_int_equal(added_bytes, HELD_BYTES);
    assert_pending(tag);
    held_asked = 0;
    call.failed = true;
    kprof_launch_hooks.enter(&call);
    kprof_launch_hooks.leave(&call);
    assert_int_equal(held_asked, 0);
    call.failed = false;
    atomic_store(&kprof_the_launches.settled, true); /* as in a forked child */
    kprof_launch_hooks.leave(&call);
    atomic_store(&kprof_the_launches.settled, false);
    assert_int_equal(held_asked, 0);
    assert_int_equal(added_bytes, HELD_BYTES);
    close_batch();
    assert_measured(tag);
}

TEST(test_memory_that_a_network_card_writes)
{
    atomic_store(&faults.network, true);
    unsigned tag = launch_alone(SIM_ADD, SLOT);
    assert_measured_once(tag, "a network card may write (test)");
    atomic_store(&faults.network, false);
    assert_measured(launch_alone(SIM_ADD, SLOT));
}

TEST(test_network_card_that_comes_later)
{
    unsigned tag = launch(SIM_ADD);
    atomic_store(&faults.network, true);
    close_batch();
    assert_unmeasured(tag, "the launch was not repeated: a network card may write (test)");
}

/* It is still at work when its batch is to be closed. That is closed by a later call. */
TEST(test_late_kernel)
{
    unsigned tag = launch(SIM_SCALE);
    begin_late_work(1, SIM_SHORT_HOLD_NS);
    assert_false(try_to_close());
    assert_pending(tag);
    assert_unmeasured(launch(SIM_SCALE), "the GPU's work did not end within 0.1 s, so that launches before it");
    end_late_work();
    close_when_ended();
    assert_int_equal(atomic_load(&snapshots), 0);
    assert_measured(tag);
    assert_measured(launch_alone(SIM_SCALE, SLOT));
}

/* At the end of the process, or before code is unloaded, nothing can be put off. The pass around the launch is ended
 * once it is done. */
TEST(test_late_kernel_at_the_end)
{
    unsigned tag = launch(SIM_SCALE);
    begin_late_work(1, SIM_SHORT_HOLD_NS);
    assert_false(try_to_close());
    assert_true(kprof_gate_enter_exclusive(1000));
    kprof_batch_end("a test");
    kprof_gate_leave_exclusive();
    assert_false(kprof_batch_is_open());
    assert_unmeasured(tag, "the GPU's work did not end within 0.1 s");
    assert_int_equal(atomic_load(&snapshots), 0);
    end_late_work();
    assert_measured(launch_alone(SIM_SCALE, SLOT));
}

/* That tells nothing of the kernel. */
TEST(test_watched_kernel_behind_late_work)
{
    begin_late_work(1, SIM_SHORT_HOLD_NS);
    assert_unmeasured(launch(SIM_PRINT), "the GPU's work did not end within 0.1 s");
    end_late_work();
    assert_unmeasured(launch(SIM_PRINT), "a kernel's first launches are only watched");
}

static kprof_kernel *found;

static void find_kernel(kprof_kernel *kernel)
{
    if (strcmp(kernel->record.mangled, "waiter") == 0)
        found = kernel;
}

static sim_function waiter = {"waiter", .kernel = SIM_PRINT};

static unsigned launch_in(unsigned stream, sim_function *function)
{
    do_call((sim_step){.op = SIM_LAUNCH,
                       .stream = stream,
                       .kernel = function->kernel,
                       .function = function,
                       .a = SLOT,
                       .b = SLOT,
                       .tag = ++last_tag});
    return last_tag;
}

/* It may have waited for what the application does after the launch. Later ones are launched behind memory that is
 * saved, so that what is queued behind them is measured, from the state that they leave. */
TEST(test_late_kernel_that_is_watched)
{
    begin_late_work(2, SIM_LONG_HOLD_NS); /* the first wait is for what comes before the launch */
    assert_unmeasured(launch_in(0, &waiter), "a kernel's first launches are only watched");
    kprof_kernels_visit(find_kernel);
    assert_int_equal(atomic_load(&found->timeouts), 1);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    assert_unmeasured(launch_in(0, &waiter), "the GPU's work did not end within 0.1 s");
    end_late_work();
    unsigned before = follows;
    assert_unmeasured(launch_in(0, &waiter), KPROF_MAY_WAIT KPROF_BEHIND_IT);
    assert_int_equal(follows, before + 1);
    assert_true(kprof_batch_records());
    unsigned behind = launch(SIM_SCALE);
    assert_pending(behind);
    close_batch();
    assert_measured(behind);
    assert_int_equal(atomic_load(&snapshots), 0);
}

static sim_function changes = {"changes", .kernel = SIM_SCALE};

static void make_it_late(kprof_kernel *kernel)
{
    if (strcmp(kernel->record.mangled, changes.name) != 0)
        return;
    atomic_store(&kernel->ends_alone, false);
    while (!atomic_load(&kernel->ends_late))
        kprof_kernel_note_timeout(kernel);
}

/* A kernel that was waited for in vain often enough is never repeated. What it leaves is where replays of what comes
 * behind it begin, and memory ends as the application left it. */
TEST(test_batch_behind_a_launch_that_changes_memory)
{
    uint64_t end[SIM_WORDS], after[SIM_WORDS];
    (void)launch_in(0, &changes);
    close_batch();
    kprof_kernels_visit(make_it_late);
    unsigned before = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_SYNC_STREAM}); /* nothing is waited for */
    assert_unmeasured(launch_in(0, &changes), KPROF_MAY_WAIT KPROF_BEHIND_IT);
    assert_measured(before);
    unsigned first = launch(SIM_ADD), second = launch(SIM_SCALE);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    memcpy(end, (const void *)sim_words(SLOT), sizeof end);
    const uint64_t found_first = sim.signatures[first], found_second = sim.signatures[second];
    assert_pending(first);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_true(sim.signatures[first] == found_first && sim.signatures[second] == found_second);
    memcpy(after, (const void *)sim_words(SLOT), sizeof after);
    assert_memory_equal(after, end, sizeof end);
}

/* A kernel takes memory of the host and waits for what the host writes there: a flag that is not less. That does not
 * end by itself. Flags grow from test to test. */
static bool holder_changes; /* such a kernel changes memory then */

static unsigned launch_waiting(unsigned slot, sim_function *function, uint64_t flag)
{
    do_call((sim_step){.op = SIM_LAUNCH,
                       .kernel = SIM_SPIN,
                       .function = function,
                       .a = slot,
                       .b = SLOT,
                       .flag = flag,
                       .value = holder_changes,
                       .tag = ++last_tag});
    return last_tag;
}

static unsigned launch_holder_on(unsigned slot, sim_function *function, uint64_t flag)
{
    kprof_engine.waits.patience_ns = SIM_SHORT_HOLD_NS;
    const unsigned tag = launch_waiting(slot, function, flag);
    kprof_engine.waits.patience_ns = SIM_LONG_HOLD_NS;
    return tag;
}

static unsigned launch_holder(sim_function *function, uint64_t flag)
{
    return launch_holder_on(SLOT, function, flag);
}

static void let_holder_go(uint64_t flag)
{
    sim_call(&(sim_step){.op = SIM_RELEASE, .flag = flag}, NULL);
    await_work();
    do_call((sim_step){.op = SIM_SYNC_STREAM}); /* nothing is waited for */
}

/* What is queued behind a kernel that waits for the host is measured, though nobody has seen that kernel before. */
TEST(test_first_launch_of_a_kernel_that_waits_for_the_host)
{
    static sim_function holder = {"holder", .kernel = SIM_SPIN};
    uint64_t end[SIM_WORDS], after[SIM_WORDS];
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    unsigned before = follows, left = hosts_left, first = launch_holder(&holder, 1);
    assert_unmeasured(first, KPROF_DID_NOT_END KPROF_BEHIND_IT);
    assert_int_equal(follows, before + 1);
    assert_int_equal(hosts_left, left + 1);
    unsigned second = launch(SIM_ADD), third = launch(SIM_SCALE);
    assert_pending(second);
    let_holder_go(1);
    unsigned again = launch_holder(&holder, 2); /* the first one has changed nothing: replays leave this one out */
    assert_unmeasured(again, KPROF_MAY_WAIT KPROF_BEHIND_IT);
    assert_int_equal(follows, before + 2);
    assert_pending(second);
    unsigned fourth = launch(SIM_SCALE);
    let_holder_go(2);
    memcpy(end, (const void *)sim_words(SLOT), sizeof end);
    close_batch();
    assert_measured(second);
    assert_measured(third);
    assert_measured(fourth);
    memcpy(after, (const void *)sim_words(SLOT), sizeof after);
    assert_memory_equal(after, end, sizeof end);
    sim.saves_host = false;
}

/* One that ends is measured by itself, as ever; the pass that was begun for the other case counts nothing. */
TEST(test_first_launch_of_a_kernel_that_takes_memory_of_the_host)
{
    static sim_function ends = {"ends", .kernel = SIM_ADD};
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    do_call((sim_step){
        .op = SIM_LAUNCH, .kernel = SIM_ADD, .function = &ends, .a = SHARED_SLOT, .b = SLOT, .tag = ++last_tag});
    unsigned first = last_tag, second = launch(SIM_ADD);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    sim.saves_host = false;
}

static unsigned launch_behind_holder(sim_function *holder, uint64_t flag, const char *why)
{
    const unsigned held = launch_holder(holder, flag);
    assert_unmeasured(held, why);
    const unsigned behind = launch(SIM_ADD);
    let_holder_go(flag);
    return behind;
}

/* The last one that -c takes closes its batch, and the next one is not taken. */
static void assert_one_is_left(void)
{
    assert_measured(launch(SIM_ADD));
    (void)launch(SIM_ADD);
    assert_int_equal(look_up(last_tag).count, 0);
}

/* What is behind a launch that changes memory cannot be repeated without it. The next one begins a batch. */
TEST(test_kernel_that_waits_for_the_host_and_changes_memory)
{
    static sim_function quiet = {"quiet at first", .kernel = SIM_SPIN};
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    (void)launch_holder(&quiet, 3);
    unsigned first = launch(SIM_ADD);
    let_holder_go(3);
    (void)launch_holder(&quiet, 4);
    unsigned second = launch(SIM_ADD), before = follows;
    let_holder_go(4);
    changes_memory = true;
    (void)launch_holder(&quiet, 5);
    changes_memory = false;
    assert_measured(first);
    assert_unmeasured(second, "a launch before it, which is not repeated, has changed memory");
    assert_int_equal(follows, before + 1);
    unsigned third = launch(SIM_ADD);
    let_holder_go(5);
    close_batch();
    assert_measured(third);
    sim.saves_host = false;
}

/* Work of another stream may need what the launch does meanwhile. Replays end before the launch. */
TEST(test_other_stream_beside_a_kernel_that_waits_for_the_host)
{
    static sim_function quiet = {"quiet", .kernel = SIM_SPIN};
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    (void)launch_holder(&quiet, 6);
    unsigned first = launch(SIM_ADD);
    let_holder_go(6);
    (void)launch_holder(&quiet, 7);
    unsigned second = launch(SIM_ADD);
    static sim_function other = {"other", .kernel = SIM_SCALE, .module = 1};
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    unsigned third = launch_in(1, &other);
    kprof_engine.waits.hold_ns = SIM_LONG_HOLD_NS;
    assert_true(kprof_batch_is_sealed());
    assert_unmeasured(third, "the GPU's work did not end within 0.1 s");
    let_holder_go(7);
    close_when_ended();
    assert_measured(first);
    assert_unmeasured(second, "work came in another stream before the launch that it stands behind had ended");
    sim.saves_host = false;
}

/* Nothing is measured then, and the launch is told of. */
TEST(test_launch_behind_which_no_batch_opens)
{
    kprof_kernels_visit(make_it_late);
    atomic_store(&faults.network, true);
    assert_unmeasured(launch_in(0, &changes), "a network card may write (test)");
    atomic_store(&faults.network, false);
}

/* The application unmaps it while kprof's kernel waits to read it: that finds nothing then, and nothing is repeated. */
TEST(test_memory_that_goes_while_a_launch_is_followed)
{
    static sim_function holder = {"holder beside mapped memory", .kernel = SIM_SPIN};
    sim.saves_host = true;
    sim.hides_host = false;
    do_call((sim_step){.op = SIM_MAP, .a = SPARE_SLOT, .b = SIM_VARIABLES + SIM_LANE_STREAMS});
    close_batch();
    unsigned before = stops;
    (void)launch_holder(&holder, 8);
    unsigned behind = launch(SIM_ADD);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    do_call((sim_step){.op = SIM_UNMAP, .a = SPARE_SLOT});
    kprof_engine.waits.hold_ns = SIM_LONG_HOLD_NS;
    assert_int_equal(stops, before + 1);
    let_holder_go(8);
    close_when_ended();
    assert_unmeasured(behind, "the launch that it stands behind did not end before other work came");
    sim.saves_host = false;
}

/* Likewise where memory of the host cannot be saved, so that the proof was to tell of that launch alone. */
TEST(test_first_launch_on_trial_that_waits_for_the_host)
{
    static sim_function holder = {"holder on trial", .kernel = SIM_SPIN};
    sim.hides_host = false;
    close_batch();
    assert_unmeasured(launch_holder(&holder, 9), KPROF_DID_NOT_END KPROF_BEHIND_IT);
    unsigned first = launch(SIM_ADD);
    let_holder_go(9);
    assert_unmeasured(launch_holder(&holder, 10), KPROF_MAY_WAIT KPROF_BEHIND_IT);
    unsigned second = launch(SIM_ADD);
    let_holder_go(10);
    close_batch();
    assert_measured(first);
    assert_measured(second);
}

/* A chip that cannot count reads apart tries it, too: what it finds is not repeated. */
TEST(test_launch_on_trial_where_reads_are_not_counted)
{
    static sim_function reaches = {"reaches the host on trial", .kernel = SIM_MOVE};
    kprof_strlist *proof = &kprof_engine.process.config.chips[0].proof;
    const size_t counters = proof->count;
    sim.hides_host = false;
    close_batch();
    proof->count = KPROF_PROOF_READS;
    do_call((sim_step){
        .op = SIM_LAUNCH, .kernel = SIM_MOVE, .function = &reaches, .a = SHARED_SLOT, .b = SLOT, .tag = ++last_tag});
    close_batch();
    proof->count = counters;
    assert_unmeasured(last_tag, "reached memory of the host, which no replay may change");
}

/* What runs where nothing is watched proves nothing of its kernel, though the batch has a proof of what came before. */
TEST(test_kernel_that_ran_unwatched_is_not_proved)
{
    static sim_function writes = {"writes, waits, is quiet", .kernel = SIM_SPIN},
                        unseen = {"unseen behind that", .kernel = SIM_SCALE};
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    (void)launch_holder_on(SHARED_SLOT, &writes, 23);
    (void)launch(SIM_ADD); /* else nothing tells that memory of the host was written */
    let_holder_go(23);
    close_batch();
    for (uint64_t flag = 24; flag < 26; flag++) {
        unsigned before = launch(SIM_ADD);
        do_call((sim_step){.op = SIM_SYNC_STREAM});
        (void)launch_holder_on(SHARED_SLOT, &writes, flag); /* the batch goes on behind it */
        unsigned unknown = launch_in(0, &unseen);
        let_holder_go(flag);
        close_batch();
        assert_measured(before);
        assert_unmeasured(unknown, KPROF_NOT_WATCHED);
    }
    sim.saves_host = false;
}

static sim_function suspect = {"suspect", .kernel = SIM_SCALE};

static void make_it_suspicious(kprof_kernel *kernel)
{
    if (strcmp(kernel->record.mangled, suspect.name) == 0)
        atomic_store(&kernel->reaches_host, 1);
}

/* The proof does not tell whether the kernel reads memory of the host there, as an earlier launch did. */
TEST(test_kernel_that_has_reached_the_host_behind_one_that_waits)
{
    static sim_function reads = {"reads before a suspect", .kernel = SIM_SPIN};
    sim.saves_host = true;
    sim.hides_host = false;
    (void)launch_in(0, &suspect);
    close_batch();
    kprof_kernels_visit(make_it_suspicious);
    (void)launch_holder(&reads, 26);
    unsigned first = launch(SIM_ADD), second = launch_in(0, &suspect);
    let_holder_go(26);
    close_batch();
    assert_measured(first);
    assert_unmeasured(second, KPROF_NOT_WATCHED);
    sim.saves_host = false;
}

/* Nothing can tell, behind a launch that writes memory of the host, whether others do. What is known not to is
 * repeated, and so is a kernel that nobody has seen before behind a launch that only reads. */
TEST(test_kernels_behind_one_that_waits_for_the_host)
{
    static sim_function reads = {"reads and waits", .kernel = SIM_SPIN},
                        writes = {"writes and waits", .kernel = SIM_SPIN};
    static sim_function unseen[] = {{"unseen", .kernel = SIM_SCALE}, {"unseen, too", .kernel = SIM_SCALE}};
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    (void)launch_holder(&reads, 11);
    unsigned behind_reader = launch_in(0, &unseen[0]);
    let_holder_go(11);
    close_batch();
    assert_measured(behind_reader);
    for (uint64_t flag = 12; flag < 14; flag++) {
        (void)launch_holder_on(SHARED_SLOT, &writes, flag);
        unsigned known = launch(SIM_ADD), unknown = launch_in(0, &unseen[1]);
        let_holder_go(flag);
        close_batch();
        if (flag == 12)
            assert_unmeasured(known, "memory of the host was written meanwhile");
        else
            assert_measured(known);
        assert_unmeasured(unknown, flag == 12 ? "memory of the host was written meanwhile" : KPROF_NOT_WATCHED);
    }
    sim_function another = {"writes and waits, too", .kernel = SIM_SPIN};
    (void)launch_holder_on(SHARED_SLOT, &another, 14); /* it has ended before the others come */
    let_holder_go(14);
    unsigned behind_writer = launch_in(0, &unseen[1]);
    close_batch();
    assert_measured(behind_writer);
    sim.saves_host = false;
}

/* The proof looks for writes alone there, so nobody would see it read. */
TEST(test_kernel_that_reads_the_host_behind_one_that_waits)
{
    static sim_function waits = {"waits before a reader", .kernel = SIM_SPIN}, reads = {"reader", .kernel = SIM_SPIN};
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    (void)launch_holder(&waits, 27);
    sim.hides_host = true;
    unsigned known = launch(SIM_ADD), reader = launch_holder(&reads, 1); /* which the host has written long ago */
    let_holder_go(27);
    close_batch();
    assert_measured(known);
    assert_unmeasured(reader, KPROF_NOT_WATCHED);
    sim.saves_host = false;
}

/* Its arguments do not show that it takes memory of the host: the proof does, and then a search, in which it does not
 * end. */
TEST(test_kernel_that_waits_for_hidden_memory_of_the_host)
{
    static sim_function holder = {"holder of hidden memory", .kernel = SIM_SPIN};
    sim.hides_host = true;
    close_batch();
    unsigned behind = 0;
    for (uint64_t flag = 15; flag < 22; flag++) {
        kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
        (void)launch_holder(&holder, flag);
        behind = launch(SIM_ADD);
        let_holder_go(flag);
        kprof_engine.waits.hold_ns = SIM_LONG_HOLD_NS;
        if (kprof_batch_is_open())
            close_batch();
    }
    assert_measured(behind);
    sim.hides_host = false;
}

/* -c 3 takes three launches that are measured, and beside them as many that wait, each time that it counts anew. A
 * further one of these counts. */
TEST(test_count_of_launches_that_wait_for_the_host)
{
    static sim_function holder = {"holder, counted", .kernel = SIM_SPIN};
    kprof_filter *before = kprof_engine.process.filter, *three;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_count = 3}, &three), KPROF_OK);
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    kprof_engine.process.filter = three;
    unsigned first = launch_behind_holder(&holder, 31, KPROF_DID_NOT_END KPROF_BEHIND_IT);
    unsigned second = launch_behind_holder(&holder, 32, KPROF_MAY_WAIT KPROF_BEHIND_IT);
    assert_one_is_left();
    assert_measured(first);
    assert_measured(second);
    kprof_filter_restart(three);
    first = launch_behind_holder(&holder, 33, KPROF_MAY_WAIT KPROF_BEHIND_IT);
    second = launch_behind_holder(&holder, 34, KPROF_MAY_WAIT KPROF_BEHIND_IT);
    assert_one_is_left();
    assert_measured(first);
    assert_measured(second);
    kprof_filter_restart(three);
    for (uint64_t flag = 35; flag < 38; flag++) {
        assert_unmeasured(launch_holder(&holder, flag), KPROF_MAY_WAIT KPROF_BEHIND_IT);
        let_holder_go(flag);
    }
    first = launch_behind_holder(&holder, 38, KPROF_MAY_WAIT KPROF_BEHIND_IT);
    assert_one_is_left();
    assert_measured(first);
    kprof_engine.process.filter = before;
    kprof_filter_free(three);
    sim.saves_host = false;
}

/* It is known to wait. The GPU is idle before the launch, and behind it. */
static void serve(sim_function *server, uint64_t flag)
{
    await_work();
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    (void)launch_waiting(SLOT, server, flag);
    let_holder_go(flag);
}

/* Nothing comes behind such a launch before it has ended: replays put what it has left, and the batch goes on. */
TEST(test_kernel_that_changes_memory_and_ends_before_the_next_call)
{
    static sim_function server = {"server", .kernel = SIM_SPIN};
    uint64_t end[SIM_WORDS], after[SIM_WORDS];
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    holder_changes = true;
    (void)launch_holder(&server, 40);
    let_holder_go(40);
    const unsigned first = launch(SIM_ADD);
    serve(&server, 41);
    assert_pending(first);
    const unsigned second = launch(SIM_SCALE);
    serve(&server, 42);
    const unsigned third = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    const uint64_t own_run = sim.signatures[third];
    memcpy(end, (const void *)sim_words(SLOT), sizeof end);
    close_batch();
    assert_measured(first);
    assert_measured(second);
    assert_measured(third);
    assert_true(sim.signatures[third] == own_run);
    memcpy(after, (const void *)sim_words(SLOT), sizeof after);
    assert_memory_equal(after, end, sizeof end);
    serve(&server, 43);
    const unsigned fourth = launch(SIM_ADD);
    await_work();
    do_call((sim_step){.op = SIM_SYNC_STREAM});
    (void)launch_waiting(SLOT, &server, 44);
    const unsigned fifth = launch(SIM_ADD); /* before that has ended */
    assert_pending(fourth);
    let_holder_go(44);
    close_when_ended();
    assert_measured(fourth);
    assert_unmeasured(fifth, "the GPU's work did not end within 0.1 s");
    (void)launch_waiting(SLOT, &server, 45); /* begins a batch from now on */
    const unsigned sixth = launch(SIM_ADD);
    let_holder_go(45);
    close_batch();
    assert_measured(sixth);
    holder_changes = false;
    sim.saves_host = false;
}

/* Nothing watches it, and that earlier launches of the kernel stayed away from the host tells nothing of this one. */
TEST(test_known_kernel_that_is_led_to_the_host)
{
    static sim_function writes = {"writes before a known kernel", .kernel = SIM_SPIN};
    sim.saves_host = true;
    sim.hides_host = false;
    close_batch();
    unsigned known = launch(SIM_ADD);
    close_batch();
    assert_measured(known);
    for (uint64_t flag = 46; flag < 48; flag++) {
        (void)launch_holder_on(SHARED_SLOT, &writes, flag);
        known = launch(SIM_ADD);
        if (flag == 47) {
            sim.hides_host = true;
            do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SHARED_SLOT, .b = SLOT, .tag = ++last_tag});
            sim.hides_host = false;
        }
        let_holder_go(flag);
        close_batch();
    }
    assert_measured(known);
    assert_unmeasured(last_tag, KPROF_NOT_WATCHED);
    sim.saves_host = false;
}

/* A launch that is not chosen may open a batch behind one that was put off. Where that fails, nothing is told of it. */
TEST(test_unchosen_launch_before_which_nothing_is_saved)
{
    assert_measured(launch_alone(SIM_ADD, SLOT)); /* the kernels are known */
    atomic_store(&faults.unsaved, true);
    for (unsigned i = 0; i < WATCHES; i++)
        (void)launch(SIM_TALLY);
    atomic_store(&faults.unsaved, false);
    begin_late_work(1, SIM_SHORT_HOLD_NS);
    assert_unmeasured(launch(SIM_ADD), "the GPU's work did not end within 0.1 s");
    end_late_work();
    kprof_kernels_visit(choose_only_add);
    atomic_store(&faults.unsaved, true);
    (void)launch(SIM_TALLY);
    (void)launch(SIM_TALLY);
    atomic_store(&faults.unsaved, false);
    end_samples();
    assert_int_equal(look_up(0).count, 0); /* the number that launches have that are not chosen */
    assert_false(kprof_batch_is_open());
    kprof_kernels_visit(choose);
    assert_measured(launch_alone(SIM_ADD, SLOT));
}

static void choose_none(kprof_kernel *kernel)
{
    kernel->matches = false;
    atomic_store(&kernel->short_ends, 0);
}

static unsigned count_marks(unsigned launches)
{
    marked = 0;
    for (unsigned i = 0; i < launches; i++) {
        (void)launch(SIM_SCALE);
        do_call((sim_step){.op = SIM_SYNC_STREAM});
    }
    return marked;
}

/* Whoever comes to be chosen then has to know whether work ends. Short launches can go without a mark. */
TEST(test_marks_of_launches_that_are_not_chosen)
{
    assert_measured(launch_alone(SIM_SCALE, SLOT)); /* the kernel is known */
    kprof_kernels_visit(choose_none);
    atomic_store(&is_behind, true);
    assert_int_equal(count_marks(40), 40);
    atomic_store(&is_behind, false);
    (void)count_marks(4);
    const unsigned of_short = count_marks(40);
    kprof_kernels_visit(choose); /* else later tests would wait for ever */
    assert_int_equal(of_short, 5);
    assert_int_equal(count_marks(8), 8); /* of a batch, all are marked */
    assert_true(kprof_batch_is_open());
    assert_measured(launch_alone(SIM_SCALE, SLOT));
}

/* It may have waited for the launch in another stream, which a replay would come to only after it. So the batch ends
 * before it, and what came earlier is measured. */
TEST(test_late_kernel_before_another_stream)
{
    static sim_function late = {"late in its stream", .kernel = SIM_SCALE};
    unsigned known = launch_alone(SIM_SCALE, SLOT);
    assert_measured(known);
    unsigned first = launch(SIM_SCALE), tag = launch_in(0, &late);
    begin_late_work(1, SIM_LONG_HOLD_NS);
    unsigned other = launch_in(1, &late);
    kprof_engine.waits.hold_ns = SIM_SHORT_HOLD_NS;
    assert_true(kprof_batch_is_sealed());
    assert_pending(first);
    assert_unmeasured(other, "the GPU's work did not end within 0.1 s");
    end_late_work();
    close_when_ended();
    assert_measured(first);
    assert_unmeasured(tag, KPROF_NOT_ALONE);
}

/* It may wait longer in the driver, where it would keep others out of the batch. */
TEST(test_copy_that_is_awaited_in_vain)
{
    const sim_step copy = {.op = SIM_COPY_OUT, .a = SLOT};
    kprof_call call = sim_describe(&copy);
    unsigned tag = launch(SIM_ADD);
    assert_pending(tag);
    atomic_store(&faults.vain, true);
    kprof_launch_hooks.enter(&call);
    bool is_part = atomic_load(&kprof_the_gate.exclusive), is_open = kprof_batch_is_open();
    kprof_launch_hooks.leave(&call);
    assert_true(!is_part && !is_open);
    assert_measured(tag);
}

/* What ends late after that says nothing of it. */
TEST(test_kernel_that_ended_before_a_copy)
{
    static sim_function early = {"early", .kernel = SIM_ADD}, late = {"late", .kernel = SIM_ADD};
    const sim_step first = {.op = SIM_LAUNCH, .function = &early, .a = SLOT, .b = SLOT, .tag = last_tag + 1};
    do_call(first);
    do_call((sim_step){.op = SIM_COPY_IN, .a = SLOT, .value = 1});
    do_call((sim_step){.op = SIM_LAUNCH, .function = &late, .a = SLOT, .b = SLOT, .tag = last_tag + 2});
    begin_late_work(1, SIM_LONG_HOLD_NS);
    do_call((sim_step){.op = SIM_LAUNCH, .stream = 1, .kernel = SIM_MOVE, .a = SLOT, .b = SLOT, .tag = last_tag + 3});
    end_late_work();
    close_batch();
    assert_measured(first.tag);
    assert_unmeasured(last_tag + 2, KPROF_NOT_ALONE);
    sim_step again = first;
    again.tag = last_tag += 4;
    do_call(again);
    close_batch();
    assert_measured(again.tag);
}

TEST(test_batch_that_begins_while_a_copy_waits)
{
    const sim_step copy = {.op = SIM_COPY_OUT, .a = SLOT};
    kprof_call call = sim_describe(&copy);
    close_batch();
    atomic_store(&launches_meanwhile, true);
    kprof_launch_hooks.enter(&call);
    bool is_part = atomic_load(&kprof_the_gate.exclusive);
    kprof_launch_hooks.leave(&call);
    assert_false(atomic_load(&launches_meanwhile));
    assert_true(is_part);
    close_batch();
    assert_measured(last_tag);
}

/* A kernel before the copy may wait for another thread. So that can launch until the kernel has ended, and only then
 * the copy keeps it out. */
TEST(test_copy_behind_a_kernel)
{
    static sim_function fresh = {"fresh", .kernel = SIM_ADD};
    const sim_step copy = {.op = SIM_COPY_OUT, .a = SLOT};
    kprof_call call = sim_describe(&copy);
    unsigned before = awaited;
    do_call((sim_step){.op = SIM_LAUNCH, .function = &fresh, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    unsigned tag = last_tag;
    kprof_launch_hooks.enter(&call);
    bool is_part = atomic_load(&kprof_the_gate.exclusive);
    kprof_launch_hooks.leave(&call);
    assert_true(is_part);
    assert_int_equal(awaited, before + 1);
    close_batch();
    assert_measured(tag);
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE, .stream = 1});
    kprof_launch_hooks.enter(&call);
    kprof_launch_hooks.leave(&call);
    assert_int_equal(awaited, before + 1); /* it would end the capture */
    do_call((sim_step){.op = SIM_END_CAPTURE, .stream = 1});
}

/* During a capture nothing can be waited for, so what kprof keeps is given back after it. */
TEST(test_disarmed_during_a_capture)
{
    unsigned tag = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_BEGIN_CAPTURE});
    assert_measured(tag);
    kprof_process_disarm(KPROF_INTERNAL, "a test");
    given_back = 0;
    do_call((sim_step){.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT});
    assert_int_equal(given_back, 0);
    do_call((sim_step){.op = SIM_END_CAPTURE});
    close_batch();
    assert_true(given_back > 0 && atomic_load(&kprof_the_launches.settled));
    atomic_store(&kprof_engine.process.armed, true);
    atomic_store(&kprof_the_launches.settled, false);
}

/* Another process of the run that stands in line for the counters until it is killed, or this one ends. */
static pid_t want_counters(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        kprof_lock_give(); /* a copy of the parent's */
        (void)kprof_lock_take(0, NULL);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

/* To close a batch too early costs passes, and too late others' time. */
TEST(test_pauses_are_learnt_from)
{
    int64_t limit_ns = KPROF_LONGEST_PAUSE_NS;
    assert_int_equal(kprof_watch_learn_pause(limit_ns, limit_ns / 2), limit_ns);
    assert_int_equal(kprof_watch_learn_pause(limit_ns, limit_ns), limit_ns / 2);
    for (unsigned i = 0; i < 10; i++)
        limit_ns = kprof_watch_learn_pause(limit_ns, KPROF_LONGEST_PAUSE_NS);
    assert_int_equal(limit_ns, KPROF_SHORTEST_PAUSE_NS);
    assert_int_equal(kprof_watch_learn_pause(limit_ns, 0), 2 * KPROF_SHORTEST_PAUSE_NS);
}

/* Each pause goes on for long after it has closed a batch, so the next one need not be as long. */
TEST(test_pauses_that_go_on)
{
    atomic_store(&faults.busy, false);
    for (int64_t limit_ns = KPROF_LONGEST_PAUSE_NS; limit_ns >= KPROF_LONGEST_PAUSE_NS / 4; limit_ns /= 2) {
        const unsigned tag = launch(SIM_ADD);
        if (limit_ns < KPROF_LONGEST_PAUSE_NS)
            assert_int_equal(atomic_load(&kprof_the_idle.wait_ns), limit_ns);
        pid_t other = want_counters();
        while (kprof_batch_is_open()) {
            wait_ms(1);
            sim_clock_advance_ms(1);
        }
        assert_measured(tag);
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
        sim_clock_advance_s(1);
    }
}

/* Its passes take two seconds, so that it may be open for more than three where nobody waits. */
TEST(test_batch_that_others_wait_for)
{
    unsigned first = launch(SIM_ADD);
    kprof_the_batch.state.context->fixed_ms = 1900;
    pid_t other = want_counters();
    while (!kprof_lock_is_wanted() && kprof_batch_is_open())
        wait_ms(1);
    sim_clock_advance_s(2);
    launch(SIM_ADD);
    assert_measured(first);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    close_batch();
}

/* The last test: nothing is measured after. What ends after kprof takes CUPTI with it. */
TEST(test_end_while_counters_are_given_back)
{
    atomic_store(&faults.busy, false);
    atomic_store(&faults.sticky, true);
    unsigned tag = launch(SIM_ADD);
    do_call((sim_step){.op = SIM_SYNC_STREAM}); /* nobody waits for the launch in a pause */
    pid_t other = want_counters();
    while (!atomic_load(&releasing)) {
        wait_ms(1);
        sim_clock_advance_ms(1);
    }
    assert_measured(tag);
    kprof_launch_stop();
    assert_false(atomic_load(&releasing));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

AROUND_EACH(set_up, tear_down)
AROUND_ALL(start_sharing, remove_folder)
