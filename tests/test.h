/* Tests register themselves and run in the order of their file. A program needs no main of its own: tests/test_main.c
 * has one that runs them all. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

void test_register(struct CMUnitTest test);

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
void around_each(CMFixtureFunction set_up, CMFixtureFunction tear_down);
/* Run all tests between `set_up` and `tear_down`. Return the number of those that fail. */
int run_all_tests(CMFixtureFunction set_up, CMFixtureFunction tear_down);
