/* A command line that is joined and split again is the same. */
#include "cmocka_all.h"

#include "cli/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void words_come_back(void **state)
{
    (void)state;
    char *words[] = {(char *)"kprof",       (char *)"",         (char *)"-k",
                     (char *)"regex:^a b$", (char *)"it's",     (char *)"\\'\"",
                     (char *)"--x=a,b",     (char *)"\xc3\xa4", NULL};
    kprof_strlist split = KPROF_STRLIST_INIT;
    char *line = kprof_words_join(words, NULL);
    assert_non_null(line);
    assert_string_equal(line, "kprof '' -k 'regex:^a b$' 'it'\\''s' '\\'\\''\"' --x=a,b '\xc3\xa4'");
    kprof_words_split(line, &split);
    assert_int_equal(split.count, 8);
    for (size_t i = 0; i < split.count; i++)
        assert_string_equal(split.items[i], words[i]);
    free(line);
    kprof_strlist_free(&split);
}

static void the_application_is_marked(void **state)
{
    (void)state;
    static const char *const lines[] = {"kprof -- -q sh -- sh", "kprof -q -- sh -- sh", "kprof -q sh -- -- sh",
                                        "kprof -q sh -- sh"};
    char *words[] = {(char *)"kprof", (char *)"-q", (char *)"sh", (char *)"--", (char *)"sh", NULL};
    for (size_t i = 0; i < 4; i++) {
        char *line = kprof_words_join(words, words + 1 + i);
        assert_string_equal(line, lines[i]);
        free(line);
    }
}

static void odd_lines_are_split_too(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words;
    } rows[] = {{"", ""},
                {"a # b 'c\n d#e", "[a][d#e]"},
                {"\"(\\d\\\\ \\$\" (\\d", "[(\\d\\ $][(d]"},
                {"a\\\nb \"c\\\nd\"", "[ab][cd]"},
                {"  ", ""},
                {" a  b ", "[a][b]"},
                {"'open", "[open]"},
                {"a\\", "[a\\]"},
                {"''", "[]"},
                {"a\t\"b 'c\"\r\n\\ d", "[a][b 'c][ d]"},
                {"\"a\\\"b\" '\"'", "[a\"b][\"]"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64] = "";
        kprof_strlist split = KPROF_STRLIST_INIT;
        kprof_words_split(rows[i].line, &split);
        for (size_t k = 0; k < split.count; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "[%s]", split.items[k]);
        assert_string_equal(text, rows[i].words);
        kprof_strlist_free(&split);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_come_back), cmocka_unit_test(the_application_is_marked),
                                       cmocka_unit_test(odd_lines_are_split_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
