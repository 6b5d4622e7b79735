/* The open batch and its replay. */
#include "inject/batch.h"

#include "core/log.h"
#include "core/memory.h"
#include "cupti/operation.h"
#include "cupti/snapshot.h"
#include "inject/contexts.h"
#include "inject/evaluate.h"
#include "inject/keep.h"
#include "inject/lock.h"
#include "inject/process.h"
#include "inject/treatment.h"
#include "inject/wait.h"
#include "inject/witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Longest wait for another process of the run to finish its measurement. */
#define LOCK_TIMEOUT_MS 30000
/* The room of a batch is counter data in host memory, and launches, which cost the first pass 0.6 to 1 ms each, used or
 * not. It grows where batches are full in a row, which costs a first pass again, and is a small part of that where
 * batches have been far smaller, since all counter data is written before the first pass. */
#define FIRST_IMAGE_BYTES ((size_t)192 << 20)
#define SMALL_IMAGE_BYTES ((size_t)16 << 20)
#define FIRST_LAUNCHES    256
#define MAX_LAUNCHES      1024
#define GROWTH            4
#define FULL_IN_A_ROW     4
#define SMALL_IN_A_ROW    3
#define MEMORY_SHARE      8 /* of what the machine has: not more */
/* Launches that are not chosen cost as much as chosen ones, and ending a batch as much as about this many. */
#define MAX_UNCHOSEN_RUN 12
/* A batch that has been open for longer is closed, so that a process which is killed does not lose more. */
#define MAX_OPEN_NS INT64_C(10000000000)
/* A pass is abandoned when it takes this many times as long as the first, and this much more. */
#define SLOW_PASS_FACTOR 10
#define SLOW_PASS_NS     INT64_C(5000000000)
/* Beyond this, saving to host memory is dearer than what the further passes are worth. */
#define MAX_HOST_SAVE_S_OF_LAUNCH 15.0
#define MAX_WITNESSES             4
#define MAX_LATE                  16

typedef struct batch_launch {
    kprof_operation *operation; /* NULL where nothing is replayed */
    void *stream;
    bool chosen;
    kprof_launch_record record; /* of a chosen launch */
    kprof_witness witnesses[MAX_WITNESSES];
} batch_launch;

static struct {
    atomic_bool open;
    kprof_treatment_kind kind;
    kprof_kernel *watched; /* the kernel whose first run is watched, not measured; NULL: none */
    char note[512];        /* why the launches are measured in another way than asked for; "" when all is well */
    kprof_profiled_context *context;
    const kprof_chip_metrics *metrics;
    kprof_snapshot *snapshot; /* NULL where nothing is replayed */
    size_t capacity, count;
    size_t chosen_count;    /* of them */
    size_t unchosen_run;    /* launches since the last chosen one */
    batch_launch *launches; /* [capacity] */
    int64_t opened_ns, saved_ns, started_ns, first_pass_ns;
    bool abandoned;
} batch;

static const kprof_batch_listener *listener;

/* Snapshots to free once the GPU is idle. */
static kprof_snapshot *late[MAX_LATE];
static size_t late_count;

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void kprof_batch_listen(const kprof_batch_listener *new_listener)
{
    listener = new_listener;
}

bool kprof_batch_is_open(void)
{
    return atomic_load_explicit(&batch.open, memory_order_relaxed);
}

static void note(const char *text, const char *why)
{
    if (!batch.note[0])
        snprintf(batch.note, sizeof batch.note, "%s: %s", text, why);
}

static void release(void)
{
    for (size_t i = 0; i < batch.count; i++)
        kprof_operation_free(batch.launches[i].operation);
    free(batch.launches);
    kprof_snapshot_free(batch.snapshot);
    batch.launches = NULL;
    batch.snapshot = NULL;
    batch.count = batch.chosen_count = 0;
    kprof_lock_give();
    atomic_store(&batch.open, false);
}

/* Freeing waits for the GPU, whose work did not end in time: later, when it has. */
static void free_later(void)
{
    if (batch.snapshot && late_count < MAX_LATE)
        late[late_count++] = batch.snapshot;
    batch.snapshot = NULL; /* beyond that, its memory stays taken */
}

static void free_late(void)
{
    while (late_count > 0)
        kprof_snapshot_free(late[--late_count]);
}

static void tell_all(const char *reason)
{
    for (size_t i = 0; i < batch.count; i++)
        if (batch.launches[i].chosen)
            listener->done(&batch.launches[i].record, reason);
}

void kprof_batch_context_ending(void *context)
{
    if (!kprof_batch_is_open() || batch.context->context != context)
        return;
    tell_all("the context ended before the launch was replayed");
    release();
}

void kprof_batch_forget(void)
{
    atomic_store(&batch.open, false);
    batch.count = 0;
}

/* How many launches of which counter data fits into the room of this batch. */
static size_t choose_room(kprof_profiled_context *context)
{
    size_t available = kprof_memory_available_bytes() / MEMORY_SHARE;
    if (context->image_bytes == 0) {
        context->image_bytes = FIRST_IMAGE_BYTES;
        context->max_launches = FIRST_LAUNCHES;
    }
    bool asked = kprof_this_process.config.replay_batch > 0;
    size_t bytes = asked                                      ? available
                   : context->small_batches >= SMALL_IN_A_ROW ? SMALL_IMAGE_BYTES
                                                              : context->image_bytes;
    size_t launches = kprof_profiler_capacity(context->profiler, bytes < available ? bytes : available);
    return !asked && launches > context->max_launches ? context->max_launches : launches;
}

static size_t choose_capacity(kprof_profiled_context *context)
{
    const kprof_config *config = &kprof_this_process.config;
    size_t capacity = batch.kind == KPROF_TOGETHER ? choose_room(context) : 1;
    if (config->replay_batch && config->replay_batch < capacity)
        capacity = config->replay_batch;
    if (config->filter.launch_count && config->filter.launch_count + MAX_UNCHOSEN_RUN < capacity)
        capacity = config->filter.launch_count + MAX_UNCHOSEN_RUN;
    return capacity;
}

/* What a batch that closes means for the room of later ones. */
static void note_use(void)
{
    kprof_profiled_context *context = batch.context;
    bool full = batch.count == batch.capacity;
    if (batch.kind != KPROF_TOGETHER)
        return;
    context->small_batches = full || batch.count * 2 * GROWTH > batch.capacity ? 0 : context->small_batches + 1;
    context->full_batches = full ? context->full_batches + 1 : 0;
    if (context->full_batches < FULL_IN_A_ROW || context->max_launches >= MAX_LAUNCHES)
        return;
    context->full_batches = 0;
    context->image_bytes *= GROWTH;
    context->max_launches *= GROWTH;
}

/* Take what replays restore. Where that cannot be had, or costs too much, the launch is not replayed. */
static void save_memory(const kprof_call *call)
{
    char why[160];
    if (batch.context->host_save_s_of_launch > MAX_HOST_SAVE_S_OF_LAUNCH) {
        snprintf(why, sizeof why, "saving to host memory took %.0f s for each launch before",
                 batch.context->host_save_s_of_launch);
        note("measured in one pass", why);
    } else if (kprof_snapshot_take(call->context, kprof_target_function(call), call->kernel_name, &batch.snapshot) !=
               KPROF_OK) {
        note("measured in one pass", kprof_process_reason(KPROF_UNSUPPORTED));
    }
    if (!batch.snapshot)
        batch.kind = KPROF_ONE_PASS;
}

static void prepare_flush(void)
{
    kprof_profiled_context *context = batch.context;
    if (kprof_this_process.config.cache_control == KPROF_CACHE_FLUSH_NONE || context->flush || context->flush_failed)
        return;
    context->flush_failed = kprof_flush_open(&context->flush) != KPROF_OK;
}

/* Before a chosen launch into `stream`, with the launch before it in `after`. */
static void flush(void *stream, void *after)
{
    if (kprof_this_process.config.cache_control == KPROF_CACHE_FLUSH_NONE)
        return;
    if (!batch.context->flush || kprof_flush_run(batch.context->flush, stream, after) != KPROF_OK)
        note("caches were not flushed before the launch", kprof_process_reason(KPROF_NO_MEMORY));
}

static bool repeats(void)
{
    return batch.metrics->pass_count > 1 || batch.watched;
}

static kprof_status begin_passes(void)
{
    kprof_profiler *profiler = batch.context->profiler;
    return batch.metrics->pass_count > 1 && batch.kind == KPROF_ONE_PASS
               ? kprof_profiler_begin_pass(profiler)
               : kprof_profiler_begin(profiler, batch.capacity);
}

static kprof_status begin(const kprof_call *call)
{
    prepare_flush(); /* its memory is part of what is saved */
    if (repeats() && batch.kind != KPROF_ONE_PASS)
        save_memory(call);
    batch.saved_ns = now_ns();
    batch.capacity = choose_capacity(batch.context);
    batch.launches = calloc(batch.capacity, sizeof *batch.launches);
    if (!batch.launches)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a batch of %zu launches", batch.capacity);
    if (batch.watched)
        return KPROF_OK;
    kprof_status status = begin_passes();
    if (status == KPROF_OK)
        status = kprof_target_synchronize();
    batch.started_ns = now_ns();
    return status == KPROF_OK ? kprof_profiler_start(batch.context->profiler) : status;
}

static kprof_status take_lock(void)
{
    static unsigned timeout_ms = LOCK_TIMEOUT_MS;
    kprof_lock_want();
    bool taken = kprof_lock_take(timeout_ms, kprof_contexts_release);
    timeout_ms = taken ? LOCK_TIMEOUT_MS : 0; /* who waited in vain once does not wait for each launch */
    return taken ? KPROF_OK : kprof_fail(KPROF_NOT_COLLECTED, "another process of the run kept the counters");
}

static kprof_status open_batch(const kprof_batch_launch *launch, const kprof_treatment *treatment)
{
    batch.kind = treatment->kind;
    batch.watched = treatment->watched ? launch->kernel : NULL;
    batch.note[0] = '\0';
    batch.metrics = launch->metrics;
    batch.opened_ns = now_ns();
    batch.unchosen_run = 0;
    batch.abandoned = false;
    if (treatment->kind == KPROF_REFUSED)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s", treatment->why);
    if (treatment->kind == KPROF_ONE_PASS)
        note("measured in one pass", treatment->why);
    kprof_status status = take_lock();
    if (status != KPROF_OK) {
        kprof_lock_have();
        return status;
    }
    status = kprof_wait_for_context(launch->call->context);
    if (status == KPROF_OK)
        free_late();
    if (status == KPROF_OK)
        status = kprof_contexts_open(launch->call->context, launch->metrics, &batch.context);
    if (status == KPROF_OK)
        status = begin(launch->call);
    kprof_lock_have();
    if (status != KPROF_OK) {
        release();
        return status;
    }
    atomic_store(&batch.open, true);
    return KPROF_OK;
}

static bool can_join(const kprof_batch_launch *launch, const kprof_treatment *treatment)
{
    if (treatment->kind != KPROF_TOGETHER || batch.kind != KPROF_TOGETHER ||
        batch.context->context != launch->call->context)
        return false;
    if (!launch->chosen && batch.unchosen_run >= MAX_UNCHOSEN_RUN)
        return false;
    return !batch.snapshot || kprof_snapshot_cover(batch.snapshot, kprof_target_function(launch->call),
                                                   launch->call->kernel_name) == KPROF_OK;
}

static void add(const kprof_batch_launch *launch, kprof_operation *operation)
{
    void *stream = kprof_target_stream(launch->call);
    if (launch->chosen && !batch.watched)
        flush(stream, batch.count > 0 ? batch.launches[batch.count - 1].stream : stream);
    batch.unchosen_run = launch->chosen ? 0 : batch.unchosen_run + 1;
    batch.chosen_count += launch->chosen;
    batch.launches[batch.count++] =
        (batch_launch){.operation = operation, .stream = stream, .chosen = launch->chosen, .record = launch->record};
    if (launch->chosen &&
        (batch.chosen_count & (batch.chosen_count - 1)) == 0) /* known even if the process is killed */
        listener->progress(&launch->record, batch.chosen_count, 1, batch.metrics->pass_count);
}

bool kprof_batch_enter(const kprof_batch_launch *launch, kprof_status *status)
{
    *status = KPROF_OK;
    if (!launch->chosen && !kprof_batch_is_open())
        return false;
    kprof_operation *operation = kprof_operation_copy(launch->call);
    kprof_treatment treatment = kprof_treatment_choose(launch, operation);
    if (kprof_batch_is_open() && !can_join(launch, &treatment))
        kprof_batch_close();
    if (!kprof_batch_is_open() && launch->chosen)
        *status = open_batch(launch, &treatment);
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
    batch_launch *last = &batch.launches[batch.count - 1];
    if (call->failed) { /* nothing ran: there is nothing to replay, and no range */
        if (last->chosen)
            listener->done(&last->record, "the driver refused the launch");
        kprof_operation_free(last->operation);
        batch.chosen_count -= last->chosen;
        batch.count--;
    }
    if (batch.count == batch.capacity || batch.kind != KPROF_TOGETHER || now_ns() - batch.opened_ns > MAX_OPEN_NS)
        kprof_batch_close();
}

static kprof_status wait_for_launches(kprof_status status)
{
    kprof_status done = kprof_target_synchronize();
    return status == KPROF_OK ? done : status;
}

/* Launches from number `from` on, unmeasured. */
static kprof_status run_plain(size_t from)
{
    kprof_status status = KPROF_OK;
    for (size_t i = from; i < batch.count && status == KPROF_OK; i++) {
        status = kprof_operation_run(batch.launches[i].operation);
        if (status == KPROF_OK)
            status = kprof_target_synchronize(); /* nothing else keeps the order of launches in several streams */
    }
    return status;
}

static bool is_too_slow(int64_t start_ns)
{
    int64_t spent_ns = now_ns() - start_ns;
    return spent_ns > SLOW_PASS_FACTOR * batch.first_pass_ns && spent_ns > batch.first_pass_ns + SLOW_PASS_NS;
}

/* All launches of a pass; `ran` tells how many were reached before the pass was abandoned. */
static kprof_status run_measured(size_t *ran)
{
    kprof_status status = KPROF_OK;
    int64_t start_ns = now_ns();
    for (*ran = 0; *ran < batch.count && status == KPROF_OK && !batch.abandoned; ++*ran) {
        const batch_launch *launch = &batch.launches[*ran];
        if (launch->chosen)
            flush(launch->stream, *ran > 0 ? batch.launches[*ran - 1].stream : launch->stream);
        status = kprof_operation_run(launch->operation);
        batch.abandoned = is_too_slow(start_ns);
    }
    status = wait_for_launches(status);
    batch.abandoned = batch.abandoned || is_too_slow(start_ns);
    return status;
}

/* A pass failed half-way: put memory back and run everything once, unmeasured. */
static void recover(void)
{
    kprof_status status = kprof_snapshot_restore(batch.snapshot);
    if (status == KPROF_OK)
        status = run_plain(0);
    if (status != KPROF_OK)
        kprof_process_disarm(status, "a replay failed, and the memory that it changed could not be put right");
}

static void note_witnesses(void)
{
    double means[MAX_WITNESSES];
    size_t count = batch.metrics->witnesses.count;
    for (size_t i = 0; count > 0 && count <= MAX_WITNESSES && i < batch.count; i++) {
        if (!batch.launches[i].chosen ||
            kprof_evaluate_witnesses(batch.context->profiler, batch.metrics, i, means) != KPROF_OK)
            continue;
        for (size_t w = 0; w < count; w++)
            kprof_witness_add(&batch.launches[i].witnesses[w], means[w]);
    }
}

static kprof_status read_pass(void)
{
    kprof_status status = kprof_profiler_decode(batch.context->profiler, batch.count);
    if (status == KPROF_OK)
        note_witnesses();
    return status;
}

/* The launch's own call was watched: its passes are all still to come, where it may be replayed. */
static kprof_status end_watch(bool *more)
{
    *more = true;
    kprof_status status = kprof_wait_for_context(batch.context->context);
    if (status == KPROF_NOT_COLLECTED) {
        atomic_store(&batch.watched->ends_late, true);
        free_later();
    }
    if (status != KPROF_OK)
        return status;
    atomic_fetch_add(&batch.watched->watched_ends, 1);
    if (!batch.snapshot)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "a kernel's first launches are only watched where it may wait for memory that the host "
                          "writes; its next ones are measured");
    batch.first_pass_ns = now_ns() - batch.opened_ns;
    return begin_passes();
}

/* The launches' own calls were the first pass. */
static kprof_status end_first_pass(bool *more)
{
    kprof_status status = kprof_target_synchronize();
    kprof_status stopped = kprof_profiler_stop(batch.context->profiler, more);
    batch.first_pass_ns = now_ns() - batch.started_ns;
    if (status != KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED, "this launch, or one measured with it, failed");
    return stopped == KPROF_OK && batch.chosen_count > 0 ? read_pass() : stopped;
}

static kprof_status replay_pass(bool *more)
{
    size_t ran = 0;
    kprof_status status = kprof_snapshot_restore(batch.snapshot);
    if (status == KPROF_OK)
        status = kprof_profiler_start(batch.context->profiler);
    if (status == KPROF_OK) {
        status = run_measured(&ran);
        kprof_status stopped = kprof_profiler_stop(batch.context->profiler, more);
        status = status == KPROF_OK ? stopped : status;
    }
    if (status == KPROF_OK)
        status = run_plain(ran);
    if (status != KPROF_OK) {
        recover();
        return status;
    }
    return batch.abandoned ? KPROF_OK : read_pass();
}

static const kprof_launch_record *last_chosen(void)
{
    size_t i = batch.count - 1;
    while (!batch.launches[i].chosen)
        i--;
    return &batch.launches[i].record;
}

static kprof_status run_passes(uint32_t *passes)
{
    bool more = false;
    *passes = batch.watched ? 0 : 1;
    kprof_status status = batch.watched ? end_watch(&more) : end_first_pass(&more);
    while (status == KPROF_OK && more && batch.snapshot) {
        listener->progress(last_chosen(), batch.chosen_count, *passes + 1, batch.metrics->pass_count);
        status = replay_pass(&more);
        if (batch.abandoned)
            break;
        ++*passes;
    }
    if (batch.abandoned)
        note("the replay was abandoned", "a pass took far longer than the launches did at first");
    return status;
}

static void add_witnesses(const batch_launch *launch, kprof_launch_record *record, double *spreads_pct)
{
    size_t count = batch.metrics->witnesses.count;
    for (size_t w = 0; w < count && count <= MAX_WITNESSES; w++)
        spreads_pct[w] = kprof_witness_spread_pct(&launch->witnesses[w]);
    record->witness_count = count <= MAX_WITNESSES ? (uint32_t)count : 0;
    record->witness_spreads_pct = spreads_pct;
}

static void deliver(batch_launch *launch, const kprof_evaluation *evaluation, uint32_t passes)
{
    double spreads_pct[MAX_WITNESSES];
    kprof_launch_record *record = &launch->record;
    if (evaluation->status != KPROF_OK) {
        listener->done(record, evaluation->reason);
        return;
    }
    bool partly = batch.metrics->pass_count > 1 && batch.kind == KPROF_ONE_PASS;
    record->mode = partly ? KPROF_REPLAY_ONE_PASS : KPROF_REPLAY_BATCH;
    record->pass_count = passes;
    record->values = evaluation->values;
    record->value_count = (uint32_t)batch.metrics->metrics.count;
    add_witnesses(launch, record, spreads_pct);
    listener->done(record, batch.note);
}

static void deliver_all(uint32_t passes)
{
    size_t chosen = batch.chosen_count, value_count = batch.metrics->metrics.count, next = 0;
    kprof_evaluation *evaluations = calloc(chosen + 1, sizeof *evaluations);
    double *values = calloc(chosen * value_count + 1, sizeof *values);
    for (size_t i = 0; evaluations && values && i < batch.count; i++)
        if (batch.launches[i].chosen) {
            evaluations[next] = (kprof_evaluation){.launch = i, .values = values + next * value_count};
            next++;
        }
    if (next < chosen) {
        tell_all("no memory for the values");
    } else {
        kprof_evaluate(batch.context->profiler, batch.metrics, evaluations, chosen);
        for (size_t i = 0; i < chosen; i++)
            deliver(&batch.launches[evaluations[i].launch], &evaluations[i], passes);
    }
    free(values);
    free(evaluations);
}

static void log_times(int64_t closed_ns, int64_t replayed_ns, uint32_t passes)
{
    kprof_log(KPROF_LOG_DEBUG,
              "batch of %zu launches: saved after %.1f ms, started after %.1f, closed after %.1f, %u passes ended in "
              "%.1f ms, "
              "evaluated in %.1f ms",
              batch.count, (double)(batch.saved_ns - batch.opened_ns) * 1e-6,
              (double)(batch.started_ns - batch.opened_ns) * 1e-6, (double)(closed_ns - batch.opened_ns) * 1e-6, passes,
              (double)(replayed_ns - closed_ns) * 1e-6, (double)(now_ns() - replayed_ns) * 1e-6);
}

/* Saving to host memory is said, and remembered for the choice of the next batch. */
static void account_host_save(void)
{
    double save_s = batch.snapshot ? kprof_snapshot_host_save_s(batch.snapshot) : 0;
    if (save_s == 0)
        return;
    batch.context->host_save_s_of_launch = save_s / (double)batch.chosen_count;
    kprof_log(KPROF_LOG_WARNING,
              "the application's memory did not fit on the device twice: saving it to host memory took %.1f s for a "
              "batch of %zu launches",
              save_s, batch.chosen_count);
}

static void measure_chosen(void)
{
    uint32_t passes;
    int64_t closed_ns = now_ns();
    kprof_status status = run_passes(&passes);
    int64_t replayed_ns = now_ns();
    account_host_save();
    for (size_t i = 0; i < batch.count; i++)
        batch.launches[i].record.profile_ns = (replayed_ns - batch.opened_ns) / (int64_t)batch.chosen_count;
    if (status == KPROF_OK)
        deliver_all(passes);
    else
        tell_all(kprof_process_reason(status));
    if (status == KPROF_OK && batch.count == 1)
        kprof_keep_image(batch.context->profiler, &batch.launches[0].record);
    log_times(closed_ns, replayed_ns, passes);
}

void kprof_batch_close(void)
{
    if (!kprof_batch_is_open())
        return;
    bool more, entered = kprof_target_enter_context(batch.context->context);
    if (batch.chosen_count > 0)
        measure_chosen();
    else if (!batch.watched)
        (void)end_first_pass(&more); /* the driver refused all that was chosen */
    note_use();
    release();
    if (entered)
        kprof_target_leave_context();
}
