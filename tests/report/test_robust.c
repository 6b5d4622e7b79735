/* Medians, intervals and rank tests: known values, and brute force over all differences and all ways to choose. */

#include "diff_fixture.h"
#include "report/model/robust.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 64

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * (1 + fabs(expected))))
        fail_msg("%.17g, not %.17g", value, expected);
}

static kprof_shift shift_of(const double *from, size_t from_count, const double *to, size_t to_count)
{
    double a[VALUES_MAX], b[VALUES_MAX];
    kprof_shift shift;
    memcpy(a, from, from_count * sizeof *a);
    memcpy(b, to, to_count * sizeof *b);
    kprof_shift_of((kprof_sample){a, from_count}, (kprof_sample){b, to_count}, 0.95, &shift);
    return shift;
}

/* Whole numbers from 0, of which many are equal where `range` is small. */
static void draw(uint64_t *state, double *values, size_t count, double range)
{
    for (size_t i = 0; i < count; i++)
        values[i] = floor(range * diff_uniform(state));
}

/* Conover's tables: the ranks that bound the median. */
TEST(median_intervals_of_the_tables)
{
    static const struct {
        size_t count;
        double confidence, low, high;
    } rows[] = {{6, 0.95, 1, 6},   {8, 0.99, 1, 8},     {10, 0.95, 2, 9},
                {20, 0.95, 6, 15}, {100, 0.95, 40, 61}, {1000, 0.95, 469, 532}};
    double values[1000];
    for (size_t i = 0; i < 1000; i++)
        values[i] = (double)i + 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_interval interval = kprof_median_interval(values, rows[i].count, rows[i].confidence);
        assert_near(interval.low, rows[i].low);
        assert_near(interval.high, rows[i].high);
    }
    assert_true(isnan(kprof_median_interval(values, 5, 0.95).low));
    assert_true(isnan(kprof_median_interval(values, 7, 0.99).high));
    assert_true(isnan(kprof_median_interval(values, 0, 0.5).low));
}

TEST(repeats_are_stable_or_not)
{
    double steady[] = {100, 101, NAN, 99, 100, 100, 101, 99, 100};
    kprof_repeats repeats = kprof_repeats_of(steady, 9, 0.99);
    assert_int_equal(repeats.center.count, 8);
    assert_near(repeats.center.median, 100);
    assert_near(repeats.center.mad, 0.5);
    assert_near(repeats.interval.low, 99);
    assert_near(repeats.interval.high, 101);
    assert_true(repeats.is_stable);
    double loose[] = {100, 110, 90, 100, 100, 105, 95, 100};
    assert_false(kprof_repeats_of(loose, 8, 0.99).is_stable);
    double few[] = {100, 100, 100, 100};
    assert_false(kprof_repeats_of(few, 4, 0.5).is_stable);
}

TEST(known_rank_tests)
{
    const double low[] = {1, 2, 3, 4, 5}, high[] = {11, 12, 13, 14, 15}, mixed[] = {1.5, 2.5, 3.5, 4.5, 5.5};
    kprof_shift apart = shift_of(low, 5, high, 5);
    assert_near(apart.p, 2.0 / 252);
    assert_near(apart.estimate, 10);
    assert_near(apart.interval.low, 7); /* Hollander and Wolfe, table A.6: U is 2 at 97 % */
    assert_near(apart.interval.high, 13);
    assert_near(shift_of(high, 5, low, 5).estimate, -10);
    assert_near(shift_of(low, 5, low, 5).p, 1);
    assert_near(shift_of(low, 5, mixed, 5).estimate, 0.5);
    assert_near(shift_of(low, 1, high, 1).p, 1);
    assert_true(isnan(shift_of(low, 0, high, 5).p));
    assert_true(isnan(shift_of(low, 0, high, 5).estimate));
    assert_true(isnan(shift_of(low, 2, high, 2).interval.low));
    const double equal[] = {7, 7, 7, 7, 7};
    kprof_shift none = shift_of(equal, 5, equal, 5);
    assert_near(none.p, 1);
    assert_near(none.estimate, 0);
    assert_near(none.interval.low, 0);
}

/* Count the ways to choose as many of the values as `from` has whose sum of ranks is as far out. */
static double brute_force_p(const double *from, size_t from_count, const double *to, size_t to_count)
{
    const size_t count = from_count + to_count;
    double all[VALUES_MAX], ranks[VALUES_MAX], sum = 0;
    memcpy(all, from, from_count * sizeof *all);
    memcpy(all + from_count, to, to_count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        ranks[i] = 0.5;
        for (size_t k = 0; k < count; k++)
            ranks[i] += all[k] < all[i] ? 1 : all[k] == all[i] ? 0.5 : 0;
        sum += i < from_count ? ranks[i] : 0;
    }
    double ways = 0, below = 0, above = 0;
    for (unsigned set = 0; set < 1u << count; set++) {
        double chosen = 0;
        if ((size_t)__builtin_popcount(set) != from_count)
            continue;
        for (size_t i = 0; i < count; i++)
            chosen += set >> i & 1 ? ranks[i] : 0;
        ways++;
        below += chosen <= sum;
        above += chosen >= sum;
    }
    return fmin(1, 2 * fmin(below, above) / ways);
}

TEST(exact_tests_agree_with_brute_force)
{
    uint64_t seed = 1;
    for (int i = 0; i < 60; i++) {
        double from[VALUES_MAX], to[VALUES_MAX];
        const size_t from_count = 1 + (size_t)i % 6, to_count = 1 + (size_t)i / 6 % 6;
        draw(&seed, from, from_count, i % 2 ? 4 : 1000);
        draw(&seed, to, to_count, i % 2 ? 5 : 1300);
        assert_near(shift_of(from, from_count, to, to_count).p, brute_force_p(from, from_count, to, to_count));
    }
}

/* The normal approximation, from the count of pairs. */
static double approximate_p(const double *from, size_t from_count, const double *to, size_t to_count)
{
    const double n = (double)(from_count + to_count);
    double u = 0, ties = 0;
    for (size_t i = 0; i < from_count; i++) {
        for (size_t k = 0; k < to_count; k++)
            u += to[k] > from[i] ? 1 : to[k] == from[i] ? 0.5 : 0;
    }
    for (int value = 0; value < 2000; value++) {
        double equal = 0;
        for (size_t i = 0; i < from_count; i++)
            equal += from[i] == value;
        for (size_t i = 0; i < to_count; i++)
            equal += to[i] == value;
        ties += equal * equal * equal - equal;
    }
    const double pairs = (double)from_count * (double)to_count;
    const double z = (fabs(u - pairs / 2) - 0.5) / sqrt(pairs / 12 * (n + 1 - ties / (n * (n - 1))));
    return z > 0 ? erfc(z / M_SQRT2) : 1;
}

TEST(large_tests_agree_with_the_formula)
{
    uint64_t seed = 2;
    for (int i = 0; i < 20; i++) {
        double from[VALUES_MAX], to[VALUES_MAX];
        draw(&seed, from, 30, i % 2 ? 6 : 1000);
        draw(&seed, to, 44, i % 2 ? 7 : 1200);
        assert_near(shift_of(from, 30, to, 44).p, approximate_p(from, 30, to, 44));
    }
}

/* Differences by their ranks: the median, and the ends of an interval. */
TEST(shifts_agree_with_brute_force)
{
    uint64_t seed = 3;
    for (int i = 0; i < 200; i++) {
        double from[VALUES_MAX], to[VALUES_MAX], all[VALUES_MAX * VALUES_MAX];
        const size_t from_count = 1 + (size_t)i % 40, to_count = 1 + (size_t)(i * 7) % 40;
        size_t pairs = 0;
        draw(&seed, from, from_count, i % 3 ? 1e9 : 6);
        draw(&seed, to, to_count, i % 3 ? 1e9 : 7);
        if (i % 5 == 0) { /* many differences within a part in 10^15 of the range */
            from[0] = 1e300;
            to[0] = -1e300;
        }
        for (size_t a = 0; a < from_count; a++) {
            for (size_t b = 0; b < to_count; b++)
                all[pairs++] = to[b] - from[a];
        }
        qsort(all, pairs, sizeof *all, by_value);
        kprof_shift shift = shift_of(from, from_count, to, to_count);
        assert_near(shift.estimate, pairs % 2 ? all[pairs / 2] : (all[pairs / 2 - 1] + all[pairs / 2]) / 2);
        if (isnan(shift.interval.low))
            continue;
        size_t at = 0;
        while (at < pairs && all[at] != shift.interval.low)
            at++;
        assert_true(at < pairs / 2 + 1);
        while (at < pairs && all[at] == shift.interval.low)
            at++;
        bool mirrored = false; /* the interval leaves out as many differences above as below */
        for (size_t k = 0; k < at; k++)
            mirrored = mirrored || (all[k] == shift.interval.low && all[pairs - 1 - k] == shift.interval.high);
        assert_true(mirrored);
    }
}

static bool holds_zero(uint64_t *seed, size_t count)
{
    double from[VALUES_MAX], to[VALUES_MAX];
    for (size_t i = 0; i < count; i++) {
        from[i] = diff_noisy_time(seed, 60000, 0.02);
        to[i] = diff_noisy_time(seed, 60000, 0.02);
    }
    kprof_shift shift = shift_of(from, count, to, count);
    return shift.interval.low <= 0 && shift.interval.high >= 0;
}

/* Intervals for samples without a shift hold 0 at least as often as they claim. */
TEST(intervals_keep_their_confidence)
{
    uint64_t seed = 4;
    static const size_t counts[] = {5, 8, 12, 30};
    for (size_t i = 0; i < 4; i++) {
        int held = 0;
        for (int k = 0; k < 400; k++)
            held += holds_zero(&seed, counts[i]);
        assert_in_range(held, 372, 400); /* 93 % of 400: 95 % less two deviations */
    }
}

TEST(holm_of_a_known_case)
{
    double p[] = {0.01, 0.04, NAN, 0.03, 0.005};
    kprof_holm(p, 5);
    assert_near(p[0], 0.03);
    assert_near(p[1], 0.06);
    assert_true(isnan(p[2]));
    assert_near(p[3], 0.06);
    assert_near(p[4], 0.02);
    double one[] = {0.7, 0.8};
    kprof_holm(one, 2);
    assert_near(one[0], 1);
    assert_near(one[1], 1);
    kprof_holm(NULL, 0);
}

static double binomial(unsigned n, unsigned k)
{
    double product = 1;
    for (unsigned i = 1; i <= k; i++)
        product = product * (n - k + i) / i;
    return product;
}

/* Two samples without overlap have the least p: 2 of all ways to choose one of them. */
TEST(repeats_needed)
{
    for (size_t tests = 1; tests < 1000; tests = tests * 3 / 2 + 1) {
        const size_t needed = kprof_repeats_needed(tests, 0.01);
        assert_true(2 / binomial((unsigned)(2 * needed), (unsigned)needed) * (double)tests < 0.01);
        assert_true(2 / binomial((unsigned)(2 * needed - 2), (unsigned)needed - 1) * (double)tests >= 0.01);
    }
    assert_int_equal(kprof_repeats_needed(1, 0.01), 5);
    assert_int_equal(kprof_repeats_needed(2, 0.01), 6);
    assert_int_equal(kprof_repeats_needed(17, 0.01), 7);
    assert_int_equal(kprof_repeats_needed(18, 0.01), 8);
    assert_int_equal(kprof_repeats_needed(200, 0.01), 9);
}
