/* Chooses the window that measures a launch, and reports the launches of a window when it closes. */
#include "inject/multiplex.h"

#include "inject/engine.h"
#include "inject/range.h"
#include "inject/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* While other processes of the run wait for the counters, go through all passes this often. */
#define TURN_ROUNDS 3
/* After the windows of a first sample, each lets this many more launches go by than the one before: starting and
 * stopping a pass takes 40 ms, and so the windows of 10,000 launches take 5 s at most. */
#define PATIENCE_PER_WINDOW 2
/* Groups that have no sample yet do not wait so: there are windows for the first samples of this many, one after the
 * other. Groups that take turns in a loop share them. */
#define PROMPT_GROUPS 16

/* Try no more after this many launches that could not be measured, or had few samples. */
#define MOST_FAILURES 3

/* Count and sample as many launches as there are samples of passes, so that all values come from launches of the same
 * time; but in steps that double, since each change takes 0.3 s. */
static uint32_t count_wanted(const kprof_group *group)
{
    const uint32_t most = kprof_engine.process.config.multiplex_samples;
    uint32_t wanted = 1;
    while (wanted <= group->complete && wanted < most)
        wanted *= 2;
    return wanted < most ? wanted : most;
}

static bool lacks_instructions(const kprof_group *group, kprof_source_kind kind)
{
    if (!kprof_source_is_wanted(kind))
        return false;
    return !group ||
           (group->instructed[kind].failed < MOST_FAILURES && group->instructed[kind].measured < count_wanted(group));
}

bool kprof_multiplex_wants_instructions(const kprof_profiled_context *context, const kprof_batch_launch *launch,
                                        kprof_source_kind *kind)
{
    const kprof_group *group = context ? kprof_samples_find_group(context->samples, launch) : NULL;
    const bool may_be = !launch->begins_range && !kprof_launch_is_graph(&launch->record) &&
                        kprof_engine.process.config.multiplex_samples > 0 &&
                        atomic_load(&launch->kernel->ends_alone) && /* CUPTI waits for it in the launch call */
                        atomic_load(&launch->kernel->timeouts) == 0;
    if (!may_be || (context && !kprof_multiplex_has_had_turn(context)))
        return false;
    *kind = lacks_instructions(group, KPROF_SAMPLED) ? KPROF_SAMPLED : KPROF_COUNTED;
    return lacks_instructions(group, *kind);
}

kprof_group *kprof_multiplex_group(kprof_profiled_context *context, const kprof_batch_launch *launch)
{
    if (!context->samples && kprof_samples_make(&context->samples, 1) != KPROF_OK)
        return NULL;
    return kprof_samples_get_group(context->samples, launch);
}

void kprof_multiplex_deliver_instructed(kprof_launch_record *record, kprof_source_kind kind, const char *note)
{
    char reason[KPROF_NOTE_BYTES + 128];
    snprintf(reason, sizeof reason,
             "multiplexed: its instructions %s; other launches of its kernel and shape have the rest%s%s",
             kind == KPROF_SAMPLED ? "were sampled" : "were counted", *note ? "; " : "", note);
    record->mode = KPROF_REPLAY_MULTIPLEX;
    record->pass_count = 1;
    kprof_deliver_launch(record, reason);
}

bool kprof_multiplex_wants(const kprof_profiled_context *context, const kprof_batch_launch *launch)
{
    const kprof_group *group = context ? kprof_samples_find_group(context->samples, launch) : NULL;
    return !group || !kprof_samples_are_enough(group);
}

kprof_turn kprof_multiplex_turn(const kprof_profiled_context *context, const kprof_batch_launch *launch)
{
    const kprof_group *group = kprof_samples_get_group(context->samples, launch);
    if (!group || kprof_samples_are_enough(group))
        return KPROF_TURN_NEVER;
    bool may = !kprof_samples_had_turn(context->samples, group) && kprof_samples_lack_pass(context->samples, group);
    return may ? KPROF_TURN_NOW : KPROF_TURN_LATER;
}

bool kprof_multiplex_wants_new_window(const kprof_profiled_context *context, const kprof_batch_launch *launch)
{
    kprof_samples *samples = context->samples;
    const kprof_group *group = kprof_samples_find_group(samples, launch);
    const size_t groups = samples->group_count < PROMPT_GROUPS ? samples->group_count : PROMPT_GROUPS;
    const size_t passes = context->metrics->pass_count, others = samples->windows - samples->prompt;
    const size_t patience = others <= passes ? 0 : (size_t)PATIENCE_PER_WINDOW * (others - passes);
    if (++samples->gone_by > patience || (group && kprof_samples_need_no_turns(samples, group)))
        return true;
    const bool is_prompt = group && group->complete == 0 && samples->prompt < groups * passes;
    samples->prompt += is_prompt;
    return is_prompt;
}

bool kprof_multiplex_is_open(const kprof_profiled_context *context)
{
    return context->samples && context->samples->measures && context->samples->count > 0;
}

bool kprof_multiplex_has_had_turn(const kprof_profiled_context *context)
{
    const kprof_samples *samples = context->samples;
    const bool lacks = samples && samples->measures &&
                       KPROF_ANY(i, samples->count, !samples->items[i].dropped && !kprof_samples_have_all(samples, i));
    return !lacks || samples->windows - samples->first_window > TURN_ROUNDS * context->metrics->pass_count;
}

/* Is there no space for a further sample, and is every sample complete that could be? */
static bool is_used_up(kprof_samples *samples)
{
    const bool is_full = kprof_samples_are_full(samples);
    const size_t passes = samples->metrics->pass_count;
    samples->since_full = is_full ? samples->since_full + 1 : 0;
    return is_full && samples->since_full > (kprof_range_is_asked_for() && passes == 1 ? 0 : passes);
}

bool kprof_multiplex_goes_on(const kprof_profiled_context *context)
{
    kprof_samples *samples = context->samples;
    if (samples && samples->measures &&
        (!kprof_engine.device->profiler_goes_on(context->profiler) || is_used_up(samples)))
        kprof_samples_end(samples);
    return samples && samples->measures;
}

kprof_status kprof_multiplex_begin(kprof_profiled_context *context, const kprof_measurement *wanted)
{
    if (context->metrics->pass_count > KPROF_SAMPLE_PASSES)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "launches that are not repeated can have %d passes at most; try --max-passes",
                          KPROF_SAMPLE_PASSES);
    kprof_status status = kprof_samples_make(&context->samples, wanted->ranges);
    KPROF_THEN(status, kprof_engine.device->profiler_begin(context->profiler, wanted));
    if (status != KPROF_OK)
        return status;
    kprof_samples *samples = context->samples;
    samples->profiler = context->profiler;
    samples->metrics = context->metrics;
    samples->measures = true;
    samples->first_window = samples->windows;
    samples->all_witnesses = wanted->all_witnesses;
    samples->proved = wanted->proved;
    return KPROF_OK;
}

kprof_status kprof_multiplex_open_window(const kprof_profiled_context *context, const kprof_batch_launch *opener)
{
    kprof_samples *samples = context->samples;
    const kprof_group *group = kprof_samples_find_group(samples, opener);
    samples->windows++;
    samples->gone_by = 0;
    kprof_status status = kprof_engine.device->profiler_next_pass(context->profiler, &samples->pass);
    for (uint32_t i = 1; i < context->metrics->pass_count && status == KPROF_OK; i++) {
        if (!group || kprof_samples_lack_pass(samples, group))
            break;
        status = kprof_engine.device->profiler_skip_pass(context->profiler);
        KPROF_THEN(status, kprof_engine.device->profiler_next_pass(context->profiler, &samples->pass));
    }
    return status;
}

bool kprof_multiplex_shares(kprof_batch_state *state, const kprof_measurement *wanted, size_t least)
{
    const kprof_profiled_context *context = state->context;
    const kprof_samples *samples = context->samples;
    if (kprof_engine.process.config.counter_data_dir) /* the image of a launch has that launch alone */
        return false;
    if (!samples || !samples->measures || !kprof_engine.device->profiler_goes_on(context->profiler) ||
        samples->proved != wanted->proved || samples->all_witnesses != wanted->all_witnesses ||
        samples->count + wanted->proved + least > samples->capacity)
        return false;
    size_t left = samples->capacity - samples->count - wanted->proved;
    state->ranges.first = state->ranges.count = samples->count;
    if (state->ranges.capacity > left)
        state->ranges.capacity = left;
    return true;
}

void kprof_multiplex_note_batch(const kprof_batch_state *state)
{
    kprof_samples *samples = state->context ? state->context->samples : NULL;
    if (!samples || !samples->measures || state->kind == KPROF_MULTIPLEXED)
        return;
    while (samples->count < state->ranges.count)
        samples->items[samples->count++] = (kprof_sample){.dropped = true};
}

void kprof_multiplex_keep_note(kprof_batch_state *state, size_t range)
{
    kprof_sample *s = &state->context->samples->items[range];
    if (!*s->note)
        memcpy(s->note, state->note, sizeof s->note);
    state->note[0] = '\0';
}

void kprof_multiplex_skip(const kprof_launch_record *record)
{
    kprof_launch_record skipped = *record;
    skipped.mode = KPROF_REPLAY_MULTIPLEX;
    kprof_deliver_launch(&skipped, "multiplexed: another pass than it lacks was under way, or its kernel and shape, or "
                                   "its range, had had their turn in that");
}

static bool pass_has_witness(const kprof_chip_metrics *metrics, uint32_t pass)
{
    return pass < KPROF_WITNESS_PASSES &&
           KPROF_ANY(w, metrics->witnesses.count, metrics->witness_passes[w] >> pass & 1);
}

/* Read counters that several passes have after each of these, in the order in which a sample gets them. */
static kprof_status read_witnesses(const kprof_batch_state *state)
{
    kprof_samples *samples = state->context->samples;
    kprof_evaluations evaluations;
    if (!pass_has_witness(state->metrics, samples->pass) || state->list.count == 0)
        return KPROF_OK;
    kprof_status status =
        kprof_evaluations_make(state->context->profiler, state->metrics, state->list.count, &evaluations);
    if (status != KPROF_OK)
        return status;
    for (size_t i = 0; i < evaluations.count; i++) {
        kprof_evaluation *e = &evaluations.items[i];
        e->range = state->list.items[i].range;
        memcpy(e->witnesses, samples->items[e->range].witnesses, sizeof e->witnesses);
    }
    kprof_evaluate_begin(&evaluations, samples->pass, samples->pass);
    kprof_evaluate_wait();
    for (size_t i = 0; i < evaluations.count; i++) {
        const kprof_evaluation *e = &evaluations.items[i];
        memcpy(samples->items[e->range].witnesses, e->witnesses, sizeof e->witnesses);
    }
    kprof_evaluations_free(&evaluations);
    return KPROF_OK;
}

kprof_status kprof_multiplex_read_window(const kprof_batch_state *state)
{
    const kprof_profiled_context *context = state->context;
    kprof_status status = kprof_engine.device->profiler_decode(context->profiler, context->samples->count);
    return KPROF_THEN(status, read_witnesses(state));
}

/* Report a launch whose counters are part of the sample of an earlier one. */
static void deliver_contribution(const kprof_sample *s, kprof_launch_record *record)
{
    char reason[160];
    snprintf(reason, sizeof reason,
             "multiplexed: its counters are part of the values of the process's %s at position %llu",
             s->group->shape.kernel->is_range ? "range that begins with the launch" : "launch",
             (unsigned long long)s->record.launch);
    record->mode = KPROF_REPLAY_MULTIPLEX;
    record->pass_count = 1;
    kprof_deliver_launch(record, reason);
}

void kprof_multiplex_deliver(const kprof_batch_state *state)
{
    kprof_samples *samples = state->context->samples;
    size_t *complete = calloc(state->list.count + 1, sizeof *complete), count = 0;
    for (size_t i = 0; i < state->list.count; i++) {
        kprof_open_launch *launch = &state->list.items[i];
        kprof_sample *s = &samples->items[launch->range];
        s->record.profile_ns += launch->record.profile_ns;
        if (launch->record.launch != s->record.launch)
            deliver_contribution(s, &launch->record);
        if (complete && kprof_samples_have_all(samples, launch->range)) {
            kprof_samples_note_complete(samples, launch->range);
            complete[count++] = launch->range;
        }
    }
    if (count > 0)
        kprof_samples_deliver(samples, complete, count);
    free(complete);
}

void kprof_multiplex_deliver_reason(const kprof_batch_state *state, const char *reason)
{
    kprof_samples *samples = state->context->samples;
    for (size_t i = 0; i < state->list.count; i++) {
        kprof_open_launch *launch = &state->list.items[i];
        if (launch->record.launch != samples->items[launch->range].record.launch)
            kprof_deliver_launch(&launch->record, reason);
    }
    for (size_t i = 0; i < samples->count; i++)
        if (!samples->items[i].dropped)
            kprof_deliver_launch(&samples->items[i].record, reason);
    kprof_samples_forget(samples);
}
