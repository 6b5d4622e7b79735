/* The phases of a range that is measured as one. */
#include "inject/engine.h"
#include "inject/range.h"
#include "test.h"

#include <string.h>

static unsigned ended;

static void note_end(void)
{
    ended++;
}

static int prepare(void **state)
{
    memset(&kprof_the_range, 0, sizeof kprof_the_range);
    kprof_the_range.ends = note_end;
    ended = 0;
    return 0;
}

TEST(measured_from_its_first_launch)
{
    assert_false(kprof_range_is_awaited());
    assert_null(kprof_range_take(0));
    assert_true(kprof_range_begin("", "step", "", 0));
    assert_true(kprof_range_is_awaited());
    assert_string_equal(kprof_range_take(0)->text, "step");
    assert_null(kprof_range_take(0)); /* a launch of another thread */
    assert_true(kprof_range_note_measured());
    assert_false(kprof_range_is_awaited());
    kprof_range_end();
    assert_int_equal(ended, 1);
    assert_true(kprof_range_begin("net", "", "", 0));
    assert_string_equal(kprof_range_take(0)->text, "net@(no name)");
}

/* Another thread may end the range, and begin the next one, while its first launch is described. */
TEST(name_of_a_range_that_has_ended)
{
    assert_true(kprof_range_begin("", "first", "", 0));
    const char *name = kprof_range_take(0)->text;
    kprof_range_end();
    assert_true(kprof_range_begin("", "second", "", 0));
    assert_string_equal(name, "first");
    assert_string_equal(kprof_range_take(0)->text, "second");
}

TEST(one_at_a_time)
{
    assert_true(kprof_range_begin("", "outer", "", 0));
    assert_false(kprof_range_begin("", "inner", "", 0));
    assert_true(kprof_the_range.told_nested);
    assert_string_equal(kprof_range_take(0)->text, "outer");
}

TEST(without_a_measurement)
{
    assert_true(kprof_range_begin("", "without launches", "", 0));
    kprof_range_end();
    assert_true(kprof_range_begin("", "not measured", "", 0));
    assert_non_null(kprof_range_take(0));
    kprof_range_end();
    assert_false(kprof_range_note_measured()); /* it has ended meanwhile */
    assert_int_equal(ended, 0);
    assert_true(kprof_range_begin("", "begun before measuring did", "", 0));
    kprof_range_leave_out();
    assert_null(kprof_range_take(0));
    kprof_range_end();
    kprof_range_leave_out();
    assert_true(kprof_range_begin("", "later", "", 0));
    assert_true(kprof_range_is_awaited());
}

TEST(launches_on_other_devices)
{
    kprof_range_note_launch(1); /* no range is open */
    assert_true(kprof_range_begin("", "two GPUs", "", 0));
    kprof_range_note_launch(1); /* the first launch has not come yet */
    assert_non_null(kprof_range_take(0));
    for (unsigned device = 0; device < 3; device++)
        kprof_range_note_launch(device);
    assert_int_equal(kprof_the_range.elsewhere, 2);
    kprof_range_end();
    assert_true(kprof_range_begin("", "one", "", 0));
    assert_non_null(kprof_range_take(1));
    kprof_range_note_launch(1);
    assert_int_equal(kprof_the_range.elsewhere, 0);
}

AROUND_EACH(prepare, NULL)
