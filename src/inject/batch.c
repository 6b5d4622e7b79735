/* Opens and closes the batch, and takes launches into it. */
#include "inject/batch_private.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "inject/capacity.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/multiplex.h"
#include "inject/process.h"
#include "inject/wait.h"

#include <stdio.h>
#include <stdlib.h>

kprof_open_batch kprof_the_batch;

/* Longest wait for another process of the run that makes no progress with its measurement. */
#define LOCK_TIMEOUT_MS 30000
/* Launches and transfers of a batch, at most: their arguments are kept. */
#define MAX_LAUNCHES ((size_t)16384)
/* A batch that has had no chosen launch for as long is closed: what is not chosen is repeated in each pass, too. */
#define MAX_UNCHOSEN_NS INT64_C(250000000)
/* A batch that has taken launches for longer is closed, so that a process which is killed does not lose more. Where
 * launches are sparse, that is what closes it. Passes of a batch take time whatever it holds: it may be open for
 * several times as long as that, so that a program is not slowed down much. */
#define LEAST_OPEN_NS    INT64_C(500000000)
#define MOST_OPEN_NS     INT64_C(10000000000)
#define OPEN_COST_FACTOR 5
/* So few launches lose little if each of them costs more: their batch is open for a second at most, or for twice as
 * long as passes take. */
#define SPARSE_DISTANCE_NS INT64_C(10000000)
#define SPARSE_OPEN_NS     INT64_C(1000000000)
#define SPARSE_COST_FACTOR 2
/* A batch for which other processes wait is open for as long as its passes take. */
#define LOOK_NS INT64_C(50000000)
/* Once replays gave the host what the own runs gave so many times, expect it of all kernels. */
#define ENOUGH_COMPARISONS 4
#define OF_HOST            "memory that the host uses"
/* These bits decide which launches may be repeated. */
#define SHARING_THAT_MATTERS (KPROF_SHARES_WITH_HOST | KPROF_SHARES_WITH_DEVICES | KPROF_MAY_NOT_SAVE | KPROF_MANAGED)

void kprof_batch_listen(const kprof_batch_listener *listener)
{
    kprof_the_batch.listener = listener;
}

bool kprof_batch_is_open(void)
{
    return atomic_load_explicit(&kprof_the_batch.open, memory_order_relaxed);
}

bool kprof_batch_is_window(void)
{
    return atomic_load_explicit(&kprof_the_batch.window, memory_order_relaxed);
}

void kprof_batch_note_unknown_end(void)
{
    atomic_store(&kprof_the_batch.unknown_ends, true);
}

bool kprof_batch_records(void)
{
    return atomic_load_explicit(&kprof_the_batch.records, memory_order_relaxed);
}

void kprof_batch_spoil(const char *reason)
{
    const char *none = NULL;
    atomic_compare_exchange_strong(&kprof_the_batch.spoiled, &none, reason);
}

bool kprof_batch_replays(void)
{
    return atomic_load_explicit(&kprof_the_batch.replays, memory_order_relaxed);
}

bool kprof_batch_is_sealed(void)
{
    return atomic_load_explicit(&kprof_the_batch.sealed, memory_order_relaxed);
}

bool kprof_batch_is_wanted(const void *context)
{
    return context && atomic_load(&kprof_the_batch.wanted) == context;
}

unsigned kprof_batch_new_sharing(void)
{
    return kprof_batch_replays()
               ? kprof_engine.device->target_sharing() & SHARING_THAT_MATTERS & ~atomic_load(&kprof_the_batch.sharing)
               : 0;
}

bool kprof_batch_has_managed(void)
{
    return kprof_batch_records() && (atomic_load(&kprof_the_batch.sharing) & KPROF_MANAGED);
}

void kprof_batch_note(const char *text, const char *why)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (!batch->note[0])
        snprintf(batch->note, sizeof batch->note, "%s: %s", text, why);
}

bool kprof_batch_saves_host(void)
{
    return kprof_batch_records() && atomic_load(&kprof_the_batch.saves_host);
}

bool kprof_batch_has_host(void)
{
    return kprof_batch_has_managed() || kprof_batch_saves_host();
}

/* A process has its turn until its samples are complete, as a sample has all its passes from one measurement. */
static bool keeps_turn(const kprof_open_batch *batch)
{
    return batch->kind == KPROF_MULTIPLEXED && batch->context && !kprof_multiplex_has_had_turn(batch->context);
}

/* `is_idle`: no work is left in the context, which lives on. */
static void release(bool is_idle)
{
    kprof_open_batch *batch = &kprof_the_batch;
    for (size_t i = 0; i < batch->count; i++)
        kprof_engine.device->operation_free(batch->launches[i].operation);
    kprof_evaluations_free(&batch->evaluations);
    if (batch->saved)
        kprof_engine.device->snapshot_drop(batch->context->snapshot, is_idle);
    batch->saved = false;
    batch->count = batch->chosen_count = batch->unproved = 0;
    batch->needs = 0;
    atomic_store(&batch->saves_host, false);
    kprof_multiplex_note_batch();
    batch->first_range = batch->range_count = batch->wanted_ranges = 0;
    batch->behind.stands = false;
    if (!keeps_turn(batch))
        kprof_lock_give();
    atomic_store(&batch->records, false);
    atomic_store(&batch->replays, false);
    atomic_store(&batch->window, false);
    atomic_store(&batch->sealed, false);
    atomic_store(&batch->open, false);
}

/* Tell that no launch of the batch was measured. */
static void tell_why(const char *reason)
{
    if (kprof_the_batch.kind == KPROF_MULTIPLEXED)
        kprof_multiplex_deliver_reason(reason);
    else
        kprof_deliver_reason(reason);
}

bool kprof_batch_context_ending(void *context)
{
    kprof_open_batch *batch = &kprof_the_batch;
    void *ending = context;
    (void)atomic_compare_exchange_strong(&batch->wanted, &ending, NULL);
    if (!kprof_batch_is_open() || batch->context->context != context)
        return false;
    bool in_pass = batch->in_pass;
    tell_why("the context ended before the launch was measured");
    release(false);
    return in_pass;
}

void kprof_batch_forget(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    atomic_store(&batch->window, false);
    atomic_store(&batch->records, false);
    atomic_store(&batch->replays, false);
    atomic_store(&batch->sealed, false);
    atomic_store(&batch->open, false);
    batch->count = 0;
}

static void prepare_flush(void)
{
    kprof_profiled_context *context = kprof_the_batch.context;
    const kprof_cache_control control = kprof_engine.process.config.cache_control;
    if (control == KPROF_CACHE_FLUSH_NONE || context->flush_failed)
        return;
    kprof_status status = context->flush ? KPROF_OK : kprof_engine.device->flush_open(&context->flush);
    context->flush_failed = status != KPROF_OK;
    if (context->flush_failed)
        snprintf(context->flush_reason, sizeof context->flush_reason, "%s", kprof_process_reason(status));
    else if (control == KPROF_CACHE_FLUSH_ALL && kprof_the_batch.kind != KPROF_LIVE)
        kprof_engine.device->flush_prepare_to_empty(context->flush);
}

static void note_flush(kprof_status status)
{
    kprof_profiled_context *context = kprof_the_batch.context;
    if (!context->flush || status != KPROF_OK)
        kprof_batch_note("caches were not flushed before the launch",
                         context->flush ? kprof_process_reason(status) : context->flush_reason);
}

/* Return why caches cannot be emptied before a launch's own run; NULL if they can. No work may run meanwhile: L2 is
 * emptied at once, and to load code may take the end of all work. This thread has the gate alone, and what the context
 * still does ends, as the range of the launch could not begin otherwise. */
static const char *why_not_emptied(void)
{
    void *context = kprof_the_batch.context->context;
    if (kprof_decision_has_other_writers())
        return "other devices or other processes may write memory meanwhile";
    if (kprof_engine.device->target_sharing() &
        KPROF_MAY_NOT_SAVE) /* then nobody has looked whether the stream is the context's */
        return "the process has memory that kprof cannot save, or a green context";
    kprof_status status = kprof_contexts_wait_for_others(context);
    if (status == KPROF_OK)
        status = kprof_wait_for_context(context);
    return status == KPROF_OK ? NULL : kprof_process_reason(status);
}

void kprof_batch_clear_caches(void *stream)
{
    const kprof_device_ops *device = kprof_engine.device;
    const kprof_open_batch *batch = &kprof_the_batch;
    const kprof_cache_control control = kprof_engine.process.config.cache_control;
    kprof_flush *flush = batch->context->flush;
    if (control == KPROF_CACHE_FLUSH_NONE)
        return;
    const bool empties = control == KPROF_CACHE_FLUSH_ALL && batch->kind != KPROF_LIVE && flush;
    const char *why_not = empties && batch->kind == KPROF_MULTIPLEXED ? why_not_emptied() : NULL;
    if (why_not)
        kprof_batch_note("before the launch L2 was flushed by copying, and other caches were left alone", why_not);
    if (!empties || why_not) {
        note_flush(flush ? device->flush_run(flush, stream) : KPROF_OK);
        return;
    }
    note_flush(device->flush_empty(flush, stream));
    const char *shortfall = device->flush_shortfall(flush);
    if (shortfall)
        kprof_batch_note("not all caches were emptied before the launch", shortfall);
}

/* Have later flushes wait for the launch before them. */
static void flush_behind_own_run(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (batch->context->flush)
        note_flush(kprof_engine.device->flush_behind(batch->context->flush, batch->own_stream));
}

/* Save what replays restore; nothing else may be at work that writes it. */
static kprof_status save_memory(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_profiled_context *context = batch->context;
    const char *writer = kprof_engine.device->writers_devices();
    if (writer)
        return kprof_fail(KPROF_UNSUPPORTED, "%s", writer);
    kprof_status status = kprof_contexts_wait_for_others(context->context);
    if (status == KPROF_OK && !context->snapshot)
        status = kprof_engine.device->snapshot_open(context->context, &context->snapshot);
    if (status == KPROF_OK)
        status = kprof_engine.device->snapshot_take(context->snapshot, batch->needs & KPROF_SAVES_HOST);
    batch->saved = status == KPROF_OK;
    return status;
}

/* `ranges`: those that the batch must be able to hold. */
static kprof_status begin(size_t ranges)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns();
    bool replayed = batch->kind == KPROF_REPLAYED;
    prepare_flush();
    batch->output_before = kprof_engine.device->output_seen();
    kprof_status status = replayed ? save_memory() : KPROF_OK;
    /* By an event that it waits for, a launch which joins later may be behind work of another context that waits for
     * the host. What is submitted there from now on closes the batch first. */
    if (batch->kind == KPROF_LIVE && (kprof_engine.device->target_sharing() & KPROF_WAITS_FOR_HOST))
        status = kprof_contexts_wait_for_others(batch->context->context);
    if (status != KPROF_OK)
        return status;
    batch->times.save_ms = kprof_monotonic_lap_ms(&lap_ns);
    bool reserves = !replayed || batch->searching || kprof_multiplex_is_open(batch->context);
    size_t usual = kprof_capacity_choose(batch->context, reserves);
    if (ranges > KPROF_BATCH_MOST_LAUNCHES)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "the graph has %zu chosen kernels, and a batch holds %d at most; -k or -c chooses fewer",
                          ranges, KPROF_BATCH_MOST_LAUNCHES);
    batch->capacity = ranges > usual ? ranges : usual;
    batch->least_ranges = ranges;
    return kprof_passes_begin();
}

/* The work of a window may be waited for by that of another process, and so waits for none. */
static kprof_status take_lock(const kprof_device *device)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_lock_choose(device ? device->record.uuid : "");
    if (batch->kind == KPROF_MULTIPLEXED)
        return kprof_lock_take(0, kprof_contexts_release)
                   ? KPROF_OK
                   : kprof_fail(KPROF_NOT_COLLECTED, "it was the turn of another process of the run");
    bool taken = kprof_lock_take(batch->lock_in_vain ? 0 : LOCK_TIMEOUT_MS, kprof_contexts_release);
    batch->lock_in_vain = !taken; /* who waited in vain once does not wait for each launch */
    return taken ? KPROF_OK : kprof_fail(KPROF_NOT_COLLECTED, "another process of the run kept the counters");
}

static void start_anew(const kprof_batch_launch *launch, const kprof_decision *decision)
{
    kprof_open_batch *batch = &kprof_the_batch;
    batch->kind = decision->kind;
    batch->needs = 0;
    batch->note[0] = '\0';
    batch->lost_range = NULL;
    batch->metrics = launch->metrics;
    atomic_store(&batch->sharing, kprof_engine.device->target_sharing());
    bool has_host = decision->needs & KPROF_SAVES_HOST; /* so that it may change */
    batch->proved = decision->kind == KPROF_REPLAYED && !has_host && kprof_decision_needs_proof();
    batch->searching = false;
    batch->in_pass = batch->shares = false;
    atomic_store(&batch->range_open, false);
    batch->proof_open = batch->proof_paused = false;
    batch->uncompared = 0;
    batch->behind.stands = batch->behind.wanted;
    batch->behind.begun = false;
    batch->most_replayed = SIZE_MAX;
    batch->compares_last = false;
    batch->own_stream = launch->call->stream;
    batch->own_is_threads = launch->call->is_threads_stream;
    batch->opened_ns = batch->started_ns = kprof_monotonic_ns();
    batch->times = (kprof_batch_times){0};
    atomic_store(&batch->spoiled, NULL);
}

/* The launch that the thread is about to make is not measured, but could be later. */
static __thread bool is_put_off;

static void put_off(void *context)
{
    is_put_off = true;
    atomic_store(&kprof_the_batch.wanted, context);
}

void kprof_batch_begin_call(void)
{
    is_put_off = false;
}

bool kprof_batch_has_put_off(void)
{
    return is_put_off;
}

/* A launch behind work that goes on is put off: the next one that finds the context idle opens a batch, chosen or
 * not. */
static kprof_status wait_to_open(void *context)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_status status = kprof_wait_for_context(context);
    if (status == KPROF_NOT_COLLECTED)
        put_off(context);
    else if (atomic_load(&batch->wanted) == context)
        atomic_store(&batch->wanted, NULL);
    return status;
}

static kprof_status open_batch(const kprof_batch_launch *launch, const kprof_decision *decision, size_t ranges)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (decision->kind == KPROF_REFUSED)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s", decision->why);
    const kprof_profiled_context *known = kprof_contexts_find(launch->call->context);
    if (known && kprof_monotonic_ns() < known->busy_before_ns)
        return kprof_fail(KPROF_COUNTERS_BUSY,
                          "another tool used the GPU counters a short while before; " KPROF_FREES_COUNTERS);
    start_anew(launch, decision);
    kprof_status status = wait_to_open(launch->call->context);
    if (status == KPROF_OK)
        status = take_lock(kprof_devices_find(launch->call->context));
    if (status != KPROF_OK)
        return status;
    batch->needs = decision->needs; /* not before: what comes before the launch may take longer than it may itself */
    if (decision->needs)
        atomic_fetch_add(&launch->kernel->by_itself, 1);
    status = kprof_contexts_open(launch->call->context, launch->metrics, &batch->context);
    if (status == KPROF_OK) {
        batch->searching = batch->proved && batch->context->searches;
        batch->opener = launch;
        status = begin(ranges);
    }
    if (status != KPROF_OK) {
        release(false);
        return status;
    }
    kprof_process_outlive_libraries();
    batch->started_ns = batch->chosen_ns = kprof_monotonic_ns();
    atomic_store(&batch->saves_host, decision->needs == KPROF_SAVES_HOST);
    atomic_store(&batch->records, decision->kind == KPROF_REPLAYED);
    atomic_store(&batch->replays, decision->kind == KPROF_REPLAYED);
    atomic_store(&batch->window, decision->kind == KPROF_MULTIPLEXED);
    atomic_store(&batch->open, true);
    return KPROF_OK;
}

/* Does the batch, if it is replayed, put back what the operation sets or copies? */
static bool is_saved(const kprof_operation *operation)
{
    return !kprof_batch_records() || !operation ||
           kprof_engine.device->operation_is_saved(operation, kprof_the_batch.context->snapshot);
}

/* A launch that may join a batch, or have one opened for it. */
typedef struct candidate {
    const kprof_batch_launch *launch;
    const kprof_operation *operation; /* NULL: it has none */
    kprof_decision decision;
    bool opens;    /* a batch, where none is open */
    char why[320]; /* what the reason of the decision may point to */
} candidate;

/* Does such a decision keep a launch out of batches of the usual kind? */
static bool is_apart(kprof_decision_kind kind)
{
    return kind == KPROF_MULTIPLEXED || kind == KPROF_WATCHED;
}

/* If memory cannot be saved after all, the launch is not repeated, and kprof decides again. No batch is open then if
 * that decision keeps the launch apart. */
static kprof_status open_for(candidate *c)
{
    kprof_status status = open_batch(c->launch, &c->decision, 1);
    if (status == KPROF_OK && !is_saved(c->operation)) {
        kprof_batch_end("a graph that cannot be repeated");
        status = kprof_fail(KPROF_UNSUPPORTED, "the graph sets or copies memory that a replay cannot restore");
    }
    bool cannot_save = status == KPROF_NO_MEMORY || status == KPROF_UNSUPPORTED;
    if (c->decision.kind != KPROF_REPLAYED || !cannot_save || c->launch->metrics->pass_count == 0)
        return status;
    snprintf(c->why, sizeof c->why, "%s", kprof_process_reason(status));
    c->decision = kprof_decision_unrepeated(c->launch, c->why);
    return is_apart(c->decision.kind) ? KPROF_OK : open_batch(c->launch, &c->decision, 1);
}

/* Can the batch not hold so many more ranges? */
static bool is_full(size_t ranges)
{
    kprof_open_batch *batch = &kprof_the_batch;
    return batch->wanted_ranges + ranges > batch->capacity || batch->count >= MAX_LAUNCHES;
}

/* Variables of a module whose first kernel this is must be saved before the kernel changes them. */
static bool covers(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    return batch->kind != KPROF_REPLAYED ||
           kprof_engine.device->snapshot_cover(batch->context->snapshot, NULL) == KPROF_OK;
}

/* Return why the open batch has to close before the launches; NULL: it can hold them. */
static const char *obstacle_to_join(const kprof_batch_launch *launch, const kprof_decision *decision, size_t ranges)
{
    const kprof_open_batch *batch = &kprof_the_batch;
    if (batch->context->context != launch->call->context)
        return "a launch in another context";
    const bool is_node = launch->call->node_traits & KPROF_NODE;
    if (decision->kind != batch->kind || (decision->needs && decision->needs != batch->needs) ||
        (is_node && batch->needs))
        return "a launch that is measured in another way";
    if (is_full(ranges))
        return "a launch whose values do not fit";
    if (kprof_batch_new_sharing() != 0)
        return "memory that others reach";
    if (atomic_load(&batch->spoiled))
        return "a call that made it worthless";
    return covers() ? NULL : "a launch whose variables cannot be saved";
}

static bool reserve(size_t more)
{
    kprof_open_batch *batch = &kprof_the_batch;
    size_t wanted = batch->count + more;
    if (wanted <= batch->launch_capacity)
        return true;
    size_t capacity = wanted > 128 ? 2 * wanted : 256;
    kprof_open_launch *grown = realloc(batch->launches, capacity * sizeof *grown);
    if (!grown)
        return false;
    batch->launches = grown;
    batch->launch_capacity = capacity;
    return true;
}

size_t kprof_batch_take_range(size_t *range)
{
    if (*range == KPROF_NO_RANGE)
        *range = kprof_the_batch.range_count++;
    return *range;
}

/* Such a range may lack its launch, or have what came after it. */
static void lose_range(const char *why)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_batch_spoil(why);
    const char *none = NULL;
    (void)atomic_compare_exchange_strong(&batch->lost_range, &none, why);
}

/* Begin the range around the own run of the last `entered` launches. */
static void begin_own_run(const kprof_call *call, size_t range)
{
    kprof_open_batch *batch = &kprof_the_batch;
    void *stream = call->stream;
    if (batch->kind == KPROF_LIVE && stream != batch->own_stream && !batch->own_is_threads)
        flush_behind_own_run();
    if (batch->kind != KPROF_REPLAYED)
        kprof_batch_clear_caches(stream);
    if (batch->kind == KPROF_MULTIPLEXED)
        kprof_multiplex_keep_note(range);
    batch->own_stream = stream;
    batch->own_is_threads = call->is_threads_stream;
    for (size_t i = batch->count - batch->entered; i < batch->count; i++)
        batch->launches[i].own_range = range;
    if (batch->entered == 1)
        batch->launches[batch->count - 1].range = range;
    if (kprof_engine.device->profiler_push(batch->context->profiler, range) != KPROF_OK)
        lose_range("CUPTI did not begin a range");
}

static void add(const kprof_batch_launch *launch, kprof_operation *operation)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (batch->unproved == batch->count) {
        batch->unproved_stream = launch->call->stream;
        batch->unproved_thread = pthread_self();
    }
    batch->launches[batch->count++] = (kprof_open_launch){.operation = operation,
                                                          .kernel = launch->kernel,
                                                          .chosen = launch->chosen,
                                                          .own_range = KPROF_NO_RANGE,
                                                          .range = KPROF_NO_RANGE,
                                                          .record = launch->record};
    batch->entered_traits = launch->call->node_traits | (batch->entered > 0 ? batch->entered_traits : 0);
    batch->entered++;
    if (!launch->chosen)
        return;
    batch->chosen_count++;
    batch->chosen_ns = kprof_monotonic_ns();
    kprof_lock_note_progress();
    if ((batch->chosen_count & (batch->chosen_count - 1)) == 0) /* known even if the process is killed */
        batch->listener->progress(&launch->record, batch->chosen_count, 1, batch->metrics->pass_count);
}

void kprof_batch_note_ends(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    for (; batch->unproved < batch->count; batch->unproved++)
        if (batch->launches[batch->unproved].kernel)
            atomic_store(&batch->launches[batch->unproved].kernel->ends_alone, true);
}

void kprof_batch_note_late(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    for (; batch->unproved < batch->count; batch->unproved++) {
        kprof_kernel *kernel = batch->launches[batch->unproved].kernel;
        if (kernel && !atomic_load(&kernel->ends_alone))
            kprof_kernel_note_vain_wait(kernel);
    }
}

/* Pass over launches whose kernels have been seen to end by themselves. */
static void skip_proved(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    while (batch->unproved < batch->count) {
        const kprof_kernel *kernel = batch->launches[batch->unproved].kernel;
        if (kernel && !atomic_load(&kernel->ends_alone))
            break;
        batch->unproved++;
    }
}

/* Take nothing more: the batch closes in a later call, when its work has ended. What comes in its context until then
 * runs as the application has it, and is behind all that replays repeat. */
static void seal(const char *why)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (kprof_batch_is_sealed())
        return;
    snprintf(batch->closing, sizeof batch->closing, "%s", why);
    if (batch->behind.stands && !kprof_engine.device->snapshot_has_followed(batch->context->snapshot))
        kprof_batch_spoil("the launch that it stands behind did not end before other work came");
    atomic_store(&batch->records, false);
    atomic_store(&batch->sealed, true);
}

/* The launch is put off, as the batch is. */
static kprof_status fail_sealed(const kprof_batch_launch *launch)
{
    put_off(launch->call->context);
    return kprof_fail(KPROF_NOT_COLLECTED, "the GPU's work did not end within 0.1 s, so that launches before it are "
                                           "still to be repeated");
}

/* A kernel that waits for what comes after it in another stream would wait for ever in a replay, which runs one after
 * the other. So before anything comes in another stream, the kernels that may be such have to end; if they do not, the
 * batch ends before them. They have where a copy of their thread in their stream was awaited: what others launched
 * meanwhile was checked, or the batch was spoiled. */
static void check_ends(const kprof_batch_launch *launch)
{
    kprof_open_batch *batch = &kprof_the_batch;
    void *context = batch->context->context;
    skip_proved();
    bool same = launch->call->stream == batch->unproved_stream && pthread_equal(batch->unproved_thread, pthread_self());
    bool ended = same && launch->awaited && launch->call->context == context && !atomic_load(&batch->spoiled);
    if (batch->unproved == batch->count || (same && !ended))
        return;
    int64_t patience_ns = kprof_kernel_patience_ns(batch->launches[batch->unproved].kernel);
    if (ended || kprof_wait_is_idle(kprof_wait_at_most(context, patience_ns))) {
        kprof_batch_note_ends();
        return;
    }
    batch->most_replayed = batch->unproved;
    kprof_batch_note_late();
    seal("work in another stream, behind a launch that does not end by itself");
}

static bool has_output(const kprof_operation *operation)
{
    return operation && kprof_engine.device->operation_output_bytes(operation) > 0;
}

/* A replay must end before the host would get something else than it got. So once a replay has diverged, a batch ends
 * before the next copy to the host. */
static bool ends_at(const kprof_operation *operation)
{
    return kprof_batch_records() && kprof_the_batch.context->diverges && has_output(operation);
}

/* Does the call that is under way copy to the host? */
static bool shows_output(void)
{
    const kprof_open_batch *batch = &kprof_the_batch;
    for (size_t i = batch->count - batch->entered; i < batch->count; i++)
        if (has_output(batch->launches[i].operation))
            return true;
    return false;
}

/* A kernel may compute something else in each replay. So until replays have given the host what its own run gave, they
 * are tried behind the first copy to the host: a difference then costs no launch. Tries take time, so that further
 * kernels are taken for like the first ones. */
static bool shows_unknown(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (!kprof_batch_records() || batch->context->comparisons >= ENOUGH_COMPARISONS || !shows_output())
        return false;
    for (; batch->uncompared < batch->count; batch->uncompared++) {
        const kprof_kernel *kernel = batch->launches[batch->uncompared].kernel;
        if (kernel && !atomic_load(&kernel->compared))
            return true;
    }
    return false;
}

/* A batch cannot end within a graph. It ends behind one that copies to the host where replays could give the host
 * something else and not be found out, or have done so. */
static bool ends_behind_graph(void)
{
    const kprof_open_batch *batch = &kprof_the_batch;
    if (!kprof_batch_records() || batch->entered == 0)
        return false;
    return (batch->entered_traits & KPROF_NODE_HIDES_OUTPUT) ||
           ((batch->entered_traits & KPROF_NODE) && batch->context->diverges && shows_output());
}

/* Does nothing that the batch would wait for in vain run beside it? */
static bool ends_now(void)
{
    return kprof_wait_is_idle(kprof_wait_for_context(kprof_the_batch.context->context));
}

/* Count the ranges that the launch will have, in its own run or in replays. */
static size_t count_ranges(const kprof_batch_launch *launch)
{
    bool searching = kprof_batch_records() && kprof_the_batch.searching;
    return launch->chosen || (searching && launch->kernel) ? 1 : 0;
}

/* May something before the launch wait for others, or for this very launch? Batches of one pass take a tenth of a
 * millisecond a launch, so that they do not look for network cards. */
static bool may_be_behind(const kprof_batch_launch *launch)
{
    const unsigned waits = KPROF_WAITS_FOR_HOST | KPROF_SHARES_WITH_DEVICES;
    bool unknown = atomic_exchange(&kprof_the_batch.unknown_ends, false);
    if (unknown || kprof_engine.device->target_sharing() & waits || kprof_decision_may_wait_for_host(launch))
        return true;
    return kprof_the_batch.kind != KPROF_LIVE && kprof_decision_may_wait(launch);
}

/* A range begins on the GPU when all that was launched before it has ended, in whatever stream. CUPTI waits without a
 * limit for the end of one with counters of the SMs. So what is before it has to end. */
static kprof_status wait_before_range(const kprof_batch_launch *launch)
{
    if (!may_be_behind(launch))
        return KPROF_OK;
    kprof_status status = kprof_wait_for_context(launch->call->context);
    if (!launch->kernel || !atomic_load(&launch->kernel->ends_alone) || !kprof_wait_is_idle(status))
        kprof_batch_note_unknown_end();
    if (!kprof_wait_is_idle(status))
        return status;
    kprof_batch_note_ends();
    return KPROF_OK;
}

/* Have a window open where that is worth it, and return whether it is the launch's turn in it; NEVER when none could be
 * opened, and `status` says why. */
static kprof_turn find_turn(const kprof_batch_launch *launch, const kprof_decision *decision, kprof_status *status)
{
    bool own = kprof_batch_is_open() && kprof_the_batch.context->context == launch->call->context;
    kprof_turn turn = KPROF_TURN_NEVER;
    if (own)
        turn = kprof_multiplex_turn(launch);
    else if (kprof_multiplex_wants(kprof_contexts_find(launch->call->context), launch))
        turn = KPROF_TURN_LATER;
    if (turn == KPROF_TURN_NOW)
        *status = wait_before_range(launch);
    if (*status != KPROF_OK || turn == KPROF_TURN_NEVER)
        return KPROF_TURN_NEVER;
    if (kprof_batch_is_open() && (turn == KPROF_TURN_NOW || !kprof_multiplex_loses_patience()))
        return turn;
    const kprof_profiled_context *context = kprof_the_batch.context;
    const bool was_window = kprof_batch_is_window();
    if (!kprof_batch_close("another pass")) {
        *status = fail_sealed(launch);
        return KPROF_TURN_NEVER;
    }
    if (was_window && kprof_multiplex_has_had_turn(context) && kprof_lock_is_wanted())
        kprof_contexts_release(); /* else the next in line would find them in use */
    *status = open_batch(launch, decision, 1);
    return *status == KPROF_OK ? kprof_multiplex_turn(launch) : KPROF_TURN_NEVER;
}

/* A launch that is not repeated is measured in a window, or runs on its own. */
static bool enter_window(const kprof_batch_launch *launch, const kprof_decision *decision, kprof_status *status)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (kprof_batch_is_open() && !kprof_batch_is_window() && !kprof_batch_close("a launch that cannot be repeated")) {
        *status = fail_sealed(launch);
        return false;
    }
    kprof_turn turn = find_turn(launch, decision, status);
    if (turn == KPROF_TURN_LATER)
        kprof_multiplex_skip(&launch->record);
    if (turn != KPROF_TURN_NOW)
        return false;
    if (!reserve(1)) {
        *status = KPROF_NO_MEMORY;
        return false;
    }
    batch->entered = 0;
    batch->wanted_ranges++;
    add(launch, NULL);
    begin_own_run(launch->call, kprof_multiplex_take(launch, decision->why));
    return true;
}

/* It is not measured this time, and runs in no batch that is replayed. Behind work that takes long, nothing would tell
 * whether the launch itself does. */
static bool watch(const kprof_batch_launch *launch, const kprof_decision *decision, kprof_status *status)
{
    if (kprof_batch_replays() && !kprof_batch_close("a launch that cannot be repeated")) {
        *status = fail_sealed(launch);
        return false;
    }
    *status = kprof_wait_for_context(launch->call->context);
    if (kprof_wait_is_idle(*status)) {
        atomic_store(&launch->kernel->to_watch, true);
        *status = kprof_fail(KPROF_NOT_COLLECTED, "%s", decision->why);
    }
    return false;
}

/* Put the launch into a batch, which then owns the operation. */
static bool join(candidate *c, kprof_operation *operation, kprof_status *status)
{
    kprof_open_batch *batch = &kprof_the_batch;
    const kprof_batch_launch *launch = c->launch;
    if (kprof_batch_records())
        check_ends(launch);
    if (kprof_batch_is_open() && !kprof_batch_is_sealed()) {
        const char *obstacle = obstacle_to_join(launch, &c->decision, count_ranges(launch));
        if (!obstacle && (!is_saved(operation) || ends_at(operation)))
            obstacle = launch->call->name;
        if (obstacle)
            (void)kprof_batch_close(launch->kernel ? obstacle : launch->call->name);
    }
    if (kprof_batch_is_sealed()) {
        *status = launch->chosen ? fail_sealed(launch) : KPROF_OK;
        return false;
    }
    if (!kprof_batch_is_open() && c->opens)
        *status = open_for(c);
    if (kprof_batch_is_open() && !reserve(1)) {
        kprof_batch_end("lack of memory");
        *status = KPROF_NO_MEMORY;
    }
    /* The own run gets a range where it is what is measured, or to find out who reaches host memory. */
    bool has_range =
        kprof_batch_is_open() && (batch->kind == KPROF_REPLAYED ? batch->searching && launch->kernel : launch->chosen);
    kprof_status clear = has_range ? wait_before_range(launch) : KPROF_OK;
    if (clear != KPROF_OK && !kprof_batch_records()) /* the batch stays as it is */
        *status = clear;
    if (!kprof_batch_is_open() || *status != KPROF_OK)
        return false;
    batch->entered = 0;
    batch->wanted_ranges += count_ranges(launch);
    add(launch, operation);
    if (clear != KPROF_OK)
        kprof_batch_spoil(
            "which launch reached memory of the host could not be told, as something waited for the host");
    else if (has_range)
        begin_own_run(launch->call, batch->range_count++);
    return true;
}

/* The host may have used memory since the last call that it shares with the GPU: replays write what is there now.
 * Copies that kprof makes of the call would take managed pages back. Else what the host wrote is part of the end that
 * is put back, and of the start of the next batch. */
static void follow_host(const kprof_call *call)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_operation *operation = NULL;
    if (!kprof_batch_has_host() || call->context != batch->context->context) /* it does not join then */
        return;
    if (!reserve(1) || is_full(0) ||
        kprof_engine.device->operation_keep_host(batch->context->snapshot, &operation) != KPROF_OK)
        kprof_batch_end(OF_HOST);
    else if (operation)
        add(&(kprof_batch_launch){.call = call}, operation);
    batch->entered = 0;
}

/* May a launch that is not chosen open a batch, since chosen ones may follow that cannot? Only where nothing is waited
 * for. */
static bool opens_wanted(const kprof_batch_launch *launch)
{
    void *context = launch->call->context;
    return launch->kernel && launch->metrics && launch->metrics->pass_count > 0 && !kprof_batch_is_open() &&
           kprof_batch_is_wanted(context) && kprof_wait_is_idle(kprof_wait_at_most(context, 0));
}

/* A batch may begin behind a launch that waits for the host, or takes long, so that launches queued behind it are
 * measured. It does so only where kprof waits for nothing, and where nothing else speaks against replays. */
static bool may_stand_behind(const kprof_batch_launch *launch, const kprof_decision *decision)
{
    return launch->kernel && launch->metrics && launch->metrics->pass_count > 0 &&
           atomic_load(&launch->kernel->vain_waits) > 0 && kprof_decision_may_follow(launch, decision) &&
           kprof_wait_is_idle(kprof_wait_at_most(launch->call->context, 0));
}

/* The launch runs next, and is in no batch. */
static bool stand_behind(const kprof_batch_launch *launch, kprof_status *status)
{
    kprof_open_batch *batch = &kprof_the_batch;
    const kprof_decision replayed = {.kind = KPROF_REPLAYED, .why = ""};
    if (!kprof_batch_close("a launch that may wait for the application"))
        return false;
    batch->behind.wanted = true;
    kprof_status opened = open_batch(launch, &replayed, 1);
    batch->behind.wanted = false;
    if (opened != KPROF_OK)
        return false;
    batch->behind.stream = launch->call->stream;
    batch->behind.thread = pthread_self();
    batch->entered = 0;
    if (launch->chosen)
        *status = kprof_fail(KPROF_NOT_COLLECTED, KPROF_MAY_WAIT "; what is queued behind it is measured");
    return true;
}

/* The launch that the batch stands behind is submitted: what it changes becomes part of the start. */
static void begin_behind(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    batch->behind.begun = true;
    kprof_status status = kprof_engine.device->snapshot_follow(batch->context->snapshot, batch->behind.stream);
    if (status == KPROF_OK)
        status = kprof_passes_begin_proof();
    if (status != KPROF_OK)
        kprof_batch_spoil("what the launch before it changes could not be saved");
}

/* Work in another stream could change memory before it has been saved. */
static void check_behind(const kprof_call *call)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (!kprof_batch_replays() || !batch->behind.stands)
        return;
    if (kprof_engine.device->snapshot_has_followed(batch->context->snapshot))
        batch->behind.stands = false;
    else if (call->context != batch->context->context || call->stream != batch->behind.stream ||
             !pthread_equal(batch->behind.thread, pthread_self()))
        kprof_batch_spoil("work came in another stream before the launch that it stands behind had ended");
}

/* A transfer within the host's memory is nothing to replays, like a function of the host. The proof must not see it. */
static bool pass_by(const kprof_batch_launch *launch)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (launch->kernel || !kprof_batch_records() || batch->context->context != launch->call->context ||
        !kprof_engine.device->transfer_is_hosts(launch->call) || !kprof_passes_pause_proof())
        return false;
    batch->proof_paused = true;
    batch->entered = 0;
    return true;
}

bool kprof_batch_enter(const kprof_batch_launch *launch, kprof_status *status)
{
    *status = KPROF_OK;
    if (kprof_batch_is_sealed() && !kprof_batch_close(kprof_the_batch.closing)) {
        kprof_batch_note_other_work();
        *status = launch->chosen ? fail_sealed(launch) : KPROF_OK;
        return false;
    }
    check_behind(launch->call);
    follow_host(launch->call);
    if (pass_by(launch))
        return true;
    const bool opens = launch->chosen || opens_wanted(launch);
    if (!opens && !kprof_batch_records())
        return false;
    const bool is_live = kprof_decision_is_live(launch);
    kprof_operation *operation = NULL;
    if (!is_live)
        operation = kprof_engine.device->operation_copy(
            launch->call, kprof_batch_records() ? kprof_the_batch.context->snapshot : NULL);
    const kprof_decision_kind kind = is_live ? KPROF_LIVE : operation ? KPROF_REPLAYED : KPROF_REFUSED;
    candidate c = {.launch = launch, .operation = operation, .opens = opens, .decision = {.kind = kind, .why = ""}};
    if (launch->kernel && !is_live)
        c.decision = kprof_decision_make(launch, operation);
    if (may_stand_behind(launch, &c.decision)) {
        kprof_engine.device->operation_free(operation);
        return stand_behind(launch, status);
    }
    if (!is_apart(c.decision.kind) && join(&c, operation, status))
        return true;
    kprof_engine.device->operation_free(operation);
    if (*status != KPROF_OK || !is_apart(c.decision.kind))
        return false;
    return c.decision.kind == KPROF_WATCHED ? watch(launch, &c.decision, status)
                                            : enter_window(launch, &c.decision, status);
}

/* Copy the kernels of a graph. Return why one of them cannot be replayed; NULL if all can. */
static const char *copy_kernels(const kprof_batch_launch *launches, size_t count, kprof_operation **operations)
{
    static __thread char text[400];
    for (size_t i = 0; i < count; i++) {
        if (!launches[i].kernel)
            continue;
        operations[i] = kprof_engine.device->operation_copy(launches[i].call, NULL);
        const char *why = kprof_decision_node_obstacle(&launches[i], operations[i]);
        if (!why)
            continue;
        snprintf(text, sizeof text, "a kernel of the graph: %s", why);
        return text;
    }
    return NULL;
}

/* Copy its sets and copies, perhaps once more; false where one cannot be replayed. They are checked against memory that
 * is saved, so the batch is open. */
static bool copy_transfers(const kprof_batch_launch *launches, size_t count, kprof_operation **operations)
{
    kprof_snapshot *snapshot = kprof_the_batch.context->snapshot;
    bool all = true;
    for (size_t i = 0; i < count && all; i++)
        if (!launches[i].kernel) {
            kprof_engine.device->operation_free(operations[i]);
            operations[i] = kprof_engine.device->operation_copy(launches[i].call, snapshot);
            all = operations[i] != NULL;
        }
    return all;
}

static size_t count_chosen(const kprof_batch_launch *launches, size_t count)
{
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++)
        chosen += launches[i].chosen;
    return chosen;
}

/* Have a batch open that the launches can join. */
static kprof_status open_for_all(const kprof_batch_launch *launches, size_t count, size_t ranges)
{
    const kprof_decision replayed = {.kind = KPROF_REPLAYED, .why = ""};
    size_t first = 0;
    while (first < count && !launches[first].chosen)
        first++;
    if (kprof_batch_is_open() && !kprof_batch_is_sealed()) {
        const char *obstacle = obstacle_to_join(&launches[0], &replayed, ranges);
        if (obstacle)
            (void)kprof_batch_close(obstacle);
    }
    if (kprof_batch_is_sealed())
        return fail_sealed(&launches[0]);
    if (kprof_batch_is_open() || first == count)
        return KPROF_OK;
    kprof_status status = open_batch(&launches[first], &replayed, ranges);
    if (status != KPROF_UNSUPPORTED && status != KPROF_NO_MEMORY)
        return status;
    return kprof_fail(KPROF_NOT_COLLECTED, "%s", kprof_process_reason(status)); /* others may be measured in one pass */
}

/* kprof keeps what the graph copies from the host before it is launched. Work that is under way may still write it, and
 * the driver may read pageable memory at once. Copies of what an earlier launch gave the host may be under way, too. */
static kprof_status wait_before_copies(const kprof_batch_launch *launches, size_t count)
{
    const unsigned awaiting = KPROF_NODE_READS_PAGEABLE | KPROF_NODE_READS_RESULTS | KPROF_NODE_CHANGES_STREAM;
    unsigned traits = 0;
    for (size_t i = 0; i < count; i++)
        traits |= launches[i].call->node_traits;
    if (!(traits & awaiting) || !kprof_batch_is_open())
        return KPROF_OK;
    kprof_status status = kprof_wait_for_context(launches[0].call->context);
    return kprof_wait_is_idle(status) ? KPROF_OK : status;
}

/* Have a batch open that the launches can join, and copy them. What an open batch keeps already may leave no space. */
static kprof_status prepare_all(const kprof_batch_launch *launches, size_t count, kprof_operation **operations)
{
    size_t ranges = count_chosen(launches, count) + 1; /* one around all of them, in a search */
    const char *why = operations && reserve(count) ? copy_kernels(launches, count, operations)
                                                   : "there is no memory to keep what the graph does";
    if (why)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s", why);
    for (;;) {
        kprof_status status = open_for_all(launches, count, ranges);
        if (status == KPROF_OK)
            status = wait_before_copies(launches, count);
        if (status != KPROF_OK || !kprof_batch_is_open() || copy_transfers(launches, count, operations))
            return status;
        if (kprof_the_batch.count == 0)
            return kprof_fail(KPROF_NOT_COLLECTED, "a graph sets or copies memory that a replay cannot restore, or "
                                                   "copies too much from or to the host");
        if (!kprof_batch_close("a graph whose copies cannot be kept"))
            return fail_sealed(&launches[0]);
    }
}

bool kprof_batch_enter_all(const kprof_batch_launch *launches, size_t count, kprof_status *status)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (kprof_batch_is_sealed())
        (void)kprof_batch_close(batch->closing);
    check_behind(launches[0].call);
    follow_host(launches[0].call);
    kprof_operation **operations = calloc(count + 1, sizeof *operations);
    if (kprof_batch_records())
        check_ends(&launches[0]);
    *status = prepare_all(launches, count, operations);
    if (*status != KPROF_OK || !kprof_batch_is_open()) {
        char reason[512];
        snprintf(reason, sizeof reason, "%s", kprof_process_reason(*status));
        (void)kprof_batch_close("a graph that cannot be repeated"); /* it would not know of the launches */
        if (*status != KPROF_OK)
            *status = kprof_fail(*status, "%s", reason); /* again: to close a batch forgets it */
        for (size_t i = 0; operations && i < count; i++)
            kprof_engine.device->operation_free(operations[i]);
        free(operations);
        return false;
    }
    bool is_clear = batch->searching && wait_before_range(&launches[0]) == KPROF_OK;
    batch->entered = 0;
    batch->wanted_ranges += count_chosen(launches, count) + batch->searching;
    for (size_t i = 0; i < count; i++)
        add(&launches[i], operations[i]);
    free(operations);
    if (is_clear)
        begin_own_run(launches[0].call, batch->range_count++);
    else if (batch->searching)
        kprof_batch_spoil("which graph reached memory of the host could not be told, as something waited for the host");
    return true;
}

/* CUPTI may wait for the launch without a limit when the range ends. So one that is not known to end by itself has to
 * end first. If it does not, the range goes on, and the batch ends with it: where nothing else is submitted before the
 * launch has ended, the range still has that launch alone. */
static void end_own_run(const kprof_open_launch *launch)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_kernel *kernel = batch->kind == KPROF_LIVE ? launch->kernel : NULL;
    if (kernel && !atomic_load(&kernel->ends_alone)) {
        if (kprof_wait_is_idle(kprof_wait_at_most(batch->context->context, kprof_kernel_patience_ns(kernel)))) {
            atomic_store(&kernel->ends_alone, true);
        } else {
            kprof_kernel_note_vain_wait(kernel);
            batch->range_open = true;
            seal("a launch that does not end by itself");
            return;
        }
    }
    if (kprof_engine.device->profiler_pop(batch->context->profiler) != KPROF_OK)
        lose_range("CUPTI did not end a range");
}

void kprof_batch_note_other_work(void)
{
    if (atomic_load(&kprof_the_batch.range_open))
        lose_range("other work came before the launch had ended");
}

/* The driver refused the call: nothing ran. A range that it had stays empty. */
static void take_back(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    for (; batch->entered > 0; batch->entered--) {
        kprof_open_launch *last = &batch->launches[--batch->count];
        if (last->chosen) {
            batch->listener->done(&last->record, "the driver refused the launch");
            batch->chosen_count--;
        }
        if (last->own_range == KPROF_NO_RANGE)
            batch->wanted_ranges -= last->chosen;
        if (batch->kind == KPROF_MULTIPLEXED)
            kprof_multiplex_drop(last->range, &last->record);
        kprof_engine.device->operation_free(last->operation);
    }
    if (batch->unproved > batch->count)
        batch->unproved = batch->count;
}

/* Does another process wait for the counters? To look takes microseconds. */
static bool others_wait(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    const int64_t now_ns = kprof_monotonic_ns();
    if (now_ns - batch->looked_ns < LOOK_NS)
        return false;
    batch->looked_ns = now_ns;
    return kprof_lock_is_wanted();
}

/* Has the batch been open for so long that it is time to close it? */
static bool is_old(int64_t open_ns)
{
    const kprof_open_batch *batch = &kprof_the_batch;
    const bool is_sparse = (int64_t)batch->count * SPARSE_DISTANCE_NS < open_ns;
    const int64_t cost_ns = (int64_t)(1e6 * batch->context->fixed_ms);
    if (is_sparse && open_ns > SPARSE_OPEN_NS && open_ns > SPARSE_COST_FACTOR * cost_ns)
        return true;
    return open_ns > LEAST_OPEN_NS &&
           (open_ns > OPEN_COST_FACTOR * cost_ns || open_ns > MOST_OPEN_NS || (open_ns > cost_ns && others_wait()));
}

/* Until its next call the application may use memory that it shares with the GPU, with no call at all. What it did is
 * known then, if no kernel runs meanwhile. */
static bool stays_over_gap(void)
{
    return !kprof_lock_is_wanted() && kprof_wait_is_idle(kprof_passes_await());
}

/* Keep what the call, which has returned, copies from the host, or from the device within a graph. */
static void keep_copied(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    for (size_t i = batch->count - batch->entered; i < batch->count; i++)
        if (batch->launches[i].operation &&
            kprof_engine.device->operation_returned(batch->launches[i].operation) != KPROF_OK)
            kprof_batch_spoil("what came from the host, or went to it, could not be kept");
    if (batch->entered > 0 && (batch->entered_traits & KPROF_NODE_IS_TOLD) &&
        !kprof_wait_is_idle(kprof_wait_for_context(batch->context->context)))
        kprof_batch_spoil("a graph did not end by itself, and the host may have changed what it copied");
}

/* Memory may be mapped with no context current, or another one. A saved allocation may take managed pages from the
 * host, so that what the host wrote there has to be known before. */
void kprof_batch_cover(const kprof_call *call)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (kprof_batch_has_managed() && (call->stream || call->context != batch->context->context))
        kprof_batch_end(call->name);
    follow_host(call);
    if (!kprof_batch_records())
        return;
    bool entered = kprof_engine.device->target_enter_context(batch->context->context);
    kprof_status status = kprof_engine.device->snapshot_cover(batch->context->snapshot, call->stream);
    if (status == KPROF_NOT_COLLECTED) /* nothing that the batch has uses this memory */
        seal(call->name);
    else if (status != KPROF_OK)
        kprof_batch_spoil("memory that was allocated meanwhile could not be saved");
    if (entered)
        kprof_engine.device->target_leave_context();
}

/* To free something else takes an allocation, and so perhaps pages of managed memory from the host. */
bool kprof_batch_keep_freed(const kprof_call *call)
{
    const kprof_open_batch *batch = &kprof_the_batch;
    if (call->kind != KPROF_CALL_POOL_FREE)
        follow_host(call);
    return kprof_batch_replays() && batch->context->context == call->context &&
           kprof_engine.device->snapshot_keep_freed(batch->context->snapshot, call);
}

static void log_times(uint32_t passes, const char *why)
{
    kprof_open_batch *batch = &kprof_the_batch;
    const kprof_batch_times *ms = &batch->times;
    kprof_log(KPROF_LOG_DEBUG,
              "batch of %zu launches, %zu of them chosen, closed by %s, %u passes, ms: saving %.1f, preparing %.1f, "
              "open %.1f, trying %.1f, waiting %.1f, keeping %.1f, restoring %.1f, starting %.1f, running %.1f, "
              "stopping %.1f, decoding %.1f, waiting for values %.1f, writing them %.1f",
              batch->count, batch->chosen_count, why, passes, ms->save_ms, ms->prepare_ms, ms->open_ms, ms->try_ms,
              ms->wait_ms, ms->keep_ms, ms->restore_ms, ms->start_ms, ms->run_ms, ms->stop_ms, ms->decode_ms,
              ms->evaluate_ms, ms->deliver_ms);
}

/* Tell what came of the batch, and forget it. */
static void finish(const char *why, kprof_status status, uint32_t passes)
{
    kprof_open_batch *batch = &kprof_the_batch;
    const kprof_batch_times *ms = &batch->times;
    int64_t replayed_ns = kprof_monotonic_ns();
    for (size_t i = 0; i < batch->count && batch->chosen_count > 0; i++)
        batch->launches[i].record.profile_ns = (replayed_ns - batch->opened_ns) / (int64_t)batch->chosen_count;
    kprof_process_hold_records();
    if (status != KPROF_OK)
        tell_why(kprof_process_reason(status));
    else if (batch->kind == KPROF_MULTIPLEXED)
        kprof_multiplex_deliver();
    else
        kprof_deliver_all(passes);
    kprof_process_release_records();
    batch->times.deliver_ms = kprof_monotonic_lap_ms(&replayed_ns);
    if (status == KPROF_OK && batch->evaluations.count == 1)
        kprof_deliver_image(batch->context->profiler, &batch->launches[batch->evaluations.items[0].launch].record);
    log_times(passes, why);
    if (batch->kind != KPROF_MULTIPLEXED) {
        double passes_ms = ms->prepare_ms + ms->start_ms + ms->stop_ms;
        batch->context->last_launches = batch->chosen_count;
        batch->context->fixed_ms = ms->save_ms + passes_ms;
        if (batch->kind == KPROF_LIVE)
            kprof_capacity_note(batch->context, batch->wanted_ranges == batch->capacity, passes_ms);
    }
    release(!kprof_engine.device->target_capturing() && !kprof_wait_goes_on(batch->context->context));
    kprof_process_check_owner();
}

/* The application may use what such a batch has of the host as soon as this call has returned. */
static bool may_be_sealed(void)
{
    return kprof_the_batch.needs == 0 && !kprof_batch_has_host() && !kprof_engine.device->target_capturing();
}

static bool close_or(bool seals, const char *why)
{
    kprof_open_batch *batch = &kprof_the_batch;
    uint32_t passes;
    if (!kprof_batch_is_open())
        return true;
    bool entered = kprof_engine.device->target_enter_context(batch->context->context);
    kprof_process_forget_reason();
    int64_t open_ns = kprof_monotonic_ns() - batch->started_ns;
    kprof_status awaited = kprof_passes_await();
    bool is_closed = kprof_wait_is_idle(awaited) || !seals || !may_be_sealed();
    if (is_closed) {
        batch->times.open_ms = (double)open_ns * 1e-6;
        kprof_status status = kprof_passes_run(awaited, &passes);
        finish(kprof_batch_is_sealed() ? batch->closing : why, status, passes);
    } else {
        seal(why);
    }
    if (entered)
        kprof_engine.device->target_leave_context();
    return is_closed;
}

bool kprof_batch_close(const char *why)
{
    return close_or(true, why);
}

void kprof_batch_end(const char *why)
{
    (void)close_or(false, why);
}

bool kprof_batch_close_idle(const char *why)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (kprof_batch_is_open() && !kprof_engine.device->target_capturing() &&
        kprof_wait_is_idle(kprof_wait_at_most(batch->context->context, 0)))
        (void)kprof_batch_close(why);
    return !kprof_batch_is_open();
}

/* See whether the host gets in replays what it got. If so, the batch goes on as if nothing had been. The driver may
 * have refused all chosen launches: then the proof is not read, and nothing is repeated. Where nothing may be tried,
 * the passes compare the copy. */
static void try_output(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    bool same, may_try = !batch->shares && !batch->searching && !kprof_batch_has_host() && batch->chosen_count > 0;
    if (!may_try) {
        batch->compares_last = true;
        (void)kprof_batch_close("a copy to the host, the first behind one of its kernels");
        return;
    }
    int64_t begun_ns = kprof_monotonic_ns();
    bool entered = kprof_engine.device->target_enter_context(batch->context->context);
    kprof_process_forget_reason();
    kprof_status status = kprof_passes_try(&same);
    int64_t took_ns = kprof_monotonic_ns() - begun_ns;
    batch->times.try_ms += (double)took_ns * 1e-6;
    batch->started_ns += took_ns; /* its age is that of its own runs */
    batch->chosen_ns += took_ns;
    if (status != KPROF_OK)
        finish("a try of its replays", status, 0);
    else if (!same)
        (void)kprof_batch_close("a copy to the host that differs in replays");
    if (entered)
        kprof_engine.device->target_leave_context();
}

void kprof_batch_leave(const kprof_call *call)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (kprof_batch_is_open() && batch->behind.stands && !batch->behind.begun)
        begin_behind();
    if (kprof_batch_is_open() && batch->proof_paused) {
        batch->proof_paused = false;
        if (kprof_passes_begin_proof() != KPROF_OK)
            kprof_batch_spoil("CUPTI did not begin a range of the proof");
        return;
    }
    if (!kprof_batch_is_open() || batch->count == 0)
        return;
    kprof_open_launch *last = &batch->launches[batch->count - 1];
    bool has_range = last->own_range != KPROF_NO_RANGE && !kprof_batch_is_sealed();
    if (has_range)
        end_own_run(last);
    /* In a window the stream may be gone before the next flush; else that closes the batch. What is the default stream
     * of this thread is another one to that which flushes next. */
    bool is_last_chance = batch->kind == KPROF_MULTIPLEXED || (batch->kind == KPROF_LIVE && batch->own_is_threads);
    if (has_range && is_last_chance)
        flush_behind_own_run();
    if (call->failed)
        take_back();
    else
        keep_copied();
    int64_t now_ns = kprof_monotonic_ns();
    if (kprof_batch_is_sealed())
        return;
    if (kprof_batch_has_host() && !stays_over_gap())
        kprof_batch_end(OF_HOST);
    else if (batch->needs && !kprof_batch_saves_host())
        kprof_batch_end("a launch that is repeated by itself");
    else if (is_full(1))
        (void)kprof_batch_close("the last launch that fits");
    else if (batch->kind != KPROF_MULTIPLEXED && kprof_filter_exhausted(kprof_engine.process.filter))
        (void)kprof_batch_close("the last launch that was asked for");
    else if (ends_behind_graph())
        (void)kprof_batch_close("a graph that copies to the host what cannot be compared");
    else if (shows_unknown() && ends_now())
        try_output();
    else if (is_old(now_ns - batch->started_ns))
        (void)kprof_batch_close("its age");
    else if (batch->kind == KPROF_REPLAYED && now_ns - batch->chosen_ns > MAX_UNCHOSEN_NS)
        (void)kprof_batch_close("lack of chosen launches");
}
