/* How fast a big report is written, loaded, printed and compared: 10,000 launches of 300 metrics through the public
 * interface.
 * Usage: bench_report [launches [metrics [folder [sources]]]]. Not a test: nothing here asserts a time. */
#include "report/diff/diff.h"
#include "report/model/merge.h"

#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct bench_setup {
    size_t launches, metrics, sources;
    char path[512], output[512];
} bench_setup;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void must(kprof_status status, const char *what)
{
    if (status == KPROF_OK)
        return;
    fprintf(stderr, "bench_report: %s: %s\n", what, kprof_status_message(status));
    exit(1);
}

static void name_metric(char name[128], size_t index)
{
    static const char *const known[] = {KPROF_TIME_METRIC, "gpc__cycles_elapsed.max", "dram__bytes_read.sum",
                                        "smsp__inst_executed.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"};
    if (index < sizeof known / sizeof *known)
        snprintf(name, 128, "%s", known[index]);
    else if (index < 25)
        snprintf(name, 128, "smsp__average_warps_issue_stalled_%02zu_per_issue_active.ratio", index);
    else
        snprintf(name, 128, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_%03zu.avg.pct_of_peak_sustained_elapsed",
                 index);
}

/* One section that shows every metric. */
static void make_section(const bench_setup *bench, kprof_pool *pool, kprof_section *section)
{
    KPROF_AUTO(kprof_strbuf) json = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&json, "{\"id\":\"Bench\",\"name\":\"Benchmark\",\"items\":[");
    for (size_t i = 0; i < bench->metrics; i++) {
        char name[128];
        name_metric(name, i);
        kprof_strbuf_printf(&json, "%s{\"metric\":\"%s\",\"label\":\"Metric %zu\",\"unit\":\"%%\"}", i ? "," : "", name,
                            i);
    }
    kprof_strbuf_puts(&json, "]}");
    must(kprof_section_from_json(&(kprof_json_place){.name = "stored section", .pool = pool}, json.data, section),
         "section");
}

static void put_process(const bench_setup *bench, kprof_ingest *ingest)
{
    char **names = calloc(bench->metrics, sizeof *names);
    kprof_record record = {.type = KPROF_RECORD_PROCESS};
    record.process = (kprof_process_record){1, 0, 0, "host", "/usr/bin/python3", "python3 train.py"};
    must(kprof_ingest_record(ingest, &record), "process");
    record = (kprof_record){.type = KPROF_RECORD_DEVICE};
    record.device = (kprof_device_record){.name = "NVIDIA H200", .chip = "GH100", .uuid = "0", .cc_major = 9};
    must(kprof_ingest_record(ingest, &record), "device");
    for (size_t i = 0; i < bench->metrics; i++) {
        names[i] = malloc(128);
        name_metric(names[i], i);
    }
    record = (kprof_record){.type = KPROF_RECORD_METRICS};
    record.metrics = (kprof_metrics_record){
        .chip = "GH100", .pass_count = 9, .count = (uint32_t)bench->metrics, .names = (const char *const *)names};
    must(kprof_ingest_record(ingest, &record), "metrics");
    for (size_t i = 0; i < bench->metrics; i++)
        free(names[i]);
    free(names);
    record = (kprof_record){.type = KPROF_RECORD_KERNEL};
    record.kernel.kernel = 1;
    record.kernel.mangled = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEENS_6detail5Array"
                            "IPcLi3EEEEEviT0_T1_";
    must(kprof_ingest_record(ingest, &record), "kernel");
}

/* Half of the values are whole numbers, half are ratios with all their digits. Launches are of SHAPES grids, in turns.
 */
#define SHAPES 50
static void put_launches(const bench_setup *bench, kprof_report *report, kprof_ingest *ingest)
{
    double *values = calloc(bench->metrics, sizeof *values);
    kprof_record record = {.type = KPROF_RECORD_LAUNCH};
    record.launch = (kprof_launch_record){.kernel = 1, .grid = {65536, 1, 1}, .block = {256, 1, 1}};
    record.launch.mode = KPROF_REPLAY_BATCH;
    record.launch.value_count = (uint32_t)bench->metrics;
    record.launch.values = values;
    record.launch.reason = "";
    for (size_t i = 0; i < bench->launches; i++) {
        for (size_t k = 0; k < bench->metrics; k++)
            values[k] = k % 2 ? (double)(i * 7919 + k) : (double)(i + 1) / (double)(k + 3) * 100;
        record.launch.launch = i;
        record.launch.grid[0] = (uint32_t)(1 + i % SHAPES);
        if (i % 1000 == 0)
            must(kprof_report_begin(report), "begin");
        must(kprof_ingest_record(ingest, &record), "launch");
        if (i % 1000 == 999)
            must(kprof_report_commit(report), "commit");
    }
    free(values);
}

static void write_report(const bench_setup *bench)
{
    kprof_run_info run = {"bench", "/", "0", NULL, 0};
    kprof_report *report = NULL;
    kprof_ingest *ingest = NULL;
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_section section;
    make_section(bench, &pool, &section);
    char chip[] = "GH100";
    kprof_plan plan = {.chip = chip, .sections = &section, .section_count = 1};
    must(kprof_report_create(bench->path, KPROF_CREATE_REPLACE, &run, &report), "create");
    must(kprof_report_add_plan(report, &plan, NULL), "plan");
    ingest = kprof_ingest_new(report);
    put_process(bench, ingest);
    put_launches(bench, report, ingest);
    kprof_ingest_free(ingest);
    must(kprof_report_close(report), "close");
}

static void print_report(const bench_setup *bench, const kprof_print_options *options)
{
    kprof_report *report = NULL;
    FILE *out = fopen(bench->output, "w");
    if (!out) {
        perror(bench->output);
        exit(1);
    }
    must(kprof_report_open(bench->path, &report), "open");
    if (options->format == KPROF_FORMAT_HTML)
        must(kprof_page_show(&kprof_whole_page, &(kprof_page_input){&report, 1, NULL}, options, out), "print");
    else
        must(kprof_report_print(&report, 1, options, out), "print");
    must(kprof_report_close(report), "close");
    fclose(out);
}

/* With the shipped findings, which are read each time, as a command does. */
static void print_with_findings(const bench_setup *bench, const kprof_print_options *options)
{
    KPROF_AUTO(kprof_strlist) folders = KPROF_STRLIST_INIT;
    kprof_catalog *catalog = NULL;
    kprof_finding_list findings;
    kprof_print_options print = *options;
    if (!kprof_strlist_add(&folders, KPROF_METRICSETS_DIR))
        must(KPROF_NO_MEMORY, "findings");
    must(kprof_catalog_load(&folders, &catalog), "findings");
    must(kprof_catalog_findings(catalog, &(kprof_strlist)KPROF_STRLIST_INIT, &findings), "findings");
    print.findings = &findings;
    print_report(bench, &print);
    free(findings.items);
    kprof_catalog_free(catalog);
}

/* Compare the report with itself; all metrics if that is asked for. */
static void compare_reports(const bench_setup *bench, const kprof_print_options *options)
{
    kprof_report *reports[KPROF_SIDES] = {NULL, NULL};
    kprof_diff_outcome outcome;
    const kprof_diff_request request = {.tolerances = {KPROF_TIME_TOLERANCE_PCT, KPROF_TRAFFIC_TOLERANCE_PCT},
                                        .outcome = &outcome};
    FILE *out = fopen(bench->output, "w");
    if (!out) {
        perror(bench->output);
        exit(1);
    }
    for (int side = 0; side < KPROF_SIDES; side++)
        must(kprof_report_open(bench->path, &reports[side]), "open");
    must(kprof_page_show(&kprof_diff_page, &(kprof_page_input){reports, KPROF_SIDES, &request}, options, out),
         "compare");
    for (int side = 0; side < KPROF_SIDES; side++)
        must(kprof_report_close(reports[side]), "close");
    fclose(out);
}

static double megabytes(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (double)info.st_size / 1e6 : 0;
}

typedef void print_function(const bench_setup *bench, const kprof_print_options *options);

/* In a process of its own, so that its peak memory can be told. Returns its seconds. */
static double measure(const bench_setup *bench, const char *name, const kprof_print_options *options,
                      print_function *print)
{
    double start = now();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (options)
            print(bench, options);
        else
            write_report(bench);
        _exit(0);
    }
    int status = 0;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child || status != 0) {
        fprintf(stderr, "bench_report: %s failed\n", name);
        exit(1);
    }
    const double seconds = now() - start;
    printf("%-24s %7.3f s  %6.1f MB peak memory  %8.1f MB file\n", name, seconds, (double)usage.ru_maxrss / 1024,
           megabytes(options ? bench->output : bench->path));
    return seconds;
}

/* Merge copies of the report, each as of another rank. */
static void merge_reports(const bench_setup *bench, const kprof_print_options *options)
{
    const kprof_run_info run = {"bench", "/", "0", NULL, 0};
    kprof_report *all = NULL;
    kprof_merge *merge = NULL;
    must(kprof_report_create(bench->output, KPROF_CREATE_REPLACE, &run, &all), "create");
    merge = kprof_merge_new(all);
    for (size_t rank = 0; rank < bench->sources; rank++) {
        char sql[96];
        sqlite3 *db = NULL;
        snprintf(sql, sizeof sql, "UPDATE process SET pid=%zu", rank);
        if (sqlite3_open(bench->path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
            must(KPROF_INTERNAL, "rank");
        sqlite3_close(db);
        must(kprof_merge_add(merge, bench->path, "rank", NULL), "add");
    }
    must(kprof_merge_finish(merge), "finish");
    kprof_merge_free(merge);
    must(kprof_report_close(all), "close");
}

static double measure_merge(bench_setup bench, size_t sources)
{
    char name[48];
    bench.sources = sources;
    snprintf(name, sizeof name, "merge %zu of these", sources);
    return measure(&bench, name, &(kprof_print_options){0}, merge_reports);
}

/* Ten times as many reports take ten times as long, since work does not grow with what was added before. */
static void measure_merges(const bench_setup *bench)
{
    const size_t few = bench->sources > 10 ? bench->sources / 10 : 1;
    const double of_few = measure_merge(*bench, few), of_all = measure_merge(*bench, bench->sources);
    printf("merge: %.1f times the reports took %.1f times as long\n", (double)bench->sources / (double)few,
           of_all / of_few);
}

int main(int argc, char **argv)
{
    bench_setup bench = {argc > 1 ? strtoul(argv[1], NULL, 10) : 10000, argc > 2 ? strtoul(argv[2], NULL, 10) : 300,
                         argc > 4 ? strtoul(argv[4], NULL, 10) : 100, "", ""};
    const char *folder = argc > 3 ? argv[3] : "/tmp";
    snprintf(bench.path, sizeof bench.path, "%s/bench-%ld.kprof", folder, (long)getpid());
    snprintf(bench.output, sizeof bench.output, "%s/bench-%ld.out", folder, (long)getpid());
    char first[sizeof bench.path];
    snprintf(first, sizeof first, "%s", bench.path);
    printf("%zu launches, %zu metrics\n", bench.launches, bench.metrics);
    measure(&bench, "write report", NULL, NULL);
    measure(&bench, "details, CSV long", &(kprof_print_options){.page = KPROF_PAGE_DETAILS, .format = KPROF_FORMAT_CSV},
            print_report);
    measure(&bench, "raw, CSV long", &(kprof_print_options){.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_CSV},
            print_report);
    measure(&bench, "raw, CSV wide", &(kprof_print_options){.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_CSV_WIDE},
            print_report);
    measure(&bench, "details, CSV ncu",
            &(kprof_print_options){.page = KPROF_PAGE_DETAILS, .format = KPROF_FORMAT_CSV_NCU}, print_report);
    measure(&bench, "raw, JSON", &(kprof_print_options){.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_JSON},
            print_report);
    measure(&bench, "details, JSON", &(kprof_print_options){.page = KPROF_PAGE_DETAILS, .format = KPROF_FORMAT_JSON},
            print_report);
    measure(&bench, "raw, JSON lines", &(kprof_print_options){.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_JSONL},
            print_report);
    measure(&bench, "raw, trace", &(kprof_print_options){.page = KPROF_PAGE_RAW, .format = KPROF_FORMAT_PERFETTO},
            print_report);
    measure(&bench, "statistics, Prometheus",
            &(kprof_print_options){.page = KPROF_PAGE_STATISTICS, .format = KPROF_FORMAT_PROMETHEUS}, print_report);
    measure(&bench, "details, text", &(kprof_print_options){.page = KPROF_PAGE_DETAILS}, print_report);
    measure(&bench, "statistics, text", &(kprof_print_options){.page = KPROF_PAGE_STATISTICS}, print_report);
    measure(&bench, "summary, text", &(kprof_print_options){.page = KPROF_PAGE_SUMMARY}, print_with_findings);
    measure(
        &bench, "summary of shapes, JSON",
        &(kprof_print_options){.page = KPROF_PAGE_SUMMARY, .format = KPROF_FORMAT_JSON, .group_by = KPROF_GROUP_CONFIG},
        print_with_findings);
    measure(&bench, "diff, text", &(kprof_print_options){.format = KPROF_FORMAT_TEXT}, compare_reports);
    measure(&bench, "diff --all, CSV", &(kprof_print_options){.format = KPROF_FORMAT_CSV, .all_rows = true},
            compare_reports);
    const size_t all = bench.launches;
    bench.launches = all / 5;
    measure(&bench, "write a fifth", NULL, NULL);
    measure(&bench, "HTML of these", &(kprof_print_options){.format = KPROF_FORMAT_HTML}, print_with_findings);
    bench.launches = all / 10;
    measure(&bench, "write a tenth", NULL, NULL);
    measure_merges(&bench);
    snprintf(bench.path, sizeof bench.path, "%s", bench.output);
    snprintf(bench.output, sizeof bench.output, "%s/bench-%ld.sources", folder, (long)getpid());
    measure(&bench, "sources of all, text", &(kprof_print_options){.page = KPROF_PAGE_SOURCES}, print_report);
    unlink(bench.path);
    snprintf(bench.path, sizeof bench.path, "%s", first);
    bench.launches = 1;
    measure(&bench, "write one launch", NULL, NULL);
    measure(&bench, "brief of one kernel",
            &(kprof_print_options){.page = KPROF_PAGE_BRIEF, .format = KPROF_FORMAT_JSONL}, print_with_findings);
    unlink(bench.path);
    unlink(bench.output);
    return 0;
}
