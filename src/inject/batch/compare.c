/* Trusts kernels after a few comparisons. */
#include "inject/batch/compare.h"

#include "inject/engine.h"

/* After this many replays that gave the host what the own runs gave, expect it of all kernels. */
#define ENOUGH_COMPARISONS 4

/* A kernel may compute something else now and then, such as a sum whose additions come in another order. So try replays
 * once more behind the first copy of a batch that is so much longer than those before it, and has so many launches. */
#define LONGER      8
#define LONG_ENOUGH 32

static bool has_output(const kprof_operation *operation)
{
    return operation && kprof_engine.device->operation_output_bytes(operation) > 0;
}

/* A replay must stop before it would give the host something else. So once a replay has diverged, later ones go on
 * from what the own run left before each copy to the host, or batches end there. */
bool kprof_compare_ends_at(const kprof_batch_state *state, const kprof_operation *operation)
{
    return kprof_state_records(state) && state->context->diverges && has_output(operation);
}

/* Does the call that is under way copy to the host? */
static bool shows_output(const kprof_launch_list *list)
{
    const size_t first = list->count - list->entered;
    return KPROF_ANY(i, list->entered, has_output(list->items[first + i].operation));
}

/* Likewise, and replays compute what it copies, too. */
static bool shows_computed(const kprof_batch_state *state)
{
    return kprof_state_records(state) && !state->context->diverges && shows_output(&state->list);
}

/* kprof tries replays behind the first copies to the host, so that a difference costs no launch. Trials are slow, so
 * after a few successes it trusts new kernels. */
bool kprof_compare_shows_unknown(kprof_comparison *comparison, const kprof_batch_state *state)
{
    const kprof_launch_list *list = &state->list;
    if (!shows_computed(state) || state->context->comparisons >= ENOUGH_COMPARISONS)
        return false;
    for (; comparison->next < list->count; comparison->next++) {
        const kprof_kernel *kernel = list->items[comparison->next].kernel;
        if (kernel && !atomic_load(&kernel->compared))
            return true;
    }
    return false;
}

bool kprof_compare_is_longer(const kprof_batch_state *state)
{
    const kprof_launch_list *list = &state->list;
    return shows_computed(state) && list->count >= LONG_ENOUGH && list->count >= LONGER * state->context->compared;
}

/* A batch cannot end within a graph. So end it behind a graph that copies to the host, if kprof could not compare that
 * copy, or if an earlier replay has diverged. */
bool kprof_compare_ends_behind_graph(const kprof_batch_state *state)
{
    const kprof_launch_list *list = &state->list;
    if (!kprof_state_records(state) || list->entered == 0)
        return false;
    return (list->entered_traits & KPROF_NODE_HIDES_OUTPUT) ||
           ((list->entered_traits & KPROF_NODE) && state->context->diverges && shows_output(list));
}

void kprof_compare_note_same(kprof_batch_state *state, size_t replayed)
{
    bool shown = false, is_new = false;
    for (size_t i = replayed; i-- > 0;) {
        const kprof_open_launch *launch = &state->list.items[i];
        if (launch->kernel && shown)
            is_new = !atomic_exchange(&launch->kernel->compared, true) || is_new;
        shown = shown || kprof_engine.device->operation_output_bytes(launch->operation) > 0;
    }
    state->context->comparisons += is_new;
    if (shown && state->context->compared < replayed)
        state->context->compared = replayed;
}
