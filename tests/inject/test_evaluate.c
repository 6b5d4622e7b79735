/* Tests which values are evaluated after which pass and for which launches, what becomes of those that cannot be, and
 * how far the passes of a witness are apart. The reader is the test's: it notes how often it was asked for each. */
#include "inject/engine.h"
#include "inject/evaluate.h"
#include "inject/process.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCHES = 100, METRICS = 4, WITNESSES = 2, BROKEN = 37 };

struct kprof_reader {
    const kprof_chip_metrics *metrics;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned asked[LAUNCHES][METRICS + WITNESSES]; /* how often; under `mutex`, as what follows */
static unsigned reads, opens, closes, mismatches;
static kprof_status open_status;
static bool one_is_broken;
static double kernel_mean; /* in place of any value, where it is not 0 */

static char *metric_names[METRICS] = {"0", "1", "2", "3"}, *witness_names[WITNESSES] = {"4", "5"};
static uint32_t last_passes[METRICS] = {0, 1, 2, 1};
static kprof_chip_metrics metrics = {.chip = "GH100",
                                     .metrics = {metric_names, METRICS, METRICS},
                                     .last_passes = last_passes,
                                     .witnesses = {witness_names, WITNESSES, WITNESSES},
                                     .witness_passes = {1 | 1 << 2, 1 << 1 | 1 << 2},
                                     .pass_count = 3};
static kprof_chip_metrics of_another_chip;

static __thread bool is_own, has_forgotten;

/* In place of the engine's and of CUPTI's. */
static void mark_own(void)
{
    is_own = true;
}

void kprof_process_forget_reason(void)
{
    has_forgotten = true;
}

const char *kprof_process_reason(kprof_status status)
{
    return kprof_status_message(status);
}

static kprof_status reader_open(const kprof_chip_metrics *of, kprof_reader **out)
{
    pthread_mutex_lock(&mutex);
    kprof_status status = open_status;
    *out = status == KPROF_OK ? malloc(sizeof **out) : NULL;
    if (*out) {
        (*out)->metrics = of;
        opens++;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

static void reader_close(kprof_reader *reader)
{
    closes += reader != NULL;
    free(reader);
}

static double value_of(size_t launch, size_t number)
{
    return (double)(launch * 10 + number);
}

static kprof_status reader_read(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    pthread_mutex_lock(&mutex);
    reads++;
    mismatches += !is_own || !has_forgotten; /* it would wait for the gate; or tell another's reason */
    mismatches += (const void *)range.profiler != (const void *)reader->metrics;
    for (size_t i = 0; i < names->count; i++) {
        size_t number = strtoul(names->items[i], NULL, 10);
        asked[range.index][number]++;
        values[i] = kernel_mean > 0 ? kernel_mean : value_of(range.index, number);
    }
    kprof_status status = one_is_broken && range.index == BROKEN ? KPROF_INTERNAL : KPROF_OK;
    pthread_mutex_unlock(&mutex);
    return status;
}

static const kprof_device_ops device_ops = {
    .reader_open = reader_open, .reader_close = reader_close, .reader_read = reader_read};

static int set_up(void **state)
{
    kprof_engine.thread_begins = mark_own;
    of_another_chip = metrics;
    open_status = KPROF_OK;
    one_is_broken = false;
    return 0;
}

/* The test's profiler is what it is for. */
static kprof_evaluations make(const kprof_chip_metrics *of)
{
    kprof_evaluations evaluations;
    assert_int_equal(kprof_evaluations_make((const kprof_profiler *)of, of, LAUNCHES, &evaluations), KPROF_OK);
    for (size_t i = 0; i < LAUNCHES; i++)
        evaluations.items[i].range = i;
    return evaluations;
}

static void evaluate(kprof_evaluations *evaluations, uint32_t from, uint32_t end)
{
    memset(asked, 0, sizeof asked);
    reads = mismatches = 0;
    kprof_evaluate_begin(evaluations, from, end);
    kprof_evaluate_wait();
    assert_int_equal(mismatches, 0);
}

/* Once for each launch: those, and no others. `numbers` ends with -1. */
static void assert_asked(const int *numbers)
{
    for (size_t launch = 0; launch < LAUNCHES; launch++)
        for (int number = 0; number < METRICS + WITNESSES; number++) {
            unsigned expected = 0;
            for (const int *n = numbers; *n >= 0; n++)
                expected += *n == number;
            assert_int_equal(asked[launch][number], expected);
        }
}

static void assert_values(const kprof_evaluations *evaluations, const bool *present)
{
    for (size_t launch = 0; launch < LAUNCHES; launch++)
        for (size_t i = 0; i < METRICS; i++) {
            double value = evaluations->items[launch].values[i];
            assert_int_equal(evaluations->items[launch].status, KPROF_OK);
            assert_true(present[i] ? value == value_of(launch, i) : isnan(value));
        }
}

/* Earlier a metric lacks counters; CUPTI may fail for it, and the launch with it. */
TEST_WITH(test_pass_by_pass, set_up, NULL)
{
    kprof_evaluations evaluations = make(&metrics);
    assert_values(&evaluations, (const bool[]){false, false, false, false});
    evaluate(&evaluations, 0, 1);
    assert_asked((const int[]){0, 4, -1});
    assert_values(&evaluations, (const bool[]){true, false, false, false});
    evaluate(&evaluations, 1, 2);
    assert_asked((const int[]){1, 3, 5, -1});
    assert_values(&evaluations, (const bool[]){true, true, false, true});
    evaluate(&evaluations, 2, KPROF_ALL_PASSES);
    assert_asked((const int[]){2, 4, 5, -1});
    assert_values(&evaluations, (const bool[]){true, true, true, true});
    for (size_t launch = 0; launch < LAUNCHES; launch++) {
        assert_int_equal(evaluations.items[launch].witnesses[0].passes, 2);
        assert_int_equal(evaluations.items[launch].witnesses[1].passes, 2);
        assert_true(evaluations.items[launch].witnesses[1].mean == value_of(launch, METRICS + 1));
    }
    kprof_evaluations_free(&evaluations);
}

/* Only the second pass has the range. The means over passes are of 9, 1 and 8 cycles of the kernel. */
TEST_WITH(test_kernel_in_the_pass_of_its_range, set_up, NULL)
{
    static char *names[] = {(char *)KPROF_KERNEL_CYCLES, (char *)KPROF_RANGE_CYCLES};
    static kprof_chip_metrics of_ranges;
    of_ranges = (kprof_chip_metrics){.witnesses = {names, 2, 2}, .witness_passes = {7, 2}, .pass_count = 3};
    kprof_evaluations evaluations = make(&of_ranges);
    const double kernel_means[] = {9, 5, 6};
    for (uint32_t pass = 0; pass < 3; pass++) {
        kernel_mean = kernel_means[pass];
        evaluate(&evaluations, pass, pass + 1);
        kernel_mean = 0;
        assert_true(evaluations.items[3].witnesses[1].beside == (pass == 0 ? 0 : 1));
    }
    assert_true(evaluations.items[3].witnesses[0].high == 9 && evaluations.items[3].witnesses[0].low == 1);
    kprof_evaluations_free(&evaluations);
}

TEST_WITH(test_several_passes_at_once, set_up, NULL)
{
    kprof_evaluations evaluations = make(&metrics);
    evaluate(&evaluations, 0, 2);
    assert_asked((const int[]){0, 1, 3, 4, -1});
    evaluate(&evaluations, 0, KPROF_ALL_PASSES);
    assert_asked((const int[]){0, 1, 2, 3, 4, -1});
    kprof_evaluations_free(&evaluations);
}

TEST_WITH(test_one_that_cannot_be_evaluated, set_up, NULL)
{
    kprof_evaluations evaluations = make(&metrics);
    one_is_broken = true;
    evaluate(&evaluations, 0, 1);
    one_is_broken = false;
    evaluate(&evaluations, 1, KPROF_ALL_PASSES);
    assert_int_equal(reads, LAUNCHES - 1); /* the others go on without it */
    assert_int_equal(asked[BROKEN][1], 0);
    for (size_t launch = 0; launch < LAUNCHES; launch++) {
        const kprof_evaluation *e = &evaluations.items[launch];
        assert_int_equal(e->status, launch == BROKEN ? KPROF_INTERNAL : KPROF_OK);
        assert_true(launch == BROKEN ? isnan(e->values[0]) : e->values[1] == value_of(launch, 1));
    }
    assert_string_equal(evaluations.items[BROKEN].reason, kprof_status_message(KPROF_INTERNAL));
    kprof_evaluations_free(&evaluations);
}

/* Its readers know other counters. */
TEST_WITH(test_another_chip, set_up, NULL)
{
    kprof_evaluations evaluations = make(&of_another_chip), once_more = make(&metrics);
    opens = 0;
    evaluate(&evaluations, 0, 1);
    assert_true(opens > 0 && closes > 0);
    evaluate(&once_more, 0, 1);
    evaluate(&once_more, 1, 2);
    kprof_evaluations_free(&evaluations);
    kprof_evaluations_free(&once_more);
}

/* Then there is nothing to read with. */
TEST_WITH(test_no_reader, set_up, NULL)
{
    static kprof_chip_metrics of_a_third_chip;
    of_a_third_chip = metrics;
    kprof_evaluations evaluations = make(&of_a_third_chip);
    open_status = KPROF_UNSUPPORTED;
    evaluate(&evaluations, 0, 1);
    assert_int_equal(reads, 0);
    for (size_t launch = 0; launch < LAUNCHES; launch++) {
        assert_int_equal(evaluations.items[launch].status, KPROF_UNSUPPORTED);
        assert_string_equal(evaluations.items[launch].reason, kprof_status_message(KPROF_UNSUPPORTED));
    }
    kprof_evaluations_free(&evaluations);
}

/* CUPTI gives these values after each pass. */
static kprof_witness witness_of(const double *values, unsigned count)
{
    kprof_witness witness = {0};
    double sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += values[i];
        assert_true(fabs(kprof_witness_add(&witness, sum / (i + 1)) - values[i]) < 1); /* the pass' own value */
    }
    return witness;
}

TEST(test_witness_of_equal_passes)
{
    const double values[] = {10485760, 10485760, 10485760, 10485760, 10485760, 10485760, 10485760};
    kprof_witness witness = witness_of(values, 7);
    assert_true(witness.low == 10485760 && witness.high == 10485760);
    assert_true(kprof_witness_spread_pct(&witness) == 0);
}

/* As seen on an H200, with a kernel that does more in each pass: means 5913600, 8764800, 11616000. */
TEST(test_witness_of_different_passes)
{
    const double values[] = {5913600, 11616000, 17318400};
    kprof_witness witness = witness_of(values, 3);
    assert_true(fabs(witness.low - 5913600) < 1 && fabs(witness.high - 17318400) < 1);
    assert_true(fabs(kprof_witness_spread_pct(&witness) - 98.1818) < 0.001);
}

TEST(test_passes_without_the_witness)
{
    kprof_witness witness = {0};
    assert_true(isnan(kprof_witness_add(&witness, NAN)));
    assert_int_equal(witness.passes, 0);
    assert_true(kprof_witness_add(&witness, 7) == 7);
    assert_true(isnan(kprof_witness_spread_pct(&witness))); /* one pass cannot disagree */
}

TEST(test_witness_that_counts_nothing)
{
    const double values[] = {0, 0};
    kprof_witness witness = witness_of(values, 2);
    assert_true(isnan(kprof_witness_spread_pct(&witness)));
}

int main(void)
{
    kprof_engine.device = &device_ops;
    return run_all_tests();
}
