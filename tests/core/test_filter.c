/* Tests which launches are taken: names in every base, patterns good, bad and hostile, skips, counts, devices and
 * threads. */
#include "core/filter.h"
#include "log_capture.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_ADD "_Z9vectorAddPKfS0_Pfi"
#define TEMPLATED  "_ZN2ns6reduceILi4EfEEvPT0_i" /* void ns::reduce<4, float>(float*, int) */

static log_capture log_seen;

static kprof_filter *make(kprof_filter_spec spec)
{
    kprof_filter *filter;
    assert_int_equal(kprof_filter_new(&spec, &filter), KPROF_OK);
    return filter;
}

static bool matches(char *kernel, kprof_name_base base, const char *mangled)
{
    kprof_filter *filter = make((kprof_filter_spec){.kernel = kernel, .name_base = base});
    bool result = kprof_filter_match_name(filter, mangled);
    kprof_filter_free(filter);
    return result;
}

TEST(names_of_a_census)
{
    char *chosen[] = {"other", VECTOR_ADD};
    kprof_filter *filter = make((kprof_filter_spec){.mangled = {chosen, 2, 2}});
    assert_true(kprof_filter_match_name(filter, VECTOR_ADD));
    assert_true(kprof_filter_match_name(filter, "other"));
    assert_false(kprof_filter_match_name(filter, "vectorAdd"));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.mangled = {chosen, 2, 2}, .kernel = "vectorAdd"});
    assert_true(kprof_filter_match_name(filter, VECTOR_ADD));
    assert_false(kprof_filter_match_name(filter, "other"));
    kprof_filter_free(filter);
}

TEST(names_match_in_their_base)
{
    static const struct {
        char *kernel;
        kprof_name_base base;
        const char *mangled;
        bool expected;
    } cases[] = {
        {NULL, KPROF_NAME_FUNCTION, VECTOR_ADD, true},
        {"vectorAdd", KPROF_NAME_FUNCTION, VECTOR_ADD, true},
        {"vectorad", KPROF_NAME_FUNCTION, VECTOR_ADD, false},
        {"vector", KPROF_NAME_FUNCTION, VECTOR_ADD, false},
        {"", KPROF_NAME_FUNCTION, VECTOR_ADD, false},
        {"reduce", KPROF_NAME_FUNCTION, TEMPLATED, true},
        {"ns::reduce", KPROF_NAME_FUNCTION, TEMPLATED, false},
        {"my_kernel", KPROF_NAME_FUNCTION, "my_kernel", true},
        {"void ns::reduce<4, float>(float*, int)", KPROF_NAME_DEMANGLED, TEMPLATED, true},
        {"reduce", KPROF_NAME_DEMANGLED, TEMPLATED, false},
        {TEMPLATED, KPROF_NAME_MANGLED, TEMPLATED, true},
        {"reduce", KPROF_NAME_MANGLED, TEMPLATED, false},
        {"regex:vector", KPROF_NAME_FUNCTION, VECTOR_ADD, true},
        {"regex:^vector$", KPROF_NAME_FUNCTION, VECTOR_ADD, false},
        {"regex:^(gemm|vector)\\w+$", KPROF_NAME_FUNCTION, VECTOR_ADD, true},
        {"regex:", KPROF_NAME_FUNCTION, VECTOR_ADD, true},
        {"regex:float", KPROF_NAME_FUNCTION, VECTOR_ADD, false},
        {"regex:reduce<\\d+, float>", KPROF_NAME_DEMANGLED, TEMPLATED, true},
        {"regex:ILi[0-9]E", KPROF_NAME_MANGLED, TEMPLATED, true},
        {"regex:(?i)VECTORADD", KPROF_NAME_FUNCTION, VECTOR_ADD, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (matches(cases[i].kernel, cases[i].base, cases[i].mangled) != cases[i].expected)
            fail_msg("case %zu: -k %s", i, cases[i].kernel);
    }
}

TEST(a_bad_pattern_is_shown_with_its_place)
{
    kprof_filter *filter;
    kprof_filter_spec spec = {.kernel = "regex:vec(tor"};
    assert_int_equal(kprof_filter_new(&spec, &filter), KPROF_USAGE);
    assert_null(filter);
    assert_non_null(strstr(log_seen.last, "vec(tor <-- here"));
    spec.kernel = "regex:a[b";
    assert_int_equal(kprof_filter_new(&spec, &filter), KPROF_USAGE);
    spec.kernel = "regex:*a";
    assert_int_equal(kprof_filter_new(&spec, &filter), KPROF_USAGE);
    assert_non_null(strstr(log_seen.last, "character 1 "));
}

TEST(hostile_patterns_end)
{
    char name[200];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    unsigned messages = log_seen.count;
    assert_false(matches("regex:^(a+)+$b|^(a|a)*c", KPROF_NAME_MANGLED, name));
    assert_true(log_seen.count > messages);
    assert_non_null(strstr(log_seen.last, "too long"));

    KPROF_AUTO_FREE char *pattern = malloc(100001);
    assert_non_null(pattern);
    memset(pattern, '(', 100000);
    memcpy(pattern, "regex:", 6);
    pattern[100000] = '\0';
    kprof_filter *filter;
    kprof_filter_spec spec = {.kernel = pattern};
    assert_int_equal(kprof_filter_new(&spec, &filter), KPROF_USAGE);
    pattern[5000] = '\0';
    assert_int_equal(kprof_filter_new(&spec, &filter), KPROF_USAGE);
    spec.kernel = "regex:((a{1000}){1000}){1000}";
    assert_int_equal(kprof_filter_new(&spec, &filter), KPROF_USAGE);
}

static bool take_on(kprof_filter *filter, bool matches, unsigned device)
{
    return kprof_filter_take_launch(filter, matches, &(kprof_filter_launch){.device = device});
}

/* Launches as a string: 'm' matches on device 0, '1' matches on device 1, '-' does not match. */
static void assert_taken(kprof_filter_spec spec, const char *launches, const char *expected)
{
    kprof_filter *filter = make(spec);
    char taken[64] = "";
    for (size_t i = 0; launches[i]; i++)
        taken[i] = take_on(filter, launches[i] != '-', launches[i] == '1') ? 'x' : '.';
    assert_string_equal(taken, expected);
    kprof_filter_free(filter);
}

TEST(skips_and_counts_follow_ncu)
{
    assert_taken((kprof_filter_spec){0}, "mm-m", "xx.x");
    assert_taken((kprof_filter_spec){.launch_skip = 2}, "m-mm-m", "...x.x");
    assert_taken((kprof_filter_spec){.launch_count = 2}, "m-mm-m", "x.x...");
    assert_taken((kprof_filter_spec){.launch_skip = 1, .launch_count = 2}, "m-mm-mm", "..xx...");
    assert_taken((kprof_filter_spec){.launch_skip_before_match = 3}, "mm-mm", "...xx");
    assert_taken((kprof_filter_spec){.launch_skip_before_match = 3, .launch_skip = 1}, "m--m-m", ".....x");
    assert_taken((kprof_filter_spec){.launch_skip_before_match = 2, .launch_count = 1}, "m-mm", "..x.");
    assert_taken((kprof_filter_spec){.launch_skip = UINT64_MAX, .launch_count = UINT64_MAX}, "mmm", "...");
}

TEST(devices_are_a_mask)
{
    assert_taken((kprof_filter_spec){.device_mask = 1}, "m1m1", "x.x.");
    assert_taken((kprof_filter_spec){.device_mask = 2}, "m1m1", ".x.x");
    assert_taken((kprof_filter_spec){.device_mask = 3}, "m1m1", "xxxx");
    assert_taken((kprof_filter_spec){.device_mask = 2, .launch_skip = 1}, "m1m1", "...x");
    kprof_filter *filter = make((kprof_filter_spec){.device_mask = 1ull << 63});
    assert_true(take_on(filter, true, 63));
    assert_false(take_on(filter, true, 64));
    assert_false(take_on(filter, true, 127));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){0});
    assert_true(take_on(filter, true, 200));
    kprof_filter_free(filter);
}

TEST(devices_may_count_by_themselves)
{
    assert_taken((kprof_filter_spec){.launch_skip = 1, .launch_count = 1}, "m1m1m1", ".x....");
    assert_taken((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_DEVICE, .launch_skip = 1, .launch_count = 1},
                 "m1m1m1", "..xx..");
    kprof_filter *filter =
        make((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_DEVICE, .launch_count = 1, .device_mask = 6});
    assert_true(take_on(filter, true, 1));
    assert_false(kprof_filter_exhausted(filter));
    assert_true(take_on(filter, true, 2));
    assert_true(kprof_filter_exhausted(filter));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_DEVICE, .launch_count = 1});
    assert_true(take_on(filter, true, 0));
    assert_false(kprof_filter_exhausted(filter)); /* there may be other devices */
    kprof_filter_free(filter);
}

TEST(before_matching_devices_skip_by_themselves)
{
    assert_taken((kprof_filter_spec){.launch_skip_before_match = 1}, "m1m1", ".xxx");
    assert_taken((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_DEVICE, .launch_skip_before_match = 1}, "m1m1",
                 "..xx");
}

/* Launches as a string: a letter is a configuration. */
static void assert_configs_taken(kprof_filter *filter, const char *launches, const char *expected)
{
    char taken[64] = "";
    for (size_t i = 0; launches[i]; i++) {
        const unsigned which = (unsigned)(launches[i] - 'a');
        /* each but the first differs from it in one member */
        const kprof_filter_launch launch = {.device = which == 1,
                                            .kernel = 1 + (which == 2),
                                            .grid = {4, 1, 1 + (which == 3)},
                                            .block = {32 << (which == 4), 1, 1},
                                            .dynamic_smem_bytes = which == 5 ? 1024 : 0};
        taken[i] = kprof_filter_take_launch(filter, true, &launch) ? 'x' : '.';
    }
    assert_string_equal(taken, expected);
}

TEST(configurations_may_count_by_themselves)
{
    kprof_filter *filter = make((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_CONFIG, .launch_count = 1});
    assert_true(kprof_filter_needs_shape(filter));
    assert_configs_taken(filter, "aabcdefabcdef", "x..xxxx......"); /* on any device */
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_CONFIG, .launch_skip = 1, .launch_count = 1});
    assert_configs_taken(filter, "accacca", "..xx...");
    assert_false(kprof_filter_exhausted(filter)); /* there may be other configurations */
    kprof_filter_take_another(filter,
                              &(kprof_filter_launch){.kernel = 2, .grid = {4, 1, 1}, .block = {32, 1, 1}}); /* c */
    assert_configs_taken(filter, "aacc", "..x.");
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_DEVICE});
    assert_false(kprof_filter_needs_shape(filter));
    kprof_filter_free(filter);
}

/* So many that the memory for them has a limit. */
TEST(there_are_enough_configurations)
{
    kprof_filter *filter = make((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_CONFIG, .launch_count = 1});
    log_capture_start(&log_seen);
    for (uint32_t i = 0; i < 70000; i++) {
        const kprof_filter_launch launch = {.grid = {i + 1}};
        assert_int_equal(kprof_filter_take_launch(filter, true, &launch), i < 65536);
    }
    assert_int_equal(log_seen.count, 1);
    assert_non_null(strstr(log_seen.last, "65536 configurations"));
    const kprof_filter_launch known = {.grid = {7}};
    assert_false(kprof_filter_take_launch(filter, true, &known));
    kprof_filter_take_another(filter, &known);
    assert_true(kprof_filter_take_launch(filter, true, &known));
    kprof_filter_free(filter);
}

TEST(one_launch_of_each_kernel)
{
    kprof_filter *filter = make((kprof_filter_spec){.invocation = "2"});
    assert_false(kprof_filter_match_invocation(filter, 1));
    assert_true(kprof_filter_match_invocation(filter, 2));
    assert_false(kprof_filter_match_invocation(filter, 3));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){0});
    assert_true(kprof_filter_match_invocation(filter, 1));
    assert_false(kprof_filter_match_invocation(filter, 0)); /* it is in another place */
    kprof_filter_free(filter);
}

/* As ncu has it: the third, and all that end in 5. */
TEST(launches_by_a_pattern_of_their_number)
{
    kprof_filter *filter = make((kprof_filter_spec){.invocation = ".*5|3"});
    for (int round = 0; round < 2; round++) /* the second time answers are known */
        for (uint64_t number = 1; number <= 1000; number++)
            assert_int_equal(kprof_filter_match_invocation(filter, number), number == 3 || number % 10 == 5);
    assert_true(kprof_filter_match_invocation(filter, 1000005));
    assert_false(kprof_filter_match_invocation(filter, 1000003));
    kprof_filter_free(filter);
}

TEST(launches_by_context_and_stream)
{
    kprof_filter *filter = make((kprof_filter_spec){.context = "1", .stream = "7"});
    assert_true(kprof_filter_needs_place(filter));
    assert_false(kprof_filter_needs_part_name(filter, KPROF_PART_STREAM));
    assert_true(kprof_filter_match_place(filter, &(kprof_filter_place){.numbers = {1, 7}}));
    assert_false(kprof_filter_match_place(filter, &(kprof_filter_place){.numbers = {1, 17}}));
    assert_false(kprof_filter_match_place(filter, &(kprof_filter_place){.numbers = {2, 7}}));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.stream = "copy|comp.*", .device_mask = 1});
    assert_true(kprof_filter_needs_part_name(filter, KPROF_PART_STREAM));
    assert_false(kprof_filter_needs_part_name(filter, KPROF_PART_CONTEXT));
    assert_true(kprof_filter_match_part_name(filter, KPROF_PART_STREAM, "compute"));
    assert_false(kprof_filter_match_part_name(filter, KPROF_PART_STREAM, "a copy")); /* the whole name */
    assert_true(kprof_filter_match_place(filter, &(kprof_filter_place){.is_named = {false, true}}));
    assert_false(kprof_filter_match_place(filter, &(kprof_filter_place){.numbers = {1, 7}}));
    assert_false(kprof_filter_match_place(filter, &(kprof_filter_place){1, .is_named = {false, true}}));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.device_mask = 1});
    assert_false(kprof_filter_needs_place(filter)); /* counting looks at it */
    kprof_filter_free(filter);
}

TEST(the_application_starts_and_stops)
{
    static const struct {
        kprof_profiler_calls calls;
        const char *expected; /* x: launches are left out, in turn: at first, started, stopped, stopped, started */
    } cases[] = {
        {KPROF_FROM_THE_START, "..xx."}, {KPROF_FROM_A_START_CALL, "x.xx."}, {KPROF_PROFILER_CALLS_IGNORED, "....."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const bool starts[] = {true, false, false, true};
        kprof_filter *filter = make((kprof_filter_spec){.profiler_calls = cases[i].calls});
        char left_out[8] = "";
        left_out[0] = kprof_filter_is_stopped(filter) ? 'x' : '.';
        assert_int_equal(kprof_filter_awaits_start(filter), cases[i].calls == KPROF_FROM_A_START_CALL);
        for (size_t k = 0; k < sizeof starts; k++) {
            kprof_filter_note_profiler(filter, starts[k]);
            left_out[k + 1] = kprof_filter_is_stopped(filter) ? 'x' : '.';
        }
        assert_string_equal(left_out, cases[i].expected);
        assert_false(kprof_filter_awaits_start(filter));
        kprof_filter_free(filter);
    }
}

TEST(exhaustion_comes_with_the_last_launch)
{
    kprof_filter *filter = make((kprof_filter_spec){.launch_skip = 1, .launch_count = 2});
    for (int i = 0; i < 3; i++) {
        assert_false(kprof_filter_exhausted(filter));
        (void)take_on(filter, true, 0);
    }
    assert_true(kprof_filter_exhausted(filter));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){0});
    (void)take_on(filter, true, 0);
    assert_false(kprof_filter_exhausted(filter));
    kprof_filter_free(filter);
}

/* What could not be measured does not count, and is no part of what is skipped. */
TEST(another_launch_is_taken_for_one_that_is_given_back)
{
    kprof_filter *filter = make((kprof_filter_spec){.launch_skip = 1, .launch_count = 2});
    assert_false(take_on(filter, true, 0));
    assert_true(take_on(filter, true, 0));
    kprof_filter_take_another(filter, &(kprof_filter_launch){.device = 0});
    assert_true(take_on(filter, true, 0));
    assert_false(kprof_filter_exhausted(filter));
    assert_true(take_on(filter, true, 0));
    assert_true(kprof_filter_exhausted(filter));
    kprof_filter_take_another(filter, &(kprof_filter_launch){.device = 0}); /* the last one, too */
    assert_false(kprof_filter_exhausted(filter));
    assert_true(take_on(filter, true, 0));
    assert_false(take_on(filter, true, 0));
    assert_true(kprof_filter_exhausted(filter));
    kprof_filter_free(filter);
}

static bool takes_in_place(kprof_filter *filter, const kprof_filter_launch *launch)
{
    const bool is_taken = kprof_filter_take_launch(filter, true, launch);
    kprof_filter_leave_uncounted(filter, launch);
    return is_taken;
}

/* Up to as many as are to be taken: by each device or configuration that counts, and each time that they count anew. */
TEST(launches_that_wait_do_not_count)
{
    const kprof_filter_launch first = {.device = 1, .kernel = 1}, second = {.device = 2, .kernel = 2};
    for (int mode = KPROF_FILTER_PER_DEVICE; mode <= KPROF_FILTER_PER_CONFIG; mode++) {
        kprof_filter *filter = make((kprof_filter_spec){.filter_mode = (kprof_filter_mode)mode, .launch_count = 1});
        for (int i = 0; i < 2; i++) {
            assert_true(takes_in_place(filter, &first));
            assert_true(takes_in_place(filter, &second));
            assert_true(takes_in_place(filter, &first)); /* it counts */
            assert_false(kprof_filter_take_launch(filter, true, &first));
            assert_true(kprof_filter_take_launch(filter, true, &second));
            assert_false(kprof_filter_take_launch(filter, true, &second));
            kprof_filter_restart(filter);
        }
        kprof_filter_free(filter);
    }
    kprof_filter *filter = make((kprof_filter_spec){0});
    kprof_filter_leave_uncounted(filter, &first);
    assert_true(kprof_filter_take_launch(filter, true, &first));
    kprof_filter_free(filter);
}

TEST(each_device_has_what_it_gave_back)
{
    kprof_filter *filter =
        make((kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_DEVICE, .device_mask = 6, .launch_count = 1});
    assert_true(take_on(filter, true, 1));
    assert_true(take_on(filter, true, 2));
    kprof_filter_take_another(filter, &(kprof_filter_launch){.device = 1});
    assert_false(kprof_filter_exhausted(filter));
    assert_true(take_on(filter, true, 1));
    assert_true(kprof_filter_exhausted(filter));
    assert_false(take_on(filter, true, 2));
    kprof_filter_free(filter);
}

TEST(the_spec_is_copied)
{
    char kernel[] = "vectorAdd";
    kprof_filter *filter = make((kprof_filter_spec){.kernel = kernel});
    memset(kernel, 'x', sizeof kernel - 1);
    assert_true(kprof_filter_match_name(filter, VECTOR_ADD));
    kprof_filter_free(filter);
    kprof_filter_free(NULL);
}

typedef struct crowd {
    kprof_filter *filter;
    atomic_uint taken, matched;
} crowd;

#define LAUNCHES_PER_THREAD 20000

static void *launch_many(void *user)
{
    crowd *c = user;
    for (int i = 0; i < LAUNCHES_PER_THREAD; i++) {
        if (i % 1000 == 0 && kprof_filter_match_name(c->filter, VECTOR_ADD))
            atomic_fetch_add(&c->matched, 1);
        if (take_on(c->filter, i % 2 == 0, 0))
            atomic_fetch_add(&c->taken, 1);
    }
    return NULL;
}

TEST(threads_take_exactly_the_count)
{
    kprof_filter_spec spec = {.kernel = "regex:^vector", .launch_skip = 1000, .launch_count = 12345};
    crowd c = {.filter = make(spec)};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &c), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.taken, 12345);
    assert_int_equal(c.matched, 4 * LAUNCHES_PER_THREAD / 1000);
    assert_true(kprof_filter_exhausted(c.filter));
    kprof_filter_free(c.filter);
}

#define CONFIGS 500

static void *launch_configurations(void *user)
{
    crowd *c = user;
    for (uint32_t i = 0; i < LAUNCHES_PER_THREAD; i++) {
        const kprof_filter_launch launch = {.grid = {1 + i % CONFIGS}};
        if (kprof_filter_take_launch(c->filter, true, &launch))
            atomic_fetch_add(&c->taken, 1);
    }
    return NULL;
}

/* Threads add the same configurations at the same time, and each has its count once. */
TEST(threads_take_as_many_of_each_configuration)
{
    crowd c = {.filter = make(
                   (kprof_filter_spec){.filter_mode = KPROF_FILTER_PER_CONFIG, .launch_skip = 2, .launch_count = 3})};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_configurations, &c), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.taken, 3 * CONFIGS);
    kprof_filter_free(c.filter);
}

TEST(ranges_matter_where_they_are_asked_for)
{
    static char *expressions[] = {"step/*/forward"}, *faulty[] = {"*/"};
    static const kprof_nvtx_range items[] = {{"", "step", false, 0}, {"", "x", false, 0}, {"", "forward", false, 0}};
    const kprof_nvtx_ranges inside = {items, 3}, outside = {items, 2};
    kprof_filter *filter = make((kprof_filter_spec){.kernel = "k"});
    assert_false(kprof_filter_needs_nvtx(filter));
    assert_true(kprof_filter_match_nvtx(filter, &outside));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.nvtx_include = {expressions, 1, 1}});
    assert_true(kprof_filter_needs_nvtx(filter));
    assert_true(kprof_filter_match_nvtx(filter, &inside));
    assert_false(kprof_filter_match_nvtx(filter, &outside));
    kprof_filter_free(filter);
    filter = make((kprof_filter_spec){.nvtx_exclude = {expressions, 1, 1}});
    assert_false(kprof_filter_match_nvtx(filter, &inside));
    kprof_filter_free(filter);
    assert_int_equal(kprof_filter_check(&(kprof_filter_spec){.nvtx_exclude = {faulty, 1, 1}}), KPROF_USAGE);
}

AT_START(log_capture_start, &log_seen)

TEST(faults_name_their_option)
{
    char text[] = "a,b";
    char *items[] = {text};
    const kprof_strlist functions = {items, 1, 1};
    const struct {
        kprof_filter_spec spec;
        const char *told;
    } cases[] = {
        {{.nvtx_exclude = {(char *[]){"a,/"}, 1, 1}}, "--nvtx-exclude \"a,/\": "},
        {{.python_include = functions}, "--python-include \"a,b/\": "},
        {{.python_exclude = functions}, "--python-exclude \"a,b/\": "},
        {{.native_exclude = functions}, "--native-exclude \"a,b/\": "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        kprof_filter *filter;
        log_capture_start(&log_seen);
        assert_int_equal(kprof_filter_new(&cases[i].spec, &filter), KPROF_USAGE);
        assert_non_null(strstr(log_seen.last, cases[i].told));
        assert_non_null(strstr(log_seen.last, "write \\,, and else give the option once for each name"));
    }
    kprof_filter *filter;
    const kprof_filter_spec of_ncu = {.native_include = {(char *[]){"net@net.cpp@step"}, 1, 1}};
    assert_int_equal(kprof_filter_new(&of_ncu, &filter), KPROF_USAGE);
    assert_non_null(strstr(log_seen.last, "write libnet.so@step or train.py@step"));
}
