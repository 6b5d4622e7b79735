/* The open batch and its replay. */
#include "inject/batch.h"

#include "core/log.h"
#include "cupti/operation.h"
#include "cupti/snapshot.h"
#include "inject/contexts.h"
#include "inject/lock.h"
#include "inject/process.h"

#include <stdlib.h>
#include <time.h>

typedef struct batch_launch {
    kprof_operation *operation;
    bool chosen;
    kprof_launch_record record; /* of a chosen launch */
} batch_launch;

static struct {
    atomic_bool open;
    kprof_profiled_context *context;
    const kprof_chip_metrics *metrics;
    kprof_snapshot *snapshot; /* NULL where one pass is enough */
    kprof_batch_sink *sink;
    void (*pass_started)(uint32_t pass);
    size_t capacity, count;
    batch_launch *launches; /* [capacity] */
    int64_t opened_ns;
} batch;

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

bool kprof_batch_is_open(void)
{
    return atomic_load_explicit(&batch.open, memory_order_relaxed);
}

static void release(void)
{
    for (size_t i = 0; i < batch.count; i++)
        kprof_operation_free(batch.launches[i].operation);
    free(batch.launches);
    kprof_snapshot_free(batch.snapshot);
    batch.launches = NULL;
    batch.snapshot = NULL;
    batch.count = 0;
    kprof_lock_give();
    atomic_store(&batch.open, false);
}

void kprof_batch_context_ending(void *context)
{
    if (!kprof_batch_is_open() || batch.context->context != context)
        return;
    for (size_t i = 0; i < batch.count; i++)
        if (batch.launches[i].chosen)
            batch.sink(&batch.launches[i].record, "the context ended before the launch was replayed");
    release();
}

void kprof_batch_forget(void)
{
    atomic_store(&batch.open, false);
    batch.count = 0;
}

/* A replay must neither do more than the launch did nor meet a host thread's reads and writes. One pass is no replay.
 */
static bool can_replay(const kprof_replay_launch *launch, const kprof_operation *operation)
{
    return launch->metrics->pass_count <= 1 ||
           (!kprof_target_side_effect(launch->call) && kprof_target_function(launch->call) &&
            !kprof_target_shares_memory() && !kprof_operation_sees_host(operation));
}

static bool cover(const kprof_replay_launch *launch)
{
    return !batch.snapshot || kprof_snapshot_cover(batch.snapshot, kprof_target_function(launch->call),
                                                   launch->call->kernel_name) == KPROF_OK;
}

static kprof_status save_memory(const kprof_replay_launch *launch)
{
    if (launch->metrics->pass_count <= 1)
        return KPROF_OK;
    const kprof_call *call = launch->call;
    return kprof_snapshot_take(call->context, kprof_target_function(call), call->kernel_name, &batch.snapshot);
}

static bool open_batch(const kprof_replay_launch *launch, kprof_batch_sink *sink)
{
    kprof_status status = kprof_target_synchronize();
    if (status == KPROF_OK)
        status = kprof_contexts_open(launch->call->context, launch->metrics, &batch.context);
    if (status != KPROF_OK)
        return false;
    batch.metrics = launch->metrics;
    batch.sink = sink;
    batch.pass_started = launch->pass_started;
    batch.opened_ns = now_ns();
    batch.capacity = kprof_profiler_capacity(batch.context->profiler);
    batch.launches = calloc(batch.capacity, sizeof *batch.launches);
    if (!batch.launches || !kprof_lock_take(0, NULL)) { /* another process' turn: the launch waits for its own, alone */
        release();
        return false;
    }
    status = save_memory(launch);
    if (status == KPROF_OK)
        status = kprof_profiler_begin(batch.context->profiler, KPROF_PROFILER_CALLER_REPLAYS, batch.capacity);
    if (status == KPROF_OK)
        status = kprof_profiler_start(batch.context->profiler);
    if (status != KPROF_OK) {
        release();
        return false;
    }
    atomic_store(&batch.open, true);
    return true;
}

bool kprof_batch_enter(const kprof_replay_launch *launch, bool chosen, kprof_batch_sink *sink)
{
    if (kprof_batch_is_open() && batch.context->context != launch->call->context)
        kprof_batch_close();
    kprof_operation *operation = chosen || kprof_batch_is_open() ? kprof_operation_copy(launch->call) : NULL;
    bool fits = operation && can_replay(launch, operation);
    if (kprof_batch_is_open() && (!fits || !cover(launch)))
        kprof_batch_close();
    if (!fits || (!kprof_batch_is_open() && !(chosen && open_batch(launch, sink)))) {
        kprof_operation_free(operation);
        return false;
    }
    batch.launches[batch.count++] = (batch_launch){operation, chosen, launch->record};
    return true;
}

void kprof_batch_leave(const kprof_call *call)
{
    if (!kprof_batch_is_open())
        return;
    batch_launch *last = &batch.launches[batch.count - 1];
    if (call->failed) { /* nothing ran: there is nothing to replay, and no range */
        if (last->chosen)
            batch.sink(&last->record, "the launch failed");
        kprof_operation_free(last->operation);
        batch.count--;
    }
    if (batch.count == batch.capacity)
        kprof_batch_close();
}

static kprof_status run_all(void)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < batch.count && status == KPROF_OK; i++)
        status = kprof_operation_run(batch.launches[i].operation);
    kprof_status done = kprof_target_synchronize();
    return status == KPROF_OK ? done : status;
}

static kprof_status run_pass(bool *more)
{
    kprof_status status = kprof_snapshot_restore(batch.snapshot);
    if (status == KPROF_OK)
        status = kprof_profiler_start(batch.context->profiler);
    if (status != KPROF_OK)
        return status;
    status = run_all();
    kprof_status stopped = kprof_profiler_stop(batch.context->profiler, more);
    return status == KPROF_OK ? stopped : status;
}

/* A pass failed half-way: put memory back and run everything once, unmeasured. */
static void recover(void)
{
    kprof_status status = kprof_snapshot_restore(batch.snapshot);
    for (size_t i = 0; i < batch.count && status == KPROF_OK; i++) {
        status = kprof_operation_run(batch.launches[i].operation);
        if (status == KPROF_OK)
            status = kprof_target_synchronize(); /* nothing else keeps the order of launches in several streams */
    }
    if (status != KPROF_OK)
        kprof_process_disarm(status, "a replay failed, and the memory that it changed could not be put right");
}

static kprof_status run_passes(uint32_t *passes)
{
    bool more = false;
    kprof_status status = kprof_target_synchronize();
    kprof_status stopped = kprof_profiler_stop(batch.context->profiler, &more);
    *passes = 1;
    if (status != KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED, "this launch, or one measured with it, failed");
    if (stopped != KPROF_OK)
        return stopped;
    while (more && batch.snapshot && status == KPROF_OK) {
        batch.pass_started(++*passes);
        status = run_pass(&more);
    }
    if (status != KPROF_OK)
        recover();
    return status;
}

static void deliver(batch_launch *launch, size_t index, uint32_t passes)
{
    kprof_launch_record *record = &launch->record;
    kprof_status status = kprof_profiler_read(batch.context->profiler, index, batch.context->values);
    if (status != KPROF_OK) {
        batch.sink(record, kprof_process_reason(status));
        return;
    }
    record->mode = KPROF_REPLAY_BATCH;
    record->pass_count = passes;
    record->values = batch.context->values;
    record->value_count = (uint32_t)batch.metrics->metrics.count;
    batch.sink(record, "");
}

static size_t count_chosen(void)
{
    size_t chosen = 0;
    for (size_t i = 0; i < batch.count; i++)
        chosen += batch.launches[i].chosen;
    return chosen;
}

static void log_times(int64_t closed_ns, int64_t replayed_ns, uint32_t passes)
{
    kprof_log(KPROF_LOG_DEBUG,
              "batch of %zu launches: open %.1f ms, %u passes replayed in %.1f ms, evaluated in %.1f ms", batch.count,
              (double)(closed_ns - batch.opened_ns) * 1e-6, passes - 1, (double)(replayed_ns - closed_ns) * 1e-6,
              (double)(now_ns() - replayed_ns) * 1e-6);
}

void kprof_batch_close(void)
{
    if (!kprof_batch_is_open())
        return;
    uint32_t passes;
    int64_t closed_ns = now_ns();
    bool entered = kprof_target_enter_context(batch.context->context);
    kprof_status status = run_passes(&passes);
    if (status == KPROF_OK)
        status = kprof_profiler_decode(batch.context->profiler, batch.count);
    int64_t replayed_ns = now_ns();
    size_t chosen = count_chosen();
    int64_t share_ns = chosen ? (now_ns() - batch.opened_ns) / (int64_t)chosen : 0;
    for (size_t i = 0; i < batch.count; i++) {
        if (!batch.launches[i].chosen)
            continue;
        batch.launches[i].record.profile_ns = share_ns;
        if (status == KPROF_OK)
            deliver(&batch.launches[i], i, passes);
        else
            batch.sink(&batch.launches[i].record, kprof_process_reason(status));
    }
    log_times(closed_ns, replayed_ns, passes);
    release();
    if (entered)
        kprof_target_leave_context();
}
