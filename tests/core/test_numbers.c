/* Numbers that the user chose: one by itself, or a pattern that the whole number matches. */
#include "core/numbers.h"
#include "log_capture.h"
#include "test.h"

static log_capture log_seen;

static void assert_numbers(const char *text, const char *expected)
{
    kprof_numbers *numbers;
    char found[256] = "";
    assert_int_equal(kprof_numbers_new("--option", text, &numbers), KPROF_OK);
    for (uint64_t i = 0; i <= 20; i++) {
        const bool has = kprof_numbers_have(numbers, i);
        assert_int_equal(kprof_numbers_have(numbers, i), has); /* from memory */
        if (has)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%d ", (int)i);
    }
    assert_string_equal(found, expected);
    kprof_numbers_free(numbers);
}

TEST(numbers_and_patterns)
{
    assert_numbers("3", "3 ");
    assert_numbers("03", "3 ");
    assert_numbers("[2-4]", "2 3 4 ");
    assert_numbers("2|3|5", "2 3 5 "); /* not 12, 13 and 15 */
    assert_numbers(".*5|3", "3 5 15 ");
    assert_numbers("1\\d", "10 11 12 13 14 15 16 17 18 19 ");
}

TEST(large_numbers)
{
    kprof_numbers *numbers;
    assert_int_equal(kprof_numbers_new("--option", "18446744073709551615", &numbers), KPROF_OK);
    assert_true(kprof_numbers_have(numbers, UINT64_MAX));
    kprof_numbers_free(numbers);
    assert_int_equal(kprof_numbers_new("--option", "1.*5", &numbers), KPROF_OK);
    assert_true(kprof_numbers_have(numbers, UINT64_MAX));
    assert_false(kprof_numbers_have(numbers, UINT64_MAX - 1));
    kprof_numbers_free(numbers);
}

TEST(what_is_no_number)
{
    static const char *const rows[][2] = {
        {"0", "--option: \"0\" is no number from 1"},
        {"", "is no number from 1"},
        {"18446744073709551616", "is no number from 1"},
        {"two", "--option: \"two\" is no number from 1, and no pattern of numbers; write 3"},
        {"-1", "\"-1\" is no number from 1"},
        {"1,2", "\"1,2\" is no number from 1, and no pattern of numbers; write 3, \"2|5\""},
        {"1.", NULL},
        {"(2", "--option: missing closing parenthesis at character 3 of the pattern: (2 <-- here"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_numbers *numbers;
        assert_int_equal(kprof_numbers_new("--option", rows[i][0], &numbers), rows[i][1] ? KPROF_USAGE : KPROF_OK);
        if (rows[i][1] && !strstr(log_seen.last, rows[i][1]))
            fail_msg("%s: %s", rows[i][0], log_seen.last);
        kprof_numbers_free(numbers);
    }
}

AT_START(log_capture_start, &log_seen)
