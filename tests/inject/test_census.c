/* Tests what a census keeps of launches, and when it tells. The device hands over the activities that a test makes up,
 * and records are kept here instead of written. */
#include "inject/census.h"
#include "inject/deliver.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "inject/kernels.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/wait.h"
#include "log_capture.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define MOST_WRITTEN 32

static kprof_activity_sink sink;
static kprof_activity_scope scope;
static unsigned flushes, announced;
static kprof_census_record written[MOST_WRITTEN];
static size_t written_count;
static log_capture captured;

static kprof_status activities_start(const kprof_activity_sink *wanted, kprof_activity_scope what)
{
    sink = *wanted;
    scope = what;
    return KPROF_OK;
}

static size_t activities_flush(void)
{
    flushes++;
    return 0;
}

static const kprof_device_ops device = {.activities_start = activities_start, .activities_flush = activities_flush};

/* In place of the engine's. */
void kprof_devices_announce(void) {}
void kprof_process_outlive_libraries(void) {}
bool kprof_idle_may_be_handler(void)
{
    return false;
}

void kprof_idle_watch(void) {}
kprof_status kprof_wait_at_most(void *context, int64_t limit_ns)
{
    return KPROF_OK;
}

void kprof_deliver_kernel(const kprof_kernel *kernel)
{
    announced++;
}

void kprof_process_write(const kprof_record *record)
{
    assert_int_equal(record->type, KPROF_RECORD_CENSUS);
    if (written_count < MOST_WRITTEN)
        written[written_count] = record->census;
    written_count++;
}

static void launch(const char *mangled, uint32_t grid, int64_t ns)
{
    kprof_activity kernel = {.kind = KPROF_ACTIVITY_KERNEL, .kernel = {.start_ns = 100, .end_ns = 100 + ns}};
    kernel.kernel.name = sink.name(mangled, true);
    kernel.kernel.grid_x = grid;
    kernel.kernel.grid_y = kernel.kernel.grid_z = kernel.kernel.block_y = kernel.kernel.block_z = 1;
    kernel.kernel.block_x = 32;
    sink.take(&kernel);
}

static void write_all(void)
{
    written_count = 0;
    kprof_census_end();
}

TEST(rows_are_written_as_they_grow)
{
    assert_int_equal(scope, KPROF_ACTIVITIES_OF_KERNELS);
    launch("first", 8, 30);
    launch("first", 8, 10);
    launch("first", 9, 5);
    launch("second", 8, 7);
    sink.end(0, 0); /* too early to write anything */
    assert_int_equal(written_count, 0);
    write_all();
    assert_int_equal(written_count, 3);
    assert_int_equal(announced, 2);
    assert_int_equal(flushes, 1);
    const kprof_census_record first = {1, 1, 0, {8, 1, 1}, {32, 1, 1}, 0, 2, 40, 10, 30};
    assert_memory_equal(&written[0], &first, sizeof first);
    assert_int_equal(written[2].kernel, 2);
    launch("second", 8, 9);
    write_all();
    assert_int_equal(written_count, 1); /* the others have not changed */
    assert_int_equal(written[0].row, 3);
    assert_int_equal(written[0].launches, 2);
    assert_int_equal(written[0].total_ns, 16);
    assert_int_equal(captured.count, 0);
}

/* Names take the places of others in a small table, and kernels keep their numbers. */
TEST(many_names)
{
    char name[16];
    const unsigned before = announced;
    for (int i = 0; i < 6000; i++) {
        snprintf(name, sizeof name, "kernel%d", i % 3000);
        launch(name, 7, 1);
    }
    assert_int_equal(announced, before + 3000);
    write_all();
    assert_int_equal(written_count, 3000);
    assert_int_equal(written[0].launches, 2);
}

TEST(further_shapes_are_told_together)
{
    for (uint32_t i = 0; i < KPROF_CENSUS_SHAPES + 10; i++)
        launch("shapes", 1000 + i, 3);
    launch("last", 5, 4);
    write_all();
    assert_true(written_count <= KPROF_CENSUS_SHAPES + 2);
    written_count = 0;
    launch("shapes", 1, 3);
    launch("last", 6, 4);
    kprof_census_end();
    assert_int_equal(written_count, 2);
    for (size_t i = 0; i < written_count; i++)
        assert_int_equal(written[i].grid[0] + written[i].block[0], 0);
    assert_true(written[0].launches > 10);
    assert_int_equal(written[1].launches, 2);
}

TEST(each_turn_has_as_many_shapes)
{
    launch("shapes", 1, 3);
    write_all();
    const uint32_t last = written[0].row;
    kprof_census_begin_turn();
    launch("shapes", 1, 3);
    write_all();
    assert_int_equal(written_count, 1);
    assert_int_equal(written[0].grid[0], 1);
    assert_int_equal(written[0].launches, 1);
    assert_true(written[0].row > last);
}

TEST(losses_are_told_once)
{
    const uint64_t before = kprof_engine.process.launches;
    kprof_engine.process.config.only_records = false;
    launch("first", 8, 1); /* which the call has counted */
    assert_true(kprof_engine.process.launches == before);
    kprof_engine.process.config.only_records = true;
    write_all();
    launch("first", 8, -101); /* the times are not known */
    sink.end(2, 5);
    assert_true(kprof_engine.process.launches == before + 3);
    write_all();
    assert_int_equal(written_count, 0);
    assert_int_equal(captured.count, 1);
    assert_non_null(strstr(captured.last, "the census lacks the time of 3 launches, which CUPTI could not keep"));
    write_all();
    assert_int_equal(captured.count, 1);
}

static bool is_top(const char *mangled)
{
    return kprof_kernels_find_named(mangled, false, kprof_engine.process.filter, kprof_deliver_kernel)->is_top;
}

static kprof_kernel *find_launched(const char *mangled)
{
    static char handles[16];
    const kprof_call call = {.function = handles, .context = handles, .kernel_name = mangled};
    return kprof_kernels_find(&call, kprof_engine.process.filter, kprof_deliver_kernel);
}

/* As a launch finds it, which knows its registers. */
static void ask_registers(const kprof_call *call, kprof_kernel_record *out)
{
    out->registers_per_thread = 32;
}

static void note_variables(const kprof_call *call) {}

static unsigned count_no_unloads(void)
{
    return 0;
}

TEST(kernels_with_most_time_are_chosen)
{
    const int64_t much = 1000000000;
    kprof_engine.device = &(kprof_device_ops){.activities_flush = activities_flush,
                                              .target_kernel = ask_registers,
                                              .target_note_variables = note_variables,
                                              .snapshot_unloads = count_no_unloads};
    kprof_engine.process.config.census_top = 2;
    const kprof_kernel *launched = find_launched("rises");
    launch("one", 8, 5 * much);
    launch("two", 8, 4 * much);
    launch("rises", 8, 2 * much);
    launch("rises", 9, much);
    sink.end(0, 0);
    assert_true(is_top("one") && is_top("two") && !is_top("rises") && !launched->is_top);
    launch("rises", 8, 2 * much);
    sink.end(0, 0);
    assert_true(is_top("two") && !is_top("rises")); /* there is not a quarter more */
    launch("one", 8, 2 * much);
    sink.end(0, 0);
    assert_true(is_top("one") && !is_top("two") && is_top("rises") && launched->is_top);
    kprof_engine.process.config.census_top = 0;
    kprof_engine.device = &device;
}

TEST(nothing_is_counted_in_a_forked_child)
{
    kprof_recording_forget();
    launch("first", 8, 1);
    write_all();
    assert_int_equal(written_count, 0);
}

static int set_up(void **state)
{
    log_capture_start(&captured);
    kprof_engine.device = &device;
    kprof_engine.process.armed = true;
    const kprof_filter_spec all = {.kernel = NULL};
    kprof_engine.process.config.census = true;
    return kprof_filter_new(&all, &kprof_engine.process.filter) == KPROF_OK && kprof_census_start() == KPROF_OK ? 0 : 1;
}

AROUND_ALL(set_up, NULL)
