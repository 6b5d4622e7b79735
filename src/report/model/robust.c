/* Medians by sorting, order statistics for intervals, and rank tests: exact for small samples, else approximate. */
#include "report/model/robust.h"
#include "core/strbuf.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

void kprof_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, by_value);
}

static double median_of_sorted(const double *values, size_t count)
{
    if (count == 0)
        return NAN;
    double upper = values[count / 2];
    /* Halve each first: the sum of two large values may overflow. */
    return count % 2 ? upper : values[count / 2 - 1] / 2 + upper / 2;
}

/* Sort the numbers to the front; returns how many there are. */
static size_t sort_numbers(double *values, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[kept++] = values[i];
    kprof_sort(values, kept);
    return kept;
}

/* The center of sorted numbers, which are replaced by their distances from it. */
static kprof_center center_of_sorted(double *values, size_t count)
{
    kprof_center center = {count, median_of_sorted(values, count), NAN};
    if (!isfinite(center.median))
        return center;
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - center.median);
    kprof_sort(values, count);
    center.mad = median_of_sorted(values, count);
    return center;
}

kprof_center kprof_center_of(double *values, size_t count)
{
    return center_of_sorted(values, sort_numbers(values, count));
}

kprof_interval kprof_median_interval(const double *sorted, size_t count, double confidence)
{
    const double n = (double)count;
    double below = 0; /* the chance that at most k values are below the median */
    size_t k = 0;
    for (; k < count / 2; k++) {
        below += exp(lgamma(n + 1) - lgamma((double)k + 1) - lgamma(n - (double)k + 1) - n * M_LN2);
        if (below > (1 - confidence) / 2)
            break;
    }
    return k == 0 ? (kprof_interval){NAN, NAN} : (kprof_interval){sorted[k - 1], sorted[count - k]};
}

kprof_repeats kprof_repeats_of(double *values, size_t count, double confidence)
{
    kprof_repeats repeats;
    const size_t kept = sort_numbers(values, count);
    repeats.interval = kprof_median_interval(values, kept, confidence);
    repeats.center = center_of_sorted(values, kept);
    const double margin = fabs(repeats.center.median) * KPROF_STABLE_PCT / 100;
    repeats.is_stable = kept >= KPROF_REPEATS_MIN && repeats.center.median - repeats.interval.low <= margin &&
                        repeats.interval.high - repeats.center.median <= margin;
    return repeats;
}

/* The number of differences (a value of `to` less one of `from`) that are at most `limit`, and the smallest above it,
 * INFINITY if there is none. Both samples are sorted. */
static uint64_t count_differences(kprof_sample from, kprof_sample to, double limit, double *next)
{
    uint64_t found = 0;
    size_t k = 0;
    *next = INFINITY;
    for (size_t i = 0; i < from.count; i++) {
        while (k < to.count && to.values[k] - from.values[i] <= limit)
            k++;
        found += k;
        if (k < to.count)
            *next = fmin(*next, to.values[k] - from.values[i]);
    }
    return found;
}

/* Find the difference of this rank, from 1, by halving the range that holds it. In a narrow range, try the next
 * difference too: it mostly is the one. */
static double find_difference(kprof_sample from, kprof_sample to, uint64_t rank)
{
    enum { NARROW = 40 };
    double low = to.values[0] - from.values[from.count - 1], high = to.values[to.count - 1] - from.values[0], next;
    if (count_differences(from, to, low, &next) >= rank)
        return low;
    for (int halved = 0;; halved++) {
        const double middle = low / 2 + high / 2;
        const bool is_done = middle <= low || middle >= high;
        if (is_done || (halved >= NARROW && halved % 2)) {
            (void)count_differences(from, to, low, &low);
            if (count_differences(from, to, low, &next) >= rank)
                return low;
        } else if (count_differences(from, to, middle, &next) >= rank) {
            high = middle;
        } else {
            low = middle;
        }
    }
}

/* The ranks of both samples together, doubled, so that those of ties are whole too. */
typedef struct rank_sums {
    size_t count, chosen; /* of all values; of the smaller sample */
    uint32_t *ranks;      /* [count], of the sorted values */
    uint64_t sum;         /* doubled, of the smaller sample */
    double tie_term;      /* sum of t^3 - t over the groups of t equal values */
} rank_sums;

/* Give equal values the mean of their ranks. Both samples are sorted. */
static void add_ranks(kprof_sample small, kprof_sample large, rank_sums *sums)
{
    size_t i = 0, k = 0;
    while (i < small.count || k < large.count) {
        double value = i == small.count || (k < large.count && large.values[k] < small.values[i]) ? large.values[k]
                                                                                                  : small.values[i];
        const size_t before = i + k, small_before = i;
        while (i < small.count && small.values[i] <= value)
            i++;
        while (k < large.count && large.values[k] <= value)
            k++;
        const size_t equal = i + k - before;
        const uint64_t rank = 2 * before + equal + 1;
        for (size_t at = 0; sums->ranks && at < equal; at++)
            sums->ranks[before + at] = (uint32_t)rank;
        sums->sum += rank * (i - small_before);
        sums->tie_term += (double)equal * ((double)equal * (double)equal - 1);
    }
}

/* ways[s]: how many ways to choose `chosen` ranks add up to s. The caller frees it. */
static double *count_ways(const rank_sums *sums)
{
    const size_t most = sums->count * (sums->count + 1), stride = most + 1;
    double *ways = kprof_calloc((sums->chosen + 1) * stride, sizeof *ways);
    ways[0] = 1;
    for (size_t i = 0; i < sums->count; i++) {
        const size_t rank = sums->ranks[i];
        for (size_t k = i + 1 < sums->chosen ? i + 1 : sums->chosen; k > 0; k--) {
            double *to = ways + k * stride + rank;
            const double *from = ways + (k - 1) * stride;
            for (size_t s = 0; s + rank <= most; s++)
                to[s] += from[s];
        }
    }
    memmove(ways, ways + sums->chosen * stride, stride * sizeof *ways);
    return ways;
}

/* The chance that a standard normal value is beyond z to either side, and the z of such a chance. */
static double both_tails(double z)
{
    return erfc(fabs(z) / M_SQRT2);
}

static double z_of_tails(double chance)
{
    double low = 0, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (both_tails(middle) > chance)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static double approximate_p(const rank_sums *sums)
{
    const double n = (double)sums->count, small = (double)sums->chosen, large = n - small;
    const double variance = small * large / 12 * (n + 1 - sums->tie_term / (n * (n - 1)));
    const double distance = fabs((double)sums->sum / 2 - small * (n + 1) / 2) - 0.5;
    return variance <= 0 || distance <= 0 ? 1 : both_tails(distance / sqrt(variance));
}

/* The rank, from 1, of the difference that bounds the interval from below, if no values tie; 0: there is none. */
static void exact_bound(size_t count, size_t chosen, double tail, uint64_t *bound)
{
    uint32_t ranks[KPROF_EXACT_MAX];
    for (size_t i = 0; i < count; i++)
        ranks[i] = 2 * (uint32_t)(i + 1);
    KPROF_AUTO_FREE double *ways = count_ways(&(rank_sums){.count = count, .chosen = chosen, .ranks = ranks});
    const size_t least = chosen * (chosen + 1), most = count * (count + 1);
    const double all = KPROF_SUM(i, most - least + 1, ways[least + i]);
    double below = 0;
    for (*bound = 0; least + 2 * *bound <= most; ++*bound) {
        below += ways[least + 2 * *bound];
        if (below > tail * all)
            break;
    }
}

static uint64_t approximate_bound(size_t count, size_t chosen, double tail)
{
    const double small = (double)chosen, large = (double)(count - chosen);
    const double deviation = sqrt(small * large * ((double)count + 1) / 12);
    const double bound = floor(small * large / 2 - z_of_tails(2 * tail) * deviation);
    return bound >= 1 ? (uint64_t)bound : 0;
}

static double find_p(kprof_sample small, kprof_sample large)
{
    uint32_t ranks[KPROF_EXACT_MAX];
    rank_sums sums = {.count = small.count + large.count, .chosen = small.count};
    sums.ranks = sums.count <= KPROF_EXACT_MAX ? ranks : NULL;
    add_ranks(small, large, &sums);
    if (!sums.ranks)
        return approximate_p(&sums);
    KPROF_AUTO_FREE double *ways = count_ways(&sums);
    const size_t most = sums.count * (sums.count + 1);
    double all = 0, below = 0, above = 0;
    for (size_t s = 0; s <= most; s++) {
        all += ways[s];
        below += s <= sums.sum ? ways[s] : 0;
        above += s >= sums.sum ? ways[s] : 0;
    }
    return fmin(1, 2 * fmin(below, above) / all);
}

void kprof_shift_of(kprof_sample from, kprof_sample to, double confidence, kprof_shift *out)
{
    *out = (kprof_shift){NAN, NAN, {NAN, NAN}};
    if (from.count == 0 || to.count == 0)
        return;
    kprof_sort(from.values, from.count);
    kprof_sort(to.values, to.count);
    const uint64_t pairs = (uint64_t)from.count * to.count; /* whose median difference is the estimate */
    const double upper = find_difference(from, to, pairs / 2 + 1);
    out->estimate = pairs % 2 ? upper : find_difference(from, to, pairs / 2) / 2 + upper / 2;
    out->p = from.count <= to.count ? find_p(from, to) : find_p(to, from);
    const size_t count = from.count + to.count, chosen = from.count < to.count ? from.count : to.count;
    const double tail = (1 - confidence) / 2;
    uint64_t bound = 0;
    if (count <= KPROF_EXACT_MAX)
        exact_bound(count, chosen, tail, &bound);
    else
        bound = approximate_bound(count, chosen, tail);
    if (bound > 0) {
        out->interval.low = find_difference(from, to, bound);
        out->interval.high = find_difference(from, to, (uint64_t)from.count * to.count + 1 - bound);
    }
}

typedef struct indexed_p {
    double p;
    size_t index;
} indexed_p;

KPROF_BY_NUMBER(by_p, indexed_p, p)

size_t kprof_repeats_needed(size_t tests, double alpha)
{
    size_t needed = 0;
    for (double least_p = 2; least_p * (double)tests >= alpha && needed < KPROF_EXACT_MAX;) {
        needed++; /* 2 / C(2n, n): C grows by (2n)(2n - 1) / n^2 */
        least_p *= (double)(needed * needed) / (double)(2 * needed * (2 * needed - 1));
    }
    return needed;
}

void kprof_holm(double *p, size_t count)
{
    KPROF_AUTO_FREE indexed_p *sorted = kprof_calloc(count + 1, sizeof *sorted);
    size_t tests = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i]))
            sorted[tests++] = (indexed_p){p[i], i};
    qsort(sorted, tests, sizeof *sorted, by_p);
    double highest = 0;
    for (size_t i = 0; i < tests; i++) {
        highest = fmax(highest, fmin(1, sorted[i].p * (double)(tests - i)));
        p[sorted[i].index] = highest;
    }
}
