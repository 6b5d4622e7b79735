/* A graph joins as its nodes, which are copied before it is launched. */
#include "inject/batch/graph.h"

#include "inject/batch/close.h"
#include "inject/batch/join.h"
#include "inject/batch/open.h"
#include "inject/batch/span.h"
#include "inject/engine.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/wait.h"

#include <stdio.h>
#include <stdlib.h>

/* Copy the kernels of a graph. Return why one of them cannot be replayed; NULL if all can. */
static const char *copy_kernels(kprof_batch *batch, kprof_graph_launches launches, kprof_operation **operations)
{
    const kprof_decision refused = {.kind = KPROF_REFUSED, .why = ""};
    static __thread char text[400];
    for (size_t i = 0; i < launches.count; i++) {
        const kprof_batch_launch *launch = &launches.items[i];
        if (!launch->kernel)
            continue;
        operations[i] = kprof_engine.device->operation_copy(launch->call, NULL);
        const char *why = kprof_decision_node_obstacle(launch, operations[i]);
        const bool again = why && kprof_join_has_managed_stay(batch, launch, &refused);
        why = again ? kprof_decision_node_obstacle(launch, operations[i]) : why;
        if (!why)
            continue;
        snprintf(text, sizeof text, "a kernel of the graph: %s", why);
        return text;
    }
    return NULL;
}

/* Copy its sets and copies, perhaps once more; false if replays cannot repeat one. kprof checks them against saved
 * memory, so the batch is open. */
static bool copy_transfers(const kprof_batch *batch, kprof_graph_launches launches, kprof_operation **operations)
{
    bool all = true;
    const bool left_out = kprof_recording_leave_out(batch->state.context->context);
    for (size_t i = 0; i < launches.count && all; i++)
        if (!launches.items[i].kernel) {
            kprof_engine.device->operation_free(operations[i]);
            operations[i] = kprof_engine.device->operation_copy(launches.items[i].call, batch->state.context->snapshot);
            all = operations[i] != NULL;
        }
    kprof_recording_go_on(left_out);
    return all;
}

static size_t count_chosen(kprof_graph_launches launches)
{
    size_t chosen = 0;
    for (size_t i = 0; i < launches.count; i++)
        chosen += launches.items[i].chosen;
    return chosen;
}

/* Open a batch that the launches can join, or find it open. */
static kprof_status open_for(kprof_batch *batch, kprof_graph_launches launches, size_t ranges)
{
    const kprof_batch_launch *const items = launches.items;
    const kprof_batch_state *state = &batch->state;
    const kprof_decision replayed = {.kind = KPROF_REPLAYED, .why = ""};
    const size_t first = KPROF_FIND(i, launches.count, items[i].chosen);
    if (kprof_state_is_open(state) && !kprof_state_is_sealed(state)) {
        const char *obstacle = kprof_join_obstacle(batch, &items[0], &replayed, ranges);
        if (obstacle)
            (void)kprof_close_batch(batch, obstacle);
        else
            kprof_close_or_go_on(batch);
    }
    if (kprof_state_is_sealed(state))
        return kprof_open_fail_sealed(batch, &items[0]);
    if (kprof_state_is_open(state) || first == launches.count)
        return KPROF_OK;
    kprof_status status = kprof_open_batch(batch, &items[first], &replayed, ranges);
    if (status != KPROF_UNSUPPORTED && status != KPROF_NO_MEMORY)
        return status;
    return kprof_fail(KPROF_NOT_COLLECTED, "%s", kprof_process_reason(status)); /* others may be measured in one pass */
}

/* Before a graph is launched, kprof keeps what it copies from the host. Work that is under way may still write that,
 * and the driver may read pageable memory at once. So may copies of what an earlier launch gave the host. */
static kprof_status wait_before_copies(const kprof_batch *batch, kprof_graph_launches launches)
{
    const unsigned awaiting = KPROF_NODE_READS_PAGEABLE | KPROF_NODE_READS_RESULTS | KPROF_NODE_CHANGES_STREAM;
    unsigned traits = 0;
    for (size_t i = 0; i < launches.count; i++)
        traits |= launches.items[i].call->node_traits;
    if (!(traits & awaiting) || !kprof_state_is_open(&batch->state))
        return KPROF_OK;
    kprof_status status = kprof_wait_for_context(launches.items[0].call->context);
    return kprof_wait_is_idle(status) ? KPROF_OK : status;
}

/* Open a batch that the launches can join, or find it open, and copy them. If an open batch keeps so much that there is
 * no space, close it and try again. */
static kprof_status prepare(kprof_batch *batch, kprof_graph_launches launches, kprof_operation **operations)
{
    size_t ranges = count_chosen(launches) + 1; /* one around all of them, in a search */
    const char *why = operations && kprof_state_reserve(&batch->state, launches.count)
                          ? copy_kernels(batch, launches, operations)
                          : "there is no memory to keep what the graph does";
    if (why)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s", why);
    for (;;) {
        kprof_status status = open_for(batch, launches, ranges);
        KPROF_THEN(status, wait_before_copies(batch, launches));
        if (status != KPROF_OK || !kprof_state_is_open(&batch->state) || copy_transfers(batch, launches, operations))
            return status;
        if (batch->state.list.count == 0)
            return kprof_fail(KPROF_NOT_COLLECTED, "a graph sets or copies memory that a replay cannot restore, or "
                                                   "copies too much from or to the host");
        if (!kprof_close_batch(batch, "a graph whose copies cannot be kept"))
            return kprof_open_fail_sealed(batch, &launches.items[0]);
    }
}

/* The graph joins no batch: close the open one, as it would not know of the launches. */
static void give_up(kprof_batch *batch, kprof_status *status)
{
    char reason[512];
    snprintf(reason, sizeof reason, "%s", kprof_process_reason(*status));
    (void)kprof_close_batch(
        batch, kprof_span_is_whole(&batch->state) && *status != KPROF_OK ? reason : "a graph that cannot be repeated");
    if (*status != KPROF_OK)
        *status = kprof_fail(*status, "%s", reason); /* again: to close a batch forgets it */
}

bool kprof_graph_join(kprof_batch *batch, kprof_graph_launches launches, kprof_status *status)
{
    kprof_batch_state *state = &batch->state;
    const kprof_batch_launch *first = &launches.items[0];
    if (kprof_state_is_sealed(state))
        (void)kprof_close_batch(batch, batch->closing.why);
    kprof_join_check_behind(batch, first->call);
    kprof_join_follow_host(batch, first->call);
    kprof_operation **operations = calloc(launches.count + 1, sizeof(kprof_operation *));
    if (kprof_state_records(state) && !kprof_ends_check(&batch->ends, state, first))
        kprof_close_seal(batch, KPROF_OTHER_STREAM);
    *status = prepare(batch, launches, operations);
    const bool is_searched = *status == KPROF_OK && kprof_state_is_open(state) && state->searching;
    bool is_idle = true;
    if (is_searched && !kprof_join_searches(batch, first, &is_idle))
        *status = kprof_open_fail_sealed(batch, first);
    const bool joins = *status == KPROF_OK && kprof_state_is_open(state);
    if (!joins) {
        give_up(batch, status);
        for (size_t i = 0; operations && i < launches.count; i++)
            kprof_engine.device->operation_free(operations[i]);
        free(operations);
        return false;
    }
    state->list.entered = 0;
    state->ranges.wanted += count_chosen(launches) + state->searching;
    for (size_t i = 0; i < launches.count; i++)
        kprof_join_add(batch, &launches.items[i], operations[i]);
    free(operations);
    if (is_searched)
        kprof_own_run_begin_search(&batch->own, state, first->call, is_idle);
    return true;
}
