/* Groups launches by kernel and shape, makes samples of them, and reports the samples. */
#include "inject/samples.h"

#include "core/bytes.h"
#include "inject/engine.h"
#include "inject/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE KPROF_NO_SAMPLE

/* Launches of a group in one window: one until a sample is complete, so that short programs get one, then more. */
#define MOST_IN_WINDOW    16
#define MORE_PER_COMPLETE 3
/* Tell at most this many kernels and shapes apart, and do not measure launches of others. */
#define MOST_GROUPS ((size_t)1 << 16)

static kprof_shape shape_of(const kprof_batch_launch *launch)
{
    kprof_shape out;
    memset(&out, 0, sizeof out); /* compared byte by byte */
    out.kernel = launch->kernel;
    memcpy(out.grid, launch->record.grid, sizeof out.grid);
    memcpy(out.block, launch->record.block, sizeof out.block);
    memcpy(out.cluster, launch->record.cluster, sizeof out.cluster);
    out.dynamic_smem_bytes = launch->record.dynamic_smem_bytes;
    return out;
}

static kprof_group **find_slot(kprof_group **slots, size_t count, const kprof_shape *wanted)
{
    uint64_t hash = kprof_hash(KPROF_HASH_START, wanted, sizeof *wanted);
    size_t i = (hash ^ hash >> 32) & (count - 1);
    while (slots[i] && memcmp(&slots[i]->shape, wanted, sizeof *wanted) != 0)
        i = (i + 1) & (count - 1);
    return &slots[i];
}

static bool grow_slots(kprof_samples *samples)
{
    size_t count = samples->slot_count ? 2 * samples->slot_count : 64;
    kprof_group **slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < samples->slot_count; i++)
        if (samples->slots[i])
            *find_slot(slots, count, &samples->slots[i]->shape) = samples->slots[i];
    free(samples->slots);
    samples->slots = slots;
    samples->slot_count = count;
    return true;
}

kprof_status kprof_samples_make(kprof_samples **samples, size_t capacity)
{
    if (!*samples && !(*samples = calloc(1, sizeof **samples)))
        return kprof_fail(KPROF_NO_MEMORY, "no memory to measure launches in one pass each");
    kprof_sample *items = realloc((*samples)->items, capacity * sizeof *items);
    if (!items)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to measure launches in one pass each");
    (*samples)->items = items;
    (*samples)->capacity = capacity;
    return KPROF_OK;
}

kprof_group *kprof_samples_find_group(const kprof_samples *samples, const kprof_batch_launch *launch)
{
    kprof_shape wanted = shape_of(launch);
    return samples && samples->slot_count > 0 ? *find_slot(samples->slots, samples->slot_count, &wanted) : NULL;
}

kprof_group *kprof_samples_get_group(kprof_samples *samples, const kprof_batch_launch *launch)
{
    kprof_shape wanted = shape_of(launch);
    kprof_group *known = kprof_samples_find_group(samples, launch);
    if (known || samples->group_count == MOST_GROUPS)
        return known;
    if (2 * samples->group_count >= samples->slot_count && !grow_slots(samples))
        return NULL;
    kprof_group **slot = find_slot(samples->slots, samples->slot_count, &wanted);
    if (!(*slot = calloc(1, sizeof **slot)))
        return NULL;
    samples->group_count++;
    **slot = (kprof_group){.shape = wanted, .first_open = NONE};
    return *slot;
}

bool kprof_samples_are_enough(const kprof_group *group)
{
    return group->complete + atomic_load(&group->shape.kernel->repeated) >=
           kprof_engine.process.config.multiplex_samples;
}

bool kprof_samples_need_no_turns(const kprof_samples *samples, const kprof_group *group)
{
    return group->shape.kernel->is_range && samples->metrics && samples->metrics->pass_count == 1;
}

static uint32_t most_in_window(const kprof_samples *samples, const kprof_group *group)
{
    if (kprof_samples_need_no_turns(samples, group))
        return UINT32_MAX;
    uint32_t most = 1 + MORE_PER_COMPLETE * group->complete;
    return most < MOST_IN_WINDOW ? most : MOST_IN_WINDOW;
}

bool kprof_samples_had_turn(const kprof_samples *samples, const kprof_group *group)
{
    uint32_t measured = group->window == samples->windows ? group->in_window : 0;
    return measured >= most_in_window(samples, group);
}

/* Return an open sample of the group that lacks the window's pass; NONE: there is none. */
static size_t find_lacking(const kprof_samples *samples, const kprof_group *group)
{
    size_t i = group->first_open;
    while (i != NONE && (samples->items[i].passes >> samples->pass & 1))
        i = samples->items[i].next_open;
    return i;
}

/* One range is for the proof of a batch. */
bool kprof_samples_are_full(const kprof_samples *samples)
{
    return samples->count + samples->proved >= samples->capacity;
}

bool kprof_samples_lack_pass(const kprof_samples *samples, const kprof_group *group)
{
    if (find_lacking(samples, group) != NONE)
        return true;
    const uint32_t most = kprof_engine.process.config.multiplex_samples; /* a further sample may begin */
    return group->open < most_in_window(samples, group) && group->complete + group->open < most &&
           !kprof_samples_are_full(samples);
}

size_t kprof_samples_take(kprof_samples *samples, const kprof_batch_launch *launch, const char *why)
{
    kprof_group *group = kprof_samples_get_group(samples, launch);
    size_t number = find_lacking(samples, group);
    if (number == NONE) {
        number = samples->count++;
        kprof_sample *s = &samples->items[number];
        *s = (kprof_sample){.group = group, .next_open = group->first_open, .record = launch->record};
        snprintf(s->why, sizeof s->why, "%s", why);
        group->first_open = number;
        group->open++;
    }
    samples->items[number].passes |= UINT64_C(1) << samples->pass;
    group->in_window = group->window == samples->windows ? group->in_window + 1 : 1;
    group->window = samples->windows;
    return number;
}

bool kprof_samples_have_all(const kprof_samples *samples, size_t range)
{
    const uint32_t count = samples->metrics->pass_count;
    return samples->items[range].passes == (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1);
}

/* Take a sample out of the list of open ones. */
static void take_out(kprof_samples *samples, size_t number)
{
    kprof_group *group = samples->items[number].group;
    size_t *link = &group->first_open;
    while (*link != number)
        link = &samples->items[*link].next_open;
    *link = samples->items[number].next_open;
    group->open--;
}

void kprof_samples_drop(kprof_samples *samples, size_t range, const kprof_launch_record *lost, const char *why)
{
    kprof_sample *s = &samples->items[range];
    if (s->record.launch != lost->launch)
        kprof_deliver_launch(&s->record, why);
    s->dropped = true;
    take_out(samples, range);
}

void kprof_samples_note_complete(kprof_samples *samples, size_t range)
{
    take_out(samples, range);
    samples->items[range].group->complete++;
}

static void deliver_sample(const kprof_chip_metrics *metrics, kprof_sample *s, kprof_evaluation *e)
{
    char reason[sizeof s->why + sizeof s->note + 128];
    uint32_t passes = (uint32_t)__builtin_popcountll(s->passes);
    snprintf(reason, sizeof reason, "%s", s->why);
    if (passes < metrics->pass_count)
        snprintf(reason, sizeof reason, "measured in %u of %u passes, as no more equal %s came%s%s", passes,
                 metrics->pass_count, s->group->shape.kernel->is_range ? "ranges" : "launches", *s->why ? ": " : "",
                 s->why);
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

void kprof_samples_deliver(kprof_samples *samples, const size_t *numbers, size_t count)
{
    kprof_evaluations evaluations;
    kprof_status status = kprof_evaluations_make(samples->profiler, samples->metrics, count, &evaluations);
    for (size_t i = 0; status == KPROF_OK && i < count; i++)
        evaluations.items[i].range = numbers[i];
    if (status == KPROF_OK) {
        kprof_evaluate_begin(&evaluations, 0, KPROF_ALL_PASSES);
        kprof_evaluate_wait();
    }
    for (size_t i = 0; i < count; i++) {
        kprof_sample *s = &samples->items[numbers[i]];
        if (status == KPROF_OK)
            deliver_sample(samples->metrics, s, &evaluations.items[i]);
        else
            kprof_deliver_launch(&s->record, kprof_process_reason(status));
        s->dropped = true;
    }
    if (status == KPROF_OK)
        kprof_evaluations_free(&evaluations);
    if (status == KPROF_OK && count == 1 && samples->count == 1)
        kprof_deliver_image(samples->profiler, &samples->items[numbers[0]].record);
}

void kprof_samples_forget(kprof_samples *samples)
{
    for (size_t i = 0; i < samples->count; i++) {
        if (!samples->items[i].group)
            continue;
        samples->items[i].group->open = 0;
        samples->items[i].group->first_open = NONE;
    }
    samples->count = 0;
    samples->since_full = 0;
    samples->measures = false;
}

void kprof_samples_end(kprof_samples *samples)
{
    if (!samples || !samples->measures)
        return;
    size_t *open = calloc(samples->count + 1, sizeof *open), count = 0;
    for (size_t i = 0; i < samples->count; i++)
        if (!samples->items[i].dropped && open)
            open[count++] = i;
    if (count > 0)
        kprof_samples_deliver(samples, open, count);
    free(open);
    kprof_samples_forget(samples);
}

void kprof_samples_free(kprof_samples *samples)
{
    if (!samples)
        return;
    kprof_samples_end(samples);
    for (size_t i = 0; i < samples->slot_count; i++)
        free(samples->slots[i]);
    KPROF_FREE(samples->slots, samples->items, samples);
}
