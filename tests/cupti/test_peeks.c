/* When launches that nobody follows are looked at: from when code with variables came until they are noted, or for so
 * many launches in vain; never once launches are followed. */
#include "cupti/calls.h"
#include "cupti/modules.h"
#include "cupti/peeks.h"
#include "cupti/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { FIRST = 307, SECOND = 442, MOST_LAUNCHES = 4096 };

static bool is_on[CUPTI_DRIVER_TRACE_CBID_SIZE];
static unsigned turns;
static size_t unnoted;

bool kprof_call_launches(CUpti_CallbackId id)
{
    return id == FIRST || id == SECOND;
}

CUptiResult kprof_subscriber_follow(bool follow, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    assert_int_equal(domain, CUPTI_CB_DOMAIN_DRIVER_API);
    is_on[id] = follow;
    turns++;
    return CUPTI_SUCCESS;
}

size_t kprof_modules_count_unnoted(const char *kernel)
{
    return !kernel || strcmp(kernel, "of a new module") == 0 ? unnoted : 0;
}

static int set_up(void **state)
{
    (void)state;
    unnoted = 0;
    kprof_peeks_allow(false);
    memset(is_on, 0, sizeof is_on);
    turns = 0;
    return 0;
}

static bool runs(void)
{
    assert_true(is_on[FIRST] == is_on[SECOND] && is_on[FIRST] == kprof_peeks_run());
    return kprof_peeks_run();
}

static bool want(const char *kernel)
{
    return kprof_peeks_want(&(kprof_call){.kind = KPROF_CALL_LAUNCH, .kernel_name = kernel});
}

static void begin(void)
{
    kprof_peeks_allow(true);
    unnoted = 2;
    kprof_peeks_begin();
    assert_true(runs());
}

static void test_until_variables_are_noted(void **state)
{
    (void)state;
    begin();
    assert_false(want("of an old module"));
    assert_false(kprof_peeks_want(&(kprof_call){.failed = true, .kernel_name = "of a new module"}));
    assert_true(want("of a new module"));
    unnoted = 1;
    kprof_peeks_settle();
    assert_true(runs());
    unnoted = 0;
    kprof_peeks_settle();
    assert_false(runs());
    assert_int_equal(turns, 4);
}

static void test_nothing_to_note(void **state)
{
    (void)state;
    kprof_peeks_allow(true);
    kprof_peeks_begin(); /* the module has no variables */
    assert_false(runs());
    assert_int_equal(turns, 0);
}

static void test_in_vain(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < MOST_LAUNCHES - 1; i++)
        assert_false(want("of an old module"));
    assert_true(runs());
    assert_true(want("of a new module")); /* the last one */
    assert_false(runs());
    assert_false(want("of a new module")); /* was on its way */
    unnoted = 3;
    kprof_peeks_begin();
    assert_true(runs());
    assert_true(want("of a new module"));
}

static void test_launches_are_followed(void **state)
{
    (void)state;
    unnoted = 1;
    kprof_peeks_begin();
    assert_false(runs());
    begin();
    kprof_peeks_allow(false);
    assert_false(kprof_peeks_run());
    unnoted = 0;
    kprof_peeks_settle(); /* was on its way: what follows launches must stay on */
    assert_true(is_on[FIRST] && is_on[SECOND]);
    unnoted = 1;
    kprof_peeks_begin();
    assert_false(kprof_peeks_run());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_until_variables_are_noted, set_up),
        cmocka_unit_test_setup(test_nothing_to_note, set_up),
        cmocka_unit_test_setup(test_in_vain, set_up),
        cmocka_unit_test_setup(test_launches_are_followed, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
