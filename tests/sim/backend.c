/* The simulated machine as the engine sees it: its table of functions, which check that they are called in the order
 * and the state that their headers ask for. */
#include "sim/backend.h"
#include "core/log.h"
#include "h200.h"
#include "inject/engine.h"
#include "sim/clock.h"
#include "sim/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RANGES 128
#define MAX_PASSES 64 /* as many as have a bit below */
#define MAX_SUMS   16 /* metrics that are added up over the launches of a range */

typedef enum profiler_state { IDLE, BEGUN, STARTED, STOPPED, DECODED } profiler_state;

typedef struct sim_range {
    size_t number;
    uint64_t signature;           /* of its first launch */
    uint64_t in_pass[MAX_PASSES]; /* signature of the launch of each pass */
    uint64_t shape;               /* of its launches */
    unsigned launches;            /* in the pass under way */
    unsigned spanned[MAX_PASSES]; /* launches of the pass, of a range of the program's */
    uint64_t found[MAX_PASSES];   /* of these: a sum of hashes of their signatures, in whatever order */
    uint64_t repeated;            /* passes in which they were repeated, as bits */
    long double sums[MAX_SUMS];   /* over these launches, in the last pass of each metric; exact */
    bool had_two;                 /* in a pass around own runs: nobody may read it */
    uint64_t passes;              /* that have it, as bits */
    unsigned sectors, read;       /* of the host's memory; read: of these, the ones that are read */
    bool warm, pass_warm;         /* in a pass that was decoded, or since then, the caches were not flushed before it */
} sim_range;

struct kprof_profiler {
    sim_context *context;
    const kprof_chip_metrics *metrics;
    profiler_state state;
    size_t capacity; /* ranges of this measurement */
    uint32_t pass;   /* of this measurement: under way, or how many are done */
    bool decoded;    /* some of them */
    bool goes_on;    /* with the first pass, for ranges that lack it */
    bool all_witnesses, proved, proof_alone, automatic;
    size_t automatic_count;         /* of the pass under way */
    sim_range ranges[MAX_RANGES];   /* in the order in which they came up */
    size_t range_count, pushed;     /* pushed: as in sim_work */
    sim_range readable[MAX_RANGES]; /* as they were decoded: they are read while the next pass runs */
    size_t readable_count;
};

struct kprof_reader {
    const kprof_chip_metrics *metrics;
};

typedef struct saved_slot {
    bool saved;
    bool followed; /* what a launch leaves in it becomes its start */
    bool watched;  /* whether a launch changes it, from: */
    bool changed;  /* it was not the start when all memory was compared */
    uint64_t generation;
    uint64_t start[SIM_WORDS], end[SIM_WORDS], seen[SIM_WORDS];
} saved_slot;

struct kprof_snapshot {
    unsigned context;
    bool taken, ended, with_host;
    bool follows; /* a launch, which has not ended; its end becomes the start if: */
    bool becomes_start;
    bool watches, changed;
    bool stopped; /* memory may go before the launch has ended */
    saved_slot slots[SIM_SLOTS];
    uint64_t flags[SIM_STREAMS], seen_flags[SIM_STREAMS]; /* with_host: those of the streams, and when last looked at */
};

struct kprof_operation {
    sim_step step;
    uint64_t output[SIM_WORDS]; /* of a copy to the host */
    bool is_node, hides_output; /* of a graph */
    bool kept;                  /* what a copy from the host brought, or one to the host took */
    bool is_kept_in_order;      /* likewise, by work in the stream */
    bool is_locked;             /* it has page-locked memory */
    bool has_lane;              /* there is a stream to repeat it in: */
    unsigned lane;
    saved_slot *host;            /* [SIM_SLOTS], owned: what the host did to managed memory; else NULL */
    const kprof_snapshot *all;   /* `host` is all memory of the snapshot; NULL: it is not */
    uint64_t flags[SIM_STREAMS]; /* likewise, of the streams */
};

struct kprof_flush {
    unsigned context;
    bool empties;
};

static struct {
    size_t profilers, snapshots, operations, instructions;
} alive;

static __thread unsigned pushed_from;

static void lock(void)
{
    (void)sim_clock_was_asked(); /* no wait for work goes on */
    pthread_mutex_lock(&sim.mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&sim.mutex);
}

static bool has_fault(void)
{
    return sim.faulty && sim_chance(12);
}

static void check_current(const void *context)
{
    if (context != &sim.contexts[sim_current])
        sim_violation("a call for a context that is not current");
}

static void check_can_wait(const char *what)
{
    if (sim.captures > 0)
        sim_violation("%s while a stream is being captured", what);
}

static void check_idle(const char *what)
{
    if (sim_current == SIM_CONTEXTS)
        sim_violation("%s, and no context is current", what);
    if (!sim.contexts[sim_current].failed && !sim_is_idle(sim_current))
        sim_violation("%s while the context is at work", what);
}

static bool holds_pools(void)
{
    bool any = false;
    for (unsigned i = 0; i < SIM_POOLS; i++)
        any = any || sim.pools[i].held;
    return any;
}

void sim_check_nothing_left(void)
{
    if (holds_pools())
        sim_violation("pools are held that no batch needs");
    if (alive.profilers + alive.snapshots + alive.operations + alive.instructions > 0)
        sim_violation("%zu profilers, %zu snapshots, %zu operations, %zu measurements of instructions or timelines "
                      "were not freed",
                      alive.profilers, alive.snapshots, alive.operations, alive.instructions);
}

/* target.h */

static kprof_status target_start(const kprof_target_hooks *hooks)
{
    static kprof_target_hooks kept;
    kept = *hooks;
    sim.hooks = &kept;
    return KPROF_OK;
}

static kprof_status target_follow(bool follow)
{
    lock();
    for (unsigned module = 0; module < SIM_MODULES; module++) {
        const bool is_loaded = sim.slots[sim_variable_of_module(module)].live;
        sim.ran_unseen = sim.ran_unseen || (follow && is_loaded && sim.unseen[module] && !sim.noted[module]);
        sim.unseen[module] = false;
    }
    unlock();
    atomic_store(&sim.is_unfollowed, !follow);
    return KPROF_OK;
}

static bool unseen_await(void)
{
    for (int i = 0; i < 2; i++) { /* a call may have read the epoch just before it changed */
        const unsigned epoch = atomic_fetch_add(&sim.epoch, 1);
        while (atomic_load(&sim.inside[epoch % 2]) > 0)
            usleep(100);
    }
    return true;
}

static kprof_status target_current_device(uint32_t *device)
{
    *device = sim_current;
    return KPROF_OK;
}

static kprof_status target_device(uint32_t device, kprof_device_record *out)
{
    if (device >= SIM_CONTEXTS)
        return kprof_fail(KPROF_UNSUPPORTED, "there is no device %u", device);
    *out = h200_record();
    out->device = device;
    out->name = "Simulated H200";
    out->chip = device == 0 ? "GH100" : sim.second_chip;
    out->uuid = "00112233445566778899aabbccddeeff";
    out->cupti_version = 130000;
    static double attributes[KPROF_DEVICE_ATTRIBUTE_COUNT];
    for (size_t i = 0; i < KPROF_DEVICE_ATTRIBUTE_COUNT; i++)
        attributes[i] = 1000 + (double)i;
    attributes[0] = NAN; /* an older driver does not tell */
    out->attribute_count = KPROF_DEVICE_ATTRIBUTE_COUNT;
    out->attributes = attributes;
    return KPROF_OK;
}

static void target_shape(const kprof_call *call, kprof_launch_record *out)
{
    const sim_step *step = call->parameters;
    out->context = call->context_id;
    out->stream = step->stream;
    out->grid[0] = sim_shape(step);
    out->grid[1] = sim.few_shapes ? 1 : sim.program;
    out->block[0] = step->op != SIM_GRAPH_LAUNCH;
}

static void target_launch(const kprof_call *call, kprof_launch_record *out)
{
    const sim_step *step = call->parameters;
    target_shape(call, out);
    out->max_blocks_per_sm = step->tag;
    out->configured_smem_bytes = sim.program;
    out->device_memory_bytes = 1 << 20;
}

static void target_kernel(const kprof_call *call, kprof_kernel_record *out)
{
    const sim_function *function = call->function;
    out->registers_per_thread = 16 + function->module % SIM_STREAMS;
    out->device_launches = 2;
}

static void target_load_beside(const kprof_call *call)
{
    if (sim_is_held((unsigned)((const sim_context *)call->context - sim.contexts)))
        sim_violation("kernels are loaded while work of the context waits");
}

static void target_note_variables(const kprof_call *call)
{
    const sim_function *function = call->function;
    lock();
    sim.noted[function->module] = true;
    unlock();
}

/* Does one of the first nodes copy to the host? */
static bool has_output(const sim_queue *graph, unsigned count)
{
    bool found = false;
    for (unsigned i = 0; i < count; i++)
        found = found || graph->items[i].step.op == SIM_COPY_OUT;
    return found;
}

static unsigned find_traits(const sim_queue *graph, unsigned node)
{
    unsigned traits = KPROF_NODE;
    sim_op op = graph->items[node].step.op;
    if (op == SIM_COPY_IN && sim.pageable)
        traits |= KPROF_NODE_READS_PAGEABLE;
    if (op == SIM_COPY_IN && has_output(graph, graph->count)) /* to the same buffer */
        traits |= KPROF_NODE_READS_RESULTS;
    if ((op == SIM_COPY_IN || op == SIM_COPY_OUT) && sim.changes_stream)
        traits |= KPROF_NODE_CHANGES_STREAM;
    if (op == SIM_COPY_OUT && sim.tells)
        traits |= KPROF_NODE_IS_TOLD;
    for (unsigned i = node + 1; op == SIM_COPY_OUT && i < graph->count; i++)
        if (graph->items[i].step.op != SIM_COPY_OUT)
            traits |= KPROF_NODE_HIDES_OUTPUT;
    return traits;
}

static const kprof_graph_call *target_graph(const kprof_call *call, size_t *count, const char **why)
{
    static __thread sim_step steps[SIM_NODES];
    static __thread kprof_graph_call nodes[SIM_NODES];
    const sim_step *launch = call->parameters;
    *why = launch->op == SIM_HOLD ? "what it launches is not known (simulated)" : "";
    if (**why)
        return NULL;
    lock();
    const sim_queue *graph = &sim.streams[launch->from].graph;
    *count = graph->count;
    for (unsigned i = 0; i < graph->count; i++) {
        steps[i] = graph->items[i].step;
        steps[i].tag = sim_node_tag(launch->tag, i);
        steps[i].module = launch->module;
        steps[i].second = launch->second;
        nodes[i] = (kprof_graph_call){sim_describe(&steps[i]), i + 1, graph->items[i].note};
        nodes[i].call.node_traits = find_traits(graph, i);
        if (steps[i].op == SIM_COPY_IN && has_output(graph, i))
            *why = "it copies from the host what it has copied there before (simulated)";
    }
    unlock();
    return **why ? NULL : nodes;
}

static bool target_name_graph(const kprof_call *call, kprof_call *out)
{
    static sim_function graphs[SIM_MODULES];
    static char names[SIM_STREAMS][16];
    const sim_step *step = call->parameters;
    unsigned from = step->from;
    sim_function *graph = &graphs[from + (step->second ? SIM_STREAMS : 0)];
    if (step->op == SIM_HOLD)
        return false;
    lock();
    graph->module = (unsigned)(graph - graphs);
    snprintf(names[from], sizeof names[from], "CUDAGraph<%u>", from);
    graph->name = names[from];
    unlock();
    *out = *call;
    out->function = graph;
    out->kernel_name = graph->name;
    return true;
}

static bool target_awaits(const kprof_call *call)
{
    return sim.awaits && call->kind == KPROF_CALL_GRAPH_LAUNCH;
}

static bool target_capturing(void)
{
    lock();
    bool capturing = sim.captures > 0;
    unlock();
    return capturing;
}

static bool target_launch_captured(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    lock();
    bool captured = sim.streams[step->stream].capturing;
    unlock();
    return captured;
}

static bool target_runs_elsewhere(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    return call->context != &sim.contexts[sim_context_of_stream(step->stream)];
}

static void *target_function(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    return step->legacy ? NULL : call->function;
}

static unsigned target_sharing(void)
{
    lock();
    unsigned sharing = (sim.shares_memory ? KPROF_SHARES_WITH_HOST : 0) |
                       (sim.shares_with_devices ? KPROF_SHARES_WITH_DEVICES : 0) |
                       (sim.waits_for_host ? KPROF_WAITS_FOR_HOST : 0) |
                       (!sim.has_managed    ? 0
                        : sim.managed_stays ? KPROF_SHARES_WITH_HOST | KPROF_MANAGED_STAYS
                                            : KPROF_MANAGED) |
                       (sim.ran_unseen ? KPROF_MAY_NOT_SAVE : 0);
    unlock();
    return sharing;
}

static bool target_has_space(const kprof_call *call, size_t local_bytes)
{
    if (call->kind != KPROF_CALL_ALLOCATE && local_bytes == 0)
        return true;
    const sim_step *step = call->kind == KPROF_CALL_ALLOCATE ? call->parameters : NULL;
    lock();
    bool space = !(sim.is_tight && sim_chance(8)) && !(step && sim.slots[step->a].kept);
    unlock();
    return space;
}

static void target_add_free(const kprof_call *call, size_t size_bytes)
{
    (void)call, (void)size_bytes;
}

static bool target_pool_keeps(const kprof_call *call)
{
    lock();
    const sim_pool *pool = sim_pool_of(((const sim_step *)call->parameters)->a);
    bool keeps = pool->held || pool->limit == UINT64_MAX;
    unlock();
    return keeps;
}

static bool target_holds_pools(void)
{
    lock();
    bool any = holds_pools();
    unlock();
    return any;
}

static void let_go_of_pools(bool is_idle)
{
    for (unsigned i = 0; i < SIM_POOLS; i++) {
        if (sim.pools[i].held && is_idle)
            sim_pool_trim(&sim.pools[i], sim.pools[i].limit);
        sim.pools[i].held = false;
    }
}

static void target_let_go_of_pools(void)
{
    lock();
    let_go_of_pools(true);
    unlock();
}

static bool target_set_own(bool own)
{
    return own;
}

static bool target_stream_blocks(void *stream)
{
    return sim_is_ordered(sim_stream_of(stream, sim_current), 2 * sim_current);
}

static bool target_reaches_pageable(void)
{
    return false;
}

static const char *target_managed_obstacle(void)
{
    if (sim.runs_host_code)
        return "functions of the host may use managed memory (simulated)";
    return sim.several_threads || !sim_is_programs() ? "other threads may use managed memory" : NULL;
}

static bool managed_may_stay(void)
{
    return sim.has_managed && !sim.managed_is_large && !sim.managed_stays && !sim.managed_is_over;
}

static void managed_stay(void)
{
    lock();
    sim.managed_stays = true;
    unlock();
}

static void end_stay(void)
{
    sim.managed_stays = false;
    sim.managed_is_over = true;
}

/* Changes as managed memory comes. */
static uint64_t sum_managed(void)
{
    uint64_t sum = 0;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        sum += sim.slots[slot].live && sim.slots[slot].shared ? sim_hash(sim.slots[slot].generation, slot) : 0;
    return sum;
}

static uint64_t held_managed;

static kprof_status managed_hold(void)
{
    lock();
    check_idle("managed memory is brought to the host");
    if (!sim.managed_stays)
        sim_violation("managed memory is not to stay on the host");
    const bool fault = has_fault();
    held_managed = sum_managed();
    sim.holds_managed = !fault;
    if (fault)
        end_stay();
    unlock();
    return fault ? kprof_fail(KPROF_NOT_COLLECTED, "managed memory is not kept on the host (simulated)") : KPROF_OK;
}

static bool managed_let_go(bool reached)
{
    lock();
    const bool is_same = !sim.holds_managed || held_managed == sum_managed();
    sim.holds_managed = false;
    if (reached)
        end_stay();
    unlock();
    return is_same;
}

static bool target_enter_context(void *context)
{
    if (context == &sim.contexts[sim_current])
        return false;
    sim_own_call(KPROF_CALL_OTHER, false);
    pushed_from = sim_current;
    sim_current = (unsigned)((sim_context *)context - sim.contexts);
    sim_own_call(KPROF_CALL_OTHER, true);
    return true;
}

static void target_leave_context(void)
{
    sim_current = pushed_from;
}

static bool prints(const sim_step *step)
{
    return step->kernel == SIM_PRINT;
}

static bool copies(const sim_step *step)
{
    return step->op == SIM_COPY_IN || step->op == SIM_COPY_OUT;
}

static bool takes_shared(const sim_step *step)
{
    if (step->op == SIM_LAUNCH && (step->kernel == SIM_SPIN || step->kernel == SIM_DELAY))
        return true;
    return step->op == SIM_LAUNCH && (!sim.managed || sim.managed_stays) &&
           (sim.slots[step->a].shared || sim.slots[step->b].shared);
}

/* Is it so of a launch, or of one that the launched graph is made of? */
static bool is_any(const sim_step *step, bool (*test)(const sim_step *step))
{
    lock();
    const sim_queue *graph = step->op == SIM_GRAPH_LAUNCH ? &sim.streams[step->from].graph : NULL;
    bool found = !graph && test(step);
    for (unsigned i = 0; graph && i < graph->count; i++)
        found = found || test(&graph->items[i].step);
    unlock();
    return found;
}

static const char *target_side_effect(const kprof_call *call)
{
    if (call->kind == KPROF_CALL_GRAPH_LAUNCH && is_any(call->parameters, copies))
        return "it copies from or to the host (simulated)";
    return is_any(call->parameters, prints) ? "it prints (simulated)" : NULL;
}

static const char *target_host_obstacle(void)
{
    return sim.several_threads || sim.runs_host_code || sim.managed_stays || !sim.saves_host
               ? "memory of the host may not be saved (simulated)"
               : NULL;
}

static bool target_only_prints(const kprof_call *call)
{
    return call->kind == KPROF_CALL_LAUNCH && is_any(call->parameters, prints);
}

static bool output_watch(void)
{
    return sim.sees_output;
}

static unsigned output_seen(void)
{
    lock();
    unsigned seen = sim.output_seen;
    unlock();
    return seen;
}

static bool output_is_seen(void *stream)
{
    lock();
    check_idle("a kernel of kprof's prints");
    unlock();
    return !sim.hides_output;
}

static void output_drop(bool drops)
{
    lock();
    sim.drops_output = drops;
    unlock();
}

static void counting_keep(bool keeps)
{
    lock();
    if (keeps && sim.keeps_counting)
        sim_violation("counters are kept on already");
    sim.keeps_counting = keeps;
    unlock();
}

static kprof_status target_synchronize(void)
{
    sim_own_call(KPROF_CALL_WAIT, false);
    lock();
    check_can_wait("the engine waits");
    if (sim_current == SIM_CONTEXTS)
        sim_violation("the engine waits, and no context is current");
    sim_wait_for_context(sim_current);
    sim_pools_give_back(sim_current);
    bool failed = sim.contexts[sim_current].failed;
    unlock();
    sim_own_call(KPROF_CALL_WAIT, true);
    return failed ? kprof_fail(KPROF_INTERNAL, "the context is in error (simulated)") : KPROF_OK;
}

/* marks.h */

typedef struct sim_mark {
    const sim_stream *stream;
    uint64_t position; /* work of the stream that is finished then */
    uint64_t number;
} sim_mark;

static struct {
    sim_mark items[256];
    unsigned count;
    uint64_t passed[SIM_CONTEXTS], set;
    uint64_t random; /* of its own: how often the engine looks depends on the time that it takes */
    sim_mark newest[SIM_CONTEXTS];
    void *what[SIM_CONTEXTS]; /* that these are behind */
} marks;

static unsigned context_of_mark(const sim_mark *mark)
{
    return sim_context_of_stream((unsigned)(mark->stream - sim.streams));
}

static void *marks_set(void *context, void *stream, void *what)
{
    void *is_short = NULL;
    lock();
    if (sim.captures == 0 && context && marks.count < sizeof marks.items / sizeof *marks.items) {
        const sim_stream *in = &sim.streams[sim_stream_of(stream, (unsigned)((sim_context *)context - sim.contexts))];
        const sim_mark mark = {in, in->submitted, ++marks.set};
        const unsigned c = context_of_mark(&mark);
        if (marks.what[c] && marks.newest[c].stream->finished >= marks.newest[c].position)
            is_short = marks.what[c];
        marks.newest[c] = marks.items[marks.count++] = mark;
        marks.what[c] = what;
    }
    unlock();
    return is_short;
}

static kprof_progress marks_look(const void *context)
{
    kprof_progress progress = {0};
    unsigned left = 0;
    const bool waited = sim_clock_was_asked() && context; /* else for others, and not for the GPU */
    lock();
    if (waited)
        sim_pass_time((unsigned)((const sim_context *)context - sim.contexts));
    for (unsigned c = 0; c < SIM_CONTEXTS && marks.count > 0 && sim.captures == 0; c++)
        if (sim_random(&marks.random) % 2 == 0) /* work goes on meanwhile */
            sim_drain_context(c);
    for (unsigned i = 0; i < marks.count; i++) {
        const sim_mark *mark = &marks.items[i];
        if (mark->stream->finished >= mark->position)
            marks.passed[context_of_mark(mark)]++;
        else
            marks.items[left++] = *mark;
    }
    marks.count = left;
    for (unsigned c = 0; c < SIM_CONTEXTS; c++)
        progress.passed += !context || context == &sim.contexts[c] ? marks.passed[c] : 0;
    for (unsigned i = left; i-- > 0;) {
        const bool is_its = context == &sim.contexts[context_of_mark(&marks.items[i])];
        progress.ahead += !context || is_its;
        progress.first = is_its ? marks.items[i].number : progress.first;
    }
    unlock();
    return progress;
}

static void marks_forget(const void *context)
{
    unsigned left = 0;
    lock();
    for (unsigned i = 0; i < marks.count; i++)
        if (&sim.contexts[context_of_mark(&marks.items[i])] != context)
            marks.items[left++] = marks.items[i];
    marks.count = left;
    unlock();
}

/* profiler.h */

static void profiler_preload(void) {}

static void profiler_prepare(void) {}

static kprof_status profiler_open(void *context, const kprof_chip_metrics *metrics, kprof_profiler **out)
{
    check_current(context);
    if (strcmp(metrics->chip, sim_current == 0 ? "GH100" : sim.second_chip) != 0)
        sim_violation("metrics of another chip");
    lock();
    bool fault = has_fault();
    unlock();
    *out = fault ? NULL : calloc(1, sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_INTERNAL, "no profiler (simulated)");
    (*out)->context = context;
    (*out)->metrics = metrics;
    lock();
    alive.profilers++;
    unlock();
    return KPROF_OK;
}

static size_t profiler_capacity(kprof_profiler *profiler, size_t bytes)
{
    return bytes > 0 ? sim.capacity : 1;
}

static kprof_status begin(kprof_profiler *profiler, size_t ranges, bool proved)
{
    check_current(profiler->context);
    size_t most = sim.most_launches > 0 && !profiler->automatic ? sim.most_launches : sim.capacity;
    size_t least = most < SIM_NODES + 1 ? SIM_NODES + 1 : most; /* a graph, with a range around it in a search */
    bool many = ranges > least + proved;
    if (profiler->state == STARTED || ranges == 0 || many)
        sim_violation("a measurement of %zu ranges begins in state %d", ranges, (int)profiler->state);
    if (has_fault())
        return kprof_fail(KPROF_INTERNAL, "the measurement did not begin (simulated)");
    profiler->state = BEGUN;
    profiler->capacity = ranges;
    profiler->proved = proved;
    profiler->pass = 0;
    profiler->decoded = profiler->goes_on = false;
    profiler->range_count = profiler->pushed = 0;
    memset(profiler->ranges, 0, sizeof profiler->ranges);
    return KPROF_OK;
}

static kprof_status profiler_begin(kprof_profiler *profiler, const kprof_measurement *wanted)
{
    lock();
    if (sim.all_witnesses && !wanted->all_witnesses)
        sim_violation("a measurement has few witnesses");
    if (wanted->automatic && wanted->proved)
        sim_violation("the application's own run is in an automatic measurement");
    if (wanted->proof_alone && !wanted->proved)
        sim_violation("a measurement has no pass");
    profiler->all_witnesses = wanted->all_witnesses;
    profiler->proof_alone = wanted->proof_alone;
    profiler->automatic = wanted->automatic;
    kprof_status status = begin(profiler, wanted->ranges, wanted->proved);
    unlock();
    return status;
}

static uint32_t count_passes(const kprof_profiler *profiler)
{
    return (profiler->proof_alone ? 0 : profiler->metrics->pass_count) + profiler->proved;
}

static uint32_t present_pass(const kprof_profiler *profiler)
{
    return profiler->pass % count_passes(profiler);
}

static void check_instructions(const sim_context *context);

static kprof_status start(kprof_profiler *profiler)
{
    check_current(profiler->context);
    check_can_wait("a pass starts");
    check_idle("a pass starts");
    bool more = profiler->state == STOPPED || profiler->state == DECODED;
    more = more && (profiler->goes_on || profiler->pass < count_passes(profiler));
    if (profiler->context->armed || (profiler->state != BEGUN && !more))
        sim_violation("a pass starts in state %d after %u passes", (int)profiler->state, profiler->pass);
    check_instructions(profiler->context);
    if (profiler->context->failed || has_fault())
        return kprof_fail(KPROF_INTERNAL, "the pass did not start (simulated)");
    profiler->context->has_run_pass = true;
    profiler->context->ran_unarmed |= !profiler->context->sampling;
    profiler->state = STARTED;
    profiler->automatic_count = 0;
    for (size_t i = 0; i < profiler->range_count; i++)
        profiler->ranges[i].launches = 0;
    profiler->context->armed = profiler;
    return KPROF_OK;
}

static kprof_status profiler_start(kprof_profiler *profiler)
{
    lock();
    kprof_status status = start(profiler);
    unlock();
    return status;
}

static kprof_status stop(kprof_profiler *profiler, bool *more)
{
    check_current(profiler->context);
    if (profiler->state != STARTED || profiler->pushed > 0)
        sim_violation("a pass stops in state %d, in range %zu", (int)profiler->state, profiler->pushed);
    if (sim.keeps_counting)
        sim_violation("a pass stops while its counters are kept on");
    check_can_wait("a pass stops");
    check_idle("a pass stops");
    profiler->context->armed = NULL;
    profiler->state = STOPPED;
    *more = ++profiler->pass % count_passes(profiler) != 0;
    return profiler->context->failed || has_fault() ? kprof_fail(KPROF_INTERNAL, "the pass failed (simulated)")
                                                    : KPROF_OK;
}

static kprof_status profiler_stop(kprof_profiler *profiler, bool *more)
{
    lock();
    kprof_status status = stop(profiler, more);
    unlock();
    return status;
}

static kprof_status profiler_skip_pass(kprof_profiler *profiler)
{
    bool more;
    kprof_status status = profiler_start(profiler);
    return status == KPROF_OK ? profiler_stop(profiler, &more) : status;
}

static kprof_status profiler_run_out(kprof_profiler *profiler)
{
    lock();
    profiler->pass = 0;
    unlock();
    return KPROF_OK;
}

static bool profiler_goes_on(const kprof_profiler *profiler)
{
    return profiler->state == BEGUN || profiler->state == STOPPED || profiler->state == DECODED;
}

static kprof_status profiler_next_pass(kprof_profiler *profiler, uint32_t *pass)
{
    lock();
    profiler->goes_on = true;
    bool is_proof = profiler->proved && present_pass(profiler) == 0;
    unlock();
    kprof_status status = is_proof ? profiler_skip_pass(profiler) : KPROF_OK;
    *pass = present_pass(profiler) - profiler->proved;
    return status;
}

static size_t find_range(kprof_profiler *profiler, size_t number)
{
    size_t i = 0;
    while (i < profiler->range_count && profiler->ranges[i].number != number)
        i++;
    if (i == profiler->capacity)
        sim_violation("a measurement of %zu ranges has one more", profiler->capacity);
    if (i == profiler->range_count)
        profiler->ranges[profiler->range_count++].number = number;
    return i;
}

static kprof_status profiler_push(kprof_profiler *profiler, size_t number)
{
    lock();
    if (profiler->state != STARTED || profiler->pushed > 0 || profiler->automatic)
        sim_violation("range %zu begins in state %d, within another", number, (int)profiler->state);
    if (sim_is_held((unsigned)(profiler->context - sim.contexts)))
        sim_violation("range %zu begins behind work that waits, so that later work in other streams does not run",
                      number);
    bool fault = has_fault();
    if (!fault) {
        size_t index = find_range(profiler, number);
        profiler->ranges[index].passes |= UINT64_C(1) << present_pass(profiler);
        profiler->pushed = index + 1;
    }
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "the range did not begin (simulated)") : KPROF_OK;
}

/* The proof has no counters of the SMs: the host goes on. In other passes it waits for the range. Events that another
 * thread has had recorded since the engine waited are no work that waits. */
static kprof_status profiler_pop(kprof_profiler *profiler)
{
    lock();
    unsigned context = (unsigned)(profiler->context - sim.contexts);
    bool waits = !profiler->proved || present_pass(profiler) > 0, pushed = profiler->pushed > 0;
    if (waits)
        sim_end_slow(context);
    else
        sim_drain_context(context);
    if (sim_is_busy(context))
        sim_violation("a range ends behind work that waits, so that later work in other streams does not run");
    profiler->pushed = 0;
    bool fault = has_fault();
    unlock();
    return !pushed || fault ? kprof_fail(KPROF_INTERNAL, "the range did not end (simulated)") : KPROF_OK;
}

bool sim_profiler_is_automatic(const kprof_profiler *profiler)
{
    return profiler->automatic;
}

size_t sim_profiler_range(kprof_profiler *profiler, bool is_replay)
{
    if (!profiler->automatic)
        return profiler->pushed;
    if (!is_replay)
        sim_violation("a launch of the application is among the ranges of a replay");
    size_t index = find_range(profiler, profiler->automatic_count++); /* kprof repeats transfers by kernels, too */
    profiler->ranges[index].passes |= UINT64_C(1) << present_pass(profiler);
    return index + 1;
}

static kprof_status decode(kprof_profiler *profiler, size_t ranges)
{
    if (profiler->state != STOPPED)
        sim_violation("%u passes are decoded in state %d", profiler->pass, (int)profiler->state);
    profiler->state = DECODED;
    if (profiler->range_count != ranges)
        return kprof_fail(KPROF_NOT_COLLECTED, "%zu ranges were measured, not %zu (simulated)", profiler->range_count,
                          ranges);
    if (has_fault())
        return kprof_fail(KPROF_INTERNAL, "decoding failed (simulated)");
    profiler->decoded = true;
    for (size_t i = 0; i < profiler->range_count; i++)
        profiler->ranges[i].warm = profiler->ranges[i].pass_warm;
    memcpy(profiler->readable, profiler->ranges, sizeof profiler->readable);
    profiler->readable_count = profiler->range_count;
    return KPROF_OK;
}

static kprof_status profiler_decode(kprof_profiler *profiler, size_t ranges)
{
    lock();
    kprof_status status = decode(profiler, ranges);
    unlock();
    return status;
}

static kprof_status reader_open(const kprof_chip_metrics *metrics, kprof_reader **out)
{
    *out = malloc(sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    (*out)->metrics = metrics;
    return KPROF_OK;
}

static void reader_close(kprof_reader *reader)
{
    free(reader);
}

/* In its last pass, which is after that of the proof. */
static uint32_t pass_of(const kprof_profiler *profiler, size_t metric)
{
    return profiler->metrics->last_passes[metric] + profiler->proved;
}

/* As CUPTI gives a counter that is in several passes: the mean over those that are decoded. */
static double witness_mean(const kprof_profiler *profiler, const sim_range *range, size_t witness)
{
    double sum = 0;
    unsigned passes = 0;
    uint64_t had = range->passes >> profiler->proved & profiler->metrics->witness_passes[witness];
    for (uint32_t pass = 0; pass < profiler->metrics->pass_count; pass++) {
        if (had >> pass & 1) {
            sum += sim_witness_in(pass);
            passes++;
        }
    }
    return passes > 0 ? sum / passes : NAN;
}

static bool is_counted(const kprof_profiler *profiler, const char *witness)
{
    return profiler->all_witnesses || strncmp(witness, SIM_DEAR, strlen(SIM_DEAR)) != 0;
}

static size_t find_name(const kprof_strlist *names, const char *name)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->items[i], name) != 0)
        i++;
    return i;
}

/* NaN for what has not been counted yet. */
static double value_of(const kprof_profiler *profiler, const sim_range *range, const char *name)
{
    const kprof_chip_metrics *metrics = profiler->metrics;
    size_t metric = find_name(&metrics->metrics, name), witness = find_name(&metrics->witnesses, name);
    uint32_t pass = metric < metrics->metrics.count ? pass_of(profiler, metric) : 0;
    if (metric < metrics->metrics.count)
        return !(range->passes >> pass & 1) ? NAN
               : range->spanned[pass] == 0  ? sim_value(range->in_pass[pass], metric)
               : metric < MAX_SUMS          ? (double)range->sums[metric]
                                            : sim_value(range->in_pass[pass], metric) * range->spanned[pass];
    if (witness < metrics->witnesses.count)
        return is_counted(profiler, name) ? witness_mean(profiler, range, witness) : NAN;
    if (!kprof_strlist_contains(&metrics->proof, name))
        sim_violation("%s is read, which nothing counts", name);
    const double counted[] = {range->sectors, 0, range->read};
    return profiler->proved && (range->passes & 1) ? counted[find_name(&metrics->proof, name)] : NAN;
}

/* Passes that repeat a range have the same launches, which find the same memory. */
static void check_order(const sim_range *range)
{
    const uint64_t *first = NULL;
    for (unsigned pass = 0; pass < MAX_PASSES; pass++) {
        if (!(range->repeated >> pass & 1))
            continue;
        first = first ? first : &range->found[pass];
        if (range->found[pass] != *first)
            sim_violation("pass %u of a range has other launches, or they found other memory than before", pass);
    }
}

static kprof_status reader_read(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    const kprof_profiler *profiler = range.profiler;
    lock();
    bool fault = has_fault();
    unlock();
    if (!profiler->decoded || range.index >= profiler->readable_count || reader->metrics != profiler->metrics)
        sim_violation("range %zu is read after %u passes", range.index, profiler->pass);
    check_order(&profiler->readable[range.index]);
    if (profiler->readable[range.index].had_two)
        sim_violation("range %zu is read, which has two launches", range.index);
    if (sim.flushes && profiler->readable[range.index].warm)
        sim_violation("range %zu was measured with warm caches", range.index);
    if (fault)
        return kprof_fail(KPROF_INTERNAL, "evaluation failed (simulated)");
    for (size_t i = 0; i < names->count; i++)
        values[i] = value_of(profiler, &profiler->readable[range.index], names->items[i]);
    return KPROF_OK;
}

static const void *profiler_image(const kprof_profiler *profiler, size_t *size)
{
    *size = sizeof profiler->ranges[0].signature;
    return &profiler->ranges[profiler->range_count - 1].signature; /* of the one launch */
}

static void profiler_release(kprof_profiler *profiler)
{
    lock();
    check_current(profiler->context);
    if (profiler->state == STARTED)
        sim_violation("the counters are given back in the middle of a pass");
    check_can_wait("the counters are given back");
    profiler->state = IDLE;
    profiler->context->has_run_pass = false;
    unlock();
}

static void profiler_close(kprof_profiler *profiler)
{
    if (!profiler)
        return;
    lock();
    alive.profilers--;
    if (profiler->state != IDLE && profiler->context->armed != profiler)
        sim_violation("a context ends and keeps the counters");
    if (profiler->context->armed == profiler)
        profiler->context->armed = NULL;
    profiler->context->has_run_pass = false;
    unlock();
    free(profiler);
}

/* A range of the program has as many launches as come between its begin and its end. */
static void note_in_range(kprof_profiler *profiler, sim_range *range, const sim_work *work, uint64_t signature)
{
    const unsigned pass = present_pass(profiler);
    const bool is_first = range->launches++ == 0;
    range->spanned[pass] = is_first ? 1 : range->spanned[pass] + 1;
    range->found[pass] = (is_first ? 0 : range->found[pass]) + sim_hash(0, signature);
    range->repeated |= work->is_replay ? UINT64_C(1) << pass : 0;
    range->signature = range->in_pass[pass] = signature;
    if (work->is_replay)
        range->pass_warm = range->pass_warm || (is_first && !profiler->context->cold);
    for (size_t i = 0; i < profiler->metrics->metrics.count && i < MAX_SUMS; i++)
        if (pass_of(profiler, i) == pass)
            range->sums[i] = (is_first ? 0 : range->sums[i]) + sim_value(signature, i);
}

/* The same launch must find the same memory in every pass; passes of a sample are the application's own launches of one
 * shape. */
void sim_profiler_note(kprof_profiler *profiler, const sim_work *work, uint64_t signature, unsigned reach)
{
    size_t index = work->range - 1;
    sim_range *range = &profiler->ranges[index];
    bool may_differ = (sim.is_even || sim.few_shapes) && !work->is_replay;
    uint64_t shape = sim_hash(work->step.kernel + 1, sim_shape(&work->step));
    bool is_proof = profiler->proved && present_pass(profiler) == 0;
    range->sectors += is_proof && (reach & (SIM_READS_HOST | SIM_WRITES_HOST)) != 0;
    range->read += is_proof && (reach & SIM_READS_HOST) != 0;
    if (is_proof && range->launches++ > 0)
        return; /* the range of a whole batch, of what comes behind work that the proof must not see, or of a launch */
    if (!is_proof && kprof_replay_is_of_ranges((int)kprof_engine.process.config.replay_choice)) {
        note_in_range(profiler, range, work, signature);
        return;
    }
    if (!is_proof && range->launches++ > 0 && !work->is_replay && sim.may_wait) {
        range->had_two = true;
        return;
    }
    if (!is_proof && range->launches > 1)
        sim_violation("a range has two launches");
    if (!is_proof && sim.records_kernels)
        sim_violation("a launch is counted while records of kernels add to it");
    const bool is_before = !work->is_replay && profiler->context->cold_before == work->number;
    const bool is_cold = profiler->context->cold || is_before;
    range->pass_warm = range->pass_warm || (!is_proof && !is_cold);
    if (range->signature == 0) {
        range->signature = signature;
        range->shape = shape;
    }
    if (present_pass(profiler) >= MAX_PASSES)
        sim_violation("pass %u is more than a sample can have", profiler->pass);
    range->in_pass[present_pass(profiler)] = signature;
    if (range->shape != shape && !sim.is_even)
        sim_violation("range %zu of pass %u is a launch of another shape", index, profiler->pass);
    if (range->signature != signature && !may_differ)
        sim_violation("range %zu of pass %u is another launch, or found other memory than before", index,
                      profiler->pass);
}

/* snapshot.h */

static kprof_status snapshot_open(void *context, kprof_snapshot **out)
{
    check_current(context);
    lock();
    *out = has_fault() ? NULL : calloc(1, sizeof **out);
    alive.snapshots += *out != NULL;
    unlock();
    if (!*out)
        return kprof_fail(KPROF_UNSUPPORTED, "memory cannot be saved here (simulated)");
    (*out)->context = sim_current;
    return KPROF_OK;
}

static void copy_words(unsigned slot, uint64_t *out)
{
    for (unsigned i = 0; i < SIM_WORDS; i++)
        out[i] = atomic_load_explicit(&sim_words(slot)[i], memory_order_relaxed);
}

static void save_slot(kprof_snapshot *snapshot, unsigned slot)
{
    saved_slot *saved = &snapshot->slots[slot];
    if (saved->saved && saved->generation == sim.slots[slot].generation)
        return;
    if (sim.slots[slot].exported)
        sim_violation("memory is saved that another device writes");
    saved->saved = true;
    saved->generation = sim.slots[slot].generation;
    copy_words(slot, saved->start);
    sim.slots[slot].is_hosts = false;
}

static bool is_saved_managed(void)
{
    return sim.managed && !sim.managed_stays;
}

/* Memory of the device, and the variables of modules that were noted. */
static void save_what_is_there(kprof_snapshot *snapshot)
{
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        if (slot % SIM_CONTEXTS == snapshot->context && slot % SIM_LANE_SLOTS < SIM_VARIABLES && sim.slots[slot].live &&
            !sim.slots[slot].cached && (!sim.slots[slot].shared || is_saved_managed() || snapshot->with_host))
            save_slot(snapshot, slot);
    for (unsigned module = 0; module < SIM_MODULES; module++)
        if (sim.noted[module] && sim_context_of_stream(module % SIM_STREAMS) == snapshot->context)
            save_slot(snapshot, sim_variable_of_module(module));
}

/* The driver waits for all work of the context before it frees memory. */
static void free_kept(kprof_snapshot *snapshot)
{
    for (unsigned slot = snapshot->context; slot < SIM_SLOTS; slot += SIM_CONTEXTS) {
        if (!sim.slots[slot].kept)
            continue;
        check_can_wait("memory is freed");
        if (sim_is_held(snapshot->context))
            sim_violation("memory is freed behind work that waits for the host");
        atomic_fetch_add(&sim.unloads, slot % SIM_LANE_SLOTS >= SIM_VARIABLES);
        sim_unload(slot);
    }
}

static void copy_flags(uint64_t *out)
{
    for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
        out[stream] = sim.streams[stream].flag;
}

static kprof_status snapshot_take(kprof_snapshot *snapshot, bool with_host)
{
    lock();
    check_can_wait("memory is saved");
    check_idle("memory is saved");
    if (snapshot->context != sim_current)
        sim_violation("memory of another context is saved");
    bool fault = has_fault();
    free_kept(snapshot);
    memset(snapshot->slots, 0, sizeof snapshot->slots);
    snapshot->with_host = sim.host_is_saved = with_host;
    copy_flags(snapshot->flags);
    copy_flags(snapshot->seen_flags);
    if (!fault)
        save_what_is_there(snapshot);
    snapshot->taken = !fault;
    snapshot->follows = snapshot->watches = false;
    snapshot->ended = false;
    unlock();
    return fault ? kprof_fail(KPROF_UNSUPPORTED, "memory cannot be saved (simulated)") : KPROF_OK;
}

static kprof_status snapshot_cover(kprof_snapshot *snapshot, void *stream)
{
    lock();
    check_can_wait("new memory is saved");
    bool fault = has_fault();
    if (snapshot->context != sim_current || !snapshot->taken)
        sim_violation("a snapshot is to cover another context, or was not taken");
    if (stream)
        sim_drain_context(sim_current);
    bool held = stream && sim_is_busy(sim_current);
    if (!fault && !held)
        save_what_is_there(snapshot);
    unlock();
    if (held)
        return kprof_fail(KPROF_NOT_COLLECTED, "the work before new memory did not end (simulated)");
    return fault ? kprof_fail(KPROF_UNSUPPORTED, "new memory cannot be saved (simulated)") : KPROF_OK;
}

static bool hold_pool(unsigned slot)
{
    sim_pool *pool = sim_pool_of(slot);
    bool holds = !has_fault();
    pool->held = pool->held || (holds && pool->limit != UINT64_MAX);
    return holds;
}

/* What is allocated next may have to come to this place, and kprof cannot always give it back before while work waits.
 */
static bool keep_memory(const sim_step *step)
{
    const sim_slot *slot = &sim.slots[step->a];
    return !has_fault() && slot->live && !slot->pooled && !sim.refuses_frees && !sim.may_wait;
}

/* There is one place beside the one that it is at. */
static bool keep_module(const sim_step *step)
{
    check_idle("a module is kept");
    const unsigned others = SIM_SECONDS - SIM_VARIABLES,
                   other = step->a % SIM_LANE_SLOTS < SIM_SECONDS ? step->a + others : step->a - others;
    return !has_fault() && !step->refused && !sim.refuses_frees && !sim.slots[other].kept;
}

static bool snapshot_keep_freed(kprof_snapshot *snapshot, const kprof_call *call)
{
    const sim_step *step = call->parameters;
    lock();
    check_can_wait("memory is allocated");
    if (snapshot->context != sim_current || !snapshot->taken)
        sim_violation("memory of another context is kept, or none was saved");
    bool to_pool = step->op == SIM_POOL_FREE;
    const bool fails = sim.contexts[sim_current].failed; /* so does what kprof makes in its place */
    bool keeps = to_pool                  ? hold_pool(step->a)
                 : step->op == SIM_RELOAD ? !fails && keep_module(step)
                                          : !fails && keep_memory(step);
    if (!to_pool)
        sim.slots[step->a].kept = keeps;
    unlock();
    return keeps;
}

static bool snapshot_leave_host(kprof_snapshot *snapshot)
{
    lock();
    if (snapshot->context != sim_current || !snapshot->taken || snapshot->ended)
        sim_violation("memory of the host is given up in another context, or none was saved");
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        snapshot->slots[slot].saved = snapshot->slots[slot].watched =
            snapshot->slots[slot].saved && (!sim.slots[slot].shared || is_saved_managed());
    snapshot->with_host = sim.host_is_saved = false;
    unlock();
    return true;
}

static bool has_words(unsigned slot, const uint64_t *words)
{
    uint64_t now[SIM_WORDS];
    copy_words(slot, now);
    return memcmp(now, words, sizeof now) == 0;
}

static kprof_snapshot *following[SIM_CONTEXTS];

void sim_has_followed(unsigned context)
{
    kprof_snapshot *snapshot = following[context];
    for (unsigned slot = 0; snapshot && !snapshot->stopped && slot < SIM_SLOTS; slot++) {
        saved_slot *saved = &snapshot->slots[slot];
        if (snapshot->watches && saved->watched && !has_words(slot, saved->seen))
            snapshot->changed = true;
        if (snapshot->becomes_start && saved->followed)
            copy_words(slot, saved->start);
    }
    if (snapshot)
        snapshot->follows = false;
    following[context] = NULL;
}

static void snapshot_stop_following(kprof_snapshot *snapshot)
{
    lock();
    if (snapshot->context != sim_current)
        sim_violation("what follows a launch is stopped in another context");
    snapshot->stopped = true;
    unlock();
}

void sim_takes_away(unsigned slot)
{
    const kprof_snapshot *snapshot = following[slot % SIM_CONTEXTS];
    if (snapshot && !snapshot->stopped && (snapshot->slots[slot].followed || snapshot->slots[slot].watched))
        sim_violation("memory in slot %u goes, which the engine is to read behind a launch", slot);
}

static kprof_status snapshot_watch(kprof_snapshot *snapshot, bool is_start)
{
    lock();
    check_can_wait("memory is watched");
    check_idle("memory is watched");
    bool fault = has_fault();
    if (snapshot->context != sim_current || !snapshot->taken)
        sim_violation("memory of another context is watched, or none was saved");
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        saved_slot *saved = &snapshot->slots[slot];
        saved->watched = saved->saved && sim.slots[slot].live;
        if (saved->watched)
            copy_words(slot, saved->seen);
        if (saved->watched && is_start && memcmp(saved->seen, saved->start, sizeof saved->seen) != 0)
            sim_violation("something has run since memory was saved");
    }
    snapshot->watches = !fault;
    snapshot->changed = false;
    unlock();
    return fault ? kprof_fail(KPROF_NO_MEMORY, "memory cannot be watched (simulated)") : KPROF_OK;
}

static kprof_status snapshot_has_changed(kprof_snapshot *snapshot, bool *changed)
{
    lock();
    if (snapshot->follows || !snapshot->watches)
        sim_violation("nothing was watched, or the launch has not ended");
    *changed = snapshot->changed;
    snapshot->watches = false;
    bool fault = has_fault();
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "what has changed cannot be read (simulated)") : KPROF_OK;
}

static kprof_status snapshot_follow(kprof_snapshot *snapshot, void *stream, bool becomes_start)
{
    lock();
    bool fault = has_fault();
    if (snapshot->context != sim_current || !snapshot->taken)
        sim_violation("a launch is followed in another context, or nothing was saved");
    snapshot->follows = !fault;
    snapshot->becomes_start = becomes_start;
    snapshot->stopped = false;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        snapshot->slots[slot].followed = snapshot->slots[slot].saved;
    following[sim_current] = fault ? NULL : snapshot;
    if (!fault)
        sim_follow(sim_stream_of(stream, sim_current));
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "a launch cannot be followed (simulated)") : KPROF_OK;
}

static bool snapshot_has_followed(const kprof_snapshot *snapshot)
{
    lock();
    bool has = !snapshot->follows;
    unlock();
    return has;
}

static kprof_status snapshot_record_end(kprof_snapshot *snapshot)
{
    lock();
    check_can_wait("memory is compared");
    check_idle("memory is compared");
    bool fault = has_fault();
    for (unsigned slot = 0; slot < SIM_SLOTS && !fault; slot++)
        if (snapshot->slots[slot].saved) {
            copy_words(slot, snapshot->slots[slot].end);
            snapshot->slots[slot].changed = !has_words(slot, snapshot->slots[slot].start);
            sim.slots[slot].is_hosts = false;
        }
    snapshot->ended = !fault;
    unlock();
    return fault ? kprof_fail(KPROF_NO_MEMORY, "no space for what changed (simulated)") : KPROF_OK;
}

typedef enum what_is_put_back { START_OF_CHANGED, START_OF_ALL, END } what_is_put_back;

static void restore(kprof_snapshot *snapshot, what_is_put_back what)
{
    check_can_wait("memory is restored");
    check_idle("memory is restored");
    if (snapshot->context != sim_current || !snapshot->taken || !snapshot->ended)
        sim_violation("memory of another context is restored, or some that was not recorded");
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        saved_slot *saved = &snapshot->slots[slot];
        if (!saved->saved)
            continue;
        if (what == START_OF_CHANGED && !saved->changed && !has_words(slot, saved->start))
            sim_violation("a replay changed memory in which nothing had been seen to change");
        saved->changed = saved->changed || !has_words(slot, saved->start);
        if (!sim.slots[slot].live || sim.slots[slot].generation != saved->generation)
            sim_violation("memory is restored that was freed or unmapped since it was saved");
        for (unsigned i = 0; i < SIM_WORDS; i++)
            atomic_store_explicit(&sim_words(slot)[i], what == END ? saved->end[i] : saved->start[i],
                                  memory_order_relaxed);
    }
    for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
        sim.streams[stream].repeated_flag = snapshot->flags[stream];
    sim.contexts[sim_current].cold = false;
}

static kprof_status snapshot_restore_start(kprof_snapshot *snapshot, bool everywhere)
{
    lock();
    restore(snapshot, everywhere ? START_OF_ALL : START_OF_CHANGED);
    unlock();
    return KPROF_OK;
}

static kprof_status snapshot_restore_end(kprof_snapshot *snapshot)
{
    lock();
    restore(snapshot, END);
    unlock();
    return KPROF_OK;
}

static void snapshot_drop(kprof_snapshot *snapshot, bool is_idle)
{
    lock();
    if (is_idle)
        free_kept(snapshot);
    let_go_of_pools(is_idle);
    sim.host_is_saved = false;
    following[snapshot->context] = NULL;
    unlock();
    snapshot->taken = snapshot->ended = snapshot->follows = snapshot->watches = false;
}

static void snapshot_release(kprof_snapshot *snapshot)
{
    if (snapshot->taken)
        sim_violation("saved memory is given back that is still needed");
    lock();
    free_kept(snapshot);
    unlock();
}

static unsigned snapshot_unloads(void)
{
    return atomic_load(&sim.unloads);
}

static size_t snapshot_held_bytes(const kprof_snapshot *snapshot)
{
    return 0;
}

static void snapshot_close(kprof_snapshot *snapshot, bool lives)
{
    lock();
    for (unsigned slot = 0; snapshot && slot < SIM_SLOTS; slot++)
        if (slot % SIM_CONTEXTS == snapshot->context && sim.slots[slot].kept)
            sim_unload(slot);
    alive.snapshots -= snapshot != NULL;
    unlock();
    free(snapshot);
}

static void *snapshot_stream(const kprof_snapshot *snapshot)
{
    return sim.contexts[snapshot->context].replays;
}

/* flush.h */

static kprof_status flush_open(kprof_flush **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    (*out)->context = sim_current;
    return KPROF_OK;
}

static unsigned context_of(const void *stream)
{
    for (unsigned context = 0; context < SIM_CONTEXTS; context++)
        if (stream == sim.contexts[context].replays)
            return context;
    return sim_context_of_stream(sim_stream_of(stream, sim_current));
}

static kprof_status flush_behind(kprof_flush *flush, void *stream)
{
    if (flush->context != sim_current || context_of(stream) != sim_current)
        sim_violation("caches of another context are flushed");
    return KPROF_OK;
}

/* Behind work that goes on, for the next work. */
static kprof_status flush_run(kprof_flush *flush, void *stream)
{
    lock();
    check_can_wait("caches are flushed");
    if (flush->context != sim_current || context_of(stream) != sim_current)
        sim_violation("caches of another context are flushed");
    sim_drain_context(sim_current);
    sim.contexts[sim_current].cold = !sim_is_busy(sim_current);
    sim.contexts[sim_current].cold_before = sim.submitted + 1;
    unlock();
    return KPROF_OK;
}

static void flush_prepare_to_empty(kprof_flush *flush)
{
    flush->empties = true;
}

static kprof_status flush_empty(kprof_flush *flush, void *stream)
{
    if (!flush->empties)
        sim_violation("caches are emptied, and nobody has prepared that");
    lock();
    /* Others may be at work beside a replay. */
    const bool checks_others = sim.tells_contexts && stream != sim.contexts[sim_current].replays;
    for (unsigned context = 0; context < SIM_CONTEXTS; context++)
        if ((context == sim_current || checks_others) && !sim.contexts[context].failed &&
            !sim_streams_are_idle(context))
            sim_violation("caches are emptied while the program's work is under way");
    unlock();
    return flush_run(flush, stream);
}

static const char *flush_shortfall(const kprof_flush *flush)
{
    return NULL;
}

static void flush_close(kprof_flush *flush)
{
    free(flush);
}

/* operation.h */

/* Transfers of memory that is not the device's own are not repeated. */
static bool is_repeatable(const sim_step *step, const kprof_snapshot *snapshot)
{
    if (step->uncopyable || step->op == SIM_LAUNCH || step->op == SIM_GRAPH_LAUNCH)
        return !step->uncopyable;
    bool copies = step->op == SIM_COPY;
    return snapshot && snapshot->slots[step->a].saved && (!copies || snapshot->slots[step->b].saved);
}

/* In the order of the stream, but for pageable memory, which is read at once. */
static void keep_input(kprof_operation *operation, unsigned traits)
{
    if (traits & (KPROF_NODE_READS_PAGEABLE | KPROF_NODE_READS_RESULTS))
        check_idle("memory of the host is read for a graph");
    sim_end_slow(sim_current); /* in the order of the stream */
    operation->step.value = sim.streams[operation->step.stream].buffer;
    operation->kept = !sim_is_held(sim_current);
}

static kprof_operation *operation_copy(const kprof_call *call, kprof_snapshot *snapshot)
{
    const sim_step *step = call->parameters;
    kprof_operation *operation = is_repeatable(step, snapshot) ? calloc(1, sizeof *operation) : NULL;
    if (!operation)
        return NULL;
    operation->step = *step;
    operation->step.kept = operation;
    operation->is_node = call->node_traits & KPROF_NODE;
    operation->hides_output = call->node_traits & KPROF_NODE_HIDES_OUTPUT;
    lock();
    if (operation->is_node && step->op == SIM_COPY_IN)
        keep_input(operation, call->node_traits);
    if (step->op == SIM_COPY_OUT_ASYNC)
        sim_submit_keep(step, operation);
    alive.operations++;
    unlock();
    return operation;
}

/* Nothing tells what the host did to memory that is its own. */
static bool may_have_changed(const kprof_snapshot *snapshot, unsigned slot)
{
    const sim_slot *s = &sim.slots[slot];
    return s->is_hosts || (snapshot->with_host && s->live && s->shared && !s->kept);
}

/* Return whether the host may have used any memory of the snapshot. The device takes it back. */
static bool take_from_host(kprof_snapshot *snapshot, saved_slot *out)
{
    uint64_t flags[SIM_STREAMS];
    copy_flags(flags);
    bool any = snapshot->with_host && memcmp(flags, snapshot->seen_flags, sizeof flags) != 0;
    memcpy(snapshot->seen_flags, flags, sizeof flags);
    for (unsigned slot = snapshot->context; slot < SIM_SLOTS; slot += SIM_CONTEXTS) {
        if (!may_have_changed(snapshot, slot))
            continue;
        if (!snapshot->slots[slot].saved || snapshot->slots[slot].generation != sim.slots[slot].generation)
            sim_violation("the host used memory that is not saved");
        sim.slots[slot].is_hosts = false;
        out[slot].saved = any = true;
        out[slot].generation = sim.slots[slot].generation;
        copy_words(slot, out[slot].start);
    }
    return any;
}

void sim_keep(kprof_operation *kept)
{
    copy_words(kept->step.a, kept->output);
    kept->is_kept_in_order = true;
}

static bool is_put_back(const kprof_operation *kept, unsigned slot)
{
    return kept->host[slot].saved && (!kept->all || kept->all->slots[slot].changed);
}

void sim_put_back(const kprof_operation *kept)
{
    for (unsigned i = 0; i < SIM_WORDS && !kept->host; i++)
        atomic_store_explicit(&sim_words(kept->step.a)[i], kept->output[i], memory_order_relaxed);
    if (!kept->host)
        return;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        for (unsigned i = 0; i < SIM_WORDS && is_put_back(kept, slot); i++)
            atomic_store_explicit(&sim_words(slot)[i], kept->host[slot].start[i], memory_order_relaxed);
    for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
        sim.streams[stream].repeated_flag = kept->flags[stream];
}

/* Kernels would take pages back. Where functions of the host run, managed memory is not restored, whatever is kept. */
static kprof_status operation_keep_host(kprof_snapshot *snapshot, kprof_operation **out)
{
    *out = calloc(1, sizeof **out);
    saved_slot *host = calloc(SIM_SLOTS, sizeof *host);
    if (!*out || !host)
        sim_violation("the test itself: no memory");
    lock();
    if (snapshot->context != sim_current || !snapshot->taken)
        sim_violation("what the host did is looked for in another context, or nothing was saved");
    if (!sim_is_idle(sim_current) && !sim.waits_for_host)
        sim_violation("what the host did is looked for while the device is at work");
    const bool fault = has_fault(), keeps = !fault && take_from_host(snapshot, host);
    **out = (kprof_operation){.step = {.op = SIM_PUT_BACK, .stream = 2 * sim_current, .kept = *out}, .host = host};
    copy_flags((*out)->flags);
    alive.operations += keeps;
    unlock();
    if (!keeps) {
        free(host);
        free(*out);
        *out = NULL;
    }
    return fault ? kprof_fail(KPROF_NO_MEMORY, "what the host did is not kept (simulated)") : KPROF_OK;
}

static kprof_status operation_keep_all(kprof_snapshot *snapshot, kprof_operation **out)
{
    *out = calloc(1, sizeof **out);
    saved_slot *all = calloc(SIM_SLOTS, sizeof *all);
    if (!*out || !all)
        sim_violation("the test itself: no memory");
    lock();
    check_can_wait("all memory is kept");
    check_idle("all memory is kept");
    if (snapshot->context != sim_current || !snapshot->taken)
        sim_violation("memory of another context is kept, or nothing was saved");
    const kprof_profiler *armed = sim.contexts[sim_current].armed;
    if (armed && armed->pushed > 0)
        sim_violation("all memory is kept within range %zu, which counts what that takes", armed->pushed);
    const bool fault = has_fault();
    for (unsigned slot = 0; slot < SIM_SLOTS && !fault; slot++) {
        all[slot].saved = snapshot->slots[slot].saved;
        if (all[slot].saved) {
            copy_words(slot, all[slot].start);
            sim.slots[slot].is_hosts = false;
        }
    }
    **out = (kprof_operation){
        .step = {.op = SIM_PUT_BACK, .stream = 2 * sim_current, .kept = *out}, .host = all, .all = snapshot};
    copy_flags((*out)->flags);
    alive.operations += !fault;
    unlock();
    if (fault) {
        free(all);
        free(*out);
        *out = NULL;
    }
    return fault ? kprof_fail(KPROF_NO_MEMORY, "no space for all memory (simulated)") : KPROF_OK;
}

/* The call of a copy to the host has waited for the stream, that of a graph has not. */
static bool keep_output(kprof_operation *operation)
{
    if (operation->is_node)
        sim_end_slow(sim_current);
    copy_words(operation->step.a, operation->output);
    return !operation->is_node || !sim_is_held(sim_current);
}

static kprof_status operation_returned(kprof_operation *operation)
{
    lock();
    const bool in_order = operation->step.op == SIM_COPY_IN_ASYNC;
    bool in = in_order || (operation->step.op == SIM_COPY_IN && !operation->is_node);
    bool out = operation->step.op == SIM_COPY_OUT && !operation->hides_output;
    bool fault = sim.faulty && (in || (out && operation->is_node)) && sim_chance(2);
    if (out && !fault && !sim.contexts[sim_current].failed)
        fault = !keep_output(operation);
    if (in_order && !fault)
        sim_submit_keep(&operation->step, operation);
    if (in || out)
        operation->kept = !fault;
    unlock();
    return fault ? kprof_fail(KPROF_NO_MEMORY, "a copy from or to the host is not kept (simulated)") : KPROF_OK;
}

static kprof_status check_output(const kprof_operation *operation)
{
    uint64_t now[SIM_WORDS];
    kprof_profiler *armed = sim.contexts[sim_current].armed;
    if (armed && armed->automatic)
        (void)sim_profiler_range(armed, true);
    sim_drain_context(sim_current);
    copy_words(operation->step.a, now);
    return memcmp(now, operation->output, sizeof now) == 0
               ? KPROF_OK
               : kprof_fail(KPROF_NOT_COLLECTED, "a replay computed something else (simulated)");
}

/* `lane`: NULL where results are compared, which are copied in one stream. */
static kprof_status repeat(const kprof_operation *operation, kprof_snapshot *snapshot, const kprof_lane *lane)
{
    const sim_step *step = &operation->step;
    const bool is_output = step->op == SIM_COPY_OUT_ASYNC || step->op == SIM_COPY_OUT;
    const kprof_lane in = lane ? *lane : (kprof_lane){0};
    if (sim_context_of_stream(step->stream) != sim_current || snapshot->context != sim_current)
        sim_violation("a launch is repeated in another context");
    sim_own_call(KPROF_CALL_LAUNCH, false);
    lock();
    check_can_wait("a launch of the engine");
    kprof_status status = KPROF_OK;
    if (!operation->kept && (step->op == SIM_COPY_IN || (step->op == SIM_COPY_OUT && !operation->hides_output)))
        sim_violation("a copy from or to the host is repeated that was not kept");
    if (!operation->is_kept_in_order && (step->op == SIM_COPY_IN_ASYNC || step->op == SIM_COPY_OUT_ASYNC))
        sim_violation("a copy from or to the host is repeated that has not been kept yet");
    if (sim.slow && sim_chance(30))
        sim_clock_advance_s(1000);
    if (has_fault())
        status = kprof_fail(KPROF_INTERNAL, "the launch could not be repeated (simulated)");
    else if (is_output && !lane)
        status = operation->hides_output ? KPROF_OK : check_output(operation);
    else if (is_output) /* to where nobody looks */
        sim_submit_replay(sim_current, in, &(sim_step){.op = SIM_HOLD, .stream = step->stream});
    else if (step->op == SIM_COPY_IN_ASYNC)
        sim_submit_replay(sim_current, in, &(sim_step){.op = SIM_PUT_BACK, .stream = step->stream, .kept = step->kept});
    else
        sim_submit_replay(sim_current, in, step);
    unlock();
    sim_own_call(KPROF_CALL_LAUNCH, true);
    return status;
}

static kprof_status operation_run(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    return repeat(operation, snapshot, NULL);
}

static bool moves_hosts(const kprof_operation *operation)
{
    const sim_op op = operation->step.op;
    return op == SIM_COPY_IN || op == SIM_COPY_IN_ASYNC || op == SIM_COPY_OUT || op == SIM_COPY_OUT_ASYNC;
}

static kprof_status operation_prepare_counted(kprof_operation *operation, kprof_snapshot *snapshot, unsigned lane)
{
    lock();
    check_can_wait("memory of the host is locked");
    check_idle("memory of the host is locked");
    if (snapshot->context != sim_current || sim.contexts[sim_current].armed)
        sim_violation("memory of the host is locked in another context, or in a pass");
    const bool fault = moves_hosts(operation) && has_fault();
    operation->is_locked = !fault;
    operation->has_lane = true;
    operation->lane = lane;
    unlock();
    return fault ? kprof_fail(KPROF_NOT_COLLECTED, "no memory of the host can be locked (simulated)") : KPROF_OK;
}

static kprof_status operation_run_counted(const kprof_operation *operation, kprof_snapshot *snapshot, kprof_lane lane)
{
    if (!sim.contexts[sim_current].armed)
        sim_violation("a launch or copy is repeated in no pass, where nothing is compared");
    if (moves_hosts(operation) && !operation->is_locked)
        sim_violation("a copy from or to the host is repeated in a pass without memory of the host, by a kernel");
    if (!operation->has_lane || operation->lane != lane.number)
        sim_violation("a stream is made in a pass, which counts the time that it takes");
    return repeat(operation, snapshot, &lane);
}

static bool operation_is_saved(const kprof_operation *operation, const kprof_snapshot *snapshot)
{
    if (!snapshot->taken)
        sim_violation("nothing is saved");
    return !operation->step.unsaved;
}

static size_t operation_kernels(const kprof_operation *operation)
{
    if (operation->step.op == SIM_GRAPH_LAUNCH)
        return KPROF_MANY_KERNELS;
    return operation->hides_output ? 0 : 1;
}

static size_t operation_output_bytes(const kprof_operation *operation)
{
    const size_t bytes = operation->step.large ? (size_t)64 << 20 : SIM_WORDS * sizeof(uint64_t);
    const bool is_output = operation->step.op == SIM_COPY_OUT || operation->step.op == SIM_COPY_OUT_ASYNC;
    return is_output && !operation->hides_output ? bytes : 0;
}

static bool transfer_is_hosts(const kprof_call *call)
{
    return false;
}

/* The copy itself waits for as much. Of one from pageable memory nobody knows whether it does. */
static kprof_awaited transfer_await_start(const kprof_call *call, int64_t perhaps_ns)
{
    const sim_step *step = call->parameters;
    kprof_awaited awaited = KPROF_NOT_AWAITED;
    sim_own_call(KPROF_CALL_WAIT, false);
    lock();
    if (step->op == SIM_COPY_IN && step->value % 2 == 0 && perhaps_ns >= 0)
        awaited = sim_await_stream(step->stream, perhaps_ns) ? KPROF_AWAITED : KPROF_AWAIT_TIMED_OUT;
    else if ((step->op == SIM_COPY_OUT || step->op == SIM_COPY_IN) && !sim_is_held(sim_current))
        awaited = KPROF_AWAITED;
    if (awaited == KPROF_AWAITED) /* as the call waits itself */
        sim_end_slow(sim_current);
    unlock();
    sim_own_call(KPROF_CALL_WAIT, true);
    return awaited;
}

static void operation_free(kprof_operation *operation)
{
    lock();
    alive.operations -= operation != NULL;
    if (operation)
        sim_forget_keep(operation);
    unlock();
    if (operation)
        free(operation->host);
    free(operation);
}

static bool operation_sees_host(const kprof_operation *operation)
{
    return !sim.hides_host && !operation->step.hidden && is_any(&operation->step, takes_shared);
}

static bool operation_leads_to_host(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    return is_any(&operation->step, takes_shared);
}

/* instructions.h, pc_samples.h and codes.h */

#define CODE_CRC     UINT64_C(0x51000000) /* and the number of the module */
#define INSTRUCTIONS 4                    /* of each kernel; the last one is in a function that it calls */
#define MOST_NAMES   64

struct kprof_instructions {
    sim_context *context;
    const kprof_strlist *names;
    uint64_t signature;    /* of the launch since the last reading */
    unsigned launches;     /* since then */
    unsigned own_launches; /* of these, the application's own */
    sim_step step;
    kprof_instruction_rows rows;
};

/* Samples over time: one before the launch, which CUPTI gives what was counted before it, an idle one, and those of the
 * launch with an idle one behind them. */
#define BEFORE_LAUNCH 2
#define TIME_SAMPLES  (BEFORE_LAUNCH + SIM_TIME_SAMPLES + 1)

struct kprof_pm_sampling {
    sim_context *context;
    const kprof_chip_timeline *pass; /* NULL: not configured */
    uint64_t interval_ns, signature;
    bool runs, stopped;
    unsigned launches;
    sim_step step;
    uint64_t starts_ns[TIME_SAMPLES], ends_ns[TIME_SAMPLES];
    double values[TIME_SAMPLES * MOST_NAMES];
};

struct kprof_pc_samples {
    sim_context *context;
    bool started, runs, launched; /* since samples were enabled; launched: a kernel of the application's, in no pass */
    uint32_t period;
    uint64_t signature;
    unsigned launches;
    sim_step step;
    kprof_instruction_rows rows;
};

static const char *const reasons[SIM_REASONS] = {"smsp__pcsamp_warps_issue_stalled_wait",
                                                 "smsp__pcsamp_warps_issue_stalled_wait_not_issued",
                                                 "smsp__pcsamp_warps_issue_stalled_barrier"};

/* A pass is about to start. */
static void check_instructions(const sim_context *context)
{
    if (context->counting)
        sim_violation("a pass starts while instructions are counted");
    if (context->sampling && context->sampling->started)
        sim_violation("a pass starts while samples are enabled that had been started, which ends the process");
    if (context->sampling && context->sampling->launched)
        sim_violation("a pass starts, and the application has launched kernels since samples were enabled");
    if (context->over_time)
        sim_violation("a pass starts while samples over time are enabled");
}

static kprof_activity_sink activity_sink;
static unsigned recorded;

/* CUPTI hands an activity over as soon as its kernel has run, and has none while instructions may be sampled. */
static void record_kernel(const sim_context *context, const sim_work *work)
{
    const int64_t ran_ns = 1000;
    const kprof_call call = sim_describe(&work->step);
    kprof_activity activity = {.kind = KPROF_ACTIVITY_KERNEL};
    if (!sim.keeps_activities || !sim.records_kernels || !sim.hooked || work->is_replay || context->sampling ||
        call.kind != KPROF_CALL_LAUNCH)
        return;
    activity.kernel = (kprof_kernel_activity){.name = activity_sink.name(call.kernel_name, true),
                                              .start_ns = ran_ns,
                                              .end_ns = 2 * ran_ns,
                                              .grid_x = 1,
                                              .grid_y = 1,
                                              .grid_z = 1,
                                              .block_x = 32,
                                              .block_y = 1,
                                              .block_z = 1};
    activity_sink.take(&activity);
    if (++recorded % 64 == 0)
        activity_sink.end(0, 0);
}

/* Transfers of the engine's are kernels, too. */
void sim_instructions_note(sim_context *context, const sim_work *work, uint64_t signature)
{
    record_kernel(context, work);
    const bool samples = context->sampling && context->sampling->runs;
    const uint64_t kernel = UINT64_C(1) << (work->step.kernel % 64);
    if (sim.tells_contexts && !(context->loaded & kernel) && !context->sampling)
        context->loaded_unarmed |= kernel;
    context->loaded |= kernel;
    if (context->over_time && !work->is_replay)
        sim_violation("a launch of the application runs while timelines are measured");
    if (context->over_time && context->sampling)
        sim_violation("a launch is sampled over time while samples of instructions are enabled");
    if (context->over_time) {
        context->over_time->signature = signature;
        context->over_time->step = work->step;
        context->over_time->launches++;
    }
    if (context->sampling && !context->armed && !work->is_replay)
        context->sampling->launched = true;
    if (context->counting && sim.records_kernels)
        sim_violation("instructions are counted while records of kernels keep that at 0");
    if (context->counting) {
        context->counting->signature = signature;
        context->counting->step = work->step;
        context->counting->launches++;
        context->counting->own_launches += !work->is_replay;
    }
    if (samples) {
        context->sampling->signature = signature;
        context->sampling->step = work->step;
        context->sampling->launches++;
    }
}

/* The kernel's value in parts, one for each instruction. The first one comes in two. */
static void make_rows(kprof_instruction_rows *rows, const sim_step *step, const double *totals, size_t names)
{
    const uint64_t crc = CODE_CRC + step->stream;
    const char *function = sim_describe(step).kernel_name;
    if (!kprof_instruction_rows_begin(rows, INSTRUCTIONS + 1, names))
        sim_violation("the test itself: no memory");
    for (unsigned i = 0; i < INSTRUCTIONS + 1; i++) {
        double *values = kprof_instruction_rows_next(rows);
        for (size_t k = 0; k < names; k++) {
            const double part = floor(totals[k] / INSTRUCTIONS), half = floor(part / 2);
            values[k] = i == 0              ? half
                        : i == 1            ? part - half
                        : i == INSTRUCTIONS ? totals[k] - (INSTRUCTIONS - 1) * part
                                            : part;
        }
        const bool calls = i == INSTRUCTIONS;
        kprof_instruction_rows_keep(rows, crc, calls ? "called" : function, calls ? 0 : 16 * (i > 0 ? i - 1 : 0));
    }
}

static kprof_status instructions_open(const kprof_instructions_place *place, kprof_instructions **out)
{
    check_current(place->context);
    lock();
    *out = has_fault() ? NULL : calloc(1, sizeof **out);
    alive.instructions += *out != NULL;
    unlock();
    if (!*out)
        return kprof_fail(KPROF_UNSUPPORTED, "instructions are not counted (simulated)");
    (*out)->context = place->context;
    (*out)->names = place->names;
    return KPROF_OK;
}

static kprof_status instructions_enable(kprof_instructions *s)
{
    lock();
    check_current(s->context);
    check_can_wait("instructions are counted");
    check_idle("instructions are counted");
    if (s->context->armed || s->context->counting)
        sim_violation("instructions are counted within a pass, or already");
    if (s->context->has_run_pass)
        sim_violation(
            "instructions are counted while a profiler's object has run a pass, so that no later one is read");
    const bool fault = has_fault();
    s->context->counting = fault ? NULL : s;
    s->launches = 2; /* kernels of the engine's own, as it were */
    s->own_launches = 0;
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "instructions cannot be counted (simulated)") : KPROF_OK;
}

static kprof_status instructions_read(kprof_instructions *s, kprof_instruction_data *out)
{
    double totals[MOST_NAMES];
    lock();
    check_current(s->context);
    check_idle("counters of instructions are read");
    if (s->context->counting != s)
        sim_violation("counters of instructions are read that are not enabled");
    *out = (kprof_instruction_data){.names = (const char *const *)s->names->items, .name_count = s->names->count};
    if (s->own_launches > 0 && s->launches > 1)
        sim_violation("the instructions of %u launches, the application's own among them, are read as one's",
                      s->launches);
    const bool fault = has_fault(), none = sim.plants_errors && s->step.kernel == SIM_TALLY;
    for (size_t i = 0; i < s->names->count && i < MOST_NAMES; i++)
        totals[i] = sim_value(s->signature, i);
    if (s->launches == 1 && !none) {
        make_rows(&s->rows, &s->step, totals, s->names->count);
        out->items = s->rows.items;
        out->count = s->rows.count;
    }
    s->launches = fault ? s->launches : 0;
    s->own_launches = fault ? s->own_launches : 0;
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "counters of instructions are not read (simulated)") : KPROF_OK;
}

static kprof_status instructions_disable(kprof_instructions *s)
{
    lock();
    check_current(s->context);
    check_idle("instructions are not counted any more");
    s->context->counting = NULL;
    unlock();
    return KPROF_OK;
}

static void instructions_close(kprof_instructions *s)
{
    if (!s)
        return;
    lock();
    alive.instructions--;
    if (s->context->counting == s && !s->context->failed)
        sim_violation("a context ends while its instructions are counted");
    s->context->counting = NULL;
    unlock();
    kprof_instruction_rows_free(&s->rows);
    free(s);
}

static kprof_status pc_samples_open(void *context, size_t buffer_bytes, kprof_pc_samples **out)
{
    check_current(context);
    lock();
    *out = has_fault() ? NULL : calloc(1, sizeof **out);
    alive.instructions += *out != NULL;
    unlock();
    if (!*out)
        return kprof_fail(KPROF_UNSUPPORTED, "there are no samples (simulated)");
    (*out)->context = context;
    return KPROF_OK;
}

static kprof_status pc_samples_arm(kprof_pc_samples *s, uint32_t period)
{
    lock();
    check_current(s->context);
    check_can_wait("samples are enabled");
    check_idle("samples are enabled");
    if (period < KPROF_SHORTEST_PERIOD || period > KPROF_LONGEST_PERIOD || s->context->armed)
        sim_violation("samples of period 2^%u are enabled, or within a pass", period);
    const bool fault = has_fault();
    s->context->sampling = fault ? NULL : s;
    s->started = s->runs = s->launched = false;
    s->period = period;
    unlock();
    return fault ? kprof_fail(KPROF_NO_PERMISSION, "samples cannot be enabled (simulated)") : KPROF_OK;
}

static kprof_status pc_samples_disarm(kprof_pc_samples *s)
{
    lock();
    check_current(s->context);
    check_idle("samples are disabled");
    s->context->sampling = NULL;
    s->started = s->runs = false;
    unlock();
    return KPROF_OK;
}

static kprof_status pc_samples_start(kprof_pc_samples *s)
{
    lock();
    check_current(s->context);
    check_idle("samples are started");
    if (s->context->sampling != s || s->runs || s->context->armed)
        sim_violation("samples are started that are not enabled, or run, or within a pass");
    if (s->context->has_run_pass)
        sim_violation("samples are started while a profiler's object has run a pass, so that there will be none");
    const bool fault = has_fault();
    s->started = true;
    s->runs = !fault;
    s->launches = 0;
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "samples cannot be started (simulated)") : KPROF_OK;
}

static kprof_status pc_samples_stop(kprof_pc_samples *s)
{
    lock();
    check_current(s->context);
    check_idle("samples are stopped");
    if (!s->runs)
        sim_violation("samples are stopped that do not run");
    s->runs = false;
    const bool fault = has_fault();
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "samples cannot be stopped (simulated)") : KPROF_OK;
}

static kprof_status pc_samples_read(kprof_pc_samples *s, kprof_instruction_data *out)
{
    double totals[SIM_REASONS];
    lock();
    check_current(s->context);
    if (s->context->sampling != s || s->runs)
        sim_violation("samples are read while they are taken, or are not enabled");
    if (s->launches > 1)
        sim_violation("samples of %u launches are read as one's", s->launches);
    *out = (kprof_instruction_data){.names = reasons, .name_count = SIM_REASONS};
    const sim_kernel kernel = s->step.kernel;
    const bool came_before = s->context->loaded_unarmed & UINT64_C(1) << (kernel % 64);
    const bool foreign = s->context->ran_unarmed || (sim.plants_errors && kernel == SIM_SWAP);
    const bool full = sim.plants_errors && kernel == SIM_SCALE, fault = has_fault();
    for (size_t i = 0; i < SIM_REASONS; i++)
        totals[i] = sim_samples(s->signature, i);
    if (s->launches == 1) {
        make_rows(&s->rows, &s->step, totals, SIM_REASONS);
        out->items = s->rows.items;
        out->count = s->rows.count;
        out->dropped = sim.plants_errors && kernel == SIM_MOVE ? 7 : 0;
    }
    unlock();
    if (came_before)
        return kprof_fail(KPROF_UNSUPPORTED, "the kernel was loaded before samples were enabled (simulated)");
    if (foreign)
        return kprof_fail(KPROF_UNSUPPORTED, "the samples are of no user's kernel (simulated)");
    if (full)
        return kprof_fail(KPROF_NOT_COLLECTED, "the buffer for samples is full (simulated)");
    return fault ? kprof_fail(KPROF_INTERNAL, "samples are not read (simulated)") : KPROF_OK;
}

static void pc_samples_close(kprof_pc_samples *s)
{
    if (!s)
        return;
    lock();
    alive.instructions--;
    if (s->context->sampling == s)
        s->context->sampling = NULL;
    unlock();
    kprof_instruction_rows_free(&s->rows);
    free(s);
}

static kprof_status pm_sampling_open(uint32_t device, const char *chip, kprof_pm_sampling **out)
{
    lock();
    *out = has_fault() ? NULL : calloc(1, sizeof **out);
    alive.instructions += *out != NULL;
    if (*out)
        (*out)->context = &sim.contexts[sim_current];
    unlock();
    return *out ? KPROF_OK : kprof_fail(KPROF_UNSUPPORTED, "nothing is sampled over time (simulated)");
}

static kprof_status pm_sampling_enable(kprof_pm_sampling *s)
{
    lock();
    check_current(s->context);
    check_can_wait("samples over time are enabled");
    check_idle("samples over time are enabled");
    if (s->context->armed || s->context->counting || s->context->sampling || s->context->over_time)
        sim_violation("samples over time are enabled within a pass, or beside another measurement");
    const bool fault = has_fault();
    s->context->over_time = fault ? NULL : s;
    s->pass = NULL;
    unlock();
    return fault ? kprof_fail(KPROF_NO_PERMISSION, "samples over time cannot be enabled (simulated)") : KPROF_OK;
}

static kprof_status pm_sampling_disable(kprof_pm_sampling *s)
{
    lock();
    check_current(s->context);
    check_idle("samples over time are disabled");
    if (s->runs)
        sim_violation("samples over time are disabled that run");
    s->context->over_time = NULL;
    unlock();
    return KPROF_OK;
}

static kprof_status pm_sampling_configure(kprof_pm_sampling *s, const kprof_pm_setup *setup)
{
    lock();
    check_idle("samples over time are configured");
    if (s->context->over_time != s || s->runs || setup->interval_ns == 0 || setup->pass->metrics.count > MOST_NAMES)
        sim_violation("samples over time are configured that are not enabled, or run, or every %llu ns",
                      (unsigned long long)setup->interval_ns);
    const bool fault = has_fault(), busy = s->context->has_run_pass;
    s->pass = fault || busy ? NULL : setup->pass;
    s->interval_ns = setup->interval_ns;
    unlock();
    if (busy)
        return kprof_fail(KPROF_COUNTERS_BUSY,
                          "an object of a profiler that has run passes has the counters (simulated)");
    return fault ? kprof_fail(KPROF_UNSUPPORTED, "the pass is not sampled over time (simulated)") : KPROF_OK;
}

static kprof_status pm_sampling_start(kprof_pm_sampling *s)
{
    lock();
    check_current(s->context);
    check_idle("samples over time are started");
    if (s->context->over_time != s || !s->pass || s->runs)
        sim_violation("samples over time are started that are not configured, or run");
    const bool fault = has_fault();
    s->runs = !fault;
    s->stopped = false;
    s->launches = 0;
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "samples over time cannot be started (simulated)") : KPROF_OK;
}

static kprof_status pm_sampling_stop(kprof_pm_sampling *s)
{
    lock();
    check_current(s->context);
    check_idle("samples over time are stopped");
    if (!s->runs)
        sim_violation("samples over time are stopped that do not run");
    s->runs = false;
    s->stopped = true;
    unlock();
    return KPROF_OK;
}

/* The launch's value in each sample, rising by a tenth of it from one to the next. */
static void fill_times(kprof_pm_sampling *s)
{
    const size_t names = s->pass->metrics.count;
    for (unsigned i = 0; i < TIME_SAMPLES; i++) {
        const bool is_own = i >= BEFORE_LAUNCH && i < BEFORE_LAUNCH + SIM_TIME_SAMPLES;
        s->starts_ns[i] = 5000 + i * s->interval_ns;
        s->ends_ns[i] = s->starts_ns[i] + s->interval_ns;
        s->values[i * names] = i == 0 ? 100 : is_own ? 50 : 0;
        for (size_t k = 1; k < names; k++)
            s->values[i * names + k] = is_own ? sim_time_value(s->signature, k, i - BEFORE_LAUNCH) : -1;
    }
}

static kprof_status pm_sampling_read(kprof_pm_sampling *s, kprof_pm_data *out)
{
    lock();
    check_current(s->context);
    if (s->context->over_time != s || !s->stopped)
        sim_violation("samples over time are read that were not stopped");
    if (s->launches > 1)
        sim_violation("samples over time of %u launches are read as one's", s->launches);
    s->stopped = false;
    fill_times(s);
    *out = (kprof_pm_data){.starts_ns = s->starts_ns, .ends_ns = s->ends_ns, .values = s->values};
    out->count = s->launches == 1 ? TIME_SAMPLES : BEFORE_LAUNCH;
    out->is_cut = sim.plants_errors && s->step.kernel == SIM_MOVE;
    const bool fault = has_fault();
    unlock();
    return fault ? kprof_fail(KPROF_INTERNAL, "samples over time are not read (simulated)") : KPROF_OK;
}

/* What was expected of a launch with planted errors is too little. */
static kprof_status pm_sampling_read_launch(kprof_pm_sampling *s, size_t expected, kprof_pm_data *out)
{
    const size_t names = s->pass ? s->pass->metrics.count : 0;
    kprof_status status = pm_sampling_read(s, out);
    out->starts_ns += BEFORE_LAUNCH;
    out->ends_ns += BEFORE_LAUNCH;
    out->values += BEFORE_LAUNCH * names;
    out->count = out->count == TIME_SAMPLES ? SIM_TIME_SAMPLES : 0;
    if (expected > 0 && s->step.kernel == SIM_MOVE)
        out->is_cut = true;
    return status;
}

static void pm_sampling_close(kprof_pm_sampling *s)
{
    if (!s)
        return;
    lock();
    alive.instructions--;
    if (s->context->over_time == s && !s->context->failed)
        sim_violation("a context ends while it is sampled over time");
    s->context->over_time = NULL;
    unlock();
    free(s);
}

static void codes_keep(void) {}

static const void *codes_find(uint64_t crc, const char *function, size_t *size, uint64_t *id)
{
    *id = crc;
    static const char code[] = "the code of a module (simulated)";
    *size = sizeof code;
    return crc >= CODE_CRC && crc < CODE_CRC + SIM_STREAMS ? code : NULL;
}

static void codes_drop(uint64_t id) {}

/* writers.h */

static const char *writers_devices(void)
{
    return NULL;
}

/* activities.h: timeline.c has them, for tests of the command line */

static kprof_status activities_start(const kprof_activity_sink *sink, kprof_activity_scope scope)
{
    if (!sim.keeps_activities)
        return kprof_fail(KPROF_UNSUPPORTED, "the machine keeps no activities");
    activity_sink = *sink;
    sim.records_kernels = true;
    return KPROF_OK;
}

static kprof_status activities_follow_managed(void)
{
    return KPROF_OK;
}

static size_t activities_flush(void)
{
    lock();
    if (sim.keeps_activities)
        activity_sink.end(0, 0);
    unlock();
    return 0;
}

static size_t activities_flush_failed(void)
{
    return activities_flush();
}

static void activities_pause(bool pauses)
{
    lock();
    sim.records_kernels = sim.keeps_activities && !pauses;
    unlock();
}

static bool activities_save(void)
{
    return false;
}

static int64_t activities_now_ns(void)
{
    return 0;
}

#define ENTRY(name) .name = name,

const kprof_device_ops sim_device = {KPROF_DEVICE_FUNCTIONS(ENTRY)};
