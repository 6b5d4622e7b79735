/* Tests register themselves: main runs each TEST of its file by run_all_tests, in the order of the file. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct CMUnitTest tests_of_file[256];
static size_t tests_count;

static inline void test_register(struct CMUnitTest test)
{
    if (tests_count == sizeof tests_of_file / sizeof *tests_of_file)
        abort();
    tests_of_file[tests_count++] = test;
}

/* A test with what runs before and after it, or NULL. */
#define TEST_WITH(name, set_up, tear_down)                                                                             \
    static void name(void **state);                                                                                    \
    __attribute__((constructor)) static void register_##name(void)                                                     \
    {                                                                                                                  \
        test_register((struct CMUnitTest){#name, name, set_up, tear_down, NULL});                                      \
    }                                                                                                                  \
    static void name(void **state __attribute__((unused)))

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Run each test between `set_up` and `tear_down`. */
static inline void around_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    for (size_t i = 0; i < tests_count; i++) {
        tests_of_file[i].setup_func = set_up;
        tests_of_file[i].teardown_func = tear_down;
    }
}

/* Run all tests between `set_up` and `tear_down`. */
static inline int run_all_tests(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests("tests", tests_of_file, tests_count, set_up, tear_down);
}
