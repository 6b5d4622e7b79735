/* Decides which launch is measured in which window, and makes samples of them. CUPTI runs the passes in a fixed order,
 * over and over, and keeps the counters of a range by its name. So a sample is a range that is pushed once in each
 * pass. */
#include "inject/batch_private.h"

#include "core/bytes.h"
#include "inject/engine.h"
#include "inject/multiplex.h"
#include "inject/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX

/* Launches of a group in one window: one until a sample is complete, so that short programs get one, then more. */
#define MOST_IN_WINDOW    16
#define MORE_PER_COMPLETE 3
/* At most this many kernels and shapes are told apart; launches of others are not measured. */
#define MOST_GROUPS ((size_t)1 << 16)
/* While other processes of the run wait for the counters, a process goes through all passes so often. */
#define TURN_ROUNDS 3
/* After the windows of the first sample, each lets so many more launches go by than the one before: starting and
 * stopping a pass takes 40 ms, and so the windows of 10,000 launches take 5 s at most. */
#define PATIENCE_PER_WINDOW 2

/* Launches make up a sample when these are equal. */
typedef struct shape {
    const kprof_kernel *kernel;
    uint32_t grid[3], block[3], cluster[3], dynamic_smem_bytes;
} shape;

typedef struct group {
    shape shape;
    uint32_t complete;  /* samples */
    uint32_t open;      /* samples that lack passes */
    size_t first_open;  /* the first of them; NONE: there is none */
    uint32_t window;    /* the last one in which a launch was measured, from 1 */
    uint32_t in_window; /* launches measured in that */
} group;

typedef struct sample {
    group *group;               /* NULL: it is a range of a batch */
    size_t next_open;           /* of its group; NONE: the last */
    uint64_t passes;            /* that it has, as bits */
    bool dropped;               /* nothing comes of it any more */
    kprof_launch_record record; /* of its first launch */
    kprof_witness witnesses[KPROF_MAX_WITNESSES];
    char why[256];  /* its launches are not repeated */
    char note[512]; /* why one of them was measured in another way than asked for; "": none was */
} sample;

/* The samples of one context. Their numbers are those of their ranges. */
struct kprof_multiplex {
    group **slots; /* [slot_count], a power of two; open addressing; owned */
    size_t slot_count, group_count;
    sample *samples; /* [capacity], owned */
    size_t capacity, sample_count;
    bool measures;              /* the profiler has a measurement for the samples */
    bool all_witnesses, proved; /* it was begun so */
    uint32_t pass;              /* of the open window */
    uint32_t windows;           /* so far */
    uint32_t first_window;      /* of the measurement */
    uint32_t since_full;        /* windows since no further sample fitted */
    size_t gone_by;             /* launches that were not measured in this window, and wait for another */
};

/* Groups */

static shape shape_of(const kprof_batch_launch *launch)
{
    shape out;
    memset(&out, 0, sizeof out); /* compared byte by byte */
    out.kernel = launch->kernel;
    memcpy(out.grid, launch->record.grid, sizeof out.grid);
    memcpy(out.block, launch->record.block, sizeof out.block);
    memcpy(out.cluster, launch->record.cluster, sizeof out.cluster);
    out.dynamic_smem_bytes = launch->record.dynamic_smem_bytes;
    return out;
}

static group **find_slot(group **slots, size_t count, const shape *wanted)
{
    uint64_t hash = kprof_hash(KPROF_HASH_START, wanted, sizeof *wanted);
    size_t i = (hash ^ hash >> 32) & (count - 1);
    while (slots[i] && memcmp(&slots[i]->shape, wanted, sizeof *wanted) != 0)
        i = (i + 1) & (count - 1);
    return &slots[i];
}

static bool grow_slots(struct kprof_multiplex *m)
{
    size_t count = m->slot_count ? 2 * m->slot_count : 64;
    group **slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < m->slot_count; i++)
        if (m->slots[i])
            *find_slot(slots, count, &m->slots[i]->shape) = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->slot_count = count;
    return true;
}

/* Return NULL if there is none yet. */
static group *find_group(const struct kprof_multiplex *m, const kprof_batch_launch *launch)
{
    shape wanted = shape_of(launch);
    return m && m->slot_count > 0 ? *find_slot(m->slots, m->slot_count, &wanted) : NULL;
}

/* Find or make the group; NULL when memory ran out, or there are too many. */
static group *get_group(struct kprof_multiplex *m, const kprof_batch_launch *launch)
{
    shape wanted = shape_of(launch);
    group *known = find_group(m, launch);
    if (known || m->group_count == MOST_GROUPS)
        return known;
    if (2 * m->group_count >= m->slot_count && !grow_slots(m))
        return NULL;
    group **slot = find_slot(m->slots, m->slot_count, &wanted);
    if (!(*slot = calloc(1, sizeof **slot)))
        return NULL;
    m->group_count++;
    **slot = (group){.shape = wanted, .first_open = NONE};
    return *slot;
}

/* Turns */

static uint32_t most_samples(void)
{
    return kprof_engine.process.config.multiplex_samples;
}

static uint32_t most_in_window(const group *g)
{
    uint32_t most = 1 + MORE_PER_COMPLETE * g->complete;
    return most < MOST_IN_WINDOW ? most : MOST_IN_WINDOW;
}

bool kprof_multiplex_wants(const kprof_profiled_context *context, const kprof_batch_launch *launch)
{
    const group *g = context ? find_group(context->multiplex, launch) : NULL;
    return !g || g->complete < most_samples();
}

/* An open sample of the group that lacks the window's pass; NONE: there is none. */
static size_t lacking(const struct kprof_multiplex *m, const group *g)
{
    size_t i = g->first_open;
    while (i != NONE && (m->samples[i].passes >> m->pass & 1))
        i = m->samples[i].next_open;
    return i;
}

/* Does no further sample fit? The range for the proof of a batch is not theirs. */
static bool is_full(const struct kprof_multiplex *m)
{
    return m->sample_count + m->proved >= m->capacity;
}

static bool may_begin_sample(const struct kprof_multiplex *m, const group *g)
{
    return g->open < most_in_window(g) && g->complete + g->open < most_samples() && !is_full(m);
}

kprof_turn kprof_multiplex_turn(const kprof_batch_launch *launch)
{
    struct kprof_multiplex *m = kprof_the_batch.context->multiplex;
    const group *g = get_group(m, launch);
    if (!g || g->complete >= most_samples())
        return KPROF_TURN_NEVER;
    uint32_t measured = g->window == m->windows ? g->in_window : 0;
    if (measured < most_in_window(g) && (lacking(m, g) != NONE || may_begin_sample(m, g)))
        return KPROF_TURN_NOW;
    return KPROF_TURN_LATER;
}

bool kprof_multiplex_loses_patience(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    struct kprof_multiplex *m = batch->context->multiplex;
    uint32_t first = batch->metrics->pass_count;
    return ++m->gone_by > (m->windows <= first ? 0 : (size_t)PATIENCE_PER_WINDOW * (m->windows - first));
}

/* Windows */

static kprof_status make(size_t capacity)
{
    kprof_open_batch *batch = &kprof_the_batch;
    struct kprof_multiplex **m = &batch->context->multiplex;
    if (batch->metrics->pass_count > KPROF_MULTIPLEX_PASSES)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "launches that are not repeated can have %d passes at most; try --max-passes",
                          KPROF_MULTIPLEX_PASSES);
    if (!*m && !(*m = calloc(1, sizeof **m)))
        return kprof_fail(KPROF_NO_MEMORY, "no memory to measure launches in one pass each");
    sample *samples = realloc((*m)->samples, capacity * sizeof *samples);
    if (!samples)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to measure launches in one pass each");
    (*m)->samples = samples;
    (*m)->capacity = capacity;
    return KPROF_OK;
}

/* No further sample fits, and what could be completed has been. */
static bool is_used_up(struct kprof_multiplex *m)
{
    m->since_full = is_full(m) ? m->since_full + 1 : 0;
    return is_full(m) && m->since_full > kprof_the_batch.metrics->pass_count;
}

bool kprof_multiplex_is_open(const kprof_profiled_context *context)
{
    return context->multiplex && context->multiplex->measures && context->multiplex->sample_count > 0;
}

bool kprof_multiplex_has_had_turn(const kprof_profiled_context *context)
{
    const struct kprof_multiplex *m = context->multiplex;
    bool lacks = false;
    for (size_t i = 0; m && m->measures && i < m->sample_count; i++)
        lacks = lacks || !m->samples[i].dropped;
    return !lacks || m->windows - m->first_window > TURN_ROUNDS * context->metrics->pass_count;
}

bool kprof_multiplex_goes_on(void)
{
    kprof_profiled_context *context = kprof_the_batch.context;
    struct kprof_multiplex *m = context->multiplex;
    if (m && m->measures && (!kprof_engine.device->profiler_goes_on(context->profiler) || is_used_up(m)))
        kprof_multiplex_end(context);
    return m && m->measures;
}

kprof_status kprof_multiplex_begin(const kprof_measurement *wanted)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_status status = make(wanted->ranges);
    if (status == KPROF_OK)
        status = kprof_engine.device->profiler_begin(batch->context->profiler, wanted);
    if (status != KPROF_OK)
        return status;
    struct kprof_multiplex *m = batch->context->multiplex;
    m->measures = true;
    m->first_window = m->windows;
    m->all_witnesses = wanted->all_witnesses;
    m->proved = wanted->proved;
    return KPROF_OK;
}

/* Does the launch's group have open samples, none of which lacks the pass? */
static bool is_in_vain(const struct kprof_multiplex *m, const group *g)
{
    return g && lacking(m, g) == NONE && !may_begin_sample(m, g);
}

kprof_status kprof_multiplex_open_window(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_profiler *profiler = batch->context->profiler;
    struct kprof_multiplex *m = batch->context->multiplex;
    const group *g = find_group(m, batch->opener);
    m->windows++;
    m->gone_by = 0;
    kprof_status status = kprof_engine.device->profiler_next_pass(profiler, &m->pass);
    for (uint32_t i = 1; i < batch->metrics->pass_count && status == KPROF_OK && is_in_vain(m, g); i++) {
        status = kprof_engine.device->profiler_skip_pass(profiler);
        if (status == KPROF_OK)
            status = kprof_engine.device->profiler_next_pass(profiler, &m->pass);
    }
    return status;
}

bool kprof_multiplex_shares(const kprof_measurement *wanted, size_t least)
{
    kprof_open_batch *batch = &kprof_the_batch;
    const kprof_profiled_context *context = batch->context;
    const struct kprof_multiplex *m = context->multiplex;
    if (kprof_engine.process.config.counter_data_dir) /* the image of a launch has that launch alone */
        return false;
    if (!m || !m->measures || !kprof_engine.device->profiler_goes_on(context->profiler) ||
        m->proved != wanted->proved || m->all_witnesses != wanted->all_witnesses ||
        m->sample_count + wanted->proved + least > m->capacity)
        return false;
    size_t left = m->capacity - m->sample_count - wanted->proved;
    batch->first_range = batch->range_count = m->sample_count;
    if (batch->capacity > left)
        batch->capacity = left;
    return true;
}

void kprof_multiplex_note_batch(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    struct kprof_multiplex *m = batch->context ? batch->context->multiplex : NULL;
    if (!m || !m->measures || batch->kind == KPROF_MULTIPLEXED)
        return;
    while (m->sample_count < batch->range_count)
        m->samples[m->sample_count++] = (sample){.dropped = true};
}

size_t kprof_multiplex_take(const kprof_batch_launch *launch, const char *why)
{
    struct kprof_multiplex *m = kprof_the_batch.context->multiplex;
    group *g = get_group(m, launch);
    size_t number = lacking(m, g);
    if (number == NONE) {
        number = m->sample_count++;
        sample *s = &m->samples[number];
        *s = (sample){.group = g, .next_open = g->first_open, .record = launch->record};
        snprintf(s->why, sizeof s->why, "%s", why);
        g->first_open = number;
        g->open++;
    }
    m->samples[number].passes |= UINT64_C(1) << m->pass;
    g->in_window = g->window == m->windows ? g->in_window + 1 : 1;
    g->window = m->windows;
    return number;
}

/* Take a sample out of the list of open ones. */
static void take_out(struct kprof_multiplex *m, size_t number)
{
    group *g = m->samples[number].group;
    size_t *link = &g->first_open;
    while (*link != number)
        link = &m->samples[*link].next_open;
    *link = m->samples[number].next_open;
    g->open--;
}

void kprof_multiplex_skip(const kprof_launch_record *record)
{
    kprof_launch_record skipped = *record;
    skipped.mode = KPROF_REPLAY_MULTIPLEX;
    kprof_the_batch.listener->done(&skipped, "multiplexed: another pass than it lacks was under way, or its kernel and "
                                             "shape had had their turn in that");
}

void kprof_multiplex_drop(size_t range, const kprof_launch_record *refused)
{
    kprof_open_batch *batch = &kprof_the_batch;
    struct kprof_multiplex *m = batch->context->multiplex;
    sample *s = &m->samples[range];
    if (s->record.launch != refused->launch)
        batch->listener->done(&s->record, "the driver refused another launch of its sample");
    s->dropped = true;
    take_out(m, range);
}

/* Values */

static bool pass_has_witness(uint32_t pass)
{
    const kprof_chip_metrics *metrics = kprof_the_batch.metrics;
    bool found = false;
    for (size_t w = 0; w < metrics->witnesses.count && pass < KPROF_WITNESS_PASSES; w++)
        found = found || (metrics->witness_passes[w] >> pass & 1);
    return found;
}

/* Witnesses of a counter that several passes have: evaluated after each, in the order in which a sample gets them. */
static kprof_status read_witnesses(struct kprof_multiplex *m)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_evaluations evaluations;
    if (!pass_has_witness(m->pass) || batch->count == 0)
        return KPROF_OK;
    kprof_status status = kprof_evaluations_make(batch->context->profiler, batch->metrics, batch->count, &evaluations);
    if (status != KPROF_OK)
        return status;
    for (size_t i = 0; i < evaluations.count; i++) {
        evaluations.items[i].range = batch->launches[i].range;
        memcpy(evaluations.items[i].witnesses, m->samples[batch->launches[i].range].witnesses,
               sizeof evaluations.items[i].witnesses);
    }
    kprof_evaluate_begin(&evaluations, m->pass, m->pass);
    kprof_evaluate_wait();
    for (size_t i = 0; i < evaluations.count; i++)
        memcpy(m->samples[evaluations.items[i].range].witnesses, evaluations.items[i].witnesses,
               sizeof evaluations.items[i].witnesses);
    kprof_evaluations_free(&evaluations);
    return KPROF_OK;
}

kprof_status kprof_multiplex_read_window(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    struct kprof_multiplex *m = batch->context->multiplex;
    kprof_status status = kprof_engine.device->profiler_decode(batch->context->profiler, m->sample_count);
    return status == KPROF_OK ? read_witnesses(m) : status;
}

/* `metrics`: of the context's chip. */
static void deliver_sample(const kprof_chip_metrics *metrics, sample *s, kprof_evaluation *e)
{
    char reason[sizeof s->why + sizeof s->note + 128];
    uint32_t passes = (uint32_t)__builtin_popcountll(s->passes);
    snprintf(reason, sizeof reason, "%s", s->why);
    if (passes < metrics->pass_count)
        snprintf(reason, sizeof reason, "measured in %u of %u passes, as no more equal launches came%s%s", passes,
                 metrics->pass_count, *s->why ? ": " : "", s->why);
    if (*s->note) {
        size_t length = strlen(reason);
        snprintf(reason + length, sizeof reason - length, "%s%s", length > 0 ? "; " : "", s->note);
    }
    if (e->status == KPROF_OK) {
        s->record.mode = KPROF_REPLAY_MULTIPLEX;
        s->record.pass_count = passes;
    }
    memcpy(e->witnesses, s->witnesses, sizeof e->witnesses);
    kprof_deliver(metrics, e, &s->record, reason);
}

/* Evaluate the samples numbers[count], and tell of them. */
static void deliver_samples(kprof_profiled_context *context, const size_t *numbers, size_t count)
{
    struct kprof_multiplex *m = context->multiplex;
    kprof_evaluations evaluations;
    kprof_status status = kprof_evaluations_make(context->profiler, context->metrics, count, &evaluations);
    for (size_t i = 0; status == KPROF_OK && i < count; i++)
        evaluations.items[i].range = numbers[i];
    if (status == KPROF_OK) {
        kprof_evaluate_begin(&evaluations, 0, KPROF_ALL_PASSES);
        kprof_evaluate_wait();
    }
    for (size_t i = 0; i < count; i++) {
        sample *s = &m->samples[numbers[i]];
        if (status == KPROF_OK)
            deliver_sample(context->metrics, s, &evaluations.items[i]);
        else
            kprof_the_batch.listener->done(&s->record, kprof_process_reason(status));
        s->dropped = true;
    }
    if (status == KPROF_OK)
        kprof_evaluations_free(&evaluations);
    if (status == KPROF_OK && count == 1 && m->sample_count == 1)
        kprof_deliver_image(context->profiler, &m->samples[numbers[0]].record);
}

void kprof_multiplex_keep_note(size_t range)
{
    kprof_open_batch *batch = &kprof_the_batch;
    sample *s = &batch->context->multiplex->samples[range];
    if (!*s->note)
        memcpy(s->note, batch->note, sizeof s->note);
    batch->note[0] = '\0';
}

/* A launch that is not the first of its sample has its counters there. */
static void deliver_contribution(const sample *s, kprof_launch_record *record)
{
    char reason[128];
    snprintf(reason, sizeof reason,
             "multiplexed: its counters are part of the values of the process's launch at position %llu",
             (unsigned long long)s->record.launch);
    record->mode = KPROF_REPLAY_MULTIPLEX;
    record->pass_count = 1;
    kprof_the_batch.listener->done(record, reason);
}

void kprof_multiplex_deliver(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    struct kprof_multiplex *m = batch->context->multiplex;
    size_t *complete = calloc(batch->count + 1, sizeof *complete), count = 0;
    uint32_t pass_count = batch->metrics->pass_count;
    uint64_t all_passes = pass_count == 64 ? UINT64_MAX : (UINT64_C(1) << pass_count) - 1;
    for (size_t i = 0; i < batch->count; i++) {
        const kprof_open_launch *launch = &batch->launches[i];
        sample *s = &m->samples[launch->range];
        s->record.profile_ns += launch->record.profile_ns;
        if (launch->record.launch != s->record.launch)
            deliver_contribution(s, &batch->launches[i].record);
        if (complete && s->passes == all_passes) {
            take_out(m, launch->range);
            s->group->complete++;
            complete[count++] = launch->range;
        }
    }
    if (count > 0)
        deliver_samples(batch->context, complete, count);
    free(complete);
}

/* No sample is open, or has a number, any more. */
static void forget_samples(struct kprof_multiplex *m)
{
    for (size_t i = 0; i < m->sample_count; i++) {
        if (!m->samples[i].group)
            continue;
        m->samples[i].group->open = 0;
        m->samples[i].group->first_open = NONE;
    }
    m->sample_count = 0;
    m->since_full = 0;
    m->measures = false;
}

void kprof_multiplex_deliver_reason(const char *reason)
{
    kprof_open_batch *batch = &kprof_the_batch;
    struct kprof_multiplex *m = batch->context->multiplex;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->launches[i].record.launch != m->samples[batch->launches[i].range].record.launch)
            batch->listener->done(&batch->launches[i].record, reason);
    for (size_t i = 0; i < m->sample_count; i++)
        if (!m->samples[i].dropped)
            batch->listener->done(&m->samples[i].record, reason);
    forget_samples(m);
}

void kprof_multiplex_end(kprof_profiled_context *context)
{
    struct kprof_multiplex *m = context->multiplex;
    if (!m || !m->measures)
        return;
    size_t *open = calloc(m->sample_count + 1, sizeof *open), count = 0;
    for (size_t i = 0; i < m->sample_count; i++)
        if (!m->samples[i].dropped && open)
            open[count++] = i;
    if (count > 0)
        deliver_samples(context, open, count);
    free(open);
    forget_samples(m);
}

void kprof_multiplex_free(kprof_profiled_context *context)
{
    struct kprof_multiplex *m = context->multiplex;
    if (!m)
        return;
    kprof_multiplex_end(context);
    for (size_t i = 0; i < m->slot_count; i++)
        free(m->slots[i]);
    free(m->slots);
    free(m->samples);
    free(m);
    context->multiplex = NULL;
}
