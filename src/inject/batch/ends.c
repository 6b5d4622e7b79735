/* Waits for kernels that nobody has seen end by themselves, for a limited time, and remembers which did not. */
#include "inject/batch/ends.h"

#include "core/monotonic.h"
#include "inject/captures.h"
#include "inject/engine.h"
#include "inject/wait.h"

void kprof_ends_note_launch(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call)
{
    if (ends->unproved != state->list.count)
        return;
    ends->stream = call->stream;
    ends->thread = pthread_self();
}

/* From this number on launches may not have ended, because a value has not come. */
static size_t first_behind_value(const kprof_ends *ends, const kprof_batch_state *state)
{
    return ends->awaits_value ? ends->value_at : state->list.count;
}

/* All launches so far have ended, and no work in another stream can have helped them: note that. */
static void note_all(kprof_ends *ends, const kprof_batch_state *state)
{
    ends->awaits_value = false;
    for (; ends->unproved < state->list.count; ends->unproved++)
        if (state->list.items[ends->unproved].kernel)
            atomic_store(&state->list.items[ends->unproved].kernel->ends_alone, true);
}

void kprof_ends_note_late_ends(kprof_ends *ends, const kprof_batch_state *state)
{
    for (; ends->unproved < state->list.count; ends->unproved++)
        if (state->list.items[ends->unproved].kernel)
            kprof_kernel_note_end(state->list.items[ends->unproved].kernel);
}

/* Count a timeout for each kernel that had the time to end and did not. */
static void note_late(kprof_ends *ends, const kprof_batch_state *state)
{
    for (; ends->unproved < first_behind_value(ends, state); ends->unproved++) {
        kprof_kernel *kernel = state->list.items[ends->unproved].kernel;
        if (kernel && !atomic_load(&kernel->ends_alone))
            kprof_kernel_note_timeout(kernel);
    }
    ends->unproved = state->list.count;
    ends->awaits_value = false;
}

/* Skip launches if kprof has seen their kernels end by themselves. Beside managed memory each launch was awaited; where
 * that stays on the host, none is repeated that may wait this time. */
static void skip_proved(kprof_ends *ends, const kprof_batch_state *state)
{
    const bool trusts = !kprof_state_has_managed_stay(state);
    while (ends->unproved < first_behind_value(ends, state)) {
        const kprof_kernel *kernel = state->list.items[ends->unproved].kernel;
        if (kernel && (!trusts || !atomic_load(&kernel->ends_alone)))
            break;
        ends->unproved++;
    }
}

void kprof_ends_cut(kprof_ends *ends, size_t number, const char *why)
{
    if (number >= ends->most_replayed)
        return;
    ends->most_replayed = number;
    ends->why_cut = why;
}

/* Replay none of them. */
static void cut_late(kprof_ends *ends, const kprof_batch_state *state)
{
    skip_proved(ends, state);
    if (ends->unproved < first_behind_value(ends, state))
        kprof_ends_cut(ends, ends->unproved, KPROF_NOT_ALONE);
    else if (ends->awaits_value)
        kprof_ends_cut(ends, ends->value_at, KPROF_BEHIND_VALUE);
    state->context->late_values += ends->awaits_value;
    note_late(ends, state);
}

void kprof_ends_note_other_work(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call)
{
    const bool is_behind = call->context == state->context->context && call->stream == ends->stream &&
                           pthread_equal(ends->thread, pthread_self());
    if (!is_behind)
        atomic_store(&ends->helped, true);
}

void kprof_ends_note_alone(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call)
{
    ends->unproved = state->list.count - 1;
    ends->stream = call->stream;
    ends->thread = pthread_self();
}

void kprof_ends_settle(kprof_ends *ends, const kprof_batch_state *state)
{
    if (atomic_load(&ends->helped))
        cut_late(ends, state);
    else if (!kprof_state_is_sealed(state))
        note_all(ends, state);
}

/* How long is what may wait waited for? */
static int64_t patience_ns(const kprof_ends *ends, const kprof_batch_state *state)
{
    return ends->unproved < first_behind_value(ends, state)
               ? kprof_kernel_patience_ns(state->list.items[ends->unproved].kernel)
               : atomic_load(&kprof_engine.waits.patience_ns);
}

/* First give kernels before it that may wait the time to end: behind it kprof could not tell them apart. */
void kprof_ends_note_value_wait(kprof_ends *ends, const kprof_batch_state *state, const kprof_call *call)
{
    skip_proved(ends, state);
    if (ends->unproved < first_behind_value(ends, state) &&
        kprof_wait_is_idle(kprof_wait_at_most(state->context->context, patience_ns(ends, state))))
        note_all(ends, state);
    kprof_ends_note_launch(ends, state, call);
    if (ends->awaits_value)
        return;
    ends->awaits_value = true;
    ends->value_at = state->list.count;
}

/* A replay runs one launch after the other, so a kernel that waits for a later one in another stream would wait for
 * ever. A kernel behind a wait for a value might, too: in the own run later work may have brought the value. Before
 * work comes in another stream, kernels that may wait have to end; if they do not, the batch ends before them. If this
 * thread awaited a copy in their stream, they have ended: kprof checked what other threads launched meanwhile, or
 * spoiled the batch. */
bool kprof_ends_check(kprof_ends *ends, kprof_batch_state *state, const kprof_batch_launch *launch)
{
    void *context = state->context->context;
    skip_proved(ends, state);
    bool same = launch->call->stream == ends->stream && pthread_equal(ends->thread, pthread_self());
    bool ended = same && launch->awaited && launch->call->context == context && !atomic_load(&state->signs.spoiled);
    if ((ends->unproved == state->list.count && !ends->awaits_value) || (same && !ended))
        return true;
    if (ended || kprof_wait_is_idle(kprof_wait_at_most(context, patience_ns(ends, state)))) {
        note_all(ends, state);
        return true;
    }
    cut_late(ends, state);
    return false;
}

/* May work before the launch wait for others, or for this very launch? Batches of one pass take a tenth of a
 * millisecond a launch, so they do not look for network cards. */
static bool may_be_behind(kprof_ends *ends, const kprof_batch_state *state, const kprof_batch_launch *launch)
{
    const unsigned waits = KPROF_WAITS_FOR_HOST | KPROF_SHARES_WITH_DEVICES;
    bool unknown = atomic_exchange(&ends->unknown, false);
    if (unknown || kprof_engine.device->target_sharing() & waits || kprof_decision_may_wait_for_host(launch))
        return true;
    return state->kind != KPROF_LIVE && kprof_decision_may_wait(launch);
}

/* On the GPU a range begins when all earlier launches in all streams have ended, and CUPTI waits without a limit for
 * the end of a range with counters of the SMs. So earlier work has to end first. */
kprof_status kprof_ends_wait_before_range(kprof_ends *ends, kprof_batch_state *state, const kprof_batch_launch *launch)
{
    if (!may_be_behind(ends, state, launch))
        return KPROF_OK;
    kprof_status status = kprof_wait_for_context(launch->call->context);
    if (!launch->kernel || !atomic_load(&launch->kernel->ends_alone) || !kprof_wait_is_idle(status))
        atomic_store(&ends->unknown, true);
    if (!kprof_wait_is_idle(status))
        return status;
    note_all(ends, state);
    return KPROF_OK;
}

/* CUPTI waits without a limit for a pass to end while the GPU works. */
kprof_status kprof_ends_await(kprof_ends *ends, kprof_batch_state *state)
{
    int64_t lap_ns = kprof_monotonic_ns(), limit_ns = INT64_MAX;
    if (kprof_engine.device->target_capturing()) {
        kprof_captures_note_loss();
        return kprof_fail(KPROF_NOT_COLLECTED, KPROF_BESIDE_CAPTURE);
    }
    const kprof_launch_list *list = &state->list;
    kprof_kernel *last = list->count > 0 ? list->items[list->count - 1].kernel : NULL;
    if (state->needs && last && !atomic_load(&last->ends_alone))
        limit_ns = kprof_kernel_patience_ns(last);
    kprof_status status = kprof_wait_at_most(state->context->context, limit_ns);
    if (!kprof_wait_is_idle(status) && (kprof_state_has_managed(state) || state->needs)) {
        if (last && atomic_load(&last->ends_alone))
            atomic_store(&last->takes_long, true);
        note_late(ends, state); /* the host waits for each launch: do not wait for these again */
    }
    state->times.wait_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

/* If a launch waits for the host, or takes long, a batch may begin behind it: kprof then measures what is queued behind
 * it. It does so only if it need not wait, and if nothing else speaks against replays. */
bool kprof_behind_may_stand(const kprof_batch_launch *launch, const kprof_decision *decision)
{
    return launch->kernel && launch->metrics && launch->metrics->pass_count > 0 &&
           atomic_load(&launch->kernel->timeouts) > 0 && kprof_decision_may_follow(launch, decision) &&
           kprof_wait_is_idle(kprof_wait_at_most(launch->call->context, 0));
}

bool kprof_behind_may_prove(const kprof_kernel *kernel, const kprof_chip_metrics *metrics)
{
    return metrics->proof.count > KPROF_PROOF_READS && !atomic_load(&kernel->writes_host);
}

/* A kernel that takes memory of the host, and that kprof has not seen end, may wait for what the host writes there. */
bool kprof_behind_may_come(const kprof_batch_launch *launch, const kprof_decision *decision)
{
    const bool may = decision->needs == KPROF_SAVES_HOST || decision->needs == KPROF_ON_TRIAL;
    return decision->kind == KPROF_REPLAYED && may && !atomic_load(&launch->kernel->ends_alone) &&
           kprof_decision_may_follow(launch, decision);
}

void kprof_behind_give_up(kprof_behind *behind, kprof_ends *ends, kprof_batch_state *state, const char *why)
{
    behind->gave_up = true;
    if (behind->goes_on)
        kprof_ends_cut(ends, behind->first, why);
    else
        kprof_state_spoil(state, why);
}

void kprof_behind_settle(kprof_behind *behind, kprof_ends *ends, const kprof_batch_state *state)
{
    bool changed = true;
    const bool was_watched = behind->watched;
    behind->stands = behind->watched = false;
    if (state->list.count > behind->first)
        atomic_store(&behind->kernel->is_followed, true);
    if (!was_watched)
        return;
    if (kprof_engine.device->snapshot_has_changed(state->context->snapshot, &changed) == KPROF_OK && !changed) {
        atomic_store(&behind->kernel->is_quiet, true);
        return;
    }
    atomic_store(&behind->kernel->changes, true);
    if (behind->goes_on)
        kprof_ends_cut(ends, behind->first, "a launch before it, which is not repeated, has changed memory");
}

/* Work in another stream could change memory before kprof has saved it, or has seen whether the launch changed it. */
bool kprof_behind_check(kprof_behind *behind, kprof_ends *ends, kprof_batch_state *state, const kprof_call *call)
{
    if (!kprof_state_replays(state) || !behind->stands)
        return true;
    if (kprof_engine.device->snapshot_has_followed(state->context->snapshot)) {
        kprof_behind_settle(behind, ends, state);
        return true;
    }
    if (behind->keeps)
        atomic_store(&behind->kernel->is_followed, true);
    else if (call->context == state->context->context && call->stream == behind->stream &&
             pthread_equal(behind->thread, pthread_self()))
        return true;
    kprof_behind_give_up(behind, ends, state,
                         "work came in another stream before the launch that it stands behind had ended");
    return !behind->goes_on;
}
