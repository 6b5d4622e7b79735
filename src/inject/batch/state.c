/* Keeps the list of launches, and answers what the batch is. */
#include "inject/batch/state.h"

#include "core/monotonic.h"
#include "inject/engine.h"
#include "inject/lock.h"

#include <stdio.h>
#include <stdlib.h>

/* Launches and transfers of a batch, at most: their arguments are kept. */
#define MAX_LAUNCHES ((size_t)16384)
/* These bits decide which launches may be repeated. */
#define SHARING_THAT_MATTERS (KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES | KPROF_MAY_NOT_SAVE | KPROF_MANAGED)

bool kprof_state_is_of(const kprof_batch_state *state, const kprof_call *call)
{
    return atomic_load(&state->signs.context) == call->context && !kprof_engine.device->target_runs_elsewhere(call);
}

bool kprof_state_has_managed(const kprof_batch_state *state)
{
    return kprof_state_records(state) && (atomic_load(&state->signs.sharing) & KPROF_MANAGED);
}

bool kprof_state_has_managed_stay(const kprof_batch_state *state)
{
    return state->kind == KPROF_REPLAYED && (atomic_load(&state->signs.sharing) & KPROF_MANAGED_STAYS);
}

bool kprof_state_saves_host(const kprof_batch_state *state)
{
    return kprof_state_records(state) && atomic_load(&state->signs.saves_host);
}

bool kprof_state_has_host(const kprof_batch_state *state)
{
    return kprof_state_has_managed(state) || kprof_state_saves_host(state);
}

unsigned kprof_state_new_sharing(const kprof_batch_state *state)
{
    if (!kprof_state_replays(state))
        return 0;
    return kprof_engine.device->target_sharing() & SHARING_THAT_MATTERS & ~atomic_load(&state->signs.sharing);
}

bool kprof_state_is_full(const kprof_batch_state *state, size_t ranges)
{
    return state->ranges.wanted + ranges > state->ranges.capacity || state->list.count >= MAX_LAUNCHES;
}

void kprof_state_spoil(kprof_batch_state *state, const char *reason)
{
    const char *none = NULL;
    atomic_compare_exchange_strong(&state->signs.spoiled, &none, reason);
}

void kprof_state_note(kprof_batch_state *state, const char *text, const char *why)
{
    if (!state->note[0])
        snprintf(state->note, sizeof state->note, "%s: %s", text, why);
}

bool kprof_state_reserve(kprof_batch_state *state, size_t more)
{
    kprof_launch_list *list = &state->list;
    size_t wanted = list->count + more;
    if (wanted <= list->capacity)
        return true;
    size_t capacity = wanted > 128 ? 2 * wanted : 256;
    kprof_open_launch *grown = realloc(list->items, capacity * sizeof *grown);
    if (!grown)
        return false;
    list->items = grown;
    list->capacity = capacity;
    return true;
}

void kprof_state_add(kprof_batch_state *state, const kprof_batch_launch *launch, kprof_operation *operation)
{
    kprof_launch_list *list = &state->list;
    list->items[list->count++] = (kprof_open_launch){.operation = operation,
                                                     .kernel = launch->kernel,
                                                     .chosen = launch->chosen,
                                                     .is_unwatched = state->unwatched,
                                                     .own_range = KPROF_NO_RANGE,
                                                     .range = KPROF_NO_RANGE,
                                                     .record = launch->record};
    list->entered_traits = launch->call->node_traits | (list->entered > 0 ? list->entered_traits : 0);
    list->entered++;
    if (!launch->chosen)
        return;
    list->chosen++;
    list->chosen_ns = kprof_monotonic_ns();
    kprof_lock_note_progress();
    if ((list->chosen & (list->chosen - 1)) == 0) /* so that the count survives a process that is killed */
        kprof_deliver_progress(&launch->record, list->chosen, 1, state->metrics->pass_count);
}

size_t kprof_state_take_range(kprof_batch_state *state, size_t *range)
{
    if (*range == KPROF_NO_RANGE)
        *range = state->ranges.count++;
    return *range;
}

void kprof_state_leave_uncounted(const kprof_launch_record *record)
{
    const kprof_filter_launch place = kprof_kernel_place(record);
    kprof_filter_leave_uncounted(kprof_engine.process.filter, &place);
}
