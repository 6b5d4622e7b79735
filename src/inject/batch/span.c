/* Decides which ranges are repeated: as many as samples are asked for, while that takes the program little time. */
#include "inject/batch/span.h"

#include "inject/engine.h"

#include <stdio.h>

/* Repeat the first range of each name, and further ones until all repetitions have taken this long. */
#define ENOUGH_NS INT64_C(20000000000)

/* The first range of a name may do what no later one does, such as load code: try twice. */
#define MOST_FAILURES 2

#define ALL_LANES   ((1u << KPROF_LANES) - 1)
#define IN_ONE_LANE "its work came in several streams, and that of some was repeated one after the other"

/* CUDA's handles of default streams, where NULL is the legacy one, too. */
#define LEGACY     ((void *)1)
#define PER_THREAD ((void *)2)

static int64_t spent_ns;

const char *kprof_span_obstacle(const kprof_kernel *range, const kprof_chip_metrics *metrics)
{
    const kprof_config *config = &kprof_engine.process.config;
    const uint32_t repeated = atomic_load(&range->repeated);
    if (config->replay_choice != KPROF_RANGES || metrics->pass_count == 1)
        return "";
    if (atomic_load(&range->unrepeated) >= MOST_FAILURES)
        return "earlier ranges of the name could not be repeated";
    if (repeated >= config->multiplex_samples || (repeated > 0 && spent_ns >= ENOUGH_NS))
        return "enough ranges have been repeated";
    return kprof_engine.device->target_sharing() & KPROF_MANAGED ? "the process has managed memory" : NULL;
}

kprof_open_launch *kprof_span_first(const kprof_batch_state *state)
{
    size_t i = 0;
    while (!state->list.items[i].chosen)
        i++;
    return &state->list.items[i];
}

void kprof_span_reset(kprof_lanes *lanes)
{
    for (unsigned i = 0; i < KPROF_LANES; i++) {
        atomic_store(&lanes->streams[i], NULL);
        atomic_store(&lanes->waiting[i], 0);
    }
    lanes->seen = 0;
    atomic_store(&lanes->independent, 0);
}

static void *name_of(void *stream)
{
    return stream ? stream : LEGACY;
}

/* Return the stream's lane; KPROF_LANES: others have them all. */
static unsigned find_lane(kprof_lanes *lanes, void *stream)
{
    unsigned i = 0;
    for (void *there = NULL; i < KPROF_LANES; i++, there = NULL)
        if (atomic_compare_exchange_strong(&lanes->streams[i], &there, name_of(stream)) || there == name_of(stream))
            break;
    return i;
}

/* Make what comes next in some lanes wait for others. */
static void order(kprof_lanes *lanes, unsigned some, unsigned others)
{
    for (unsigned i = 0; i < KPROF_LANES; i++)
        if (some >> i & 1)
            atomic_fetch_or(&lanes->waiting[i], others);
}

/* The lanes of streams that wait for the legacy default one. Such a stream may get any that has had no work yet. */
static unsigned blocking(const kprof_lanes *lanes)
{
    return ALL_LANES & ~atomic_load(&lanes->independent);
}

/* Work in the legacy default stream, and streams that wait for one another with it. */
static unsigned order_by_default_stream(kprof_lanes *lanes, unsigned bit, void *stream)
{
    const bool is_legacy = name_of(stream) == LEGACY, is_new = !(lanes->seen & bit);
    if (is_new && !is_legacy && !kprof_engine.device->target_stream_blocks(stream))
        atomic_fetch_or(&lanes->independent, bit);
    if (!is_legacy)
        return 0;
    order(lanes, blocking(lanes) & ~bit, bit);
    return blocking(lanes);
}

/* The host may act upon what it got, with no call, and wait in a copy of a default stream. What it has changed itself
 * is put there in the first lane. */
void kprof_span_note_work(kprof_batch_state *state, const kprof_batch_launch *work)
{
    kprof_lanes *lanes = &state->lanes;
    kprof_open_launch *last = &state->list.items[state->list.count - 1];
    void *stream = work->call->stream;
    const unsigned found = find_lane(lanes, stream);
    last->lane = state->needs ? 0 : found < KPROF_LANES ? found : KPROF_LANES - 1;
    const bool shares = found != last->lane;
    const unsigned bit = 1u << last->lane;
    if (shares)
        snprintf(state->note, sizeof state->note, "%s", IN_ONE_LANE);
    last->waits_for = atomic_exchange(&lanes->waiting[last->lane], 0);
    last->waits_for |= shares ? ALL_LANES : order_by_default_stream(lanes, bit, stream);
    last->waits_for &= lanes->seen & ~bit; /* each wait takes the GPU time */
    lanes->seen |= bit;
    const bool may_wait = !work->kernel && (name_of(stream) == LEGACY || stream == PER_THREAD);
    if (shares || may_wait || work->awaited || kprof_engine.device->operation_output_bytes(last->operation) > 0)
        order(lanes, ALL_LANES, ALL_LANES);
}

/* Return the lanes in which the work behind a call waits for others: a call tells its stream as it enters. A copy may
 * wait that is not repeated, and what is written to memory of the host tells the program how far the stream is. */
static unsigned waiting_from(kprof_lanes *lanes, const kprof_call *call)
{
    const bool is_legacy = name_of(call->stream) == LEGACY;
    if (call->kind == KPROF_CALL_TRANSFER)
        return is_legacy || call->stream == PER_THREAD || kprof_engine.device->transfer_is_hosts(call) ? ALL_LANES : 0;
    if (call->kind != KPROF_CALL_ORDER && call->kind != KPROF_CALL_VALUE_WAIT)
        return 0;
    const unsigned lane = find_lane(lanes, call->stream);
    return lane == KPROF_LANES ? ALL_LANES : 1u << lane | (is_legacy ? blocking(lanes) : 0);
}

/* May the program know, once the call has returned, that work has ended? Calls that set something up or launch a graph
 * tell it only where a function of the host may. Work that failed is taken out of its lane. */
static bool tells_of_end(const kprof_call *call)
{
    switch (call->kind) {
    case KPROF_CALL_LAUNCH:
    case KPROF_CALL_TRANSFER:
        return call->failed;
    case KPROF_CALL_WAIT: /* or it asks, and work has not ended */
        return !call->failed;
    case KPROF_CALL_SETUP:
    case KPROF_CALL_CODE:
    case KPROF_CALL_GRAPH_LAUNCH: /* with a function of the host among its nodes */
        return call->failed || (kprof_engine.device->target_sharing() & KPROF_WAITS_FOR_HOST);
    case KPROF_CALL_HARMLESS:
    case KPROF_CALL_ORDER:
    case KPROF_CALL_VALUE_WAIT:
        return false;
    default:
        return true;
    }
}

void kprof_span_note_order(kprof_lanes *lanes, const kprof_call *call, bool has_returned)
{
    order(lanes, !has_returned ? waiting_from(lanes, call) : tells_of_end(call) ? ALL_LANES : 0, ALL_LANES);
}

kprof_status kprof_span_check(const kprof_batch_state *state, const char *closed_by)
{
    const char *spoiled = atomic_load(&state->signs.spoiled);
    if (!atomic_load(&state->signs.in_range))
        return KPROF_OK;
    if (spoiled)
        return kprof_fail(KPROF_NOT_COLLECTED, "the range was not repeated: %s", spoiled);
    return kprof_fail(
        KPROF_NOT_COLLECTED,
        "the range was not repeated, as its batch closed before its end (after two such ranges of a name, "
        "later ones are measured as they run): %s",
        closed_by);
}

void kprof_span_note_end(const kprof_batch_state *state, kprof_status status, int64_t took_ns)
{
    const kprof_launch_list *list = &state->list;
    if (!state->range || list->chosen == 0)
        return;
    spent_ns += took_ns;
    if (status == KPROF_OK) {
        atomic_fetch_add(&state->range->repeated, 1);
        return;
    }
    atomic_fetch_add(&state->range->unrepeated, 1);
    const kprof_filter_launch place = kprof_kernel_place(&kprof_span_first(state)->record);
    kprof_filter_take_another(kprof_engine.process.filter, &place);
}
