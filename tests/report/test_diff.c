/* Comparisons: the rules for changes and conditions, how kernels are matched, verdicts over noise, and the page in
 * every format. KPROF_UPDATE_GOLDEN=1 records the page anew (tests/golden/update.sh). */
#include "diff_fixture.h"
#include "fixture.h"
#include "log_capture.h"
#include "report/diff/diff.h"
#include "report/diff/moves.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const kprof_tolerances usual = {KPROF_TIME_TOLERANCE_PCT, KPROF_TRAFFIC_TOLERANCE_PCT};

TEST(metrics_have_classes)
{
    static const struct {
        kprof_model_metric metric;
        kprof_metric_class expected;
    } rows[] = {
        {{"smsp__inst_executed.sum", "inst", "", "hardware"}, KPROF_CLASS_EXACT},
        {{"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "request", "", "hardware"}, KPROF_CLASS_EXACT},
        {{"launch__registers_per_thread", "register/thread", "", "launch"}, KPROF_CLASS_EXACT},
        {{"lts__t_requests.sum", "request", "", "hardware"}, KPROF_CLASS_TRAFFIC},
        {{"dram__bytes_read.sum", "byte", "", "hardware"}, KPROF_CLASS_TRAFFIC},
        {{"lts__t_sectors.sum", "sector", "", "hardware"}, KPROF_CLASS_TRAFFIC},
        {{"smsp__inst_executed.avg", "inst", "", "hardware"}, KPROF_CLASS_NOISY},
        {{"gpu__time_duration.sum", "ns", "", "hardware"}, KPROF_CLASS_NOISY},
        {{"dram__bytes.sum.per_second", "byte/second", "", "hardware"}, KPROF_CLASS_NOISY},
        {{"smsp__inst_executed.sum.per_second", "inst/second", "", "hardware"}, KPROF_CLASS_NOISY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (kprof_class_of(&rows[i].metric) != rows[i].expected)
            fail_msg("%s is of another class", rows[i].metric.name);
    }
}

#define COUNT(array)                   (sizeof(array) / sizeof *(array))
#define SAMPLE(values)                 ((kprof_sample){(double *)(values), COUNT(values)})
#define CHANGE(metric_class, from, to) change_of(KPROF_CLASS_##metric_class, SAMPLE(from), SAMPLE(to))

static kprof_change change_of(kprof_metric_class metric_class, kprof_sample from, kprof_sample to)
{
    double a[32], b[32];
    kprof_change change;
    memcpy(a, from.values, from.count * sizeof *a);
    memcpy(b, to.values, to.count * sizeof *b);
    kprof_changed_values values = {metric_class, {{a, from.count}, {b, to.count}}, true};
    kprof_change_of(&values, &usual, &change);
    return change;
}

TEST(any_change_of_a_count_is_real)
{
    const double one[] = {1000000}, more[] = {1000001}, varying[] = {1000, 1003, 1001}, other[] = {1001, 1000, 1003};
    assert_int_equal(CHANGE(EXACT, one, one).state, KPROF_CHANGE_NONE);
    assert_int_equal(CHANGE(EXACT, one, more).state, KPROF_CHANGE_REAL);
    /* A count that varies from launch to launch is compared at the same places, and then as noise. */
    assert_int_equal(CHANGE(EXACT, varying, varying).state, KPROF_CHANGE_NONE);
    assert_int_equal(CHANGE(EXACT, varying, other).state, KPROF_CHANGE_NONE);
    const double missing[] = {NAN};
    assert_int_equal(CHANGE(EXACT, one, missing).state, KPROF_CHANGE_UNKNOWN);
    const double huge[] = {1.7e308, -1.7e308};
    assert_int_equal(CHANGE(NOISY, one, huge).state, KPROF_CHANGE_UNKNOWN);
}

TEST(traffic_has_a_tolerance)
{
    const double from[] = {1000}, near[] = {1019}, far[] = {1021}, none[] = {0};
    assert_int_equal(CHANGE(TRAFFIC, from, near).state, KPROF_CHANGE_NONE);
    assert_int_equal(CHANGE(TRAFFIC, from, far).state, KPROF_CHANGE_REAL);
    assert_int_equal(CHANGE(TRAFFIC, none, from).state, KPROF_CHANGE_REAL);
    assert_int_equal(CHANGE(TRAFFIC, none, none).state, KPROF_CHANGE_NONE);
    assert_true(isnan(kprof_change_pct(&(kprof_change){.centers = {{1, 0, 0}}}, 5)));
}

TEST(noise_is_no_change)
{
    const double from[] = {100, 104, 96, 108, 92}, near[] = {104, 108, 100, 112, 96}, far[] = {150, 154, 146, 158, 142};
    assert_int_equal(CHANGE(NOISY, from, near).state, KPROF_CHANGE_NONE);
    assert_int_equal(CHANGE(NOISY, from, far).state, KPROF_CHANGE_REAL);
}

TEST(conditions_are_read)
{
    static const struct {
        const char *text, *metric;
        kprof_comparator comparator;
        double limit;
        bool is_pct;
    } rows[] = {
        {"dram__bytes_read.sum>+3%", "dram__bytes_read.sum", KPROF_ABOVE, 3, true},
        {"duration > 5.5 %", KPROF_TIME_METRIC, KPROF_ABOVE, 5.5, true},
        {"duration>+5%", KPROF_TIME_METRIC, KPROF_ABOVE, 5, true},
        {"duration>5us", KPROF_TIME_METRIC, KPROF_ABOVE, 5000, false},
        {"duration>=-.5 ms", KPROF_TIME_METRIC, KPROF_AT_LEAST, -500000, false},
        {"gpu__time_duration.sum>20ns", KPROF_TIME_METRIC, KPROF_ABOVE, 20, false},
        {"duration<2s", KPROF_TIME_METRIC, KPROF_BELOW, 2e9, false},
        {"duration>0", KPROF_TIME_METRIC, KPROF_ABOVE, 0, false},
        {"smsp__inst_executed.sum>=1", "smsp__inst_executed.sum", KPROF_AT_LEAST, 1, false},
        {"lts__t_sector_hit_rate.pct<-10%", "lts__t_sector_hit_rate.pct", KPROF_BELOW, -10, true},
        {"a.sum<=.5", "a.sum", KPROF_AT_MOST, 0.5, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        kprof_condition condition;
        assert_int_equal(kprof_condition_parse(rows[i].text, &condition), KPROF_OK);
        assert_string_equal(condition.metric, rows[i].metric);
        assert_string_equal(condition.text, rows[i].text);
        assert_int_equal(condition.comparator, rows[i].comparator);
        assert_true(condition.limit == rows[i].limit);
        assert_int_equal(condition.is_pct, rows[i].is_pct);
        kprof_condition_free(&condition);
    }
}

TEST(wrong_conditions_name_what_is_wrong)
{
    static const char *const rows[][2] = {
        {"", "\"\" is no comparison"},
        {"duration", "\"duration\" is no comparison"},
        {"duration==5us", "\"duration==5us\" is no comparison"},
        {">3%", "\">3%\" is a comparison of no"},
        {"a.sum>", "\"\" is no number"},
        {"duration>3x",
         "\"x\" is no unit of gpu__time_duration.sum; give % for percent of the baseline, or its unit ns"},
        {"a.sum>%", "\"%\" is no number"},
        {"duration>3%%", "\"%%\" is no unit of"},
        {"a.sum>>3", "\">3\" is no number"},
        {"duration>1e5", "\"e5\" is no unit of"},
        {"a.sum>nan", "\"nan\" is no number"},
        {"a.sum>+-3", "\"+-3\" is no number"},
        {"a.sum>3 of the longest units", "\"3 of the longest units\" is no number"},
        {"duration>5", "\"duration>5%\" or \"duration>+5%\""},
        {"duration>5", "\"duration>5us\""},
        {"duration > -5 ", "\"duration > -5 %\" for"},
        {"gpu__time_duration.sum>=5", "\"gpu__time_duration.sum>=5us\""},
    };
    log_capture capture;
    for (size_t i = 0; i < COUNT(rows); i++) {
        kprof_condition condition;
        log_capture_start(&capture);
        assert_int_equal(kprof_condition_parse(rows[i][0], &condition), KPROF_USAGE);
        if (!strstr(capture.last, rows[i][1]) || !strstr(capture.last, rows[i][0]))
            fail_msg("%s: %s", rows[i][0], capture.last);
        kprof_condition_free(&condition);
    }
    kprof_log_set_sink(NULL, NULL);
}

TEST(limits_have_the_unit_of_their_metric)
{
    static const struct {
        const char *text, *unit, *refused;
        double limit;
    } rows[] = {
        {"gpu__time_active.sum>5", "ns", "\"gpu__time_active.sum>5us\"", 0},
        {"gpu__time_active.sum>5us", "ns", NULL, 5000},
        {"gpu__time_active.sum>5%", "ns", NULL, 5},
        {"dram__bytes_read.sum>5us", "byte", "\"us\" is no unit of dram__bytes_read.sum", 0},
        {"dram__bytes_read.sum>5MB", "byte", NULL, 5e6},
        {"smsp__inst_executed.sum>5", "inst", NULL, 5},
        {"smsp__inst_executed.sum>1e5", "inst", "\"e5\" is no unit", 0},
    };
    log_capture capture;
    for (size_t i = 0; i < COUNT(rows); i++) {
        kprof_condition condition;
        assert_int_equal(kprof_condition_parse(rows[i].text, &condition), KPROF_OK);
        log_capture_start(&capture);
        kprof_status status = kprof_condition_settle_unit(&condition, rows[i].unit);
        assert_int_equal(status, rows[i].refused ? KPROF_USAGE : KPROF_OK);
        if (rows[i].refused && !strstr(capture.last, rows[i].refused))
            fail_msg("%s: %s", rows[i].text, capture.last);
        if (!rows[i].refused)
            assert_true(condition.limit == rows[i].limit);
        kprof_condition_free(&condition);
    }
    kprof_log_set_sink(NULL, NULL);
}

static kprof_gate check(const char *text, const kprof_change *change, double p)
{
    kprof_condition condition;
    assert_int_equal(kprof_condition_parse(text, &condition), KPROF_OK);
    kprof_gate gate = kprof_condition_check(&condition, change, p);
    kprof_condition_free(&condition);
    return gate;
}

TEST(conditions_are_met_or_open)
{
    const double one[] = {1000}, more[] = {1030}, none[] = {0};
    const kprof_change count = CHANGE(EXACT, one, more), rise = CHANGE(TRAFFIC, none, one);
    assert_int_equal(check("a>0", &count, NAN), KPROF_GATE_FAILED);
    assert_int_equal(check("a>+2.9%", &count, NAN), KPROF_GATE_FAILED);
    assert_int_equal(check("a>3%", &count, NAN), KPROF_GATE_PASSED);
    assert_int_equal(check("a>=3%", &count, NAN), KPROF_GATE_FAILED);
    assert_int_equal(check("a<0", &count, NAN), KPROF_GATE_PASSED);
    assert_int_equal(check("a>1000%", &rise, NAN), KPROF_GATE_FAILED);
    const double from[] = {100, 101, 102, 103, 104, 105}, to[] = {110, 111, 112, 113, 114, 115};
    const kprof_change slower = CHANGE(NOISY, from, to), few = CHANGE(NOISY, one, more);
    assert_int_equal(check("a>3%", &slower, 0.005), KPROF_GATE_FAILED);
    assert_int_equal(check("a>3%", &slower, 0.05), KPROF_GATE_INCONCLUSIVE); /* one of many kernels */
    assert_int_equal(check("a>10%", &slower, 0.005), KPROF_GATE_INCONCLUSIVE);
    assert_int_equal(check("a>20%", &slower, 0.005), KPROF_GATE_PASSED);
    assert_int_equal(check("a<-3%", &slower, 0.005), KPROF_GATE_PASSED);
    assert_int_equal(check("a>3%", &few, NAN), KPROF_GATE_INCONCLUSIVE);
    assert_int_equal(check("a>3%", &(kprof_change){0}, NAN), KPROF_GATE_INCONCLUSIVE);
}

/* Compare a kernel with itself when it takes `factor` times as long. Each kernel has its own noise, each run its own
 * drift. */
static void compare_twice(uint64_t *seed, double factor, kprof_change changes[2])
{
    double times[2][16], cycles[2][16];
    const size_t repeats = 5 + (size_t)(8 * diff_uniform(seed));
    const double time_ns = 3000 * exp(5 * diff_uniform(seed)), noise = 0.002 + 0.01 * diff_uniform(seed);
    for (int side = 0; side < 2; side++) {
        const double drift = 0.997 + 0.006 * diff_uniform(seed);
        for (size_t k = 0; k < repeats; k++) {
            times[side][k] = diff_noisy_time(seed, time_ns * drift * (side ? factor : 1), noise);
            cycles[side][k] = times[side][k] * 1.98;
        }
    }
    changes[KPROF_DIFF_TIME] =
        change_of(KPROF_CLASS_NOISY, (kprof_sample){times[0], repeats}, (kprof_sample){times[1], repeats});
    changes[KPROF_DIFF_CYCLES] =
        change_of(KPROF_CLASS_NOISY, (kprof_sample){cycles[0], repeats}, (kprof_sample){cycles[1], repeats});
}

/* How many of the kernels of two runs are called better or worse. */
#define KERNELS 12
static size_t count_verdicts(uint64_t seed, double factor)
{
    kprof_change changes[KERNELS][2];
    double p[KERNELS];
    for (size_t i = 0; i < KERNELS; i++) {
        compare_twice(&seed, factor, changes[i]);
        p[i] = changes[i][KPROF_DIFF_TIME].shift.p;
    }
    kprof_holm(p, KERNELS);
    size_t called = 0;
    for (size_t i = 0; i < KERNELS; i++) {
        kprof_diff_kernel kernel = {.changes = changes[i], .p = p[i]};
        kprof_diff_judge(&kernel, usual.time_pct);
        called += kernel.verdict == KPROF_JUDGEMENT_WORSE || kernel.verdict == KPROF_JUDGEMENT_BETTER;
    }
    return called;
}

TEST(one_program_twice_is_neither_better_nor_worse)
{
    size_t found = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        if (count_verdicts(seed, 1) > 0)
            fail_msg("a kernel is called better or worse, seed %d", (int)seed);
        found += count_verdicts(seed, 1.15);
    }
    assert_in_range(found, 100 * KERNELS / 2, 100 * KERNELS); /* the same rules find what did change */
}

static kprof_judgement judge(double time_factor, double cycles_factor, double p)
{
    kprof_change changes[2];
    const double factors[] = {time_factor, cycles_factor};
    for (int metric = 0; metric < 2; metric++) {
        double from[] = {1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007}, to[COUNT(from)];
        for (size_t i = 0; i < COUNT(from); i++)
            to[i] = from[i] * factors[metric];
        kprof_changed_values values = {KPROF_CLASS_NOISY, {{from, COUNT(from)}, {to, COUNT(to)}}, true};
        kprof_change_of(&values, &usual, &changes[metric]);
    }
    kprof_diff_kernel kernel = {.changes = changes, .p = p};
    kprof_diff_judge(&kernel, usual.time_pct);
    assert_int_equal(kernel.verdict == KPROF_JUDGEMENT_INCONCLUSIVE, *kernel.reason != '\0');
    return kernel.verdict;
}

TEST(verdicts_need_all_evidence)
{
    assert_int_equal(judge(1.05, 1.05, 0.001), KPROF_JUDGEMENT_WORSE);
    assert_int_equal(judge(0.95, 0.95, 0.001), KPROF_JUDGEMENT_BETTER);
    assert_int_equal(judge(1.01, 1.01, 0.001), KPROF_JUDGEMENT_SAME);
    assert_int_equal(judge(1.05, 1.05, 0.02), KPROF_JUDGEMENT_INCONCLUSIVE);
    assert_int_equal(judge(1.018, 1.018, 0.001), KPROF_JUDGEMENT_INCONCLUSIVE);
    assert_int_equal(judge(1.05, 1, 0.001), KPROF_JUDGEMENT_INCONCLUSIVE);
    assert_int_equal(judge(1.05, 0.97, 0.001), KPROF_JUDGEMENT_INCONCLUSIVE);
    assert_int_equal(judge(1.05, 1.03, 0.001), KPROF_JUDGEMENT_WORSE);
    assert_int_equal(judge(1.05, NAN, 0.001), KPROF_JUDGEMENT_WORSE); /* no cycles were measured */
}

/* A report of one launch of each kernel: "_Z5otherv", or "_Z5otherv 4096" with so many bytes of shared memory. */
static void write_kernels(const char *path, const char *const *mangled)
{
    fixture_metrics metrics = fixture_metrics_load();
    kprof_report *report = fixture_create(path, &metrics);
    kprof_ingest *ingest = NULL;
    ingest = kprof_ingest_new(report);
    fixture_begin_process(ingest, &metrics);
    for (size_t i = 0; mangled[i]; i++) {
        kprof_record record = {.type = KPROF_RECORD_KERNEL, .kernel = fixture_kernel()};
        record.kernel.kernel = 10 + (uint32_t)i;
        char name[64];
        unsigned shared_bytes = record.kernel.static_smem_bytes;
        assert_true(sscanf(mangled[i], "%63s %u", name, &shared_bytes) > 0);
        record.kernel.mangled = name;
        record.kernel.static_smem_bytes = shared_bytes;
        fixture_store(ingest, &record);
        record = (kprof_record){.type = KPROF_RECORD_LAUNCH, .launch = fixture_launch(&metrics)};
        record.launch.kernel = 10 + (uint32_t)i;
        fixture_store(ingest, &record);
    }
    kprof_ingest_free(ingest);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    fixture_metrics_free(&metrics);
}

/* Describe the pairs: "tile<16>(float*)=tile<32>(float*)[2]" for each, with the kind of match. */
static void find_pairs(const char *const *baseline, const char *const *newer, char text[1024])
{
    char paths[2][512];
    kprof_report *reports[2];
    kprof_model models[2];
    kprof_model_walk walks[2];
    kprof_launch_pairs pairs;
    for (int side = 0; side < 2; side++) {
        snprintf(paths[side], sizeof paths[side], "%s", fixture_path(side ? "pairs-b.kprof" : "pairs-a.kprof"));
        write_kernels(paths[side], side ? newer : baseline);
        assert_int_equal(kprof_report_open(paths[side], &reports[side]), KPROF_OK);
        assert_int_equal(kprof_model_load(reports[side], &models[side]), KPROF_OK);
        walks[side] = (kprof_model_walk){reports[side], &models[side], NULL, false};
    }
    kprof_work work = {{reports[0], reports[1]}, 0};
    assert_int_equal(kprof_launch_pairs_find(walks, &work, &pairs), KPROF_OK);
    text[0] = '\0';
    for (size_t i = 0; i < pairs.count; i++) {
        const kprof_launch_pair *pair = &pairs.pairs[i];
        snprintf(text + strlen(text), 1024 - strlen(text), "%s=%s[%d] ", pair->sides[0]->kernel->demangled,
                 pair->sides[1]->kernel->demangled, pair->match);
    }
    for (int side = 0; side < 2; side++) {
        kprof_model_free(&models[side]);
        assert_int_equal(kprof_report_close(reports[side]), KPROF_OK);
        unlink(paths[side]);
    }
}

TEST(renamed_kernels_match_where_nothing_else_does)
{
    static const char tile16[] = "_Z4tileILi16EEvPf", tile32[] = "_Z4tileILi32EEvPf", tile64[] = "_Z4tileILi64EEvPf";
    static const char other[] = "_Z5otherv";
    char text[1024];
#define LIST(...) (const char *const[]){__VA_ARGS__, NULL}
    find_pairs(LIST(tile16, other), LIST(tile32), text);
    assert_string_equal(text, "void tile<16>(float*)=void tile<32>(float*)[3] ");
    find_pairs(LIST(tile16), LIST(tile32, tile64), text); /* it may be either */
    assert_string_equal(text, "");
    find_pairs(LIST(tile16, tile32), LIST(tile32, tile64), text); /* the others are left over, one on each side */
    assert_string_equal(text, "void tile<32>(float*)=void tile<32>(float*)[0] "
                              "void tile<16>(float*)=void tile<64>(float*)[3] ");
    find_pairs(LIST(other), LIST(tile32), text);
    assert_string_equal(text, "");
}

/* What a padded tile needs, say. */
TEST(kernels_match_that_need_other_shared_memory)
{
    static const char name[] = "_Z9transposePf";
    static const char before[] = "_Z9transposePf 4096", after[] = "_Z9transposePf 4224";
    char text[1024];
    find_pairs(LIST(before), LIST(after), text);
    assert_string_equal(text, "transpose(float*)=transpose(float*)[2] ");
    find_pairs(LIST(before), LIST(name, after), text); /* it may be either */
    assert_string_equal(text, "");
    find_pairs(LIST(name, before), LIST(name, after), text);
    assert_string_equal(text, "transpose(float*)=transpose(float*)[0] transpose(float*)=transpose(float*)[2] ");
    find_pairs(LIST("_Z4tileILi16EEvPf 4096"), LIST("_Z4tileILi32EEvPf 8192"), text);
    assert_string_equal(text, "void tile<16>(float*)=void tile<32>(float*)[3] ");
}

typedef struct golden_case {
    const char *name;
    kprof_print_options options;
    const char *conditions[3];
} golden_case;

static char *print_diff(const char *paths[2], const golden_case *test, kprof_diff_outcome *outcome)
{
    kprof_report *reports[2] = {NULL, NULL};
    kprof_condition conditions[3];
    kprof_diff_request request = {.settings = {{"before.kprof", "all"}, {"after.kprof", "all"}},
                                  .conditions = conditions,
                                  .tolerances = usual,
                                  .outcome = outcome};
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    for (int side = 0; side < 2; side++)
        assert_int_equal(kprof_report_open(paths[side], &reports[side]), KPROF_OK);
    for (; request.condition_count < 3 && test->conditions[request.condition_count]; request.condition_count++)
        assert_int_equal(
            kprof_condition_parse(test->conditions[request.condition_count], &conditions[request.condition_count]),
            KPROF_OK);
    kprof_page_input source = {reports, 2, &request};
    assert_int_equal(kprof_page_show(&kprof_diff_page, &source, &test->options, file), KPROF_OK);
    fclose(file);
    for (size_t i = 0; i < request.condition_count; i++)
        kprof_condition_free(&conditions[i]);
    for (int side = 0; side < 2; side++)
        assert_int_equal(kprof_report_close(reports[side]), KPROF_OK);
    return text;
}

static char before_path[512], after_path[512];

#define FORMAT(name) .format = KPROF_FORMAT_##name
static golden_case cases[] = {
    {"diff.txt", {FORMAT(TEXT)}, {NULL}},
    {"diff-narrow.txt", {FORMAT(TEXT), .width = 80}, {NULL}},
    {"diff-all.txt", {FORMAT(TEXT), .all_rows = true, .kernel_base = "function"}, {"dram__bytes_read.sum>+3%"}},
    {"diff-gates.txt",
     {FORMAT(TEXT), .kernel_base = "function"},
     {"dram__bytes_read.sum>+3%", "duration>5%", "smsp__inst_executed.sum>0"}},
    {"diff.csv", {FORMAT(CSV)}, {"duration>5%"}},
    {"diff-wide.csv", {FORMAT(CSV_WIDE)}, {NULL}},
    {"diff.json", {FORMAT(JSON)}, {"duration>5%"}},
    {"diff.md", {FORMAT(MARKDOWN)}, {"duration>5%"}},
};
#define CASES COUNT(cases)

static void check_golden(void **state)
{
    const golden_case *test = *state;
    kprof_diff_outcome outcome = {0};
    KPROF_AUTO_FREE char *printed = print_diff((const char *[2]){before_path, after_path}, test, &outcome);
    fixture_assert_golden(test->name, printed);
}

/* Two runs of one program, told apart by their noise alone. */
TEST(reports_of_one_program_are_the_same)
{
    char second[512];
    snprintf(second, sizeof second, "%s", fixture_path("diff-second.kprof"));
    static const golden_case plain = {"", {FORMAT(JSON)}, {"duration>5%"}};
    for (uint64_t seed = 10; seed < 14; seed++) {
        kprof_diff_outcome outcome = {0};
        diff_fixture_write(second, &(diff_run){.seed = seed, .is_multiplexed = seed == 13});
        char *text = print_diff((const char *[2]){before_path, second}, &plain, &outcome);
        assert_non_null(strstr(text, "\"worse\":0,\"better\":0,"));
        assert_int_equal(outcome.failed, 0);
        assert_int_equal(outcome.pairs, 7);
        assert_int_equal(strstr(text, "\"replayed\",\"new\":\"multiplexed\"") != NULL, seed == 13);
        assert_int_equal(strstr(text, "multiplexed, replayed before") != NULL, seed == 13);
        free(text);
    }
    KPROF_AUTO_FREE char *text = print_diff((const char *[2]){second, second}, &plain, &(kprof_diff_outcome){0});
    assert_non_null(strstr(text, "\"note\":\"multiplexed\""));
    unlink(second);
}

/* The text has a line for each letter, with white space around it. */
static kprof_source_text letters(const char *lines, const char *indent)
{
    kprof_source_text out = {.lines = calloc(strlen(lines) + 1, sizeof *out.lines)};
    kprof_strbuf text = KPROF_STRBUF_INIT;
    assert_non_null(out.lines);
    for (; lines[out.line_count]; out.line_count++) {
        out.lines[out.line_count] = text.length;
        kprof_strbuf_printf(&text, "%s%c\n", indent, lines[out.line_count]);
    }
    out.size = text.length;
    out.text = kprof_strbuf_take(&text);
    return out;
}

/* `expected` has the new number of each line, from '1'; '-' for those that are gone. */
static void check_lines(const char *old, const char *new, const char *expected)
{
    char found[64] = "";
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_line_map map;
    kprof_source_text from = letters(old, ""), to = letters(new, "  ");
    kprof_line_map_make(&pool, &from, &to, &map);
    assert_int_equal(map.count, strlen(expected));
    for (size_t i = 0; i < map.count; i++)
        found[i] = (char)(map.to[i] > 0 ? '0' + (int)map.to[i] : '-');
    assert_string_equal(found, expected);
    kprof_source_text_free(&from);
    kprof_source_text_free(&to);
}

TEST(lines_are_found_again_in_a_file_that_was_edited)
{
    check_lines("abc", "abc", "123");
    check_lines("abc", "xxabc", "345");
    check_lines("abc", "axxbc", "145");
    check_lines("abcd", "ad", "1--2");
    check_lines("abcd", "aXcd", "1234"); /* one line was edited, and is at its place */
    check_lines("abcd", "aXYcd", "1-45");
    check_lines("a{}b{}c", "a{}xb{}c", "1235678");
    check_lines("}}}", "}}}}}", "123");
    check_lines("ab", "ba", "21"); /* they were moved */
    check_lines("abc", "", "---");
    check_lines("", "abc", "");
    check_lines("abc", "xyz", "---");
}

/* Whatever was edited, no two lines become one, and lines that each text has once are found. */
TEST(lines_of_random_edits_differ)
{
    srand(1);
    for (int round = 0; round < 2000; round++) {
        char texts[2][24] = {"", ""}, is_used[32] = "";
        for (int side = 0; side < 2; side++)
            for (int i = 0, count = rand() % 20; i < count; i++)
                texts[side][i] = (char)('a' + rand() % 9);
        KPROF_AUTO(kprof_pool) pool = {0};
        kprof_line_map map;
        kprof_source_text from = letters(texts[0], ""), to = letters(texts[1], "");
        kprof_line_map_make(&pool, &from, &to, &map);
        for (size_t i = 0; i < map.count; i++) {
            assert_in_range(map.to[i], 0, to.line_count);
            assert_false(map.to[i] > 0 && is_used[map.to[i]]++);
            char *same = strchr(texts[1], texts[0][i]);
            const bool is_once = strchr(texts[0], texts[0][i]) == &texts[0][i] &&
                                 !strchr(&texts[0][i + 1], texts[0][i]) && same && !strchr(same + 1, texts[0][i]);
            if (is_once)
                assert_int_equal(map.to[i], same - texts[1] + 1);
        }
        kprof_source_text_free(&from);
        kprof_source_text_free(&to);
    }
}

static int write_reports(void **state)
{
    snprintf(before_path, sizeof before_path, "%s", fixture_path("diff-before.kprof"));
    snprintf(after_path, sizeof after_path, "%s", fixture_path("diff-after.kprof"));
    diff_fixture_write(before_path, &(diff_run){.seed = 1});
    diff_fixture_write(after_path, &(diff_run){.seed = 2, .is_new = true});
    return 0;
}

static int remove_reports(void **state)
{
    return unlink(before_path) + unlink(after_path);
}

int main(void)
{
    for (size_t i = 0; i < CASES; i++)
        test_register((struct CMUnitTest){cases[i].name, check_golden, NULL, NULL, &cases[i]});
    around_all(write_reports, remove_reports);
    return run_all_tests();
}
