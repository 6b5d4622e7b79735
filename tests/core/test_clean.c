/* Text for people: controls, marks of direction and bytes that are no UTF-8 are spelled out, all else is kept. */
#include "core/clean.h"
#include "core/strbuf.h"
#include "test.h"

#include <string.h>

static void expect_clean(const char *text, const char *expected)
{
    KPROF_AUTO_FREE char *clean = kprof_clean_text(text);
    assert_int_equal(kprof_text_is_clean(text ? text : ""), !text || strcmp(text, expected) == 0);
    assert_true(kprof_text_is_clean(clean));
    assert_string_equal(clean, expected);
}

TEST(test_clean)
{
    expect_clean("vectorAdd(float*)", "vectorAdd(float*)");
    expect_clean("a\033[31mred\a", "a\\x1b[31mred\\x07");
    expect_clean("two\nlines\tand\r", "two\\nlines\\tand\\r");
    expect_clean("\x7f", "\\x7f");
    expect_clean("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    expect_clean("\xc2\x9b", "\\xc2\\x9b"); /* C1 control sequence introducer */
    expect_clean("a\xe2\x80\xae"
                 "b",
                 "a\\xe2\\x80\\xaeb"); /* right-to-left override */
    expect_clean("\xff\xc3", "\\xff\\xc3");
    expect_clean("\xc0\xaf", "\\xc0\\xaf");          /* overlong */
    expect_clean("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* surrogate */
    expect_clean("a\\x1bb", "a\\x1bb");              /* cleaned before */
    expect_clean(NULL, "");
}

TEST(test_cut)
{
    char text[] = "gr\xc3\xbc\xc3\x9f";
    kprof_cut_text(text, sizeof text);
    assert_string_equal(text, "gr\xc3\xbc\xc3\x9f");
    kprof_cut_text(text, 5);
    assert_string_equal(text, "gr\xc3\xbc");
    kprof_cut_text(text, 3);
    assert_string_equal(text, "gr");
    kprof_cut_text(text, 0);
    assert_string_equal(text, "");
    char copy[5];
    kprof_fit_text(copy, sizeof copy, "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(copy, "gr\xc3\xbc");
    kprof_fit_text(copy, 4, "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(copy, "gr");
    kprof_fit_text(copy, sizeof copy, "gr");
    assert_string_equal(copy, "gr");
}
