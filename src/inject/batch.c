/* Owns the open batch of the process, and goes on with it when a call has returned. */
#include "inject/batch.h"

#include "core/monotonic.h"
#include "inject/batch/caches.h"
#include "inject/batch/close.h"
#include "inject/batch/graph.h"
#include "inject/batch/join.h"
#include "inject/batch/open.h"
#include "inject/batch/span.h"
#include "inject/batch/stages.h"
#include "inject/decision.h"
#include "inject/deliver.h"
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/process.h"
#include "inject/range.h"
#include "inject/recording.h"
#include "inject/samples.h"
#include "inject/wait.h"

#include <stdio.h>

/* Close a batch that has had no chosen launch for this long: each pass repeats what is not chosen, too. */
#define MAX_UNCHOSEN_NS INT64_C(250000000)

kprof_batch kprof_the_batch;

bool kprof_batch_is_open(void)
{
    return kprof_state_is_open(&kprof_the_batch.state);
}

bool kprof_batch_is_window(void)
{
    return atomic_load_explicit(&kprof_the_batch.state.signs.window, memory_order_relaxed);
}

bool kprof_batch_records(void)
{
    return kprof_state_records(&kprof_the_batch.state);
}

bool kprof_batch_replays(void)
{
    return kprof_state_replays(&kprof_the_batch.state);
}

bool kprof_batch_is_sealed(void)
{
    return kprof_state_is_sealed(&kprof_the_batch.state);
}

bool kprof_batch_is_of(const kprof_call *call)
{
    return kprof_state_is_of(&kprof_the_batch.state, call);
}

bool kprof_batch_is_wanted(const void *context)
{
    return context && atomic_load(&kprof_the_batch.opening.wanted) == context;
}

unsigned kprof_batch_new_sharing(void)
{
    return kprof_state_new_sharing(&kprof_the_batch.state);
}

bool kprof_batch_saves_host(void)
{
    return kprof_state_saves_host(&kprof_the_batch.state);
}

bool kprof_batch_has_host(void)
{
    return kprof_state_has_host(&kprof_the_batch.state);
}

void kprof_batch_note_unknown_end(void)
{
    atomic_store(&kprof_the_batch.ends.unknown, true);
}

void kprof_batch_note_other_work(const kprof_call *call)
{
    if (call->kind != KPROF_CALL_OTHER && call->kind != KPROF_CALL_VALUE_WAIT)
        kprof_own_run_note_other_work(&kprof_the_batch.own, &kprof_the_batch.state);
    kprof_ends_note_other_work(&kprof_the_batch.ends, &kprof_the_batch.state, call);
}

void kprof_batch_spoil(const char *reason)
{
    kprof_state_spoil(&kprof_the_batch.state, reason);
}

void kprof_batch_stop_behind(void)
{
    const kprof_batch_state *state = &kprof_the_batch.state;
    (void)kprof_engine.device->managed_let_go(false); /* the call may ask where it is to be */
    if (!kprof_state_replays(state) || !kprof_the_batch.behind.stands || !kprof_the_batch.behind.begun)
        return;
    const bool entered = kprof_engine.device->target_enter_context(state->context->context);
    kprof_engine.device->snapshot_stop_following(state->context->snapshot);
    if (entered)
        kprof_engine.device->target_leave_context();
}

bool kprof_batch_repeats_for_long(int64_t limit_ns, size_t *count)
{
    const kprof_batch *batch = &kprof_the_batch;
    int64_t since_ns = atomic_load(&batch->replay.since_ns);
    int64_t over_ns = kprof_monotonic_ns() - since_ns - limit_ns;
    *count = atomic_load(&batch->replay.operations);
    return since_ns != 0 && over_ns >= 0 && over_ns >= atomic_load(&batch->replay.longest_pass_ns);
}

int64_t kprof_batch_opened_ns(void)
{
    return kprof_the_batch.state.opened_ns;
}

void kprof_batch_begin_call(void)
{
    kprof_this_outcome = (kprof_open_outcome){0};
}

bool kprof_batch_has_put_off(void)
{
    return kprof_this_outcome.is_put_off;
}

bool kprof_batch_has_sampled(void)
{
    return kprof_this_outcome.is_sampled;
}

bool kprof_batch_enter(const kprof_batch_launch *launch, kprof_status *status)
{
    return kprof_join_launch(&kprof_the_batch, launch, status);
}

bool kprof_batch_enter_all(const kprof_batch_launch *launches, size_t count, kprof_status *status)
{
    return kprof_graph_join(&kprof_the_batch, (kprof_graph_launches){launches, count}, status);
}

bool kprof_batch_close(const char *why)
{
    return kprof_close_batch(&kprof_the_batch, why);
}

void kprof_batch_end(const char *why)
{
    kprof_close_or_give_up(&kprof_the_batch, why);
}

/* A range that goes on then has all the work that it ever has. */
void kprof_batch_end_with_process(const char *why)
{
    if (kprof_batch_spans_calls())
        kprof_batch_end_range();
    kprof_batch_end(why);
}

bool kprof_batch_close_idle(const char *why)
{
    kprof_batch_state *state = &kprof_the_batch.state;
    if (kprof_state_is_open(state) && !kprof_engine.device->target_capturing() &&
        kprof_wait_is_idle(kprof_wait_at_most(state->context->context, 0))) {
        kprof_the_batch.closing.lost_in_pause |= kprof_state_has_host(state);
        (void)kprof_batch_close(why);
    }
    return !kprof_state_is_open(state);
}

bool kprof_batch_context_ending(void *context)
{
    kprof_batch *batch = &kprof_the_batch;
    void *ending = context;
    (void)atomic_compare_exchange_strong(&batch->opening.wanted, &ending, NULL);
    if (!kprof_state_is_open(&batch->state) || batch->state.context->context != context)
        return false;
    bool in_pass = batch->own.in_pass;
    kprof_close_deliver_reason(batch, "the context ended before the launch was measured");
    kprof_open_release(batch, false);
    return in_pass;
}

void kprof_batch_forget(void)
{
    kprof_batch_state *state = &kprof_the_batch.state;
    atomic_store(&state->signs.window, false);
    atomic_store(&state->signs.in_range, false);
    atomic_store(&state->signs.records, false);
    atomic_store(&state->signs.replays, false);
    atomic_store(&state->signs.sealed, false);
    atomic_store(&state->signs.open, false);
    state->list.count = 0;
}

/* The application may map memory with no context current, or another one. To save an allocation may take managed pages
 * from the host, so kprof looks first what the host wrote there. */
void kprof_batch_cover(const kprof_call *call)
{
    kprof_batch *batch = &kprof_the_batch;
    kprof_batch_state *state = &batch->state;
    if (kprof_state_has_managed(state) && (call->stream || call->context != state->context->context))
        kprof_batch_end(call->name);
    kprof_join_follow_host(batch, call);
    if (!kprof_state_records(state))
        return;
    bool entered = kprof_engine.device->target_enter_context(state->context->context);
    kprof_status status = kprof_engine.device->snapshot_cover(state->context->snapshot, call->stream);
    if (status == KPROF_NOT_COLLECTED) /* nothing that the batch has uses this memory */
        kprof_close_seal(batch, call->name);
    else if (status != KPROF_OK)
        kprof_state_spoil(state, "memory that was allocated meanwhile could not be saved");
    if (entered)
        kprof_engine.device->target_leave_context();
}

/* The call takes away something of kprof's own instead. Making that may take pages of managed memory from the host.
 * Loading a module waits for the GPU. So does unloading one, and the application may rely on that. */
bool kprof_batch_keep_freed(const kprof_call *call)
{
    const kprof_batch_state *state = &kprof_the_batch.state;
    if (call->kind != KPROF_CALL_POOL_FREE)
        kprof_join_follow_host(&kprof_the_batch, call);
    return kprof_state_replays(state) && state->context->context == call->context &&
           (call->kind != KPROF_CALL_UNLOAD || kprof_wait_is_idle(kprof_wait_for_context(call->context))) &&
           kprof_engine.device->snapshot_keep_freed(state->context->snapshot, call);
}

/* The launch that the batch stands behind is submitted: what it changes becomes part of the start. */
static void begin_behind(kprof_batch *batch)
{
    kprof_batch_state *state = &batch->state;
    batch->behind.begun = true;
    if (!batch->behind.keeps)
        kprof_own_run_watch_writes(&batch->own, state);
    kprof_lock_note_stuck(true);
    if (kprof_engine.device->snapshot_follow(state->context->snapshot, batch->behind.stream, !batch->behind.goes_on) !=
        KPROF_OK)
        kprof_state_spoil(state, "what the launch before it changes could not be saved");
}

/* The batch was opened for one launch, which has returned. If that does not end, the batch goes on without it. */
static void settle_prepared(kprof_batch *batch, const kprof_call *call)
{
    kprof_batch_state *state = &batch->state;
    kprof_open_launch *first = &state->list.items[0];
    batch->behind.prepared = false;
    if (call->failed || kprof_wait_is_idle(kprof_ends_await(&batch->ends, state))) {
        if (!(state->needs & KPROF_ON_TRIAL))
            kprof_own_run_drop_proof(&batch->own, state);
        return;
    }
    if (kprof_engine.device->target_capturing() || !kprof_engine.device->snapshot_leave_host(state->context->snapshot))
        return;
    state->proved = batch->own.proof_open && kprof_behind_may_prove(first->kernel, state->metrics);
    kprof_state_leave_uncounted(&first->record);
    kprof_deliver_launch(&first->record, KPROF_DID_NOT_END KPROF_BEHIND_IT);
    kprof_engine.device->operation_free(first->operation);
    state->list.count = state->list.chosen = state->list.entered = batch->ends.unproved = 0;
    state->ranges.wanted = 0;
    state->needs = 0;
    atomic_store(&state->signs.saves_host, false);
    batch->behind.stands = true;
}

/* The driver refused the call: nothing ran. A range that it had stays empty. */
static void take_back(kprof_batch *batch)
{
    kprof_batch_state *state = &batch->state;
    kprof_launch_list *list = &state->list;
    for (; list->entered > 0; list->entered--) {
        kprof_open_launch *last = &list->items[--list->count];
        if (last->chosen) {
            kprof_deliver_launch(&last->record, "the driver refused the launch");
            list->chosen--;
        }
        if (last->own_range == KPROF_NO_RANGE)
            state->ranges.wanted -= last->chosen;
        if (state->kind == KPROF_MULTIPLEXED)
            kprof_samples_drop(state->context->samples, last->range, &last->record,
                               "the driver refused another launch of its sample");
        kprof_engine.device->operation_free(last->operation);
    }
    if (batch->ends.unproved > list->count)
        batch->ends.unproved = list->count;
}

/* Keep what the call, which has returned, copies from the host, or from the device within a graph. */
static void keep_copied(kprof_batch_state *state)
{
    const kprof_launch_list *list = &state->list;
    const size_t first = list->count - list->entered;
    const bool left_out = KPROF_ANY(i, list->entered, !list->items[first + i].kernel) &&
                          kprof_recording_leave_out(state->context->context);
    for (size_t i = first; i < list->count; i++)
        if (list->items[i].operation && kprof_engine.device->operation_returned(list->items[i].operation) != KPROF_OK)
            kprof_state_spoil(state, "what came from the host, or went to it, could not be kept");
    kprof_recording_go_on(left_out);
    if (list->entered > 0 && (list->entered_traits & KPROF_NODE_IS_TOLD) &&
        !kprof_wait_is_idle(kprof_wait_for_context(state->context->context)))
        kprof_state_spoil(state, "a graph did not end by itself, and the host may have changed what it copied");
}

/* Until its next call the application may use memory that it shares with the GPU, and kprof sees no call of that. If no
 * kernel runs meanwhile, kprof can tell later what the application wrote. While other processes wait, a batch that is
 * open in a pause is lost: pauses come behind waits and transfers, and seldom behind a launch. The list may be empty,
 * where the driver refused its only launch. */
static bool stays_over_gap(kprof_batch *batch)
{
    const kprof_launch_list *list = &batch->state.list;
    const bool is_launch = list->count > 0 && list->items[list->count - 1].kernel,
               may_pause = batch->closing.lost_in_pause || !is_launch;
    return !(may_pause && kprof_lock_is_wanted()) && kprof_wait_is_idle(kprof_ends_await(&batch->ends, &batch->state));
}

bool kprof_batch_ends_at_wait(void)
{
    return kprof_state_has_host(&kprof_the_batch.state) && !kprof_engine.device->target_capturing() &&
           kprof_lock_is_wanted();
}

/* End the range of the call that has returned. Flushes wait for its stream from now on where they could not name it
 * later: in a window the application may destroy the stream first, and a thread's default stream is another one to the
 * thread that flushes next. */
static void end_range(kprof_batch *batch)
{
    kprof_batch_state *state = &batch->state;
    const kprof_open_launch *last = &state->list.items[state->list.count - 1];
    if (last->own_range == KPROF_NO_RANGE || kprof_state_is_sealed(state))
        return;
    if (state->kind == KPROF_REPLAYED)
        kprof_own_run_end_search(&batch->own, state);
    else if (!kprof_own_run_end_range(&batch->own, state, last))
        kprof_close_seal(batch, "a launch that has not ended");
    if (state->kind == KPROF_MULTIPLEXED || (state->kind == KPROF_LIVE && batch->own.is_threads))
        kprof_caches_follow(state, batch->own.stream);
}

/* A batch that ends before its range is not repeated. */
static void close_span_if_due(kprof_batch *batch)
{
    const kprof_batch_state *state = &batch->state;
    const char *overdue = atomic_load(&batch->own.overdue);
    if (state->list.chosen == 0)
        kprof_batch_end("a launch that the driver refused");
    else if (overdue)
        kprof_batch_end(overdue);
    else if (kprof_state_is_full(state, 0))
        (void)kprof_batch_close("the last launch that fits");
    else if (kprof_compare_ends_behind_graph(state))
        (void)kprof_batch_close("a graph that copies to the host what cannot be compared");
}

/* Close the batch if it is full, or old, or a replay could not go on behind the call. */
static void close_if_due(kprof_batch *batch)
{
    const kprof_batch_state *state = &batch->state;
    const bool is_window = state->kind == KPROF_MULTIPLEXED;
    int64_t unchosen_ns = kprof_monotonic_ns() - state->list.chosen_ns;
    if (kprof_span_is_whole(state)) {
        close_span_if_due(batch);
        return;
    }
    if (kprof_compare_is_longer(state))
        batch->comparison.shown = true;
    if (kprof_state_has_host(state) && !stays_over_gap(batch))
        kprof_batch_end("memory that the host uses");
    else if (state->needs && !kprof_state_saves_host(state))
        kprof_batch_end("a launch that is repeated by itself");
    else if (kprof_state_is_full(state, 1))
        (void)kprof_batch_close("the last launch that fits");
    else if (!is_window && kprof_process_has_chosen_all())
        (void)kprof_batch_close("the last launch that was asked for");
    else if (kprof_compare_ends_behind_graph(state))
        (void)kprof_batch_close("a graph that copies to the host what cannot be compared");
    else if (kprof_compare_shows_unknown(&batch->comparison, state) && kprof_close_behind_copy(batch))
        return;
    else if (kprof_close_is_due(batch))
        (void)kprof_batch_close("its age");
    else if (state->kind == KPROF_REPLAYED && unchosen_ns > MAX_UNCHOSEN_NS)
        (void)kprof_batch_close("lack of chosen launches");
}

bool kprof_batch_spans_calls(void)
{
    const kprof_batch_signs *signs = &kprof_the_batch.state.signs;
    const bool in_range = atomic_load(&signs->in_range) && !atomic_load(&signs->sealed);
    return in_range || atomic_load(&kprof_the_batch.own.spans_calls);
}

void kprof_batch_note_order(const kprof_call *call, bool has_returned)
{
    if (atomic_load_explicit(&kprof_the_batch.state.signs.in_range, memory_order_relaxed))
        kprof_span_note_order(&kprof_the_batch.state.lanes, call, has_returned);
}

void kprof_batch_note_overdue_range(const char *why)
{
    atomic_store(&kprof_the_batch.own.overdue, why);
}

/* Count the launches of the range, which is the last one of the list, or all of it. */
static void count_launches(kprof_batch_state *state)
{
    kprof_open_launch *last =
        kprof_span_is_whole(state) ? kprof_span_first(state) : &state->list.items[state->list.count - 1];
    const unsigned elsewhere = atomic_load(&kprof_the_range.elsewhere);
    last->record.range_launches = atomic_load(&kprof_engine.process.launches) - last->record.launch - elsewhere;
    if (kprof_span_is_whole(state))
        return;
    kprof_sample *sample = &state->context->samples->items[last->range];
    if (sample->record.launch == last->record.launch)
        sample->record.range_launches = last->record.range_launches;
    if (elsewhere > 0 && !*sample->note)
        snprintf(sample->note, sizeof sample->note, "without %u launch%s of the range, on other GPUs", elsewhere,
                 elsewhere == 1 ? "" : "es");
}

static void end_span(kprof_batch *batch)
{
    kprof_batch_state *state = &batch->state;
    if (state->list.chosen == 0)
        return;
    count_launches(state);
    atomic_store(&state->signs.in_range, false);
    if (kprof_engine.device->target_capturing())
        kprof_close_or_give_up(batch, "the end of its range beside a capture");
    else
        (void)kprof_close_batch(batch, "the end of its range");
}

void kprof_batch_end_range(void)
{
    kprof_batch *batch = &kprof_the_batch;
    kprof_batch_state *state = &batch->state;
    if (!kprof_state_is_open(state) || !kprof_batch_spans_calls())
        return;
    const bool entered = kprof_engine.device->target_enter_context(state->context->context);
    if (kprof_span_is_whole(state)) {
        end_span(batch);
    } else if (!kprof_engine.device->target_capturing()) {
        count_launches(state);
        end_range(batch);
        if (!kprof_state_is_sealed(state))
            close_if_due(batch);
    } else {
        kprof_batch_note_overdue_range("the range ended during the capture of a stream, when nothing may be awaited");
    }
    if (entered)
        kprof_engine.device->target_leave_context();
}

/* The launch whose instructions are measured has returned. If it does not end, seal the batch: other work spoils it. */
static void leave_instructed(kprof_batch *batch, const kprof_call *call)
{
    if (call->failed)
        take_back(batch);
    if (!kprof_close_batch(batch, call->name))
        atomic_store(&batch->own.range_open, true);
}

void kprof_batch_leave(const kprof_call *call)
{
    kprof_batch *batch = &kprof_the_batch;
    kprof_batch_state *state = &batch->state;
    const bool awaits_value = batch->awaits_value;
    batch->awaits_value = false;
    if (!kprof_state_is_open(state) || awaits_value)
        return;
    if (batch->behind.prepared)
        settle_prepared(batch, call);
    if (batch->behind.stands && !batch->behind.begun)
        begin_behind(batch);
    if (batch->own.proof_paused) {
        batch->own.proof_paused = false;
        if (kprof_own_run_begin_proof(&batch->own, state) != KPROF_OK)
            kprof_state_spoil(state, "CUPTI did not begin a range of the proof");
        return;
    }
    if (state->list.count == 0)
        return;
    if (state->kind == KPROF_INSTRUCTED) {
        leave_instructed(batch, call);
        return;
    }
    if (state->list.entered > 0) /* else the range of the launch before the call has ended */
        end_range(batch);
    if (call->failed)
        take_back(batch);
    else
        keep_copied(state);
    if (!kprof_state_is_sealed(state))
        close_if_due(batch);
}
