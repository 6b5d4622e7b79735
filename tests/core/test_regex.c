/* Patterns find what they should, and give up on names that would take minutes. */
#include "core/regex.h"
#include "log_capture.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static kprof_regex_result match(const char *pattern, const char *text)
{
    kprof_regex *regex = NULL;
    assert_int_equal(kprof_regex_new("-k", pattern, &regex), KPROF_OK);
    kprof_regex_result result = kprof_regex_match(regex, text);
    kprof_regex_free(regex);
    return result;
}

static char *repeat(char c, size_t count)
{
    char *text = malloc(count + 1);
    assert_non_null(text);
    memset(text, c, count);
    text[count] = '\0';
    return text;
}

TEST(patterns_match_anywhere)
{
    assert_string_equal(kprof_regex_pattern("regex:a"), "a");
    assert_null(kprof_regex_pattern("a"));
    assert_int_equal(match("ector", "vectorAdd"), KPROF_REGEX_YES);
    assert_int_equal(match("^ector", "vectorAdd"), KPROF_REGEX_NO);
    assert_int_equal(match("(?<=vec)tor.*d$", "vectorAdd"), KPROF_REGEX_YES);
    assert_int_equal(match("", ""), KPROF_REGEX_YES);
}

/* What looks like a pattern or like one of a shell; names of C++ and NVTX do not. */
TEST(words_that_are_meant_as_patterns)
{
    static const struct {
        const char *word, *pattern; /* NULL: a name */
    } rows[] = {{"^gemm$", "^gemm$"},
                {"^gemm", "^gemm"},
                {"gemm$", "gemm$"},
                {"a|b", "a|b"},
                {".*gemm", ".*gemm"},
                {"a.+b", "a.+b"},
                {"(a|b).*[0-9]", "(a|b).*[0-9]"},
                {"*gemm*", "^.*gemm.*$"},
                {"dram__bytes_*.sum", "^dram__bytes_.*\\.sum$"},
                {"regex:^a$", NULL},
                {"regexp:gemm", "gemm"},
                {"Regex:^a$", "^a$"},
                {"re:a", "a"},
                {"re::a", NULL},
                {"regex::a", NULL},
                {"gemm", NULL},
                {"", NULL},
                {"dram__bytes.sum", NULL},
                {"operator+", NULL},
                {"operator[]", NULL},
                {"scale(float*, int)", NULL},
                {"scale<float*>", NULL},
                {"scale<float*, int>", NULL},
                {"scale<*>", "^scale<.*>$"},
                {"a$b", NULL},
                {"a\\|b", NULL},
                {"a\\*", NULL}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        KPROF_AUTO_FREE char *meant = kprof_regex_meant(rows[i].word);
        if (!rows[i].pattern != !meant || (meant && strcmp(meant, rows[i].pattern) != 0))
            fail_msg("\"%s\" is meant as %s", rows[i].word, meant ? meant : "a name");
    }
}

TEST(a_pattern_of_a_shell_is_none)
{
    kprof_regex *regex = NULL;
    log_capture told;
    log_capture_start(&told);
    assert_int_equal(kprof_regex_new("-k", "*a", &regex), KPROF_USAGE);
    kprof_log_set_sink(NULL, NULL);
    assert_non_null(strstr(told.last, "<-- here *a; did you mean \"regex:^.*a$\"?"));
}

/* One pattern runs over the rest of the text at every character, one goes back and forth, one does so in a group. */
TEST(a_quoted_text_matches_itself)
{
    static const char *const texts[] = {"add",          "operator+",  "a$b", "x[3]{lambda(int)#1}*",
                                        "a|b^c.d?e\\f", "a\tb\nc\x7f"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        kprof_strbuf pattern = KPROF_STRBUF_INIT;
        kprof_strbuf_puts(&pattern, "^");
        kprof_regex_quote(texts[i], strlen(texts[i]), &pattern);
        kprof_strbuf_puts(&pattern, "$");
        assert_int_equal(match(pattern.data, texts[i]), KPROF_REGEX_YES);
        for (const char *at = pattern.data; *at; at++) /* it is typed on one line */
            assert_true(*at >= ' ' && *at != 0x7f);
        kprof_strbuf_free(&pattern);
    }
}

TEST(long_names_are_given_up)
{
    static const char *const patterns[] = {"a*[bc]", "a.*?[bc]", "(a|aa)+[bc]", "(?=.*[bc])a"};
    KPROF_AUTO_FREE char *name = repeat('a', 400000);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        assert_int_equal(match(patterns[i], name), KPROF_REGEX_TOO_LONG);
    assert_int_equal(match("^a+$", name), KPROF_REGEX_YES);
    assert_int_equal(match("[bc]", name), KPROF_REGEX_NO);
}

TEST(searches_fail_instead)
{
    log_capture log;
    log_capture_start(&log);
    kprof_regex *regex = NULL;
    bool found = false;
    assert_int_equal(kprof_regex_new("--metrics", "(\\w|\\w\\w)+[!;]", &regex), KPROF_OK);
    assert_int_equal(kprof_regex_search(regex, "sm__x;", &found), KPROF_OK);
    assert_true(found);
    uint64_t before = kprof_regex_work(regex);
    assert_true(before > 0);
    assert_int_equal(kprof_regex_search(regex, "sm__inst_executed_pipe_tensor_op_hmma_cycles_active", &found),
                     KPROF_USAGE);
    assert_non_null(strstr(log.last, "--metrics: the pattern takes too long on \"sm__inst"));
    assert_true(kprof_regex_work(regex) > before);
    kprof_regex_free(regex);
}
