/* Takes a batch from its own run through its replays to its report. */
#include "inject/batch/close.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "inject/batch/open.h"
#include "inject/batch/span.h"
#include "inject/capacity.h"
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/multiplex.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/wait.h"

#include <stdio.h>

/* Close a batch that has been open for longer, so that a process which is killed loses no more. Passes take time
 * whatever the batch holds, so let it be open for several times as long as they take: that slows programs down less. */
#define LEAST_OPEN_NS    INT64_C(500000000)
#define MOST_OPEN_NS     INT64_C(10000000000)
#define OPEN_COST_FACTOR 5
/* If launches are this far apart, few of them share a batch, and each may cost more: keep the batch open for a second,
 * or for twice as long as its passes take. */
#define SPARSE_DISTANCE_NS INT64_C(10000000)
#define SPARSE_OPEN_NS     INT64_C(1000000000)
#define SPARSE_COST_FACTOR 2
/* Looking whether other processes wait takes microseconds: not more often than this. */
#define LOOK_NS INT64_C(50000000)

/* Why a launch has no values although others of its batch have some. */
#define DIVERGED                                                                                                       \
    "a replay computed something else than the application's own run, as what the host got before this launch shows; " \
    "later batches lose no launch there"

/* Does another process wait for the counters? */
static bool others_wait(kprof_closing *closing)
{
    const int64_t now_ns = kprof_monotonic_ns();
    if (now_ns - closing->looked_ns < LOOK_NS)
        return false;
    closing->looked_ns = now_ns;
    return kprof_lock_is_wanted();
}

/* If other processes wait for the counters, a batch is open for as long as its passes take. */
bool kprof_close_is_due(kprof_batch *batch)
{
    const kprof_batch_state *state = &batch->state;
    const int64_t open_ns = kprof_monotonic_ns() - state->started_ns;
    const bool is_sparse = (int64_t)state->list.count * SPARSE_DISTANCE_NS < open_ns;
    const int64_t cost_ns = (int64_t)(1e6 * state->context->fixed_ms);
    if (is_sparse && open_ns > SPARSE_OPEN_NS && open_ns > SPARSE_COST_FACTOR * cost_ns)
        return true;
    return open_ns > LEAST_OPEN_NS && (open_ns > OPEN_COST_FACTOR * cost_ns || open_ns > MOST_OPEN_NS ||
                                       (open_ns > cost_ns && others_wait(&batch->closing)));
}

void kprof_close_seal(kprof_batch *batch, const char *why)
{
    kprof_batch_state *state = &batch->state;
    if (kprof_state_is_sealed(state))
        return;
    snprintf(batch->closing.why, sizeof batch->closing.why, "%s", why);
    if (batch->behind.stands && !kprof_engine.device->snapshot_has_followed(state->context->snapshot))
        kprof_behind_give_up(&batch->behind, &batch->ends, state,
                             "the launch that it stands behind did not end before other work came");
    atomic_store(&state->signs.records, false);
    atomic_store(&state->signs.sealed, true);
    kprof_lock_note_stuck(true);
}

void kprof_close_deliver_reason(kprof_batch *batch, const char *reason)
{
    if (batch->state.kind == KPROF_MULTIPLEXED) {
        kprof_multiplex_deliver_reason(&batch->state, reason);
        return;
    }
    kprof_launch_list *list = &batch->state.list;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].chosen)
            kprof_deliver_launch(&list->items[i].record, reason);
}

/* Report the chosen launches that were evaluated, and those that the passes left out. */
static void deliver_all(kprof_batch *batch)
{
    kprof_launch_list *list = &batch->state.list;
    const kprof_passes *passes = &batch->passes;
    for (size_t i = 0; i < passes->evaluations.count; i++) {
        kprof_evaluation *evaluation = &passes->evaluations.items[i];
        evaluation->automatic = passes->automatic;
        if (evaluation->launch >= passes->replayed)
            continue;
        kprof_launch_record *record = &list->items[evaluation->launch].record;
        if (evaluation->status == KPROF_OK) {
            record->mode = kprof_span_is_whole(&batch->state) ? KPROF_REPLAY_RANGE : KPROF_REPLAY_BATCH;
            record->pass_count = passes->measured;
        }
        kprof_deliver(batch->state.metrics, evaluation, record, batch->state.note);
    }
    for (size_t i = passes->replayed; i < list->count; i++)
        if (list->items[i].chosen)
            kprof_deliver_launch(&list->items[i].record,
                                 i >= batch->ends.most_replayed ? batch->ends.why_cut : DIVERGED);
}

static void log_times(const kprof_batch *batch, const char *why)
{
    const kprof_batch_times *ms = &batch->state.times;
    kprof_log(KPROF_LOG_DEBUG,
              "batch of %zu launches, %zu of them chosen, closed by %s, %u passes, ms: saving %.1f, preparing %.1f, "
              "open %.1f, trying %.1f, waiting %.1f, keeping %.1f, restoring %.1f, starting %.1f, running %.1f, "
              "stopping %.1f, decoding %.1f, measuring instructions and timelines %.1f, waiting for values %.1f, "
              "writing them %.1f",
              batch->state.list.count, batch->state.list.chosen, why, batch->passes.measured, ms->save_ms,
              ms->prepare_ms, ms->open_ms, ms->try_ms, ms->wait_ms, ms->keep_ms, ms->restore_ms, ms->start_ms,
              ms->run_ms, ms->stop_ms, ms->decode_ms, ms->source_ms, ms->evaluate_ms, ms->deliver_ms);
}

/* Learn from what the batch took. */
static void note_cost(const kprof_batch_state *state)
{
    const kprof_batch_times *ms = &state->times;
    double passes_ms = ms->prepare_ms + ms->start_ms + ms->stop_ms;
    if (state->kind == KPROF_MULTIPLEXED || state->kind == KPROF_INSTRUCTED)
        return;
    state->context->last_launches = state->list.chosen;
    state->context->fixed_ms = ms->save_ms + passes_ms;
    if (state->kind == KPROF_LIVE)
        kprof_capacity_note(state->context, state->ranges.wanted == state->ranges.capacity, passes_ms);
}

static void deliver_instructed(kprof_batch *batch)
{
    for (size_t i = 0; i < batch->state.list.count; i++)
        kprof_multiplex_deliver_instructed(&batch->state.list.items[i].record, batch->replay.source.kind,
                                           batch->state.note);
}

/* Report the batch, and forget it. */
static void finish(kprof_batch *batch, const char *why, kprof_status status)
{
    kprof_batch_state *state = &batch->state;
    kprof_launch_list *list = &state->list;
    const kprof_evaluations *evaluations = &batch->passes.evaluations;
    int64_t replayed_ns = kprof_monotonic_ns();
    for (size_t i = 0; i < list->count && list->chosen > 0; i++)
        list->items[i].record.profile_ns = (replayed_ns - state->opened_ns) / (int64_t)list->chosen;
    if (status != KPROF_OK) {
        kprof_source_note(&batch->replay.source, kprof_process_reason(status));
        kprof_timelines_note(&batch->replay.timelines, kprof_process_reason(status));
    }
    const bool by_launch = state->kind != KPROF_MULTIPLEXED && !kprof_span_is_whole(state);
    kprof_span_note_end(state, status, replayed_ns - batch->closing.begun_ns);
    kprof_deliver_tell_instructions(!by_launch);
    kprof_process_hold_records();
    if (status != KPROF_OK)
        kprof_close_deliver_reason(batch, kprof_process_reason(status));
    else if (state->kind == KPROF_MULTIPLEXED)
        kprof_multiplex_deliver(state);
    else if (state->kind == KPROF_INSTRUCTED)
        deliver_instructed(batch);
    else
        deliver_all(batch);
    kprof_process_release_records();
    kprof_deliver_tell_instructions(true);
    if (by_launch) {
        kprof_source_deliver(&batch->replay.source, state);
        kprof_timelines_deliver(&batch->replay.timelines, state);
    }
    state->times.deliver_ms = kprof_monotonic_lap_ms(&replayed_ns);
    if (status == KPROF_OK && evaluations->count == 1)
        kprof_deliver_image(state->context->profiler, &list->items[evaluations->items[0].launch].record);
    log_times(batch, why);
    note_cost(state);
    kprof_open_release(batch, !kprof_engine.device->target_capturing() && !kprof_wait_goes_on(state->context->context));
    kprof_process_check_owner();
}

/* Does the proof, if one is needed, show that no launch can have waited for the host? */
static bool stayed_away(const kprof_batch_state *state)
{
    return !state->unwatched && !state->needs && !kprof_state_has_host(state) && !kprof_decision_has_other_writers() &&
           (state->stayed_away || !kprof_decision_needs_proof());
}

/* A launch that did not end while its call was held has ended now. If nothing can have helped it meanwhile, it took
 * long: note that. */
static void note_late_ends(kprof_batch *batch)
{
    const kprof_batch_state *state = &batch->state;
    const kprof_behind *behind = &batch->behind;
    const bool is_replayed = state->kind == KPROF_REPLAYED;
    if (is_replayed ? atomic_load(&state->signs.spoiled) || !stayed_away(state)
                    : !batch->own.tells_end || kprof_decision_may_be_helped())
        return;
    if (kprof_state_is_sealed(state) && !atomic_load(&batch->ends.helped))
        kprof_ends_note_late_ends(&batch->ends, state);
    if (is_replayed && behind->begun && !behind->gave_up)
        kprof_kernel_note_end(behind->kernel);
    if (is_replayed && behind->begun && !behind->gave_up && state->stayed_away)
        atomic_store(&behind->kernel->proved, true);
}

/* End the pass around the application's own runs, which kprof has awaited. */
static kprof_status end_own_run(kprof_batch *batch, kprof_status awaited)
{
    if (kprof_wait_is_idle(awaited)) {
        kprof_replay_set_limit(&batch->replay, &batch->state);
        if (batch->behind.stands && awaited == KPROF_OK)
            kprof_behind_settle(&batch->behind, &batch->ends, &batch->state);
        if (batch->state.kind == KPROF_REPLAYED)
            kprof_ends_settle(&batch->ends, &batch->state);
    }
    batch->passes.measured = 0;
    kprof_status status = kprof_own_run_end(&batch->own, &batch->state, &batch->passes, awaited);
    if (status != KPROF_OK && batch->state.ranges.lenient != 0)
        atomic_store(&batch->behind.kernel->writes_host, true);
    if (awaited == KPROF_OK && (status == KPROF_OK || batch->state.kind != KPROF_REPLAYED)) /* else the proof says no */
        note_late_ends(batch);
    return status;
}

/* Choose the launches that replays repeat. They end with the last chosen launch, and before what may wait for work that
 * the batch does not have. They go on to the copy that closes the batch if that is to be compared, unless the kernels
 * before it would be too many for automatic ranges. */
static kprof_status choose_replayed(kprof_batch *batch)
{
    const kprof_batch_state *state = &batch->state;
    const kprof_open_launch *launches = state->list.items;
    size_t *replayed = &batch->passes.replayed;
    bool compares_last = batch->comparison.last &&
                         (state->context->pushes_ranges || kprof_passes_count_automatic(&batch->passes, state) > 0);
    bool is_cut = false;
    if (kprof_span_is_whole(state))
        return *replayed <= batch->ends.most_replayed ? KPROF_OK
                                                      : kprof_fail(KPROF_NOT_COLLECTED, "%s", batch->ends.why_cut);
    if (!compares_last)
        while (!launches[*replayed - 1].chosen)
            --*replayed;
    if (*replayed > batch->ends.most_replayed) {
        *replayed = batch->ends.most_replayed;
        is_cut = true;
    }
    while (is_cut && *replayed > 0 && !launches[*replayed - 1].chosen)
        --*replayed;
    return *replayed > 0 ? KPROF_OK : kprof_fail(KPROF_NOT_COLLECTED, "%s", batch->ends.why_cut);
}

/* If the context is at work, all ends later, once it is idle: in kprof_contexts_open, or as it gives counters back. */
static void end_instructed(kprof_batch *batch, kprof_status awaited)
{
    kprof_batch_state *state = &batch->state;
    const char *lost = atomic_load(&batch->own.lost_range);
    if (!kprof_wait_is_idle(awaited)) {
        state->context->own_period = 0;
        return;
    }
    kprof_source_end_own(&batch->replay.source, state, awaited == KPROF_OK ? lost : "the launch failed");
}

/* `awaited`: what kprof_ends_await returned. Memory is then as the own runs left it, whatever the status. */
static kprof_status measure(kprof_batch *batch, kprof_status awaited)
{
    kprof_status status = end_own_run(batch, awaited);
    if (batch->state.kind == KPROF_INSTRUCTED)
        end_instructed(batch, awaited);
    if (status != KPROF_OK || batch->state.list.chosen == 0)
        return status;
    if (batch->state.kind == KPROF_REPLAYED) {
        status = kprof_span_check(&batch->state, batch->own.closed_by);
        KPROF_THEN(status, choose_replayed(batch));
        return KPROF_THEN(status, kprof_replay_run(&batch->replay, &batch->state, &batch->passes));
    }
    batch->passes.measured = 1;
    return KPROF_OK;
}

static bool close_or(kprof_batch *batch, bool seals, const char *why)
{
    kprof_batch_state *state = &batch->state;
    if (!kprof_state_is_open(state))
        return true;
    bool entered = kprof_engine.device->target_enter_context(state->context->context);
    kprof_process_forget_reason();
    int64_t open_ns = kprof_monotonic_ns() - state->started_ns;
    kprof_status awaited = kprof_ends_await(&batch->ends, state);
    /* Other batches hold memory that the application may use as soon as this call has returned. */
    const bool may_be_sealed =
        state->needs == 0 && !kprof_state_has_host(state) && !kprof_engine.device->target_capturing();
    const bool is_closed = kprof_wait_is_idle(awaited) || !seals || !may_be_sealed;
    if (is_closed) {
        kprof_lock_note_stuck(false);
        state->times.open_ms = (double)open_ns * 1e-6;
        batch->own.closed_by = kprof_state_is_sealed(state) ? batch->closing.why : why;
        kprof_recording_hold();
        batch->closing.begun_ns = kprof_monotonic_ns();
        kprof_status status = measure(batch, awaited);
        finish(batch, batch->own.closed_by, status);
        kprof_recording_release(false);
    } else {
        kprof_close_seal(batch, why);
    }
    if (entered)
        kprof_engine.device->target_leave_context();
    return is_closed;
}

bool kprof_close_batch(kprof_batch *batch, const char *why)
{
    return close_or(batch, true, why);
}

void kprof_close_or_give_up(kprof_batch *batch, const char *why)
{
    (void)close_or(batch, false, why);
}

/* The batch must have a chosen launch, since the proof is read for those alone. Afterwards memory is as the own runs
 * left it, and they go on if each replay gave the host the `same`. */
static kprof_status try_replays(kprof_batch *batch, bool replays, bool *same)
{
    kprof_batch_state *state = &batch->state;
    *same = false;
    kprof_status status = end_own_run(batch, kprof_ends_await(&batch->ends, state));
    if (status == KPROF_OK && batch->ends.most_replayed < state->list.count)
        return status; /* kprof must not repeat all of them, so it tries none */
    if (status == KPROF_OK && replays)
        status = kprof_replay_try(&batch->replay, state, &batch->passes);
    if (status != KPROF_OK || batch->passes.replayed < state->list.count)
        return status;
    if (replays)
        kprof_compare_note_same(state, batch->passes.replayed);
    *same = true;
    state->ranges.count = state->ranges.first;
    state->ranges.lenient = state->ranges.unread = 0;
    state->unwatched = state->unwatched && !state->proved;
    return kprof_own_run_begin(&batch->own, state, &batch->passes, NULL);
}

/* The driver may have refused all chosen launches: then kprof does not read the proof, and repeats nothing. */
static bool may_try(const kprof_batch *batch)
{
    const kprof_batch_state *state = &batch->state;
    return !batch->passes.shares && !state->searching && !kprof_state_has_host(state) && state->list.chosen > 0;
}

/* Can the batch be tried or closed without waiting for unrelated work? */
static bool ends_now(const kprof_batch_state *state)
{
    return kprof_wait_is_idle(kprof_wait_for_context(state->context->context));
}

bool kprof_close_behind_copy(kprof_batch *batch)
{
    batch->comparison.shown = may_try(batch);
    if (batch->comparison.shown || !ends_now(&batch->state))
        return false;
    batch->comparison.last = true;
    (void)kprof_close_batch(batch, "a copy to the host, the first behind one of its kernels");
    return true;
}

/* While managed memory stays on the host, is there a launch whose kernel no proof has cleared? If it reaches that
 * memory, the batch is lost, so that it should have few launches. */
static bool has_unproved(kprof_batch *batch)
{
    const kprof_launch_list *list = &batch->state.list;
    size_t *first = &batch->closing.first_unproved;
    if (!kprof_state_has_managed_stay(&batch->state))
        return false;
    *first = *first < list->count ? *first : list->count; /* the driver may have refused the last ones */
    while (*first < list->count && (!list->items[*first].kernel || atomic_load(&list->items[*first].kernel->proved)))
        ++*first;
    return *first < list->count;
}

void kprof_close_or_go_on(kprof_batch *batch)
{
    kprof_batch_state *state = &batch->state;
    const bool replays = batch->comparison.shown;
    bool same, tries = (replays || has_unproved(batch)) && may_try(batch) && ends_now(state);
    batch->comparison.shown = false;
    if (!tries)
        return;
    batch->closing.first_unproved = state->list.count;
    int64_t begun_ns = kprof_monotonic_ns();
    bool entered = kprof_engine.device->target_enter_context(state->context->context);
    kprof_process_forget_reason();
    kprof_recording_hold();
    kprof_status status = try_replays(batch, replays, &same);
    int64_t took_ns = kprof_monotonic_ns() - begun_ns;
    state->times.try_ms += (double)took_ns * 1e-6;
    state->started_ns += took_ns; /* its age is that of its own runs */
    state->list.chosen_ns += took_ns;
    if (status != KPROF_OK)
        finish(batch, replays ? "a try of its replays" : "its proof", status);
    else if (!same)
        (void)kprof_close_batch(batch, replays ? "a copy to the host that differs in replays" : "its proof");
    kprof_recording_release(kprof_state_is_open(state) && kprof_own_run_counts(&batch->own, state));
    if (entered)
        kprof_engine.device->target_leave_context();
}
