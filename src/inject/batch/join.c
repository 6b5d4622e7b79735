/* Decides whether a launch joins the open batch, opens one, is measured in a window, or is not measured. */
#include "inject/batch/join.h"

#include "core/monotonic.h"
#include "inject/batch/close.h"
#include "inject/batch/open.h"
#include "inject/batch/span.h"
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/multiplex.h"
#include "inject/process.h"
#include "inject/range.h"
#include "inject/recording.h"
#include "inject/samples.h"
#include "inject/wait.h"

#include <stdio.h>

/* After this many batches of a context in which a value came too late, later ones close before such waits. */
#define ENOUGH_LATE_VALUES 3

/* A launch that may join a batch, or have one opened for it. */
typedef struct candidate {
    const kprof_batch_launch *launch;
    const kprof_operation *operation; /* NULL: it has none */
    kprof_decision decision;
    bool opens;    /* a batch, where none is open */
    char why[320]; /* what the reason of the decision may point to */
} candidate;

/* May the launch do something that kprof would not notice? A kernel that stayed away from memory of the host may have
 * been led there this time, and where nothing is watched no range tells of it. */
static bool may_do_unseen(const kprof_batch *batch, const kprof_batch_launch *launch, const kprof_operation *operation)
{
    const bool unwatched = batch->state.unwatched;
    if (!unwatched && !kprof_own_run_is_lenient(&batch->own, &batch->state))
        return false;
    if (kprof_state_has_managed_stay(&batch->state)) /* code may have its address, where no argument leads to it */
        return true;
    if (kprof_decision_is_proved(launch, operation) != unwatched)
        return unwatched;
    return kprof_decision_is_suspicious(launch, operation) || kprof_engine.device->target_capturing() ||
           kprof_engine.device->operation_leads_to_host(operation, batch->state.context->snapshot);
}

void kprof_join_add(kprof_batch *batch, const kprof_batch_launch *launch, kprof_operation *operation)
{
    kprof_ends_note_launch(&batch->ends, &batch->state, launch->call);
    if (launch->kernel && may_do_unseen(batch, launch, operation))
        kprof_ends_cut(&batch->ends, batch->state.list.count, KPROF_NOT_WATCHED);
    kprof_state_add(&batch->state, launch, operation);
    if (kprof_span_is_whole(&batch->state))
        kprof_span_note_work(&batch->state, launch);
}

/* May one more operation, and what the call itself adds, join the batch, and is its context idle? */
static bool can_keep(kprof_batch_state *state)
{
    return kprof_state_reserve(state, 2) && !kprof_state_is_full(state, 1) &&
           kprof_wait_is_idle(kprof_wait_for_context(state->context->context));
}

/* Have replays put, before this call, all that has changed since the start; the own run is in no range of the proof.
 * False if that cannot be kept. */
static bool keep_all(kprof_batch *batch, const kprof_call *call)
{
    kprof_batch_state *state = &batch->state;
    kprof_operation *operation = NULL;
    int64_t lap_ns = kprof_monotonic_ns();
    const bool kept = kprof_engine.device->operation_keep_all(state->context->snapshot, &operation) == KPROF_OK;
    state->times.keep_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (kept)
        kprof_join_add(batch, &(kprof_batch_launch){.call = call}, operation);
    if (kprof_own_run_begin_proof(&batch->own, state) != KPROF_OK)
        kprof_state_spoil(state, "CUPTI did not begin a range of the proof");
    return kept;
}

/* Go on behind a launch that has ended. */
static void go_on(kprof_batch *batch, const kprof_call *call)
{
    kprof_batch_state *state = &batch->state;
    if (!batch->behind.keeps) {
        kprof_own_run_watch_reads(&batch->own, state, &batch->passes);
        return;
    }
    if (call->context != state->context->context) /* it does not join the batch */
        return;
    batch->behind.keeps = false;
    if (!can_keep(state) || !keep_all(batch, call))
        kprof_close_or_give_up(batch, "a launch that has changed memory, which cannot be kept");
}

void kprof_join_check_behind(kprof_batch *batch, const kprof_call *call)
{
    if (!kprof_behind_check(&batch->behind, &batch->ends, &batch->state, call))
        kprof_close_seal(batch, KPROF_OTHER_STREAM);
    else if (kprof_state_records(&batch->state) && !batch->behind.stands)
        go_on(batch, call);
}

/* Does the batch, if it is replayed, put back what the operation sets or copies? */
static bool is_saved(const kprof_batch_state *state, const kprof_operation *operation)
{
    return !kprof_state_records(state) || !operation ||
           kprof_engine.device->operation_is_saved(operation, state->context->snapshot);
}

/* Does the decision keep the launch out of batches that others share? */
static bool is_apart(kprof_decision_kind kind)
{
    return kind == KPROF_MULTIPLEXED || kind == KPROF_WATCHED;
}

/* If memory cannot be saved after all, the launch is not repeated, and kprof decides again. No batch is open then if
 * that decision keeps the launch apart. */
static kprof_status open_for(kprof_batch *batch, candidate *c)
{
    kprof_status status = kprof_open_batch(batch, c->launch, &c->decision, 1);
    if (status == KPROF_OK && !is_saved(&batch->state, c->operation)) {
        kprof_close_or_give_up(batch, "a graph that cannot be repeated");
        status = kprof_fail(KPROF_UNSUPPORTED, "the graph sets or copies memory that a replay cannot restore");
    }
    bool cannot_save = status == KPROF_NO_MEMORY || status == KPROF_UNSUPPORTED;
    if (c->launch->repeats || c->decision.kind != KPROF_REPLAYED || !cannot_save || c->launch->metrics->pass_count == 0)
        return status;
    if (!c->launch->chosen) { /* the next chosen launch finds out, and is measured in another way */
        atomic_store(&batch->opening.wanted, NULL);
        return KPROF_OK;
    }
    snprintf(c->why, sizeof c->why, "%s", kprof_process_reason(status));
    c->decision = kprof_decision_unrepeated(c->launch, c->why);
    return is_apart(c->decision.kind) ? KPROF_OK : kprof_open_batch(batch, c->launch, &c->decision, 1);
}

/* If this is the first kernel of its module, save the module's variables before the kernel changes them. */
static bool covers(const kprof_batch_state *state)
{
    return state->kind != KPROF_REPLAYED ||
           kprof_engine.device->snapshot_cover(state->context->snapshot, NULL) == KPROF_OK;
}

const char *kprof_join_obstacle(const kprof_batch *batch, const kprof_batch_launch *launch,
                                const kprof_decision *decision, size_t ranges)
{
    const kprof_batch_state *state = &batch->state;
    if (state->context->context != launch->call->context)
        return "a launch in another context";
    if (launch->repeats)
        return "another range";
    const bool is_node = launch->call->node_traits & KPROF_NODE;
    if (decision->kind != state->kind || (decision->needs && decision->needs != state->needs) ||
        (is_node && state->needs))
        return "a launch that is measured in another way";
    if (kprof_state_is_full(state, ranges))
        return "a launch whose values do not fit";
    if (kprof_state_new_sharing(state) != 0)
        return "memory that others reach";
    if (atomic_load(&state->signs.spoiled))
        return "a call that made it worthless";
    if (state->unwatched && !batch->behind.stands && batch->ends.most_replayed < state->list.count)
        return "a launch that no proof tells of";
    return covers(state) ? NULL : "a launch whose variables cannot be saved";
}

/* Count the ranges that the launch will have, in its own run or in replays. */
static size_t count_ranges(const kprof_batch_state *state, const kprof_batch_launch *launch)
{
    bool searching = kprof_state_records(state) && state->searching;
    return launch->chosen || (searching && launch->kernel) ? 1 : 0;
}

static kprof_status wait_for_idle(void *context)
{
    const kprof_status status = kprof_wait_for_context(context);
    return kprof_wait_is_idle(status) ? KPROF_OK : status;
}

/* Open a window if that is worth it, and return whether it is the launch's turn in the window that is open; NEVER when
 * none could be opened, and `status` says why. */
static kprof_turn find_turn(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision,
                            kprof_status *status)
{
    kprof_batch_state *state = &batch->state;
    const kprof_profiled_context *context = state->context;
    bool is_open = kprof_state_is_open(state), own = is_open && context->context == launch->call->context;
    kprof_turn turn = KPROF_TURN_NEVER;
    if (own)
        turn = kprof_multiplex_turn(context, launch);
    else if (kprof_multiplex_wants(kprof_contexts_find(launch->call->context), launch))
        turn = KPROF_TURN_LATER;
    if (turn == KPROF_TURN_NOW)
        *status = launch->begins_range ? wait_for_idle(launch->call->context)
                                       : kprof_ends_wait_before_range(&batch->ends, state, launch);
    if (*status != KPROF_OK || turn == KPROF_TURN_NEVER)
        return KPROF_TURN_NEVER;
    if (is_open && (turn == KPROF_TURN_NOW || !kprof_multiplex_wants_new_window(context, launch)))
        return turn;
    const bool was_window = atomic_load(&state->signs.window);
    if (!kprof_close_batch(batch, "another pass")) {
        *status = kprof_open_fail_sealed(batch, launch);
        return KPROF_TURN_NEVER;
    }
    if (was_window && kprof_multiplex_has_had_turn(context) && kprof_lock_is_wanted())
        kprof_contexts_release(); /* else the next in line would find them in use */
    *status = kprof_open_batch(batch, launch, decision, 1);
    return *status == KPROF_OK ? kprof_multiplex_turn(state->context, launch) : KPROF_TURN_NEVER;
}

/* Count or sample the launch by its instructions, in a batch by itself, which closes as the launch returns. */
static bool enter_instructed(kprof_batch *batch, const kprof_batch_launch *launch, kprof_source_kind kind,
                             kprof_status *status)
{
    kprof_batch_state *state = &batch->state;
    const kprof_decision instructed = {.kind = KPROF_INSTRUCTED, .why = ""};
    if (!kprof_close_batch(batch, "a launch whose instructions are measured")) {
        *status = kprof_open_fail_sealed(batch, launch);
        return false;
    }
    *status = kprof_open_batch(batch, launch, &instructed, 1);
    if (*status != KPROF_OK)
        return false;
    kprof_group *group = kprof_multiplex_group(state->context, launch);
    if (!group || !kprof_state_reserve(state, 1)) {
        kprof_close_or_give_up(batch, "lack of memory");
        *status = KPROF_NO_MEMORY;
        return false;
    }
    state->list.entered = 0;
    state->ranges.wanted++;
    kprof_join_add(batch, launch, NULL);
    kprof_this_outcome.is_sampled = true;
    kprof_source_begin(&batch->replay.source, kind);
    kprof_source_begin_own(&batch->replay.source, state, group, launch->call->stream);
    return true;
}

/* Begin the range in which the last launch is measured as it runs. */
static void begin_measured(kprof_batch *batch, const kprof_batch_launch *launch, size_t range)
{
    batch->own.tells_end = !launch->begins_range && !kprof_engine.device->target_awaits(launch->call);
    kprof_ends_note_alone(&batch->ends, &batch->state, launch->call);
    kprof_own_run_begin_range(&batch->own, &batch->state, launch->call, range);
}

/* A launch that is not repeated is measured in a window, or runs on its own. */
static bool enter_window(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision,
                         kprof_status *status)
{
    kprof_batch_state *state = &batch->state;
    if (kprof_state_is_open(state) && !atomic_load(&state->signs.window) &&
        !kprof_close_batch(batch, "a launch that cannot be repeated")) {
        *status = kprof_open_fail_sealed(batch, launch);
        return false;
    }
    kprof_source_kind kind;
    if (kprof_multiplex_wants_instructions(kprof_contexts_find(launch->call->context), launch, &kind))
        return enter_instructed(batch, launch, kind, status);
    kprof_turn turn = find_turn(batch, launch, decision, status);
    if (turn != KPROF_TURN_NOW && *status == KPROF_OK)
        kprof_this_outcome.is_sampled = true;
    const kprof_config *config = &kprof_engine.process.config;
    if (turn == KPROF_TURN_LATER && (config->filter.launch_count == 0 || config->tells_all))
        kprof_multiplex_skip(&launch->record); /* else -c asks for samples, and this is none */
    if (turn != KPROF_TURN_NOW)
        return false;
    if (!kprof_state_reserve(state, 1)) {
        *status = KPROF_NO_MEMORY;
        return false;
    }
    state->list.entered = 0;
    state->ranges.wanted++;
    kprof_join_add(batch, launch, NULL);
    size_t range = kprof_samples_take(state->context->samples, launch, decision->why);
    if (!kprof_samples_have_all(state->context->samples, range))
        kprof_this_outcome.is_sampled = true;
    begin_measured(batch, launch, range);
    atomic_store(&batch->own.spans_calls, launch->begins_range);
    return true;
}

/* A range of the application is not repeated: its own run is measured, in a window. Give up one that went on first. */
static bool begin_range(kprof_batch *batch, const kprof_batch_launch *launch, kprof_status *status)
{
    char why[320] = "a range, measured as one";
    const kprof_decision decision = {.kind = KPROF_MULTIPLEXED, .why = why};
    if (*launch->unrepeated)
        snprintf(why, sizeof why, "a range, measured as it runs: %s", launch->unrepeated);
    if (kprof_state_is_open(&batch->state) && atomic_load(&batch->own.spans_calls))
        *status = wait_for_idle(batch->state.context->context);
    if (*status != KPROF_OK)
        return false;
    kprof_own_run_cut_range(&batch->own, &batch->state, "another range");
    return enter_window(batch, launch, &decision, status);
}

/* Let the launch run outside of batches, to see whether it ends by itself, unless earlier work takes long. */
static bool watch(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision,
                  kprof_status *status)
{
    if (kprof_state_replays(&batch->state) && !kprof_close_batch(batch, "a launch that cannot be repeated")) {
        *status = kprof_open_fail_sealed(batch, launch);
        return false;
    }
    *status = kprof_wait_for_context(launch->call->context);
    if (kprof_wait_is_idle(*status)) {
        kprof_this_outcome.is_sampled = true;
        atomic_store(&launch->kernel->to_watch, true);
        *status = kprof_fail(KPROF_NOT_COLLECTED, "%s", decision->why);
    }
    return false;
}

/* A replay has computed something else than the own run, as an earlier copy to the host has shown. So have replays go
 * on, before this copy, from what the own run has left: they then give the host the same, and what comes behind gets
 * the input that it had. False if that cannot be kept. */
static bool keeps_all(kprof_batch *batch, const kprof_call *call)
{
    kprof_batch_state *state = &batch->state;
    if (state->needs || state->searching || state->unwatched || batch->behind.stands || kprof_span_is_whole(state) ||
        (call->node_traits & KPROF_NODE) || !can_keep(state) ||
        !kprof_own_run_pause_proof(&batch->own, state, &batch->passes))
        return false;
    return keep_all(batch, call);
}

/* Close the open batch if the launch cannot join it. */
static void make_way(kprof_batch *batch, const candidate *c)
{
    const kprof_batch_launch *launch = c->launch;
    const kprof_batch_state *state = &batch->state;
    if (kprof_state_records(state) && !kprof_ends_check(&batch->ends, &batch->state, launch))
        kprof_close_seal(batch, KPROF_OTHER_STREAM);
    if (!kprof_state_is_open(state) || kprof_state_is_sealed(state))
        return;
    const char *obstacle = kprof_join_obstacle(batch, launch, &c->decision, count_ranges(state, launch));
    if (!obstacle && (!is_saved(state, c->operation) ||
                      (kprof_compare_ends_at(state, c->operation) && !keeps_all(batch, launch->call))))
        obstacle = launch->call->name;
    if (obstacle && kprof_span_is_whole(state) && c->decision.kind == KPROF_REFUSED && *c->decision.why)
        obstacle = c->decision.why;
    if (obstacle)
        (void)kprof_close_batch(batch, launch->kernel ? obstacle : launch->call->name);
    else if (launch->kernel)
        kprof_close_or_go_on(batch);
}

bool kprof_join_searches(kprof_batch *batch, const kprof_batch_launch *launch, bool *is_idle)
{
    *is_idle = kprof_ends_wait_before_range(&batch->ends, &batch->state, launch) == KPROF_OK;
    if (*is_idle || atomic_load(&batch->own.range_open))
        return true;
    kprof_close_seal(batch, "work before a launch, which has not ended");
    return false;
}

/* Put the launch into a batch, which then owns the operation. */
static bool join(kprof_batch *batch, candidate *c, kprof_operation *operation, kprof_status *status)
{
    kprof_batch_state *state = &batch->state;
    const kprof_batch_launch *launch = c->launch;
    make_way(batch, c);
    if (kprof_state_is_sealed(state)) {
        *status = launch->chosen ? kprof_open_fail_sealed(batch, launch) : KPROF_OK;
        return false;
    }
    if (!kprof_state_is_open(state) && c->opens)
        *status = open_for(batch, c);
    if (kprof_state_is_open(state) && !kprof_state_reserve(state, 1)) {
        kprof_close_or_give_up(batch, "lack of memory");
        *status = KPROF_NO_MEMORY;
    }
    if (!kprof_state_is_open(state) || *status != KPROF_OK)
        return false;
    /* The own run gets a range if that is what kprof measures, or to find out which launch reaches host memory. */
    const bool is_searched = state->kind == KPROF_REPLAYED && state->searching && launch->kernel;
    const bool is_measured = state->kind != KPROF_REPLAYED && launch->chosen;
    bool is_idle = true;
    if (is_searched && !kprof_join_searches(batch, launch, &is_idle))
        *status = launch->chosen ? kprof_open_fail_sealed(batch, launch) : KPROF_OK;
    else if (is_measured)
        *status = kprof_ends_wait_before_range(&batch->ends, state, launch);
    if (kprof_state_is_sealed(state) || *status != KPROF_OK) /* the batch stays as it is */
        return false;
    state->list.entered = 0;
    state->ranges.wanted += count_ranges(state, launch);
    kprof_join_add(batch, launch, operation);
    if (is_searched)
        kprof_own_run_begin_search(&batch->own, state, launch->call, is_idle);
    else if (is_measured)
        begin_measured(batch, launch, state->ranges.count++);
    return true;
}

/* Replays will write there what is there now. Do this before kprof copies for the call, which would take managed pages
 * back. If the host's changes cannot join, the batch ends: they are part of its end and of the next start. */
void kprof_join_follow_host(kprof_batch *batch, const kprof_call *call)
{
    kprof_batch_state *state = &batch->state;
    kprof_operation *operation = NULL;
    if (!kprof_state_has_host(state) || call->context != state->context->context) /* it does not join then */
        return;
    if (!kprof_state_reserve(state, 1) || kprof_state_is_full(state, 0) ||
        kprof_engine.device->operation_keep_host(state->context->snapshot, &operation) != KPROF_OK)
        kprof_close_or_give_up(batch, "memory that the host uses");
    else if (operation)
        kprof_join_add(batch, &(kprof_batch_launch){.call = call}, operation);
    state->list.entered = 0;
}

/* May a launch that nobody chose, or a wait for a value, open a batch? Chosen ones may follow, and be unable to. It may
 * only if kprof need not wait. */
static bool opens_wanted(const kprof_batch *batch, const kprof_batch_launch *launch)
{
    void *context = launch->call->context;
    return launch->metrics && launch->metrics->pass_count > 0 && context && !kprof_range_is_asked_for() &&
           !kprof_state_is_open(&batch->state) && atomic_load(&batch->opening.wanted) == context &&
           kprof_wait_is_idle(kprof_wait_at_most(context, 0));
}

/* The launch runs next, and is in no batch. */
static void begin_behind(kprof_batch *batch, const kprof_batch_launch *launch, kprof_status *status)
{
    batch->behind.stream = launch->call->stream;
    batch->behind.thread = pthread_self();
    batch->state.list.entered = 0;
    if (!launch->chosen)
        return;
    kprof_state_leave_uncounted(&launch->record);
    *status = kprof_fail(KPROF_NOT_COLLECTED, KPROF_MAY_WAIT KPROF_BEHIND_IT);
}

static bool stand_behind(kprof_batch *batch, const kprof_batch_launch *launch, kprof_status *status)
{
    kprof_behind *behind = &batch->behind;
    const kprof_decision replayed = {.kind = KPROF_REPLAYED, .why = ""};
    if (!kprof_close_batch(batch, "a launch that may wait for the application")) {
        *status = launch->chosen ? kprof_open_fail_sealed(batch, launch) : KPROF_OK;
        return false;
    }
    behind->wanted = true;
    kprof_status opened = kprof_open_batch(batch, launch, &replayed, 1);
    behind->wanted = false;
    if (opened != KPROF_OK) {
        const bool is_general = opened != KPROF_UNSUPPORTED && opened != KPROF_NO_MEMORY; /* not of this launch alone */
        if (launch->chosen)
            *status = is_general ? opened : kprof_fail(KPROF_NOT_COLLECTED, "%s", kprof_process_reason(opened));
        return false;
    }
    begin_behind(batch, launch, status);
    return true;
}

/* May the open batch go on behind the launch? Replays leave it out then, as they do functions of the host. If it
 * changes memory, and ends before anything comes behind it, they put what it has left. */
static bool may_go_on_behind(kprof_batch *batch, const kprof_batch_launch *launch)
{
    kprof_batch_state *state = &batch->state;
    const kprof_kernel *kernel = launch->kernel;
    const kprof_decision repeated = {.kind = KPROF_REPLAYED, .why = ""};
    const bool changes = atomic_load(&kernel->changes);
    const bool is_known =
        changes ? !atomic_load(&kernel->is_followed) && !state->unwatched : atomic_load(&kernel->is_quiet);
    const bool may = kprof_state_records(state) && !state->needs && !state->searching && !batch->behind.stands &&
                     !kprof_span_is_whole(state) && batch->ends.most_replayed >= state->list.count && is_known &&
                     !kprof_join_obstacle(batch, launch, &repeated, 0);
    if (!may)
        return false;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = changes ? KPROF_OK : kprof_engine.device->snapshot_watch(state->context->snapshot, false);
    state->times.keep_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status == KPROF_OK && kprof_own_run_pause_proof(&batch->own, state, &batch->passes);
}

static bool go_on_behind(kprof_batch *batch, const kprof_batch_launch *launch, kprof_status *status)
{
    kprof_behind *behind = &batch->behind;
    behind->stands = behind->goes_on = true;
    behind->begun = false;
    behind->keeps = behind->gave_up = atomic_load(&launch->kernel->changes);
    behind->watched = !behind->keeps;
    behind->first = batch->state.list.count;
    behind->kernel = launch->kernel;
    if (!behind->keeps && kprof_behind_may_prove(launch->kernel, launch->metrics) &&
        kprof_own_run_begin_proof(&batch->own, &batch->state) != KPROF_OK)
        kprof_state_spoil(&batch->state, "CUPTI did not begin a range of the proof");
    if (launch->chosen)
        batch->state.list.chosen_ns = kprof_monotonic_ns();
    begin_behind(batch, launch, status);
    return true;
}

/* Replays ignore a transfer within the host's memory, like a function of the host. The proof must not see it. */
static bool pass_by(kprof_batch *batch, const kprof_batch_launch *launch)
{
    kprof_batch_state *state = &batch->state;
    if (launch->kernel || !kprof_state_records(state) || state->context->context != launch->call->context ||
        !kprof_engine.device->transfer_is_hosts(launch->call) ||
        !kprof_own_run_pause_proof(&batch->own, state, &batch->passes))
        return false;
    batch->own.proof_paused = true;
    state->list.entered = 0;
    return true;
}

/* Replays leave it out, as they have managed memory where kernels and what they write put it. As the call returns kprof
 * waits until the memory has moved: a page that the host writes before that would go with it, unseen. */
static bool go_on_over_migration(kprof_batch *batch, const kprof_call *call)
{
    const kprof_batch_state *state = &batch->state;
    const bool goes_on = kprof_state_records(state) && kprof_state_has_managed(state) && state->list.count > 0 &&
                         state->context->context == call->context;
    if (!goes_on)
        (void)kprof_close_batch(batch, call->name);
    return goes_on;
}

/* May the batch go on over a wait for a value? The own run waits, and replays need not, if what brings the value comes
 * before what is behind the wait. */
static bool may_await_value(const kprof_batch *batch, const kprof_call *call)
{
    const kprof_batch_state *state = &batch->state;
    return kprof_state_is_of(state, call) && !kprof_state_has_host(state) && !state->needs && !state->searching &&
           state->context->late_values < ENOUGH_LATE_VALUES && !atomic_load(&state->signs.spoiled);
}

/* Launches behind the wait may come while the context is at work, when none of them can open a batch. */
static bool opens_at_wait(const kprof_batch *batch, const kprof_batch_launch *wait)
{
    const kprof_profiled_context *known = kprof_contexts_find(wait->call->context);
    const kprof_decision unknown = {.kind = KPROF_REFUSED, .why = ""};
    return opens_wanted(batch, wait) && kprof_decision_may_follow(wait, &unknown) &&
           (!known || known->late_values < ENOUGH_LATE_VALUES);
}

static bool await_value(kprof_batch *batch, const kprof_batch_launch *wait)
{
    kprof_batch_state *state = &batch->state;
    const kprof_decision replayed = {.kind = KPROF_REPLAYED, .why = ""};
    if (opens_at_wait(batch, wait) && kprof_open_batch(batch, wait, &replayed, 1) != KPROF_OK)
        return false;
    if (!kprof_state_records(state))
        return false;
    if (!may_await_value(batch, wait->call))
        (void)kprof_close_batch(batch, wait->call->name);
    else if (!kprof_ends_check(&batch->ends, state, wait))
        kprof_close_seal(batch, KPROF_OTHER_STREAM);
    if (!kprof_state_records(state))
        return false;
    kprof_ends_note_value_wait(&batch->ends, state, wait->call);
    state->list.entered = 0;
    batch->awaits_value = true;
    return true;
}

/* kprof saw all this while kernels could reach managed memory unseen: it finds it out anew. */
static void forget_what_was_seen(kprof_kernel *kernel)
{
    atomic_store(&kernel->proved, false);
    atomic_store(&kernel->ends_late, false);
    atomic_store(&kernel->timeouts, 0);
}

bool kprof_join_has_managed_stay(kprof_batch *batch, const kprof_batch_launch *launch, const kprof_decision *decision)
{
    if (!kprof_decision_wants_managed_to_stay(launch, decision) ||
        !kprof_close_batch(batch, "managed memory that is to stay on the host"))
        return false;
    kprof_engine.device->managed_stay();
    kprof_kernels_visit(forget_what_was_seen);
    return true;
}

bool kprof_join_launch(kprof_batch *batch, const kprof_batch_launch *launch, kprof_status *status)
{
    kprof_batch_state *state = &batch->state;
    *status = KPROF_OK;
    if (kprof_state_is_sealed(state) && !kprof_close_batch(batch, batch->closing.why)) {
        *status = launch->chosen ? kprof_open_fail_sealed(batch, launch) : KPROF_OK;
        return false;
    }
    if (launch->begins_range)
        return begin_range(batch, launch, status);
    kprof_join_check_behind(batch, launch->call);
    if (launch->call->kind == KPROF_CALL_VALUE_WAIT)
        return await_value(batch, launch);
    kprof_join_follow_host(batch, launch->call);
    if (launch->call->kind == KPROF_CALL_MIGRATE)
        return go_on_over_migration(batch, launch->call);
    if (pass_by(batch, launch))
        return true;
    const bool opens = launch->chosen || opens_wanted(batch, launch);
    if (!opens && !kprof_state_records(state))
        return false;
    const bool is_live = kprof_decision_is_live(launch);
    kprof_operation *operation = NULL;
    const bool left_out = !launch->kernel && kprof_recording_leave_out(launch->call->context);
    if (!is_live)
        operation = kprof_engine.device->operation_copy(launch->call,
                                                        kprof_state_records(state) ? state->context->snapshot : NULL);
    kprof_recording_go_on(left_out);
    const kprof_decision_kind kind = is_live ? KPROF_LIVE : operation ? KPROF_REPLAYED : KPROF_REFUSED;
    candidate c = {.launch = launch, .operation = operation, .opens = opens, .decision = {.kind = kind, .why = ""}};
    if (launch->kernel && !is_live)
        c.decision = kprof_decision_make(launch, operation);
    if (launch->kernel && !is_live && kprof_join_has_managed_stay(batch, launch, &c.decision))
        c.decision = kprof_decision_make(launch, operation);
    if (launch->repeats && c.decision.kind != KPROF_REPLAYED) {
        kprof_engine.device->operation_free(operation);
        *status = kprof_fail(KPROF_NOT_COLLECTED, "%s", c.decision.why);
        return false;
    }
    if (kprof_behind_may_stand(launch, &c.decision)) {
        kprof_engine.device->operation_free(operation);
        return may_go_on_behind(batch, launch) ? go_on_behind(batch, launch, status)
                                               : stand_behind(batch, launch, status);
    }
    if (!is_apart(c.decision.kind) && join(batch, &c, operation, status))
        return true;
    kprof_engine.device->operation_free(operation);
    if (*status != KPROF_OK || !is_apart(c.decision.kind))
        return false;
    return c.decision.kind == KPROF_WATCHED ? watch(batch, launch, &c.decision, status)
                                            : enter_window(batch, launch, &c.decision, status);
}
