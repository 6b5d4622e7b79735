/* Every field of core/fields.h makes its way from a record through the report into the model, whatever fields there
 * are, and docs/report-schema.md explains every column. */

#include "fixture.h"
#include "report/model/model.h"
#include "report/store/rows.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static char path[512];

static int set_up(void **state)
{
    snprintf(path, sizeof path, "%s", fixture_path("rows.kprof"));
    return 0;
}

static int tear_down(void **state)
{
    return unlink(path);
}

/* Another number for each field, too large for a type that is too small. */
static uint32_t next_u32(void)
{
    static uint32_t last = 0x80000000;
    return ++last;
}

static const char *next_text(void)
{
    static char texts[64][16];
    static size_t count;
    assert_true(count < 64);
    snprintf(texts[count], sizeof texts[count], "text %zu", count);
    return texts[count++];
}

#define FILL_U32(member)   record.member = next_u32();
#define FILL_U64(member)   record.member = ((uint64_t)next_u32() << 31) + next_u32();
#define FILL_I64(member)   record.member = -((int64_t)next_u32() << 31) - next_u32();
#define FILL_TEXT(member)  record.member = next_text();
#define FILL_MODE(member)  record.member = KPROF_REPLAY_BATCH;
#define FILL_SHAPE(member) record.member[0] = next_u32(), record.member[1] = next_u32(), record.member[2] = next_u32();
#define FILL_VALUES(member)
#define FILL_SPREADS(member)
#define FILL(kind, member, ...) FILL_##kind(member)
#define NOTHING(...)
#define FILLED(NAME, name)                                                                                             \
    static kprof_##name##_record filled_##name(void)                                                                   \
    {                                                                                                                  \
        kprof_##name##_record record = {0};                                                                            \
        KPROF_##NAME##_FIELDS(FILL, FILL, NOTHING) return record;                                                      \
    }
FILLED(PROCESS, process)
FILLED(DEVICE, device)
FILLED(KERNEL, kernel)
FILLED(LAUNCH, launch)
FILLED(CENSUS, census)

#define SAME_U32(a, b)   ((a) == (b))
#define SAME_U64         SAME_U32
#define SAME_I64         SAME_U32
#define SAME_TEXT(a, b)  (strcmp(a, b) == 0)
#define SAME_SHAPE(a, b) (memcmp(a, b, sizeof(kprof_type_SHAPE)) == 0)
#define EXPECT(kind, member, ...)                                                                                      \
    if (!SAME_##kind(got->member, expected->member))                                                                   \
        fail_msg("%s is not what was stored", #member);
#define EXPECT_SAME(NAME, name)                                                                                        \
    static void expect_##name(const kprof_##name##_record *got, const kprof_##name##_record *expected)                 \
    {                                                                                                                  \
        KPROF_##NAME##_FIELDS(EXPECT, NOTHING, NOTHING)                                                                \
    }
EXPECT_SAME(PROCESS, process)
EXPECT_SAME(DEVICE, device)
EXPECT_SAME(KERNEL, kernel)
EXPECT_SAME(LAUNCH, launch)
EXPECT_SAME(CENSUS, census)

static kprof_status check_launch(void *user, const kprof_model_launch *launch)
{
    kprof_launch_record got = launch->record;
    got.reason = launch->reason;
    expect_launch(&got, user);
    assert_int_equal(got.graph_node, ((const kprof_launch_record *)user)->graph_node);
    assert_string_equal(got.nvtx, ((const kprof_launch_record *)user)->nvtx);
    assert_string_equal(launch->replay_mode, "batch");
    return KPROF_OK;
}

TEST_WITH(test_every_field_is_stored_and_read, set_up, tear_down)
{
    kprof_process_record process = filled_process();
    kprof_device_record device = filled_device();
    kprof_kernel_record kernel = filled_kernel();
    kprof_launch_record launch = filled_launch();
    process.start_unix_ns = 1;
    launch.kernel = kernel.kernel;
    launch.device = device.device;
    device.attribute_count = 0; /* as many as there are */
    launch.value_count = launch.witness_count = 0;
    launch.stack = launch.stack_origin = 0; /* of a record that comes before */
    kprof_census_record census = filled_census(), grown = census;
    census.kernel = grown.kernel = kernel.kernel;
    census.device = grown.device = device.device;
    census.row = grown.row = 1;
    grown.launches++;
    const kprof_record records[] = {
        {.type = KPROF_RECORD_PROCESS, .process = process}, {.type = KPROF_RECORD_DEVICE, .device = device},
        {.type = KPROF_RECORD_KERNEL, .kernel = kernel},    {.type = KPROF_RECORD_LAUNCH, .launch = launch},
        {.type = KPROF_RECORD_CENSUS, .census = census},    {.type = KPROF_RECORD_CENSUS, .census = grown},
    };
    fixture_metrics metrics = fixture_metrics_load();
    kprof_report *report = fixture_create(path, &metrics);
    kprof_ingest *ingest = NULL;
    ingest = kprof_ingest_new(report);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        fixture_store(ingest, &records[i]);
    kprof_ingest_free(ingest);
    kprof_model model;
    assert_int_equal(kprof_model_load(report, &model), KPROF_OK);
    expect_process(&model.processes[0].record, &process);
    expect_device(&model.devices[0].record, &device);
    expect_kernel(&model.kernels[0].record, &kernel);
    assert_int_equal(model.census_count, 1);
    expect_census(&model.census[0].record, &grown);
    kprof_model_walk walk = {report, &model, NULL, false};
    assert_int_equal(kprof_model_launches(&walk, check_launch, &launch), KPROF_OK);
    kprof_model_free(&model);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    fixture_metrics_free(&metrics);
}

/* A column that came with a later version is not in an older report: it is missing, which is not 0 where it can be
 * told.
 */
TEST(test_columns_of_a_later_version)
{
    const kprof_report old = {.version = 0};
    kprof_model_process process;
    memset(&process, 0x55, sizeof process);
    KPROF_AUTO_FREE char *sql = kprof_rows_definition("process", old.version);
    assert_string_equal(sql, "CREATE TABLE process(id INTEGER PRIMARY KEY)");
    KPROF_AUTO(kprof_pool) texts = {0};
    kprof_rows_read(&(kprof_row_source){&old, NULL, &texts}, KPROF_ROWS_PROCESS, &process);
    assert_int_equal(process.launches, -1);
    assert_int_equal(process.pid, 0);
    assert_string_equal(process.host, "");
    kprof_strbuf columns = KPROF_STRBUF_INIT; /* as merging selects them */
    kprof_rows_list_plain(KPROF_ROWS_PROCESS, old.version, &columns);
    assert_string_equal(columns.data, ", 0, 0, 0, '', '', '', '', NULL, NULL, NULL, NULL, 0");
    kprof_strbuf_free(&columns);
}
