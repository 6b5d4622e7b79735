/* Pushes ranges around what the application launches, and never makes a call wait for work without a limit. */
#include "inject/batch/own_run.h"

#include "core/monotonic.h"
#include "inject/batch/caches.h"
#include "inject/batch/proof.h"
#include "inject/decision.h"
#include "inject/engine.h"
#include "inject/multiplex.h"
#include "inject/recording.h"
#include "inject/samples.h"
#include "inject/wait.h"

#include <stdio.h>

kprof_status kprof_own_run_begin(kprof_own_run *own, kprof_batch_state *state, kprof_passes *passes,
                                 const kprof_batch_launch *opener)
{
    int64_t lap_ns = kprof_monotonic_ns();
    if ((state->kind == KPROF_REPLAYED && !state->proved) || state->kind == KPROF_INSTRUCTED)
        return KPROF_OK; /* the application's own run is in no pass of the profiler's */
    bool window = state->kind == KPROF_MULTIPLEXED;
    kprof_status status = kprof_state_has_managed_stay(state) ? kprof_engine.device->managed_hold() : KPROF_OK;
    if (status != KPROF_OK)
        return status;
    status = window ? kprof_passes_begin_window(state, opener) : kprof_passes_begin_own(passes, state);
    if (status == KPROF_OK && !window)
        status = kprof_engine.device->target_synchronize();
    state->times.prepare_ms += kprof_monotonic_lap_ms(&lap_ns);
    KPROF_THEN(status, kprof_passes_start(state));
    own->in_pass = status == KPROF_OK;
    if (status != KPROF_OK)
        return status;
    status = kprof_own_run_begin_proof(own, state);
    if (status != KPROF_OK) {
        bool more;
        (void)kprof_passes_stop(state, &more);
        own->in_pass = false;
    }
    return status;
}

bool kprof_own_run_counts(const kprof_own_run *own, const kprof_batch_state *state)
{
    if (state->kind == KPROF_INSTRUCTED)
        return true;
    return own->in_pass && (state->kind != KPROF_REPLAYED || state->searching || kprof_recording_spoils_proofs());
}

kprof_status kprof_own_run_begin_proof(kprof_own_run *own, kprof_batch_state *state)
{
    if (!state->proved || state->searching || !own->in_pass || state->unwatched)
        return KPROF_OK;
    state->unwatched = !kprof_wait_is_idle(kprof_wait_for_context(state->context->context));
    if (state->unwatched)
        return KPROF_OK;
    kprof_status status = kprof_engine.device->profiler_push(state->context->profiler, state->ranges.count++);
    own->proof_open = status == KPROF_OK;
    return status;
}

/* The range may lack its launch, or have later work. */
static void lose_range(kprof_own_run *own, kprof_batch_state *state, const char *why)
{
    kprof_state_spoil(state, why);
    const char *none = NULL;
    (void)atomic_compare_exchange_strong(&own->lost_range, &none, why);
}

static void pop_range(kprof_own_run *own, kprof_batch_state *state)
{
    if (kprof_engine.device->profiler_pop(state->context->profiler) != KPROF_OK)
        lose_range(own, state, "CUPTI did not end a range");
    atomic_store(&own->range_open, false);
}

static uint64_t bit_of_last(const kprof_batch_state *state)
{
    return UINT64_C(1) << (state->ranges.count - state->ranges.first - 1);
}

bool kprof_own_run_is_lenient(const kprof_own_run *own, const kprof_batch_state *state)
{
    return own->proof_open && (state->ranges.lenient & bit_of_last(state));
}

/* A range that is about to end may have nothing but the launch that the batch stands behind. */
static void note_unread(const kprof_own_run *own, kprof_batch_state *state)
{
    if (!kprof_own_run_is_lenient(own, state) || state->list.count > own->lenient_from)
        return;
    state->ranges.lenient &= ~bit_of_last(state);
    state->ranges.unread |= bit_of_last(state);
}

static bool end_proof(kprof_own_run *own, kprof_batch_state *state)
{
    note_unread(own, state);
    own->proof_open = false;
    return kprof_engine.device->profiler_pop(state->context->profiler) == KPROF_OK;
}

void kprof_own_run_watch_writes(kprof_own_run *own, kprof_batch_state *state)
{
    own->lenient_from = state->list.count;
    if (own->proof_open && state->proved)
        state->ranges.lenient |= bit_of_last(state);
    else
        state->unwatched = kprof_decision_needs_proof();
}

void kprof_own_run_watch_reads(kprof_own_run *own, kprof_batch_state *state, const kprof_passes *passes)
{
    if (state->unwatched || !kprof_own_run_is_lenient(own, state))
        return;
    state->unwatched = !kprof_wait_is_idle(kprof_wait_at_most(state->context->context, 0)) ||
                       !kprof_own_run_pause_proof(own, state, passes);
    if (kprof_own_run_begin_proof(own, state) != KPROF_OK)
        kprof_state_spoil(state, "CUPTI did not begin a range of the proof");
}

void kprof_own_run_drop_proof(kprof_own_run *own, kprof_batch_state *state)
{
    if (own->proof_open && !end_proof(own, state))
        kprof_state_spoil(state, "CUPTI did not end a range of the proof");
    state->proved = false;
}

bool kprof_own_run_pause_proof(kprof_own_run *own, kprof_batch_state *state, const kprof_passes *passes)
{
    if (atomic_load(&own->range_open)) { /* of a search */
        if (!kprof_wait_is_idle(kprof_wait_for_context(state->context->context)))
            return false;
        pop_range(own, state);
    }
    if (!own->proof_open)
        return true;
    if (passes->shares || state->ranges.count - state->ranges.first >= kprof_passes_count_proof(state) ||
        !kprof_wait_is_idle(kprof_wait_for_context(state->context->context)))
        return false;
    if (!end_proof(own, state))
        kprof_state_spoil(state, "CUPTI did not end a range of the proof");
    return true;
}

void kprof_own_run_begin_range(kprof_own_run *own, kprof_batch_state *state, const kprof_call *call, size_t range)
{
    kprof_launch_list *list = &state->list;
    void *stream = call->stream;
    if (state->kind == KPROF_LIVE && stream != own->stream && !own->is_threads)
        kprof_caches_follow(state, own->stream);
    if (state->kind != KPROF_REPLAYED)
        kprof_caches_clear(state, stream);
    if (state->kind == KPROF_MULTIPLEXED)
        kprof_multiplex_keep_note(state, range);
    own->stream = stream;
    own->is_threads = call->is_threads_stream;
    for (size_t i = list->count - list->entered; i < list->count; i++)
        list->items[i].own_range = range;
    if (list->entered == 1)
        list->items[list->count - 1].range = range;
    if (kprof_engine.device->profiler_push(state->context->profiler, range) != KPROF_OK)
        lose_range(own, state, "CUPTI did not begin a range");
}

/* CUPTI may wait for the launch without a limit when the range ends, and what comes later in other streams does not
 * run before the launch has ended. So unless kprof has seen the kernel end by itself, that comes first. If it does not,
 * the range goes on, and the batch ends with it: if the application submits nothing else before the launch has ended,
 * the range still has that launch alone. */
bool kprof_own_run_end_range(kprof_own_run *own, kprof_batch_state *state, const kprof_open_launch *launch)
{
    const bool has_more = atomic_exchange(&own->spans_calls, false); /* it may not end by itself */
    kprof_kernel *kernel = launch->kernel;
    const bool is_known = kernel && atomic_load(&kernel->ends_alone) && atomic_load(&kernel->timeouts) == 0;
    if (has_more || (kernel && !is_known)) {
        void *context = state->context->context;
        const bool ended = kprof_wait_is_idle(has_more ? kprof_wait_for_context(context)
                                                       : kprof_wait_at_most(context, kprof_kernel_patience_ns(kernel)));
        if (kernel && ended)
            atomic_store(&kernel->ends_alone, true);
        if (kernel && !ended)
            kprof_kernel_note_timeout(kernel);
        if (!ended) {
            atomic_store(&own->range_open, true);
            return false;
        }
    }
    pop_range(own, state);
    return true;
}

void kprof_own_run_begin_search(kprof_own_run *own, kprof_batch_state *state, const kprof_call *call, bool is_idle)
{
    kprof_launch_list *list = &state->list;
    if (is_idle && atomic_load(&own->range_open))
        pop_range(own, state);
    if (!atomic_load(&own->range_open)) {
        kprof_own_run_begin_range(own, state, call, state->ranges.count++);
        return;
    }
    for (size_t i = list->count - list->entered; i < list->count; i++) {
        list->items[i].own_range = state->ranges.count - 1;
        list->items[i].shares_range = true;
    }
}

/* Nothing tells whether a launch that goes on only takes long, or waits: for the host, whose memory the proof will show
 * it to reach, or for later work in another stream. */
void kprof_own_run_end_search(kprof_own_run *own, kprof_batch_state *state)
{
    kprof_kernel *kernel = state->list.entered == 1 ? state->list.items[state->list.count - 1].kernel : NULL;
    const bool ended = kprof_wait_is_idle(kprof_wait_for_context(state->context->context));
    atomic_store(&own->range_open, !ended);
    if (ended)
        pop_range(own, state);
    else if (kernel && !atomic_load(&kernel->ends_alone))
        kprof_kernel_note_timeout(kernel);
}

void kprof_own_run_cut_range(kprof_own_run *own, kprof_batch_state *state, const char *why)
{
    kprof_launch_list *list = &state->list;
    char reason[KPROF_NOTE_BYTES];
    const char *overdue = atomic_exchange(&own->overdue, NULL);
    if (!atomic_exchange(&own->spans_calls, false))
        return;
    if (kprof_engine.device->profiler_pop(state->context->profiler) != KPROF_OK)
        lose_range(own, state, "CUPTI did not end a range");
    snprintf(reason, sizeof reason, "%s%s", overdue ? "" : "before the range ended its pass was closed by ",
             overdue ? overdue : why);
    kprof_open_launch *cut = &list->items[--list->count];
    list->chosen--;
    kprof_samples_drop(state->context->samples, cut->range, &cut->record, "a later range of its sample was cut short");
    kprof_deliver_launch(&cut->record, reason);
}

void kprof_own_run_note_other_work(kprof_own_run *own, kprof_batch_state *state)
{
    if (!atomic_load(&own->range_open))
        return;
    const kprof_launch_list *list = &state->list; /* empty where the driver has refused the launch */
    kprof_kernel *kernel = list->count > 0 ? list->items[list->count - 1].kernel : NULL;
    if (kernel && state->kind != KPROF_REPLAYED && !atomic_load(&own->lost_range))
        atomic_fetch_add(&kernel->lost_runs, 1);
    lose_range(own, state, "other work came before the launch had ended");
}

static kprof_status end_pass(kprof_own_run *own, kprof_batch_state *state, kprof_passes *passes)
{
    bool more = false;
    kprof_status status = KPROF_OK;
    kprof_own_run_cut_range(own, state, own->closed_by);
    note_unread(own, state);
    if (atomic_load(&own->range_open) || own->proof_open)
        status = kprof_engine.device->profiler_pop(state->context->profiler);
    own->proof_open = false;
    atomic_store(&own->range_open, false);
    kprof_status stopped = kprof_passes_stop(state, &more);
    own->in_pass = false;
    KPROF_THEN(status, stopped);
    if (status != KPROF_OK || state->list.chosen == 0)
        return status;
    const char *lost = atomic_load(&own->lost_range);
    if (lost && state->kind != KPROF_REPLAYED)
        return kprof_fail(KPROF_NOT_COLLECTED, "the launch was not measured: %s", lost);
    if (state->kind == KPROF_MULTIPLEXED)
        return kprof_multiplex_read_window(state);
    if (state->searching && atomic_load(&state->signs.spoiled)) /* a launch may have no range; nothing is replayed */
        return KPROF_OK;
    if (state->kind == KPROF_REPLAYED && !state->proved) /* the pass was in case that the launch would not end */
        return KPROF_OK;
    return state->proved ? kprof_proof_check(state) : kprof_passes_read(passes, state, 0, more);
}

kprof_status kprof_own_run_end(kprof_own_run *own, kprof_batch_state *state, kprof_passes *passes, kprof_status awaited)
{
    passes->replayed = state->list.count;
    if (!kprof_wait_is_idle(awaited)) {
        state->context->left_in_pass = own->in_pass;
        return awaited;
    }
    kprof_status ended = own->in_pass ? end_pass(own, state, passes) : KPROF_OK;
    kprof_passes_wait(state); /* whatever the status: threads may be at it */
    if (kprof_state_has_managed_stay(state) && !kprof_engine.device->managed_let_go(ended == KPROF_NOT_COLLECTED) &&
        ended == KPROF_OK)
        ended = kprof_fail(KPROF_NOT_COLLECTED, "managed memory came, or left the host, while the batch was open");
    if (awaited != KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED, "this launch, or one measured with it, failed");
    return ended;
}
