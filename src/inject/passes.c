/* Runs the passes of a batch, puts memory back between them, and gives up where that would take far too long. */
#include "inject/batch_private.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "inject/process.h"
#include "inject/wait.h"
#include "inject/writers.h"

#include <pthread.h>
#include <stdio.h>

/* A pass is abandoned when it takes this many times as long as the first, and this much more. */
#define SLOW_PASS_FACTOR 10
#define SLOW_PASS_NS     INT64_C(5000000000)
#define MAX_LATE         16

/* Launches of the batch before, from which on the witnesses that take time are worth it, where not all are wanted: they
 * take it for each pass, however many launches share it. */
#define WITNESSED_LAUNCHES 64

/* Snapshots to free once the GPU is idle. */
static struct {
    void *context;
    kprof_snapshot *snapshot;
} late[MAX_LATE];
static size_t late_count;
static pthread_mutex_t late_mutex = PTHREAD_MUTEX_INITIALIZER; /* contexts may end on several threads at a time */

/* Freeing waits for the GPU, whose work did not end in time: later, when it has. */
static void free_later(void)
{
    pthread_mutex_lock(&late_mutex);
    if (kprof_batch.snapshot && late_count < MAX_LATE) {
        late[late_count].context = kprof_batch.context->context;
        late[late_count++].snapshot = kprof_batch.snapshot;
    }
    pthread_mutex_unlock(&late_mutex);
    kprof_batch.snapshot = NULL; /* beyond that, its memory stays taken */
}

static void free_within(void *context, kprof_snapshot *snapshot)
{
    bool entered = kprof_target_enter_context(context);
    kprof_snapshot_free(snapshot);
    if (entered)
        kprof_target_leave_context();
}

void kprof_passes_free_late(const void *context, bool lives)
{
    pthread_mutex_lock(&late_mutex);
    for (size_t i = late_count; i-- > 0;) {
        if (context && late[i].context != context)
            continue;
        if (lives)
            free_within(late[i].context, late[i].snapshot);
        late[i] = late[--late_count];
    }
    pthread_mutex_unlock(&late_mutex);
}

static bool has_late(const void *context)
{
    bool found = false;
    pthread_mutex_lock(&late_mutex);
    for (size_t i = 0; i < late_count; i++)
        found = found || late[i].context == context;
    pthread_mutex_unlock(&late_mutex);
    return found;
}

void kprof_passes_try_late(void *context)
{
    if (has_late(context) && kprof_wait_with_limit(context) == KPROF_OK)
        kprof_passes_free_late(context, true);
}

bool kprof_passes_repeat(void)
{
    return kprof_batch.metrics->pass_count > 1 || kprof_batch.watched;
}

bool kprof_passes_partly(void)
{
    return kprof_batch.metrics->pass_count > 1 && kprof_batch.kind == KPROF_ONE_PASS;
}

static bool wants_all_witnesses(void)
{
    return kprof_this_process.config.witness_control == KPROF_WITNESSES_ALL ||
           (kprof_batch.kind == KPROF_TOGETHER && kprof_batch.context->last_launches >= WITNESSED_LAUNCHES);
}

kprof_status kprof_passes_begin(void)
{
    kprof_profiler *profiler = kprof_batch.context->profiler;
    return kprof_passes_partly() ? kprof_profiler_begin_pass(profiler)
                                 : kprof_profiler_begin(profiler, kprof_batch.capacity, wants_all_witnesses());
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
    for (size_t i = from; i < kprof_batch.count && status == KPROF_OK; i++) {
        status = kprof_operation_run(kprof_batch.launches[i].operation);
        if (status == KPROF_OK)
            status = kprof_target_synchronize(); /* nothing else keeps the order of launches in several streams */
    }
    return status;
}

static bool is_too_slow(int64_t start_ns)
{
    int64_t spent_ns = kprof_monotonic_ns() - start_ns;
    return spent_ns > SLOW_PASS_FACTOR * kprof_batch.first_pass_ns &&
           spent_ns > kprof_batch.first_pass_ns + SLOW_PASS_NS;
}

/* Whether work number `i` runs beside no other: a transfer, or a launch in another stream than the one before it. What
 * ordered them in the application, an event say, is not repeated. */
static bool runs_alone(size_t i)
{
    const kprof_open_launch *launch = &kprof_batch.launches[i];
    return launch->transfer || (i > 0 && launch->stream != launch[-1].stream);
}

/* All launches of a pass; `ran` tells how many were reached before the pass was abandoned. */
static kprof_status run_measured(size_t *ran)
{
    kprof_status status = KPROF_OK;
    int64_t start_ns = kprof_monotonic_ns();
    for (*ran = 0; *ran < kprof_batch.count && status == KPROF_OK && !kprof_batch.abandoned; ++*ran) {
        const kprof_open_launch *launch = &kprof_batch.launches[*ran];
        if (runs_alone(*ran))
            status = kprof_target_synchronize();
        if (launch->chosen)
            kprof_batch_flush(launch->stream, launch->stream);
        if (status == KPROF_OK)
            status = kprof_operation_run(launch->operation);
        if (status == KPROF_OK && launch->transfer)
            status = kprof_target_synchronize();
        kprof_batch.abandoned = is_too_slow(start_ns);
    }
    status = wait_for_launches(status);
    kprof_batch.abandoned = kprof_batch.abandoned || is_too_slow(start_ns);
    return status;
}

/* A pass failed half-way: put memory back and run everything once, unmeasured. */
static void recover(void)
{
    kprof_status status = kprof_snapshot_restore(kprof_batch.snapshot);
    if (status == KPROF_OK)
        status = run_plain(0);
    if (status != KPROF_OK)
        kprof_process_disarm(status, "a replay failed, and the memory that it changed could not be put right");
}

/* Which launches are evaluated. */
static kprof_status list_chosen(void)
{
    kprof_evaluations *out = &kprof_batch.evaluations;
    kprof_status status =
        kprof_evaluations_make(kprof_batch.context->profiler, kprof_batch.metrics, kprof_batch.chosen_count, out);
    size_t next = 0, range = 0;
    for (size_t i = 0; status == KPROF_OK && i < kprof_batch.count; i++) {
        if (kprof_batch.launches[i].chosen) {
            out->items[next].launch = i;
            out->items[next++].range = range;
        }
        range += !kprof_batch.launches[i].transfer;
    }
    return status;
}

static void wait_for_values(void)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_evaluate_wait();
    kprof_batch.times.evaluate_ms += kprof_monotonic_lap_ms(&lap_ns);
}

static kprof_status decode(void)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status =
        kprof_profiler_decode(kprof_batch.context->profiler, kprof_batch.count - kprof_batch.transfer_count);
    kprof_batch.times.decode_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

/* Decode pass number `pass`, from 0; what it completes is evaluated while the next one runs. */
static kprof_status read_pass(uint32_t pass, bool more)
{
    wait_for_values();
    kprof_status status = kprof_batch.evaluations.items ? KPROF_OK : list_chosen();
    if (status == KPROF_OK)
        status = decode();
    if (status != KPROF_OK)
        return status;
    if (kprof_passes_partly()) /* which of the passes it was is not known */
        kprof_evaluate_begin(&kprof_batch.evaluations, 0, KPROF_ALL_PASSES);
    else
        kprof_evaluate_begin(&kprof_batch.evaluations, pass, more ? pass + 1 : KPROF_ALL_PASSES);
    return KPROF_OK;
}

/* The launch's own call was watched: its passes are all still to come, where it may be replayed. */
static kprof_status end_watch(bool *more)
{
    *more = true;
    kprof_status status = kprof_wait_with_limit(kprof_batch.context->context);
    if (status == KPROF_NOT_COLLECTED)
        atomic_store(&kprof_batch.watched->ends_late, true);
    if (!kprof_wait_is_idle(status))
        free_later();
    if (status != KPROF_OK)
        return status;
    atomic_fetch_add(&kprof_batch.watched->watched_ends, 1);
    if (!kprof_batch.snapshot)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "a kernel's first launches are only watched where it may wait for memory that the host or "
                          "another device writes; its next ones are measured");
    kprof_batch.first_pass_ns = kprof_monotonic_ns() - kprof_batch.opened_ns;
    return kprof_passes_begin();
}

/* The launches' own calls were the first pass. */
static kprof_status end_first_pass(bool *more)
{
    kprof_batch_times *times = &kprof_batch.times;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_target_synchronize();
    times->run_ms += kprof_monotonic_lap_ms(&lap_ns);
    kprof_status stopped = kprof_profiler_stop(kprof_batch.context->profiler, more);
    times->stop_ms += kprof_monotonic_lap_ms(&lap_ns);
    kprof_batch.first_pass_ns = lap_ns - kprof_batch.started_ns;
    if (status != KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED, "this launch, or one measured with it, failed");
    if (stopped == KPROF_OK && kprof_batch.chosen_count > 0)
        stopped = read_pass(0, *more);
    return stopped;
}

static kprof_status replay_pass(uint32_t pass, bool *more)
{
    size_t ran = 0;
    kprof_batch_times *times = &kprof_batch.times;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_snapshot_restore(kprof_batch.snapshot);
    times->restore_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (status == KPROF_OK)
        status = kprof_profiler_start(kprof_batch.context->profiler);
    times->start_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (status == KPROF_OK) {
        status = run_measured(&ran);
        times->run_ms += kprof_monotonic_lap_ms(&lap_ns);
        kprof_status stopped = kprof_profiler_stop(kprof_batch.context->profiler, more);
        times->stop_ms += kprof_monotonic_lap_ms(&lap_ns);
        status = status == KPROF_OK ? stopped : status;
    }
    if (status == KPROF_OK)
        status = run_plain(ran);
    if (status == KPROF_OK && !kprof_batch.abandoned)
        status = read_pass(pass, *more);
    else if (status != KPROF_OK)
        recover();
    return status;
}

static const kprof_launch_record *last_chosen(void)
{
    size_t i = kprof_batch.count - 1;
    while (!kprof_batch.launches[i].chosen)
        i--;
    return &kprof_batch.launches[i].record;
}

/* What came to write the batch's memory since it was saved would lose it. */
static bool may_restore(void)
{
    const char *writer = kprof_writers_devices();
    if (writer)
        snprintf(kprof_batch.note, sizeof kprof_batch.note, "the launch was not repeated: %s", writer);
    return !writer;
}

kprof_status kprof_passes_run(uint32_t *passes)
{
    bool more = false;
    *passes = kprof_batch.watched ? 0 : 1;
    kprof_status status = kprof_batch.watched ? end_watch(&more) : end_first_pass(&more);
    if (status == KPROF_OK && more && kprof_batch.snapshot && !may_restore())
        kprof_batch.abandoned = true;
    while (status == KPROF_OK && more && kprof_batch.snapshot && !kprof_batch.abandoned) {
        kprof_batch.listener->progress(last_chosen(), kprof_batch.chosen_count, *passes + 1,
                                       kprof_batch.metrics->pass_count);
        status = replay_pass(*passes, &more);
        *passes += !kprof_batch.abandoned;
    }
    wait_for_values();
    if (kprof_batch.abandoned)
        kprof_batch_note("the replay was abandoned", "a pass took far longer than the launches did at first");
    return kprof_batch.abandoned && *passes == 0 ? kprof_fail(KPROF_NOT_COLLECTED, "%s", kprof_batch.note) : status;
}

void kprof_passes_end_empty(void)
{
    bool more;
    if (!kprof_batch.watched)
        (void)end_first_pass(&more);
}
