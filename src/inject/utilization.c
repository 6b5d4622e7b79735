/* One mutex guards the devices that are sampled. Whoever has it calls CUPTI, so CUPTI's callbacks, which may come with
 * locks of CUPTI's or the driver's, take another one, that of the contexts. What is written takes the lock of trace.c.
 */
#include "inject/utilization.h"

#include "core/deadline.h"
#include "core/hold.h"
#include "core/log.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/trace.h"
#include "inject/trace_limit.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define INTERVAL_NS UINT64_C(1000000) /* unless the user says otherwise */

/* The thread polls every 250 ms. A reading has space for a second, since CUPTI forgets what has none. */
#define POLLED_NS      UINT64_C(1000000000)
#define FEWEST_SAMPLES 16
/* On an H200, 64 MiB were full with the samples of 0.6 s. */
#define BUFFER_BYTES ((size_t)128 << 20)
/* A sample longer than this many intervals would take the time of those that follow. */
#define MOST_INTERVALS 16
#define MOST_METRICS   32
#define MOST_CONTEXTS  64
#define MOST_RESTARTS  100
#define TIMES_AT_CALLS 25
/* After so long without a sample they are taken without counters of links. */
#define FIRST_SAMPLE_NS INT64_C(2000000000)
#define TIMES_AT_END    60
#define MILLION         1e6
#define LARGEST_VALUE   9e12

/* Neighbouring samples that become one. */
typedef struct joined_samples {
    unsigned count;
    uint64_t start_ns, end_ns;
    double sums[MOST_METRICS], times[MOST_METRICS]; /* of value times ns, and of the ns whose values are known */
} joined_samples;

typedef struct sampled_device {
    const kprof_chip_timeline *pass; /* NULL: it is not sampled */
    size_t passes_left;              /* behind this one, each for the case that CUPTI gives no sample of those before */
    int64_t began_ns;                /* on the clock of activities; 0: there has been a sample since */
    uint32_t device;
    kprof_pm_sampling *sampling; /* owned; NULL: not any more, or not at all */
    unsigned restarts;
    bool is_told_cut; /* that samples were lost */
    bool is_first;    /* the next sample, which has what was counted before it */
    uint64_t interval_ns;
    unsigned most_joined;
    uint64_t left; /* samples to be written before that doubles */
    joined_samples joined;
} sampled_device;

static struct {
    pthread_mutex_t mutex;
    void *items[MOST_CONTEXTS]; /* that nobody has looked at yet */
    size_t count;
} contexts = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_mutex_t mutex;
    sampled_device devices[KPROF_MAX_DEVICES];
    bool ended;
} the_utilization = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

/* CUPTI's mean of a time, weighted by it: gaps count for nothing. */
static void add_to(joined_samples *joined, const double *values, size_t count, uint64_t ns)
{
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            continue;
        joined->sums[i] += values[i] * (double)ns;
        joined->times[i] += (double)ns;
    }
    joined->count++;
}

/* -1: not known. */
static int64_t mean_of(const joined_samples *joined, size_t i)
{
    const double mean = joined->times[i] > 0 ? joined->sums[i] / joined->times[i] : NAN;
    return mean >= 0 && mean < LARGEST_VALUE ? llround(mean * MILLION) : -1;
}

static void write_joined(sampled_device *device)
{
    joined_samples *joined = &device->joined;
    if (joined->count == 0)
        return;
    for (size_t i = 0; i < device->pass->metrics.count; i++) {
        kprof_sample_activity sample = {.start_ns = (int64_t)joined->start_ns,
                                        .end_ns = (int64_t)joined->end_ns,
                                        .device = device->device,
                                        .value_millionths = mean_of(joined, i)};
        kprof_trace_take_sample(&sample, device->pass->metrics.items[i]);
    }
    *joined = (joined_samples){0};
    if (--device->left > 0)
        return;
    if (device->most_joined == 1)
        kprof_log(KPROF_LOG_INFO,
                  "GPU %u has %d samples over time: from now on two become one, and twice as many each time that the "
                  "program has run for twice as long",
                  device->device, KPROF_UTILIZATION_SAMPLES);
    device->most_joined *= 2;
    device->left = KPROF_UTILIZATION_SAMPLES / 2;
}

/* A sample that does not follow its neighbour begins anew. */
static void take_sample(sampled_device *device, uint64_t start_ns, uint64_t end_ns, const double *values)
{
    joined_samples *joined = &device->joined;
    if (joined->count > 0 && (start_ns < joined->end_ns || start_ns - joined->end_ns > device->interval_ns / 2))
        write_joined(device);
    if (joined->count == 0)
        joined->start_ns = start_ns;
    joined->end_ns = end_ns;
    add_to(joined, values, device->pass->metrics.count, end_ns - start_ns);
    if (joined->count >= device->most_joined)
        write_joined(device);
}

static void take_reading(sampled_device *device, const kprof_pm_data *data)
{
    for (size_t i = 0; i < data->count; i++) {
        const uint64_t ns = data->ends_ns[i] - data->starts_ns[i];
        const int64_t middle_ns = (int64_t)(data->starts_ns[i] + ns / 2);
        const bool is_skipped = device->is_first || data->ends_ns[i] <= data->starts_ns[i] ||
                                ns / MOST_INTERVALS > device->interval_ns ||
                                !kprof_trace_limit_has(middle_ns, middle_ns);
        if (device->is_first)
            kprof_process_outlive_libraries(); /* with what CUPTI needs to stop them, and gets ready until here */
        device->is_first = false;
        if (!is_skipped)
            take_sample(device, data->starts_ns[i], data->ends_ns[i], data->values + i * device->pass->metrics.count);
    }
}

static void leave(sampled_device *device)
{
    kprof_engine.device->pm_sampling_close(device->sampling);
    device->sampling = NULL;
}

static size_t count_most(uint64_t interval_ns)
{
    const uint64_t count = POLLED_NS / interval_ns;
    const uint64_t most = KPROF_PM_MOST_SAMPLES;
    return (size_t)(count < FEWEST_SAMPLES ? FEWEST_SAMPLES : count > most ? most : count);
}

static kprof_status run(sampled_device *device)
{
    const uint64_t wanted_bytes = kprof_engine.process.config.timeline_buffer_bytes;
    const kprof_pm_setup setup = {.pass = device->pass,
                                  .interval_ns = device->interval_ns,
                                  .most_samples = count_most(device->interval_ns),
                                  .buffer_bytes = wanted_bytes > 0 ? (size_t)wanted_bytes : BUFFER_BYTES};
    kprof_status status = kprof_engine.device->pm_sampling_configure(device->sampling, &setup);
    KPROF_THEN(status, kprof_engine.device->pm_sampling_start(device->sampling));
    device->began_ns = device->passes_left > 0 ? kprof_trace_now_ns() : 0;
    return status;
}

static void give_up(sampled_device *device, kprof_status status)
{
    kprof_log(KPROF_LOG_WARNING, "GPU %u is not sampled over time from now on: %s", device->device,
              kprof_process_reason(status));
    /* As the process ends, what CUPTI has enabled goes with it. */
    if (!the_utilization.ended && kprof_engine.device->pm_sampling_disable(device->sampling) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "samples over time of GPU %u could not be ended", device->device);
    leave(device);
}

/* CUPTI completes no sample with counters of links of some GPUs. */
static kprof_status leave_out_links(sampled_device *device)
{
    kprof_log(KPROF_LOG_INFO,
              "GPU %u had no sample over time for %d s with counters of its links: it is sampled without these",
              device->device, (int)(FIRST_SAMPLE_NS / 1000000000));
    if (kprof_engine.device->pm_sampling_stop(device->sampling) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "samples over time could not be stopped");
    device->pass++;
    device->passes_left--;
    device->is_first = true;
    return run(device);
}

/* The process was held up, and the GPU's buffer is full: what is in it is lost. On an H200 CUPTI then starts nothing
 * but a new setup of its sampling. */
static kprof_status begin_anew(sampled_device *device, kprof_status why)
{
    if (device->began_ns > 0)
        return leave_out_links(device);
    if (device->restarts++ == 0)
        kprof_log(KPROF_LOG_WARNING, "samples of GPU %u over time were lost, and begin anew: %s", device->device,
                  kprof_process_reason(why));
    device->is_first = true;
    return device->restarts > MOST_RESTARTS ? why : run(device);
}

static void read_device(sampled_device *device)
{
    kprof_pm_data data;
    const size_t skipped = device->is_first;
    kprof_status status = kprof_engine.device->pm_sampling_read(device->sampling, &data);
    if (status == KPROF_OK)
        take_reading(device, &data);
    if (status == KPROF_OK && data.count > skipped) { /* they come with these counters, whatever is lost later */
        device->began_ns = 0;
        device->passes_left = 0;
    }
    if (status == KPROF_OK && data.is_cut && !device->is_told_cut) {
        kprof_log(KPROF_LOG_WARNING,
                  "GPU %u had more samples over time than kprof could read in time, and lacks some: give a larger "
                  "--pm-sampling-interval",
                  device->device);
        device->is_told_cut = true;
    }
    const bool is_late = device->began_ns > 0 && kprof_trace_now_ns() - device->began_ns > FIRST_SAMPLE_NS;
    if (status == KPROF_NOT_COLLECTED && !the_utilization.ended)
        status = begin_anew(device, status);
    else if (status == KPROF_OK && is_late && !the_utilization.ended)
        status = leave_out_links(device);
    if (status != KPROF_OK)
        give_up(device, status);
}

/* Begin to sample a device on which the program has a context. */
static void begin_device(const kprof_device *of)
{
    sampled_device *device = &the_utilization.devices[of->record.device];
    const uint64_t wanted = kprof_engine.process.config.timeline_interval_ns;
    if (device->pass || !of->metrics || of->metrics->timeline_count == 0 ||
        of->metrics->timelines->metrics.count > MOST_METRICS)
        return;
    *device = (sampled_device){.pass = of->metrics->timelines,
                               .passes_left = of->metrics->timeline_count - 1,
                               .device = of->record.device,
                               .interval_ns = wanted > 0 ? wanted : INTERVAL_NS,
                               .is_first = true,
                               .most_joined = 1,
                               .left = KPROF_UTILIZATION_SAMPLES};
    kprof_status status = kprof_engine.device->pm_sampling_open(device->device, of->metrics->chip, &device->sampling);
    KPROF_THEN(status, kprof_engine.device->pm_sampling_enable(device->sampling));
    KPROF_THEN(status, run(device));
    if (status != KPROF_OK)
        kprof_log(KPROF_LOG_WARNING, "GPU %u is not sampled over time, and the trace goes on without: %s",
                  device->device, kprof_process_reason(status));
    if (status != KPROF_OK && device->sampling)
        leave(device);
}

static size_t take_contexts(void **out)
{
    KPROF_HOLD(contexts.mutex);
    const size_t count = contexts.count;
    memcpy(out, contexts.items, count * sizeof *out);
    contexts.count = 0;
    return count;
}

static void add_context(void *context)
{
    KPROF_HOLD(contexts.mutex);
    if (contexts.count < MOST_CONTEXTS)
        contexts.items[contexts.count++] = context;
}

/* With the mutex held. A context that is being made may not be entered yet; `ends`: one is about to end, and may not be
 * looked at again. */
static void look_at_contexts(bool ends)
{
    void *found[MOST_CONTEXTS];
    const size_t count = take_contexts(found);
    for (size_t i = 0; i < count; i++) {
        uint32_t ordinal;
        const bool entered = kprof_engine.device->target_enter_context(found[i]);
        const bool is_current = kprof_engine.device->target_current_device(&ordinal) == KPROF_OK;
        const kprof_device *device = is_current ? kprof_devices_get(ordinal) : NULL;
        if (device)
            begin_device(device);
        if (entered)
            kprof_engine.device->target_leave_context();
        if (!is_current && !ends)
            add_context(found[i]);
    }
}

/* With the mutex held; true: something is sampled, or may be soon. */
static bool work(bool ends)
{
    bool samples = false;
    if (the_utilization.ended || !kprof_recording_runs())
        return false;
    look_at_contexts(ends);
    for (size_t i = 0; i < KPROF_MAX_DEVICES; i++) {
        if (the_utilization.devices[i].sampling)
            read_device(&the_utilization.devices[i]);
        samples = samples || the_utilization.devices[i].sampling;
    }
    KPROF_HOLD(contexts.mutex);
    return samples || contexts.count > 0;
}

static bool is_wanted(void)
{
    return kprof_trace_is_alone() && kprof_measures_timelines();
}

/* The thread that has the mutex is in CUPTI. If that does not return, the application still goes on: it waits once,
 * `times` as long as calls may wait. False, too, in a signal handler that has interrupted the thread with the mutex. */
static bool lock(int64_t times)
{
    static atomic_bool is_stuck;
    const int64_t limit_ns = atomic_load(&is_stuck) ? 0 : times * atomic_load(&kprof_engine.waits.hold_ns);
    const struct timespec until = kprof_deadline_of_day_after_ns(limit_ns);
    const int result = pthread_mutex_timedlock(&the_utilization.mutex, &until);
    if (result == ETIMEDOUT && !atomic_exchange(&is_stuck, true))
        kprof_log(KPROF_LOG_WARNING, "CUPTI keeps samples over time waiting: the application goes on without");
    if (result == 0)
        atomic_store(&is_stuck, false);
    return result == 0;
}

static bool lock_and_work(bool ends)
{
    if (!is_wanted() || !lock(TIMES_AT_CALLS))
        return false;
    const bool samples = work(ends);
    pthread_mutex_unlock(&the_utilization.mutex);
    return samples;
}

bool kprof_utilization_poll(void)
{
    return lock_and_work(false);
}

void kprof_utilization_settle(void)
{
    (void)lock_and_work(true);
}

void kprof_utilization_end(void)
{
    if (!is_wanted() || !lock(TIMES_AT_END))
        return;
    the_utilization.ended = true;
    for (size_t i = 0; i < KPROF_MAX_DEVICES; i++) {
        sampled_device *device = &the_utilization.devices[i];
        if (!device->sampling)
            continue;
        if (kprof_engine.device->pm_sampling_stop(device->sampling) == KPROF_OK)
            read_device(device);
        write_joined(device);
        if (device->sampling)
            leave(device);
    }
    pthread_mutex_unlock(&the_utilization.mutex);
}

void kprof_utilization_forget(void)
{
    pthread_mutex_init(&the_utilization.mutex, NULL);
    pthread_mutex_init(&contexts.mutex, NULL);
    memset(the_utilization.devices, 0, sizeof the_utilization.devices);
    the_utilization.ended = false;
    contexts.count = 0;
}

/* Nothing is sampled of a context that ends before anybody has looked at it, so look now. */
static void enter_call(const kprof_call *call)
{
    if (call->kind == KPROF_CALL_STOP)
        kprof_utilization_settle();
    kprof_recording_hooks.enter(call);
}

static void leave_call(const kprof_call *call)
{
    kprof_recording_hooks.leave(call);
}

static void note_context(void *context)
{
    add_context(context);
    kprof_idle_hurry();
    kprof_recording_hooks.context_created(context);
}

const kprof_target_hooks kprof_utilization_hooks = {
    .is_brief = true, .enter = enter_call, .leave = leave_call, .context_created = note_context};
