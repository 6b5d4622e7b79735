/* Builds the fixture report. Nothing in it depends on time, place or machine. */
#include "fixture.h"

#include "h200.h"
#include "report/store/rows.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
/* cmocka.h wants these before it. */
#include <cmocka.h>

#define START_UNIX_NS INT64_C(1790000000000000000)

static const char template_kernel[] =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEENS_6detail"
    "5ArrayIPcLi3EEEEEviT0_T1_";

char *fixture_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    char chunk[65536];
    size_t got;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
        kprof_strbuf_append(&text, chunk, got);
    fclose(file);
    if (size)
        *size = text.length;
    return kprof_strbuf_take(&text);
}

const char *fixture_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/report-test-%ld-%s", KPROF_BUILD_DIR, (long)getpid(), name);
    return path;
}

fixture_metrics fixture_metrics_load(void)
{
    fixture_metrics metrics = {KPROF_STRLIST_INIT, KPROF_STRLIST_INIT, calloc(256, sizeof(double))};
    FILE *file = fopen(KPROF_TESTS_DIR "/golden/values.txt", "r");
    assert_non_null(file);
    char line[512], name[256], unit[64];
    while (fgets(line, sizeof line, file)) {
        double value;
        if (line[0] == '#' || sscanf(line, "%255s %63s %lf", name, unit, &value) != 3)
            continue;
        assert_true(metrics.names.count < 256);
        metrics.values[metrics.names.count] = value;
        assert_true(kprof_strlist_add(&metrics.names, name));
        assert_true(kprof_strlist_add(&metrics.units, unit));
    }
    fclose(file);
    return metrics;
}

void fixture_metrics_free(fixture_metrics *metrics)
{
    kprof_strlist_free(&metrics->names);
    kprof_strlist_free(&metrics->units);
    free(metrics->values);
}

static int is_json(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".json") == 0;
}

static void load_section(const char *name, kprof_plan *plan)
{
    char path[1024];
    snprintf(path, sizeof path, KPROF_TESTS_DIR "/golden/sections/%s", name);
    KPROF_AUTO_FREE char *json = fixture_read(path, NULL);
    assert_non_null(json);
    assert_int_equal(kprof_section_from_json(&(kprof_json_place){.name = "stored section", .pool = &plan->pool}, json,
                                             &plan->sections[plan->section_count++]),
                     KPROF_OK);
}

kprof_plan fixture_plan_make(const fixture_metrics *metrics)
{
    kprof_plan plan = {.chip = strdup("GH100")};
    struct dirent **files = NULL;
    int count = scandir(KPROF_TESTS_DIR "/golden/sections", &files, is_json, alphasort);
    assert_true(count > 0);
    plan.sections = calloc((size_t)count, sizeof *plan.sections);
    for (int i = 0; i < count; i++) {
        load_section(files[i]->d_name, &plan);
        free(files[i]);
    }
    free(files);
    for (size_t i = 0; i < metrics->names.count; i++)
        assert_true(kprof_strlist_add(&plan.collect, metrics->names.items[i]));
    assert_true(kprof_strlist_add(&plan.shown, "gpu__time_duration.sum"));
    assert_true(kprof_strlist_add(&plan.left_out, "sm__mio_inst_issued.avg.pct_of_peak_sustained_elapsed"));
    assert_true(kprof_strlist_add(&plan.left_out, "idc__request_cycles_active.avg.pct_of_peak_sustained_elapsed"));
    plan.pass_count = 9;
    return plan;
}

void fixture_plan_free(kprof_plan *plan)
{
    kprof_pool_free(&plan->pool);
    free(plan->sections);
    free(plan->chip);
    kprof_strlist_free(&plan->collect);
    kprof_strlist_free(&plan->shown);
    kprof_strlist_free(&plan->left_out);
}

static char *witnesses[] = {(char *)"TPC.TriageCompute.sm__inst_executed_realtime.sum", (char *)"gpu__time_active.sum"};
static const kprof_strlist witness_list = {witnesses, 2, 2};

/* As CUPTI packs: throughputs come from several passes, all else from one; and the witnesses are in nearly all. */
static kprof_schedule make_schedule(const kprof_plan *plan)
{
    static kprof_schedule_pass passes[9];
    static uint32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static kprof_pass_list lists[256];
    for (size_t i = 0; i < 9; i++)
        passes[i] = (kprof_schedule_pass){24 - 2 * (uint32_t)i, i < 8, i < 8, false};
    for (size_t i = 0; i < plan->collect.count; i++) {
        bool is_throughput = strstr(plan->collect.items[i], "throughput");
        lists[i] = is_throughput ? (kprof_pass_list){numbers, 8} : (kprof_pass_list){&numbers[i % 9], 1};
    }
    lists[plan->collect.count] = lists[plan->collect.count + 1] = (kprof_pass_list){numbers, 8};
    return (kprof_schedule){
        .passes = passes, .pass_count = 9, .metrics = lists, .metric_count = plan->collect.count + 2};
}

kprof_device_record fixture_device(void)
{
    return h200_record();
}

kprof_kernel_record fixture_kernel(void)
{
    return (kprof_kernel_record){
        .kernel = 1,
        .mangled = "_Z9vectorAddPKfS0_Pfi",
        .registers_per_thread = 16,
        .max_threads_per_block = 1024,
        .binary_version = 90,
        .ptx_version = 90,
    };
}

kprof_launch_record fixture_launch(const fixture_metrics *metrics)
{
    return (kprof_launch_record){
        .launch = 0,
        .kernel = 1,
        .context = 1,
        .stream = 7,
        .thread = 4242,
        .grid = {65536, 1, 1},
        .block = {256, 1, 1},
        .configured_smem_bytes = 8192,
        .max_blocks_per_sm = 8,
        .start_unix_ns = START_UNIX_NS + 1000000000,
        .profile_ns = 190000000,
        .mode = KPROF_REPLAY_BATCH,
        .pass_count = 9,
        .reason = "",
        .value_count = (uint32_t)metrics->names.count,
        .values = metrics->values,
    };
}

kprof_catalog *fixture_findings_load(bool shipped, kprof_finding_list *out)
{
    static char *folders[] = {(char *)KPROF_METRICSETS_DIR, (char *)KPROF_TESTS_DIR "/golden/rules"};
    static char *ids[] = {(char *)"Limit", (char *)"Stall", (char *)"Sectors", (char *)"Waves"};
    const kprof_strlist of_folders = {folders, shipped ? 1 : 2, 2}, of_ids = {ids, shipped ? 0 : 4, 4};
    kprof_catalog *catalog = NULL;
    assert_int_equal(kprof_catalog_load(&of_folders, &catalog), KPROF_OK);
    assert_int_equal(kprof_catalog_findings(catalog, &of_ids, out), KPROF_OK);
    return catalog;
}

void fixture_store(kprof_ingest *ingest, const kprof_record *record)
{
    assert_int_equal(kprof_ingest_record(ingest, record), KPROF_OK);
}

/* A profiling run learns units from the Profiler Host API, which a test does not have. */
static void set_units(kprof_report *report, const fixture_metrics *metrics)
{
    for (size_t i = 0; i < metrics->names.count; i++) {
        kprof_model_metric row = {metrics->names.items[i], metrics->units.items[i], "", "hardware"};
        kprof_store_metric(report, &row);
        assert_int_equal(report->status, KPROF_OK);
    }
}

kprof_report *fixture_create(const char *path, const fixture_metrics *metrics)
{
    static const char *const sets[] = {"full", NULL};
    kprof_run_info run = {"kprof --set full -k vectorAdd ./app", "/home/user/project", "0.1.0", sets, START_UNIX_NS};
    kprof_report *report = NULL;
    unlink(path);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_NEW, &run, &report), KPROF_OK);
    kprof_plan plan = fixture_plan_make(metrics);
    assert_int_equal(kprof_report_add_plan(report, &plan, NULL), KPROF_OK);
    kprof_schedule schedule = make_schedule(&plan);
    kprof_plan_passes passes = {&witness_list, &schedule};
    assert_int_equal(kprof_report_add_passes(report, &plan, &passes), KPROF_OK);
    fixture_plan_free(&plan);
    set_units(report, metrics);
    return report;
}

static void store_kernels(kprof_ingest *ingest)
{
    kprof_record record = {.type = KPROF_RECORD_KERNEL, .kernel = fixture_kernel()};
    fixture_store(ingest, &record);
    record.kernel.kernel = 2;
    record.kernel.mangled = template_kernel;
    record.kernel.registers_per_thread = 40;
    record.kernel.static_smem_bytes = 2048;
    fixture_store(ingest, &record);
}

static kprof_metrics_record metrics_record(const fixture_metrics *metrics)
{
    return (kprof_metrics_record){
        .chip = "GH100",
        .pass_count = 9,
        .count = (uint32_t)metrics->names.count,
        .names = (const char *const *)metrics->names.items,
        .witness_count = 2,
        .witnesses = (const char *const *)witnesses,
    };
}

static void begin_process(kprof_ingest *ingest, const kprof_process_record *process, const fixture_metrics *metrics)
{
    kprof_record record = {.type = KPROF_RECORD_PROCESS, .process = *process};
    fixture_store(ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_DEVICE, .device = fixture_device()};
    fixture_store(ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_METRICS};
    record.metrics = metrics_record(metrics);
    fixture_store(ingest, &record);
    store_kernels(ingest);
}

void fixture_begin_process(kprof_ingest *ingest, const fixture_metrics *metrics)
{
    begin_process(ingest,
                  &(kprof_process_record){4242, 4200, START_UNIX_NS + 500000000, "gpu-host", "/home/user/project/app",
                                          "./app --size 16777216"},
                  metrics);
}

static void store_seen(kprof_ingest *ingest, uint32_t kernel, uint64_t launches)
{
    kprof_record record = {.type = KPROF_RECORD_SEEN, .seen = {kernel, launches}};
    fixture_store(ingest, &record);
}

/* Measured twice, once with values missing and passes that disagree, and once, in a graph, not at all. */
static void store_first_process(kprof_report *report, const fixture_metrics *metrics)
{
    kprof_ingest *ingest = NULL;
    ingest = kprof_ingest_new(report);
    fixture_begin_process(ingest, metrics);
    double values[256];
    memcpy(values, metrics->values, metrics->names.count * sizeof *values);
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(metrics)};
    record.launch.values = values;
    record.launch.witness_count = 2;
    record.launch.witness_spreads_pct = (const double[]){0, 2.5};
    fixture_store(ingest, &record);
    record.launch.launch = 3;
    record.launch.nvtx = "train/step 1/forward/; net@conv\\/1/; epoch";
    record.launch.witness_spreads_pct = (const double[]){3.125, 14.25};
    for (size_t i = 0; i < metrics->names.count; i++) {
        values[i] *= strstr(metrics->names.items[i], "duration") ? 1.25 : 1;
        if (strncmp(metrics->names.items[i], "l1tex__", 7) == 0)
            values[i] = NAN;
    }
    record.launch.reason = "the L1 counters were not available in this pass";
    fixture_store(ingest, &record);
    record.launch.launch = 4;
    record.launch.kernel = 2;
    record.launch.mode = KPROF_REPLAY_NONE;
    record.launch.pass_count = record.launch.value_count = record.launch.witness_count = 0;
    record.launch.reason = "a graph sets or copies memory that a replay cannot restore";
    record.launch.graph_node = 17;
    record.launch.nvtx = "train/step 1/";
    fixture_store(ingest, &record);
    store_seen(ingest, 1, 2);
    store_seen(ingest, 2, 198);
    record = (kprof_record){.type = KPROF_RECORD_MESSAGE};
    record.message = (kprof_message_record){KPROF_LOG_WARNING, KPROF_OK, "the clocks were not locked"};
    fixture_store(ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_END, .end = {200, 3, 2}};
    fixture_store(ingest, &record);
    kprof_ingest_free(ingest);
}

/* A child with a cluster launch in a graph. The child was killed: its spool has no end. */
static void store_second_process(kprof_report *report, const fixture_metrics *metrics)
{
    kprof_ingest *ingest = NULL;
    ingest = kprof_ingest_new(report);
    begin_process(ingest,
                  &(kprof_process_record){4243, 4242, START_UNIX_NS + 700000000, "gpu-host", "/usr/bin/python3.11",
                                          "python3 -c 'import torch\ntrain()'"},
                  metrics);
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(metrics)};
    record.launch.kernel = 2;
    record.launch.cluster[0] = 2;
    record.launch.cluster[1] = record.launch.cluster[2] = 1;
    record.launch.max_active_clusters = 66;
    record.launch.dynamic_smem_bytes = 16384;
    record.launch.configured_smem_bytes = 0;
    record.launch.max_blocks_per_sm = 0;
    record.launch.mode = KPROF_REPLAY_MULTIPLEX;
    record.launch.graph_node = (UINT64_C(1) << 32) + 18; /* more than 32 bits */
    record.launch.pass_count = 1;
    fixture_store(ingest, &record);
    store_seen(ingest, 2, 1);
    kprof_ingest_free(ingest);
}

void fixture_write(const char *path)
{
    fixture_metrics metrics = fixture_metrics_load();
    kprof_report *report = fixture_create(path, &metrics);
    assert_int_equal(kprof_report_begin(report), KPROF_OK);
    store_first_process(report, &metrics);
    store_second_process(report, &metrics);
    assert_int_equal(kprof_report_set_exit(report, 4242, 0), KPROF_OK);
    assert_int_equal(kprof_report_set_exit(report, 4243, 9), KPROF_OK);
    assert_int_equal(kprof_report_commit(report), KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    fixture_metrics_free(&metrics);
}

/* A sample of two launches: the first has the values, the second gave some of their counters. */
static void store_sample(kprof_ingest *ingest, const fixture_metrics *metrics, const kprof_launch_record *from,
                         double factor)
{
    double values[256];
    char reason[64];
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = *from};
    for (size_t i = 0; i < metrics->names.count; i++)
        values[i] = factor * metrics->values[i];
    record.launch.values = values;
    record.launch.value_count = (uint32_t)metrics->names.count;
    fixture_store(ingest, &record);
    snprintf(reason, sizeof reason, "its counters are part of the values of launch %d", (int)from->launch);
    record.launch.launch++;
    record.launch.stream = 8;
    record.launch.pass_count = 1;
    record.launch.value_count = record.launch.witness_count = 0;
    record.launch.reason = reason;
    fixture_store(ingest, &record);
}

static void store_multiplexed(kprof_ingest *ingest, const fixture_metrics *metrics)
{
    kprof_launch_record launch = fixture_launch(metrics);
    kprof_record replayed = {.type = KPROF_RECORD_LAUNCH, .launch = launch};
    fixture_store(ingest, &replayed);
    launch.mode = KPROF_REPLAY_MULTIPLEX;
    launch.range_lead_ns = 7400;
    launch.reason = "the kernel cannot be replayed: it calls vprintf, which a replay would do again";
    launch.witness_count = 2;
    launch.witness_spreads_pct = (const double[]){0, 2.5};
    static const double factors[] = {1, 1.25, 0.875};
    for (int i = 0; i < 3; i++) {
        launch.launch = 1 + 2 * (uint64_t)i;
        store_sample(ingest, metrics, &launch, factors[i]);
    }
    launch.launch = 7;
    launch.witness_spreads_pct = (const double[]){3.125, 14.25};
    store_sample(ingest, metrics, &launch, 4);
    launch.kernel = 2;
    launch.launch = 9;
    launch.reason = "";
    store_sample(ingest, metrics, &launch, 1);
    launch.grid[0] = 7;
    launch.launch = 11;
    launch.pass_count = 1;
    launch.value_count = launch.witness_count = 0;
    launch.reason = "its counters are part of no sample: the program ended before";
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_LAUNCH, .launch = launch});
}

void fixture_write_multiplexed(const char *path)
{
    fixture_metrics metrics = fixture_metrics_load();
    kprof_report *report = fixture_create(path, &metrics);
    kprof_ingest *ingest = NULL;
    ingest = kprof_ingest_new(report);
    fixture_begin_process(ingest, &metrics);
    store_multiplexed(ingest, &metrics);
    store_seen(ingest, 1, 9);
    store_seen(ingest, 2, 3);
    kprof_ingest_free(ingest);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    fixture_metrics_free(&metrics);
}

static void store_census(kprof_ingest *ingest)
{
    static const kprof_census_record rows[] = {
        {1, 1, 0, {65536, 1, 1}, {256, 1, 1}, 0, 900, 54000000, 50000, 90000},
        {2, 1, 0, {1024, 1, 1}, {256, 1, 1}, 4096, 100, 900000, 8000, 12000},
        {3, 2, 0, {64, 2, 1}, {128, 1, 1}, 0, 3000, 4500000, 1000, 7000},
        {4, 2, 0, {0, 0, 0}, {0, 0, 0}, 0, 7, 21000, 2000, 4000}, /* of all other shapes */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_CENSUS, .census = rows[i]});
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_END, .end = {.launches = 4010}});
}

void fixture_write_census(const char *path)
{
    fixture_metrics metrics = fixture_metrics_load();
    kprof_report *report = fixture_create(path, &metrics);
    for (int runs = 0; runs < 3; runs++) {
        kprof_ingest *ingest = NULL;
        ingest = kprof_ingest_new(report);
        fixture_begin_process(ingest, &metrics);
        if (runs < 2)
            store_census(ingest);
        else
            fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)});
        if (runs == 2)
            fixture_store_timeline(ingest);
        kprof_ingest_free(ingest);
    }
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    fixture_metrics_free(&metrics);
}

void fixture_store_timeline(kprof_ingest *ingest)
{
    static const char *const names[] = {KPROF_SAMPLE_ACTIVITY, "dram__throughput.avg.pct_of_peak_sustained_elapsed"};
    static const double rows[] = {0, 1000, 90, 10, 1000, 1000, 100, 80, 2000, 1000, 40, NAN, 3000, 500, 10, 2};
    fixture_store(ingest, &(kprof_record){.type = KPROF_RECORD_TIMELINE,
                                          .timeline = {.interval_ns = 1000,
                                                       .reason = "",
                                                       .name_count = 2,
                                                       .names = names,
                                                       .value_count = sizeof rows / sizeof *rows,
                                                       .values = rows}});
}

void fixture_assert_golden(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/%s", KPROF_TESTS_DIR, name);
    if (getenv("KPROF_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    KPROF_AUTO_FREE char *expected = fixture_read(path, NULL);
    if (!expected)
        fail_msg("%s is missing: run tests/golden/update.sh", path);
    const bool is_same = strcmp(text, expected) == 0;
    if (!is_same)
        fail_msg("%s differs:\n%s", path, text);
}

char *fixture_print(kprof_report *report, const kprof_print_options *options, kprof_status *status)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    *status = kprof_report_print(&report, 1, options, file);
    fclose(file);
    return text;
}
