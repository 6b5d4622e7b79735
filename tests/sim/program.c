/* The generator keeps track of which stream touched which memory last, and orders streams by events where they share
 * some; a run of a lane notes what each call returned. */
#include "sim/program.h"

#include <pthread.h>
#include <string.h>

#define NO_STREAM (-1)

typedef struct generator {
    sim_program *program;
    unsigned lane; /* whose steps are added */
    unsigned part; /* of the machine */
    uint64_t random;
    bool live[SIM_LANE_SLOTS], shared[SIM_LANE_SLOTS];
    unsigned memory[SIM_LANE_SLOTS]; /* as in sim_slot, but of this part */
    int last[SIM_LANE_SLOTS];        /* by memory: stream that touched it last */
    int capturing;
    bool waits[SIM_LANE_STREAMS]; /* what is on the stream waits for a later call */
    int kept_free;                /* a stream that does not, and must not; NO_STREAM: none */
    uint64_t flags;               /* and signals so far */
    unsigned turn;                /* the next one of the common part */
    bool may_crash;
    bool in_error[SIM_CONTEXTS];         /* a crash has shown: nothing more is done */
    uint64_t changes;                    /* of memory and code so far */
    uint64_t captured[SIM_LANE_STREAMS]; /* with the last graph of the stream: how many there were; 0: there is none */
} generator;

static unsigned pick(generator *g, unsigned count)
{
    return (unsigned)(sim_random(&g->random) >> 16) % count;
}

static bool is_likely(generator *g, unsigned one_in)
{
    return pick(g, one_in) == 0;
}

/* Is some stream ordered with this one, by a default stream? `that_waits`: one that waits. */
static bool is_ordered(const generator *g, unsigned stream, bool that_waits)
{
    bool is = false;
    for (unsigned i = 0; i < SIM_LANE_STREAMS; i++)
        is = is || ((g->waits[i] || !that_waits) && sim_is_ordered(stream, g->part * SIM_LANE_STREAMS + i));
    return is;
}

static sim_step *add(generator *g, sim_op op, unsigned stream)
{
    unsigned *count = &g->program->counts[g->lane];
    sim_step *step = &g->program->steps[g->lane][(*count)++];
    *step = (sim_step){.op = op, .stream = stream, .value = sim_random(&g->random)};
    g->waits[stream % SIM_LANE_STREAMS] |= is_ordered(g, stream, true);
    return step;
}

static unsigned slot_of(const generator *g, unsigned slot)
{
    return g->part * SIM_LANE_SLOTS + slot;
}

static bool has_crashed(const generator *g, unsigned context)
{
    return g->part != SIM_COMMON && g->program->crash[g->part][context] < SIM_MAX_STEPS;
}

static bool waits(const generator *g, unsigned stream)
{
    return g->waits[stream % SIM_LANE_STREAMS];
}

/* Would it come behind what waits, in a stream that must not? */
static bool is_blocked(const generator *g, unsigned stream, unsigned slot)
{
    int last = g->last[g->memory[slot]];
    return g->kept_free == (int)stream && last != NO_STREAM && waits(g, (unsigned)last);
}

/* The next work on this stream must come after all that was done to the slot's memory before. */
static void touch(generator *g, unsigned stream, unsigned slot)
{
    unsigned context = slot % SIM_CONTEXTS, memory = g->memory[slot];
    if (has_crashed(g, context) && !g->in_error[context])
        g->program->lost[slot_of(g, memory)] = true;
    int last = g->last[memory];
    const bool has_refused = g->program->traits.odd_launches || g->program->traits.refusals; /* they order nothing */
    const bool is_ordered =
        last != NO_STREAM && sim_is_ordered(stream, (unsigned)last) && !has_refused && is_likely(g, 2);
    if (last != NO_STREAM && last != (int)stream && !is_ordered) {
        add(g, SIM_RECORD, (unsigned)last);
        add(g, SIM_STREAM_WAIT, stream)->from = (unsigned)last;
        g->waits[stream % SIM_LANE_STREAMS] |= waits(g, (unsigned)last);
    }
    g->last[memory] = (int)stream;
}

/* A slot of the stream's context that has memory; SIM_LANE_SLOTS when there is none. */
static unsigned pick_slot(generator *g, unsigned stream)
{
    unsigned start = pick(g, SIM_VARIABLES);
    for (unsigned i = 0; i < SIM_VARIABLES; i++) {
        unsigned slot = (start + i) % SIM_VARIABLES;
        if (g->live[slot] && slot % SIM_CONTEXTS == sim_context_of_stream(stream))
            return slot;
    }
    return SIM_LANE_SLOTS;
}

static unsigned pick_stream(generator *g)
{
    unsigned stream = g->part * SIM_LANE_STREAMS + pick(g, SIM_LANE_STREAMS);
    return is_likely(g, 3) && !g->program->traits.one_context
               ? stream
               : stream & ~2u; /* context 0 more often: batches grow in one context */
}

static unsigned variable_slot(unsigned stream)
{
    return sim_variable_of_stream(stream) % SIM_LANE_SLOTS;
}

static sim_kernel pick_kernel(generator *g)
{
    sim_kernel kernel = (sim_kernel)pick(g, g->program->traits.few_kernels ? 2 : SIM_PRINT);
    return g->program->traits.odd_launches && is_likely(g, 12) ? SIM_PRINT : kernel;
}

static void note_crash(generator *g, unsigned context)
{
    if (has_crashed(g, context))
        return;
    g->program->crashes[context] = true;
    g->program->crash[g->part][context] = g->program->counts[g->lane];
    for (unsigned slot = context; slot < SIM_LANE_SLOTS; slot += SIM_CONTEXTS)
        g->program->lost[slot_of(g, slot)] = g->last[slot] != NO_STREAM;
}

/* The number of the step that was added last. */
static unsigned tag_of_last(const generator *g)
{
    return g->lane * SIM_LANE_TAGS + g->program->counts[g->lane];
}

static void add_kernel(generator *g, unsigned stream, sim_kernel kernel)
{
    unsigned a = pick_slot(g, stream), b = pick_slot(g, stream);
    if (a == SIM_LANE_SLOTS || is_blocked(g, stream, a) || is_blocked(g, stream, b))
        return;
    if (g->capturing != (int)stream) {
        touch(g, stream, a);
        touch(g, stream, b);
        if (kernel == SIM_COUNT)
            touch(g, stream, variable_slot(stream));
    }
    if (kernel == SIM_CRASH)
        note_crash(g, sim_context_of_stream(stream));
    sim_step *step = add(g, SIM_LAUNCH, stream);
    step->kernel = kernel;
    step->a = slot_of(g, a);
    step->b = slot_of(g, b);
    step->tag = g->capturing == (int)stream ? 0 : tag_of_last(g);
    step->nested = g->program->traits.nested_calls && is_likely(g, 6);
    if (g->program->traits.odd_launches && kernel < SIM_CRASH) {
        step->refused = g->capturing != (int)stream && is_likely(g, 10);
        step->uncopyable = is_likely(g, 16);
        step->legacy = is_likely(g, 16);
    }
}

static void add_launch(generator *g, unsigned stream)
{
    add_kernel(g, stream, pick_kernel(g));
}

static void add_copy(generator *g, unsigned stream, sim_op op)
{
    unsigned a = pick_slot(g, stream), b = pick_slot(g, stream);
    if (a == SIM_LANE_SLOTS || is_blocked(g, stream, a) || is_blocked(g, stream, b))
        return;
    touch(g, stream, a);
    touch(g, stream, b);
    sim_step *step = add(g, op, stream);
    step->a = slot_of(g, a);
    step->b = slot_of(g, b);
    if (g->program->traits.odd_launches && (op == SIM_COPY || op == SIM_MEMSET)) {
        step->refused = is_likely(g, 10);
        step->uncopyable = is_likely(g, 16);
    }
}

/* All work of the context is done. */
static void forget_streams(generator *g, unsigned context)
{
    g->in_error[context] = has_crashed(g, context);
    for (unsigned slot = 0; slot < SIM_LANE_SLOTS; slot++)
        if (slot % SIM_CONTEXTS == context)
            g->last[slot] = NO_STREAM;
}

static void sync_context(generator *g, unsigned stream)
{
    add(g, SIM_SYNC_CONTEXT, stream);
    forget_streams(g, sim_context_of_stream(stream));
}

/* With nothing else under way, what was done before it is certain. */
static void add_crash(generator *g, unsigned stream)
{
    bool is_alone = is_likely(g, 2);
    if (is_alone)
        sync_context(g, stream);
    add_kernel(g, stream, SIM_CRASH);
    if (is_alone)
        sync_context(g, stream);
}

static void sync_both(generator *g, unsigned stream)
{
    add(g, SIM_SYNC_STREAM, stream);
    add(g, SIM_SYNC_STREAM, stream ^ 1);
    forget_streams(g, sim_context_of_stream(stream));
}

/* Tell the pool what to keep, trim it or ask. What it has is certain behind all work alone, and if no other thread
 * captures: then the engine may not trim a pool that it has held. */
static void add_pool_call(generator *g, unsigned stream, unsigned slot)
{
    static const uint64_t limits[] = {0, 1, UINT64_MAX};
    static const sim_op ops[] = {SIM_POOL_LIMIT, SIM_POOL_TRIM, SIM_POOL_ASK, SIM_POOL_ASK};
    const bool is_certain = g->program->traits.lanes == 1 || !g->program->traits.captures;
    const sim_op op = ops[pick(g, 4)];
    sync_both(g, stream);
    sim_step *step = add(g, op == SIM_POOL_ASK && !is_certain ? SIM_POOL_TRIM : op, stream);
    step->a = slot_of(g, slot);
    step->value = limits[pick(g, 3)];
}

/* Nothing waits, as what comes later on another stream follows an event. New memory has anything in it. */
static void add_pool(generator *g, unsigned stream)
{
    unsigned slot = SIM_POOLED + pick(g, (SIM_VARIABLES - SIM_POOLED) / 2) * 2 + sim_context_of_stream(stream);
    touch(g, stream, slot);
    add(g, g->live[slot] ? SIM_POOL_FREE : SIM_POOL_ALLOC, stream)->a = slot_of(g, slot);
    g->live[slot] = !g->live[slot];
    g->changes++;
    if (g->live[slot])
        add(g, SIM_MEMSET, stream)->a = slot_of(g, slot);
    else if (is_likely(g, 3))
        add_pool_call(g, stream, slot);
}

/* Wait for all that was done to the slot's memory. */
static void settle(generator *g, unsigned slot)
{
    int *last = &g->last[g->memory[slot]];
    if (*last != NO_STREAM)
        add(g, SIM_SYNC_STREAM, (unsigned)*last);
    *last = NO_STREAM;
}

static bool is_mapped(const generator *g, unsigned slot)
{
    return g->memory[slot] != slot;
}

static unsigned pick_place(generator *g, unsigned stream)
{
    return pick(g, SIM_POOLED / 2) * 2 + sim_context_of_stream(stream);
}

static sim_step *add_mapping(generator *g, sim_op op, unsigned slot)
{
    sim_step *step = add(g, op, g->part * SIM_LANE_STREAMS + pick(g, SIM_LANE_STREAMS));
    step->a = slot_of(g, slot);
    step->detached = is_likely(g, 3);
    g->live[slot] = op == SIM_MAP;
    g->changes++;
    return step;
}

/* Other memory may follow at once, or the same, which is then as it was left. Mapped at two slots, each shows what is
 * written through the other. */
static void add_map(generator *g, unsigned stream)
{
    unsigned slot = pick_place(g, stream);
    bool was_mapped = is_mapped(g, slot);
    if (g->live[slot] && !was_mapped)
        return;
    settle(g, slot);
    if (was_mapped)
        add_mapping(g, SIM_UNMAP, slot);
    g->memory[slot] = slot;
    if (was_mapped && is_likely(g, 2))
        return;
    g->memory[slot] = SIM_MEMORIES + pick(g, 2) * 2 + slot % SIM_CONTEXTS;
    add_mapping(g, SIM_MAP, slot)->b = slot_of(g, g->memory[slot]);
}

static void add_alloc(generator *g, unsigned stream)
{
    unsigned slot = pick_place(g, stream);
    if (is_mapped(g, slot))
        return;
    sync_both(g, stream);
    sim_step *step = add(g, g->live[slot] ? SIM_FREE : SIM_ALLOC, stream);
    step->a = slot_of(g, slot);
    if (g->program->traits.refusals && step->op == SIM_ALLOC && is_likely(g, 6)) {
        step->refused = true;
        return;
    }
    g->changes++;
    step->shared = g->program->traits.shared_memory && is_likely(g, 2);
    step->exported = g->program->traits.exported_memory && is_likely(g, 3);
    g->live[slot] = !g->live[slot];
    g->shared[slot] = g->live[slot] && step->shared;
}

/* Not of a module that others may use at the same time. */
static void add_reload(generator *g, unsigned stream)
{
    if (g->part == SIM_COMMON)
        return;
    sync_both(g, stream);
    g->changes++;
    sim_step *step = add(g, SIM_RELOAD, stream);
    step->a = slot_of(g, variable_slot(stream));
    step->refused = g->program->traits.refusals && tag_of_last(g) % 4 == 0;
}

/* A module whose variable its kernels use before and after. */
static void add_reload_within(generator *g, unsigned stream)
{
    add_kernel(g, stream, SIM_COUNT);
    add_reload(g, stream);
    add_kernel(g, stream, SIM_COUNT);
}

static void add_host_access(generator *g, unsigned stream)
{
    unsigned slot = pick_slot(g, stream);
    if (slot == SIM_LANE_SLOTS || !g->shared[slot])
        return;
    settle(g, slot);
    const unsigned place = slot_of(g, slot);
    add(g, is_likely(g, 2) ? SIM_HOST_WRITE : SIM_HOST_READ, stream)->a = place;
    if (tag_of_last(g) % 3 == 0)
        add(g, SIM_PREFETCH, stream)->a = place;
}

/* A call that is captured; SIM_LAUNCH: of a kernel that computes something else in each replay. */
static void add_node(generator *g, sim_op op, unsigned stream, unsigned slot)
{
    sim_step *step = add(g, op, stream);
    step->kernel = op == SIM_LAUNCH ? SIM_DICE : SIM_ADD;
    step->a = step->b = slot_of(g, slot);
}

/* Kernels, and perhaps copies from and to the host's buffer. What computes something else comes last, and the host sees
 * it. */
static void add_nodes(generator *g, unsigned stream)
{
    unsigned slot = pick_slot(g, stream), kernels = pick(g, 6) + 1;
    unsigned beside = g->program->traits.quiet_captures ? 40 : 4;
    bool copies = slot != SIM_LANE_SLOTS && is_likely(g, 2);
    if (copies && is_likely(g, 2))
        add_node(g, SIM_COPY_IN, stream, slot);
    for (unsigned i = 0; i < kernels; i++) {
        add_launch(g, is_likely(g, beside) ? stream ^ 1 : stream);
        if (copies && i == 1 && is_likely(g, 4))
            add_node(g, is_likely(g, 2) ? SIM_COPY_OUT : SIM_MEMSET, stream, slot);
    }
    if (copies && g->program->traits.dice && is_likely(g, 2))
        add_node(g, SIM_LAUNCH, stream, slot);
    if (copies)
        add_node(g, is_likely(g, 4) && !g->program->traits.dice ? SIM_COPY_IN : SIM_COPY_OUT, stream, slot);
}

/* The nodes of the graph that was captured last in the stream. */
static unsigned find_nodes(const generator *g, unsigned from, sim_step nodes[SIM_NODES])
{
    const sim_program *program = g->program;
    sim_step *launch = &g->program->steps[g->lane][program->counts[g->lane]];
    launch->from = from;
    return sim_program_nodes(program, g->lane, program->counts[g->lane], nodes);
}

/* A kernel of the graph becomes another one, or has other memory and another value. */
static void add_graph_change(generator *g, unsigned stream)
{
    sim_step nodes[SIM_NODES];
    const unsigned count = find_nodes(g, stream, nodes), node = pick(g, SIM_NODES);
    const unsigned a = pick_slot(g, stream), b = pick_slot(g, stream);
    if (node >= count || nodes[node].op != SIM_LAUNCH || nodes[node].kernel >= SIM_PRINT || a == SIM_LANE_SLOTS)
        return;
    sim_step *step = add(g, SIM_GRAPH_CHANGE, stream);
    step->from = stream;
    step->node = node;
    step->kernel = is_likely(g, 2) ? nodes[node].kernel : (sim_kernel)pick(g, SIM_PRINT);
    step->a = slot_of(g, a);
    step->b = slot_of(g, b);
}

/* Does the graph nothing that has an order with what its own stream does? */
static bool may_change_stream(const sim_step *nodes, unsigned count)
{
    bool may = true;
    for (unsigned i = 0; i < count; i++)
        may = may && nodes[i].op == SIM_LAUNCH && nodes[i].kernel < SIM_PRINT;
    return may;
}

/* Launch a graph from before once more, after all that was done to its memory. */
static void add_relaunch(generator *g, unsigned stream)
{
    sim_step nodes[SIM_NODES];
    const unsigned from = is_likely(g, 2) ? stream : stream ^ 1;
    if (g->part == SIM_COMMON || g->captured[from % SIM_LANE_STREAMS] != g->changes + 1)
        return;
    const unsigned count = find_nodes(g, from, nodes);
    if (from != stream && !may_change_stream(nodes, count))
        return;
    if (from == stream && is_likely(g, 2))
        add_graph_change(g, stream);
    for (unsigned i = 0; i < count; i++) {
        touch(g, stream, nodes[i].a % SIM_LANE_SLOTS);
        touch(g, stream, nodes[i].b % SIM_LANE_SLOTS);
    }
    touch(g, stream, variable_slot(from));
    sim_step *step = add(g, SIM_GRAPH_LAUNCH, stream);
    step->from = from;
    step->tag = tag_of_last(g);
}

/* The host uses its buffer while no graph can. */
static void add_graph_launch(generator *g, unsigned stream)
{
    add_launch(g, stream);
    if (is_likely(g, 2)) {
        add(g, SIM_SYNC_STREAM, stream);
        add(g, SIM_BUFFER_WRITE, stream);
    }
    sim_step *step = add(g, SIM_GRAPH_LAUNCH, stream);
    step->from = stream;
    step->tag = tag_of_last(g);
    step->refused = g->program->traits.refusals && is_likely(g, 6);
    if (is_likely(g, 2)) {
        add(g, SIM_SYNC_STREAM, stream);
        add(g, SIM_BUFFER_READ, stream);
    }
}

/* While a stream is captured, the other one of its context is in use as well. */
static void add_capture(generator *g, unsigned stream)
{
    sync_both(g, stream);
    add(g, SIM_BEGIN_CAPTURE, stream);
    g->capturing = (int)stream;
    add_nodes(g, stream);
    g->capturing = NO_STREAM;
    add(g, SIM_END_CAPTURE, stream);
    sync_both(g, stream);
    g->captured[stream % SIM_LANE_STREAMS] = g->changes + 1;
    for (unsigned i = pick(g, 4); i > 0; i--) {
        if (g->program->traits.changes_graphs && is_likely(g, 3))
            add_graph_change(g, stream);
        add_graph_launch(g, stream);
    }
    sync_both(g, stream);
    for (unsigned i = g->program->traits.changes_graphs ? pick(g, 6) : 0; i > 0; i--) {
        add_relaunch(g, is_likely(g, 2) ? stream : stream ^ 1);
        add_launch(g, is_likely(g, 2) ? stream : stream ^ 1);
    }
}

static void forget_stream(generator *g, unsigned stream)
{
    for (unsigned slot = 0; slot < SIM_LANE_SLOTS; slot++)
        if (g->last[slot] == (int)stream)
            g->last[slot] = NO_STREAM;
}

/* Results go to the host, which does something with them, and perhaps come back. */
static void add_staged(generator *g, unsigned stream)
{
    add_copy(g, stream, SIM_COPY_OUT_ASYNC);
    if (is_likely(g, 2))
        add(g, SIM_HOST_FUNCTION, stream);
    if (is_likely(g, 3))
        add_launch(g, stream);
    if (is_likely(g, 4)) {
        add(g, SIM_SYNC_STREAM, stream);
        forget_stream(g, stream);
        add(g, is_likely(g, 2) ? SIM_BUFFER_READ : SIM_BUFFER_WRITE, stream);
    }
    if (!is_likely(g, 3))
        add_copy(g, stream, SIM_COPY_IN_ASYNC);
}

static void add_poll(generator *g, unsigned stream)
{
    add(g, SIM_QUERY, stream)->polls = true;
    forget_stream(g, stream);
}

static void add_wait(generator *g, unsigned stream)
{
    static const sim_op waits[] = {SIM_SYNC_STREAM, SIM_SYNC_CONTEXT, SIM_QUERY, SIM_RECORD};
    sim_op op = add(g, waits[pick(g, 4)], stream)->op;
    if (op == SIM_SYNC_CONTEXT)
        forget_streams(g, sim_context_of_stream(stream));
    if (op == SIM_SYNC_STREAM)
        forget_stream(g, stream);
}

/* Until the host lets the stream go on, nothing may wait for it. */
static void add_hold(generator *g, unsigned stream)
{
    static const sim_op others[] = {SIM_COPY_IN, SIM_COPY, SIM_MEMSET, SIM_UNKNOWN};
    add(g, SIM_HOLD, stream)->value = pick(g, 2);
    for (unsigned i = pick(g, 6); i > 0; i--) {
        if (is_likely(g, 4))
            add_copy(g, pick_stream(g), others[pick(g, 4)]);
        else
            add_launch(g, is_likely(g, 2) ? stream : pick_stream(g));
    }
    add(g, SIM_RELEASE, stream);
}

/* A call while other work waits for a later one. The program waits for none that does. */
static void add_beside(generator *g, unsigned stream)
{
    static const sim_op copies[] = {SIM_COPY_IN, SIM_COPY, SIM_MEMSET, SIM_COPY_OUT_ASYNC, SIM_COPY_IN_ASYNC};
    unsigned kind = pick(g, 10);
    if (kind < 6)
        add_launch(g, stream);
    else if (kind == 6)
        add_copy(g, stream, copies[pick(g, g->program->traits.staged ? 5 : 3)]);
    else if (kind == 7)
        add(g, is_likely(g, 2) ? SIM_QUERY : SIM_RECORD, stream);
    else if (!waits(g, stream) && is_likely(g, 2))
        add(g, SIM_SYNC_STREAM, stream);
    else if (stream == (unsigned)g->kept_free)
        add_copy(g, stream, SIM_COPY_OUT);
}

/* A kernel that ends only when the host, or what comes in another stream, gives it a sign. */
static void add_waiting(generator *g, unsigned stream)
{
    const bool for_peer = g->program->traits.peers && (!g->program->traits.spins || is_likely(g, 2));
    const unsigned other =
        g->part * SIM_LANE_STREAMS + (stream + 1 + pick(g, g->program->traits.one_context ? 1 : 3)) % SIM_LANE_STREAMS;
    unsigned slot = pick_slot(g, stream);
    const bool may_block = sim_context_of_stream(stream) == sim_context_of_stream(other) && is_ordered(g, other, false);
    if (slot == SIM_LANE_SLOTS || may_block)
        return;
    touch(g, stream, slot);
    if (g->program->traits.served)
        add(g, SIM_SYNC_CONTEXT, stream);
    sim_step *step = add(g, SIM_LAUNCH, stream);
    step->kernel = for_peer ? SIM_PEER : is_likely(g, 2) ? SIM_SPIN : SIM_DELAY;
    step->a = step->b = slot_of(g, slot);
    step->tag = tag_of_last(g);
    step->flag = ++g->flags;
    step->value = is_likely(g, g->program->traits.served ? 1 : 4);
    step->from = for_peer ? other : 0;
    g->waits[stream % SIM_LANE_STREAMS] = true;
    g->kept_free = (int)other;
    const bool behind = g->program->traits.plain_memory && !is_likely(g, 4);
    const bool is_served = g->program->traits.served && !for_peer && !is_likely(g, 64);
    for (unsigned i = is_served ? 0 : pick(g, 8); i > 0; i--)
        add_beside(g, behind || is_likely(g, 2) ? stream : is_likely(g, 2) ? other : pick_stream(g));
    if (for_peer) {
        const bool copies = g->part != SIM_COMMON && is_likely(g, 3); /* it would undo what others tally */
        step = add(g, copies ? SIM_COPY_IN : SIM_LAUNCH, other);
        step->kernel = SIM_TALLY;
        step->a = step->b = sim_variable_of_stream(other);
        step->tag = copies ? 0 : tag_of_last(g);
        step->signal = g->flags;
    } else {
        step = add(g, SIM_RELEASE, stream);
        step->flag = g->flags;
    }
    if (is_served)
        add(g, SIM_SYNC_STREAM, stream);
    memset(g->waits, 0, sizeof g->waits);
    g->kept_free = NO_STREAM;
}

/* Work of a kernel in a slot, as which nothing else orders it. */
static void add_bare_launch(generator *g, unsigned stream, unsigned slot)
{
    sim_step *step = add(g, SIM_LAUNCH, stream);
    step->kernel = (sim_kernel)pick(g, SIM_COUNT);
    step->a = step->b = slot_of(g, slot);
    step->tag = tag_of_last(g);
}

/* A value is written in the order of the stream, or by a kernel of it. */
static void add_signal(generator *g, unsigned stream, uint64_t signal)
{
    const bool writes = is_likely(g, 2);
    sim_step *step = add(g, writes ? SIM_MEMSET : SIM_LAUNCH, stream);
    step->kernel = SIM_TALLY;
    step->a = step->b = sim_variable_of_stream(stream);
    step->tag = writes ? 0 : tag_of_last(g);
    step->signal = signal;
}

static void add_value_wait(generator *g, unsigned stream, unsigned from)
{
    sim_step *step = add(g, SIM_VALUE_WAIT, stream);
    step->from = from;
    step->flag = ++g->flags;
}

/* The one stream goes on with what the other has done, and no event tells it, but a value that has been written. */
static void add_handover(generator *g, unsigned stream, unsigned other)
{
    const unsigned slot = pick_slot(g, stream);
    if (slot == SIM_LANE_SLOTS || stream == other)
        return;
    touch(g, other, slot);
    add_bare_launch(g, other, slot);
    add_signal(g, other, g->flags + 1);
    add_value_wait(g, stream, other);
    g->last[g->memory[slot]] = (int)stream;
    add_bare_launch(g, stream, slot);
}

/* A stream waits for a value that another one, or the host, writes later. What comes behind it goes on with what the
 * other one has done by then. */
static void add_late_value(generator *g, unsigned stream)
{
    const bool from_host = is_likely(g, 3);
    const unsigned slot = pick_slot(g, stream), other = stream ^ 1;
    if (slot == SIM_LANE_SLOTS || is_ordered(g, other, false))
        return;
    touch(g, other, slot);
    if (from_host)
        touch(g, stream, slot);
    add_value_wait(g, stream, from_host ? stream : other);
    const uint64_t value = g->flags;
    add_bare_launch(g, stream, slot);
    g->last[g->memory[slot]] = (int)stream;
    g->waits[stream % SIM_LANE_STREAMS] = true;
    g->kept_free = (int)other;
    const bool alone = is_likely(g, 2);
    for (unsigned i = pick(g, 6); i > 0; i--)
        add_beside(g, alone || is_likely(g, 2) ? stream : is_likely(g, 2) ? other : pick_stream(g));
    if (from_host) {
        add(g, SIM_RELEASE, stream)->flag = value;
    } else {
        add_bare_launch(g, other, slot);
        add_signal(g, other, value);
    }
    memset(g->waits, 0, sizeof g->waits);
    g->kept_free = NO_STREAM;
}

static void add_value(generator *g, unsigned stream)
{
    if (g->part == SIM_COMMON)
        return;
    if (g->program->traits.lanes > 1 || !is_likely(g, 3))
        add_handover(g, stream, stream ^ 1);
    else
        add_late_value(g, stream);
}

/* Into a stream that other threads may be using: one may come before or after the other. */
static void add_tally(generator *g)
{
    unsigned stream = SIM_COMMON * SIM_LANE_STREAMS + pick(g, SIM_LANE_STREAMS);
    sim_step *step = add(g, SIM_LAUNCH, stream);
    step->kernel = SIM_TALLY;
    step->a = step->b = sim_variable_of_stream(stream);
    step->tag = tag_of_last(g);
}

/* The host sees at once what became of the memory, so that no replay may go on with something else. */
static void add_dice(generator *g, unsigned stream)
{
    unsigned slot = pick_slot(g, stream);
    if (slot == SIM_LANE_SLOTS)
        return;
    touch(g, stream, slot);
    sim_step *step = add(g, SIM_LAUNCH, stream);
    step->kernel = SIM_DICE;
    step->a = step->b = slot_of(g, slot);
    step->tag = tag_of_last(g);
    step = add(g, SIM_COPY_OUT, stream);
    step->a = slot_of(g, slot);
    step->large = is_likely(g, 3);
}

/* Nothing in it but launches, sets, copies, waits and what orders them, in one stream or two. */
static void add_range(generator *g, unsigned stream)
{
    static const sim_op ops[] = {SIM_COPY_IN,        SIM_COPY_IN_ASYNC, SIM_COPY_OUT,
                                 SIM_COPY_OUT_ASYNC, SIM_COPY,          SIM_MEMSET};
    add(g, SIM_PROFILER, stream)->value = 1;
    const unsigned other = is_likely(g, 2) ? stream : stream ^ 1;
    add_launch(g, stream);
    for (unsigned i = pick(g, 8); i > 0; i--) {
        const unsigned in = is_likely(g, 2) ? stream : other;
        if (is_likely(g, 6))
            add_wait(g, in);
        else if (g->program->traits.values && g->part != SIM_COMMON && is_likely(g, 3)) /* others tally there */
            add_handover(g, in, in == stream ? other : stream);
        else if (is_likely(g, 2))
            add_launch(g, in);
        else
            add_copy(g, in, ops[pick(g, 6)]);
    }
    add(g, SIM_PROFILER, stream)->value = 2;
}

static void add_any(generator *g)
{
    static const sim_op copies[] = {SIM_COPY_IN, SIM_COPY, SIM_COPY_OUT, SIM_MEMSET, SIM_UNKNOWN};
    unsigned stream = pick_stream(g), kind = pick(g, 36);
    if (g->may_crash && is_likely(g, 100)) {
        add_crash(g, stream);
        return;
    }
    if (g->program->traits.profiler_calls && is_likely(g, 12))
        add(g, SIM_PROFILER, stream)->detached = is_likely(g, 3);
    if (g->program->traits.ranges && is_likely(g, 6)) {
        add_range(g, stream);
        return;
    }
    if (g->program->traits.reloads && is_likely(g, 10)) {
        add_reload_within(g, stream);
        return;
    }
    if (g->program->traits.long_batches && !is_likely(g, 24)) {
        add_launch(g, stream & ~3u);
        return;
    }
    if (g->program->traits.staged && is_likely(g, 8))
        add_staged(g, stream);
    else if (g->program->traits.polls && is_likely(g, 16))
        add_poll(g, stream);
    else if (g->program->traits.changes_graphs && is_likely(g, 24))
        add_capture(g, stream);
    else if (g->program->traits.changes_graphs && is_likely(g, 12))
        add_relaunch(g, stream);
    else if (g->program->traits.host_access && is_likely(g, 4))
        add_host_access(g, stream);
    else if (g->program->traits.dice && is_likely(g, 16))
        add_dice(g, stream);
    else if (g->program->traits.pools && is_likely(g, 8))
        add_pool(g, stream);
    else if (g->program->traits.holds && is_likely(g, 16))
        add_hold(g, stream);
    else if ((g->program->traits.spins || g->program->traits.peers) && is_likely(g, 10))
        add_waiting(g, stream);
    else if (g->program->traits.values && is_likely(g, 8))
        add_value(g, stream);
    else if (kind < 20)
        add_launch(g, stream);
    else if (kind < 25)
        add_copy(g, stream, copies[kind - 20]);
    else if (kind < 27)
        add_wait(g, stream);
    else if (kind == 27)
        add_alloc(g, stream);
    else if (kind < 29)
        add_reload(g, stream);
    else if (kind >= 32 && g->program->traits.plain_memory)
        add_launch(g, stream);
    else if (kind >= 32)
        add_map(g, stream);
    else if (g->program->traits.captures)
        add_capture(g, stream);
}

static void start(generator *g)
{
    for (unsigned slot = 0; slot < SIM_LANE_SLOTS; slot++) {
        g->last[slot] = NO_STREAM;
        g->memory[slot] = slot;
    }
    g->capturing = g->kept_free = NO_STREAM;
    for (unsigned i = 0; i < SIM_LANE_STREAMS; i++)
        add_alloc(g, g->part * SIM_LANE_STREAMS + (g->program->traits.one_context ? i & ~2u : i));
    if (!g->program->traits.plain_memory)
        add_map(g, g->part * SIM_LANE_STREAMS);
}

/* Threads take turns with the common part. */
static void add_turn(generator *common, unsigned lane)
{
    common->lane = lane;
    add(common, SIM_TAKE_TURN, common->part * SIM_LANE_STREAMS)->turn = common->turn;
    if (common->turn++ == 0)
        start(common);
    for (unsigned i = pick(common, 6); i > 0; i--)
        add_any(common);
    add(common, SIM_PASS_TURN, common->part * SIM_LANE_STREAMS);
}

static void add_some(generator *g, generator *common)
{
    const sim_traits *traits = &g->program->traits;
    add_any(g);
    if (!traits->common)
        return;
    if (!traits->captures && is_likely(g, 8)) /* else it might be captured */
        add_tally(g);
    if (is_likely(g, 8))
        add_turn(common, g->lane);
}

/* A thread's crash may come at any time for the others; and for that thread, when there is another one that has one. */
static void spread_crash(sim_program *program, unsigned context)
{
    unsigned first[SIM_PARTS], crashed = 0;
    for (unsigned part = 0; part < SIM_PARTS; part++) {
        first[part] = part < program->traits.lanes && part < SIM_LANES ? program->crash[part][context] : SIM_MAX_STEPS;
        crashed += first[part] < SIM_MAX_STEPS;
    }
    for (unsigned part = 0; part < SIM_PARTS; part++) {
        if (crashed - (first[part] < SIM_MAX_STEPS) == 0)
            continue;
        if (part < program->traits.lanes)
            program->crash[part][context] = 0;
        for (unsigned slot = context; slot < SIM_LANE_SLOTS; slot += SIM_CONTEXTS)
            program->lost[part * SIM_LANE_SLOTS + slot] = true;
    }
}

/* Some kernels always take long, and others now and then. */
static void slow_down(sim_program *program)
{
    for (unsigned i = 0; i < program->counts[0]; i++) {
        sim_step *step = &program->steps[0][i];
        const uint64_t of_kernel = sim_hash(step->kernel, step->stream), of_launch = sim_hash(step->tag, of_kernel);
        const bool may = (step->op == SIM_LAUNCH || step->op == SIM_GRAPH_LAUNCH) && step->flag == 0;
        if (may && (of_kernel % 3 == 0 || of_launch % 16 == 0))
            step->slow_ms = (int64_t)(of_kernel % 400) + 10;
    }
}

/* The threads' steps are made in the order of one possible run, so that each can take its turns. */
void sim_program_generate(sim_program *program, const sim_traits *traits, uint64_t seed)
{
    generator parts[SIM_PARTS] = {0};
    unsigned steps[SIM_LANES], busy = traits->lanes;
    memset(program, 0, sizeof *program);
    program->traits = *traits;
    for (unsigned lane = 0; lane < SIM_LANES; lane++)
        program->crash[lane][0] = program->crash[lane][1] = SIM_MAX_STEPS;
    for (unsigned part = 0; part < SIM_PARTS; part++)
        parts[part] = (generator){.program = program, .lane = part, .part = part, .random = sim_hash(seed, part)};
    for (unsigned lane = 0; lane < traits->lanes; lane++) {
        parts[lane].may_crash = traits->crashes && (seed % 2 == 1 || seed / 2 % traits->lanes == lane);
        start(&parts[lane]);
        steps[lane] = pick(&parts[lane], traits->steps) + 10;
    }
    while (busy > 0) {
        busy = 0;
        for (unsigned lane = 0; lane < traits->lanes; lane++) {
            if (program->counts[lane] >= steps[lane])
                continue;
            add_some(&parts[lane], &parts[SIM_COMMON]);
            busy++;
        }
    }
    for (unsigned context = 0; context < SIM_CONTEXTS; context++)
        spread_crash(program, context);
    if (traits->slow)
        slow_down(program);
}

/* Is what the host learns at this step the same in every run? Not once a kernel has failed: when that shows depends on
 * when the device runs it. */
static bool is_certain(const sim_program *program, unsigned lane, unsigned step)
{
    return step < program->crash[lane][sim_context_of_stream(program->steps[lane][step].stream)];
}

typedef struct lane_run {
    const sim_program *program;
    sim_result *result;
    unsigned lane;
    pthread_t thread;
} lane_run;

static void *run_lane(void *user)
{
    lane_run *run = user;
    sim_lane = run->lane;
    for (unsigned i = 0; i < run->program->counts[run->lane]; i++) {
        uint64_t words[SIM_WORDS] = {0};
        int result;
        do
            result = sim_call(&run->program->steps[run->lane][i], words);
        while (result == SIM_NOT_READY);
        uint64_t seen = sim_hash(0, (uint64_t)result);
        for (unsigned w = 0; w < SIM_WORDS; w++)
            seen = sim_hash(seen, words[w]);
        if (is_certain(run->program, run->lane, i))
            run->result->seen[run->lane][i] = seen;
    }
    return NULL;
}

void sim_program_run(const sim_program *program, sim_result *result)
{
    lane_run runs[SIM_LANES];
    memset(result, 0, sizeof *result);
    for (unsigned lane = 0; lane < program->traits.lanes; lane++) {
        runs[lane] = (lane_run){.program = program, .result = result, .lane = lane};
        if (program->traits.lanes == 1)
            run_lane(&runs[lane]);
        else if (pthread_create(&runs[lane].thread, NULL, run_lane, &runs[lane]) != 0)
            sim_violation("no thread");
    }
    for (unsigned lane = 0; program->traits.lanes > 1 && lane < program->traits.lanes; lane++)
        pthread_join(runs[lane].thread, NULL);
}

void sim_program_read_memory(const sim_program *program, sim_result *result)
{
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        uint64_t hash = 1;
        const unsigned place = sim_place_of(slot);
        const sim_slot *at = &sim.slots[place];
        bool is_programs = at->live && !at->kept && !at->cached; /* else it is freed */
        if (slot % SIM_LANE_SLOTS >= SIM_SECONDS || !is_programs || program->lost[place == slot ? at->memory : slot])
            continue;
        for (unsigned i = 0; i < SIM_WORDS; i++)
            hash = sim_hash(hash, atomic_load(&sim_words(place)[i]));
        result->memory[slot] = hash;
    }
    for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
        if (!program->crashes[sim_context_of_stream(stream)])
            result->printed[stream] = sim.printed[stream];
    memcpy(result->signatures, sim.signatures, sizeof result->signatures);
}

unsigned sim_program_nodes(const sim_program *program, unsigned lane, unsigned step, sim_step nodes[SIM_NODES])
{
    const sim_step *steps = program->steps[lane];
    unsigned first = step, count = 0;
    while (steps[first].op != SIM_BEGIN_CAPTURE || steps[first].stream != steps[step].from)
        first--;
    for (unsigned i = first + 1; steps[i].op != SIM_END_CAPTURE; i++)
        if (steps[i].stream == steps[step].from) {
            nodes[count] = steps[i];
            nodes[count].tag = sim_node_tag(steps[step].tag, count);
            nodes[count].refused = steps[step].refused;
            count++;
        }
    for (unsigned i = first + 1; i < step; i++)
        if (steps[i].op == SIM_GRAPH_CHANGE && steps[i].from == steps[step].from) {
            nodes[steps[i].node].kernel = steps[i].kernel;
            nodes[steps[i].node].a = steps[i].a;
            nodes[steps[i].node].b = steps[i].b;
        }
    return count;
}

static void print_step(const sim_step *step, FILE *file)
{
    static const char *const kernels[] = {"add",   "scale", "move", "swap", "sum",   "count", "print",
                                          "crash", "tally", "dice", "spin", "delay", "peer"};
    fprintf(file, "%s stream %u (context %u)", sim_op_name(step->op), step->stream,
            sim_context_of_stream(step->stream));
    if (step->op == SIM_LAUNCH)
        fprintf(file, " %s, tag %u%s%s%s%s%s", kernels[step->kernel], step->tag, step->refused ? ", refused" : "",
                step->uncopyable ? ", uncopyable" : "", step->legacy ? ", legacy" : "", step->nested ? ", nested" : "",
                step->tag ? "" : ", captured");
    if (step->op == SIM_TAKE_TURN)
        fprintf(file, " %u", step->turn);
    fprintf(file, ", slots %u %u, from %u%s%s%s", step->a, step->b, step->from, step->shared ? ", shared" : "",
            step->exported ? ", exported" : "", step->detached ? ", no context current" : "");
    fprintf(file, ", flag %llu, signal %llu\n", (unsigned long long)step->flag, (unsigned long long)step->signal);
}

void sim_program_print(const sim_program *program, FILE *file)
{
    for (unsigned lane = 0; lane < program->traits.lanes; lane++)
        for (unsigned i = 0; i < program->counts[lane]; i++) {
            fprintf(file, "  lane %u step %u: ", lane, i);
            print_step(&program->steps[lane][i], file);
        }
}

const char *sim_program_compare(const sim_program *program, const sim_result *plain, const sim_result *profiled)
{
    static char text[128];
    for (unsigned lane = 0; lane < program->traits.lanes; lane++) {
        for (unsigned i = 0; i < program->counts[lane]; i++)
            if (plain->seen[lane][i] != profiled->seen[lane][i]) {
                snprintf(text, sizeof text, "the host saw something else at step %u of lane %u", i, lane);
                return text;
            }
    }
    for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
        if (plain->printed[stream] != profiled->printed[stream]) {
            snprintf(text, sizeof text, "kernels of stream %u printed something else, or in another order", stream);
            return text;
        }
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        if (plain->memory[slot] != profiled->memory[slot]) {
            snprintf(text, sizeof text, "slot %u ends with other memory", slot);
            return text;
        }
    return NULL;
}
