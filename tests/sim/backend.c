/* The simulated machine as the engine sees it: the functions of src/cupti, which check that they are called in the
 * order and the state that their headers ask for. */
#include "sim/backend.h"
#include "core/log.h"
#include "cupti/flush.h"
#include "cupti/operation.h"
#include "cupti/profiler.h"
#include "cupti/snapshot.h"
#include "sim/clock.h"
#include "sim/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANGES 100
/* Launches of the last batch of a context, from which on the next one is worth all witnesses. */
#define WITNESSED_LAUNCHES 64

typedef enum profiler_state { IDLE, BEGUN, STARTED, STOPPED, DECODED } profiler_state;

struct kprof_profiler {
    sim_context *context;
    const kprof_chip_metrics *metrics;
    profiler_state state;
    size_t capacity;           /* launches of this measurement */
    uint32_t first_pass, pass; /* of this measurement; pass: under way, or how many are done */
    uint32_t decoded;          /* passes up to this one */
    bool single;               /* one pass only, of one launch */
    bool all_witnesses;
    size_t last_launches; /* of the last measurement of several */
    size_t ranges, pass_ranges[64];
    uint64_t signatures[MAX_RANGES];
    bool warm[MAX_RANGES];      /* in some pass that was decoded the caches were not flushed before it */
    bool pass_warm[MAX_RANGES]; /* likewise, in those since then */
};

struct kprof_reader {
    const kprof_chip_metrics *metrics;
};

typedef struct saved_slot {
    bool saved;
    uint64_t generation, foreign;
    uint64_t words[SIM_WORDS];
} saved_slot;

struct kprof_snapshot {
    unsigned context;
    saved_slot slots[SIM_SLOTS];
};

struct kprof_operation {
    sim_step step;
};

struct kprof_flush {
    unsigned context;
};

static struct {
    size_t profilers, snapshots, operations;
} alive;

static __thread unsigned pushed_from;

static void lock(void)
{
    pthread_mutex_lock(&sim.mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&sim.mutex);
}

static bool has_fault(void)
{
    return sim.faulty && sim_chance(12);
}

static void check_current(const void *context)
{
    if (context != &sim.contexts[sim_current])
        sim_violation("a call for a context that is not current");
}

static void check_can_wait(const char *what)
{
    if (sim.captures > 0)
        sim_violation("%s while a stream is being captured", what);
}

static void check_idle(const char *what)
{
    if (sim_current == SIM_CONTEXTS)
        sim_violation("%s, and no context is current", what);
    if (!sim.contexts[sim_current].failed && !sim_is_idle(sim_current))
        sim_violation("%s while the context is at work", what);
}

void sim_check_nothing_left(void)
{
    if (alive.profilers + alive.snapshots + alive.operations > 0)
        sim_violation("%zu profilers, %zu snapshots, %zu operations were not freed", alive.profilers, alive.snapshots,
                      alive.operations);
}

/* target.h */

kprof_status kprof_target_start(const kprof_target_hooks *hooks)
{
    sim.hooks = hooks;
    return KPROF_OK;
}

kprof_status kprof_target_current_device(uint32_t *device)
{
    *device = sim_current;
    return KPROF_OK;
}

kprof_status kprof_target_device(uint32_t device, kprof_device_record *out)
{
    *out = (kprof_device_record){
        .device = device,
        .name = "Simulated",
        .chip = device == 0 ? "GH100" : sim.second_chip,
        .uuid = "00112233445566778899aabbccddeeff",
    };
    return KPROF_OK;
}

void kprof_target_launch(const kprof_call *call, kprof_launch_record *out)
{
    const sim_step *step = call->parameters;
    out->context = call->context_id;
    out->stream = step->stream;
    out->grid[0] = step->tag;
    out->grid[1] = sim.program;
}

void kprof_target_kernel(const kprof_call *call, kprof_kernel_record *out)
{
    const sim_function *function = call->function;
    out->registers_per_thread = 16 + function->module;
}

void kprof_target_note_variables(const kprof_call *call)
{
    const sim_function *function = call->function;
    lock();
    sim.noted[function->module] = true;
    unlock();
}

bool kprof_target_capturing(void)
{
    lock();
    bool capturing = sim.captures > 0;
    unlock();
    return capturing;
}

bool kprof_target_launch_captured(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    lock();
    bool captured = sim.streams[step->stream].capturing;
    unlock();
    return captured;
}

static bool has_transfer(const sim_queue *queue)
{
    for (unsigned i = 0; i < queue->count; i++)
        if (queue->items[i].step.op == SIM_COPY || queue->items[i].step.op == SIM_MEMSET)
            return true;
    return false;
}

static void check_runs_beside_no_transfer(const sim_step *step)
{
    for (unsigned stream = 0; stream < SIM_STREAMS; stream++)
        if (sim_context_of_stream(stream) == sim_context_of_stream(step->stream) &&
            has_transfer(&sim.streams[stream].queue))
            sim_violation("a launch is measured beside a transfer");
}

/* The engine's own launches run as the device likes, out of order where their streams differ: that a profiler runs them
 * one after the other is nothing to rely on. */
static kprof_status run_again(const sim_step *step)
{
    sim_own_call(KPROF_CALL_LAUNCH, false);
    lock();
    check_can_wait("a launch of the engine");
    if (sim.shares_with_devices)
        sim_violation("a launch is repeated while another device sees memory");
    struct kprof_profiler *armed = sim.contexts[sim_context_of_stream(step->stream)].armed;
    bool fault = armed && has_fault();
    if (armed && sim.slow && sim_chance(30))
        sim_clock_advance_s(1000);
    if (armed && step->op != SIM_LAUNCH && !sim_is_idle(sim_context_of_stream(step->stream)))
        sim_violation("a transfer is repeated beside a launch");
    if (armed && step->op == SIM_LAUNCH)
        check_runs_beside_no_transfer(step);
    if (!fault)
        sim_submit(step);
    unlock();
    sim_own_call(KPROF_CALL_LAUNCH, true);
    return fault ? kprof_fail(KPROF_INTERNAL, "the launch could not be repeated (simulated)") : KPROF_OK;
}

void *kprof_target_function(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    return step->legacy ? NULL : call->function;
}

unsigned kprof_target_sharing(void)
{
    lock();
    unsigned sharing = (sim.shares_memory ? KPROF_SHARES_WITH_HOST : 0) |
                       (sim.shares_with_devices ? KPROF_SHARES_WITH_DEVICES : 0) |
                       (sim.waits_for_host ? KPROF_WAITS_FOR_HOST : 0);
    unlock();
    return sharing;
}

void *kprof_target_stream(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    return &sim.streams[step->stream];
}

bool kprof_target_enter_context(void *context)
{
    if (context == &sim.contexts[sim_current])
        return false;
    sim_own_call(KPROF_CALL_OTHER, false);
    pushed_from = sim_current;
    sim_current = (unsigned)((sim_context *)context - sim.contexts);
    sim_own_call(KPROF_CALL_OTHER, true);
    return true;
}

void kprof_target_leave_context(void)
{
    sim_current = pushed_from;
}

const char *kprof_target_side_effect(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    return step->kernel == SIM_PRINT ? "it prints (simulated)" : NULL;
}

kprof_status kprof_target_synchronize(void)
{
    sim_own_call(KPROF_CALL_WAIT, false);
    lock();
    check_can_wait("the engine waits");
    if (sim_current == SIM_CONTEXTS)
        sim_violation("the engine waits, and no context is current");
    sim_wait_for_context(sim_current);
    bool failed = sim.contexts[sim_current].failed;
    unlock();
    sim_own_call(KPROF_CALL_WAIT, true);
    return failed ? kprof_fail(KPROF_INTERNAL, "the context is in error (simulated)") : KPROF_OK;
}

/* profiler.h */

void kprof_profiler_preload(void) {}

kprof_status kprof_profiler_open(void *context, const kprof_chip_metrics *metrics, kprof_profiler **out)
{
    check_current(context);
    if (strcmp(metrics->chip, sim_current == 0 ? "GH100" : sim.second_chip) != 0)
        sim_violation("metrics of another chip");
    lock();
    bool fault = has_fault();
    unlock();
    *out = fault ? NULL : calloc(1, sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_INTERNAL, "no profiler (simulated)");
    (*out)->context = context;
    (*out)->metrics = metrics;
    lock();
    alive.profilers++;
    unlock();
    return KPROF_OK;
}

size_t kprof_profiler_capacity(kprof_profiler *profiler, size_t bytes)
{
    (void)profiler;
    return bytes > 0 ? sim.capacity : 1;
}

static kprof_status begin(kprof_profiler *profiler, size_t launches)
{
    check_current(profiler->context);
    bool many = launches > sim.capacity || (sim.most_launches > 0 && launches > sim.most_launches);
    if (profiler->state == STARTED || launches == 0 || many)
        sim_violation("a measurement of %zu launches begins in state %d", launches, (int)profiler->state);
    if (has_fault())
        return kprof_fail(KPROF_INTERNAL, "the measurement did not begin (simulated)");
    profiler->state = BEGUN;
    profiler->capacity = launches;
    profiler->pass = profiler->first_pass = profiler->decoded = 0;
    profiler->single = false;
    memset(profiler->pass_ranges, 0, sizeof profiler->pass_ranges);
    memset(profiler->signatures, 0, sizeof profiler->signatures);
    memset(profiler->warm, 0, sizeof profiler->warm);
    memset(profiler->pass_warm, 0, sizeof profiler->pass_warm);
    return KPROF_OK;
}

static void check_witnesses(const kprof_profiler *profiler, size_t launches, bool all)
{
    bool is_worth_it = launches > 1 && profiler->last_launches >= WITNESSED_LAUNCHES;
    if (all != (sim.all_witnesses || is_worth_it) && !profiler->context->failed)
        sim_violation("a measurement of %zu launches, after one of %zu, has %s witnesses", launches,
                      profiler->last_launches, all ? "all" : "few");
}

kprof_status kprof_profiler_begin(kprof_profiler *profiler, size_t launches, bool all_witnesses)
{
    lock();
    check_witnesses(profiler, launches, all_witnesses);
    profiler->all_witnesses = all_witnesses;
    kprof_status status = begin(profiler, launches);
    unlock();
    return status;
}

kprof_status kprof_profiler_begin_pass(kprof_profiler *profiler)
{
    lock();
    uint32_t done = profiler->single && profiler->state != IDLE ? profiler->pass : 0;
    uint32_t next = done < profiler->metrics->pass_count ? done : 0;
    kprof_status status = begin(profiler, 1);
    profiler->single = status == KPROF_OK;
    profiler->first_pass = profiler->pass = profiler->decoded = next;
    unlock();
    return status;
}

static kprof_status start(kprof_profiler *profiler)
{
    check_current(profiler->context);
    check_can_wait("a pass starts");
    check_idle("a pass starts");
    bool more = profiler->state == STOPPED || profiler->state == DECODED;
    more = more && !profiler->single && profiler->pass < profiler->metrics->pass_count;
    if (profiler->context->armed || (profiler->state != BEGUN && !more))
        sim_violation("a pass starts in state %d after %u passes", (int)profiler->state, profiler->pass);
    if (profiler->context->failed || has_fault())
        return kprof_fail(KPROF_INTERNAL, "the pass did not start (simulated)");
    profiler->state = STARTED;
    profiler->ranges = 0;
    profiler->context->armed = profiler;
    return KPROF_OK;
}

kprof_status kprof_profiler_start(kprof_profiler *profiler)
{
    lock();
    kprof_status status = start(profiler);
    unlock();
    return status;
}

static kprof_status stop(kprof_profiler *profiler, bool *more)
{
    check_current(profiler->context);
    if (profiler->state != STARTED)
        sim_violation("a pass stops in state %d", (int)profiler->state);
    check_can_wait("a pass stops");
    check_idle("a pass stops");
    profiler->context->armed = NULL;
    profiler->state = STOPPED;
    if (profiler->pass == 0 && profiler->capacity > 1)
        profiler->last_launches = profiler->ranges;
    profiler->pass_ranges[profiler->pass++] = profiler->ranges;
    *more = profiler->pass < profiler->metrics->pass_count;
    return profiler->context->failed || has_fault() ? kprof_fail(KPROF_INTERNAL, "the pass failed (simulated)")
                                                    : KPROF_OK;
}

kprof_status kprof_profiler_stop(kprof_profiler *profiler, bool *more)
{
    lock();
    kprof_status status = stop(profiler, more);
    unlock();
    return status;
}

static kprof_status decode(kprof_profiler *profiler, size_t launches)
{
    if (profiler->state != STOPPED)
        sim_violation("%u passes are decoded in state %d", profiler->pass, (int)profiler->state);
    profiler->state = DECODED;
    for (uint32_t pass = profiler->first_pass; pass < profiler->pass; pass++)
        if (profiler->pass_ranges[pass] != launches)
            return kprof_fail(KPROF_NOT_COLLECTED, "%zu launches were measured in pass %u, not %zu (simulated)",
                              profiler->pass_ranges[pass], pass, launches);
    if (has_fault())
        return kprof_fail(KPROF_INTERNAL, "decoding failed (simulated)");
    profiler->decoded = profiler->pass;
    memcpy(profiler->warm, profiler->pass_warm, sizeof profiler->warm);
    return KPROF_OK;
}

kprof_status kprof_profiler_decode(kprof_profiler *profiler, size_t launches)
{
    lock();
    kprof_status status = decode(profiler, launches);
    unlock();
    return status;
}

kprof_status kprof_reader_open(const kprof_chip_metrics *metrics, kprof_reader **out)
{
    *out = malloc(sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    (*out)->metrics = metrics;
    return KPROF_OK;
}

void kprof_reader_close(kprof_reader *reader)
{
    free(reader);
}

/* Metric i is counted in pass i, or i less a multiple of the passes. */
static bool is_measured(const kprof_profiler *profiler, size_t metric)
{
    uint32_t pass = (uint32_t)(metric % profiler->metrics->pass_count);
    return pass >= profiler->first_pass && pass < profiler->decoded;
}

/* As CUPTI gives a counter that is in several passes: the mean over those that are decoded. */
static double witness_mean(const kprof_profiler *profiler, uint64_t with_witness)
{
    double sum = 0;
    unsigned passes = 0;
    for (uint32_t pass = profiler->first_pass; pass < profiler->decoded; pass++) {
        if (with_witness >> pass & 1) {
            sum += sim_witness_in(pass);
            passes++;
        }
    }
    return passes > 0 ? sum / passes : NAN;
}

static double value_of_witness(const kprof_profiler *profiler, const char *name)
{
    if (strcmp(name, SIM_DEAR_WITNESS) != 0)
        return witness_mean(profiler, SIM_WITNESS_PASSES);
    return profiler->all_witnesses ? witness_mean(profiler, SIM_DEAR_PASSES) : NAN;
}

/* NaN for a metric that has not been counted yet. */
static double value_of(const kprof_profiler *profiler, size_t launch, const char *name)
{
    size_t metric = 0;
    while (metric < profiler->metrics->metrics.count && strcmp(profiler->metrics->metrics.items[metric], name) != 0)
        metric++;
    if (metric == profiler->metrics->metrics.count)
        return value_of_witness(profiler, name);
    return is_measured(profiler, metric) ? sim_value(profiler->signatures[launch], metric) : NAN;
}

kprof_status kprof_reader_read(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    const kprof_profiler *profiler = range.profiler;
    size_t launch = range.launch;
    lock();
    bool fault = has_fault();
    unlock();
    if (profiler->decoded == profiler->first_pass || launch >= profiler->capacity ||
        reader->metrics != profiler->metrics)
        sim_violation("launch %zu is read after %u passes", launch, profiler->decoded);
    if (sim.flushes && profiler->warm[launch])
        sim_violation("launch %zu was measured with warm caches", launch);
    if (fault)
        return kprof_fail(KPROF_INTERNAL, "evaluation failed (simulated)");
    for (size_t i = 0; i < names->count; i++)
        values[i] = value_of(profiler, launch, names->items[i]);
    return KPROF_OK;
}

const void *kprof_profiler_image(const kprof_profiler *profiler, size_t *size)
{
    *size = sizeof profiler->signatures;
    return profiler->signatures;
}

void kprof_profiler_release(kprof_profiler *profiler)
{
    lock();
    check_current(profiler->context);
    if (profiler->state == STARTED)
        sim_violation("the counters are given back in the middle of a pass");
    check_can_wait("the counters are given back");
    profiler->state = IDLE;
    unlock();
}

void kprof_profiler_close(kprof_profiler *profiler)
{
    if (!profiler)
        return;
    lock();
    alive.profilers--;
    if (profiler->state != IDLE && profiler->context->armed != profiler)
        sim_violation("a context ends and keeps the counters");
    if (profiler->context->armed == profiler)
        profiler->context->armed = NULL;
    unlock();
    free(profiler);
}

/* The same launch must find the same memory in every pass. */
void sim_profiler_note(kprof_profiler *profiler, uint64_t signature)
{
    size_t range = profiler->ranges++;
    if (range >= profiler->capacity)
        sim_violation("a measurement of %zu launches has one more", profiler->capacity);
    profiler->pass_warm[range] = profiler->pass_warm[range] || !profiler->context->cold;
    if (profiler->pass == profiler->first_pass)
        profiler->signatures[range] = signature;
    else if (profiler->signatures[range] != signature)
        sim_violation("launch %zu of pass %u is another one, or found other memory than in the first", range,
                      profiler->pass);
}

/* snapshot.h */

static void save_slot(kprof_snapshot *snapshot, unsigned slot)
{
    saved_slot *saved = &snapshot->slots[slot];
    if (saved->saved)
        return;
    saved->saved = true;
    saved->generation = sim.slots[slot].generation;
    saved->foreign = sim.slots[slot].foreign;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        saved->words[i] = atomic_load_explicit(&sim_words(slot)[i], memory_order_relaxed);
}

static void save_memory(kprof_snapshot *snapshot)
{
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        if (slot % SIM_CONTEXTS == snapshot->context && slot % SIM_LANE_SLOTS < SIM_VARIABLES && sim.slots[slot].live)
            save_slot(snapshot, slot);
}

static void save_variables(kprof_snapshot *snapshot)
{
    for (unsigned module = 0; module < SIM_STREAMS; module++)
        if (sim.noted[module] && sim_context_of_stream(module) == snapshot->context)
            save_slot(snapshot, sim_variable_of_stream(module));
}

static void restore(const kprof_snapshot *snapshot)
{
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        const saved_slot *saved = &snapshot->slots[slot];
        if (!saved->saved)
            continue;
        if (!sim.slots[slot].live || sim.slots[slot].generation != saved->generation)
            sim_violation("memory is restored that was freed or unmapped since it was saved");
        sim.slots[slot].foreign = saved->foreign;
        for (unsigned i = 0; i < SIM_WORDS; i++)
            atomic_store_explicit(&sim_words(slot)[i], saved->words[i], memory_order_relaxed);
    }
}

kprof_status kprof_snapshot_take(void *context, kprof_snapshot **out)
{
    check_current(context);
    lock();
    check_can_wait("memory is saved");
    check_idle("memory is saved");
    *out = has_fault() ? NULL : calloc(1, sizeof **out);
    if (*out) {
        (*out)->context = sim_current;
        save_variables(*out);
        save_memory(*out);
        alive.snapshots++;
    }
    unlock();
    return *out ? KPROF_OK : kprof_fail(KPROF_UNSUPPORTED, "memory cannot be saved (simulated)");
}

kprof_status kprof_snapshot_cover(kprof_snapshot *snapshot)
{
    lock();
    bool fault = has_fault();
    if (snapshot->context != sim_current)
        sim_violation("a snapshot is to cover another context");
    if (!fault)
        save_variables(snapshot);
    unlock();
    return fault ? kprof_fail(KPROF_UNSUPPORTED, "variables cannot be saved (simulated)") : KPROF_OK;
}

kprof_status kprof_snapshot_restore(kprof_snapshot *snapshot)
{
    lock();
    check_can_wait("memory is restored");
    check_idle("memory is restored");
    if (snapshot->context != sim_current)
        sim_violation("memory of another context is restored");
    restore(snapshot);
    sim.contexts[sim_current].cold = false;
    unlock();
    return KPROF_OK;
}

double kprof_snapshot_host_save_s(const kprof_snapshot *snapshot)
{
    (void)snapshot;
    return 0;
}

void kprof_snapshot_free(kprof_snapshot *snapshot)
{
    if (!snapshot)
        return;
    sim_own_call(KPROF_CALL_OTHER, false);
    lock();
    alive.snapshots--;
    if (sim_is_held(snapshot->context))
        sim_violation("freeing saved memory waits for work that waits for the host");
    unlock();
    free(snapshot);
    sim_own_call(KPROF_CALL_OTHER, true);
}

void sim_profiled_launch(const sim_step *step)
{
    check_runs_beside_no_transfer(step);
    sim_drain_context(sim_context_of_stream(step->stream));
    if (sim.streams[step->stream].queue.count > 0) /* CUPTI waits for the kernel within the launch */
        sim_violation("a launch is measured behind work that waits for the program");
    sim_submit(step); /* one after the other, but not before the call returns */
}

/* flush.h */

kprof_status kprof_flush_open(kprof_flush **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    (*out)->context = sim_current;
    return KPROF_OK;
}

kprof_status kprof_flush_run(kprof_flush *flush, void *stream, void *after)
{
    lock();
    check_can_wait("caches are flushed");
    unsigned context = sim_context_of_stream((unsigned)((sim_stream *)stream - sim.streams));
    if (flush->context != sim_current || context != sim_current ||
        sim_context_of_stream((unsigned)((sim_stream *)after - sim.streams)) != sim_current)
        sim_violation("caches of another context are flushed");
    sim_drain_context(sim_current);
    sim.contexts[sim_current].cold = true;
    unlock();
    return KPROF_OK;
}

void kprof_flush_close(kprof_flush *flush)
{
    free(flush);
}

/* operation.h */

kprof_operation *kprof_operation_copy(const kprof_call *call)
{
    const sim_step *step = call->parameters;
    kprof_operation *operation = step->uncopyable ? NULL : malloc(sizeof *operation);
    if (!operation)
        return NULL;
    operation->step = *step;
    lock();
    alive.operations++;
    unlock();
    return operation;
}

kprof_status kprof_operation_run(const kprof_operation *operation)
{
    if (sim_context_of_stream(operation->step.stream) != sim_current)
        sim_violation("a launch is repeated in another context");
    return run_again(&operation->step);
}

void kprof_operation_free(kprof_operation *operation)
{
    lock();
    alive.operations -= operation != NULL;
    unlock();
    free(operation);
}

bool kprof_operation_sees_host(const kprof_operation *operation)
{
    lock();
    bool sees = sim.slots[operation->step.a].shared || sim.slots[operation->step.b].shared;
    unlock();
    return sees;
}
