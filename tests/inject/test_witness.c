/* Witnesses: the passes' own values from running means. */
#include "inject/witness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What CUPTI tells after each pass of those values. */
static kprof_witness run(const double *values, unsigned count)
{
    kprof_witness witness = {0};
    double sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += values[i];
        kprof_witness_add(&witness, sum / (i + 1));
    }
    return witness;
}

static void test_equal_passes(void **state)
{
    (void)state;
    const double values[] = {10485760, 10485760, 10485760, 10485760, 10485760, 10485760, 10485760};
    kprof_witness witness = run(values, 7);
    assert_true(witness.low == 10485760 && witness.high == 10485760);
    assert_true(kprof_witness_spread_pct(&witness) == 0);
}

/* As seen on an H200, with a kernel that does more in each pass: means 5913600, 8764800, 11616000. */
static void test_different_passes(void **state)
{
    (void)state;
    const double values[] = {5913600, 11616000, 17318400};
    kprof_witness witness = run(values, 3);
    assert_true(fabs(witness.low - 5913600) < 1 && fabs(witness.high - 17318400) < 1);
    assert_true(fabs(kprof_witness_spread_pct(&witness) - 98.1818) < 0.001);
}

static void test_passes_without_it(void **state)
{
    (void)state;
    kprof_witness witness = {0};
    kprof_witness_add(&witness, NAN);
    assert_int_equal(witness.passes, 0);
    kprof_witness_add(&witness, 7);
    assert_true(isnan(kprof_witness_spread_pct(&witness))); /* one pass cannot disagree */
}

static void test_nothing_counted(void **state)
{
    (void)state;
    const double values[] = {0, 0};
    kprof_witness witness = run(values, 2);
    assert_true(isnan(kprof_witness_spread_pct(&witness)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_passes),
        cmocka_unit_test(test_different_passes),
        cmocka_unit_test(test_passes_without_it),
        cmocka_unit_test(test_nothing_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
