/* Chooses measurements so that few have to be made anew: a new one takes CUPTI 150 ms. */
#include "inject/batch/passes.h"

#include "core/monotonic.h"
#include "inject/batch/span.h"
#include "inject/capacity.h"
#include "inject/engine.h"
#include "inject/multiplex.h"
#include "inject/samples.h"

/* With --witnesses auto, use the witnesses that take time once the previous batch had this many launches: they cost the
 * same for each pass, however many launches share it. */
#define WITNESSED_LAUNCHES 64

/* Let kernels that are not chosen be ranges, too, while all are at most FEW, and PER_CHOSEN for each chosen one. Each
 * costs as much as a chosen one, 1.19 ms in a pass with counters of the SMs on an H200; pushed ranges cost nothing
 * more, but their times are wrong. */
#define FEW_KERNELS        16
#define KERNELS_PER_CHOSEN 8

/* Share a measurement only if it can hold this many ranges, or half of those that the batch may have. */
#define LEAST_SHARED_RANGES 64

/* Work that the proof must not see ends its range, and another one begins behind it: at most this many. */
#define MOST_PROOF_RANGES 64

/* After CUPTI failed to get the counters, do not try again for this many times as long as that took. */
#define BUSY_FACTOR 10

/* The measurement that batches and windows can share. */
static kprof_measurement shared_measurement(const kprof_batch_state *state)
{
    bool all_witnesses = kprof_engine.process.config.witness_control == KPROF_WITNESSES_ALL ||
                         state->context->last_launches >= WITNESSED_LAUNCHES;
    bool proved = state->kind == KPROF_MULTIPLEXED ? kprof_decision_proves(state->metrics) : state->proved;
    return (kprof_measurement){.ranges = state->ranges.capacity + proved, /* one for the whole batch */
                               .all_witnesses = all_witnesses,
                               .proved = proved};
}

/* Return the capacity that the batch must have. Its ranges are known once it is closed, and not before its own run. */
static size_t least_ranges(const kprof_batch_state *state)
{
    const kprof_batch_ranges *ranges = &state->ranges;
    if (state->kind == KPROF_REPLAYED && !state->proved)
        return ranges->wanted;
    size_t half = ranges->capacity / 2, enough = half < LEAST_SHARED_RANGES ? half : LEAST_SHARED_RANGES;
    return ranges->least > enough ? ranges->least : enough;
}

/* How many ranges a measurement of replays may have, chosen or not. An image that is kept has those of the batch. */
static size_t most_ranges(const kprof_batch_state *state)
{
    size_t fits = kprof_capacity_of_memory(state->context, false), capacity = state->ranges.capacity;
    return fits < capacity || kprof_engine.process.config.counter_data_dir ? capacity : fits;
}

/* Only an automatic range begins and ends with its kernel. But then kernels that nobody chose take as long. */
size_t kprof_passes_count_automatic(const kprof_passes *passes, const kprof_batch_state *state)
{
    size_t kernels = 0, most = FEW_KERNELS + KERNELS_PER_CHOSEN * state->list.chosen;
    if (state->context->pushes_ranges || kprof_span_is_whole(state))
        return 0;
    for (size_t i = 0; i < passes->replayed && kernels <= most; i++) {
        size_t more = kprof_engine.device->operation_kernels(state->list.items[i].operation);
        kernels = more == KPROF_MANY_KERNELS ? more : kernels + more;
    }
    return kernels <= most && kernels <= most_ranges(state) ? kernels : 0;
}

size_t kprof_passes_count_proof(const kprof_batch_state *state)
{
    const size_t most = shared_measurement(state).ranges;
    return most < MOST_PROOF_RANGES ? most : MOST_PROOF_RANGES;
}

/* Instructions and samples over time need no profiler's object, so that the batch's passes need one of their own. */
static bool may_share(const kprof_batch_state *state)
{
    return !kprof_measures_instructions() && state->metrics->timeline_count == 0;
}

kprof_status kprof_passes_begin_own(kprof_passes *passes, kprof_batch_state *state)
{
    kprof_measurement wanted = shared_measurement(state);
    passes->automatic = false;
    passes->shares = may_share(state) && kprof_multiplex_shares(state, &wanted, least_ranges(state));
    if (passes->shares)
        return kprof_engine.device->profiler_run_out(state->context->profiler);
    if (state->proved && !state->searching)
        wanted.ranges = kprof_passes_count_proof(state);
    wanted.proof_alone = state->proved;
    kprof_samples_end(state->context->samples);
    kprof_contexts_arm(state->context);
    return kprof_engine.device->profiler_begin(state->context->profiler, &wanted);
}

/* The proof has pushed ranges, and automatic ones need a measurement of their own, which takes 0.3 s for both changes.
 * A pushed range would add 7 to 18 us to the time of each kernel. */
kprof_status kprof_passes_begin_replays(kprof_passes *passes, kprof_batch_state *state)
{
    kprof_measurement wanted = shared_measurement(state);
    passes->automatic = false;
    if (state->proved && passes->shares)
        return KPROF_OK; /* its passes go on behind the proof's */
    if (!state->proved && may_share(state) && kprof_multiplex_shares(state, &wanted, least_ranges(state)))
        return kprof_engine.device->profiler_run_out(state->context->profiler);
    state->ranges.count = state->ranges.first;
    for (size_t i = 0; i < state->list.count; i++)
        state->list.items[i].range = KPROF_NO_RANGE;
    size_t kernels = kprof_passes_count_automatic(passes, state);
    passes->automatic = wanted.automatic = kernels > 0;
    /* Behind a proof, each measurement of replays is a new one. */
    const size_t needed = kernels > 0 ? kernels : state->list.chosen;
    const size_t most = kernels > 0 ? most_ranges(state) : state->ranges.capacity;
    wanted.ranges = state->proved ? needed : kprof_capacity_make(state->context, needed, most);
    wanted.proved = false;
    kprof_samples_end(state->context->samples);
    kprof_contexts_arm(state->context);
    return kprof_engine.device->profiler_begin(state->context->profiler, &wanted);
}

kprof_status kprof_passes_begin_window(kprof_batch_state *state, const kprof_batch_launch *opener)
{
    kprof_measurement wanted = shared_measurement(state);
    kprof_status status = KPROF_OK;
    if (!kprof_multiplex_goes_on(state->context))
        status = kprof_multiplex_begin(state->context, &wanted);
    KPROF_THEN(status, kprof_engine.device->target_synchronize());
    if (status == KPROF_OK)
        kprof_contexts_arm(state->context);
    return KPROF_THEN(status, kprof_multiplex_open_window(state->context, opener));
}

kprof_status kprof_passes_start(kprof_batch_state *state)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_engine.device->profiler_start(state->context->profiler);
    double start_ms = kprof_monotonic_lap_ms(&lap_ns);
    if (status == KPROF_COUNTERS_BUSY)
        state->context->busy_before_ns = lap_ns + (int64_t)(BUSY_FACTOR * start_ms * 1e6);
    state->times.start_ms += start_ms;
    if (start_ms > state->context->ready_ms)
        state->context->ready_ms = start_ms;
    return status;
}

kprof_status kprof_passes_stop(kprof_batch_state *state, bool *more)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_engine.device->profiler_stop(state->context->profiler, more);
    state->times.stop_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

kprof_status kprof_passes_decode(kprof_batch_state *state)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_engine.device->profiler_decode(state->context->profiler, state->ranges.count);
    state->times.decode_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

/* List the launches to evaluate: the chosen ones. */
static kprof_status list_chosen(kprof_passes *passes, const kprof_batch_state *state)
{
    kprof_evaluations *out = &passes->evaluations;
    size_t chosen = 0;
    for (size_t i = 0; i < passes->replayed; i++)
        chosen += state->list.items[i].chosen;
    kprof_status status = kprof_evaluations_make(state->context->profiler, state->metrics, chosen, out);
    for (size_t i = 0, next = 0; status == KPROF_OK && i < passes->replayed; i++)
        if (state->list.items[i].chosen) {
            out->items[next].launch = i;
            out->items[next++].range = state->list.items[i].range;
        }
    return status;
}

kprof_status kprof_passes_read(kprof_passes *passes, kprof_batch_state *state, uint32_t pass, bool more)
{
    kprof_passes_wait(state);
    kprof_status status = kprof_passes_decode(state);
    if (status == KPROF_OK && !passes->evaluations.items)
        status = list_chosen(passes, state);
    if (status != KPROF_OK)
        return status;
    kprof_evaluate_begin(&passes->evaluations, pass, more ? pass + 1 : KPROF_ALL_PASSES);
    return KPROF_OK;
}

void kprof_passes_wait(kprof_batch_state *state)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_evaluate_wait();
    state->times.evaluate_ms += kprof_monotonic_lap_ms(&lap_ns);
}
