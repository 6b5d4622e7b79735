/* Tests register themselves and run in the order of their file. A program needs no main of its own: tests/test_main.c
 * has one that runs them all. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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
    static void name(void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Call a function before the first test. */
#define AT_START(function, ...)                                                                                        \
    __attribute__((constructor)) static void start_##function(void)                                                    \
    {                                                                                                                  \
        function(__VA_ARGS__);                                                                                         \
    }
/* What runs before and after each test of the program, or before and after all of them; NULL: nothing. */
#define AROUND_EACH(set_up, tear_down) AT_START(around_each, set_up, tear_down)
#define AROUND_ALL(set_up, tear_down)  AT_START(around_all, set_up, tear_down)
/* Skip the program where the function says no. */
#define ONLY_WHERE(is_possible) AT_START(only_where, is_possible)

/* A program with a main of its own calls these. */
void around_each(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void around_all(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void only_where(bool (*is_possible)(void));
/* Return the number of tests that fail, or 77 where they are skipped. */
int run_all_tests(void);
