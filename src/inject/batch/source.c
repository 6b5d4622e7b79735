/* Chooses the launches that each replay measures, one replay after the other, and keeps their records. */
#include "inject/batch/source.h"

#include "core/monotonic.h"
#include "inject/batch/caches.h"
#include "inject/cubins.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/process.h"
#include "inject/samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A launch has at most this many samples. Launches up to 2^SAME_PERIOD times shorter share its period, and still have
 * about a thousand samples; even shorter ones have a replay of their own. */
#define MOST_SAMPLES 100000
#define SAME_PERIOD  6

/* A record holds as many values of a function: a spool takes none that is larger than 256 MiB. */
#define MOST_VALUES ((size_t)1 << 24)

/* Until the launches' own records are written, keep no more than this. */
#define MOST_BYTES ((size_t)512 << 20)

/* A launch that has fewer samples in its own run has a shorter period the next time, if there is one. */
#define FEW_SAMPLES 1000

bool kprof_source_is_wanted(kprof_source_kind kind)
{
    const kprof_config *config = &kprof_engine.process.config;
    return kind == KPROF_COUNTED ? config->instruction_metrics.count > 0 : config->samples;
}

static void note(kprof_source *source, kprof_source_kind kind, const char *reason)
{
    if (!source->reasons[kind][0])
        snprintf(source->reasons[kind], sizeof source->reasons[kind], "%s", reason);
}

void kprof_source_note(kprof_source *source, const char *reason)
{
    note(source, KPROF_COUNTED, reason);
    note(source, KPROF_SAMPLED, reason);
}

/* Why the launch has nothing of the kind. */
static kprof_record make_lack(const kprof_open_launch *launch, kprof_source_kind kind, const char *reason)
{
    return (kprof_record){
        .type = KPROF_RECORD_INSTRUCTIONS,
        .instructions = {.launch = launch->record.launch, .sampled = kind == KPROF_SAMPLED, .reason = reason}};
}

/* Tell why a launch has nothing of the kind. */
static void lack(kprof_source *source, kprof_open_launch *launch, const char *reason)
{
    kprof_kept *added = kprof_kept_new(reason, 0);
    if (!added)
        return; /* the kind has a reason, which is reported */
    added->record = make_lack(launch, source->kind, added->text);
    launch->told |= 1u << source->kind;
    kprof_kept_add(&source->kept, added, 0);
}

static int compare_instructions(const void *left, const void *right)
{
    const kprof_instruction *a = left, *b = right;
    int order = KPROF_COMPARE(a->crc, b->crc);
    if (order == 0)
        order = strcmp(a->function, b->function);
    return order ? order : KPROF_COMPARE(a->offset, b->offset);
}

static bool is_same_function(const kprof_instruction *a, const kprof_instruction *b)
{
    return a->crc == b->crc && strcmp(a->function, b->function) == 0;
}

/* Copy the first `count` of instructions that are sorted, all of one function, with one row for each. */
static kprof_kept *pack(const kprof_source *source, const kprof_instruction *items, size_t count,
                        const kprof_instruction_data *data)
{
    const size_t width = 1 + data->name_count;
    const bool sampled = source->kind == KPROF_SAMPLED;
    size_t rows = 0;
    kprof_kept *packed = kprof_kept_new(items->function, count * width);
    if (!packed)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        rows += i == 0 || items[i].offset != items[i - 1].offset;
        double *row = packed->values + (rows - 1) * width;
        row[0] = (double)items[i].offset;
        for (size_t k = 0; k < data->name_count; k++)
            row[1 + k] += items[i].values[k];
    }
    packed->record = (kprof_record){.type = KPROF_RECORD_INSTRUCTIONS,
                                    .instructions = {.function = packed->text,
                                                     .crc = items->crc,
                                                     .sampled = sampled,
                                                     .period_cycles = sampled ? UINT64_C(1) << source->period : 0,
                                                     .names = data->names,
                                                     .name_count = (uint32_t)data->name_count,
                                                     .values = packed->values,
                                                     .value_count = (uint32_t)(rows * width)}};
    return packed;
}

static void keep_sorted(kprof_source *source, kprof_open_launch *launch, const kprof_instruction_data *data,
                        const kprof_instruction *items)
{
    const size_t most = MOST_VALUES / (1 + data->name_count);
    for (size_t i = 0, end; i < data->count; i = end) {
        end = i + 1;
        while (end < data->count && end - i < most && is_same_function(&items[i], &items[end]))
            end++;
        kprof_kept *packed = pack(source, &items[i], end - i, data);
        if (!packed) {
            lack(source, launch, "no memory for what was measured of its instructions");
            return;
        }
        packed->record.instructions.launch = launch->record.launch;
        packed->record.instructions.dropped = i == 0 ? data->dropped : 0; /* of the launch, reported once */
        launch->told |= 1u << source->kind;
        kprof_kept_add(&source->kept, packed, packed->record.instructions.value_count);
    }
}

static void keep(kprof_source *source, kprof_open_launch *launch, const kprof_instruction_data *data)
{
    if (data->count == 0) {
        lack(source, launch, "CUPTI counted no instruction of the launch");
        return;
    }
    if (source->kept.bytes > MOST_BYTES) {
        lack(source, launch, "the launches before it in its batch have as many instructions as kprof keeps");
        return;
    }
    kprof_instruction *items = malloc(data->count * sizeof *items);
    if (!items) {
        lack(source, launch, "no memory for what was measured of its instructions");
        return;
    }
    memcpy(items, data->items, data->count * sizeof *items);
    qsort(items, data->count, sizeof *items, compare_instructions);
    keep_sorted(source, launch, data, items);
    free(items);
}

/* `status` is that of reading the data. */
static void keep_or_lack(kprof_source *source, kprof_open_launch *launch, kprof_status status,
                         const kprof_instruction_data *data)
{
    if (status == KPROF_OK)
        keep(source, launch, data);
    else
        lack(source, launch, kprof_process_reason(status));
}

/* Counters */

/* If a profiler had an object meanwhile that has run a pass, CUPTI could decode no pass of its next object. */
static kprof_status enable_counters(kprof_source *source, const kprof_batch_state *state)
{
    kprof_profiled_context *context = state->context;
    const kprof_instructions_place place = {.context = context->context,
                                            .device = context->device,
                                            .chip = state->metrics->chip,
                                            .names = &kprof_engine.process.config.instruction_metrics};
    kprof_status status =
        context->instructions ? KPROF_OK : kprof_engine.device->instructions_open(&place, &context->instructions);
    KPROF_THEN(status, kprof_engine.device->target_synchronize());
    kprof_samples_end(context->samples);
    kprof_engine.device->profiler_release(context->profiler);
    KPROF_THEN(status, kprof_engine.device->instructions_enable(context->instructions));
    source->enabled = status == KPROF_OK;
    source->dirty = true;
    return status;
}

static void end_counters(kprof_source *source, const kprof_batch_state *state)
{
    if (source->enabled && kprof_engine.device->instructions_disable(state->context->instructions) != KPROF_OK)
        note(source, KPROF_COUNTED, kprof_process_reason(KPROF_INTERNAL));
    source->enabled = false;
}

/* Kernels of kprof's own, and launches that nobody chose, count as well. */
static kprof_status run_counted(kprof_source *source, const kprof_batch_state *state, kprof_open_launch *launch)
{
    const kprof_device_ops *device = kprof_engine.device;
    kprof_instructions *instructions = state->context->instructions;
    kprof_instruction_data data;
    kprof_status read = source->dirty ? device->target_synchronize() : KPROF_OK;
    if (source->dirty && read == KPROF_OK)
        read = device->instructions_read(instructions, &data);
    source->dirty = true;
    kprof_status status = device->operation_run(launch->operation, state->context->snapshot);
    KPROF_THEN(status, device->target_synchronize());
    if (status != KPROF_OK)
        return status;
    KPROF_THEN(read, device->instructions_read(instructions, &data));
    source->dirty = read != KPROF_OK;
    keep_or_lack(source, launch, read, &data);
    return KPROF_OK;
}

/* Samples */

/* Choose the shortest period in which a launch has no more samples than it should. `cycles`: the number of samples that
 * it would have with one a cycle. */
static uint32_t choose_period_for(double cycles)
{
    double samples = cycles / (1 << KPROF_SHORTEST_PERIOD);
    uint32_t period = KPROF_SHORTEST_PERIOD;
    for (; samples > MOST_SAMPLES && period < KPROF_LONGEST_PERIOD; period++)
        samples /= 2;
    return period;
}

/* Each SM takes a sample in a period. */
static uint32_t choose_period(const kprof_batch_state *state, int64_t duration_ns)
{
    const kprof_device *device = kprof_devices_find(state->context->context);
    const double khz = device && device->record.sm_clock_max_khz ? device->record.sm_clock_max_khz : 2e6;
    const double sms = device && device->record.sm_count ? device->record.sm_count : 1;
    return choose_period_for((double)duration_ns * khz * 1e-6 * sms);
}

static kprof_status run_timed(const kprof_batch_state *state, kprof_open_launch *launch)
{
    kprof_status status = kprof_engine.device->target_synchronize();
    int64_t lap_ns = kprof_monotonic_ns();
    KPROF_THEN(status, kprof_engine.device->operation_run(launch->operation, state->context->snapshot));
    KPROF_THEN(status, kprof_engine.device->target_synchronize());
    if (status == KPROF_OK)
        launch->period = choose_period(state, kprof_monotonic_ns() - lap_ns);
    return status;
}

/* Are the launch's instructions measured? Not those of a graph as a whole. */
static bool is_measured(const kprof_open_launch *launch)
{
    return launch->chosen && !kprof_launch_is_graph(&launch->record);
}

/* The first round counts, too: it only times launches, or has the period that the user gives. */
static size_t most_rounds(void)
{
    const size_t passes = kprof_engine.process.config.sampling_passes;
    return (passes ? passes : KPROF_SAMPLING_PASSES) + 1;
}

static bool is_in_round(const kprof_source *source, const kprof_open_launch *launch)
{
    return is_measured(launch) && launch->period > 0 &&
           (source->rounds >= most_rounds() || launch->period + SAME_PERIOD > source->period);
}

static kprof_status run_sampled(kprof_source *source, kprof_batch_state *state, kprof_open_launch *launch)
{
    const kprof_device_ops *device = kprof_engine.device;
    kprof_pc_samples *samples = state->context->pc_samples;
    kprof_instruction_data data;
    kprof_caches_clear(state, device->snapshot_stream(state->context->snapshot));
    kprof_status status = device->target_synchronize();
    if (status != KPROF_OK)
        return status;
    kprof_status sampled = device->pc_samples_start(samples);
    const bool started = sampled == KPROF_OK;
    status = device->operation_run(launch->operation, state->context->snapshot);
    KPROF_THEN(status, device->target_synchronize());
    if (started)
        sampled = device->pc_samples_stop(samples);
    if (status != KPROF_OK)
        return status;
    KPROF_THEN(sampled, device->pc_samples_read(samples, &data));
    keep_or_lack(source, launch, sampled, &data);
    return KPROF_OK;
}

/* If samples that had been started are still enabled when a pass begins, CUPTI ends the process. So if CUPTI does not
 * disable them, measure nothing any more. */
static void end_samples(const kprof_profiled_context *context)
{
    kprof_status status = kprof_engine.device->pc_samples_disarm(context->pc_samples);
    if (status != KPROF_OK)
        kprof_process_disarm(status, "samples of the program counter cannot be ended");
}

/* Begin the round of the launches that take the longest period of those that are left. A profiler's object that has run
 * a pass would keep all samples away. */
static bool begin_round(kprof_source *source, kprof_batch_state *state)
{
    kprof_profiled_context *context = state->context;
    uint32_t longest = 0;
    for (size_t i = 0; i < state->list.count; i++)
        if (state->list.items[i].chosen && state->list.items[i].period > longest)
            longest = state->list.items[i].period;
    if (longest == 0 || source->rounds >= most_rounds())
        return false;
    source->rounds++;
    source->kind = KPROF_SAMPLED;
    source->period = longest;
    kprof_samples_end(context->samples);
    kprof_engine.device->profiler_release(context->profiler);
    context->own_period = 0;
    kprof_status status = kprof_engine.device->pc_samples_arm(context->pc_samples, longest);
    if (status != KPROF_OK)
        note(source, KPROF_SAMPLED, kprof_process_reason(status));
    return status == KPROF_OK;
}

/* Set the period of each launch. If the user gives none, return true: a replay is to tell how long launches take. */
static bool choose_periods(kprof_source *source, kprof_batch_state *state)
{
    source->rounds++; /* that of the times is the first */
    source->kind = KPROF_TIMED;
    const uint32_t period = (uint32_t)kprof_engine.process.config.sampling_period;
    for (size_t i = 0; i < state->list.count; i++)
        state->list.items[i].period = is_measured(&state->list.items[i]) ? period : 0;
    return period == 0;
}

static bool next_samples(kprof_source *source, kprof_batch_state *state)
{
    kprof_profiled_context *context = state->context;
    if (!context->pc_samples)
        note(source, KPROF_SAMPLED, context->pc_samples_reason);
    bool goes_on = !source->reasons[KPROF_SAMPLED][0];
    if (goes_on && source->rounds == 0 && choose_periods(source, state))
        return true;
    goes_on = goes_on && begin_round(source, state);
    if (!goes_on && source->kind == KPROF_SAMPLED && source->rounds > 1)
        end_samples(context);
    return goes_on;
}

static bool next_counters(kprof_source *source, const kprof_batch_state *state)
{
    if (source->rounds++ == 0) {
        kprof_status status = enable_counters(source, state);
        if (status == KPROF_OK)
            return true;
        note(source, KPROF_COUNTED, kprof_process_reason(status));
    }
    end_counters(source, state);
    return false;
}

void kprof_source_begin(kprof_source *source, kprof_source_kind kind)
{
    source->kind = kind;
    source->rounds = 0;
    source->period = 0;
}

bool kprof_source_next(kprof_source *source, kprof_batch_state *state)
{
    if (source->kind == KPROF_COUNTED)
        return kprof_source_is_wanted(KPROF_COUNTED) && next_counters(source, state);
    return kprof_source_is_wanted(KPROF_SAMPLED) && next_samples(source, state);
}

kprof_status kprof_source_run(kprof_source *source, kprof_batch_state *state, kprof_open_launch *launch)
{
    if (is_measured(launch) && source->kind == KPROF_COUNTED)
        return run_counted(source, state, launch);
    if (is_measured(launch) && source->kind == KPROF_TIMED)
        return run_timed(state, launch);
    if (source->kind == KPROF_SAMPLED && is_in_round(source, launch))
        return run_sampled(source, state, launch);
    source->dirty = true;
    return kprof_engine.device->operation_run(launch->operation, state->context->snapshot);
}

void kprof_source_end(kprof_source *source, kprof_batch_state *state, kprof_status status)
{
    if (status != KPROF_OK)
        note(source, source->kind == KPROF_COUNTED ? KPROF_COUNTED : KPROF_SAMPLED, kprof_process_reason(status));
    for (size_t i = 0; i < state->list.count && source->kind == KPROF_SAMPLED; i++)
        if (is_in_round(source, &state->list.items[i]))
            state->list.items[i].period = 0;
}

/* Own runs */

static uint32_t own_period(const kprof_source *source)
{
    const uint32_t asked = (uint32_t)kprof_engine.process.config.sampling_period;
    if (asked)
        return asked;
    return source->group->period ? source->group->period : KPROF_FIRST_PERIOD;
}

/* Samples stay enabled for the launches behind this one that have the same period: to enable them takes 130 ms. */
static kprof_status begin_own_samples(kprof_source *source, kprof_batch_state *state, void *stream)
{
    kprof_profiled_context *context = state->context;
    const kprof_device_ops *device = kprof_engine.device;
    kprof_status status = KPROF_OK;
    source->period = own_period(source);
    if (!context->pc_samples)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s", context->pc_samples_reason);
    kprof_samples_end(context->samples);
    device->profiler_release(context->profiler);
    if (context->own_period != source->period)
        status = device->pc_samples_arm(context->pc_samples, source->period);
    context->own_period = status == KPROF_OK ? source->period : 0;
    kprof_caches_clear(state, stream);
    KPROF_THEN(status, device->target_synchronize());
    return KPROF_THEN(status, device->pc_samples_start(context->pc_samples));
}

/* First read what kprof's own kernels have counted. */
static kprof_status begin_own_counters(kprof_source *source, kprof_batch_state *state)
{
    kprof_instruction_data others;
    if (state->context->own_period)
        kprof_contexts_arm(state->context); /* they had been started */
    kprof_status status = enable_counters(source, state);
    KPROF_THEN(status, kprof_engine.device->instructions_read(state->context->instructions, &others));
    if (status != KPROF_OK)
        end_counters(source, state);
    return status;
}

void kprof_source_begin_own(kprof_source *source, kprof_batch_state *state, kprof_group *group, void *stream)
{
    source->group = group;
    kprof_status status =
        source->kind == KPROF_SAMPLED ? begin_own_samples(source, state, stream) : begin_own_counters(source, state);
    source->begun_ns = kprof_monotonic_ns();
    if (status == KPROF_OK)
        return;
    lack(source, &state->list.items[0], kprof_process_reason(status));
    group->instructed[source->kind].failed++;
    source->group = NULL;
}

static double count_samples(const kprof_instruction_data *data)
{
    double sum = 0;
    for (size_t k = 0; k < data->name_count; k++) {
        if (kprof_ends_with(data->names[k], "_not_issued")) /* once a name, as launches wait meanwhile */
            continue;
        for (size_t i = 0; i < data->count; i++)
            sum += data->items[i].values[k];
    }
    return sum;
}

/* Tell whether the samples are enough, and choose the period of the group's next ones. */
static bool note_samples(const kprof_source *source, const kprof_batch_state *state, kprof_status status,
                         const kprof_instruction_data *data)
{
    const int64_t duration_ns = kprof_monotonic_ns() - source->begun_ns;
    const double samples = status == KPROF_OK ? count_samples(data) : 0;
    source->group->period =
        samples > 0 ? choose_period_for(ldexp(samples, (int)source->period)) : choose_period(state, duration_ns);
    return samples >= FEW_SAMPLES || (samples > 0 && own_period(source) >= source->period);
}

static void note_own(kprof_source *source, kprof_batch_state *state, kprof_status status,
                     const kprof_instruction_data *data)
{
    kprof_instructed *instructed = &source->group->instructed[source->kind];
    bool is_enough = status == KPROF_OK && data->count > 0;
    keep_or_lack(source, &state->list.items[0], status, data);
    if (source->kind == KPROF_SAMPLED)
        is_enough = note_samples(source, state, status, data);
    *(is_enough ? &instructed->measured : &instructed->failed) += 1;
}

void kprof_source_end_own(kprof_source *source, kprof_batch_state *state, const char *lost)
{
    kprof_instruction_data data = {0};
    kprof_open_launch *launch = state->list.count > 0 ? &state->list.items[0] : NULL; /* else the driver refused it */
    kprof_status status = KPROF_OK;
    if (!source->group)
        return;
    if (source->kind == KPROF_SAMPLED)
        status = kprof_engine.device->pc_samples_stop(state->context->pc_samples);
    if (status == KPROF_OK && launch && !lost)
        status = source->kind == KPROF_SAMPLED
                     ? kprof_engine.device->pc_samples_read(state->context->pc_samples, &data)
                     : kprof_engine.device->instructions_read(state->context->instructions, &data);
    if (launch && lost)
        lack(source, launch, lost);
    else if (launch)
        note_own(source, state, status, &data);
    end_counters(source, state);
    source->group = NULL;
}

/* A graph has nothing, whatever came of its batch. */
static void write_reason(const kprof_open_launch *launch, kprof_source_kind kind, const char *reason)
{
    kprof_record record = make_lack(launch, kind, is_measured(launch) ? reason : KPROF_OF_A_GRAPH);
    kprof_process_write(&record);
}

void kprof_source_deliver(kprof_source *source, const kprof_batch_state *state)
{
    const char *usual = state->kind == KPROF_INSTRUCTED ? KPROF_IN_ANOTHER : KPROF_ONLY_IN_REPLAYS;
    for (kprof_kept *kept = source->kept.first; kept; kept = kept->next) {
        kprof_instructions_record *told = &kept->record.instructions;
        if (!told->reason)
            told->crc = kprof_cubins_tell(told->crc, told->function);
        kprof_process_write(&kept->record);
    }
    for (size_t i = 0; i < state->list.count; i++)
        for (unsigned kind = 0; kind < KPROF_SOURCE_KINDS; kind++)
            if (state->list.items[i].chosen && kprof_source_is_wanted(kind) &&
                !(state->list.items[i].told & 1u << kind))
                write_reason(&state->list.items[i], kind, *source->reasons[kind] ? source->reasons[kind] : usual);
}

void kprof_source_free(kprof_source *source)
{
    kprof_kept_free(&source->kept);
    *source = (kprof_source){0};
}
