/* When launches that nobody follows are looked at: from when code with variables came until they are noted, or for so
 * many launches in vain; never once launches are followed. */
#include "cupti/calls.h"
#include "cupti/modules.h"
#include "cupti/peeks.h"
#include "cupti/subscriber.h"
#include "test.h"

#include <string.h>

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

TEST(test_until_variables_are_noted)
{
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

TEST(test_nothing_to_note)
{
    kprof_peeks_allow(true);
    kprof_peeks_begin(); /* the module has no variables */
    assert_false(runs());
    assert_int_equal(turns, 0);
}

TEST(test_in_vain)
{
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

TEST(test_launches_are_followed)
{
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

AROUND_EACH(set_up, NULL)
