/* Expressions of the set files: values, missing operands, the names in them, and texts that are none. */
#include "log_capture.h"
#include "metricset/expr.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static kprof_pool pool; /* of the expressions of one test */

static double lookup(void *user, const char *name)
{
    if (strcmp(name, "a") == 0)
        return 6;
    if (strcmp(name, "dram__bytes.sum.per_second") == 0)
        return 100;
    if (strcmp(name, "zero") == 0)
        return 0;
    if (strcmp(name, "android") == 0 || strcmp(name, "order") == 0)
        return 7.5;
    return NAN;
}

static double value_of(const char *text)
{
    kprof_expr *expr;
    assert_int_equal(kprof_expr_parse(&pool, text, &expr), KPROF_OK);
    double value = kprof_expr_evaluate(expr, lookup, NULL);
    kprof_pool_free(&pool);
    return value;
}

static void assert_value(const char *text, double expected)
{
    double value = value_of(text);
    if (value != expected)
        fail_msg("%s is %g, not %g", text, value, expected);
}

TEST(test_arithmetic)
{
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
    assert_value("floor(a / 4) + 10 * ceil(a / 4)", 21);
    assert_value("max(min(a, 4), 1)", 4);
}

TEST(test_missing_is_never_zero)
{
    assert_true(isnan(value_of("unknown")));
    assert_true(isnan(value_of("a + unknown")));
    assert_true(isnan(value_of("0 * unknown")));
    assert_true(isnan(value_of("a / zero")));
    assert_true(isnan(value_of("zero / zero")));
    assert_true(isnan(value_of("max(a, unknown)")));
    assert_true(isnan(value_of("max(unknown, a)")));
    assert_true(isnan(value_of("min(unknown, a)")));
    assert_true(isnan(value_of("sum(a, unknown, a)")));
    assert_true(isnan(value_of("ceil(unknown)")));
    assert_value("if_missing(unknown, 4)", 4);
    assert_value("if_missing(a / zero, a)", 6);
    assert_value("if_missing(zero, 4)", 0);
}

TEST(test_conditions)
{
    assert_value("a > 5", 1);
    assert_value("a >= 6 and a <= 6", 1);
    assert_value("a < 6 or a != 6", 0);
    assert_value("not a == 6", 0);
    assert_value("not (zero)", 1);
    assert_value("1 + 1 < a - 3", 1);
    assert_value("1 or 0 and 0", 1);
    assert_value("not 0 and not 0", 1);
    assert_value("if(a > 5, 10, 20) + 1", 11);
    assert_value("if(a > 5 and zero, 10, 20)", 20);
    assert_value("if(a, 10, unknown)", 10);
    assert_value("android + order", 15); /* names may begin with such words */
}

/* A condition that a missing value cannot change holds all the same; any other is missing. */
TEST(test_missing_conditions)
{
    assert_true(isnan(value_of("unknown > 1")));
    assert_true(isnan(value_of("1 == unknown")));
    assert_true(isnan(value_of("unknown != unknown")));
    assert_true(isnan(value_of("not unknown")));
    assert_true(isnan(value_of("a and unknown")));
    assert_true(isnan(value_of("unknown and a")));
    assert_true(isnan(value_of("zero or unknown")));
    assert_true(isnan(value_of("unknown or zero")));
    assert_true(isnan(value_of("if(unknown, 1, 2)")));
    assert_true(isnan(value_of("if(a, unknown, 2)")));
    assert_value("zero and unknown", 0);
    assert_value("unknown and zero", 0);
    assert_value("a or unknown", 1);
    assert_value("unknown or a", 1);
}

/* A slot for each letter. */
static kprof_status place_letter(void *user, const char *name, size_t *slot)
{
    *slot = (size_t)(name[0] - 'a');
    return name[1] ? KPROF_UNKNOWN_NAME : KPROF_OK;
}

static void mark_slot(void *user, size_t slot)
{
    ((char *)user)[slot] = 'x';
}

TEST(test_bound)
{
    const double values[] = {6, NAN, 2, NAN};
    const char *text = "if_missing(b, a) + if_missing(d, b) * c + (d > c)";
    char missing[] = "....";
    kprof_expr *expr;
    assert_int_equal(kprof_expr_parse(&pool, "if(a > c, a - c, b)", &expr), KPROF_OK);
    assert_int_equal(kprof_expr_bind(expr, place_letter, NULL), KPROF_OK);
    assert_true(kprof_expr_compute(expr, values) == 4);
    kprof_pool_free(&pool);
    assert_int_equal(kprof_expr_parse(&pool, text, &expr), KPROF_OK);
    assert_int_equal(kprof_expr_bind(expr, place_letter, NULL), KPROF_OK);
    assert_true(isnan(kprof_expr_compute(expr, values)));
    kprof_expr_missing(expr, values, mark_slot, missing);
    assert_string_equal(missing, "...x");
    kprof_pool_free(&pool);
    assert_int_equal(kprof_expr_parse(&pool, "a + long", &expr), KPROF_OK);
    assert_int_equal(kprof_expr_bind(expr, place_letter, NULL), KPROF_UNKNOWN_NAME);
    kprof_pool_free(&pool);
}

TEST(test_names)
{
    kprof_expr *expr;
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT, required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_expr_parse(&pool, "x.sum + if_missing(y.sum * x.sum, z) + max(w, x.sum)", &expr), KPROF_OK);
    kprof_expr_names(expr, &names);
    kprof_expr_operands(expr, &required, &optional);
    assert_int_equal(names.count, 4);
    assert_string_equal(names.items[0], "x.sum");
    assert_string_equal(names.items[1], "y.sum");
    assert_int_equal(required.count, 3);
    assert_true(kprof_strlist_contains(&required, "z"));
    assert_false(kprof_strlist_contains(&required, "y.sum"));
    assert_int_equal(optional.count, 2);
    kprof_pool_free(&pool);
}

static void assert_refused(const char *text, const char *reason)
{
    log_capture capture;
    log_capture_start(&capture);
    kprof_expr *expr;
    assert_int_equal(kprof_expr_parse(&pool, text, &expr), KPROF_BAD_METRICSET);
    assert_null(expr);
    if (!strstr(capture.last, reason))
        fail_msg("\"%.60s\" gives \"%s\", not \"%s\"", text, capture.last, reason);
    kprof_pool_free(&pool);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_refused)
{
    assert_refused("", "ends too early");
    assert_refused("a +", "ends too early");
    assert_refused("a b", "character 3: expected an operator");
    assert_refused("(a", "expected )");
    assert_refused("a)", "expected an operator");
    assert_refused("foo(a)", "not a function");
    assert_refused("min()", "expected a number");
    assert_refused("floor(a, 2)", "too many arguments");
    assert_refused("if_missing(a)", "too few arguments");
    assert_refused("if_missing(a, a, a)", "too many arguments");
    assert_refused("1e999", "not a number");
    assert_refused("0x10", "not a number");
    assert_refused("1.2.3", "expected an operator");
    assert_refused("a % 2", "expected an operator");
    assert_refused("*", "expected a number");
    assert_refused(".", "not a number");
    assert_refused("1 < a < 3", "character 7: expected an operator");
    assert_refused("a = 3", "expected an operator");
    assert_refused("a <", "ends too early");
    assert_refused("a and", "ends too early");
    assert_refused("a and or a", "expected a value");
    assert_refused("-not a", "expected a value");
    assert_refused("if(a, 1)", "too few arguments");
}

TEST(test_bounded)
{
    enum { DEEP = 4000, LONG = 20000 };
    KPROF_AUTO_FREE char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, '(', DEEP);
    text[DEEP] = '\0';
    assert_refused(text, "nested too deeply");
    memset(text, '-', DEEP);
    assert_refused(text, "nested too deeply");
    for (size_t i = 0; i < DEEP / 4; i++)
        memcpy(text + 4 * i, "not ", 4);
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
}
