/* Opens and closes the batch, and takes launches into it. */
#include "inject/batch_private.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "inject/keep.h"
#include "inject/lock.h"
#include "inject/process.h"
#include "inject/room.h"
#include "inject/wait.h"
#include "inject/writers.h"

#include <stdio.h>
#include <stdlib.h>

/* Longest wait for another process of the run to finish its measurement. */
#define LOCK_TIMEOUT_MS 30000
/* Launches that are not chosen cost as much as chosen ones, and ending a batch as much as about this many. */
#define MAX_UNCHOSEN_RUN 12
/* A batch that has taken launches for longer is closed, so that a process which is killed does not lose more. */
#define MAX_OPEN_NS INT64_C(10000000000)
/* Where saving to host memory took longer than this for each launch, in so many batches in a row, it is dearer than
 * what the further passes are worth. */
#define MAX_HOST_SAVE_S_OF_LAUNCH 15.0
#define DEAR_IN_A_ROW             2

kprof_open_batch kprof_batch;

void kprof_batch_listen(const kprof_batch_listener *listener)
{
    kprof_batch.listener = listener;
}

bool kprof_batch_is_open(void)
{
    return atomic_load_explicit(&kprof_batch.open, memory_order_relaxed);
}

void kprof_batch_note(const char *text, const char *why)
{
    if (!kprof_batch.note[0])
        snprintf(kprof_batch.note, sizeof kprof_batch.note, "%s: %s", text, why);
}

static void release(void)
{
    for (size_t i = 0; i < kprof_batch.count; i++)
        kprof_operation_free(kprof_batch.launches[i].operation);
    free(kprof_batch.launches);
    kprof_snapshot_free(kprof_batch.snapshot);
    kprof_evaluations_free(&kprof_batch.evaluations);
    kprof_batch.launches = NULL;
    kprof_batch.snapshot = NULL;
    kprof_batch.count = kprof_batch.chosen_count = kprof_batch.transfer_count = 0;
    kprof_lock_give();
    atomic_store(&kprof_batch.open, false);
}

void *kprof_batch_context(void)
{
    return kprof_batch_is_open() ? kprof_batch.context->context : NULL;
}

bool kprof_batch_context_ending(void *context)
{
    kprof_passes_free_late(context, false);
    if (!kprof_batch_is_open() || kprof_batch.context->context != context)
        return false;
    kprof_deliver_reason("the context ended before the launch was replayed");
    release();
    return true;
}

void kprof_batch_free_late(void)
{
    kprof_passes_free_late(NULL, true);
}

void kprof_batch_forget(void)
{
    atomic_store(&kprof_batch.open, false);
    kprof_batch.count = 0;
}

/* Have the batch that is being opened measured so. */
static kprof_status treat(const kprof_batch_launch *launch, const kprof_treatment *treatment)
{
    kprof_batch.kind = treatment->kind;
    kprof_batch.watched = treatment->watched ? launch->kernel : NULL;
    if (treatment->kind == KPROF_REFUSED)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s", treatment->why);
    if (treatment->kind == KPROF_ONE_PASS)
        kprof_batch_note("measured in one pass", treatment->why);
    return KPROF_OK;
}

/* Take what replays restore. Where that cannot be had, or costs too much, the launch is not replayed. */
static kprof_status save_memory(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    char dear[160];
    const char *why = kprof_writers_devices();
    void *context = launch->call->context;
    kprof_status status = kprof_contexts_wait_for_others(context);
    if (status != KPROF_OK)
        return status;
    if (!why && kprof_batch.context->dear_saves >= DEAR_IN_A_ROW) {
        snprintf(dear, sizeof dear, "saving to host memory takes %.0f s, and there were few launches to share it",
                 kprof_batch.context->host_save_s);
        why = dear;
    }
    if (!why && kprof_snapshot_take(context, &kprof_batch.snapshot) == KPROF_OK)
        return KPROF_OK;
    if (!why)
        why = kprof_process_reason(KPROF_UNSUPPORTED);
    kprof_treatment treatment = kprof_treatment_unrepeated(launch, operation, why);
    return treat(launch, &treatment);
}

/* By an event that it waits for, a launch which joins later may be behind work of another context that waits for the
 * host. What is submitted there from now on closes the batch first. */
static kprof_status wait_for_others(void)
{
    bool joins = kprof_batch.kind == KPROF_TOGETHER && (kprof_target_sharing() & KPROF_WAITS_FOR_HOST);
    return joins ? kprof_contexts_wait_for_others(kprof_batch.context->context) : KPROF_OK;
}

static void prepare_flush(void)
{
    kprof_profiled_context *context = kprof_batch.context;
    if (kprof_this_process.config.cache_control == KPROF_CACHE_FLUSH_NONE || context->flush || context->flush_failed)
        return;
    kprof_status status = kprof_flush_open(&context->flush);
    context->flush_failed = status != KPROF_OK;
    if (context->flush_failed)
        snprintf(context->flush_reason, sizeof context->flush_reason, "%s", kprof_process_reason(status));
}

void kprof_batch_flush(void *stream, void *after)
{
    kprof_profiled_context *context = kprof_batch.context;
    kprof_status status = KPROF_OK;
    if (kprof_this_process.config.cache_control == KPROF_CACHE_FLUSH_NONE)
        return;
    if (context->flush)
        status = kprof_flush_run(context->flush, stream, after);
    if (!context->flush || status != KPROF_OK)
        kprof_batch_note("caches were not flushed before the launch",
                         context->flush ? kprof_process_reason(status) : context->flush_reason);
}

static kprof_status begin(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    kprof_status status = KPROF_OK;
    int64_t lap_ns = kprof_monotonic_ns();
    prepare_flush(); /* its memory is part of what is saved */
    if (kprof_passes_repeat() && kprof_batch.kind != KPROF_ONE_PASS)
        status = save_memory(launch, operation);
    else
        status = wait_for_others();
    if (status != KPROF_OK)
        return status;
    kprof_batch.times.save_ms = kprof_monotonic_lap_ms(&lap_ns);
    kprof_batch.capacity = kprof_batch.kind == KPROF_TOGETHER ? kprof_room_choose(kprof_batch.context) : 1;
    kprof_batch.launches = calloc(kprof_batch.capacity, sizeof *kprof_batch.launches);
    if (!kprof_batch.launches)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a batch of %zu launches", kprof_batch.capacity);
    if (kprof_batch.watched)
        return KPROF_OK;
    status = kprof_passes_begin();
    if (status == KPROF_OK)
        status = kprof_target_synchronize();
    kprof_batch.times.prepare_ms = kprof_monotonic_lap_ms(&lap_ns);
    kprof_batch.started_ns = lap_ns;
    if (status == KPROF_OK)
        status = kprof_profiler_start(kprof_batch.context->profiler);
    kprof_batch.times.start_ms = kprof_monotonic_lap_ms(&lap_ns);
    double ready_ms = kprof_batch.times.prepare_ms + kprof_batch.times.start_ms;
    if (ready_ms > kprof_batch.context->ready_ms)
        kprof_batch.context->ready_ms = ready_ms;
    return status;
}

static kprof_status take_lock(void)
{
    static unsigned timeout_ms = LOCK_TIMEOUT_MS;
    kprof_lock_want();
    bool taken = kprof_lock_take(timeout_ms, kprof_contexts_release);
    timeout_ms = taken ? LOCK_TIMEOUT_MS : 0; /* who waited in vain once does not wait for each launch */
    return taken ? KPROF_OK : kprof_fail(KPROF_NOT_COLLECTED, "another process of the run kept the counters");
}

static void start_anew(const kprof_chip_metrics *metrics)
{
    kprof_batch.note[0] = '\0';
    kprof_batch.metrics = metrics;
    kprof_batch.opened_ns = kprof_batch.started_ns = kprof_monotonic_ns();
    kprof_batch.times = (kprof_batch_times){0};
    kprof_batch.unchosen_run = 0;
    kprof_batch.abandoned = false;
}

static kprof_status open_batch(const kprof_batch_launch *launch, const kprof_operation *operation,
                               const kprof_treatment *treatment)
{
    start_anew(launch->metrics);
    if (treatment->kind == KPROF_REFUSED) /* so may all the later ones be */
        kprof_passes_try_late(launch->call->context);
    kprof_status status = treat(launch, treatment);
    if (status == KPROF_OK)
        status = kprof_wait_for_context(launch->call->context);
    if (status != KPROF_OK)
        return status;
    kprof_passes_free_late(launch->call->context, true);
    status = take_lock();
    if (status == KPROF_OK)
        status = kprof_contexts_open(launch->call->context, launch->metrics, &kprof_batch.context);
    if (status == KPROF_OK)
        status = begin(launch, operation);
    kprof_lock_have();
    if (status != KPROF_OK) {
        release();
        return status;
    }
    atomic_store(&kprof_batch.open, true);
    return KPROF_OK;
}

static kprof_treatment choose_treatment(const kprof_batch_launch *launch, const kprof_operation *operation)
{
    if (launch->kernel)
        return kprof_treatment_choose(launch, operation);
    return (kprof_treatment){operation ? KPROF_TOGETHER : KPROF_REFUSED, false, ""};
}

static bool can_join(const kprof_batch_launch *launch, const kprof_treatment *treatment)
{
    if (treatment->kind != KPROF_TOGETHER || kprof_batch.kind != KPROF_TOGETHER ||
        kprof_batch.context->context != launch->call->context)
        return false;
    if (!launch->chosen && kprof_batch.unchosen_run >= MAX_UNCHOSEN_RUN)
        return false;
    return !kprof_batch.snapshot || kprof_snapshot_cover(kprof_batch.snapshot) == KPROF_OK;
}

/* Transfers run beside no launch, whose counters would show them. An error is the application's, which will see it. */
static void wait_beside_transfer(void)
{
    if (kprof_target_synchronize() != KPROF_OK)
        kprof_process_forget_reason();
}

static void add(const kprof_batch_launch *launch, kprof_operation *operation)
{
    void *stream = kprof_target_stream(launch->call);
    if (launch->chosen && !kprof_batch.watched)
        kprof_batch_flush(stream, kprof_batch.count > 0 ? kprof_batch.launches[kprof_batch.count - 1].stream : stream);
    if (!launch->kernel) {
        wait_beside_transfer();
        kprof_batch.transfer_count++;
    }
    kprof_batch.unchosen_run = launch->chosen ? 0 : kprof_batch.unchosen_run + 1;
    kprof_batch.chosen_count += launch->chosen;
    kprof_batch.launches[kprof_batch.count++] = (kprof_open_launch){.operation = operation,
                                                                    .stream = stream,
                                                                    .transfer = !launch->kernel,
                                                                    .chosen = launch->chosen,
                                                                    .record = launch->record};
    if (launch->chosen &&
        (kprof_batch.chosen_count & (kprof_batch.chosen_count - 1)) == 0) /* known even if the process is killed */
        kprof_batch.listener->progress(&launch->record, kprof_batch.chosen_count, 1, kprof_batch.metrics->pass_count);
}

bool kprof_batch_enter(const kprof_batch_launch *launch, kprof_status *status)
{
    *status = KPROF_OK;
    if (!launch->chosen && !kprof_batch_is_open())
        return false;
    kprof_operation *operation = kprof_operation_copy(launch->call);
    kprof_treatment treatment = choose_treatment(launch, operation);
    if (kprof_batch_is_open() && !can_join(launch, &treatment))
        kprof_batch_close(launch->kernel ? "a launch that cannot join" : launch->call->name);
    if (!kprof_batch_is_open() && launch->chosen)
        *status = open_batch(launch, operation, &treatment);
    if (!kprof_batch_is_open()) {
        kprof_operation_free(operation);
        return false;
    }
    add(launch, operation);
    return true;
}

void kprof_batch_leave(const kprof_call *call)
{
    if (!kprof_batch_is_open())
        return;
    kprof_open_launch *last = &kprof_batch.launches[kprof_batch.count - 1];
    if (call->failed) { /* nothing ran: there is nothing to replay, and no range */
        if (last->chosen)
            kprof_batch.listener->done(&last->record, "the driver refused the launch");
        kprof_operation_free(last->operation);
        kprof_batch.chosen_count -= last->chosen;
        kprof_batch.transfer_count -= last->transfer;
        kprof_batch.unchosen_run -= !last->chosen;
        kprof_batch.count--;
    } else if (last->transfer) {
        wait_beside_transfer();
    }
    if (kprof_batch.count == kprof_batch.capacity || kprof_batch.kind != KPROF_TOGETHER)
        kprof_batch_close("the last launch it has room for");
    else if (kprof_monotonic_ns() - kprof_batch.started_ns > MAX_OPEN_NS)
        kprof_batch_close("its age");
}

static void log_times(uint32_t passes, const char *why)
{
    const kprof_batch_times *ms = &kprof_batch.times;
    kprof_log(
        KPROF_LOG_DEBUG,
        "batch of %zu launches and %zu transfers, closed by %s, %u passes, ms: saving %.1f, preparing %.1f, "
        "open %.1f, restoring %.1f, starting %.1f, running %.1f, stopping %.1f, decoding %.1f, waiting for values "
        "%.1f, writing them %.1f",
        kprof_batch.count - kprof_batch.transfer_count, kprof_batch.transfer_count, why, passes, ms->save_ms,
        ms->prepare_ms, ms->open_ms, ms->restore_ms, ms->start_ms, ms->run_ms, ms->stop_ms, ms->decode_ms,
        ms->evaluate_ms, ms->deliver_ms);
}

/* Saving to host memory is said, and remembered for the choice of the next batch. */
static void account_host_save(void)
{
    double save_s = kprof_batch.snapshot ? kprof_snapshot_host_save_s(kprof_batch.snapshot) : 0;
    if (save_s == 0)
        return;
    bool dear = save_s / (double)kprof_batch.chosen_count > MAX_HOST_SAVE_S_OF_LAUNCH;
    kprof_batch.context->host_save_s = save_s;
    kprof_batch.context->dear_saves = dear ? kprof_batch.context->dear_saves + 1 : 0;
    kprof_log(KPROF_LOG_WARNING,
              "the application's memory did not fit on the device twice: saving it to host memory took %.1f s for a "
              "batch of %zu launches",
              save_s, kprof_batch.chosen_count);
}

static void measure_chosen(const char *why)
{
    uint32_t passes;
    kprof_batch.times.open_ms =
        (double)(kprof_monotonic_ns() - kprof_batch.started_ns) * 1e-6 - kprof_batch.times.start_ms;
    kprof_status status = kprof_passes_run(&passes);
    int64_t replayed_ns = kprof_monotonic_ns();
    account_host_save();
    for (size_t i = 0; i < kprof_batch.count; i++)
        kprof_batch.launches[i].record.profile_ns =
            (replayed_ns - kprof_batch.opened_ns) / (int64_t)kprof_batch.chosen_count;
    if (status == KPROF_OK)
        kprof_deliver_all(passes);
    else
        kprof_deliver_reason(kprof_process_reason(status));
    kprof_batch.times.deliver_ms = kprof_monotonic_lap_ms(&replayed_ns);
    if (status == KPROF_OK && kprof_batch.count == 1)
        kprof_keep_image(kprof_batch.context->profiler, &kprof_batch.launches[0].record);
    log_times(passes, why);
}

void kprof_batch_close(const char *why)
{
    if (!kprof_batch_is_open())
        return;
    bool entered = kprof_target_enter_context(kprof_batch.context->context);
    if (kprof_batch.chosen_count > 0)
        measure_chosen(why);
    else
        kprof_passes_end_empty(); /* the driver refused all that was chosen */
    const kprof_batch_times *ms = &kprof_batch.times;
    if (kprof_batch.kind == KPROF_TOGETHER) {
        kprof_batch.context->last_launches = kprof_batch.count - kprof_batch.transfer_count;
        kprof_room_note(kprof_batch.context, kprof_batch.count, kprof_batch.capacity,
                        ms->prepare_ms + ms->start_ms + ms->stop_ms);
    }
    release();
    if (entered)
        kprof_target_leave_context();
}
