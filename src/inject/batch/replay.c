/* Runs passes over the memory that was saved. A replay that would show the host something else ends there, and the
 * launches before it keep their values. */
#include "inject/batch/replay.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "core/signals.h"
#include "inject/batch/caches.h"
#include "inject/batch/compare.h"
#include "inject/batch/span.h"
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/process.h"

/* Abandon a replay that takes longer than FACTOR times the own run, NS for the pass and EACH_NS for each launch. */
#define SLOW_PASS_FACTOR  10
#define SLOW_PASS_NS      INT64_C(5000000000)
#define SLOW_PASS_EACH_NS INT64_C(20000000)

/* Try replays this often to see whether the host gets the same each time: more of them find more rare differences. */
#define TRIES 3

/* A replay failed, or memory was not put back behind one. */
#define NOBODY_KNOWS SIZE_MAX

/* Put the start back. What the own run and one replay of as many launches left as it was, a second one does, too,
 * unless kernels compute something else each time: all memory is compared behind the first, and before the end is put
 * back. To compare 100 GB takes 25 to 50 ms. */
static kprof_status restore_start(kprof_replay *replay, kprof_batch_state *state)
{
    int64_t lap_ns = kprof_monotonic_ns();
    const bool is_new = replay->repeated != replay->compared || state->context->diverges;
    const bool everywhere = replay->repeated > 0 && is_new;
    kprof_status status = kprof_engine.device->snapshot_restore_start(state->context->snapshot, everywhere);
    if (status == KPROF_OK && everywhere && replay->repeated != NOBODY_KNOWS)
        replay->compared = replay->repeated;
    replay->repeated = status == KPROF_OK ? 0 : NOBODY_KNOWS;
    state->times.restore_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

void kprof_replay_set_limit(kprof_replay *replay, const kprof_batch_state *state)
{
    int64_t own_run_ns = kprof_monotonic_ns() - state->started_ns;
    atomic_store(&replay->longest_pass_ns,
                 SLOW_PASS_FACTOR * own_run_ns + SLOW_PASS_NS + (int64_t)state->list.count * SLOW_PASS_EACH_NS);
}

/* `*kernels`: of the pass so far, which are its ranges in an automatic measurement. */
static kprof_status run_one(kprof_batch_state *state, const kprof_passes *passes, kprof_open_launch *launch,
                            size_t *kernels)
{
    kprof_profiler *profiler = state->context->profiler;
    kprof_snapshot *snapshot = state->context->snapshot;
    void *stream = kprof_engine.device->snapshot_stream(snapshot);
    if (launch->chosen)
        kprof_caches_clear(state, stream);
    if (passes->automatic) {
        launch->range = *kernels;
        *kernels += kprof_engine.device->operation_kernels(launch->operation);
        if (state->ranges.count < *kernels)
            state->ranges.count = *kernels;
    }
    if (passes->automatic || !launch->chosen)
        return kprof_engine.device->operation_run(launch->operation, snapshot);
    kprof_status status = kprof_engine.device->profiler_push(profiler, kprof_state_take_range(state, &launch->range));
    if (status != KPROF_OK)
        return status;
    status = kprof_engine.device->operation_run(launch->operation, snapshot);
    kprof_status popped = kprof_engine.device->profiler_pop(profiler);
    return status == KPROF_OK ? popped : status;
}

/* Push the range that all of the batch is in. */
static kprof_status begin_span(kprof_batch_state *state)
{
    kprof_caches_clear(state, kprof_engine.device->snapshot_stream(state->context->snapshot));
    kprof_status status = kprof_engine.device->target_synchronize(); /* other lanes do not wait for that */
    KPROF_THEN(status, kprof_engine.device->profiler_push(
                           state->context->profiler, kprof_state_take_range(state, &kprof_span_first(state)->range)));
    return status;
}

/* The replay would give the host something else than the own run did, so repeat nothing from there on. -c counts other
 * launches in place of those that are lost, as later batches lose none in this way. */
static kprof_status end_before(kprof_batch_state *state, kprof_passes *passes, size_t number)
{
    for (; passes->replayed > number; passes->replayed--)
        if (state->list.items[passes->replayed - 1].chosen)
            kprof_state_leave_uncounted(&state->list.items[passes->replayed - 1].record);
    state->context->diverges = true;
    for (size_t i = 0; i < number; i++)
        if (state->list.items[i].chosen)
            return KPROF_OK;
    return KPROF_NOT_COLLECTED; /* with the operation's own reason */
}

static kprof_status run_in_order(kprof_batch_state *state, const kprof_passes *passes, kprof_open_launch *launch,
                                 size_t *kernels)
{
    return kprof_span_is_whole(state)
               ? kprof_engine.device->operation_run_counted(launch->operation, state->context->snapshot,
                                                            (kprof_lane){launch->lane, launch->waits_for})
               : run_one(state, passes, launch, kernels);
}

/* Repeat all launches, in a pass or without counters. NOT_COLLECTED when it takes far too long. */
static kprof_status run_all(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes, bool in_pass)
{
    int64_t start_ns = kprof_monotonic_ns(), lap_ns = start_ns;
    const bool has_span = in_pass && kprof_span_is_whole(state);
    const kprof_status begun = has_span ? begin_span(state) : KPROF_OK;
    kprof_status status = begun;
    size_t kernels = 0;
    atomic_store(&replay->operations, state->list.count);
    atomic_store(&replay->since_ns, start_ns);
    for (size_t i = 0; i < passes->replayed && status == KPROF_OK; i++) {
        kprof_open_launch *launch = &state->list.items[i];
        status = in_pass ? run_in_order(state, passes, launch, &kernels)
                         : kprof_engine.device->operation_run(launch->operation, state->context->snapshot);
        if (status == KPROF_NOT_COLLECTED && !launch->kernel && !kprof_span_is_whole(state))
            status = end_before(state, passes, i);
        else if (status == KPROF_OK && kprof_monotonic_ns() - start_ns > atomic_load(&replay->longest_pass_ns))
            status = kprof_fail(KPROF_NOT_COLLECTED, "a pass took far longer than the application's own run");
    }
    kprof_status done = kprof_engine.device->target_synchronize();
    if (has_span && begun == KPROF_OK) {
        const kprof_status popped = kprof_engine.device->profiler_pop(state->context->profiler);
        KPROF_THEN(done, popped);
    }
    replay->repeated = status == KPROF_OK ? passes->replayed : NOBODY_KNOWS;
    atomic_store(&replay->since_ns, 0);
    state->times.run_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status == KPROF_OK ? done : status;
}

static kprof_status replay_pass(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes, bool *more)
{
    kprof_status status = restore_start(replay, state);
    KPROF_THEN(status, kprof_passes_start(state));
    if (status != KPROF_OK)
        return status;
    kprof_engine.device->counting_keep(kprof_counting_knows(state->metrics->chip));
    status = run_all(replay, state, passes, true);
    kprof_engine.device->counting_keep(false);
    kprof_status stopped = kprof_passes_stop(state, more);
    return status == KPROF_OK ? stopped : status;
}

static const kprof_launch_record *last_chosen(const kprof_launch_list *list)
{
    size_t i = list->count - 1;
    while (!list->items[i].chosen)
        i--;
    return &list->items[i].record;
}

/* Since kprof saved the start, something may have happened that forbids putting it back. */
static kprof_status check_may_replay(const kprof_batch_state *state)
{
    const char *why = atomic_load(&state->signs.spoiled);
    if (!why)
        why = kprof_engine.device->writers_devices();
    if (!why && kprof_state_has_managed(state)) /* another thread may have come with the launch */
        why = kprof_engine.device->target_managed_obstacle();
    if (!why && (state->needs & KPROF_SAVES_HOST))
        why = kprof_decision_host_obstacle(state->context->context);
    return why ? kprof_fail(KPROF_NOT_COLLECTED, "the launch was not repeated: %s", why) : KPROF_OK;
}

/* Runs one launch or transfer in a replay that is no pass. */
typedef kprof_status further_run(kprof_replay *replay, kprof_batch_state *state, kprof_open_launch *launch);

static kprof_status run_for_source(kprof_replay *replay, kprof_batch_state *state, kprof_open_launch *launch)
{
    return kprof_source_run(&replay->source, state, launch);
}

static kprof_status run_for_timeline(kprof_replay *replay, kprof_batch_state *state, kprof_open_launch *launch)
{
    return kprof_timelines_run(&replay->timelines, state, launch);
}

static kprof_status run_further(kprof_replay *replay, kprof_batch_state *state, const kprof_passes *passes,
                                further_run *run)
{
    kprof_status status = restore_start(replay, state);
    int64_t start_ns = kprof_monotonic_ns(), lap_ns = start_ns;
    kprof_lock_note_progress();
    atomic_store(&replay->operations, state->list.count);
    atomic_store(&replay->since_ns, start_ns);
    for (size_t i = 0; i < passes->replayed && status == KPROF_OK; i++) {
        status = run(replay, state, &state->list.items[i]);
        if (status == KPROF_OK && kprof_monotonic_ns() - start_ns > atomic_load(&replay->longest_pass_ns))
            status = kprof_fail(KPROF_NOT_COLLECTED, "a replay took far longer than the application's own run");
    }
    kprof_status done = kprof_engine.device->target_synchronize();
    replay->repeated = status == KPROF_OK ? passes->replayed : NOBODY_KNOWS;
    atomic_store(&replay->since_ns, 0);
    state->times.source_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status == KPROF_OK ? done : status;
}

static void measure_instructions(kprof_replay *replay, kprof_batch_state *state, const kprof_passes *passes,
                                 kprof_source_kind kind)
{
    if (!kprof_measures_instructions() || kprof_span_is_whole(state))
        return;
    kprof_source_begin(&replay->source, kind);
    while (kprof_source_next(&replay->source, state))
        kprof_source_end(&replay->source, state, run_further(replay, state, passes, run_for_source));
}

/* Behind the passes, which tell how long launches take. */
static void measure_timelines(kprof_replay *replay, kprof_batch_state *state, const kprof_passes *passes)
{
    bool goes_on = !kprof_span_is_whole(state) && kprof_timelines_begin(&replay->timelines, state, passes);
    while (goes_on)
        goes_on = kprof_timelines_end(&replay->timelines, state, run_further(replay, state, passes, run_for_timeline));
}

/* A range that counts all that runs in it compares nothing: compare once, without counters. */
static kprof_status prepare_span(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes)
{
    const kprof_device_ops *device = kprof_engine.device;
    kprof_snapshot *snapshot = state->context->snapshot;
    kprof_status status = KPROF_OK;
    bool has_output = false;
    for (size_t i = 0; i < state->list.count && kprof_span_is_whole(state) && status == KPROF_OK; i++) {
        const kprof_open_launch *item = &state->list.items[i];
        has_output = has_output || device->operation_output_bytes(item->operation) > 0;
        status = device->operation_prepare_counted(item->operation, snapshot, item->lane);
    }
    if (status != KPROF_OK || !has_output)
        return status;
    status = restore_start(replay, state);
    KPROF_THEN(status, run_all(replay, state, passes, false));
    return status;
}

/* Samples come before the passes, since a function that a pass has seen before them may get no samples any more. */
static kprof_status run_passes(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes)
{
    bool more = true;
    const kprof_status prepared = prepare_span(replay, state, passes);
    if (prepared != KPROF_OK)
        return prepared;
    measure_instructions(replay, state, passes, KPROF_SAMPLED);
    int64_t lap_ns = kprof_monotonic_ns();
    const bool was_disarmed = kprof_measures_instructions() && !atomic_load(&kprof_engine.process.armed);
    kprof_status status = was_disarmed ? kprof_fail(KPROF_NOT_COLLECTED, "profiling has ended")
                                       : kprof_passes_begin_replays(passes, state);
    state->times.prepare_ms += kprof_monotonic_lap_ms(&lap_ns);
    while (status == KPROF_OK && more) {
        kprof_deliver_progress(last_chosen(&state->list), state->list.chosen, passes->measured + 1,
                               state->metrics->pass_count);
        kprof_lock_note_progress();
        status = replay_pass(replay, state, passes, &more);
        if (status != KPROF_OK)
            break;
        status = kprof_passes_read(passes, state, passes->measured, more);
        passes->measured += status == KPROF_OK;
        if (status == KPROF_NOT_COLLECTED && passes->measured == 0 && passes->automatic) {
            kprof_log(KPROF_LOG_DEBUG,
                      "kernels did not become ranges by themselves; they are measured in pushed ranges");
            state->context->pushes_ranges = more = true;
            status = kprof_passes_begin_replays(passes, state);
        }
    }
    if (status == KPROF_OK && !state->context->diverges)
        kprof_compare_note_same(state, passes->replayed);
    kprof_passes_wait(state);
    if (status == KPROF_OK)
        measure_timelines(replay, state, passes);
    if (!was_disarmed)
        measure_instructions(replay, state, passes, KPROF_COUNTED);
    /* Samples over time had those of instructions disabled: kernels that the application loads since then get none. */
    if (status == KPROF_OK && state->metrics->timeline_count > 0 && atomic_load(&kprof_engine.process.armed))
        kprof_contexts_arm(state->context);
    return status;
}

/* Nothing is measured. */
static kprof_status run_tries(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes)
{
    kprof_status status = KPROF_OK;
    for (unsigned i = 0; i < TRIES && status == KPROF_OK && passes->replayed == state->list.count; i++) {
        status = restore_start(replay, state);
        KPROF_THEN(status, run_all(replay, state, passes, false));
    }
    return status;
}

typedef kprof_status replay_function(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes);

/* After the first pass kprof only notes a failure: the passes before it gave values. */
static kprof_status replay_and_restore(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes,
                                       replay_function *replays)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_snapshot *snapshot = state->context->snapshot;
    kprof_status status = check_may_replay(state);
    KPROF_THEN(status, kprof_engine.device->snapshot_record_end(snapshot));
    replay->repeated = replay->compared = 0;
    state->times.keep_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (status != KPROF_OK)
        return status;
    status = replays(replay, state, passes);
    lap_ns = kprof_monotonic_ns();
    kprof_status restored = kprof_engine.device->snapshot_restore_end(snapshot);
    state->times.restore_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (restored != KPROF_OK)
        kprof_process_disarm(restored, "the memory that a replay changed could not be put right");
    if (passes->measured == 0) /* the own runs would go on behind tries */
        return status == KPROF_OK ? restored : status;
    if (status == KPROF_OK)
        return status;
    kprof_state_note(state, "the replay was abandoned", kprof_process_reason(status));
    return KPROF_OK;
}

/* The driver writes what replays have printed within calls that wait. If it wrote nothing after the own run, the kernel
 * has printed nothing, or the driver writes in a way that the preloaded library does not see: a kernel of kprof's own
 * tells which. */
static kprof_status replay_unheard(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes)
{
    void *stream = kprof_engine.device->snapshot_stream(state->context->snapshot);
    if (kprof_engine.device->output_seen() == replay->output_before && !kprof_engine.device->output_is_seen(stream)) {
        atomic_store(&state->list.items[0].kernel->prints_unseen, true);
        return kprof_fail(KPROF_NOT_COLLECTED, "the launch was not repeated: its kernel can print, and kprof does not "
                                               "see how this driver writes that");
    }
    kprof_engine.device->output_drop(true);
    kprof_status status = replay_and_restore(replay, state, passes, run_passes);
    kprof_status done = kprof_engine.device->target_synchronize();
    kprof_engine.device->output_drop(false);
    return status == KPROF_OK ? done : status;
}

/* Block signals: a handler of the application might use memory of the host meanwhile. */
kprof_status kprof_replay_run(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes)
{
    sigset_t before;
    bool has_host = kprof_state_has_managed(state) || (state->needs & KPROF_SAVES_HOST);
    if (has_host)
        kprof_handlers_block(&before);
    kprof_status status = state->needs & KPROF_DROPS_OUTPUT ? replay_unheard(replay, state, passes)
                                                            : replay_and_restore(replay, state, passes, run_passes);
    if (has_host)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

kprof_status kprof_replay_try(kprof_replay *replay, kprof_batch_state *state, kprof_passes *passes)
{
    return replay_and_restore(replay, state, passes, run_tries);
}
