/* What is sampled over the time of launches in a batch, and what happens where that fails: the launches keep their
 * values, and each tells why it has nothing. The engine runs on the simulated machine. */
#define INSTRUCTIONS  1
#define TIMELINES     2
#define SECOND_METRIC "gpu__time_duration.sum"
#include "engine_test.h"

#include "inject/contexts.h"
#include "inject/process.h"
#include "test.h"

/* What goes wrong until the test is over. */
static struct {
    kprof_status open, enable, configure, start, read, disable;
    unsigned reads; /* that work before one fails */
    bool cuts;      /* a launch has more samples than are expected */
} faults;

static struct {
    unsigned enabled, disabled, started;
    uint64_t intervals[4]; /* as they were configured */
    unsigned configured;
    size_t most_samples;
    size_t expected[4]; /* of launches, when they were read */
    unsigned read;
    double duration_ns; /* of the launches; 0: as simulated */
    double other_ns;    /* of every second one; 0: the same */
} seen;

static kprof_status open_sampling(uint32_t device, const char *chip, kprof_pm_sampling **out)
{
    return faults.open == KPROF_OK ? sim_device.pm_sampling_open(device, chip, out) : kprof_fail(faults.open, "no MIG");
}

static kprof_status enable(kprof_pm_sampling *s)
{
    seen.enabled++;
    return faults.enable == KPROF_OK ? sim_device.pm_sampling_enable(s) : kprof_fail(faults.enable, "not allowed");
}

static kprof_status disable(kprof_pm_sampling *s)
{
    seen.disabled++;
    kprof_status status = sim_device.pm_sampling_disable(s);
    return faults.disable == KPROF_OK ? status : kprof_fail(faults.disable, "not disabled");
}

static kprof_status configure(kprof_pm_sampling *s, const kprof_pm_setup *setup)
{
    seen.intervals[seen.configured++ % 4] = setup->interval_ns;
    seen.most_samples = setup->most_samples;
    return faults.configure == KPROF_OK ? sim_device.pm_sampling_configure(s, setup)
                                        : kprof_fail(faults.configure, "two passes");
}

static kprof_status start(kprof_pm_sampling *s)
{
    seen.started++;
    return faults.start == KPROF_OK ? sim_device.pm_sampling_start(s) : kprof_fail(faults.start, "not started");
}

static kprof_status read_samples(kprof_pm_sampling *s, size_t expected, kprof_pm_data *out)
{
    kprof_status status = sim_device.pm_sampling_read_launch(s, expected, out);
    if (seen.read < 4)
        seen.expected[seen.read++] = expected;
    out->is_cut = out->is_cut || (expected > 0 && faults.cuts);
    if (faults.read == KPROF_OK || faults.reads-- > 0)
        return status;
    return kprof_fail(faults.read, "the buffer is full");
}

static kprof_status read_range(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    kprof_status status = sim_device.reader_read(reader, range, names, values);
    for (size_t i = 0; i < names->count && seen.duration_ns != 0; i++)
        if (strcmp(names->items[i], SECOND_METRIC) == 0)
            values[i] = range.index % 2 == 1 && seen.other_ns != 0 ? seen.other_ns : seen.duration_ns;
    return status;
}

static int start_faulty(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.target_capturing = is_capturing_to_others;
    device.pm_sampling_open = open_sampling;
    device.pm_sampling_enable = enable;
    device.pm_sampling_disable = disable;
    device.pm_sampling_configure = configure;
    device.pm_sampling_start = start;
    device.pm_sampling_read_launch = read_samples;
    device.reader_read = read_range;
    return start_engine_on(&device);
}

static int mend(void **state)
{
    close_batch();
    memset(&faults, 0, sizeof faults);
    memset(&seen, 0, sizeof seen);
    seen.duration_ns = 250000;
    kprof_engine.process.config.timeline_interval_ns = 0;
    return 0;
}

/* What a launch has over time. */
typedef struct timeline {
    unsigned records, rows, values_right;
    uint64_t interval_ns;
    double last_begin_ns, duration_ns;
    char reason[256];
} timeline;

static void note_timeline(const kprof_timeline_record *record, unsigned tag, timeline *out)
{
    const size_t width = 2 + (size_t)record->name_count;
    out->records++;
    out->interval_ns = record->interval_ns;
    snprintf(out->reason, sizeof out->reason, "%s", record->reason);
    for (uint32_t i = 0; i < record->value_count; i += width) {
        const double *row = record->values + i;
        out->rows++;
        out->last_begin_ns = row[0];
        out->duration_ns = row[1];
        out->values_right += row[2] == 50 && row[3] == sim_time_value(sim.signatures[tag], 1, (unsigned)(i / width));
    }
}

static timeline look_up_timeline(unsigned tag)
{
    kprof_spool_reader *reader = open_spool();
    kprof_record record;
    timeline found = {0};
    uint64_t position = UINT64_MAX;
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD) {
        if (record.type == KPROF_RECORD_LAUNCH && record.launch.grid[0] == tag)
            position = record.launch.launch;
        if (record.type == KPROF_RECORD_TIMELINE && record.timeline.launch == position)
            note_timeline(&record.timeline, tag, &found);
    }
    kprof_spool_reader_close(reader);
    return found;
}

/* The launch's own samples, without those before and behind it, in each pass. */
static void assert_has(unsigned tag, uint64_t interval_ns)
{
    const timeline found = look_up_timeline(tag);
    if (found.records != TIMELINES || found.rows != TIMELINES * SIM_TIME_SAMPLES || found.reason[0])
        fail_msg("%u rows in %u records, and the reason is \"%s\"", found.rows, found.records, found.reason);
    assert_int_equal(found.values_right, found.rows);
    assert_int_equal(found.interval_ns, interval_ns);
    assert_true(found.last_begin_ns == (double)((SIM_TIME_SAMPLES - 1) * interval_ns));
    assert_true(found.duration_ns == (double)interval_ns);
}

static void assert_lacks(unsigned tag, unsigned records, const char *reason)
{
    const timeline found = look_up_timeline(tag);
    if (found.records != records || found.rows != 0 || !strstr(found.reason, reason))
        fail_msg("%u records, %u rows, and the reason is \"%s\"; not \"%s\"", found.records, found.rows, found.reason,
                 reason);
}

TEST(each_launch_has_its_own_samples)
{
    unsigned first = launch(SIM_ADD), second = launch(SIM_COUNT);
    close_batch();
    for (unsigned tag = first; tag <= second; tag++) {
        assert_measured(tag);
        assert_has(tag, 5000); /* a hundred in 250 us are 2.5 us apart */
    }
    assert_int_equal(seen.enabled, 1);
    assert_int_equal(seen.disabled, 1);
    assert_int_equal(seen.configured, TIMELINES); /* once for both launches */
    assert_int_equal(seen.most_samples, 1000 + 200);
    assert_null(sim.contexts[0].over_time);
}

/* To set another interval up takes 0.2 s, so long and short kernels in turn take two replays for each pass. */
TEST(launches_of_one_interval_share_what_is_configured)
{
    seen.other_ns = 50000;
    unsigned first = launch(SIM_ADD);
    for (unsigned i = 1; i < 4; i++)
        (void)launch(i % 2 ? SIM_COUNT : SIM_ADD);
    close_batch();
    for (unsigned i = 0; i < 4; i++)
        assert_has(first + i, i % 2 ? 1000 : 5000);
    assert_int_equal(seen.configured, 2 * TIMELINES);
    assert_int_equal(seen.started, 4 * TIMELINES);
    assert_int_equal(seen.disabled, 1);
}

TEST(what_was_cut_is_sampled_again)
{
    faults.cuts = true;
    unsigned tag = launch(SIM_ADD);
    (void)launch(SIM_COUNT);
    close_batch();
    assert_has(tag, 5000);
    assert_has(tag + 1, 5000);
    assert_int_equal(seen.configured, TIMELINES);
    assert_int_equal(seen.expected[0], 51);
    /* Both again, and from then on with as much space as there is. */
    assert_int_equal(seen.started, 2 + 2 * TIMELINES);
    assert_int_equal(seen.expected[2], 0);
    assert_int_equal(seen.disabled, 1);
}

TEST(the_duration_tells_how_often)
{
    static const struct {
        double duration_ns;
        uint64_t interval_ns;
    } cases[] = {{3000, 1000},
                 {100000, 1000},
                 {100001, 2000},
                 {1900000, 20000},
                 {19e6, 20000},
                 {21e6, 50000},
                 /* a thousand, and no more */ {3e9, 5000000},
                 {-1, 10000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen.duration_ns = cases[i].duration_ns;
        unsigned tag = launch(SIM_ADD);
        close_batch();
        assert_has(tag, cases[i].interval_ns);
    }
}

TEST(the_user_may_tell_how_often)
{
    kprof_engine.process.config.timeline_interval_ns = 1234;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_has(tag, 1234);
    assert_int_equal(seen.most_samples, KPROF_PM_MOST_SAMPLES);
}

TEST(what_cannot_be_opened)
{
    kprof_contexts_forget(&sim.contexts[0], false); /* it has sampled before */
    faults.open = KPROF_UNSUPPORTED;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_lacks(tag, 1, "no MIG");
    assert_int_equal(seen.enabled, 0);
}

TEST(what_is_not_allowed)
{
    faults.enable = KPROF_NO_PERMISSION;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_lacks(tag, 1, "not allowed");
    assert_int_equal(seen.started, 0);
    faults.enable = KPROF_OK;
    tag = launch(SIM_ADD);
    close_batch();
    assert_has(tag, 5000);
}

TEST(what_cannot_be_configured_or_started)
{
    faults.configure = KPROF_UNSUPPORTED;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_lacks(tag, TIMELINES, "two passes");
    faults.configure = KPROF_OK;
    faults.start = KPROF_INTERNAL;
    tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_lacks(tag, TIMELINES, "not started");
    assert_int_equal(seen.disabled, 2);
}

/* The first pass has samples, and the second none. */
TEST(what_cannot_be_read)
{
    faults.read = KPROF_NOT_COLLECTED;
    faults.reads = 1;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    const timeline found = look_up_timeline(tag);
    assert_int_equal(found.records, 2);
    assert_int_equal(found.rows, SIM_TIME_SAMPLES);
    assert_string_equal(found.reason, "the buffer is full");
}

TEST(launches_that_are_not_repeated)
{
    kprof_engine.process.config.replay_choice = KPROF_MULTIPLEX_ALL;
    unsigned tag = launch(SIM_ADD);
    end_samples();
    kprof_engine.process.config.replay_choice = KPROF_REPLAY_WHERE_PROVED;
    assert_lacks(tag, 1, "was not repeated");
    assert_int_equal(seen.enabled, 0);
}

TEST(instructions_are_measured_too)
{
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_has(tag, 5000);
    assert_true(kprof_contexts_find(&sim.contexts[0])->pc_samples);
    assert_null(sim.contexts[0].counting);
    assert_non_null(sim.contexts[0].sampling); /* kernels that are loaded before the next batch get samples, too */
}

/* Nothing is measured any more, and the application runs on. */
TEST(samples_that_cannot_be_ended)
{
    faults.disable = KPROF_INTERNAL;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_has(tag, 5000);
    assert_false(atomic_load(&kprof_engine.process.armed));
}

AROUND_EACH(mend, NULL)
AROUND_ALL(start_faulty, remove_folder)
