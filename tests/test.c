/* Keeps the tests of a program, and runs them. */
#include "test.h"

static struct CMUnitTest tests[256];
static size_t count;
static struct {
    CMFixtureFunction set_up, tear_down;
} each, all;
static bool has_each;
static bool (*possible)(void);

void test_register(struct CMUnitTest test)
{
    if (count == sizeof tests / sizeof *tests)
        abort();
    tests[count++] = test;
}

void around_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    has_each = true;
    each.set_up = set_up;
    each.tear_down = tear_down;
}

void around_all(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    all.set_up = set_up;
    all.tear_down = tear_down;
}

void only_where(bool (*is_possible)(void))
{
    possible = is_possible;
}

int run_all_tests(void)
{
    if (possible && !possible())
        return 77;
    for (size_t i = 0; has_each && i < count; i++) {
        tests[i].setup_func = each.set_up;
        tests[i].teardown_func = each.tear_down;
    }
    return _cmocka_run_group_tests("tests", tests, count, all.set_up, all.tear_down);
}
