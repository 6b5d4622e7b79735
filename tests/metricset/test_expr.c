/* Expressions of the set files: values, missing operands, the names in them, and texts that are none. */
#include "log_capture.h"
#include "metricset/expr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double lookup(void *user, const char *name)
{
    (void)user;
    if (strcmp(name, "a") == 0)
        return 6;
    if (strcmp(name, "dram__bytes.sum.per_second") == 0)
        return 100;
    if (strcmp(name, "zero") == 0)
        return 0;
    return NAN;
}

static double value_of(const char *text)
{
    kprof_expr *expr;
    assert_int_equal(kprof_expr_parse(text, &expr), KPROF_OK);
    double value = kprof_expr_evaluate(expr, lookup, NULL);
    kprof_expr_free(expr);
    return value;
}

static void assert_value(const char *text, double expected)
{
    double value = value_of(text);
    if (value != expected)
        fail_msg("%s is %g, not %g", text, value, expected);
}

static void test_arithmetic(void **state)
{
    (void)state;
    assert_value("1 + 2 * 3", 7);
    assert_value("(1 + 2) * 3", 9);
    assert_value("10 - 4 - 3", 3);
    assert_value("24 / 4 / 2", 3);
    assert_value("-a + 2 * -3", -12);
    assert_value("--a", 6);
    assert_value("1e3 + .5", 1000.5);
    assert_value(" dram__bytes.sum.per_second / a\n* 3 ", 50);
    assert_value("min(3, a, 2)", 2);
    assert_value("max(3, a, 2)", 6);
    assert_value("sum(3, a, 2)", 11);
    assert_value("max(min(a, 4), 1)", 4);
}

static void test_missing_is_never_zero(void **state)
{
    (void)state;
    assert_true(isnan(value_of("unknown")));
    assert_true(isnan(value_of("a + unknown")));
    assert_true(isnan(value_of("0 * unknown")));
    assert_true(isnan(value_of("a / zero")));
    assert_true(isnan(value_of("zero / zero")));
    assert_true(isnan(value_of("max(a, unknown)")));
    assert_true(isnan(value_of("max(unknown, a)")));
    assert_true(isnan(value_of("min(unknown, a)")));
    assert_true(isnan(value_of("sum(a, unknown, a)")));
    assert_value("if_missing(unknown, 4)", 4);
    assert_value("if_missing(a / zero, a)", 6);
    assert_value("if_missing(zero, 4)", 0);
}

static void test_names(void **state)
{
    (void)state;
    kprof_expr *expr;
    kprof_strlist names = KPROF_STRLIST_INIT, required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_expr_parse("x.sum + if_missing(y.sum * x.sum, z) + max(w, x.sum)", &expr), KPROF_OK);
    assert_int_equal(kprof_expr_names(expr, &names), KPROF_OK);
    assert_int_equal(kprof_expr_operands(expr, &required, &optional), KPROF_OK);
    assert_int_equal(names.count, 4);
    assert_string_equal(names.items[0], "x.sum");
    assert_string_equal(names.items[1], "y.sum");
    assert_int_equal(required.count, 3);
    assert_true(kprof_strlist_contains(&required, "z"));
    assert_false(kprof_strlist_contains(&required, "y.sum"));
    assert_int_equal(optional.count, 2);
    kprof_expr_free(expr);
    kprof_strlist_free(&names);
    kprof_strlist_free(&required);
    kprof_strlist_free(&optional);
}

static void assert_refused(const char *text, const char *reason)
{
    log_capture capture;
    log_capture_start(&capture);
    kprof_expr *expr;
    assert_int_equal(kprof_expr_parse(text, &expr), KPROF_BAD_METRICSET);
    assert_null(expr);
    if (!strstr(capture.last, reason))
        fail_msg("\"%.60s\" gives \"%s\", not \"%s\"", text, capture.last, reason);
    kprof_log_set_sink(NULL, NULL);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("", "ends too early");
    assert_refused("a +", "ends too early");
    assert_refused("a b", "character 3: expected an operator");
    assert_refused("(a", "expected )");
    assert_refused("a)", "expected an operator");
    assert_refused("foo(a)", "not a function");
    assert_refused("min()", "expected a number");
    assert_refused("if_missing(a)", "too few arguments");
    assert_refused("if_missing(a, a, a)", "too many arguments");
    assert_refused("1e999", "not a number");
    assert_refused("0x10", "not a number");
    assert_refused("1.2.3", "expected an operator");
    assert_refused("a % 2", "expected an operator");
    assert_refused("*", "expected a number");
    assert_refused(".", "not a number");
}

static void test_bounded(void **state)
{
    (void)state;
    enum { DEEP = 4000, LONG = 20000 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, '(', DEEP);
    text[DEEP] = '\0';
    assert_refused(text, "nested too deeply");
    memset(text, '-', DEEP);
    assert_refused(text, "nested too deeply");
    memset(text, '1', LONG);
    text[LONG] = '\0';
    assert_refused(text, "longer than");
    for (size_t i = 0; i < DEEP; i++)
        memcpy(text + 2 * i, "a+", 2);
    strcpy(text + 2 * (DEEP - 1), "a");
    assert_value(text, 6.0 * DEEP);
    strcpy(text, "max(");
    for (size_t i = 0; i < 100; i++)
        strcat(text, "1,");
    strcat(text, "1)");
    assert_refused(text, "too many arguments");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_missing_is_never_zero),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
