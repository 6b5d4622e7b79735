/* Chooses how often to sample a launch over time, and the replay that does so: one for each pass and interval, and
 * another one for launches that had more samples than expected. */
#include "inject/batch/timeline.h"

#include "inject/batch/caches.h"
#include "inject/engine.h"
#include "inject/process.h"
#include "inject/samples.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A launch has a hundred samples where these distances allow it. More than a thousand lie farther apart. */
#define WANTED_SAMPLES 100
#define MOST_SAMPLES   1000
#define SHORTEST_NS    1000
#define LONGEST_NS     20000
#define UNKNOWN_NS     10000 /* where nothing tells how long the launch takes */

/* Until the launches' own records are written, keep no more than this. */
#define MOST_BYTES ((size_t)512 << 20)

/* Samples begin and end up to this long before and behind the launch: as a rule 0.1 and 0.3 ms. */
#define AROUND_NS 1000000

/* Fewer samples are no timeline. */
#define LEAST_SAMPLES 5

#define NOTE_BYTES 256

#define DURATION "gpu__time_duration.sum"

static void note(kprof_timelines *timelines, kprof_status status)
{
    kprof_timelines_note(timelines, kprof_process_reason(status));
}

void kprof_timelines_note(kprof_timelines *timelines, const char *reason)
{
    if (!timelines->reason[0])
        snprintf(timelines->reason, sizeof timelines->reason, "%s", reason);
}

/* A record of the launch in the pass that is under way; `reason`: "" where all is well. NULL when memory runs out. */
static kprof_kept *make_record(const kprof_timelines *timelines, const kprof_open_launch *launch, const char *reason,
                               size_t value_count)
{
    kprof_kept *made = kprof_kept_new(reason, value_count);
    if (made)
        made->record = (kprof_record){.type = KPROF_RECORD_TIMELINE,
                                      .timeline = {.launch = launch->record.launch,
                                                   .pass = (uint32_t)timelines->pass,
                                                   .interval_ns = launch->interval_ns,
                                                   .reason = made->text,
                                                   .values = made->values,
                                                   .value_count = (uint32_t)value_count}};
    return made;
}

/* Tell why a launch has nothing of the pass. */
static void lack(kprof_timelines *timelines, kprof_open_launch *launch, const char *reason)
{
    kprof_kept *added = make_record(timelines, launch, reason, 0);
    if (!added)
        return; /* all launches have a reason, which is reported */
    launch->told |= KPROF_TOLD_TIMELINE;
    kprof_kept_add(&timelines->kept, added, 0);
}

/* Copy samples as rows: begin, from the first one on, duration, values. */
static void copy_rows(const kprof_pm_data *data, size_t names, double *row)
{
    for (size_t i = 0; i < data->count; i++, row += 2 + names) {
        row[0] = (double)(data->starts_ns[i] - data->starts_ns[0]);
        row[1] = (double)(data->ends_ns[i] - data->starts_ns[i]);
        memcpy(row + 2, data->values + i * names, names * sizeof *row);
    }
}

static void describe(const kprof_pm_data *data, uint64_t interval_ns, char out[NOTE_BYTES])
{
    out[0] = '\0';
    if (data->is_cut)
        snprintf(out, NOTE_BYTES,
                 "the launch has more samples than the buffers hold, and these are the first ones: give a larger "
                 "--pm-sampling-buffer-size or --pm-sampling-interval");
    else if (data->count < LEAST_SAMPLES)
        snprintf(out, NOTE_BYTES, "the launch is too short: %zu samples of %llu ns fell into it", data->count,
                 (unsigned long long)interval_ns);
}

static void keep(kprof_timelines *timelines, const kprof_batch_state *state, kprof_open_launch *launch,
                 const kprof_pm_data *data)
{
    const kprof_chip_timeline *pass = &state->metrics->timelines[timelines->pass];
    char text[NOTE_BYTES];
    describe(data, launch->interval_ns, text);
    if (data->count == 0 || timelines->kept.bytes > MOST_BYTES) {
        lack(timelines, launch,
             *text && data->count == 0 ? text
                                       : "the launches before it in its batch have as many samples as kprof keeps");
        return;
    }
    const size_t value_count = data->count * (2 + pass->metrics.count);
    kprof_kept *added = make_record(timelines, launch, text, value_count);
    if (!added) {
        lack(timelines, launch, "no memory for samples over time");
        return;
    }
    copy_rows(data, pass->metrics.count, added->values);
    added->record.timeline.names = (const char *const *)pass->metrics.items;
    added->record.timeline.name_count = (uint32_t)pass->metrics.count;
    launch->told |= KPROF_TOLD_TIMELINE;
    kprof_kept_add(&timelines->kept, added, value_count);
}

/* 1, 2 or 5 times a power of ten, so that launches share what is configured. */
static uint64_t round_up(double interval_ns)
{
    static const unsigned steps[] = {1, 2, 5};
    uint64_t power = SHORTEST_NS;
    for (;; power *= 10)
        for (size_t i = 0; i < COUNT_OF(steps); i++)
            if ((double)(steps[i] * power) >= interval_ns || power >= UINT64_C(1000000000))
                return steps[i] * power;
}

static uint64_t choose_interval(double duration_ns)
{
    const uint64_t wanted = kprof_engine.process.config.timeline_interval_ns;
    if (wanted > 0)
        return wanted;
    if (!(duration_ns > 0))
        return UNKNOWN_NS;
    const double even = fmin(duration_ns / WANTED_SAMPLES, LONGEST_NS);
    return round_up(fmax(even, duration_ns / MOST_SAMPLES));
}

static void choose_samples(double duration_ns, kprof_open_launch *out)
{
    out->interval_ns = choose_interval(duration_ns);
    const double samples = duration_ns / (double)out->interval_ns;
    out->expected_samples = samples > 0 && samples < KPROF_PM_MOST_SAMPLES ? (size_t)samples + 1 : 0;
}

/* Launches that are not repeated, or that the passes did not measure, keep an interval of 0, and are not sampled. */
static void choose_intervals(kprof_batch_state *state, const kprof_passes *passes)
{
    const kprof_evaluations *evaluations = &passes->evaluations;
    const kprof_strlist *names = &state->metrics->metrics;
    const size_t duration = KPROF_FIND(i, names->count, strcmp(names->items[i], DURATION) == 0);
    const bool is_known = duration < names->count;
    for (size_t i = 0; i < evaluations->count; i++) {
        const kprof_evaluation *evaluation = &evaluations->items[i];
        const bool has_it = is_known && evaluation->status == KPROF_OK && evaluation->values;
        if (evaluation->launch < passes->replayed)
            choose_samples(has_it ? evaluation->values[duration] : NAN, &state->list.items[evaluation->launch]);
    }
}

/* CUPTI answers that the counters are in use while a profiler has an object that has run passes. Samples of
 * instructions that are enabled would want the same counters. Both come anew before the next passes. */
static kprof_status make_way(kprof_profiled_context *context)
{
    kprof_samples_end(context->samples);
    kprof_engine.device->profiler_release(context->profiler);
    context->own_period = 0;
    return context->pc_samples ? kprof_engine.device->pc_samples_disarm(context->pc_samples) : KPROF_OK;
}

static kprof_status enable(kprof_profiled_context *context)
{
    const kprof_device_ops *device = kprof_engine.device;
    kprof_status status = device->target_synchronize();
    KPROF_THEN(status, make_way(context));
    if (status == KPROF_OK && !context->pm_sampling)
        status = device->pm_sampling_open(context->device, context->metrics->chip, &context->pm_sampling);
    return KPROF_THEN(status, device->pm_sampling_enable(context->pm_sampling));
}

static bool awaits_samples(const kprof_timelines *timelines, const kprof_open_launch *launch)
{
    return launch->chosen && launch->interval_ns > 0 && launch->timeline_pass == timelines->pass;
}

/* To configure another interval takes 0.2 s, so what is configured goes first. False: no launch awaits the pass. */
static bool choose_round(kprof_timelines *timelines, const kprof_batch_state *state)
{
    uint64_t next_ns = 0;
    for (size_t i = 0; i < state->list.count; i++) {
        const kprof_open_launch *launch = &state->list.items[i];
        if (awaits_samples(timelines, launch) && (next_ns == 0 || launch->interval_ns == timelines->round_ns))
            next_ns = launch->interval_ns;
    }
    timelines->round_ns = next_ns;
    return next_ns > 0;
}

bool kprof_timelines_begin(kprof_timelines *timelines, kprof_batch_state *state, const kprof_passes *passes)
{
    if (state->metrics->timeline_count == 0)
        return false;
    timelines->pass = 0;
    timelines->interval_ns = timelines->round_ns = 0;
    choose_intervals(state, passes);
    if (!choose_round(timelines, state))
        return false;
    kprof_status status = enable(state->context);
    if (status != KPROF_OK)
        note(timelines, status);
    return status == KPROF_OK;
}

/* If the user says how often, a launch may have any number. */
static size_t count_most(uint64_t interval_ns)
{
    const size_t most = MOST_SAMPLES + AROUND_NS / interval_ns;
    const bool is_users = kprof_engine.process.config.timeline_interval_ns > 0;
    return is_users || most > KPROF_PM_MOST_SAMPLES ? KPROF_PM_MOST_SAMPLES : most;
}

static kprof_status configure(kprof_timelines *timelines, const kprof_batch_state *state, uint64_t interval_ns)
{
    const kprof_pm_setup setup = {.pass = &state->metrics->timelines[timelines->pass],
                                  .interval_ns = interval_ns,
                                  .most_samples = count_most(interval_ns),
                                  .buffer_bytes = (size_t)kprof_engine.process.config.timeline_buffer_bytes};
    if (timelines->interval_ns == interval_ns)
        return KPROF_OK;
    timelines->interval_ns = 0;
    kprof_status status = kprof_engine.device->pm_sampling_configure(state->context->pm_sampling, &setup);
    if (status == KPROF_OK)
        timelines->interval_ns = interval_ns;
    return status;
}

/* Run the launch, and read its samples; `sampled`: how that went. */
static kprof_status sample(kprof_batch_state *state, const kprof_open_launch *launch, kprof_pm_data *data,
                           kprof_status *sampled)
{
    const kprof_device_ops *device = kprof_engine.device;
    kprof_pm_sampling *sampling = state->context->pm_sampling;
    kprof_caches_clear(state, device->snapshot_stream(state->context->snapshot));
    kprof_status status = device->target_synchronize();
    if (status != KPROF_OK)
        return status;
    if (*sampled == KPROF_OK)
        *sampled = device->pm_sampling_start(sampling);
    const bool started = *sampled == KPROF_OK;
    status = device->operation_run(launch->operation, state->context->snapshot);
    KPROF_THEN(status, device->target_synchronize());
    if (started)
        *sampled = device->pm_sampling_stop(sampling);
    if (status == KPROF_OK && *sampled == KPROF_OK)
        *sampled = device->pm_sampling_read_launch(sampling, launch->expected_samples, data);
    return status;
}

static kprof_status run_sampled(kprof_timelines *timelines, kprof_batch_state *state, kprof_open_launch *launch)
{
    kprof_pm_data data;
    kprof_status status = KPROF_OK;
    if (timelines->interval_ns != launch->interval_ns) /* launches may have run unsampled just before */
        status = kprof_engine.device->target_synchronize();
    if (status != KPROF_OK)
        return status;
    kprof_status sampled = configure(timelines, state, launch->interval_ns);
    status = sample(state, launch, &data, &sampled);
    if (status != KPROF_OK)
        return status;
    if (sampled == KPROF_OK && data.is_cut && launch->expected_samples > 0) {
        launch->expected_samples = 0;
        return KPROF_OK; /* it goes on awaiting the pass */
    }
    launch->timeline_pass++;
    if (sampled == KPROF_OK)
        keep(timelines, state, launch, &data);
    else
        lack(timelines, launch, kprof_process_reason(sampled));
    return KPROF_OK;
}

kprof_status kprof_timelines_run(kprof_timelines *timelines, kprof_batch_state *state, kprof_open_launch *launch)
{
    if (awaits_samples(timelines, launch) && launch->interval_ns == timelines->round_ns)
        return run_sampled(timelines, state, launch);
    return kprof_engine.device->operation_run(launch->operation, state->context->snapshot);
}

bool kprof_timelines_end(kprof_timelines *timelines, kprof_batch_state *state, kprof_status status)
{
    if (status != KPROF_OK)
        note(timelines, status);
    if (status == KPROF_OK && choose_round(timelines, state))
        return true;
    timelines->interval_ns = 0;
    timelines->pass++;
    if (status == KPROF_OK && timelines->pass < state->metrics->timeline_count && choose_round(timelines, state))
        return true;
    kprof_status disabled = kprof_engine.device->pm_sampling_disable(state->context->pm_sampling);
    if (disabled != KPROF_OK)
        kprof_process_disarm(disabled, "samples over time cannot be ended");
    return false;
}

void kprof_timelines_deliver(kprof_timelines *timelines, const kprof_batch_state *state)
{
    if (state->metrics->timeline_count == 0)
        return;
    for (kprof_kept *kept = timelines->kept.first; kept; kept = kept->next)
        kprof_process_write(&kept->record);
    kprof_record record = {.type = KPROF_RECORD_TIMELINE};
    record.timeline.reason = *timelines->reason ? timelines->reason : KPROF_NO_TIMELINE;
    for (size_t i = 0; i < state->list.count; i++) {
        record.timeline.launch = state->list.items[i].record.launch;
        if (state->list.items[i].chosen && !(state->list.items[i].told & KPROF_TOLD_TIMELINE))
            kprof_process_write(&record);
    }
}

void kprof_timelines_free(kprof_timelines *timelines)
{
    kprof_kept_free(&timelines->kept);
    *timelines = (kprof_timelines){0};
}
