/* Decides which ranges are repeated: as many as samples are asked for, while that takes the program little time. */
#include "inject/batch/span.h"

#include "inject/engine.h"

#include <stdio.h>

/* The first range of each name is repeated, and further ones until all of that has taken so long. */
#define ENOUGH_NS INT64_C(20000000000)

/* The first range of a name may do what no later one does, such as load code: try twice. */
#define MOST_FAILURES 2

#define SIDE_BY_SIDE                                                                                                   \
    "its work came in several streams, and was repeated one after the other; later ranges of the name are measured "   \
    "as they run"

static int64_t spent_ns;

const char *kprof_span_obstacle(const kprof_kernel *range, const kprof_chip_metrics *metrics)
{
    const kprof_config *config = &kprof_engine.process.config;
    const uint32_t repeated = atomic_load(&range->repeated);
    if (config->replay_choice != KPROF_RANGES || metrics->pass_count == 1)
        return "";
    if (atomic_load(&range->in_streams))
        return "the work of an earlier range of the name came in several streams";
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

/* A copy in which the host waits runs beside nothing that comes later. */
void kprof_span_note_work(kprof_batch_state *state, const kprof_batch_launch *work)
{
    if (!state->range)
        return;
    if (state->list.count == 0)
        state->range_stream = work->call->stream;
    if (work->call->stream == state->range_stream || work->awaited)
        return;
    snprintf(state->note, sizeof state->note, "%s", SIDE_BY_SIDE);
    atomic_store(&state->range->in_streams, true);
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
