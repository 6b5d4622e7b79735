/* Keeps the tests of a program, and runs them. */
#include "test.h"

static struct CMUnitTest tests[256];
static size_t count;

void test_register(struct CMUnitTest test)
{
    if (count == sizeof tests / sizeof *tests)
        abort();
    tests[count++] = test;
}

void around_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    for (size_t i = 0; i < count; i++) {
        tests[i].setup_func = set_up;
        tests[i].teardown_func = tear_down;
    }
}

int run_all_tests(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests("tests", tests, count, set_up, tear_down);
}
