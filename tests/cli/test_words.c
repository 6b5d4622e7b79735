/* A command line that is joined and split again is the same. */

#include "cli/words.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(words_come_back)
{
    char *words[] = {(char *)"kprof",       (char *)"",         (char *)"-k",
                     (char *)"regex:^a b$", (char *)"it's",     (char *)"\\'\"",
                     (char *)"--x=a,b",     (char *)"\xc3\xa4", NULL};
    KPROF_AUTO(kprof_strlist) split = KPROF_STRLIST_INIT;
    KPROF_AUTO_FREE char *line = kprof_words_join(words, NULL);
    assert_non_null(line);
    assert_string_equal(line, "kprof '' -k 'regex:^a b$' 'it'\\''s' '\\'\\''\"' --x=a,b '\xc3\xa4'");
    kprof_words_split(line, &split);
    assert_int_equal(split.count, 8);
    for (size_t i = 0; i < split.count; i++)
        assert_string_equal(split.items[i], words[i]);
}

TEST(the_application_is_marked)
{
    static const char *const lines[] = {"kprof -- -q sh -- sh", "kprof -q -- sh -- sh", "kprof -q sh -- -- sh",
                                        "kprof -q sh -- sh"};
    char *words[] = {(char *)"kprof", (char *)"-q", (char *)"sh", (char *)"--", (char *)"sh", NULL};
    for (size_t i = 0; i < 4; i++) {
        char *line = kprof_words_join(words, words + 1 + i);
        assert_string_equal(line, lines[i]);
        free(line);
    }
}

TEST(odd_lines_are_split_too)
{
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
