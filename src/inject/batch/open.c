/* A batch opens when its context is idle, it is this process' turn, and memory is saved. */
#include "inject/batch/open.h"

#include "core/monotonic.h"
#include "inject/batch/caches.h"
#include "inject/batch/span.h"
#include "inject/capacity.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/multiplex.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/wait.h"

/* Wait at most this long for another process of the run that makes no progress. */
#define LOCK_TIMEOUT_MS 30000
/* A range that another process repeats ends when that process ends it, which may wait for this one. */
#define RANGE_TIMEOUT_MS 2000

void kprof_open_release(kprof_batch *batch, bool is_idle)
{
    kprof_batch_state *state = &batch->state;
    for (size_t i = 0; i < state->list.count; i++)
        kprof_engine.device->operation_free(state->list.items[i].operation);
    if (batch->ends.awaits_value &&
        atomic_load(&state->signs.spoiled)) /* to close before the wait would have kept it */
        state->context->late_values++;
    kprof_evaluations_free(&batch->passes.evaluations);
    kprof_source_free(&batch->replay.source);
    kprof_timelines_free(&batch->replay.timelines);
    if (kprof_state_has_managed_stay(state)) /* its own run may not have ended */
        (void)kprof_engine.device->managed_let_go(false);
    if (state->saved)
        kprof_engine.device->snapshot_drop(state->context->snapshot, is_idle);
    state->saved = false;
    state->list.count = state->list.chosen = batch->ends.unproved = 0;
    batch->ends.awaits_value = batch->awaits_value = false;
    state->needs = 0;
    atomic_store(&state->signs.saves_host, false);
    kprof_multiplex_note_batch(state);
    state->ranges.first = state->ranges.count = state->ranges.wanted = 0;
    batch->behind.stands = batch->behind.prepared = batch->behind.watched = false;
    atomic_store(&batch->own.spans_calls, false);
    /* A process keeps its turn until its samples are complete: all passes of a sample come from one measurement. */
    if (state->kind != KPROF_MULTIPLEXED || !state->context || kprof_multiplex_has_had_turn(state->context))
        kprof_lock_give();
    state->range = NULL;
    atomic_store(&state->signs.in_range, false);
    atomic_store(&state->signs.records, false);
    atomic_store(&state->signs.replays, false);
    atomic_store(&state->signs.window, false);
    atomic_store(&state->signs.sealed, false);
    atomic_store(&state->signs.open, false);
}

/* Save what replays restore, while nothing else writes it. */
static kprof_status save_memory(kprof_batch_state *state)
{
    kprof_profiled_context *context = state->context;
    const char *writer = kprof_engine.device->writers_devices();
    if (writer)
        return kprof_fail(KPROF_UNSUPPORTED, "%s", writer);
    kprof_status status = kprof_contexts_wait_for_others(context->context);
    if (status == KPROF_OK && !context->snapshot)
        status = kprof_engine.device->snapshot_open(context->context, &context->snapshot);
    KPROF_THEN(status, kprof_engine.device->snapshot_take(context->snapshot, state->needs & KPROF_SAVES_HOST));
    state->saved = status == KPROF_OK;
    return status;
}

static kprof_status begin(kprof_batch *batch, const kprof_batch_launch *opener, size_t ranges)
{
    kprof_batch_state *state = &batch->state;
    int64_t lap_ns = kprof_monotonic_ns();
    bool replayed = state->kind == KPROF_REPLAYED;
    kprof_caches_prepare(state);
    batch->replay.output_before = kprof_engine.device->output_seen();
    kprof_status status = replayed ? save_memory(state) : KPROF_OK;
    /* A launch that joins later may wait, by an event, for work of another context that waits for the host. So that
     * work has to end first; what comes there from now on closes the batch. */
    if (state->kind == KPROF_LIVE && (kprof_engine.device->target_sharing() & KPROF_WAITS_FOR_HOST))
        status = kprof_contexts_wait_for_others(state->context->context);
    if (status != KPROF_OK)
        return status;
    state->times.save_ms = kprof_monotonic_lap_ms(&lap_ns);
    bool reserves = !replayed || state->searching || kprof_multiplex_is_open(state->context);
    const bool samples = state->kind == KPROF_MULTIPLEXED;
    size_t usual =
        samples ? kprof_capacity_choose_samples(state->context) : kprof_capacity_choose(state->context, reserves);
    if (ranges > KPROF_BATCH_MOST_LAUNCHES)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "the graph has %zu chosen kernels, and a batch holds %d at most; -k or -c chooses fewer",
                          ranges, KPROF_BATCH_MOST_LAUNCHES);
    state->ranges.capacity = ranges > usual ? ranges : usual;
    state->ranges.least = ranges;
    return kprof_own_run_begin(&batch->own, state, &batch->passes, opener);
}

/* Another process may wait for the work of a window, so a window waits for no other process. */
static kprof_status take_lock(kprof_batch *batch, const kprof_device *device)
{
    kprof_lock_choose(device ? device->record.uuid : "");
    if (batch->state.kind == KPROF_MULTIPLEXED || batch->state.kind == KPROF_INSTRUCTED)
        return kprof_lock_take(0, kprof_contexts_release)
                   ? KPROF_OK
                   : kprof_fail(KPROF_NOT_COLLECTED, "it was the turn of another process of the run");
    /* After a timeout, do not wait again for each launch. */
    const unsigned timeout_ms = batch->state.range ? RANGE_TIMEOUT_MS : LOCK_TIMEOUT_MS;
    bool taken = kprof_lock_take(batch->opening.lock_timed_out ? 0 : timeout_ms, kprof_contexts_release);
    batch->opening.lock_timed_out = !taken;
    return taken ? KPROF_OK : kprof_fail(KPROF_NOT_COLLECTED, "another process of the run kept the counters");
}

static void start_anew(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision)
{
    kprof_batch_state *state = &batch->state;
    state->kind = decision->kind;
    state->needs = 0;
    state->range = launch->repeats;
    kprof_span_reset(&state->lanes);
    state->note[0] = '\0';
    state->metrics = launch->metrics;
    atomic_store(&state->signs.sharing, kprof_engine.device->target_sharing());
    bool has_host = decision->needs & KPROF_SAVES_HOST; /* so that it may change */
    state->proved = decision->kind == KPROF_REPLAYED && !has_host && kprof_decision_needs_proof() &&
                    (!batch->behind.wanted || kprof_behind_may_prove(launch->kernel, launch->metrics));
    state->searching = false;
    state->unwatched = state->stayed_away = false;
    state->ranges.lenient = state->ranges.unread = 0;
    state->opened_ns = state->started_ns = kprof_monotonic_ns();
    state->times = (kprof_batch_times){0};
    atomic_store(&state->signs.spoiled, NULL);
    batch->passes.shares = false;
    batch->closing.first_unproved = 0;
    batch->comparison = (kprof_comparison){0};
    batch->behind.stands = batch->behind.wanted;
    batch->behind.begun = batch->behind.prepared = batch->behind.goes_on = batch->behind.watched = false;
    batch->behind.gave_up = batch->behind.keeps = false;
    batch->behind.first = 0;
    batch->behind.kernel = launch->kernel;
    batch->behind.stream = launch->call->stream;
    batch->behind.thread = pthread_self();
    batch->ends.most_replayed = SIZE_MAX;
    atomic_store(&batch->ends.helped, false);
    kprof_own_run *own = &batch->own;
    own->in_pass = own->proof_open = own->proof_paused = false;
    own->stream = launch->call->stream;
    own->is_threads = launch->call->is_threads_stream;
    atomic_store(&own->range_open, false);
    atomic_store(&own->spans_calls, false);
    atomic_store(&own->overdue, NULL);
    atomic_store(&own->lost_range, NULL);
}

__thread kprof_open_outcome kprof_this_outcome;

static void put_off(kprof_batch *batch, void *context)
{
    kprof_this_outcome.is_put_off = true;
    atomic_store(&batch->opening.wanted, context);
}

kprof_status kprof_open_fail_sealed(kprof_batch *batch, const kprof_batch_launch *launch)
{
    put_off(batch, launch->call->context);
    return kprof_fail(KPROF_NOT_COLLECTED, "the GPU's work did not end within 0.1 s, so that launches before it are "
                                           "still to be repeated");
}

/* If the GPU is at work, put the launch off: the next one that finds the context idle opens a batch, chosen or not. */
static kprof_status wait_to_open(kprof_batch *batch, void *context)
{
    kprof_status status = kprof_wait_for_context(context);
    if (status == KPROF_NOT_COLLECTED)
        put_off(batch, context);
    else if (atomic_load(&batch->opening.wanted) == context)
        atomic_store(&batch->opening.wanted, NULL);
    return status;
}

static void prepare_behind(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision)
{
    const kprof_profiled_context *context = batch->state.context;
    batch->behind.prepared = kprof_behind_may_come(launch, decision) && kprof_decision_proves(launch->metrics) &&
                             !context->searches && !kprof_multiplex_is_open(context);
    if (batch->behind.prepared && !batch->state.proved) /* else the launch is on trial */
        batch->state.proved = kprof_behind_may_prove(launch->kernel, launch->metrics);
    if (batch->behind.prepared || batch->behind.stands)
        kprof_engine.device->target_load_beside(launch->call);
}

/* Find out whether the launch that the batch stands behind, or may come to stand behind, changes memory, unless kprof
 * knows that. */
static void watch_behind(kprof_batch *batch)
{
    kprof_behind *behind = &batch->behind;
    behind->watched = (behind->stands || behind->prepared) && !atomic_load(&behind->kernel->is_quiet) &&
                      !atomic_load(&behind->kernel->changes) &&
                      kprof_engine.device->snapshot_watch(batch->state.context->snapshot, true) == KPROF_OK;
}

kprof_status kprof_open_batch(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision,
                              size_t ranges)
{
    kprof_batch_state *state = &batch->state;
    if (decision->kind == KPROF_REFUSED)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s", decision->why);
    if (!atomic_load(&kprof_engine.process.armed)) /* since the batch before it was tried or closed, in this call */
        return kprof_fail(KPROF_NOT_COLLECTED, "profiling has ended in this process");
    const kprof_profiled_context *known = kprof_contexts_find(launch->call->context);
    if (known && kprof_monotonic_ns() < known->busy_before_ns)
        return kprof_fail(KPROF_COUNTERS_BUSY,
                          "another tool used the GPU counters a short while before; " KPROF_FREES_COUNTERS);
    start_anew(batch, launch, decision);
    kprof_status status = wait_to_open(batch, launch->call->context);
    if (status == KPROF_OK && !known)
        kprof_engine.device->profiler_prepare(); /* others may have their turn meanwhile */
    KPROF_THEN(status, take_lock(batch, kprof_devices_find(launch->call->context)));
    if (status != KPROF_OK)
        return status;
    kprof_recording_hold();
    state->needs =
        decision->needs; /* not before: kprof waits longer for earlier work than for a launch that has needs */
    if (decision->needs)
        atomic_fetch_add(&launch->kernel->by_itself, 1);
    status = kprof_contexts_open(launch->call->context, launch->metrics, &state->context);
    if (status == KPROF_OK) {
        state->searching = state->proved && state->context->searches && !batch->behind.stands;
        prepare_behind(batch, launch, decision);
        status = begin(batch, launch, ranges);
    }
    if (status != KPROF_OK) {
        kprof_open_release(batch, false);
        kprof_recording_release(false);
        return status;
    }
    kprof_recording_release(kprof_own_run_counts(&batch->own, state));
    watch_behind(batch);
    kprof_process_outlive_libraries();
    state->started_ns = state->list.chosen_ns = kprof_monotonic_ns();
    atomic_store(&state->signs.context, launch->call->context);
    atomic_store(&state->signs.saves_host, decision->needs == KPROF_SAVES_HOST);
    atomic_store(&state->signs.records, decision->kind == KPROF_REPLAYED);
    atomic_store(&state->signs.replays, decision->kind == KPROF_REPLAYED);
    atomic_store(&state->signs.window, decision->kind == KPROF_MULTIPLEXED || decision->kind == KPROF_INSTRUCTED);
    atomic_store(&state->signs.in_range, launch->repeats != NULL);
    atomic_store(&state->signs.open, true);
    return KPROF_OK;
}
