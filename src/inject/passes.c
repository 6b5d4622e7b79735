/* Runs the passes of a batch. Those of replays have memory put back before each. The one around the application's own
 * run either measures it or proves that the launches may be replayed. */
#include "inject/batch_private.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "inject/capacity.h"
#include "inject/captures.h"
#include "inject/engine.h"
#include "inject/lock.h"
#include "inject/multiplex.h"
#include "inject/process.h"
#include "inject/signals.h"
#include "inject/wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Abandon a replay that takes longer than FACTOR times the application's own run, and NS for the pass, and EACH_NS for
 * each launch. */
#define SLOW_PASS_FACTOR  10
#define SLOW_PASS_NS      INT64_C(5000000000)
#define SLOW_PASS_EACH_NS INT64_C(20000000)

/* With --witnesses auto, use the witnesses that take time once the previous batch had this many launches: they cost the
 * same for each pass, however many launches share it. */
#define WITNESSED_LAUNCHES 64

/* Let kernels that are not chosen be ranges, too, while all are at most FEW, and PER_CHOSEN for each chosen one. Each
 * costs as much as a chosen one, 1.19 ms in a pass with counters of the SMs on an H200; pushed ranges cost nothing
 * more, but their times are wrong. */
#define FEW_KERNELS        16
#define KERNELS_PER_CHOSEN 8

/* Share a measurement only if it can hold this many ranges, or for half of those that the batch may have. */
#define LEAST_SHARED_RANGES 64

/* Replays that show whether the host gets the same each time: more of them find more of what differs now and then. */
#define TRIES 3

/* Work that the proof must not see divides its range: so often at most. */
#define MOST_PROOF_RANGES 64

/* The measurement that batches and windows can share, since changing it takes 150 ms. */
static kprof_measurement shared_measurement(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    bool all_witnesses = kprof_engine.process.config.witness_control == KPROF_WITNESSES_ALL ||
                         batch->context->last_launches >= WITNESSED_LAUNCHES;
    bool proved = batch->kind == KPROF_MULTIPLEXED ? kprof_decision_proves(batch->metrics) : batch->proved;
    return (kprof_measurement){.ranges = batch->capacity + proved, /* one for the whole batch */
                               .all_witnesses = all_witnesses,
                               .proved = proved};
}

/* The capacity that the batch must have. After it is closed the number of its ranges is known; before its own run it is
 * not. */
static size_t least_ranges(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (batch->kind == KPROF_REPLAYED && !batch->proved)
        return batch->wanted_ranges;
    size_t half = batch->capacity / 2, enough = half < LEAST_SHARED_RANGES ? half : LEAST_SHARED_RANGES;
    return batch->least_ranges > enough ? batch->least_ranges : enough;
}

/* How many ranges a measurement of replays may have, chosen or not. An image that is kept has those of the batch. */
static size_t most_ranges(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    size_t fits = kprof_capacity_of_memory(batch->context, false);
    return fits < batch->capacity || kprof_engine.process.config.counter_data_dir ? batch->capacity : fits;
}

/* Can each kernel of the replays be a range by itself? Only such a range ends and begins with its kernel. Kernels that
 * nobody chose then take as long as the others. Return how many ranges there will be, 0 when they are pushed. */
static size_t count_automatic(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    size_t kernels = 0, most = FEW_KERNELS + KERNELS_PER_CHOSEN * batch->chosen_count;
    if (batch->context->pushes_ranges)
        return 0;
    for (size_t i = 0; i < batch->replay_count && kernels <= most; i++) {
        size_t more = kprof_engine.device->operation_kernels(batch->launches[i].operation);
        kernels = more == KPROF_MANY_KERNELS ? more : kernels + more;
    }
    return kernels <= most && kernels <= most_ranges() ? kernels : 0;
}

/* How many ranges the proof of the whole batch may have. */
static size_t count_proof_ranges(void)
{
    const size_t most = shared_measurement().ranges;
    return most < MOST_PROOF_RANGES ? most : MOST_PROOF_RANGES;
}

/* Begin the measurement around own runs: of the proof, or of all there is to measure. While samples lack passes, the
 * batch adds its ranges to theirs. */
static kprof_status begin_own_runs(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_measurement wanted = shared_measurement();
    batch->automatic = false;
    batch->shares = kprof_multiplex_shares(&wanted, least_ranges());
    if (batch->shares)
        return kprof_engine.device->profiler_run_out(batch->context->profiler);
    if (batch->proved && !batch->searching)
        wanted.ranges = count_proof_ranges();
    wanted.proof_alone = batch->proved;
    kprof_multiplex_end(batch->context);
    return kprof_engine.device->profiler_begin(batch->context->profiler, &wanted);
}

/* The proof has pushed ranges, and automatic ones need a measurement of their own, which takes 0.3 s for both changes.
 * A pushed range would add 7 to 18 us to the time of each kernel. */
static kprof_status begin_replays(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_measurement wanted = shared_measurement();
    batch->automatic = false;
    if (batch->proved && batch->shares)
        return KPROF_OK; /* its passes go on behind the proof's */
    if (!batch->proved && kprof_multiplex_shares(&wanted, least_ranges()))
        return kprof_engine.device->profiler_run_out(batch->context->profiler);
    batch->range_count = batch->first_range;
    for (size_t i = 0; i < batch->count; i++)
        batch->launches[i].range = KPROF_NO_RANGE;
    size_t kernels = count_automatic();
    batch->automatic = wanted.automatic = kernels > 0;
    /* Behind a proof, each measurement of replays is a new one. */
    const size_t needed = kernels > 0 ? kernels : batch->chosen_count;
    wanted.ranges = batch->proved
                        ? needed
                        : kprof_capacity_make(batch->context, needed, kernels > 0 ? most_ranges() : batch->capacity);
    wanted.proved = false;
    kprof_multiplex_end(batch->context);
    return kprof_engine.device->profiler_begin(batch->context->profiler, &wanted);
}

static kprof_status begin_window(void)
{
    kprof_measurement wanted = shared_measurement();
    kprof_status status = kprof_multiplex_goes_on() ? KPROF_OK : kprof_multiplex_begin(&wanted);
    if (status == KPROF_OK)
        status = kprof_engine.device->target_synchronize();
    return status == KPROF_OK ? kprof_multiplex_open_window() : status;
}

static kprof_status start_pass(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_engine.device->profiler_start(batch->context->profiler);
    double start_ms = kprof_monotonic_lap_ms(&lap_ns);
    if (status == KPROF_COUNTERS_BUSY)
        batch->context->busy_before_ns = lap_ns + (int64_t)(KPROF_VAIN_WAIT_FACTOR * start_ms * 1e6);
    batch->times.start_ms += start_ms;
    if (start_ms > batch->context->ready_ms)
        batch->context->ready_ms = start_ms;
    return status;
}

static kprof_status stop_pass(bool *more)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_engine.device->profiler_stop(batch->context->profiler, more);
    batch->times.stop_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

kprof_status kprof_passes_begin(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns();
    if (batch->kind == KPROF_REPLAYED && !batch->proved)
        return KPROF_OK; /* the application's own run is in no pass */
    bool window = batch->kind == KPROF_MULTIPLEXED;
    kprof_status status = window ? begin_window() : begin_own_runs();
    if (status == KPROF_OK && !window)
        status = kprof_engine.device->target_synchronize();
    batch->times.prepare_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (status == KPROF_OK)
        status = start_pass();
    batch->in_pass = status == KPROF_OK;
    if (status != KPROF_OK || (batch->behind.stands && !batch->behind.begun))
        return status;
    status = kprof_passes_begin_proof();
    if (status != KPROF_OK) {
        bool more;
        (void)stop_pass(&more);
        batch->in_pass = false;
    }
    return status;
}

kprof_status kprof_passes_begin_proof(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (!batch->proved || batch->searching || !batch->in_pass)
        return KPROF_OK;
    kprof_status status = kprof_engine.device->profiler_push(batch->context->profiler, batch->range_count++);
    batch->proof_open = status == KPROF_OK;
    return status;
}

bool kprof_passes_pause_proof(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (!batch->proof_open)
        return true;
    if (batch->shares || batch->range_count - batch->first_range >= count_proof_ranges())
        return false;
    batch->proof_open = false;
    if (kprof_engine.device->profiler_pop(batch->context->profiler) != KPROF_OK)
        kprof_batch_spoil("CUPTI did not end a range of the proof");
    return true;
}

/* List the launches to evaluate: the chosen ones. */
static kprof_status list_chosen(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_evaluations *out = &batch->evaluations;
    size_t chosen = 0;
    for (size_t i = 0; i < batch->replay_count; i++)
        chosen += batch->launches[i].chosen;
    kprof_status status = kprof_evaluations_make(batch->context->profiler, batch->metrics, chosen, out);
    for (size_t i = 0, next = 0; status == KPROF_OK && i < batch->replay_count; i++)
        if (batch->launches[i].chosen) {
            out->items[next].launch = i;
            out->items[next++].range = batch->launches[i].range;
        }
    return status;
}

static void wait_for_values(void)
{
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_evaluate_wait();
    kprof_the_batch.times.evaluate_ms += kprof_monotonic_lap_ms(&lap_ns);
}

static kprof_status decode(size_t ranges)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_engine.device->profiler_decode(batch->context->profiler, ranges);
    batch->times.decode_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

/* Decode pass number `pass`, from 0; what it completes is evaluated while the next one runs. */
static kprof_status read_pass(uint32_t pass, bool more)
{
    kprof_open_batch *batch = &kprof_the_batch;
    wait_for_values();
    kprof_status status = decode(batch->range_count);
    if (status == KPROF_OK && !batch->evaluations.items)
        status = list_chosen();
    if (status != KPROF_OK)
        return status;
    kprof_evaluate_begin(&batch->evaluations, pass, more ? pass + 1 : KPROF_ALL_PASSES);
    return KPROF_OK;
}

/* The proof */

/* Did the launches of a range reach memory outside their GPU? Also true when that cannot be told. */
static kprof_status read_proof(kprof_reader *reader, size_t range, bool *reached)
{
    kprof_open_batch *batch = &kprof_the_batch;
    double sectors[8];
    const kprof_strlist *names = &batch->metrics->proof;
    *reached = true;
    if (names->count == 0 || names->count > sizeof sectors / sizeof *sectors)
        return kprof_fail(KPROF_UNSUPPORTED, "the chip has no counters for what reaches host memory");
    kprof_status status =
        kprof_engine.device->reader_read(reader, (kprof_range){batch->context->profiler, range}, names, sectors);
    if (status != KPROF_OK)
        return status;
    *reached = false;
    for (size_t i = 0; i < names->count; i++)
        *reached = *reached || !(sectors[i] == 0); /* NaN is no proof */
    return KPROF_OK;
}

/* Did any launch of the batch, whose ranges are the proof's? */
static kprof_status read_whole_proof(kprof_reader *reader, bool *reached)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_status status = KPROF_OK;
    *reached = batch->range_count == batch->first_range;
    for (size_t i = batch->first_range; i < batch->range_count && status == KPROF_OK && !*reached; i++)
        status = read_proof(reader, i, reached);
    return status;
}

/* Find out for each launch whether it reached host memory, and mark the kernels of those that did. */
static kprof_status read_each_proof(kprof_reader *reader, bool *reached)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_status status = KPROF_OK;
    *reached = false;
    for (size_t i = 0; i < batch->count && status == KPROF_OK; i++) {
        const kprof_open_launch *launch = &batch->launches[i];
        bool this_one = false;
        if (launch->kernel)
            status = read_proof(reader, launch->own_range, &this_one);
        if (this_one)
            atomic_fetch_add(&launch->kernel->reaches_host, 1);
        *reached = *reached || this_one;
    }
    return status;
}

static kprof_status check_proof(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_reader *reader;
    bool reached = true, searching = batch->searching;
    kprof_status status = decode(batch->range_count);
    if (status == KPROF_OK)
        status = kprof_engine.device->reader_open(batch->metrics, &reader);
    if (status != KPROF_OK)
        return status;
    status = searching ? read_each_proof(reader, &reached) : read_whole_proof(reader, &reached);
    kprof_engine.device->reader_close(reader);
    const bool is_tried = batch->needs & KPROF_IS_TRIED;
    batch->context->searches = status == KPROF_OK && reached && !searching && !is_tried;
    if (status != KPROF_OK)
        return status;
    if (reached && is_tried) { /* the call was held until it had ended */
        atomic_fetch_add(&batch->launches[0].kernel->reaches_host, 1);
        atomic_fetch_add(&batch->launches[0].kernel->watched_ends, 1);
    }
    if (reached)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "this launch, or one of the %zu measured with it, reached memory of the "
                          "host, which no replay may change; later launches of that kernel are measured apart",
                          batch->count);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->launches[i].kernel)
            atomic_store(&batch->launches[i].kernel->proved, true);
    return KPROF_OK;
}

/* End the pass around the application's own run. */
static kprof_status end_own_pass(bool *more)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_profiler *profiler = batch->context->profiler;
    kprof_status status = KPROF_OK;
    if (batch->range_open || batch->proof_open)
        status = kprof_engine.device->profiler_pop(profiler);
    batch->proof_open = false;
    atomic_store(&batch->range_open, false);
    kprof_status stopped = stop_pass(more);
    batch->in_pass = false;
    if (status == KPROF_OK)
        status = stopped;
    if (status != KPROF_OK || batch->chosen_count == 0)
        return status;
    if (batch->lost_range && batch->kind != KPROF_REPLAYED)
        return kprof_fail(KPROF_NOT_COLLECTED, "the launch was not measured: %s", batch->lost_range);
    if (batch->kind == KPROF_MULTIPLEXED)
        return kprof_multiplex_read_window();
    if (batch->searching && atomic_load(&batch->spoiled)) /* a launch may have no range; nothing is replayed */
        return KPROF_OK;
    return batch->proved ? check_proof() : read_pass(0, *more);
}

/* Replays */

static int64_t longest_pass_ns(int64_t own_run_ns)
{
    return SLOW_PASS_FACTOR * own_run_ns + SLOW_PASS_NS + (int64_t)kprof_the_batch.count * SLOW_PASS_EACH_NS;
}

/* `*kernels`: of the pass so far, which are its ranges in an automatic measurement. */
static kprof_status run_one(kprof_open_launch *launch, size_t *kernels)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_profiler *profiler = batch->context->profiler;
    kprof_snapshot *snapshot = batch->context->snapshot;
    void *stream = kprof_engine.device->snapshot_stream(snapshot);
    if (launch->chosen)
        kprof_batch_clear_caches(stream);
    if (batch->automatic) {
        launch->range = *kernels;
        *kernels += kprof_engine.device->operation_kernels(launch->operation);
        if (batch->range_count < *kernels)
            batch->range_count = *kernels;
    }
    if (batch->automatic || !launch->chosen)
        return kprof_engine.device->operation_run(launch->operation, snapshot);
    kprof_status status = kprof_engine.device->profiler_push(profiler, kprof_batch_take_range(&launch->range));
    if (status != KPROF_OK)
        return status;
    status = kprof_engine.device->operation_run(launch->operation, snapshot);
    kprof_status popped = kprof_engine.device->profiler_pop(profiler);
    return status == KPROF_OK ? popped : status;
}

/* The replay gives the host something else than the application's own run did, so nothing after it may be repeated.
 * The launches before it keep their values. */
static kprof_status end_before(size_t number)
{
    kprof_open_batch *batch = &kprof_the_batch;
    batch->replay_count = number;
    batch->context->diverges = true;
    for (size_t i = 0; i < number; i++)
        if (batch->launches[i].chosen)
            return KPROF_OK;
    return KPROF_NOT_COLLECTED; /* with the operation's own reason */
}

/* Repeat all launches, in a pass or without counters. NOT_COLLECTED when it takes far too long. */
static kprof_status run_all(bool in_pass)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t start_ns = kprof_monotonic_ns(), lap_ns = start_ns;
    kprof_status status = KPROF_OK;
    size_t kernels = 0;
    atomic_store(&batch->repeated_since_ns, start_ns);
    for (size_t i = 0; i < batch->replay_count && status == KPROF_OK; i++) {
        kprof_open_launch *launch = &batch->launches[i];
        status = in_pass ? run_one(launch, &kernels)
                         : kprof_engine.device->operation_run(launch->operation, batch->context->snapshot);
        if (status == KPROF_NOT_COLLECTED && !launch->kernel)
            status = end_before(i);
        else if (status == KPROF_OK && kprof_monotonic_ns() - start_ns > batch->longest_pass_ns)
            status = kprof_fail(KPROF_NOT_COLLECTED, "a pass took far longer than the application's own run");
    }
    kprof_status done = kprof_engine.device->target_synchronize();
    atomic_store(&batch->repeated_since_ns, 0);
    batch->times.run_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status == KPROF_OK ? done : status;
}

/* Values were compared with counters kept on and without on GH100 only. Calls of the same form might mean something
 * else to another chip. */
static bool may_keep_counting(void)
{
    return strcmp(kprof_the_batch.metrics->chip, "GH100") == 0;
}

static kprof_status replay_pass(bool *more)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = kprof_engine.device->snapshot_restore_start(batch->context->snapshot);
    batch->times.restore_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (status == KPROF_OK)
        status = start_pass();
    if (status != KPROF_OK)
        return status;
    kprof_engine.device->counting_keep(may_keep_counting());
    status = run_all(true);
    kprof_engine.device->counting_keep(false);
    kprof_status stopped = stop_pass(more);
    return status == KPROF_OK ? stopped : status;
}

static size_t last_chosen(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    size_t i = batch->count - 1;
    while (!batch->launches[i].chosen)
        i--;
    return i;
}

/* Do the passes repeat the copy to the host that closes the batch? Not where the kernels before it would cost the
 * chosen ones their automatic ranges. */
static bool compares_last(void)
{
    const kprof_open_batch *batch = &kprof_the_batch;
    return batch->compares_last && (batch->context->pushes_ranges || count_automatic() > 0);
}

/* Events since the start was saved may forbid putting it back. */
static kprof_status check_may_replay(void)
{
    const char *why = atomic_load(&kprof_the_batch.spoiled);
    if (!why)
        why = kprof_engine.device->writers_devices();
    if (!why && kprof_batch_has_managed()) /* another context or thread may have come with the launch */
        why = kprof_decision_managed_obstacle(kprof_the_batch.context->context);
    if (!why && (kprof_the_batch.needs & KPROF_SAVES_HOST))
        why = kprof_decision_host_obstacle(kprof_the_batch.context->context);
    return why ? kprof_fail(KPROF_NOT_COLLECTED, "the launch was not repeated: %s", why) : KPROF_OK;
}

/* All replays have given the host what the application's own run gave. */
static void note_compared(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    bool shown = false, is_new = false;
    for (size_t i = batch->replay_count; i-- > 0;) {
        const kprof_open_launch *launch = &batch->launches[i];
        if (launch->kernel && shown)
            is_new = !atomic_exchange(&launch->kernel->compared, true) || is_new;
        shown = shown || kprof_engine.device->operation_output_bytes(launch->operation) > 0;
    }
    batch->context->comparisons += is_new;
}

static kprof_status run_passes(uint32_t *passes)
{
    kprof_open_batch *batch = &kprof_the_batch;
    bool more = true;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_status status = begin_replays();
    batch->times.prepare_ms += kprof_monotonic_lap_ms(&lap_ns);
    while (status == KPROF_OK && more) {
        batch->listener->progress(&batch->launches[last_chosen()].record, batch->chosen_count, *passes + 1,
                                  batch->metrics->pass_count);
        kprof_lock_note_progress();
        status = replay_pass(&more);
        if (status != KPROF_OK)
            break;
        status = read_pass(*passes, more);
        *passes += status == KPROF_OK;
        if (status == KPROF_NOT_COLLECTED && *passes == 0 && batch->automatic) {
            kprof_log(KPROF_LOG_DEBUG,
                      "kernels did not become ranges by themselves; they are measured in pushed ranges");
            batch->context->pushes_ranges = more = true;
            status = begin_replays();
        }
    }
    if (status == KPROF_OK && !batch->context->diverges)
        note_compared();
    wait_for_values();
    return status;
}

static kprof_status run_tries(uint32_t *passes)
{
    kprof_open_batch *batch = &kprof_the_batch;
    kprof_status status = KPROF_OK;
    (void)passes; /* none is measured */
    for (unsigned i = 0; i < TRIES && status == KPROF_OK && batch->replay_count == batch->count; i++) {
        status = kprof_engine.device->snapshot_restore_start(batch->context->snapshot);
        if (status == KPROF_OK)
            status = run_all(false);
    }
    return status;
}

static kprof_status replay_and_restore(kprof_status (*replays)(uint32_t *passes), uint32_t *passes)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns();
    kprof_snapshot *snapshot = batch->context->snapshot;
    kprof_status status = check_may_replay();
    if (status == KPROF_OK)
        status = kprof_engine.device->snapshot_record_end(snapshot);
    batch->times.keep_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (status != KPROF_OK)
        return status;
    status = replays(passes);
    lap_ns = kprof_monotonic_ns();
    kprof_status restored = kprof_engine.device->snapshot_restore_end(snapshot);
    batch->times.restore_ms += kprof_monotonic_lap_ms(&lap_ns);
    if (restored != KPROF_OK)
        kprof_process_disarm(restored, "the memory that a replay changed could not be put right");
    if (*passes == 0) /* the own runs would go on behind tries */
        return status == KPROF_OK ? restored : status;
    if (status == KPROF_OK)
        return status;
    kprof_batch_note("the replay was abandoned", kprof_process_reason(status));
    return KPROF_OK;
}

/* The driver writes what replays have printed within calls that wait. If it wrote nothing after the own run, the kernel
 * has printed nothing, or the driver writes in a way that the preloaded library does not see. */
static kprof_status replay_unheard(uint32_t *passes)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (kprof_engine.device->output_seen() == batch->output_before) {
        atomic_store(&batch->launches[0].kernel->prints_unseen, true);
        return kprof_fail(KPROF_NOT_COLLECTED, "the launch was not repeated: its kernel can print, and has not");
    }
    kprof_engine.device->output_drop(true);
    kprof_status status = replay_and_restore(run_passes, passes);
    kprof_status done = kprof_engine.device->target_synchronize();
    kprof_engine.device->output_drop(false);
    return status == KPROF_OK ? done : status;
}

/* Replay, and leave no trace of it. After a failure, keep what the passes before it gave, with the reason. A handler of
 * the application that runs meanwhile might use memory of the host. */
static kprof_status replay(uint32_t *passes)
{
    sigset_t before;
    unsigned needs = kprof_the_batch.needs;
    bool has_host = kprof_batch_has_managed() || (needs & KPROF_SAVES_HOST);
    if (has_host)
        kprof_signals_block(&before);
    kprof_status status = needs & KPROF_DROPS_OUTPUT ? replay_unheard(passes) : replay_and_restore(run_passes, passes);
    if (has_host)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* CUPTI would wait without a limit for the end of a pass beside work. */
kprof_status kprof_passes_await(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    int64_t lap_ns = kprof_monotonic_ns(), limit_ns = INT64_MAX;
    if (kprof_engine.device->target_capturing()) {
        kprof_captures_note_loss();
        return kprof_fail(KPROF_NOT_COLLECTED, KPROF_BESIDE_CAPTURE);
    }
    const kprof_kernel *kernel = batch->needs && batch->count > 0 ? batch->launches[batch->count - 1].kernel : NULL;
    if (kernel && !atomic_load(&kernel->ends_alone))
        limit_ns = kprof_kernel_patience_ns(kernel);
    kprof_status status = kprof_wait_at_most(batch->context->context, limit_ns);
    if (!kprof_wait_is_idle(status) && (kprof_batch_has_managed() || batch->needs))
        kprof_batch_note_late(); /* the host waits for each launch, and not for these again */
    batch->times.wait_ms += kprof_monotonic_lap_ms(&lap_ns);
    return status;
}

/* End the pass around the application's own runs, which have been waited for. */
static kprof_status end_own_runs(kprof_status status)
{
    kprof_open_batch *batch = &kprof_the_batch;
    bool more = false;
    const int64_t now_ns = kprof_monotonic_ns();
    batch->replay_count = batch->count;
    if (!kprof_wait_is_idle(status)) {
        batch->context->left_in_pass = batch->in_pass;
        return status;
    }
    if (batch->kind == KPROF_REPLAYED && !kprof_batch_is_sealed())
        kprof_batch_note_ends();
    batch->longest_pass_ns = longest_pass_ns(now_ns - batch->started_ns);
    kprof_status ended = batch->in_pass ? end_own_pass(&more) : KPROF_OK;
    wait_for_values(); /* whatever the status: threads may be at it */
    return status == KPROF_OK ? ended : kprof_fail(KPROF_NOT_COLLECTED, "this launch, or one measured with it, failed");
}

kprof_status kprof_passes_try(bool *same)
{
    kprof_open_batch *batch = &kprof_the_batch;
    uint32_t passes = 0;
    *same = false;
    kprof_status status = end_own_runs(kprof_passes_await());
    if (status == KPROF_OK)
        status = replay_and_restore(run_tries, &passes);
    if (status != KPROF_OK || batch->replay_count < batch->count)
        return status;
    note_compared();
    *same = true;
    batch->range_count = batch->first_range;
    return kprof_passes_begin();
}

/* Leave out what may wait for work that the batch does not have. */
static kprof_status cut(void)
{
    kprof_open_batch *batch = &kprof_the_batch;
    if (batch->replay_count <= batch->most_replayed)
        return KPROF_OK;
    batch->replay_count = batch->most_replayed;
    for (size_t i = batch->replay_count; i-- > 0;) {
        if (batch->launches[i].chosen) {
            batch->replay_count = i + 1;
            return KPROF_OK;
        }
    }
    return kprof_fail(KPROF_NOT_COLLECTED, KPROF_NOT_ALONE);
}

kprof_status kprof_passes_run(kprof_status awaited, uint32_t *passes)
{
    kprof_open_batch *batch = &kprof_the_batch;
    *passes = 0;
    kprof_status status = end_own_runs(awaited);
    if (status != KPROF_OK || batch->chosen_count == 0)
        return status;
    if (batch->kind == KPROF_REPLAYED) {
        if (!compares_last())
            batch->replay_count = last_chosen() + 1; /* nothing is measured after it */
        status = cut();
        return status == KPROF_OK ? replay(passes) : status;
    }
    *passes = 1;
    return KPROF_OK;
}
