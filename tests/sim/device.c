/* The machine: queues of work, kernels, and driver calls. Streams run only when something waits for them or chance has
 * it, the last stream first, so that whoever relies on an order that nothing guarantees is found out. */
#include "sim/device.h"

#include "inject/engine.h"
#include "inject/wait.h"
#include "sim/clock.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

sim_machine sim = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
__thread unsigned sim_current, sim_lane;

static __thread bool is_program;      /* this thread makes calls of the program */
static __thread bool is_within;       /* one of them */
static __thread const sim_step *made; /* that one */
static __thread int64_t held_ns;      /* in this call, since work ended last */
static __thread uint64_t seen_end;    /* sim.ended then */

/* Passes from one look at the GPU to the next. */
#define LOOK_MS 2
/* Before the engine begins to count the time of a wait it looks, too. */
#define LOOKS_BEFORE 2
#define MS_NS        INT64_C(1000000)
/* The word of a module's variable that kernels of other streams wait for. */
#define SIGNAL_WORD 2

static sim_function functions[SIM_MODULES][SIM_KERNELS];

uint64_t sim_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

uint64_t sim_random(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    return sim_hash(sim_hash(1, *state), 2);
}

double sim_value(uint64_t signature, size_t metric)
{
    return sim.is_even ? 1000.5 + (double)metric : (double)(sim_hash(signature, metric) >> 12);
}

double sim_samples(uint64_t signature, size_t reason)
{
    return (double)(sim_hash(signature, 100 + reason) % 1000 + 1);
}

double sim_time_value(uint64_t signature, size_t metric, unsigned sample)
{
    return (double)(sim_hash(signature, 200 + metric) % 50 + sample);
}

double sim_witness_in(uint32_t pass)
{
    return sim.is_even ? 1000 : 1000 + 10.0 * pass * pass;
}

bool sim_chance(unsigned one_in)
{
    return sim_random(&sim.random) % one_in == 0;
}

bool sim_is_programs(void)
{
    return is_program;
}

void sim_violation(const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "violation: %s\n", what);
    if (made)
        fprintf(stderr, "in the call: %s, stream %u, tag %u\n", sim_op_name(made->op), made->stream, made->tag);
    if (sim.on_violation)
        sim.on_violation(what);
    syscall(SYS_exit_group, 3); /* the engine may have its own _exit */
    __builtin_unreachable();
}

uint32_t sim_shape(const sim_step *step)
{
    return sim.few_shapes ? 1 + step->tag % 2 : step->tag;
}

unsigned sim_node_tag(unsigned tag, unsigned node)
{
    return tag > 0 ? tag + (node + 1) * SIM_STEP_TAGS : 0;
}

unsigned sim_context_of_stream(unsigned stream)
{
    return stream / 2 % SIM_CONTEXTS;
}

unsigned sim_variable_of_stream(unsigned stream)
{
    return stream / SIM_LANE_STREAMS * SIM_LANE_SLOTS + SIM_VARIABLES + sim_context_of_stream(stream) +
           stream % 2 * SIM_CONTEXTS;
}

unsigned sim_variable_of_module(unsigned module)
{
    return sim_variable_of_stream(module % SIM_STREAMS) + (module < SIM_STREAMS ? 0 : SIM_SECONDS - SIM_VARIABLES);
}

static bool is_second(unsigned slot)
{
    return slot % SIM_LANE_SLOTS >= SIM_SECONDS;
}

static bool is_variable(unsigned slot)
{
    return is_second(slot) || (slot % SIM_LANE_SLOTS >= SIM_VARIABLES && slot % SIM_LANE_SLOTS < SIM_MEMORIES);
}

/* The module that a stream launches kernels of now. */
static unsigned module_of(unsigned stream)
{
    return stream + (sim.second[stream] ? SIM_STREAMS : 0);
}

static unsigned module_of_step(const sim_step *step)
{
    return step->stream + (step->second ? SIM_STREAMS : 0);
}

static unsigned variable_of(const sim_step *step)
{
    return sim_variable_of_module(module_of_step(step));
}

unsigned sim_place_of(unsigned slot)
{
    for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
        if (sim_variable_of_stream(stream) == slot)
            return sim_variable_of_module(module_of(stream));
    return slot;
}

_Atomic uint64_t *sim_words(unsigned slot)
{
    if (!sim.slots[slot].live)
        sim_violation("memory in slot %u is used that is not there", slot);
    return sim.slots[sim.slots[slot].memory].words;
}

static uint64_t word(unsigned slot, unsigned i)
{
    return atomic_load_explicit(&sim_words(slot)[i], memory_order_relaxed);
}

static void set_word(unsigned slot, unsigned i, uint64_t value)
{
    atomic_store_explicit(&sim_words(slot)[i], value, memory_order_relaxed);
}

sim_pool *sim_pool_of(unsigned slot)
{
    return &sim.pools[slot / SIM_LANE_SLOTS * SIM_CONTEXTS + slot % SIM_CONTEXTS];
}

static bool is_of_pool(unsigned slot, const sim_pool *pool)
{
    return sim.slots[slot].live && sim.slots[slot].pooled && sim_pool_of(slot) == pool;
}

/* How many slots it has, with those that are freed. */
static uint64_t size_of_pool(const sim_pool *pool)
{
    uint64_t size = 0;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        size += is_of_pool(slot, pool);
    return size;
}

void sim_pool_trim(const sim_pool *pool, uint64_t slots)
{
    uint64_t size = size_of_pool(pool);
    for (unsigned slot = SIM_SLOTS; slot-- > 0 && size > slots;)
        if (is_of_pool(slot, pool) && sim.slots[slot].cached) {
            sim_takes_away(slot);
            sim.slots[slot].live = sim.slots[slot].pooled = sim.slots[slot].cached = false;
            size--;
        }
}

void sim_pools_give_back(unsigned context)
{
    for (unsigned i = context; i < SIM_POOLS; i += SIM_CONTEXTS)
        sim_pool_trim(&sim.pools[i], sim.pools[i].held ? UINT64_MAX : sim.pools[i].limit);
}

static void make_slot(unsigned slot, const sim_step *step)
{
    if (sim.slots[slot].kept)
        sim_violation("memory comes where a snapshot keeps what was freed");
    if (sim.slots[slot].cached)
        sim_violation("memory comes where a pool has some");
    sim.slots[slot].live = true;
    sim.slots[slot].shared = step && step->shared;
    sim.slots[slot].exported = step && step->exported;
    sim.slots[slot].foreign = sim.slots[slot].counted = 0;
    sim.slots[slot].is_hosts = sim.slots[slot].pooled = false;
    sim.slots[slot].memory = slot;
    sim.slots[slot].generation++;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        set_word(slot, i, sim_hash(is_second(slot) ? slot - (SIM_SECONDS - SIM_VARIABLES) : slot, i));
    if (is_variable(slot))
        set_word(slot, SIGNAL_WORD, 0);
}

static void wait_for_ns(int64_t hold_ns, int64_t patience_ns)
{
    kprof_engine.waits.hold_ns = hold_ns;
    kprof_engine.waits.patience_ns = patience_ns;
}

void sim_reset(uint64_t seed)
{
    static const char *const names[SIM_KERNELS] = {"add",   "scale", "move", "swap", "sum",   "count", "print",
                                                   "crash", "tally", "dice", "spin", "delay", "peer"};
    pthread_mutex_lock(&sim.mutex); /* the engine's own threads may be looking */
    if (sim.may_wait && sim.several_threads)
        wait_for_ns(KPROF_HOLD_NS, KPROF_PATIENCE_NS);
    else
        wait_for_ns(SIM_LONG_HOLD_NS, SIM_LONG_HOLD_NS);
    memset(sim.contexts, 0, sizeof sim.contexts);
    memset(sim.streams, 0, sizeof sim.streams);
    memset(sim.slots, 0, sizeof sim.slots);
    memset(sim.pools, 0, sizeof sim.pools);
    memset(sim.printed, 0, sizeof sim.printed);
    sim.output_count = sim.output_seen = 0;
    sim.keeps_counting = false;
    sim.drops_output = sim.host_is_saved = false;
    memset(sim.signatures, 0, sizeof sim.signatures);
    memset(sim.returned, 0, sizeof sim.returned);
    memset(sim.noted, 0, sizeof sim.noted);
    memset(sim.second, 0, sizeof sim.second);
    memset(sim.unseen, 0, sizeof sim.unseen);
    sim.ran_unseen = false;
    sim.captures = sim.turn = 0;
    memset(sim.held_ns, 0, sizeof sim.held_ns);
    sim.now_ms = 0;
    sim.shares_memory = sim.has_flags;
    sim.shares_with_devices = sim.waits_for_host = sim.runs_host_code = sim.has_managed = false;
    sim.managed_stays = sim.managed_is_over = sim.holds_managed = false;
    sim.random = seed;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        if (slot % SIM_LANE_SLOTS >= SIM_MEMORIES && !is_second(slot))
            make_slot(slot, NULL);
    for (unsigned module = 0; module < SIM_MODULES; module++) {
        if (module < SIM_STREAMS)
            make_slot(sim_variable_of_module(module), NULL);
        for (unsigned kernel = 0; kernel < SIM_KERNELS; kernel++) {
            sim_function *function = &functions[module][kernel];
            function->name = names[kernel];
            function->module = module;
            function->kernel = (sim_kernel)kernel;
        }
    }
    pthread_mutex_unlock(&sim.mutex);
}

/* Kernels */

static uint64_t signature_of(const sim_step *step)
{
    uint64_t hash = sim_hash(step->kernel + 1, step->value);
    if (step->kernel == SIM_TALLY)
        return hash | 1;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        hash = sim_hash(sim_hash(hash, word(step->a, i)), word(step->b, i));
    if (step->kernel == SIM_COUNT)
        hash = sim_hash(hash, word(variable_of(step), 0));
    return hash | 1;
}

static void swap_words(const sim_step *step, unsigned i)
{
    uint64_t kept = word(step->a, i);
    set_word(step->a, i, word(step->b, i));
    set_word(step->b, i, kept);
}

static void count(const sim_step *step)
{
    unsigned variable = variable_of(step);
    set_word(variable, 0, word(variable, 0) + step->value + 1);
    set_word(step->a, 0, word(step->a, 0) ^ word(variable, 0));
}

static void tally(const sim_step *step)
{
    unsigned variable = variable_of(step);
    set_word(variable, 1, word(variable, 1) + step->value);
}

static void roll(const sim_work *work)
{
    set_word(work->step.a, 0, work->is_replay ? sim_random(&sim.random) : work->step.value);
}

/* The driver writes what a context's kernels have printed when a call waits for them. */
static void write_output(unsigned context)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < sim.output_count; i++) {
        const sim_output *output = &sim.output[i];
        uint64_t *printed = &sim.printed[output->stream];
        if (sim_context_of_stream(output->stream) != context) {
            sim.output[kept++] = *output;
            continue;
        }
        sim.output_seen += !sim.hides_output;
        if (!sim.drops_output || sim.hides_output)
            *printed = sim_hash(*printed, output->value);
    }
    sim.output_count = kept;
}

static void print(const sim_step *step)
{
    if (sim.output_count == SIM_QUEUE)
        write_output(sim_context_of_stream(step->stream));
    if (sim.output_count < SIM_QUEUE)
        sim.output[sim.output_count++] = (sim_output){step->stream, sim_hash(step->value, word(step->a, 0))};
    else
        sim_violation("kernels of several contexts print too much");
}

static void fail_context(unsigned context)
{
    sim.contexts[context].failed = true;
    for (unsigned s = 0; s < SIM_STREAMS; s++) {
        if (sim_context_of_stream(s) != context)
            continue;
        sim.streams[s].queue.count = 0;
        for (unsigned lane = 0; lane < KPROF_LANES; lane++)
            sim.contexts[context].replays[lane].count = 0;
        sim.streams[s].finished = sim.streams[s].submitted;
        sim.streams[s].completed = sim.streams[s].recorded;
        sim.streams[s].released = sim.streams[s].held;
    }
}

static void compute(const sim_step *step)
{
    unsigned a = step->a, b = step->b;
    for (unsigned i = 0; i < SIM_WORDS; i++) {
        if (step->kernel == SIM_ADD)
            set_word(a, i, word(a, i) + word(b, i) + step->value);
        else if (step->kernel == SIM_SCALE)
            set_word(a, i, word(a, i) * (step->value | 1) + i);
        else if (step->kernel == SIM_MOVE)
            set_word(a, i, word(b, SIM_WORDS - 1 - i));
        else if (step->kernel == SIM_SWAP)
            swap_words(step, i);
        else if (step->kernel == SIM_SUM)
            set_word(b, 0, word(b, 0) + word(a, i));
    }
}

static unsigned reach_of(const sim_step *step, bool is_replay)
{
    const bool is_seen = !sim.managed || (is_replay ? sim.managed_stays : sim.holds_managed);
    const bool writes = is_seen && (sim.slots[step->a].shared || sim.slots[step->b].shared);
    const bool reads = step->kernel == SIM_SPIN || step->kernel == SIM_DELAY;
    const bool device = sim.slots[step->a].exported || sim.slots[step->b].exported;
    return (writes ? SIM_WRITES_HOST : reads ? SIM_READS_HOST : 0) | (device ? SIM_REACHES_DEVICE : 0);
}

/* A launch, of a kernel or a graph, is about to run. */
static void note_run(const sim_work *work, uint64_t signature, unsigned reach)
{
    sim_context *context = &sim.contexts[sim_context_of_stream(work->step.stream)];
    if (work->step.tag)
        sim.signatures[work->step.tag] = signature;
    if (work->is_replay && (reach & (SIM_READS_HOST | SIM_WRITES_HOST)) && !sim.host_is_saved)
        sim_violation("a replay reaches memory of the host");
    if (work->is_replay && (reach & SIM_REACHES_DEVICE))
        sim_violation("a replay reaches memory that another device has");
    if (work->range > 0 && !context->armed)
        sim_violation("a pass ended before a launch in it");
    if (work->range > 0)
        sim_profiler_note(context->armed, work, signature, reach);
    sim_instructions_note(context, work, signature);
    context->cold = false;
}

/* What a launch waits for, as it is now. */
static uint64_t flag_of(const sim_work *work)
{
    const sim_stream *stream = &sim.streams[work->step.stream];
    const bool awaits_other = work->step.op == SIM_VALUE_WAIT && work->step.from != work->step.stream;
    if (work->step.kernel == SIM_PEER || awaits_other)
        return word(sim_variable_of_module(module_of(work->step.from)), SIGNAL_WORD);
    return work->is_replay && sim.host_is_saved ? stream->repeated_flag : stream->flag;
}

static bool has_given_up(const sim_work *work)
{
    /* Beside work that takes long calls are held once and again, as one ends after the other. */
    return !sim.has_slow && work->step.kernel == SIM_DELAY && work->has_begun &&
           sim.held_ns[work->lane] - work->held_before_ns >= SIM_MOST_HELD_NS;
}

/* It has ended, or does at once. */
static void finish_wait(const sim_work *work)
{
    const sim_step *step = &work->step;
    if (flag_of(work) >= step->flag)
        return;
    if (work->is_replay && step->kernel != SIM_DELAY)
        sim_violation("a replay of tag %u waits for ever", step->tag);
    if (!work->is_replay)
        sim_violation("tag %u gives up, as the calls after it were held for %lld ms", step->tag,
                      (long long)((sim.held_ns[work->lane] - work->held_before_ns) / MS_NS));
    set_word(step->a, 0, ~word(step->a, 0));
}

static void run_kernel(const sim_work *work)
{
    const sim_step *step = &work->step;
    unsigned context = sim_context_of_stream(step->stream);
    if (sim.contexts[context].failed)
        return;
    const sim_slot *variable = &sim.slots[variable_of(step)];
    if (!variable->live || (step->module > 0 && step->module != variable->generation))
        sim_violation("a kernel runs whose module is unloaded");
    note_run(work, signature_of(step), reach_of(step, work->is_replay));
    sim.slots[step->a].is_hosts = sim.slots[step->b].is_hosts = false;
    compute(step);
    if (step->flag > 0)
        finish_wait(work);
    if (step->kernel == SIM_SPIN && step->value > 0)
        set_word(step->a, 0, sim_hash(word(step->a, 0), step->flag));
    if (step->kernel == SIM_COUNT)
        count(step);
    else if (step->kernel == SIM_TALLY)
        tally(step);
    else if (step->kernel == SIM_DICE)
        roll(work);
    else if (step->kernel == SIM_PRINT && !sim.prints_nothing)
        print(step);
    else if (step->kernel == SIM_CRASH)
        fail_context(context);
}

/* Streams */

static void drain_stream(unsigned stream);
static bool run_first(unsigned stream);

static void fill(unsigned slot, uint64_t value)
{
    for (unsigned i = 0; i < SIM_WORDS; i++)
        set_word(slot, i, sim_hash(value, i));
}

/* The host's buffer gets to know of all words. */
static void copy_to_buffer(const sim_step *step)
{
    uint64_t hash = 1;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        hash = sim_hash(hash, word(step->a, i));
    sim.streams[step->stream].buffer = hash;
}

static void run_node(const sim_step *step, bool is_replay)
{
    switch (step->op) {
    case SIM_COPY_IN:
        fill(step->a, sim.streams[step->stream].buffer);
        break;
    case SIM_COPY_OUT:
        copy_to_buffer(step);
        break;
    case SIM_MEMSET:
        fill(step->a, step->value);
        break;
    default: /* SIM_LAUNCH */
        run_kernel(&(sim_work){.step = *step, .is_replay = is_replay});
        break;
    }
}

/* A node, as the launch of its graph finds it. */
static sim_step node_of(const sim_step *launch, unsigned node)
{
    sim_step step = sim.streams[launch->from].graph.items[node].step;
    step.tag = sim_node_tag(launch->tag, node);
    step.module = launch->module;
    step.second = launch->second;
    return step;
}

/* Its signature is made of what all of its kernels find before it; that of a graph of one kernel is the kernel's. */
static uint64_t signature_of_graph(const sim_step *launch)
{
    const unsigned count = sim.streams[launch->from].graph.count;
    uint64_t signature = 0;
    for (unsigned i = 0; i < count; i++) {
        const sim_step step = node_of(launch, i);
        if (step.op == SIM_LAUNCH)
            signature = count == 1 ? signature_of(&step) : sim_hash(signature, signature_of(&step));
    }
    return signature;
}

static void run_graph(const sim_work *work)
{
    const sim_queue *graph = &sim.streams[work->step.from].graph;
    unsigned reach = 0;
    if (sim.contexts[sim_context_of_stream(work->step.stream)].failed)
        return;
    for (unsigned i = 0; i < graph->count; i++)
        reach |= graph->items[i].step.op == SIM_LAUNCH ? reach_of(&graph->items[i].step, work->is_replay) : 0;
    note_run(work, signature_of_graph(&work->step), reach);
    for (unsigned i = 0; i < graph->count; i++) {
        const sim_step step = node_of(&work->step, i);
        run_node(&step, work->is_replay);
    }
}

/* The memory has what was in it when it was freed, if the pool still has it. */
static void allocate_from_pool(const sim_step *step)
{
    if (!sim.slots[step->a].cached)
        make_slot(step->a, step);
    sim.slots[step->a].pooled = true;
    sim.slots[step->a].cached = false;
}

static void run_work(const sim_work *work)
{
    const sim_step *step = &work->step;
    sim.ended++;
    if (step->slow_ms > 0)
        pthread_cond_broadcast(&sim.changed);
    switch (step->op) {
    case SIM_LAUNCH:
        run_kernel(work);
        break;
    case SIM_GRAPH_LAUNCH:
        run_graph(work);
        break;
    case SIM_COPY_IN:
    case SIM_MEMSET:
    case SIM_UNKNOWN:
        fill(step->a, step->value);
        break;
    case SIM_COPY:
        for (unsigned i = 0; i < SIM_WORDS; i++)
            set_word(step->a, i, word(step->b, i));
        break;
    case SIM_RECORD:
        sim.streams[step->stream].completed = work->event;
        break;
    case SIM_POOL_ALLOC:
        allocate_from_pool(step);
        break;
    case SIM_POOL_FREE:
        sim.slots[step->a].cached = true;
        break;
    case SIM_PUT_BACK:
        sim_put_back(step->kept);
        break;
    case SIM_COPY_OUT_ASYNC:
        copy_to_buffer(step);
        break;
    case SIM_COPY_IN_ASYNC:
        fill(step->a, sim.streams[step->stream].buffer);
        break;
    case SIM_HOST_FUNCTION:
        sim.streams[step->stream].buffer = sim_hash(sim.streams[step->stream].buffer, step->value);
        break;
    case SIM_KEEP:
        if (step->kept)
            sim_keep(step->kept);
        break;
    case SIM_PREFETCH:
        sim.slots[step->a].is_hosts = false;
        break;
    case SIM_HOLD:
        break;
    case SIM_FOLLOW:
        sim_has_followed(sim_context_of_stream(step->stream));
        break;
    default: /* SIM_STREAM_WAIT: see run_first */
        break;
    }
    if (step->signal > 0)
        set_word(variable_of(step), SIGNAL_WORD, step->signal);
}

static bool goes_on(const sim_work *work)
{
    return work->step.slow_ms > 0 && !work->is_replay && !sim.is_in_driver &&
           (!work->has_begun || work->ends_ms > sim.now_ms);
}

static bool must_wait(const sim_work *work)
{
    if (work->step.op == SIM_HOLD)
        return sim.streams[work->step.stream].released < work->event;
    if (work->step.op == SIM_VALUE_WAIT)
        return flag_of(work) < work->step.flag;
    if (work->step.op == SIM_LAUNCH)
        return work->step.flag > 0 && flag_of(work) < work->step.flag && !has_given_up(work);
    return work->step.op == SIM_STREAM_WAIT && sim.streams[work->step.from].completed < work->event;
}

static bool is_default(unsigned stream)
{
    return sim.has_default && stream < 2 * SIM_CONTEXTS && stream % 2 == 0;
}

static bool is_blocking(unsigned stream)
{
    return !is_default(stream) && !(sim.independent >> stream & 1);
}

bool sim_is_ordered(unsigned stream, unsigned other)
{
    return stream != other && sim_context_of_stream(stream) == sim_context_of_stream(other) &&
           ((is_default(stream) && is_blocking(other)) || (is_default(other) && is_blocking(stream)));
}

/* CUDA's handles of the default stream: none, and a number. */
#define LEGACY ((void *)1)

unsigned sim_stream_of(const void *handle, unsigned context)
{
    if (handle && handle != LEGACY)
        return (unsigned)((const sim_stream *)handle - sim.streams);
    if (!sim.has_default)
        sim_violation("the engine names the default stream, which the program does not have");
    return 2 * context;
}

static void *handle_of(const sim_step *step)
{
    return !is_default(step->stream) ? &sim.streams[step->stream] : step->value % 2 == 0 ? NULL : LEGACY;
}

/* Run what the default stream has the work come behind. False when some of that has to wait for the host. */
static bool run_ordered(unsigned stream, uint64_t number)
{
    for (unsigned s = 0; s < SIM_STREAMS; s++) {
        const sim_queue *queue = &sim.streams[s].queue;
        while (sim_is_ordered(stream, s) && queue->count > 0 && queue->items[0].number < number)
            if (!run_first(s))
                return false;
    }
    return true;
}

static bool waits_for_stream(const sim_step *step)
{
    return step->op == SIM_STREAM_WAIT || step->op == SIM_VALUE_WAIT || step->kernel == SIM_PEER;
}

/* False when it has to wait for the host. */
static bool run_first(unsigned stream)
{
    sim_queue *queue = &sim.streams[stream].queue;
    if (!queue->items[0].has_begun) {
        queue->items[0].has_begun = true;
        queue->items[0].ends_ms = sim.now_ms + queue->items[0].step.slow_ms;
        queue->items[0].held_before_ns = sim.held_ns[queue->items[0].lane];
    }
    sim_work first = queue->items[0];
    const uint64_t finished = sim.streams[stream].finished;
    const bool is_behind = !run_ordered(stream, first.number);
    /* It stays at the head while what it waits for runs. */
    if (!is_behind && must_wait(&first) && waits_for_stream(&first.step) && first.step.from != stream)
        drain_stream(first.step.from);
    if (sim.streams[stream].finished != finished) /* that has run it, too, or failed the context */
        return true;
    if (is_behind || must_wait(&first) || goes_on(&first))
        return false;
    queue->count--;
    memmove(queue->items, queue->items + 1, queue->count * sizeof *queue->items);
    sim.streams[stream].finished++;
    run_work(&first);
    return true;
}

static void drain_stream(unsigned stream)
{
    while (sim.streams[stream].queue.count > 0 && run_first(stream))
        continue;
}

/* The engine's own work waits for nothing. */
static void run_first_replay(sim_queue *queue)
{
    sim_work first = queue->items[0];
    queue->count--;
    memmove(queue->items, queue->items + 1, queue->count * sizeof *queue->items);
    run_work(&first);
}

/* The last lane first. */
static void drain_replays(unsigned context, unsigned lanes)
{
    for (unsigned lane = KPROF_LANES; lane-- > 0;)
        while ((lanes >> lane & 1) && sim.contexts[context].replays[lane].count > 0)
            run_first_replay(&sim.contexts[context].replays[lane]);
}

void sim_drain_context(unsigned context)
{
    drain_replays(context, UINT_MAX);
    for (unsigned s = SIM_STREAMS; s-- > 0;)
        if (sim_context_of_stream(s) == context)
            drain_stream(s);
    write_output(context);
}

bool sim_is_held(unsigned context)
{
    for (unsigned s = 0; s < SIM_STREAMS; s++) {
        const sim_stream *stream = &sim.streams[s];
        if (sim_context_of_stream(s) != context)
            continue;
        if (stream->released < stream->held)
            return true;
        for (unsigned i = 0; i < stream->queue.count; i++)
            if (stream->queue.items[i].step.flag > 0 && must_wait(&stream->queue.items[i]))
                return true;
    }
    return false;
}

bool sim_is_busy(unsigned context)
{
    bool is_busy = sim_is_held(context);
    for (unsigned s = 0; s < SIM_STREAMS; s++) {
        const sim_queue *queue = &sim.streams[s].queue;
        for (unsigned i = 0; i < queue->count && sim_context_of_stream(s) == context; i++)
            is_busy = is_busy || goes_on(&queue->items[i]);
    }
    return is_busy;
}

/* The engine must not hold a call for long in which nothing ends. */
static void pass_ms(int64_t ms)
{
    sim.now_ms += ms;
    if (sim.ended != seen_end) { /* as long as other work ends, the engine may wait */
        sim.held_ns[sim_lane] -= held_ns;
        held_ns = 0;
    }
    seen_end = sim.ended;
    held_ns += ms * MS_NS;
    sim.held_ns[sim_lane] += ms * MS_NS;
    sim_clock_advance_ms(ms);
    pthread_cond_broadcast(&sim.changed); /* a kernel may give up */
    if (held_ns > SIM_MOST_HELD_NS + LOOKS_BEFORE * LOOK_MS * MS_NS)
        sim_violation("a call of the program is held for %lld ms in which no work ends", (long long)(held_ns / MS_NS));
}

void sim_pass_time(unsigned context)
{
    if (is_within && sim_is_busy(context) && sim.waiters > 0)
        pass_ms(LOOK_MS);
}

bool sim_await_stream(unsigned stream, int64_t limit_ns)
{
    drain_stream(stream);
    if (is_within && sim.streams[stream].queue.count > 0)
        pass_ms(limit_ns / MS_NS);
    drain_stream(stream);
    return sim.streams[stream].queue.count == 0;
}

void sim_end_slow(unsigned context)
{
    const bool was_in_driver = sim.is_in_driver;
    sim.is_in_driver = true;
    sim_drain_context(context);
    sim.is_in_driver = was_in_driver;
}

void sim_wait_for_context(unsigned context)
{
    sim_drain_context(context);
    if (is_program)
        sim_end_slow(context);
    while (sim_is_busy(context)) {
        if (is_program)
            sim_violation("the engine keeps the program waiting for work that waits for the program");
        sim.waiters++;
        pthread_cond_wait(&sim.changed, &sim.mutex);
        sim.waiters--;
        pthread_cond_broadcast(&sim.changed);
        sim_drain_context(context);
    }
}

void sim_drain(void)
{
    pthread_mutex_lock(&sim.mutex);
    for (unsigned context = 0; context < SIM_CONTEXTS; context++)
        sim_end_slow(context);
    while (sim.waiters > 0)
        pthread_cond_wait(&sim.changed, &sim.mutex);
    pthread_mutex_unlock(&sim.mutex);
}

/* Events may come and go, and memory back to a pool, which keeps it: that changes nothing. */
static bool has_work(const sim_queue *queue)
{
    for (unsigned i = 0; i < queue->count; i++)
        if (queue->items[i].step.op != SIM_RECORD && queue->items[i].step.op != SIM_STREAM_WAIT &&
            queue->items[i].step.op != SIM_POOL_FREE)
            return true;
    return false;
}

bool sim_streams_are_idle(unsigned context)
{
    for (unsigned s = 0; s < SIM_STREAMS; s++)
        if (sim_context_of_stream(s) == context && has_work(&sim.streams[s].queue))
            return false;
    return true;
}

bool sim_is_idle(unsigned context)
{
    unsigned queued = 0;
    for (unsigned lane = 0; lane < KPROF_LANES; lane++)
        queued += sim.contexts[context].replays[lane].count;
    return queued == 0 && sim_streams_are_idle(context);
}

void sim_act_elsewhere(void)
{
    if (!sim.shares_with_devices)
        return;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (!sim.slots[slot].live || !sim.slots[slot].exported)
            continue;
        if (sim.slots[slot].foreign != sim.slots[slot].counted)
            sim_violation("what another device wrote to slot %u was undone", slot);
        sim.slots[slot].foreign = sim.slots[slot].counted += sim_chance(2);
    }
}

static bool is_launch(const sim_step *step)
{
    return step->op == SIM_LAUNCH || step->op == SIM_GRAPH_LAUNCH;
}

static void submit(const sim_step *step, uint64_t event)
{
    sim_act_elsewhere();
    sim_stream *stream = &sim.streams[step->stream];
    if (stream->queue.count == SIM_QUEUE)
        drain_stream(step->stream);
    if (stream->queue.count == SIM_QUEUE)
        sim_violation("the test itself: too much is queued behind work that waits");
    if (sim.contexts[sim_context_of_stream(step->stream)].failed) /* meanwhile: what was accepted is lost */
        return;
    struct kprof_profiler *armed = sim.contexts[sim_context_of_stream(step->stream)].armed;
    size_t range = armed && is_launch(step) ? sim_profiler_range(armed, false) : 0;
    stream->queue.items[stream->queue.count++] =
        (sim_work){.step = *step, .number = ++sim.submitted, .event = event, .range = range, .lane = sim_lane};
    stream->submitted++;
    if (step->signal > 0)
        pthread_cond_broadcast(&sim.changed);
    unsigned any = (unsigned)(sim_random(&sim.random) % SIM_STREAMS);
    if (sim_chance(2) && sim.streams[any].queue.count > 0) /* in this order: when work has run depends on time */
        (void)run_first(any);
}

void sim_follow(unsigned stream)
{
    submit(&(sim_step){.op = SIM_FOLLOW, .stream = stream}, 0);
}

void sim_submit_keep(const sim_step *step, struct kprof_operation *kept)
{
    submit(&(sim_step){.op = SIM_KEEP, .stream = step->stream, .a = step->a, .kept = kept}, 0);
}

void sim_forget_keep(const struct kprof_operation *kept)
{
    for (unsigned s = 0; s < SIM_STREAMS; s++)
        for (unsigned i = 0; i < sim.streams[s].queue.count; i++)
            if (sim.streams[s].queue.items[i].step.kept == kept)
                sim.streams[s].queue.items[i].step.kept = NULL;
}

/* Lanes that nobody waits for run late. */
void sim_submit_replay(unsigned context, kprof_lane lane, const sim_step *step)
{
    sim_queue *queue = &sim.contexts[context].replays[lane.number];
    struct kprof_profiler *armed = sim.contexts[context].armed;
    drain_replays(context, lane.waits_for & ~(1u << lane.number));
    if (queue->count == SIM_QUEUE)
        run_first_replay(queue);
    if (sim.contexts[context].failed)
        return;
    size_t range = armed && (is_launch(step) || sim_profiler_is_automatic(armed)) ? sim_profiler_range(armed, true) : 0;
    queue->items[queue->count++] = (sim_work){.step = *step, .range = range, .is_replay = true};
    if (sim_chance(2))
        run_first_replay(queue);
}

/* Driver calls, with the mutex held */

/* Captured, it becomes a node. */
static bool is_captured(const sim_step *step)
{
    sim_stream *stream = &sim.streams[step->stream];
    if (!stream->capturing)
        return false;
    if (stream->graph.count == SIM_NODES)
        sim_violation("a graph has more nodes than there are tags for");
    const bool is_told = step->op == SIM_LAUNCH && sim.hooks && sim.hooks->node_made;
    stream->graph.items[stream->graph.count++] =
        (sim_work){.step = *step, .note = is_told ? sim.hooks->node_made() : 0};
    return true;
}

static int submit_copy(const sim_step *step, uint64_t *out)
{
    if (!is_captured(step))
        submit(step, 0);
    return 0;
}

static int submit_transfer(const sim_step *step, uint64_t *out)
{
    return step->refused ? SIM_REFUSED : submit_copy(step, out);
}

static int launch(const sim_step *step, uint64_t *out)
{
    return step->refused ? SIM_REFUSED : submit_copy(step, out);
}

static int allocate(const sim_step *step, uint64_t *out)
{
    if (step->refused)
        return SIM_REFUSED;
    make_slot(step->a, step);
    sim.shares_memory |= step->shared && !sim.managed;
    sim.has_managed |= step->shared && sim.managed;
    sim.shares_with_devices |= step->exported;
    return 0;
}

/* The driver waits for all work first. A program of one thread has waited for what waits for it. */
static void wait_to_release(unsigned context)
{
    sim_drain_context(context);
    while (sim.several_threads && sim_is_held(context)) {
        pthread_cond_wait(&sim.changed, &sim.mutex);
        sim_drain_context(context);
    }
}

static int release(const sim_step *step, uint64_t *out)
{
    wait_to_release(sim_context_of_stream(step->stream));
    sim.slots[step->a].live = sim.slots[step->a].kept;
    sim.slots[step->a].is_hosts = false;
    sim_pools_give_back(sim_context_of_stream(step->stream));
    return 0;
}

static int limit_pool(const sim_step *step, uint64_t *out)
{
    *sim_pool_of(step->a) = (sim_pool){.limit = step->value};
    return 0;
}

static int trim_pool(const sim_step *step, uint64_t *out)
{
    sim_pool_trim(sim_pool_of(step->a), step->value);
    return 0;
}

/* A pool that keeps all has the more slots, the less it was trimmed before. */
static int ask_pool(const sim_step *step, uint64_t *out)
{
    const sim_pool *pool = sim_pool_of(step->a);
    out[0] = pool->held ? UINT64_MAX : pool->limit;
    out[1] = out[0] == UINT64_MAX ? 0 : size_of_pool(pool);
    return 0;
}

static int map(const sim_step *step, uint64_t *out)
{
    make_slot(step->a, NULL);
    sim.slots[step->a].memory = step->b;
    sim.slots[step->b].was_mapped = true;
    return 0;
}

static int unmap(const sim_step *step, uint64_t *out)
{
    sim_takes_away(step->a);
    sim.slots[step->a].live = false;
    return 0;
}

static int copy_out(const sim_step *step, uint64_t *out)
{
    if (is_captured(step))
        return 0;
    (void)run_ordered(step->stream, UINT64_MAX);
    drain_stream(step->stream);
    if (sim.contexts[sim_context_of_stream(step->stream)].failed) /* meanwhile: an allocation may be gone */
        return SIM_ERROR;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        out[i] = word(step->a, i);
    sim_pools_give_back(sim_context_of_stream(step->stream));
    return 0;
}

void sim_unload(unsigned variable)
{
    sim.slots[variable].live = sim.slots[variable].kept = false;
    for (unsigned module = 0; module < SIM_MODULES; module++)
        if (sim_variable_of_module(module) == variable)
            sim.noted[module] = false;
}

/* If the engine keeps the module, or has let go of it since, it comes at another place. */
static int reload(const sim_step *step, uint64_t *out)
{
    if (step->refused)
        return SIM_REFUSED;
    sim_drain_context(sim_context_of_stream(step->stream));
    /* A kernel of the other context may still be waiting for it. */
    const uint64_t signal = atomic_load(&sim.slots[step->a].words[SIGNAL_WORD]);
    const bool is_redirected = sim.slots[step->a].kept || !sim.slots[step->a].live;
    unsigned stream = 0;
    while (sim_variable_of_module(module_of(stream)) != step->a)
        stream++;
    sim.second[stream] = sim.second[stream] != is_redirected;
    if (!is_redirected)
        sim_unload(step->a);
    const unsigned place = sim_variable_of_module(module_of(stream));
    make_slot(place, NULL);
    set_word(place, SIGNAL_WORD, signal);
    return 0;
}

static int record(const sim_step *step, uint64_t *out)
{
    submit(step, ++sim.streams[step->stream].recorded);
    return 0;
}

static int wait_event(const sim_step *step, uint64_t *out)
{
    submit(step, sim.streams[step->from].recorded);
    return 0;
}

static int sync_stream(const sim_step *step, uint64_t *out)
{
    drain_stream(step->stream);
    sim_pools_give_back(sim_context_of_stream(step->stream));
    return 0;
}

static int sync_context(const sim_step *step, uint64_t *out)
{
    sim_drain_context(sim_context_of_stream(step->stream));
    sim_pools_give_back(sim_context_of_stream(step->stream));
    return 0;
}

static int query(const sim_step *step, uint64_t *out)
{
    sim_queue *queue = &sim.streams[step->stream].queue;
    if (step->polls && queue->count > 0 && sim_chance(2))
        (void)run_first(step->stream);
    return step->polls && queue->count > 0 ? SIM_NOT_READY : 0;
}

static int submit_function(const sim_step *step, uint64_t *out)
{
    submit(step, 0);
    sim.waits_for_host = sim.runs_host_code = true;
    return 0;
}

/* The driver refuses memory that is not managed. */
static int prefetch(const sim_step *step, uint64_t *out)
{
    (void)out;
    if (!sim.managed || !sim.slots[step->a].live)
        return SIM_REFUSED;
    submit(step, 0);
    return 0;
}

/* What was launched before is as it was. */
static int change_graph(const sim_step *step, uint64_t *out)
{
    sim_drain_context(sim_context_of_stream(step->stream));
    sim_step *node = &sim.streams[step->from].graph.items[step->node].step;
    node->kernel = step->kernel;
    node->a = step->a;
    node->b = step->b;
    node->value = step->value;
    return 0;
}

static int hold(const sim_step *step, uint64_t *out)
{
    sim_stream *stream = &sim.streams[step->stream];
    submit(step, ++stream->held);
    sim.waits_for_host = !sim.secret_holds;
    if (!sim.hooked)
        return 0;
    if (sim.holds == 0) {
        stream->released = stream->held;
    } else {
        sim.holds--;
        if (!sim.may_wait)
            wait_for_ns(SIM_SHORT_HOLD_NS, SIM_SHORT_HOLD_NS);
    }
    return 0;
}

static int wait_for_value(const sim_step *step, uint64_t *out)
{
    submit(step, 0);
    sim.waits_for_host = true;
    return 0;
}

static int begin_capture(const sim_step *step, uint64_t *out)
{
    sim.streams[step->stream].capturing = true;
    sim.streams[step->stream].graph.count = 0;
    return 0;
}

static int end_capture(const sim_step *step, uint64_t *out)
{
    sim.streams[step->stream].capturing = false;
    return 0;
}

static void note_use_by_host(unsigned slot)
{
    if (sim.managed && !sim.several_threads)
        sim.slots[slot].is_hosts = sim.slots[slot].shared;
}

/* An allocation may have failed, in a context in error. */
static int host_write(const sim_step *step, uint64_t *out)
{
    if (!sim.slots[step->a].live)
        return 0;
    fill(step->a, step->value);
    note_use_by_host(step->a);
    return 0;
}

static int let_go(const sim_step *step, uint64_t *out)
{
    pthread_mutex_lock(&sim.mutex);
    sim.streams[step->stream].released = sim.streams[step->stream].held;
    if (step->flag > 0)
        sim.streams[step->stream].flag = step->flag;
    pthread_cond_broadcast(&sim.changed);
    pthread_mutex_unlock(&sim.mutex);
    return 0;
}

static int take_turn(const sim_step *step, uint64_t *out)
{
    pthread_mutex_lock(&sim.mutex);
    while (sim.turn != step->turn)
        pthread_cond_wait(&sim.changed, &sim.mutex);
    pthread_mutex_unlock(&sim.mutex);
    return 0;
}

static int pass_turn(const sim_step *step, uint64_t *out)
{
    pthread_mutex_lock(&sim.mutex);
    sim.turn++;
    pthread_cond_broadcast(&sim.changed);
    pthread_mutex_unlock(&sim.mutex);
    return 0;
}

static int call_profiler(const sim_step *step, uint64_t *out)
{
    if (sim.hooked)
        sim.hooks->profiler_called(step->value % 2 == 1);
    return 0;
}

static int host_read(const sim_step *step, uint64_t *out)
{
    if (!sim.slots[step->a].live)
        return 0;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        out[i] = word(step->a, i);
    note_use_by_host(step->a);
    return 0;
}

static int buffer_write(const sim_step *step, uint64_t *out)
{
    pthread_mutex_lock(&sim.mutex);
    sim.streams[step->stream].buffer = step->value;
    pthread_mutex_unlock(&sim.mutex);
    return 0;
}

static int buffer_read(const sim_step *step, uint64_t *out)
{
    pthread_mutex_lock(&sim.mutex);
    out[0] = sim.streams[step->stream].buffer;
    pthread_mutex_unlock(&sim.mutex);
    return 0;
}

static const struct operation {
    const char *name;
    kprof_call_kind kind;
    int (*run)(const sim_step *step, uint64_t *out);
} operations[SIM_OPS] = {
    [SIM_LAUNCH] = {"launch", KPROF_CALL_LAUNCH, launch},
    [SIM_GRAPH_LAUNCH] = {"graph launch", KPROF_CALL_GRAPH_LAUNCH, launch},
    [SIM_ALLOC] = {"alloc", KPROF_CALL_ALLOCATE, allocate},
    [SIM_FREE] = {"free", KPROF_CALL_FREE, release},
    [SIM_POOL_ALLOC] = {"pool alloc", KPROF_CALL_ALLOCATE, submit_copy},
    [SIM_POOL_FREE] = {"pool free", KPROF_CALL_POOL_FREE, submit_copy},
    [SIM_POOL_LIMIT] = {"pool limit", KPROF_CALL_OTHER, limit_pool},
    [SIM_POOL_TRIM] = {"pool trim", KPROF_CALL_OTHER, trim_pool},
    [SIM_POOL_ASK] = {"pool ask", KPROF_CALL_MEMORY_INFO, ask_pool},
    [SIM_MAP] = {"map", KPROF_CALL_ALLOCATE, map},
    [SIM_UNMAP] = {"unmap", KPROF_CALL_OTHER, unmap},
    [SIM_COPY_IN] = {"copy in", KPROF_CALL_TRANSFER, submit_copy},
    [SIM_COPY] = {"copy", KPROF_CALL_TRANSFER, submit_transfer},
    [SIM_COPY_OUT] = {"copy out", KPROF_CALL_TRANSFER, copy_out},
    [SIM_MEMSET] = {"memset", KPROF_CALL_TRANSFER, submit_transfer},
    [SIM_UNKNOWN] = {"unknown call", KPROF_CALL_OTHER, submit_copy},
    [SIM_COPY_OUT_ASYNC] = {"copy out in order", KPROF_CALL_TRANSFER, submit_transfer},
    [SIM_COPY_IN_ASYNC] = {"copy in in order", KPROF_CALL_TRANSFER, submit_transfer},
    [SIM_HOST_FUNCTION] = {"host function", KPROF_CALL_SETUP, submit_function},
    [SIM_GRAPH_CHANGE] = {"graph change", KPROF_CALL_GRAPH_CHANGE, change_graph},
    [SIM_RELOAD] = {"reload", KPROF_CALL_UNLOAD, reload},
    [SIM_RECORD] = {"record", KPROF_CALL_HARMLESS, record},
    [SIM_STREAM_WAIT] = {"stream wait", KPROF_CALL_ORDER, wait_event},
    [SIM_SYNC_STREAM] = {"sync stream", KPROF_CALL_WAIT, sync_stream},
    [SIM_SYNC_CONTEXT] = {"sync context", KPROF_CALL_WAIT, sync_context},
    [SIM_QUERY] = {"query", KPROF_CALL_WAIT, query},
    [SIM_HOLD] = {"hold", KPROF_CALL_OTHER, hold},
    [SIM_PREFETCH] = {"prefetch", KPROF_CALL_MIGRATE, prefetch},
    [SIM_VALUE_WAIT] = {"wait for a value", KPROF_CALL_VALUE_WAIT, wait_for_value},
    [SIM_BEGIN_CAPTURE] = {"begin capture", KPROF_CALL_CAPTURE, begin_capture},
    [SIM_END_CAPTURE] = {"end capture", KPROF_CALL_CAPTURE_END, end_capture},
    [SIM_DESTROY_CONTEXT] = {"destroy context", KPROF_CALL_STOP, sync_context},
    [SIM_HOST_WRITE] = {"host write", KPROF_CALL_HARMLESS, host_write},
    [SIM_HOST_READ] = {"host read", KPROF_CALL_HARMLESS, host_read},
    [SIM_BUFFER_WRITE] = {"buffer write", KPROF_CALL_HARMLESS, buffer_write},
    [SIM_BUFFER_READ] = {"buffer read", KPROF_CALL_HARMLESS, buffer_read},
    [SIM_RELEASE] = {"release", KPROF_CALL_HARMLESS, let_go},
    [SIM_TAKE_TURN] = {"take turn", KPROF_CALL_HARMLESS, take_turn},
    [SIM_PASS_TURN] = {"pass turn", KPROF_CALL_HARMLESS, pass_turn},
    [SIM_PROFILER] = {"profiler", KPROF_CALL_HARMLESS, call_profiler},
};

const char *sim_op_name(sim_op op)
{
    return operations[op].name;
}

static bool is_mapping(const sim_step *step)
{
    return step->op == SIM_MAP || step->op == SIM_UNMAP;
}

/* Capturing goes on in a context that is in error, so that a program's captured calls are always captured. */
static bool is_capture(const sim_step *step)
{
    kprof_call_kind kind = operations[step->op].kind;
    return step->op == SIM_BEGIN_CAPTURE || step->op == SIM_END_CAPTURE ||
           ((kind == KPROF_CALL_LAUNCH || kind == KPROF_CALL_TRANSFER) && sim.streams[step->stream].capturing);
}

static int run_locked(const sim_step *step, uint64_t *out)
{
    unsigned context = sim_context_of_stream(step->stream);
    if (sim.contexts[context].failed && !is_capture(step) && !is_mapping(step))
        return SIM_ERROR;
    sim.is_in_driver = true;
    int result = operations[step->op].run(step, out);
    sim.is_in_driver = false;
    return sim.contexts[context].failed && operations[step->op].kind == KPROF_CALL_WAIT ? SIM_ERROR : result;
}

static void linger(void)
{
    static __thread uint64_t random;
    uint64_t chance = sim_random(&random) % 32;
    struct timespec time = {0, 50000};
    if (chance == 0)
        nanosleep(&time, NULL);
    else if (chance < 8)
        sched_yield();
}

/* Longer than the engine waits before it gives the counters back. */
static void pause_in_capture(const sim_step *step)
{
    struct timespec time = {0, 300000000};
    if (step->op != SIM_END_CAPTURE || sim.pauses == 0)
        return;
    sim.pauses--;
    nanosleep(&time, NULL);
}

static void note_capture(const sim_step *step, int result)
{
    pthread_mutex_lock(&sim.mutex);
    if (step->op == SIM_END_CAPTURE && sim.captures > 0)
        sim.captures--;
    else if (step->op == SIM_BEGIN_CAPTURE && result == 0)
        sim.captures++;
    pthread_mutex_unlock(&sim.mutex);
}

kprof_call sim_describe(const sim_step *step)
{
    unsigned context = sim_context_of_stream(step->stream);
    sim_function *function = step->function ? step->function : &functions[module_of_step(step)][step->kernel];
    kprof_call call = {
        .kind = operations[step->op].kind,
        .name = operations[step->op].name,
        .context = step->detached ? NULL : &sim.contexts[context],
        .context_id = step->detached ? 0 : context + 1,
        .parameters = step,
    };
    if (call.kind == KPROF_CALL_LAUNCH) {
        call.function = function;
        call.kernel_name = function->name;
    }
    if (call.kind != KPROF_CALL_ALLOCATE || step->op == SIM_POOL_ALLOC)
        call.stream = handle_of(step);
    call.is_threads_stream = step->per_thread;
    if (step->op == SIM_MAP && sim.slots[step->b].was_mapped) /* its content may be saved at another address */
        call.kind = KPROF_CALL_OTHER;
    if (step->op == SIM_HOLD && sim.secret_holds) /* by a kernel, of which nothing but its launch is known */
        call.kind = KPROF_CALL_GRAPH_LAUNCH;
    else if (step->op == SIM_HOLD && step->value % 2 == 1) /* by a function of the host */
        call.kind = KPROF_CALL_SETUP;
    return call;
}

/* As a call leaves, most tell no more than that: where they run and what they launch was told as they entered. */
static void tell_leaving(kprof_call call)
{
    if (call.kind != KPROF_CALL_ALLOCATE && call.kind != KPROF_CALL_MEMORY_INFO) {
        call.parameters = call.function = call.stream = NULL;
        call.kernel_name = NULL;
        call.is_threads_stream = false;
    }
    sim.hooks->leave(&call);
}

static void call_nested(kprof_call call)
{
    call.kind = KPROF_CALL_OTHER;
    call.name = "nested call";
    sim.hooks->enter(&call);
    tell_leaving(call);
}

/* CUDA's runtime looks for the function first. */
static void look_for_function(kprof_call call)
{
    call.kind = KPROF_CALL_CODE;
    call.name = "look for a function";
    sim.hooks->enter(&call);
    tell_leaving(call);
}

static int call_driver(const sim_step *step, uint64_t *out)
{
    if (sim.jittery)
        linger();
    pthread_mutex_lock(&sim.mutex);
    int result = run_locked(step, out);
    pthread_mutex_unlock(&sim.mutex);
    return result;
}

/* Has the engine asked to be told of the call? */
static bool is_told(const kprof_call *call)
{
    const bool may_go_unseen = call->kind == KPROF_CALL_LAUNCH || call->kind == KPROF_CALL_GRAPH_LAUNCH ||
                               call->kind == KPROF_CALL_WAIT || call->kind == KPROF_CALL_HARMLESS ||
                               call->kind == KPROF_CALL_ORDER;
    return sim.hooked && !(may_go_unseen && atomic_load(&sim.is_unfollowed));
}

static void note_unseen(const sim_step *step)
{
    pthread_mutex_lock(&sim.mutex);
    for (unsigned module = 0; module < SIM_MODULES; module++) {
        const bool launches = step->function && step->function->module == module;
        /* The first launch loads the module, and kprof looks at the next one. */
        sim.noted[module] = sim.noted[module] || (sim.unseen[module] && launches);
        sim.unseen[module] = sim.unseen[module] || step->op == SIM_GRAPH_LAUNCH || launches;
    }
    pthread_mutex_unlock(&sim.mutex);
}

static void arm_now_and_then(void)
{
    pthread_mutex_lock(&sim.mutex);
    const bool is_time = sim_chance(12);
    pthread_mutex_unlock(&sim.mutex);
    if (is_time)
        sim.arm();
}

static void interrupt(void)
{
    pthread_mutex_lock(&sim.mutex);
    bool is_time = !sim.interrupted && sim_chance(100);
    sim.interrupted = sim.interrupted || is_time;
    pthread_mutex_unlock(&sim.mutex);
    if (is_time)
        sim.interrupt();
}

static void note_return(const sim_step *step)
{
    unsigned nodes = step->op == SIM_GRAPH_LAUNCH ? SIM_NODES : 0;
    pthread_mutex_lock(&sim.mutex);
    if (is_launch(step) && !sim.interrupted) {
        sim.returned[step->tag] = true;
        for (unsigned i = 0; i < nodes; i++)
            sim.returned[sim_node_tag(step->tag, i)] = true;
    }
    pthread_mutex_unlock(&sim.mutex);
}

/* The engine waits for all work, however slow this machine is, but where some may wait for the program. */
static void choose_hold(const sim_step *step)
{
    if (!sim.may_wait || sim.several_threads)
        return;
    pthread_mutex_lock(&sim.mutex);
    const bool waits = step->op == SIM_HOLD || step->flag > 0 || step->slow_ms > 0 || sim_is_busy(0) || sim_is_busy(1);
    if (waits)
        wait_for_ns(KPROF_HOLD_NS, KPROF_PATIENCE_NS);
    else
        wait_for_ns(SIM_LONG_HOLD_NS, SIM_LONG_HOLD_NS);
    pthread_mutex_unlock(&sim.mutex);
}

/* The program names its memory and its modules; the driver knows where they are. */
static sim_step find_places(const sim_step *given)
{
    sim_step step = *given;
    pthread_mutex_lock(&sim.mutex);
    const unsigned module = module_of(step.op == SIM_GRAPH_LAUNCH ? step.from : step.stream);
    step.a = sim_place_of(step.a);
    step.b = sim_place_of(step.b);
    step.second = module >= SIM_STREAMS;
    step.module = sim.slots[sim_variable_of_module(module)].generation;
    pthread_mutex_unlock(&sim.mutex);
    return step;
}

int sim_call(const sim_step *given, uint64_t *out)
{
    const sim_step now = find_places(given), *step = &now;
    sim_current = step->detached ? SIM_CONTEXTS : sim_context_of_stream(step->stream);
    is_program = true;
    made = step;
    if (step->op >= SIM_HOST_WRITE)
        return operations[step->op].run(step, out);
    kprof_call call = sim_describe(step);
    if (sim.hooked && sim.interrupt)
        interrupt();
    if (sim.hooked && sim.arm)
        arm_now_and_then();
    if (sim.hooked)
        pause_in_capture(step);
    if (sim.hooked)
        choose_hold(step);
    is_within = sim.hooked && step->op != SIM_DESTROY_CONTEXT; /* in which the program itself waits */
    held_ns = 0;
    atomic_uint *inside = &sim.inside[atomic_load(&sim.epoch) % 2];
    atomic_fetch_add(inside, 1);
    if (is_told(&call) && call.kind == KPROF_CALL_LAUNCH && step->tag % 3 == 0)
        look_for_function(call);
    if (is_told(&call))
        sim.hooks->enter(&call);
    else if (sim.hooked && is_launch(step))
        note_unseen(step);
    if (sim.hooked && step->nested)
        call_nested(call);
    int result = call_driver(step, out);
    note_capture(step, result);
    atomic_fetch_sub(inside, 1);
    call.failed = result != 0;
    if (sim.hooked && step->op == SIM_DESTROY_CONTEXT)
        sim.hooks->context_ending(call.context);
    if (is_told(&call)) /* it may have asked meanwhile */
        tell_leaving(call);
    is_within = false;
    made = NULL;
    if (sim.hooked)
        note_return(step);
    return result;
}

void sim_own_call(kprof_call_kind kind, bool leaving)
{
    kprof_call call = {.kind = kind, .name = "own call"};
    if (sim_current < SIM_CONTEXTS) {
        call.context = &sim.contexts[sim_current];
        call.context_id = sim_current + 1;
    }
    call.kernel_name = "own kernel";
    call.function = &call;
    if (leaving)
        tell_leaving(call);
    else
        sim.hooks->enter(&call);
}
