/* Ranges that the application makes: which instances are chosen, and which steps of a schedule are measured. */
#include "core/filter.h"
#include "log_capture.h"
#include "test.h"

static log_capture log_seen;

/* A program as a string: S and s are cudaProfilerStart and cudaProfilerStop, A and B push a range "A" or "B", ) pops
 * it, < starts a range "A" and > ends it, and . is a launch. */
typedef struct program {
    kprof_filter *filter;
    kprof_nvtx_range open[16];
    size_t count;
} program;

static void begin(program *p, const char *name, bool is_started)
{
    p->open[p->count++] = (kprof_nvtx_range){"", name, is_started, 0};
    if (kprof_filter_counts_ranges(p->filter))
        p->open[p->count - 1].marks =
            kprof_filter_begin_range(p->filter, &(kprof_nvtx_ranges){p->open, p->count}, p->count - 1);
}

static bool launch(program *p)
{
    kprof_filter *filter = p->filter;
    if (kprof_filter_is_stopped(filter) || kprof_filter_is_between_steps(filter) || kprof_filter_exhausted(filter))
        return false;
    const bool matches =
        kprof_filter_match_calls(filter) && kprof_filter_match_nvtx(filter, &(kprof_nvtx_ranges){p->open, p->count});
    return kprof_filter_take_launch(filter, matches, &(kprof_filter_launch){0});
}

static void run(program *p, const char *steps, char *taken)
{
    for (; *steps; steps++) {
        if (*steps == 'S' || *steps == 's') {
            kprof_filter_note_profiler(p->filter, *steps == 'S');
            kprof_filter_note_profiler(p->filter, *steps == 'S'); /* CUPTI tells it twice */
        } else if (*steps == 'A' || *steps == 'B') {
            begin(p, *steps == 'A' ? "A" : "B", false);
        } else if (*steps == '<') {
            begin(p, "A", true);
        } else if (*steps == ')' || *steps == '>') {
            const uint64_t marks = p->open[--p->count].marks;
            if (kprof_filter_counts_ranges(p->filter))
                kprof_filter_end_range(p->filter, marks);
        } else {
            *taken++ = launch(p) ? 'x' : '.';
        }
    }
    *taken = '\0';
}

static void assert_taken(kprof_filter_spec spec, const char *steps, const char *expected)
{
    program p = {0};
    char taken[128];
    assert_int_equal(kprof_filter_new(&spec, &p.filter), KPROF_OK);
    run(&p, steps, taken);
    assert_string_equal(taken, expected);
    kprof_filter_free(p.filter);
}

static char *a_pushed[] = {"A/"}, *a_started[] = {"A"}, *a_top[] = {"A]"}, *both[] = {"A/", "B/"}, *inner[] = {"A/B"};

TEST(ranges_of_calls)
{
    static const char steps[] = ".S.s.S..s.S.s";
    assert_taken((kprof_filter_spec){.range_filter = ":2:"}, steps, "...xx..");
    assert_taken((kprof_filter_spec){.range_filter = "no:1|3:"}, steps, ".x....x");
    assert_taken((kprof_filter_spec){.range_filter = "yes:[2-3]:"}, steps, "...xx.x");
    assert_taken((kprof_filter_spec){.range_filter = ":2:", .profiler_calls = KPROF_FROM_A_START_CALL}, steps,
                 "...xx..");
    assert_taken((kprof_filter_spec){.range_filter = ":2:", .launch_skip = 1}, steps, "....x..");
}

TEST(instances_of_nvtx_ranges)
{
    static const char steps[] = ".A.).A.B.).).A.)";
    assert_taken((kprof_filter_spec){.range_filter = "::2", .nvtx_include = {a_pushed, 1, 1}}, steps, "...xxx..");
    assert_taken((kprof_filter_spec){.range_filter = "::[13]", .nvtx_include = {a_pushed, 1, 1}}, steps, ".x.....x");
    assert_taken((kprof_filter_spec){.range_filter = "::2", .nvtx_include = {a_top, 1, 1}}, steps, "...x.x..");
    assert_taken((kprof_filter_spec){.range_filter = "::1", .nvtx_include = {both, 2, 2}}, steps, ".x..x...");
    assert_taken((kprof_filter_spec){.range_filter = "::1", .nvtx_include = {inner, 1, 1}}, steps, "....x...");
    assert_taken((kprof_filter_spec){.range_filter = "::2", .nvtx_include = {a_started, 1, 1}}, ".<.>.<.>.", "...x.");
    /* ranges without launches count, and one within another is an instance by itself */
    assert_taken((kprof_filter_spec){.range_filter = "::3", .nvtx_include = {a_pushed, 1, 1}}, "A)A)A.).", "x.");
    assert_taken((kprof_filter_spec){.range_filter = "::2", .nvtx_include = {a_pushed, 1, 1}}, "A.A.).)", ".x.");
    assert_taken(
        (kprof_filter_spec){.range_filter = "::2", .nvtx_include = {a_pushed, 1, 1}, .nvtx_exclude = {inner, 1, 1}},
        steps, "...x.x..");
}

/* As ncu's manual has it: with "no" one or the other, with "yes" the one in the other. */
TEST(both_kinds_of_ranges)
{
    static const char steps[] = "S.A.)A.)A.)sS.A.)A.)s";
    const kprof_filter_spec either = {.range_filter = ":2:3", .nvtx_include = {a_pushed, 1, 1}},
                            nested = {.range_filter = "yes:2:2", .nvtx_include = {a_pushed, 1, 1}},
                            anew = {.range_filter = "yes::1", .nvtx_include = {a_pushed, 1, 1}};
    assert_taken(either, steps, "...xxxx");
    assert_taken(nested, steps, "......x");
    assert_taken(anew, steps, ".x...x.");
    assert_taken(anew, "A.)S.A.)s", "..x"); /* outside of the calls there is none to number */
}

TEST(steps_of_nvtx)
{
    kprof_filter_spec spec = {.schedule = "1,1,1,2,2", .step = "A/"};
    /* numbers of steps: 1 skipped, 2 waits, 3 warms up, 4 and 5 are measured, and once more */
    assert_taken(spec, ".A.)A.)A.)A..)A.).A.)A.)A.)A.)A.)A.)A.).", "....xxx...xx....");
    assert_taken(spec, "A)A)A)AA.)B.).).A.)", "xxx.x"); /* a range within a step is part of it */
    assert_taken((kprof_filter_spec){.schedule = "0,0,0,1,0", .step = "A/"}, ".A.).A.).", ".x.x."); /* for ever */
    spec.launch_count = 2;
    assert_taken(spec, "A)A)A)A.B.).)", "xx.");
    assert_taken((kprof_filter_spec){.schedule = "0,1,0,1,0", .step = "A"}, "<.>.<.>.", "..x.");
}

TEST(steps_of_calls_and_launches)
{
    assert_taken((kprof_filter_spec){.schedule = "1,0,0,1,1", .profiler_calls = KPROF_FROM_A_START_CALL},
                 ".S.sS..s.S.s", "..xx..");
    assert_taken((kprof_filter_spec){.schedule = "2,1,0,2,2"}, "............", "...xx.xx....");
    assert_taken((kprof_filter_spec){.schedule = "0,1,1,1,0", .launch_skip = 2}, "............", "....x..x..x.");
    assert_taken((kprof_filter_spec){.schedule = "0,1,0,1,0", .launch_count = 2}, "........", ".x.x....");
}

TEST(a_schedule_ends)
{
    static const struct {
        kprof_filter_spec spec;
        const char *before, *last;
    } cases[] = {{{.schedule = "1,0,0,1,1"}, ".", "."},
                 {{.schedule = "1,0,0,1,1", .step = "A/"}, "A.)A.", ")"},
                 {{.schedule = "0,0,0,1,2", .profiler_calls = KPROF_FROM_A_START_CALL}, "S.sS.", "s"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p = {0};
        char taken[16];
        uint64_t first;
        assert_int_equal(kprof_filter_new(&cases[i].spec, &p.filter), KPROF_OK);
        run(&p, cases[i].before, taken);
        assert_false(kprof_filter_exhausted(p.filter));
        run(&p, cases[i].last, taken);
        assert_true(kprof_filter_exhausted(p.filter));
        assert_int_equal(kprof_filter_steps(p.filter, &first), 2);
        assert_int_equal(first, i < 2 ? 2 : 1);
        kprof_filter_free(p.filter);
    }
}

static void assert_refused(kprof_filter_spec spec, const char *why)
{
    assert_int_equal(kprof_filter_check(&spec), KPROF_USAGE);
    if (!strstr(log_seen.last, why))
        fail_msg("%s", log_seen.last);
}

TEST(mistakes_are_told)
{
    static const char *const ranges[] = {"2", ":2", "maybe:1:", "::", "yes::", ""};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        assert_refused((kprof_filter_spec){.range_filter = (char *)ranges[i]}, "write [yes|no]:RANGES:RANGES");
    assert_refused((kprof_filter_spec){.range_filter = ":two:"}, "--range-filter: \"two\" is no number from 1");
    assert_refused((kprof_filter_spec){.range_filter = "::2"}, "are those of --nvtx-include; give it");
    assert_refused((kprof_filter_spec){.range_filter = ":2:", .profiler_calls = KPROF_PROFILER_CALLS_IGNORED},
                   "which --disable-profiler-start-stop ignores");
    static const char *const schedules[][2] = {
        {"1,2,3", "it takes five numbers"},      {"1,1,1,1,1,1", "it takes five numbers"},
        {"1,1,1,0,1", "ACTIVE, the fourth"},     {"1,x,1,1,1", "\"x\" is no number of steps"},
        {"1,1,1,1,", "is no number of steps"},   {"", "is no number of steps"},
        {"-1,1,1,1,1", "is no number of steps"}, {"99999999999,1,1,1,1", "is no number of steps"}};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        assert_refused((kprof_filter_spec){.schedule = (char *)schedules[i][0]}, schedules[i][1]);
    assert_refused((kprof_filter_spec){.step = "A/"}, "--step A/ says what --schedule counts; give --schedule too");
    assert_refused((kprof_filter_spec){.schedule = "1,1,1,1,1", .step = "*/"}, "--step \"*/\": ");
}

AT_START(log_capture_start, &log_seen)
