/* Expressions about NVTX ranges as ncu documents them, and the text that a report keeps of the ranges. */
#include "core/nvtx.h"
#include "log_capture.h"
#include "test.h"

static log_capture log_seen;

static kprof_status make(const char *include, const char *exclude, kprof_nvtx_filter **out)
{
    KPROF_AUTO(kprof_strlist) includes = KPROF_STRLIST_INIT, excludes = KPROF_STRLIST_INIT;
    if (include)
        assert_true(kprof_strlist_add(&includes, include));
    if (exclude)
        assert_true(kprof_strlist_add(&excludes, exclude));
    kprof_status status =
        kprof_nvtx_filter_new((const char *const[]){"--nvtx-include", "--nvtx-exclude"}, &includes, &excludes, out);
    return status;
}

/* Does the expression choose a launch in the ranges of a text? */
static bool chooses(const char *include, const char *exclude, const char *text)
{
    kprof_nvtx_filter *filter;
    kprof_nvtx_parsed parsed;
    if (make(include, exclude, &filter) != KPROF_OK)
        fail_msg("%s: %s", include ? include : exclude, log_seen.last);
    assert_true(kprof_nvtx_parse_text(text, &parsed));
    bool result = kprof_nvtx_filter_match(filter, &(kprof_nvtx_ranges){parsed.items, parsed.count}, 0);
    kprof_nvtx_parsed_free(&parsed);
    kprof_nvtx_filter_free(filter);
    return result;
}

TEST(expressions_choose)
{
    static const struct {
        const char *include, *ranges;
        bool expected;
    } cases[] = {
        {"A/", "A/", true},
        {"A/", "x/A/y/", true},
        {"A/", "AA/", false},
        {"A/", "", false},
        {"A/", "A", false}, /* started, not pushed */
        {"A", "A", true},
        {"A", "A/", false},
        {"A", "x/; B; A", true},
        {"A,B", "B; A", true},
        {"A,B", "A", false},
        {"A B, C", "A B;  C", true},
        {"A/B", "A/B/", true},
        {"A/B/", "x/A/B/y/", true},
        {"A/B", "A/x/B/", false},
        {"A/B", "B/A/", false},
        {"A/+/B", "A/x/B/", true},
        {"A/+/B", "A/B/", false},
        {"A/+/B", "A/x/y/B/", false},
        {"A/+/+/B", "A/x/y/B/", true},
        {"A/+/*/B", "A/B/", false},
        {"A/+/*/B", "A/x/y/z/B/", true},
        {"A/*/B", "A/B/", true},
        {"a*b+/", "a*b+/", true}, /* no quantifier, as it is part of a name */
        {"A.*,B+", "A.*; B+", true},
        {"A.*", "AB", false},
        {"A/*/B/", "A/x/y/B/z/", true},
        {"A/*/B/C", "A/B/x/B/C/", true}, /* not the first B */
        {"A/*/B/C", "A/B/x/C/", false},
        {"[A", "A/B/", true},
        {"[A/", "B/A/", false},
        {"[A/+/C", "A/B/C/", true},
        {"B]", "A/B/", true},
        {"A]", "A/B/", false},
        {"A/*/C]", "A/B/C/", true},
        {"[A/B]", "A/B/", true},
        {"[A]", "A/A/", false},
        {"net@A/", "net@A/", true},
        {"net@A/", "A/", false},
        {"A/", "net@A/", false},
        {"net@A/B", "net@A/B/; A/x/", true}, /* each domain has a stack of its own */
        {"net@A/B", "net@A/; B/", false},
        {"net@A,B", "net@B; net@A", true},
        {"net@A,B", "net@B; A", false},
        {"A\\[0\\]/", "A[0]/", true},
        {"A\\/B/", "A\\/B/", true},
        {"A\\\\/", "A\\\\/", true},
        {"a\\@b", "a\\@b", true},
        {"operator\\+/", "operator+/", true},
        {"A\\,B", "A,B", true},
        {"regex:^st.p$/", "step/", true},
        {"regex:te/", "step/", true},
        {"regex:^te/", "step/", false},
        {"regex:n.t@layer[0-9]/", "net@layer7/", true},
        {"regex:n.t@layer[0-9]/", "layer7/", false},
        {"regex:^A$/*/B[12]+/", "A/x/B12/", true},
        {"regex:/[ab]c/", "bc/", true},
        {"regex:[0-9]d@/[0-9]a,c[0-9/]", "1d@2a; 1d@c3", true},
        {"regex:[0-9]d@/[0-9]a,c[0-9/]", "1d@2a; 1d@cx", false},
        {"regex:a{1\\,2}b", "aab", true},
        {"regex:a\\/b$/", "a\\/b/", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (chooses(cases[i].include, NULL, cases[i].ranges) != cases[i].expected)
            fail_msg("%s in %s", cases[i].include, cases[i].ranges);
    }
}

TEST(what_is_excluded_is_not_chosen)
{
    assert_true(chooses(NULL, "A/", ""));
    assert_true(chooses(NULL, "A/", "B/"));
    assert_false(chooses(NULL, "A/", "B/A/"));
    assert_true(chooses("A/", "B]", "A/B/C/"));
    assert_false(chooses("A/", "B]", "A/B/"));
    kprof_nvtx_filter *filter;
    assert_int_equal(make(NULL, NULL, &filter), KPROF_OK);
    assert_null(filter);
}

TEST(faults_are_told)
{
    static const struct {
        const char *expression, *told;
    } cases[] = {
        {"", "without a name"},
        {"/", "without a name"},
        {"A//B", "without a name"},
        {"A,", "without a name"},
        {"[", "without a name"},
        {"]", "without a name"},
        {"@A", "no domain stands before @"},
        {"a@b@c", "more than one @"},
        {"a@A,b@B", "more than one @"},
        {"*/A", "between two ranges"},
        {"A/*", "between two ranges"},
        {"A/+/", "between two ranges"},
        {"*", "between two ranges"},
        {"A,+", "between two ranges"},
        {"A[0]/", "write \\["},
        {"A/B]/", "write \\]"},
        {"A,B/", "write \\,"},
        {"a/b@c", "write \\/"},
        {"A\\", "stands before nothing"},
        {"net@regex:A/", "at the beginning only"},
        {"regex:(A/", "here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kprof_nvtx_filter *filter;
        kprof_status status = make(NULL, cases[i].expression, &filter);
        if (status != KPROF_USAGE || filter || !strstr(log_seen.last, cases[i].told) ||
            !strstr(log_seen.last, "--nvtx-exclude"))
            fail_msg("%s: %s", cases[i].expression, log_seen.last);
    }
}

static void assert_text(const kprof_nvtx_range *items, size_t count, const char *expected)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_nvtx_put_text(&(kprof_nvtx_ranges){items, count}, &text);
    assert_false(text.failed);
    assert_string_equal(text.data ? text.data : "", expected);
}

TEST(ranges_become_a_text)
{
    static const kprof_nvtx_range items[] = {
        {"", "step 1", false, 0}, {"net", "a;b", false, 0}, {"", "in/out", false, 0}, {"net", "x@y\\", false, 0},
        {"", "", false, 0},       {"io", "read", true, 0},  {"", "epoch", true, 0},   {"", "bell\a", true, 0}};
    assert_text(items, 0, "");
    assert_text(items, 1, "step 1/");
    assert_text(items, 2, "net@a\\;b/; step 1/");
    assert_text(items, 3, "step 1/in\\/out/; net@a\\;b/");
    assert_text(items + 5, 2, "io@read; epoch");
    assert_text(items, 8, "step 1/in\\/out//; net@a\\;b/x\\@y\\\\/; io@read; epoch; bell\\\\x07");
}

TEST(a_text_becomes_ranges_again)
{
    static const char *const texts[] = {
        "", "a/", "a/b/", "a//b/", "a", "net@a/b/; c/; epoch", "a\\/b\\@\\;\\\\/", "x@y; z@w/"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        kprof_nvtx_parsed parsed;
        kprof_strbuf text = KPROF_STRBUF_INIT;
        assert_true(kprof_nvtx_parse_text(texts[i], &parsed));
        kprof_nvtx_put_text(&(kprof_nvtx_ranges){parsed.items, parsed.count}, &text);
        if (i < 5)
            assert_string_equal(text.data ? text.data : "", texts[i]);
        kprof_nvtx_parsed again;
        assert_true(kprof_nvtx_parse_text(text.data ? text.data : "", &again));
        assert_int_equal(again.count, parsed.count);
        kprof_nvtx_parsed_free(&parsed);
        kprof_nvtx_parsed_free(&again);
        kprof_strbuf_free(&text);
    }
    assert_int_equal(kprof_nvtx_innermost_length("a\\;b/; c"), 5);
    assert_int_equal(kprof_nvtx_innermost_length("c"), 1);
    assert_int_equal(kprof_nvtx_innermost_length(""), 0);
}

TEST(too_many_ranges_are_left_out)
{
    char text[4 * KPROF_NVTX_RANGES_MAX + 1] = "";
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "a/", 3);
    kprof_nvtx_parsed parsed;
    assert_true(kprof_nvtx_parse_text(text, &parsed));
    assert_int_equal(parsed.count, KPROF_NVTX_RANGES_MAX);
    kprof_nvtx_parsed_free(&parsed);
    assert_true(chooses("a/*/a/+/a]", NULL, text));
}

AT_START(log_capture_start, &log_seen)
