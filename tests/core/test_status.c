/* The status table: every status has a name, a message and an exit code outside the application's range. */
#include "core/status.h"
#include "test.h"

#include <string.h>

TEST(every_status_is_described)
{
    assert_int_equal(kprof_status_exit_code(KPROF_OK), 0);
    for (int i = 0; i < KPROF_STATUS_COUNT; i++) {
        kprof_status status = (kprof_status)i;
        assert_true(strlen(kprof_status_name(status)) > 1);
        assert_true(strlen(kprof_status_message(status)) > 1);
        if (status != KPROF_OK)
            assert_in_range(kprof_status_exit_code(status), 100, 119);
    }
}

TEST(names_and_codes_belong_together)
{
    assert_string_equal(kprof_status_name(KPROF_NO_MATCH), "NO_MATCH");
    assert_string_equal(kprof_status_message(KPROF_NO_MATCH), "no kernel launch matched");
    assert_int_equal(kprof_status_exit_code(KPROF_NO_MATCH), 106);
    assert_int_equal(kprof_status_exit_code(KPROF_APPLICATION), 119);
}

TEST(values_outside_the_enum_are_harmless)
{
    assert_string_equal(kprof_status_name((kprof_status)-1), "?");
    assert_string_equal(kprof_status_message(KPROF_STATUS_COUNT), "?");
    assert_int_not_equal(kprof_status_exit_code((kprof_status)12345), 0);
}
