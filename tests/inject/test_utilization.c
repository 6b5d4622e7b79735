/* Samples over the time of a program: which are written, what many of them become, and what happens where the device
 * refuses. Readings are made up here, and what is written is kept. */
#include "inject/utilization.h"

#include "core/log.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/trace.h"
#include "inject/trace_limit.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define INTERVAL  1000000
#define START     INT64_C(1700000000000000000)
#define MOST_KEPT (3 * KPROF_UTILIZATION_SAMPLES)

static struct {
    kprof_status enables, starts, reads;
    unsigned opened, enabled, disabled, started, closed, warnings;
    bool is_running;
    unsigned outlived;        /* libraries, which CUPTI loads with the first reading */
    int64_t next;             /* the sample to be given; the first one has what was before */
    size_t count, most;       /* to be given in all, and in one reading */
    int64_t lost, lost_count; /* which samples CUPTI loses */
    int64_t endless;          /* which one ends far behind the others; 0: none */
    bool knows_nothing;       /* of the second metric */
    unsigned configured;
    const kprof_chip_timeline *pass;
    int64_t now_ns;
    atomic_bool keeps, is_kept; /* enabling does not return */
    uint64_t starts_ns[KPROF_PM_MOST_SAMPLES], ends_ns[KPROF_PM_MOST_SAMPLES];
    double values[2 * KPROF_PM_MOST_SAMPLES];
} gpu;

static struct {
    kprof_sample_activity items[MOST_KEPT]; /* of the first metric */
    size_t count, unknown;                  /* unknown: of the second one */
} written;

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static char *metrics[] = {"sm__cycles_active", "dram__bytes_read"};
static kprof_chip_timeline pass = {.metrics = {metrics, 2, 2}};
static kprof_chip_timeline passes[2] = {{.metrics = {metrics, 2, 2}}, {.metrics = {metrics, 2, 2}}}; /* with links */
static kprof_chip_metrics chip = {.chip = "GH100", .timelines = &pass, .timeline_count = 1};
static kprof_device devices[2] = {{.record = {.device = 0}, .metrics = &chip}, {.record = {.device = 1}}};
static uint32_t current;

/* In place of the engine's. */
static atomic_bool runs = true;
bool kprof_recording_runs(void)
{
    return atomic_load(&runs);
}
static void ignore_call(const kprof_call *call) {}
static void ignore_context(void *context) {}
const kprof_target_hooks kprof_recording_hooks = {
    .enter = ignore_call, .leave = ignore_call, .context_created = ignore_context};
void kprof_idle_hurry(void) {}

void kprof_process_outlive_libraries(void)
{
    gpu.outlived++;
}
const char *kprof_process_reason(kprof_status status)
{
    return kprof_status_message(status);
}
const kprof_device *kprof_devices_get(uint32_t ordinal)
{
    return &devices[ordinal];
}
int64_t kprof_trace_now_ns(void)
{
    return START + gpu.now_ns;
}
void kprof_trace_take_sample(const kprof_sample_activity *sample, const char *metric)
{
    assert_int_equal(sample->device, 0);
    if (strcmp(metric, metrics[0]) == 0)
        written.items[written.count++] = *sample;
    else
        written.unknown += sample->value_millionths == -1;
}

static bool enter_context(void *context)
{
    current = (uint32_t)(uintptr_t)context - 1;
    return true;
}
static void leave_context(void) {}
static bool is_made = true; /* contexts may be entered */
static kprof_status current_device(uint32_t *out)
{
    *out = current;
    return is_made ? KPROF_OK : KPROF_INTERNAL;
}
static kprof_status sampling_open(uint32_t device, const char *name, kprof_pm_sampling **out)
{
    assert_int_equal(device, 0);
    assert_string_equal(name, "GH100");
    gpu.opened++;
    *out = (kprof_pm_sampling *)&gpu;
    return KPROF_OK;
}
static kprof_status sampling_enable(kprof_pm_sampling *sampling)
{
    gpu.enabled++;
    while (atomic_load(&gpu.keeps)) {
        atomic_store(&gpu.is_kept, true);
        wait_ms(1);
    }
    return gpu.enables;
}
static kprof_status sampling_disable(kprof_pm_sampling *sampling)
{
    gpu.is_running = false;
    gpu.disabled++;
    return KPROF_OK;
}
static kprof_status sampling_configure(kprof_pm_sampling *sampling, const kprof_pm_setup *setup)
{
    gpu.is_running = false;
    assert_int_equal(setup->interval_ns, INTERVAL);
    assert_true(setup->pass == &pass || setup->pass == &passes[0] || setup->pass == &passes[1]);
    gpu.pass = setup->pass;
    gpu.most = setup->most_samples;
    gpu.configured++;
    return KPROF_OK;
}
static kprof_status sampling_start(kprof_pm_sampling *sampling)
{
    assert_false(gpu.is_running);
    gpu.started++;
    gpu.is_running = gpu.starts == KPROF_OK;
    return gpu.starts;
}
static kprof_status sampling_stop(kprof_pm_sampling *sampling)
{
    assert_true(gpu.is_running);
    gpu.is_running = false;
    return KPROF_OK;
}
static void sampling_close(kprof_pm_sampling *sampling)
{
    assert_false(gpu.is_running);
    gpu.closed++;
}
/* Sample i has the value i % 100 for the first metric. */
static kprof_status sampling_read(kprof_pm_sampling *sampling, kprof_pm_data *out)
{
    *out = (kprof_pm_data){.starts_ns = gpu.starts_ns, .ends_ns = gpu.ends_ns, .values = gpu.values};
    for (; gpu.count > 0 && out->count < gpu.most; gpu.count--, gpu.next++) {
        if (gpu.next >= gpu.lost && gpu.next < gpu.lost + gpu.lost_count)
            continue;
        gpu.starts_ns[out->count] = (uint64_t)(START + gpu.next * INTERVAL);
        gpu.ends_ns[out->count] =
            gpu.starts_ns[out->count] + (gpu.endless > 0 && gpu.next == gpu.endless ? 1000 : 1) * INTERVAL;
        gpu.values[2 * out->count] = gpu.next < 0 ? 1e9 : (double)(gpu.next % 100);
        gpu.values[2 * out->count++ + 1] = gpu.knows_nothing ? NAN : 50;
    }
    out->is_cut = gpu.count > 0;
    return gpu.reads;
}

static const kprof_device_ops device = {.target_enter_context = enter_context,
                                        .target_leave_context = leave_context,
                                        .target_current_device = current_device,
                                        .pm_sampling_open = sampling_open,
                                        .pm_sampling_enable = sampling_enable,
                                        .pm_sampling_disable = sampling_disable,
                                        .pm_sampling_configure = sampling_configure,
                                        .pm_sampling_start = sampling_start,
                                        .pm_sampling_stop = sampling_stop,
                                        .pm_sampling_read = sampling_read,
                                        .pm_sampling_close = sampling_close};

static void count_warnings(void *user, kprof_log_level level, const char *message)
{
    gpu.warnings += level == KPROF_LOG_WARNING;
}

static void give(size_t count)
{
    gpu.count += count;
}

static int begin(void **state)
{
    memset(&gpu, 0, sizeof gpu);
    written.count = written.unknown = 0;
    gpu.next = -1;
    gpu.lost = INT64_MAX / 2;
    atomic_store(&runs, true);
    chip.timelines = &pass;
    chip.timeline_count = 1;
    kprof_engine.device = &device;
    kprof_engine.process.config = (kprof_config){.only_records = true, .traces = true, .chips = &chip, .chip_count = 1};
    kprof_utilization_forget();
    kprof_log_set_sink(count_warnings, NULL);
    return 0;
}

static void see_context(uint32_t ordinal)
{
    kprof_utilization_hooks.context_created((void *)(uintptr_t)(ordinal + 1));
}

static void assert_sample(size_t i, int64_t from, int64_t to, double value)
{
    assert_int_equal(written.items[i].start_ns, START + from * INTERVAL);
    assert_int_equal(written.items[i].end_ns, START + to * INTERVAL);
    assert_int_equal(written.items[i].value_millionths, llround(value * 1e6));
}

TEST_WITH(each_sample_but_the_first_is_written, begin, NULL)
{
    assert_false(kprof_utilization_poll()); /* no context, nothing to do */
    see_context(1);                         /* whose chip has no counters */
    assert_false(kprof_utilization_poll());
    see_context(0);
    see_context(0);
    give(1);
    assert_true(kprof_utilization_poll());
    assert_int_equal(gpu.enabled, 1);
    assert_int_equal(written.count, 0);
    assert_int_equal(gpu.most, 1000); /* a second */
    give(1500);
    assert_true(kprof_utilization_poll());
    assert_int_equal(written.count, 1000);
    assert_int_equal(gpu.warnings, 1);
    assert_true(kprof_utilization_poll());
    assert_int_equal(written.count, 1500);
    for (size_t i = 0; i < 1500; i++)
        assert_sample(i, (int64_t)i, (int64_t)i + 1, (double)(i % 100));
    give(2);
    kprof_utilization_end();
    assert_int_equal(written.count, 1502);
    assert_int_equal(gpu.closed, 1);
    see_context(0);
    assert_false(kprof_utilization_poll());
    assert_int_equal(gpu.enabled, 1);
    assert_int_equal(gpu.warnings, 1);
}

TEST_WITH(many_become_few, begin, NULL)
{
    const size_t first = KPROF_UTILIZATION_SAMPLES, part = first / 2;
    see_context(0);
    give(1);
    for (size_t i = 0; i < 4 * first; i += 512) {
        give(512);
        assert_true(kprof_utilization_poll());
    }
    /* The first ones as they are, as many again in pairs, and twice as many in fours. */
    assert_int_equal(written.count, first + 2 * part);
    assert_sample(first - 1, (int64_t)first - 1, (int64_t)first, (double)((first - 1) % 100));
    assert_sample(first, (int64_t)first, (int64_t)first + 2, (double)(first % 100) + 0.5);
    assert_sample(first + part, 2 * (int64_t)first, 2 * (int64_t)first + 4, (double)(2 * first % 100) + 1.5);
    for (size_t i = 1; i < written.count; i++)
        assert_int_equal(written.items[i].start_ns, written.items[i - 1].end_ns);
    give(3); /* of eight */
    kprof_utilization_end();
    assert_int_equal(written.count, first + 2 * part + 1);
    assert_sample(first + 2 * part, 4 * (int64_t)first, 4 * (int64_t)first + 3, (double)(4 * first % 100) + 1);
}

TEST_WITH(a_sample_that_covers_others_is_left_out, begin, NULL)
{
    gpu.endless = 10;
    see_context(0);
    give(21);
    assert_true(kprof_utilization_poll());
    assert_int_equal(written.count, 19);
    assert_sample(9, 9, 10, 9);
    assert_sample(10, 11, 12, 11);
}

TEST_WITH(gaps_stay, begin, NULL)
{
    gpu.lost = 10;
    gpu.lost_count = 5;
    gpu.knows_nothing = true;
    see_context(0);
    give(21);
    assert_true(kprof_utilization_poll());
    assert_int_equal(written.count, 15);
    assert_int_equal(written.unknown, 15);
    assert_sample(9, 9, 10, 9);
    assert_sample(10, 15, 16, 15);
}

TEST_WITH(no_joined_sample_spans_a_gap, begin, NULL)
{
    const int64_t first = KPROF_UTILIZATION_SAMPLES;
    gpu.lost = first + 3;
    gpu.lost_count = 5;
    see_context(0);
    for (int64_t i = 0; i < first; i += 512) {
        give(512);
        assert_true(kprof_utilization_poll());
    }
    give(11);
    assert_true(kprof_utilization_poll());
    assert_sample((size_t)first, first, first + 2, (double)(first % 100) + 0.5);
    assert_sample((size_t)first + 1, first + 2, first + 3, (double)((first + 2) % 100));
    assert_sample((size_t)first + 2, first + 8, first + 10, (double)((first + 8) % 100) + 0.5);
}

TEST_WITH(a_refusal_is_told_once, begin, NULL)
{
    kprof_status *const faults[] = {&gpu.enables, &gpu.starts, &gpu.reads};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        begin(state);
        *faults[i] = KPROF_NO_PERMISSION;
        see_context(0);
        for (int k = 0; k < 3; k++) {
            give(5);
            assert_false(kprof_utilization_poll());
        }
        see_context(0);
        assert_false(kprof_utilization_poll());
        kprof_utilization_end();
        assert_int_equal(gpu.warnings, 1);
        assert_int_equal(gpu.enabled, 1);
        assert_int_equal(gpu.closed, 1);
        assert_int_equal(gpu.disabled, faults[i] == &gpu.reads);
        assert_int_equal(written.count, 0);
    }
}

TEST_WITH(a_context_that_ends_is_looked_at, begin, NULL)
{
    const kprof_call stop = {.kind = KPROF_CALL_STOP}, other = {.kind = KPROF_CALL_LAUNCH};
    see_context(0);
    give(5);
    kprof_utilization_hooks.enter(&other);
    assert_int_equal(gpu.enabled, 0);
    kprof_utilization_hooks.enter(&stop);
    assert_int_equal(written.count, 4);
}

TEST_WITH(a_context_that_is_being_made_is_looked_at_later, begin, NULL)
{
    const kprof_call stop = {.kind = KPROF_CALL_STOP};
    is_made = false;
    see_context(0);
    assert_true(kprof_utilization_poll());
    assert_int_equal(gpu.opened, 0);
    is_made = true;
    assert_true(kprof_utilization_poll());
    begin(state);
    is_made = false;
    see_context(0);
    kprof_utilization_hooks.enter(&stop); /* it is gone then */
    is_made = true;
    assert_false(kprof_utilization_poll());
}

TEST_WITH(what_is_lost_is_told_and_samples_begin_anew, begin, NULL)
{
    see_context(0);
    give(11);
    assert_true(kprof_utilization_poll());
    assert_int_equal(written.count, 10);
    for (int i = 0; i < 2; i++) {
        gpu.reads = KPROF_NOT_COLLECTED;
        assert_true(kprof_utilization_poll());
        gpu.reads = KPROF_OK;
        gpu.next += 100;
        give(6); /* the first of which has what was before */
        assert_true(kprof_utilization_poll());
    }
    assert_int_equal(written.count, 20);
    assert_sample(10, 111, 112, 11);
    assert_int_equal(gpu.outlived, 3);
    assert_int_equal(gpu.configured, 3);
    assert_int_equal(gpu.warnings, 1);
    gpu.reads = KPROF_NOT_COLLECTED;
    kprof_utilization_end(); /* and not again */
    assert_int_equal(gpu.configured, 3);
    assert_int_equal(gpu.closed, 1);
}

static void pass_time(int64_t ms)
{
    gpu.now_ns += ms * 1000000;
    assert_true(kprof_utilization_poll());
}

/* As CUPTI gives no sample with their counters, or none but the first, or the buffer becomes full meanwhile. */
TEST_WITH(links_are_left_out_where_no_sample_comes, begin, NULL)
{
    for (int i = 0; i < 3; i++) {
        begin(state);
        chip.timelines = passes;
        chip.timeline_count = 2;
        see_context(0);
        pass_time(0);
        give((size_t)i % 2);
        pass_time(1900);
        assert_ptr_equal(gpu.pass, &passes[0]);
        gpu.reads = i == 2 ? KPROF_NOT_COLLECTED : KPROF_OK;
        pass_time(i == 2 ? 0 : 200);
        gpu.reads = KPROF_OK;
        assert_ptr_equal(gpu.pass, &passes[1]);
        gpu.next = -1;
        give(6);
        pass_time(5000);
        pass_time(5000);
        assert_int_equal(gpu.configured, 2);
        assert_int_equal(written.count, 5);
        assert_int_equal(gpu.warnings, 0);
        kprof_utilization_end();
    }
}

TEST_WITH(links_are_sampled_where_samples_come, begin, NULL)
{
    chip.timelines = passes;
    chip.timeline_count = 2;
    see_context(0);
    pass_time(0);
    give(2);
    pass_time(1900);
    pass_time(5000);
    assert_int_equal(gpu.configured, 1);
    gpu.reads = KPROF_NOT_COLLECTED; /* the process is held up, more than once */
    pass_time(5000);
    pass_time(5000);
    gpu.reads = KPROF_OK;
    pass_time(5000);
    assert_int_equal(gpu.configured, 3);
    assert_ptr_equal(gpu.pass, &passes[0]);
    kprof_utilization_end();
}

static void *poll_in_thread(void *unused)
{
    (void)kprof_utilization_poll();
    return unused;
}

TEST_WITH(nobody_waits_for_cupti_for_long, begin, NULL)
{
    const kprof_call stop = {.kind = KPROF_CALL_STOP};
    const int64_t hold_ns = atomic_exchange(&kprof_engine.waits.hold_ns, 100000);
    pthread_t thread;
    atomic_store(&gpu.keeps, true);
    see_context(0);
    assert_int_equal(pthread_create(&thread, NULL, poll_in_thread, NULL), 0);
    while (!atomic_load(&gpu.is_kept))
        wait_ms(1);
    kprof_utilization_hooks.enter(&stop);
    kprof_utilization_end();
    assert_int_equal(gpu.warnings, 1);
    atomic_store(&gpu.keeps, false);
    pthread_join(thread, NULL);
    kprof_utilization_end();
    assert_int_equal(gpu.closed, 1);
    atomic_store(&kprof_engine.waits.hold_ns, hold_ns);
}

TEST_WITH(nothing_is_sampled_without_a_trace, begin, NULL)
{
    see_context(0);
    atomic_store(&runs, false);
    assert_false(kprof_utilization_poll());
    atomic_store(&runs, true);
    kprof_engine.process.config.only_records = false;
    assert_false(kprof_utilization_poll());
    kprof_engine.process.config.only_records = true;
    kprof_utilization_forget(); /* in a forked child, whose parent has the context */
    assert_false(kprof_utilization_poll());
    assert_int_equal(gpu.opened, 0);
}

/* The program starts or stops profiling after so many samples. */
static void call_profiler(bool starts, int64_t after)
{
    kprof_filter_note_profiler(kprof_engine.process.filter, starts);
    (void)kprof_trace_limit_follow(START + after * INTERVAL, 0);
}

static void limit_trace(void)
{
    kprof_filter_spec *spec = &kprof_engine.process.config.filter;
    spec->profiler_calls = KPROF_FROM_A_START_CALL;
    assert_int_equal(kprof_filter_new(spec, &kprof_engine.process.filter), KPROF_OK);
}

static int end_limit(void **state)
{
    kprof_filter_free(kprof_engine.process.filter);
    kprof_engine.process.filter = NULL;
    return 0;
}

TEST_WITH(samples_outside_of_what_is_chosen_are_left_out, begin, end_limit)
{
    limit_trace();
    see_context(0);
    call_profiler(true, 10);
    call_profiler(true, 12); /* as the driver's call tells it again */
    call_profiler(false, 20);
    call_profiler(true, 30);
    give(41);
    assert_true(kprof_utilization_poll());
    assert_int_equal(written.count, 20);
    assert_sample(0, 10, 11, 10);
    assert_sample(9, 19, 20, 19);
    assert_sample(10, 30, 31, 30);
    kprof_utilization_end();
}

/* More than are kept. What is so long ago that it is not known is not left out. */
TEST_WITH(many_times_are_chosen, begin, end_limit)
{
    const int64_t many = 20000;
    limit_trace();
    for (int64_t i = 100; i < 100 + 2 * many; i++)
        call_profiler(i % 2 == 0, i);
    const int64_t last = START + (100 + 2 * many - 2) * INTERVAL;
    assert_true(kprof_trace_limit_is_out());
    assert_true(kprof_trace_limit_has(last, last + INTERVAL / 2));
    assert_true(kprof_trace_limit_has(last - 20 * INTERVAL, last - 20 * INTERVAL));
    assert_false(kprof_trace_limit_has(last - INTERVAL / 2, last - INTERVAL / 2));
    assert_false(kprof_trace_limit_has(last + 2 * INTERVAL, last + 9 * INTERVAL));
    assert_false(kprof_trace_limit_has(last - INTERVAL / 2, last));
    assert_true(kprof_trace_limit_has(last - INTERVAL / 2, last + 1));
    assert_false(kprof_trace_limit_has(last + INTERVAL, last + INTERVAL));
    assert_true(kprof_trace_limit_has(START + 101 * INTERVAL, START + 101 * INTERVAL));
}
